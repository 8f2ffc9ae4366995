"""The workloads as Drake systems, in C++ throughout where pydrake offers it.

The states are in the order of the workloads, because Drake orders them as systems are added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.versus.drake_plants import part, plant
from benchmarks.versus.workloads import (
    Array,
    BouncingBall,
    ControlledMass,
    MassChain,
    SampledPendulum,
    StiffOscillator,
    Workload,
)


@dataclass(frozen=True)
class Model:
    """A workload in Drake.

    Attributes
    ----------
    side : str
        The side that it belongs to; several models of one side are tried.
    form : str
        How it is built, in words.
    system : object
        The system to simulate.
    observe : callable
        Gives the compared signals of a root context at the end of a step.
    logs : tuple
        Sinks that record the compared signals instead.
    prepare : callable
        Gives a new root context the parameters of the workload.
    """

    side: str
    form: str
    system: Any
    observe: Callable[[Any], Array]
    logs: tuple[Any, ...] = ()
    prepare: Callable[[Any], None] = lambda _: None


def models(workload: Workload) -> list[Model]:
    """Return all models of a workload."""
    match workload:
        case ControlledMass():
            return [composed_pid(workload), _pid_as_matrix(workload)]
        case MassChain():
            return [_plant(workload), _chain_as_matrix(workload)]
        case SampledPendulum():
            return [_pendulum(workload)]
        case BouncingBall():
            return [_whole_ball(workload), _split_ball(workload)]
        case StiffOscillator():
            return [_oscillator(workload)]
    return [_plant(workload)]


def composed_pid(w: ControlledMass) -> Model:
    """Build the controlled mass of seven systems, each with one output."""
    primitives = part("systems.primitives")
    linear = primitives.LinearSystem
    builder = part("systems.framework").DiagramBuilder()
    source, difference, p, i, d, total, mass = map(
        builder.AddSystem,
        (
            primitives.Sine(w.amplitude, w.frequency, 0.0, 1),
            primitives.Adder(2, 1),
            primitives.Gain(w.kp, 1),
            linear(A=[[0.0]], B=[[1.0]], C=[[w.ki]], D=[[0.0]]),
            linear(
                A=[[-1.0 / w.filter_time]],
                B=[[1.0 / w.filter_time]],
                C=[[-w.kd / w.filter_time]],
                D=[[w.kd / w.filter_time]],
            ),
            primitives.Adder(3, 1),
            linear(  # its output has the sign that the difference needs
                A=[[0.0, 1.0], [-w.k / w.m, -w.d / w.m]],
                B=[[0.0], [1.0 / w.m]],
                C=[[-1.0, 0.0]],
                D=[[0.0]],
            ),
        ),
    )
    _connect(builder, [source, mass], difference)
    for law in (p, i, d):
        _connect(builder, [difference], law)
    _connect(builder, [p, i, d], total)
    _connect(builder, [total], mass)
    return Model("Drake", "7 primitives in C++", builder.Build(), _states)


def _pid_as_matrix(w: ControlledMass) -> Model:
    direct = w.kp + w.kd / w.filter_time
    A = [
        [0.0, 0.0, -1.0, 0.0],
        [0.0, -1.0 / w.filter_time, -1.0 / w.filter_time, 0.0],
        [0.0, 0.0, 0.0, 1.0],
        [w.ki / w.m, -w.kd / w.filter_time / w.m, -(w.k + direct) / w.m, -w.d / w.m],
    ]
    B = [[1.0], [1.0 / w.filter_time], [0.0], [direct / w.m]]
    return Model("Drake by hand", "Sine and one LinearSystem", _driven(w, A, B), _states)


def _oscillator(w: StiffOscillator) -> Model:
    A = [[0.0, 1.0], [-w.k / w.m, -w.d / w.m]]
    return Model("Drake", "Sine and LinearSystem", _driven(w, A, [[0.0], [1.0 / w.m]]), _states)


def _driven(w: ControlledMass | StiffOscillator, A: Any, B: Any) -> Any:
    """Build a linear system that a sine drives."""
    primitives = part("systems.primitives")
    builder = part("systems.framework").DiagramBuilder()
    source = builder.AddSystem(primitives.Sine(w.amplitude, w.frequency, 0.0, 1))
    plant = builder.AddSystem(
        primitives.LinearSystem(A=A, B=B, C=np.eye(len(A)), D=np.zeros_like(B))
    )
    _connect(builder, [source], plant)
    return builder.Build()


def _plant(w: Workload) -> Model:
    system, elements = plant(w)
    return Model("Drake", f"MultibodyPlant with {elements}", system, _states)


def _chain_as_matrix(w: MassChain) -> Model:
    n, none = w.count, np.zeros((0, 0))
    strain = np.eye(n) - np.eye(n, k=-1)
    stiffness = strain.T @ strain / w.m
    A = np.block([[np.zeros((n, n)), np.eye(n)], [-w.k * stiffness, -w.d * stiffness]])
    preload = -w.k * (w.spacing - w.rest_length) / w.m * strain.T @ np.ones(n)
    system = part("systems.primitives").AffineSystem(
        A=A,
        B=np.zeros((2 * n, 0)),
        f0=np.concatenate([np.zeros(n), preload]),
        C=np.zeros((0, 2 * n)),
        D=none,
        y0=np.zeros(0),
    )
    form = f"one dense AffineSystem of {2 * n} states"
    return Model("Drake by hand", form, system, _states)


def _pendulum(w: SampledPendulum) -> Model:
    primitives, examples = part("systems.primitives"), part("examples")
    builder = part("systems.framework").DiagramBuilder()
    plant = builder.AddSystem(examples.PendulumPlant())
    law = builder.AddSystem(primitives.MatrixGain([[-w.kp, -w.kd]]))
    hold = builder.AddSystem(primitives.ZeroOrderHold(w.period, 1))
    logs = tuple(builder.AddSystem(primitives.VectorLogSink(size, w.period)) for size in (2, 1))
    for before, after in ((plant, law), (law, hold), (hold, plant), (plant, logs[0])):
        builder.Connect(before.get_output_port(0), after.get_input_port(0))
    builder.Connect(hold.get_output_port(), logs[1].get_input_port())
    diagram = builder.Build()

    def prepare(context: Any) -> None:
        parameters = plant.get_mutable_parameters(plant.GetMyContextFromRoot(context))
        parameters.set_mass(w.m)
        parameters.set_length(w.length)
        parameters.set_damping(w.b)
        parameters.set_gravity(w.g)

    form = "PendulumPlant, MatrixGain, ZeroOrderHold and two VectorLogSinks in C++"
    return Model("Drake", form, diagram, _states, logs, prepare)


def _whole_ball(w: BouncingBall) -> Model:
    framework: Any = part("systems.framework")

    class Ball(framework.LeafSystem):  # type: ignore[misc]
        def __init__(self) -> None:
            framework.LeafSystem.__init__(self)
            self.DeclareContinuousState(1, 1, 0)
            self.witness = _ground(framework, self, self.height, self.bounce)

        def height(self, context: Any) -> float:
            return float(context.get_continuous_state_vector().GetAtIndex(0))

        def bounce(self, system: Any, context: Any, event: Any, state: Any) -> None:
            q, v = context.get_continuous_state_vector().CopyToVector()
            state.get_mutable_continuous_state().SetFromVector([q, -w.restitution * v])

        def DoGetWitnessFunctions(self, context: Any) -> list[Any]:  # noqa: N802
            return [self.witness]

        def DoCalcTimeDerivatives(self, context: Any, derivatives: Any) -> None:  # noqa: N802
            v = context.get_continuous_state_vector().GetAtIndex(1)
            derivatives.SetFromVector([v, -w.g])

    return Model("Drake", "LeafSystem in Python, pydrake has no BouncingBall", Ball(), _height)


def _split_ball(w: BouncingBall) -> Model:
    framework: Any = part("systems.framework")

    class Floor(framework.LeafSystem):  # type: ignore[misc]
        """Adds up what the impacts add to the speed."""

        def __init__(self) -> None:
            framework.LeafSystem.__init__(self)
            self.DeclareVectorInputPort("u", framework.BasicVector(2))
            self.DeclareStateOutputPort("y", self.DeclareDiscreteState(1))
            self.witness = _ground(framework, self, self.height, self.bounce)

        def height(self, context: Any) -> float:
            return float(self.get_input_port().Eval(context)[0])

        def bounce(self, system: Any, context: Any, event: Any, state: Any) -> None:
            speed = self.get_input_port().Eval(context)[1]
            gained = context.get_discrete_state_vector().GetAtIndex(0)
            gained -= (1.0 + w.restitution) * (speed + gained)
            state.get_mutable_discrete_state(0).SetFromVector([gained])

        def DoGetWitnessFunctions(self, context: Any) -> list[Any]:  # noqa: N802
            return [self.witness]

    builder = framework.DiagramBuilder()
    flight = builder.AddSystem(
        part("systems.primitives").AffineSystem(
            A=[[0.0, 1.0], [0.0, 0.0]],
            B=[[1.0], [0.0]],
            f0=[0.0, -w.g],
            C=np.eye(2),
            D=np.zeros((2, 1)),
            y0=[0.0, 0.0],
        )
    )
    floor = builder.AddSystem(Floor())
    _connect(builder, [flight], floor)
    _connect(builder, [floor], flight)
    form = "flight in C++; witness and impact in Python, pydrake has no BouncingBall"
    return Model("Drake", form, builder.Build(), _height)


def _ground(framework: Any, system: Any, height: Any, bounce: Any) -> Any:
    """Make the witness function of the impact."""
    direction = framework.WitnessFunctionDirection.kPositiveThenNonPositive
    event = framework.UnrestrictedUpdateEvent(system_callback=bounce)
    return system.MakeWitnessFunction("ground", direction, height, event)


def _connect(builder: Any, sources: Iterable[Any], target: Any) -> None:
    """Connect the only outputs of some systems to the inputs of one."""
    for k, source in enumerate(sources):
        builder.Connect(source.get_output_port(0), target.get_input_port(k))


def _states(context: Any) -> Array:
    states: Array = context.get_continuous_state_vector().CopyToVector()
    return states


def _height(context: Any) -> Array:
    return _states(context)[:1]
