"""The plant of a PID controller, and steps of the tuned loop: of linear model and of diagram."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from flexure.blocks.controllers.controllers import PIDController
from flexure.diagrams.checks.arguments import is_whole, mapping, require, shown
from flexure.diagrams.checks.errors import ValueRefusedError, warn
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.value_places import Place
from flexure.diagrams.systems.system import System
from flexure.diagrams.values.arrays import FloatArray, as_number, check_bounds
from flexure.solvers.analysis.linear_models.linear_model import LinearModel
from flexure.solvers.analysis.linear_models.linearization import linearize
from flexure.solvers.analysis.linear_models.poles import fate, least_stable_first
from flexure.solvers.analysis.linear_models.realizations import reduction
from flexure.solvers.design.pid.pid_loops import exponential
from flexure.solvers.design.state_space.weights import without_states
from flexure.solvers.results.measures.step_characteristics import StepInfo
from flexure.solvers.results.measures.step_responses import step_info
from flexure.solvers.simulation.simulation import simulate

_HIDDEN = 1e-12  # beside the norm of the scaled matrices: what is not seen


@dataclass(frozen=True)
class Controlled:
    """One component of a PID controller in a diagram."""

    block: PIDController  # the controller
    component: int  # which one of its components

    @classmethod
    def find(cls, system: System, controller: object, component: Any, attempt: str) -> Controlled:
        """Return the component of a controller, which is given by itself or by its path."""
        block: Any = system.get_system(controller) if isinstance(controller, str) else controller
        if not isinstance(block, PIDController):
            expected = "a PIDController, or its path"
            raise ValueRefusedError(attempt, expected=expected, found=shown(controller))
        if block.gain_ports:
            raise ValueRefusedError(
                attempt,
                expected=f"gains of '{block.path}' that are parameters",
                found="gain ports",
                remedy="Tune a controller without gain_ports where the schedule has its "
                "breakpoints, and pass the gains found to the schedule",
            )
        if component is None:
            wanted = "a PIDController with one component"
            remedy = f"Say which one of its {block.size} components, as in component=0"
            require(block.size == 1, controller, attempt, wanted, remedy=remedy)
            return cls(block, 0)
        fits = is_whole(component) and 0 <= component < block.size
        require(fits, component, attempt, f"the number of a component, from 0 to {block.size - 1}")
        gains = [gain for gain in (block.kp, block.ki, block.kd) if gain is not None]
        gains += [block.derivative_filter] if block.has_filter else []
        for gain in gains if block.size > 1 else []:
            wanted = f"{gain.name} with a number for each component"
            remedy = f"Make the controller with {gain.name}=[...], {block.size} numbers"
            require(gain.default.ndim, gain, attempt, wanted, remedy=remedy)
        return cls(block, int(component))

    @property
    def period(self) -> float | None:
        """The period of a sampled controller."""
        return self.block.period

    def way(self, handle: Any) -> Any:
        """Return what leads to the component of a port or parameter."""
        return handle if self.block.size == 1 else Place.of(handle).names[self.component]

    def value(self, context: Context, parameter: Any) -> float:
        """Return the value of a parameter in a context; 0 where the controller has none."""
        if parameter is None:
            return 0.0
        return float(np.broadcast_to(parameter.get(context), self.block.size)[self.component])

    def set(self, context: Context, handle: Any, value: float) -> None:
        """Set a parameter or the value of the integral in a context."""
        values = np.array(handle.get(context))
        values.reshape(-1)[self.component if values.ndim else 0] = value
        handle.set(context, values)

    def plant(self, system: System, start: Context) -> LinearModel:
        """Return the linear plant, from the output of the controller to what it measures."""
        block = self.block
        if block.period is not None:
            return self._sampled_plant(system, start, block.period)
        seen = [block.measurement, *(_rate_inputs(block)[1:])]
        opening = self.way(block.u)
        model = linearize(
            system, start, [opening], [self.way(port) for port in seen], openings=[opening]
        )
        names = Place.of(block.x).names
        return _without(model, names[self.component :: block.size], block)

    def _sampled_plant(self, system: System, start: Context, period: float) -> LinearModel:
        """Return the plant from what the controller computes to what it measures at an instant."""
        # With all gains zero, what comes in as feedforward is what it computes. What it measures is
        # what its integral gets, just before the updates of that instant. The output that it holds
        # remains a state: other sampled blocks may see the one from before.
        block, free = self.block, start.clone()
        for gain in (block.kp, block.ki, block.kd):
            if gain is not None:
                self.set(free, gain, 0.0)
        self.set(free, block.lower, -np.inf)
        self.set(free, block.upper, np.inf)
        entry = self.way(block.feedforward)
        model = linearize(system, free, [entry], [], period=period)
        integral = model.state_names.index(Place.of(block.integral).names[self.component])
        seen = model.A[integral].copy()
        seen[integral] -= 1.0
        rows = [-seen / period]
        if _rate_inputs(block):
            held = model.state_names.index(Place.of(block.held).names[self.component])
            assert block.kd is not None
            self.set(free, block.kd, 1.0)
            rows.append(-linearize(system, free, [entry], [], period=period).A[held])
        ports = [block.measurement, *(_rate_inputs(block)[1:])]
        model = replace(
            model,
            C=np.array(rows),
            D=np.zeros((len(rows), 1)),
            y0=np.array([port.eval(start)[self.component] for port in ports]),
            output_names=[Place.of(port).names[self.component] for port in ports],
        )
        own: list[Any] = [block.integral]
        if block.has_filter:
            own += [block.previous, block.rate]
        return _without(model, [Place.of(state).names[self.component] for state in own], block)


def _rate_inputs(block: PIDController) -> list[Any]:
    """Return the inputs for the rates of setpoint and measurement, where they come from outside."""
    if block.kd is None or block.has_filter:
        return []
    return [block.setpoint_rate, block.measurement_rate]


def seen(model: LinearModel, attempt: str) -> LinearModel:
    """Return a plant that shows all its states that do not decay, without those that stay put.

    The integral of an outer loop is such a state for the controller of the inner one.
    """
    if not (np.any(model.D[:1]) or len(model.minimal(_HIDDEN).A)):
        raise ValueRefusedError(
            attempt,
            expected="a plant of which the controller moves what it measures",
            found="; ".join(["no small change that comes back", *model.notes]),
            remedy="Tune where the path is open, or pass linearize_as='gain' to the block that is "
            "in the way",
        )
    hidden = reduction(model.A, model.B, model.C[:1], _HIDDEN).hidden_poles
    rest = fate(hidden, model.poles, model.period)
    worst, remedy = (
        least_stable_first(hidden, model.period)[:1],
        "Stabilize the rest of the diagram first",
    )
    wanted = "a plant whose growing modes the controller moves and measures"
    require(rest != "grow", worst, attempt, wanted, remedy=remedy)
    return model if rest == "decay" else model.minimal(_HIDDEN)


def _without(model: LinearModel, names: list[str], block: PIDController) -> LinearModel:
    """Leave out states and limits of a controller, and the directions that nothing moves."""
    notes = tuple(note for note in model.notes if not note.startswith(f"'{block.label}' "))
    return replace(without_states(model, names.__contains__), notes=notes)


_INSTANTS = 1000
_SETTLED = 10.0  # times of the slowest pole, after which `step_info` sees a response at rest
_LONGEST = 1e4  # records, in times of the slowest pole: longer ones show nothing of it
_MOST_SAMPLES = 100_000
_RATIO = 2.0  # of times, above which linear metrics mislead
_PERCENT = 25.0  # of overshoot, likewise
_AT_LIMIT = 1e-9  # distance from a limit, as a part of it


def verified(
    controlled: Controlled,
    system: System,
    start: Context,
    slowest: float,
    step_to: Mapping[str, float],
    t_final: float | None,
    attempt: str,
) -> tuple[StepInfo, StepInfo, float]:
    """Return the metrics of a step of the linear model, and of the diagram, whose context changes.

    ``slowest`` is the decay rate of the slowest pole of the loop in rad/s, ``step_to`` the new
    value by the path of the step, and ``t_final`` the length of the record in s. The last number is
    the share of the time, from 0 to 1, that the simulated output is at a limit.
    """
    given = mapping(step_to, "the path of a step, and its new value", attempt)
    require(len(given) == 1, step_to, attempt, "one step, as a path and its new value")
    ((entry, to),) = given.items()
    to = float(as_number(to, (), f"{attempt} with this step_to"))
    settled = float(_SETTLED / slowest)
    length = float(as_number(settled if t_final is None else t_final, (), f"{attempt}: t_final"))
    check_bounds(length, f"{attempt}: t_final", lower=0.0, exclusive=True, unit="s")
    check_bounds(length, f"{attempt}: t_final", upper=_LONGEST * settled, unit="s")
    block, period = controlled.block, controlled.period
    outputs = [controlled.way(block.measurement), controlled.way(block.u)]
    model = linearize(system, start, [entry], outputs, period=period)
    require(model.B.shape[1] == 1, step_to, attempt, "a step of one component")
    if period is None:
        times: FloatArray = np.linspace(0.0, length, _INSTANTS)
    else:
        count = np.ceil(length / period)
        check_bounds(count, f"{attempt}: samples in t_final", upper=_MOST_SAMPLES)
        times = period * np.arange(int(count) + 1, dtype=np.float64)
    predicted = _predicted(model, to, times)
    before = float(block.u.eval(start)[controlled.component])
    start.set(entry, to)
    result = simulate(system, start.time + float(times[-1]), context=start)
    values = np.column_stack(
        [np.ravel(result.sample(output, start.time + times)) for output in outputs]
    )
    linear, simulated = (
        _figures(times, each, float(model.y0[0]), before) for each in (predicted, values)
    )
    limits = (controlled.value(start, each) for each in (block.lower, block.upper))
    share = _at_limits(values[:, 1], *limits)
    _warn_where_they_differ(linear, simulated, share)
    return linear, simulated, share


def _predicted(model: LinearModel, to: float, times: FloatArray) -> FloatArray:
    """Return the outputs of a linear model after a step of its input, one row for each time."""
    n, change = len(model.A), to - float(model.u0[0])
    # With what is constant as one more state, each instant follows from the one before.
    flow = np.zeros((n + 1, n + 1))
    flow[:n, :n], flow[:n, n] = model.A, model.B[:, 0] * change + model.xdot0
    if model.period is None:
        stride = exponential(flow * times[1])
    else:
        stride = flow
        stride[n, n] = 1.0
    state = np.append(np.zeros(n), 1.0)
    shown = np.column_stack([model.C, model.D[:, 0] * change])
    predicted = np.empty((len(times), len(shown)))
    for k in range(len(times)):
        predicted[k] = model.y0 + shown @ state
        state = stride @ state
    return predicted


def _figures(times: FloatArray, outputs: FloatArray, initial: float, before: float) -> StepInfo:
    """Return the metrics of a step, given measurement and output, and both from before it."""
    first = outputs[0, 0], before
    outputs = np.vstack([first, outputs])
    times = np.append(times[0], times)  # twice, which is where the output jumps
    return step_info(times, outputs[:, 0], initial=initial, control=outputs[:, 1])


def _at_limits(output: FloatArray, lower: float, upper: float) -> float:
    """Return the share of even times that the output of a controller is at a limit."""
    low, high = (_AT_LIMIT * abs(x) if np.isfinite(x) else 0.0 for x in (lower, upper))
    return float(np.mean((output <= lower + low) | (output >= upper - high)))


def _warn_where_they_differ(linear: StepInfo, simulated: StepInfo, share: float) -> None:
    """Warn when the linear metrics say little about the diagram."""
    for name in ("rise_time", "settling_time"):
        first, second = getattr(linear, name), getattr(simulated, name)
        if np.isfinite(first) and np.isfinite(second):
            differ = max(first, second) > _RATIO * min(first, second)
            text = (
                f"a {name.replace('_', ' ')} of {second:.3g} s, the linear loop with {first:.3g} s"
            )
            if differ:
                break
    else:
        differ = abs(linear.overshoot - simulated.overshoot) > _PERCENT
        first, second = linear.overshoot, simulated.overshoot
        text = f"an overshoot of {second:.3g} %, the linear loop with {first:.3g} %"
    if differ:
        why = f"; the output is at a limit for {share:.0%} of the time" if share else ""
        warn(
            f"The diagram answers this step with {text}{why}. Gains, "
            "sensitivity and poles hold for small motions only"
        )
