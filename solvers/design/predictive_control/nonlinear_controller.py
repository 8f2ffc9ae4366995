"""Nonlinear model predictive control as a sampled block."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from flexure.diagrams.checks.arguments import count_of, mapping, require, require_known
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import start_context
from flexure.diagrams.contexts.value_places import WAYS, Way, path_of, several
from flexure.diagrams.systems.system import System, require_system
from flexure.diagrams.values.arrays import FloatArray, bounded
from flexure.solvers.design.predictive_control.sampled_plan import Sample, SampledPlan
from flexure.solvers.design.predictive_control.shooting_problem import ShootingProblem

_FIRST = 30  # steps of Gauss and Newton at the first sample
_SETTLED = 1e-6  # of the inputs: a step that is not worth another


class NonlinearPredictiveController(SampledPlan):
    """Model predictive controller of a smooth continuous diagram, within limits.

    At each sample it improves the plan of the sample before, for the state that is measured now, by
    steps of the Gauss-Newton method for ::

        Σ T w (y[k] - r)² + c w (y[N] - r)² + Σ s (u[k] - u[k-1])²,    k = 0 ... N - 1

    with ``x[k+1] = F(x[k], u[k]) + d``, where F is a period T of the equations with constant
    inputs, and applies the first inputs. With one step per sample these are real-time iterations:
    the plan converges while the plant moves. The disturbance d is measured as by
    `ModelPredictiveController`.

    Parameters
    ----------
    name : str
        Name of the block.
    model : System
        A block or diagram without sampled blocks, events, quaternions and closed loops, whose
        equations are smooth: the model of the plant.
    period : float
        Sampling period T in s.
    horizon : int
        Number N of periods.
    inputs : mapping
        The controlled input ports with their bounds, as for `optimal_motion`.
    cost : mapping
        Weights w of squares of states and ports, in 1/s per unit squared.
    targets : mapping, optional
        Constant values r of signals of ``cost``; 0 when omitted.
    tracked : Handle, str or iterable of them, optional
        Signals of ``cost`` whose r is the input "reference".
    path : mapping, optional
        Bounds of states and ports. They are soft: see ``violation_weight``.
    change_cost, change_limits : mapping, optional
        Weights s, and largest changes from sample to sample, by input ports.
    final_weight : float
        c in s: how long the cost of the end counts.
    violation_weight : float
        Cost of a signal beyond its bounds, for each unit and unit squared.
    context : Context, optional
        A root context of the model with the values of everything else, and with the states and
        inputs of the first guess; a default one when omitted.
    substeps : int
        Number of Runge-Kutta steps in a period.
    steps : int
        Largest number of Gauss-Newton steps at each sample but the first.
    disturbance_gain, delay, deadline, max_iterations, offset
        As for `ModelPredictiveController`.

    Raises
    ------
    MissingExtraError
        When CasADi or PIQP is not installed: the extra ``optimal``.
    EvaluationError
        When the model has events, sampled blocks, quaternions or closed loops, or jumps.
    TraceError
        When its equations cannot be traced.
    UnknownNameError, ValueRefusedError
        When a signal is not found, or a number or bound is not valid.

    See Also
    --------
    ModelPredictiveController : Linear models.
    optimal_motion : Plan a whole motion.
    ExtendedKalmanFilter : Estimate the states.

    Notes
    -----
    Each step linearizes the equations along the plan and solves a quadratic program. Nothing
    guarantees that steps converge from afar: give the context a state near that of the first
    sample. The block is interpreted, beside native code for all others.

    Examples
    --------
    A pendulum that is held at an angle by a weak motor:

    >>> import numpy as np
    >>> import flexure as fx
    >>> def pendulum(name):
    ...     plant = fx.PlantBuilder(name, gravity=(0.0, 0.0, -9.81))
    ...     rod = fx.SpatialInertia.solid_box(1.0, size=(0.02, 0.02, 0.4))
    ...     link = plant.add_body("link", rod, com=(0.0, 0.0, -0.2))
    ...     pin = fx.RevoluteJoint("pin", plant.world, link, axis=(0, 1, 0), damping=0.01)
    ...     plant.add_actuator("motor", plant.add_joint(pin))
    ...     return plant.build()
    >>> controller = fx.NonlinearPredictiveController(
    ...     "mpc",
    ...     pendulum("model"),
    ...     period=0.05,
    ...     horizon=20,
    ...     inputs={"motor": (-3.0, 3.0)},
    ...     cost={"pin.angle": 1.0},
    ...     change_cost={"motor": 1e-3},
    ...     tracked="pin.angle",
    ... )
    >>> builder = fx.DiagramBuilder("loop")
    >>> builder.add_all(
    ...     fx.Constant("target", 1.0), controller, pendulum("arm"), fx.Multiplexer("x", [1, 1])
    ... )
    >>> builder.connect_chain("target", "mpc.reference")
    >>> builder.connect_chain("mpc.u", "arm.motor")
    >>> builder.connect("arm.pin.angle", "x.u1")
    >>> builder.connect("arm.pin.rate", "x.u2")
    >>> builder.connect("x.y", "mpc.state")
    >>> result = fx.simulate(builder.build(), 3.0)
    >>> result["arm.pin.angle"][-1].round(3)
    np.float64(1.0)
    """

    def __init__(
        self,
        name: str,
        model: System,
        *,
        period: float,
        horizon: int,
        inputs: Mapping[Any, Any],
        cost: Mapping[Any, Any],
        targets: Mapping[Any, Any] | None = None,
        tracked: Way | Iterable[Way] = (),
        path: Mapping[Any, Any] | None = None,
        change_cost: Mapping[Any, Any] | None = None,
        change_limits: Mapping[Any, Any] | None = None,
        final_weight: float = 0.0,
        violation_weight: float = 1e3,
        context: Context | None = None,
        substeps: int = 1,
        steps: int = 1,
        disturbance_gain: float = 0.5,
        delay: int = 0,
        deadline: float | None = None,
        max_iterations: int = 100,
        offset: float = 0.0,
    ) -> None:
        attempt = f"Cannot make block '{name}'"
        require_system(model, attempt)
        about = f"{attempt} with this period"
        length = bounded(period, about, lower=0.0, exclusive=True, unit="s")
        N = count_of(horizon, "horizon", attempt, minimum=1)
        inside = count_of(substeps, "substeps", attempt, minimum=1)
        self._steps = count_of(steps, "steps", attempt, minimum=1)
        self._final = bounded(final_weight, f"{attempt} with this final_weight", lower=0.0)
        about = f"{attempt} with this violation_weight"
        self._violation = bounded(violation_weight, about, lower=0.0, exclusive=True)
        start = start_context(model, context, attempt)
        words = {"inputs": inputs, "cost": cost, "targets": targets, "path": path}
        self._shooting = ShootingProblem(start, length, N, inside, words, attempt)
        problem = self._shooting.problem
        self.state_names, self.input_names = tuple(problem.states), tuple(problem.input_names)
        self._tracked = _rows(problem, tracked, attempt)
        sizes = {each.place.path: len(each.keys) for each in problem.inputs}
        self._changes = (
            _by_input(change_cost, sizes, 0.0, f"{attempt} with this change_cost"),
            _by_input(change_limits, sizes, np.inf, f"{attempt} with these change_limits"),
        )
        u = np.clip(problem.held_inputs(), *self._shooting.input_bounds)
        x = np.array(start.store.x)
        states = [x]
        for k in range(N):
            states.append(self._shooting.move(start.time + k * length, states[-1], u))
        super().__init__(
            name,
            x,
            u,
            np.concatenate([np.tile(u, N), *states]),
            len(self._tracked),
            period=length,
            offset=offset,
            disturbance_gain=disturbance_gain,
            delay=delay,
            deadline=deadline,
            max_iterations=max_iterations,
        )

    def predicted(self, time: float, x: FloatArray, u: FloatArray) -> FloatArray:
        """Return F(x, u)."""
        return self._shooting.move(time, x, u)

    def planned(self, sample: Sample, former: FloatArray) -> tuple[FloatArray, float, int] | None:
        """Improve the plan of the sample before."""
        inputs, states = self._parts(former)
        targets = self._shooting.targets.copy()
        targets[self._tracked] = sample.reference
        violation, total = 0.0, 0
        for _ in range(self._steps if sample.number else max(self._steps, _FIRST)):
            found = self._shooting.improve(
                sample.time,
                (inputs, states),
                sample.u,
                sample.x,
                sample.disturbance,
                targets,
                final_weight=self._final,
                changes=self._changes,
                violation_weight=self._violation,
                max_iterations=self._most,
            )
            if found is None:
                return None
            change = float(np.max(np.abs(found[0] - inputs)))
            inputs, states, violation, iterations = found
            total += iterations
            if change <= _SETTLED * float(np.max(np.abs(inputs))):
                break
        return np.concatenate([inputs.ravel(), states.ravel()]), violation, total

    def shifted(self, time: float, plan: FloatArray) -> FloatArray:
        """Return the plan from the next sample on; the last inputs stay."""
        inputs, states = self._parts(plan)
        end = time + (len(inputs) - 1) * self.period
        last = self._shooting.move(end, states[-1], inputs[-1])
        inputs = np.vstack([inputs[1:], inputs[-1:]])
        return np.concatenate([inputs.ravel(), states[1:].ravel(), last])

    def _parts(self, plan: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return inputs and states."""
        N, m = self._shooting.horizon, len(self.input_names)
        return plan[: N * m].reshape(N, m), plan[N * m :].reshape(N + 1, -1)


def _rows(problem: Any, tracked: Way | Iterable[Way], attempt: str) -> list[int]:
    """Return where the components of signals are among those of the cost."""
    places: dict[str, list[int]] = {}
    count = 0
    for each in problem.squares:
        places[each.path] = [*range(count, count + len(each.rows))]
        count += len(each.rows)
    found: list[int] = []
    for way in several(tracked):
        path = path_of(way)
        require_known(path, places, attempt, "tracked signals that have a cost")
        found += places[path]
    require(len(set(found)) == len(found), tracked, attempt, "tracked signals once each")
    return found


def _by_input(
    given: Mapping[Any, Any] | None, sizes: Mapping[str, int], other: float, attempt: str
) -> FloatArray:
    """Return a number for each component of the inputs."""
    values = {path: np.full(size, other) for path, size in sizes.items()}
    for way, value in mapping(
        {} if given is None else given, "numbers by inputs", attempt, keys=WAYS
    ).items():
        path = path_of(way)
        require_known(path, values, attempt, "controlled inputs")
        values[path][:] = bounded(value, f"{attempt} of '{path}'", lower=0.0, allow_infinite=True)
    return np.concatenate([*values.values()])
