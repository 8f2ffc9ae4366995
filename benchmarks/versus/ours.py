"""Our side: the workloads as diagrams, and the ways in which Flexure runs them.

A way is a function of a workload that returns a prepared `Contender`, or None for a workload that
it does not serve. It chooses the loosest tolerance that meets the target of the workload, and its
``run`` counts the seconds from a prepared simulator to the end. The table of bars knows ways by the
names of their contenders: "native loop", "solve_ivp", "lanes".
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

import flexure as fx
from benchmarks.versus import reference
from benchmarks.versus.plants import build_plant
from benchmarks.versus.sides import Contender, fastest, loosest, seconds
from benchmarks.versus.workloads import (
    Array,
    BouncingBall,
    ControlledMass,
    Ensemble,
    MassChain,
    Mechanism,
    SampledPendulum,
    StiffOscillator,
    Workload,
)
from flexure.solvers import native as native_code
from flexure.solvers.tracing.straight_line import StraightLine
from flexure.solvers.tracing.trace import trace_derivatives

Way: TypeAlias = Callable[[Workload], Contender | None]


# Blocks -------------------------------------------------------------------------------------------


class PointMass(fx.LeafSystem):
    """A mass on a rail between two springs: m q″ = behind − before."""

    def __init__(self, name: str, m: float) -> None:
        super().__init__(name)
        self.m = self.declare_numeric_parameter("m", m, unit="kg")
        self.x = self.declare_continuous_state(q=1, v=1)
        self.before = self.declare_vector_input("before", 1, unit="N")
        self.behind = self.declare_vector_input("behind", 1, default=0.0, unit="N")
        self.y = self.declare_vector_output("y", 2, self.x, prerequisites=[self.x])

    def calc_time_derivatives(self, context: Any) -> Any:
        """Return (q′, q″)."""
        pull = self.behind(context) - self.before(context)
        return [self.x.v(context), pull / self.m(context)]


class SpringDamper(fx.LeafSystem):
    """Pulls two masses together: f = k (length − rest_length) + d length′."""

    def __init__(self, name: str, chain: MassChain) -> None:
        super().__init__(name)
        self.k = self.declare_numeric_parameter("k", chain.k, unit="N/m")
        self.d = self.declare_numeric_parameter("d", chain.d, unit="N s/m")
        self.spacing = self.declare_numeric_parameter("spacing", chain.spacing, unit="m")
        self.rest_length = self.declare_numeric_parameter(
            "rest_length", chain.rest_length, unit="m"
        )
        self.near = self.declare_vector_input("near", 2, default=[0.0, 0.0])
        self.far = self.declare_vector_input("far", 2)
        self.f = self.declare_vector_output(
            "f", 1, self.calc_force, prerequisites=[self.near, self.far], unit="N"
        )

    def calc_force(self, context: Any) -> Any:
        """Return the tension."""
        stretch, rate = self.far(context) - self.near(context)
        length = self.spacing(context) + stretch
        return [self.k(context) * (length - self.rest_length(context)) + self.d(context) * rate]


class Pendulum(fx.LeafSystem):
    """m l² q″ = u − b q′ − m g l sin q."""

    def __init__(self, name: str, w: SampledPendulum) -> None:
        super().__init__(name)
        self.m = self.declare_numeric_parameter("m", w.m, unit="kg")
        self.length = self.declare_numeric_parameter("length", w.length, unit="m")
        self.b = self.declare_numeric_parameter("b", w.b, unit="N m s/rad")
        self.g = self.declare_numeric_parameter("g", w.g, unit="m/s^2")
        self.x = self.declare_continuous_state(q=1, v=1, default=w.initial)
        self.u = self.declare_vector_input("u", 1, unit="N m")
        self.y = self.declare_vector_output("y", 2, self.x, prerequisites=[self.x])
        self.q = self.declare_vector_output("q", 1, self.x.q, prerequisites=[self.x], unit="rad")

    def calc_time_derivatives(self, context: Any) -> Any:
        """Return (q′, q″)."""
        q, v = self.x(context)
        m, length = self.m(context), self.length(context)
        weight = m * self.g(context) * length * np.sin(q)
        return [v, (self.u(context)[0] - self.b(context) * v - weight) / (m * length**2)]


class Ball(fx.LeafSystem):
    """q″ = −g, and at the floor the speed v becomes −restitution v."""

    def __init__(self, name: str, w: BouncingBall) -> None:
        super().__init__(name)
        self.g = self.declare_numeric_parameter("g", w.g, unit="m/s^2")
        self.restitution = self.declare_numeric_parameter("restitution", w.restitution)
        self.x = self.declare_continuous_state(q=1, v=1, default=w.initial)
        self.declare_unrestricted_update(self.bounce, fx.diagrams.Witness(self.height, "falling"))

    def height(self, context: Any) -> Any:
        """Return the height above the floor."""
        return self.x.q(context)[0]

    def bounce(self, context: Any) -> dict[Any, Any]:
        """Turn the speed around."""
        q, v = self.x(context)
        return {self.x: [q, -self.restitution(context) * v]}

    def calc_time_derivatives(self, context: Any) -> Any:
        """Return (q′, q″)."""
        return [self.x.v(context), -self.g(context)]


# Diagrams -----------------------------------------------------------------------------------------


def build(workload: Workload) -> fx.Diagram:
    """Return the diagram of a workload; of a mechanism, its plant."""
    if isinstance(workload, Mechanism):
        return build_plant(workload)
    builder = fx.DiagramBuilder(workload.name)
    match workload:
        case ControlledMass():
            _add_pid(builder, workload)
        case Ensemble():
            _add_pid(builder, workload.base)
        case MassChain():
            _add_chain(builder, workload)
        case SampledPendulum():
            _add_pendulum(builder, workload)
        case BouncingBall():
            builder.add(Ball("ball", workload))
        case StiffOscillator():
            builder.add_all(
                fx.Sine("push", workload.amplitude, workload.frequency),
                _mass(workload, workload.initial),
            )
            builder.connect_chain("push", "mass")
        case _:
            raise NotImplementedError(workload)
    return builder.build()


def start(workload: Workload, diagram: fx.Diagram) -> fx.Context:
    """Return a context at the beginning of a run; of a member of an ensemble, with its gains."""
    context = diagram.create_default_context()
    if isinstance(workload, Mechanism):
        context.set("tree.x", workload.initial)
    if isinstance(workload, ControlledMass):
        context.set("p.gain", workload.kp)
        context.set("i.C", [[workload.ki]])
        context.set("d.C", [[-workload.kd / workload.filter_time]])
        context.set("d.D", [[workload.kd / workload.filter_time]])
    return context


def _mass(w: ControlledMass | StiffOscillator, initial: Array | None = None) -> fx.StateSpace:
    A = [[0.0, 1.0], [-w.k / w.m, -w.d / w.m]]
    return fx.StateSpace("mass", A, [[0.0], [1.0 / w.m]], [[1.0, 0.0]], initial=initial)


def _add_pid(builder: fx.DiagramBuilder, w: ControlledMass) -> None:
    rate = 1.0 / w.filter_time
    builder.add_all(
        fx.Sine("reference", w.amplitude, w.frequency),
        fx.Sum("error", "+-"),
        fx.Gain("p", w.kp),
        fx.StateSpace("i", 0.0, 1.0, w.ki),
        fx.StateSpace("d", -rate, rate, -w.kd * rate, w.kd * rate),
        fx.Sum("force", "+++"),
        _mass(w),
    )
    builder.connect("reference.y", "error.u1")
    builder.connect("mass.y", "error.u2")
    for k, law in enumerate("pid", start=1):
        builder.connect_chain("error", law, f"force.u{k}")
    builder.connect_chain("force", "mass")


def _add_chain(builder: fx.DiagramBuilder, w: MassChain) -> None:
    for k in range(w.count):
        builder.add_all(SpringDamper(f"spring{k}", w), PointMass(f"mass{k}", w.m))
    for k in range(w.count):
        builder.connect(f"mass{k}.y", f"spring{k}.far")
        builder.connect(f"spring{k}.f", f"mass{k}.before")
    for k in range(1, w.count):
        builder.connect(f"mass{k - 1}.y", f"spring{k}.near")
        builder.connect(f"spring{k}.f", f"mass{k - 1}.behind")


def _add_pendulum(builder: fx.DiagramBuilder, w: SampledPendulum) -> None:
    builder.add_all(
        Pendulum("pendulum", w),
        fx.MatrixGain("law", [[-w.kp, -w.kd]]),
        fx.ZeroOrderHold("hold", w.period),
        fx.VectorLog("angle", period=w.period),
        fx.VectorLog("torque", period=w.period),
    )
    builder.connect_chain("pendulum.y", "law", "hold", "pendulum")
    builder.connect("pendulum.q", "angle.u")
    builder.connect("hold.y", "torque.u")


# Runs ---------------------------------------------------------------------------------------------


def run_error(workload: Workload, result: fx.results.SimulationResult) -> float:
    """Return the error of a result, at the ends of its steps or in its logs."""
    match workload:
        case SampledPendulum():
            logs: list[Any] = [result.system.get_system(name) for name in ("angle", "torque")]
            angle, torque = (log.find_log(result.context) for log in logs)
            return reference.error(
                workload, angle.times, np.column_stack([angle.data, torque.data])
            )
        case MassChain():
            masses = [f"mass{k}.x" for k in range(workload.count)]
            pairs = np.stack(result.sample_all(masses, result.time), axis=1)
            values = np.concatenate([pairs[..., 0], pairs[..., 1]], axis=1)
        case ControlledMass():
            states = result.sample_all(["i.x", "d.x", "mass.x"], result.time)
            values = np.column_stack(states)
        case BouncingBall():
            values = result["ball.x[0]"][:, None]
        case Mechanism():
            values = result["tree.x"]
        case _:
            values = result["mass.x"]
    return reference.error(workload, result.time, values)


def simulator(workload: Workload) -> Contender:
    """Run with `fx.Simulator` and its fastest method for the workload.

    It is the "native loop" where compiled loops took steps, else the "python loop".
    """
    diagram = build(workload)
    return fastest([_simulated(workload, diagram, method) for method in _methods(workload)])


def _methods(workload: Workload) -> Sequence[str]:
    """Return the methods that are tried; the loop in C has the same ones."""
    if workload.stiff:
        return ["Rodas5P"]
    return ["RK45", "DormandPrince", "DOP853"] if isinstance(workload, Mechanism) else ["RK45"]


def _simulated(workload: Workload, diagram: fx.Diagram, method: str) -> Contender:
    """Run with one method."""
    native: list[bool] = []

    def error(rtol: float) -> float:
        errors = []
        for each in workload.members:
            context = start(each, diagram)
            result = fx.simulate(
                diagram, each.horizon, context=context, method=method, rtol=rtol, atol=rtol
            )
            errors.append(run_error(each, result))
            native.append(result.statistics.native_steps > 0)
        return max(errors)

    def prepared(member: Workload) -> fx.Simulator:
        context = start(member, diagram)
        simulator = fx.Simulator(diagram, context, method=method, rtol=rtol, atol=rtol)
        simulator.initialize()
        return simulator

    def run(member: Workload) -> float:
        simulator = prepared(member)
        return seconds(lambda: simulator.advance_to(member.horizon))

    rtol, best = reached(workload, error)
    members = workload.members
    counted = prepared(members[0])
    counted.advance_to(members[0].horizon)
    return Contender(
        "native loop" if all(native) else "python loop",
        lambda: workload.weight * sum(map(run, members)),
        best,
        f"{method}, rtol and atol {rtol:.1e}",
        f"{len(members)} of the members, one after the other, scaled up"
        if len(members) > 1
        else "",
        counted.statistics.evaluations,
        _right_hand_side(diagram, start(members[0], diagram)) if all(native) else 0.0,
    )


def _right_hand_side(diagram: fx.Diagram, context: fx.Context) -> float:
    """Return the seconds of one evaluation of the native derivatives."""
    # Imported here, as the new process of `cold` does without.
    from benchmarks.versus.native_cost import evaluation_cost

    equations = fx.compiled_equations(diagram, context)
    assert equations.program is not None  # or no loop could run
    count = max(10, 1_000_000 // len(equations.x0))
    return evaluation_cost(equations.program, equations.x0, equations.environment(), count)


def through_solve_ivp(workload: Workload) -> Contender | None:
    """Run with SciPy's `solve_ivp` and the solver class of the compiled equations."""
    if not isinstance(workload, (ControlledMass, MassChain)):
        return None
    from scipy.integrate import solve_ivp  # here, as the new process of `cold` does without

    diagram = build(workload)
    equations = fx.compiled_equations(diagram, start(workload, diagram))
    solver = equations.method("RK45")
    if equations.program is None:
        return None
    span = (0.0, workload.horizon)
    integrate: Any = solve_ivp  # its stub refuses a callable object

    def solve(rtol: float) -> Any:
        options = {"rtol": rtol, "atol": rtol}
        return integrate(equations, span, equations.x0, method=solver, **options)

    def error(rtol: float) -> float:
        solution = solve(rtol)
        states = solution.y.T
        if isinstance(workload, MassChain):  # first all positions, then all velocities
            states = np.hstack([states[:, 0::2], states[:, 1::2]])
        return reference.error(workload, solution.t, states)

    rtol, best = reached(workload, error)
    return Contender(
        "solve_ivp",
        lambda: seconds(lambda: solve(rtol)),
        best,
        f"{solver.__name__}, rtol and atol {rtol:.1e}",
    )


def lanes(workload: Workload) -> Contender | None:
    """Run all members of an ensemble at once, with `fx.sweep`."""
    if not (isinstance(workload, Ensemble) and native_code.available()):
        return None
    diagram = build(workload)

    def swept(members: Sequence[ControlledMass], rtol: float, **sampled: Any) -> fx.results.Sweep:
        kp, ki, kd = np.array([(each.kp, each.ki, each.kd) for each in members]).T
        rate = 1.0 / workload.base.filter_time
        values = {"p.gain": kp, "i.C[0,0]": ki, "d.C[0,0]": -kd * rate, "d.D[0,0]": kd * rate}
        options: dict[str, Any] = {"method": "RK45", "rtol": rtol, "atol": rtol}
        return fx.sweep(diagram, values, workload.horizon, **options, **sampled)

    def error(rtol: float) -> float:
        members = workload.everyone[: workload.sample]
        times = np.linspace(0.0, workload.horizon, 500)
        found = swept(members, rtol, signals=["i.x", "d.x", "mass.x"], times=times)
        states = np.dstack([found["i.x"], found["d.x"], found["mass.x"]])
        pairs = zip(members, states, strict=True)
        return max(reference.error(member, times, values) for member, values in pairs)

    def run() -> float:
        start = time.perf_counter()  # of the wall, since several threads are at work
        swept(workload.everyone, rtol)
        return time.perf_counter() - start

    rtol, best = reached(workload, error)
    remark = f"all members, {os.cpu_count()} processors, wall time"
    return Contender("lanes", run, best, f"RK45, rtol and atol {rtol:.1e}", remark)


def reached(workload: Workload, error: Callable[[float], float]) -> tuple[float, float]:
    """Return the loosest tolerance with which a way meets the target, and the error."""
    found = loosest(error, workload.target)
    if found is None:
        raise RuntimeError(f"{workload.title}: no tolerance reaches {workload.target:g}")
    return found


#: Our ways to run a workload.
WAYS: list[Way] = [simulator, through_solve_ivp, lanes]


# Right-hand sides ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class RightHandSide:
    """Compiled derivatives of one diagram.

    Attributes
    ----------
    blocks : int
        Number of blocks.
    preparation : float
        Seconds from the diagram to the first evaluation.
    cost : float
        Seconds of one evaluation.
    """

    blocks: int
    preparation: float
    cost: float


def straight_line(workload: Workload) -> RightHandSide:
    """Measure straight-line Python, which needs no further package."""
    diagram = build(workload)
    store = start(workload, diagram).store

    def prepare() -> Any:
        return StraightLine(trace_derivatives(store.layout)).bind(store)

    preparation = seconds(prepare)
    derivatives, x = prepare(), workload.initial
    count = max(10, 20_000 // len(x))

    def evaluate() -> None:
        for k in range(count):
            derivatives(1e-6 * k, x)

    cost = min(seconds(evaluate) for _ in range(5)) / count
    return RightHandSide(len(store.leaves), preparation, cost)
