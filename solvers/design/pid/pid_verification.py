"""Steps of a tuned loop: of its linear model, and of the diagram with limits and all the rest."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from flexure.diagrams.checks.arguments import mapping, require
from flexure.diagrams.checks.errors import warn
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.systems.system import System
from flexure.diagrams.values.arrays import FloatArray, as_number, check_bounds
from flexure.solvers.analysis.linear_models.linear_model import LinearModel
from flexure.solvers.analysis.linear_models.linearization import linearize
from flexure.solvers.design.pid.pid_loops import exponential
from flexure.solvers.design.pid.pid_plants import Controlled
from flexure.solvers.results.measures.step_characteristics import StepInfo
from flexure.solvers.results.measures.step_responses import step_info
from flexure.solvers.simulation.simulation import simulate

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
