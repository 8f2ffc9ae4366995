"""Gains of PID controllers: the strongest integral action that keeps the loop robust."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from flexure.blocks.controllers import PIDController
from flexure.diagrams.arguments import mapping, require, shown
from flexure.diagrams.context import Context
from flexure.diagrams.errors import ValueRefusedError
from flexure.diagrams.handles import start_context
from flexure.diagrams.places import Place
from flexure.diagrams.system import System, require_system
from flexure.diagrams.values import as_number, check_bounds
from flexure.solvers.analysis.linear_model import LinearModel
from flexure.solvers.analysis.linearization import linearize
from flexure.solvers.design.models import Poles, ordered
from flexure.solvers.design.pid_loops import Gains, PIDLoop, bisect
from flexure.solvers.results.step_characteristics import StepInfo
from flexure.solvers.results.step_responses import step_info
from flexure.solvers.simulation.simulation import simulate

_MOST = 0.25  # derivative time by integral time: from here on, the zeros are complex
_PARTS = (0.02, 0.1, _MOST)
_INSTANTS = 1000
_LONGEST = 1e4  # records, in times of the slowest pole: longer ones show nothing of it


@dataclass(frozen=True, eq=False, repr=False)
class PIDTuning:
    """Gains of a PID controller, and what the linear loop does with them.

    Attributes
    ----------
    controller : PIDController
        Whose gains they are.
    kp, ki, kd : float
        The gains; kd is 0 for a controller without a derivative part.
    derivative_filter : float or None
        Time constant of the lag in the derivative, in s; None without one.
    max_sensitivity : float
        Peak of the sensitivity, the inverse of the smallest distance of the loop gain from -1.
    peak_frequency : float
        Where that is, in rad/s.
    poles : ndarray of complex
        Of the closed loop, the least stable ones first.
    plant : LinearModel
        From the output of the controller to its measurement.
    linear, simulated : StepInfo or None
        How the measurement answers a step: by the linear loop, and by the diagram itself, with
        limits and everything that is not linear. None without ``step``.
    """

    controller: PIDController
    kp: float
    ki: float
    kd: float
    derivative_filter: float | None
    max_sensitivity: float
    peak_frequency: float
    poles: Poles
    plant: LinearModel
    linear: StepInfo | None = None
    simulated: StepInfo | None = None

    def apply(self, context: Context) -> None:
        """Set the gains in a context, where the controller goes on with the output it has.

        Its integral is scaled by the old and new gain, so that their product stays.

        Parameters
        ----------
        context : Context
            Of the diagram that the controller is in.

        Raises
        ------
        ContextError
            When the context belongs to another system.
        """
        pid = self.controller
        held = pid.ki.get(context) * pid.integral.eval(context)
        state = pid.x.get(context).copy()
        state[:1] = held / self.ki
        pid.kp.set(context, self.kp)
        pid.ki.set(context, self.ki)
        if pid.kd is not None and self.derivative_filter is not None:
            pid.kd.set(context, self.kd)
            pid.derivative_filter.set(context, self.derivative_filter)
        pid.x.set(context, state)

    def __repr__(self) -> str:
        gains = f"kp={self.kp:.4g}, ki={self.ki:.4g}"
        if self.derivative_filter is not None:
            gains += f", kd={self.kd:.4g}, derivative_filter={self.derivative_filter:.4g}"
        return f"<PIDTuning: {gains}, peak of the sensitivity {self.max_sensitivity:.3g}>"


def tune_pid(
    system: System,
    controller: PIDController | str,
    context: Context | None = None,
    *,
    max_sensitivity: float = 1.6,
    filter_ratio: float = 10.0,
    step: Mapping[str, float] | None = None,
    t_final: float | None = None,
) -> PIDTuning:
    """Find the gains of a PID controller that reject loads best within a bound for robustness.

    The loop is opened at the output of the controller, and what is there is linearized. Sought is
    the largest integral gain, so the smallest integral of the error after a step of a load, for
    which the loop is stable and its sensitivity nowhere exceeds the bound.

    Parameters
    ----------
    system : System
        A diagram.
    controller : PIDController or str
        Its controller, with one component and without rate inputs, by path. One that was made
        without ``kd`` becomes a PI controller.
    context : Context, optional
        Where the loop is linearized, a root context; it is not changed. A default context when
        omitted. Limits of the controller are not looked at.
    max_sensitivity : float
        Bound of the peak of the sensitivity, more than 1: 1.4 is cautious, 2 is fast. The loop
        keeps a gain margin of at least Ms / (Ms - 1), and a phase margin of 2 asin(1 / (2 Ms)).
    filter_ratio : float
        Derivative time kd/kp by the time constant of the derivative's filter.

    step : mapping from str to float, optional
        Where a step comes in, such as ``{"target.value": 2.0}``: the path of a parameter, or of a
        free input, with one component, and its new value. The diagram is then simulated with the
        new gains, from the context on, which is best at an equilibrium.
    t_final : float, optional
        Length of that in s; long enough for the slowest pole when omitted.

    Returns
    -------
    PIDTuning

    Raises
    ------
    ValueRefusedError
        When no gains within the bound stabilize the loop, or when nothing in the model limits them.
    UnknownNameError
        When there is no such block.
    EvaluationError
        As for `linearize`.

    Notes
    -----
    The derivative time is at most a quarter of the integral time. Beyond that, the integral gain
    still grows, but the response to a load oscillates.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.DiagramBuilder("loop")
    >>> builder.add_all(
    ...     fx.Constant("target", 1.0),
    ...     fx.PIDController("pid"),
    ...     fx.FirstOrderLag("plant", time_constant=2.0),
    ...     fx.PadeDelay("delay", 0.5),
    ... )
    >>> builder.connect_chain("target", "pid.setpoint")
    >>> builder.connect_chain("pid", "plant", "delay", "pid.measurement")
    >>> loop = builder.build()
    >>> tuning = fx.tune_pid(loop, "pid", max_sensitivity=1.6)
    >>> round(tuning.max_sensitivity, 3)
    1.6
    >>> context = loop.create_default_context()
    >>> tuning.apply(context)
    """
    require_system(system, "Cannot tune a controller")
    attempt = f"Cannot tune a controller of '{system.label}'"
    start = start_context(system, context, attempt)
    block: Any = system.get_system(controller) if isinstance(controller, str) else controller
    fits = isinstance(block, PIDController) and block.size == 1
    if not fits or (block.kd is not None and not block.has_filter):
        expected = "a PIDController with one component and without rate inputs, or its path"
        raise ValueRefusedError(attempt, expected=expected, found=shown(controller))
    bound, ratio = (
        float(as_number(value, (), f"{attempt} with this {name}"))
        for name, value in (("max_sensitivity", max_sensitivity), ("filter_ratio", filter_ratio))
    )
    check_bounds(bound, f"{attempt} with this max_sensitivity", lower=1.0, exclusive=True)
    check_bounds(ratio, f"{attempt} with this filter_ratio", lower=0.0, exclusive=True)
    require(np.isfinite(bound) and np.isfinite(ratio), (bound, ratio), attempt, "finite numbers")
    plant = _without_controller(
        linearize(system, start, [block.u], [block.measurement], openings=[block.u]), block
    )
    loop = PIDLoop(plant)
    gains = _search(loop, bound, 0.0 if block.kd is None else _MOST, ratio, attempt)
    peak, place = loop.peak(gains)
    if peak > bound:  # between the frequencies that were looked at
        gains = _weakened(loop, gains, bound)
        peak, place = loop.peak(gains)
    require(
        peak <= bound * (1.0 + 1e-6) and loop.is_stable(gains),
        peak,
        attempt,
        f"a peak of the sensitivity of {bound:g}",
        remedy="The plant has sharp resonances; allow a larger max_sensitivity",
    )
    tuning = PIDTuning(
        block,
        gains.kp,
        gains.ki,
        gains.kd,
        None if block.kd is None else gains.lag,
        peak,
        place,
        ordered(loop.poles(gains), None),
        plant,
    )
    return tuning if step is None else _checked(tuning, system, start, step, t_final, attempt)


def _weakened(loop: PIDLoop, gains: Gains, bound: float) -> Gains:
    """Return the gains times the largest factor below one that keeps the bound, if there is one."""

    def keeps(factor: float) -> bool:
        return loop.peak(gains.times(factor))[0] <= bound

    factors = 1.0 - np.geomspace(1e-4, 0.99, 12)
    for above, factor in pairwise([1.0, *factors.tolist()]):
        if keeps(factor):
            return gains.times(bisect(keeps, factor, above))
    return gains


def _checked(
    tuning: PIDTuning,
    system: System,
    start: Context,
    step: Mapping[str, float],
    t_final: float | None,
    attempt: str,
) -> PIDTuning:
    """Return a tuning with the figures of a step; the context is changed."""
    from scipy.linalg import expm

    given = mapping(step, "the path of a step, and its new value", attempt)
    require(len(given) == 1, step, attempt, "one step, as a path and its new value")
    ((entry, to),) = given.items()
    to = float(as_number(to, (), f"{attempt} with this step"))
    settled = float(8.0 / -tuning.poles[0].real)
    length = float(as_number(settled if t_final is None else t_final, (), f"{attempt}: t_final"))
    check_bounds(length, f"{attempt}: t_final", lower=0.0, exclusive=True, unit="s")
    check_bounds(length, f"{attempt}: t_final", upper=_LONGEST * settled, unit="s")
    tuning.apply(start)
    model = linearize(system, start, [entry], [tuning.controller.measurement])
    n, y0 = len(model.A), float(model.y0[0])
    require(model.B.shape[1] == 1, step, attempt, "a step of one component")
    # With what is constant as one more state, each instant follows from the one before.
    flow = np.zeros((n + 1, n + 1))
    flow[:n, :n], flow[:n, n] = model.A, model.B[:, 0] * (to - model.u0[0]) + model.xdot0
    times = np.linspace(0.0, length, _INSTANTS)
    stride, state = expm(flow * times[1]), np.append(np.zeros(n), 1.0)
    shown = np.append(model.C[0], model.D[0, 0] * (to - model.u0[0]))
    predicted = np.empty(_INSTANTS)
    for k in range(_INSTANTS):
        predicted[k] = y0 + shown @ state
        state = stride @ state
    start.set(entry, to)
    result = simulate(system, start.time + length, start)
    values = result.sample(tuning.controller.measurement, start.time + times)
    linear, simulated = (
        step_info(times, np.ravel(each), initial=y0) for each in (predicted, values)
    )
    return replace(tuning, linear=linear, simulated=simulated)


def _without_controller(model: LinearModel, block: PIDController) -> LinearModel:
    """Leave out the states of a controller whose output is cut off."""
    own = Place.of(block.x).names
    kept = [k for k, name in enumerate(model.state_names) if name not in own]
    return replace(
        model,
        A=model.A[np.ix_(kept, kept)],
        B=model.B[kept],
        C=model.C[:, kept],
        x0=model.x0[kept],
        xdot0=model.xdot0[kept],
        state_names=[model.state_names[k] for k in kept],
    )


def _search(loop: PIDLoop, bound: float, most: float, ratio: float, attempt: str) -> Gains:
    """Return the gains with the largest integral gain, from several starts."""
    from scipy.optimize import minimize

    def shape(time: float, part: float, sign: float) -> Gains:
        derivative = part * time
        return Gains(sign, sign / time, sign * derivative, derivative / ratio or time)

    def strength(time: float, part: float, sign: float) -> float:
        return loop.strongest(shape(time, part, sign), bound) / time

    times = 1.0 / np.geomspace(loop.omega[0] * 3.0, loop.omega[-1] / 3.0, 25)
    parts = [part for part in _PARTS if part <= most] or [0.0]
    found = sorted(
        (strength(time, part, sign), time, part, sign)
        for time in times
        for part in parts
        for sign in (1.0, -1.0)
    )
    if found[-1][0] == 0.0:
        raise ValueRefusedError(
            attempt,
            expected=f"a plant that gains stabilize with a peak of the sensitivity of {bound:g}",
            found=f"none for the poles {loop.plant.poles[:4]}",
            remedy="Allow a larger max_sensitivity, or add a derivative part",
        )
    best = Gains(0.0, 0.0, 0.0, 1.0)
    for _, time, part, sign in found[-3:]:

        def loss(place: Any, sign: float = sign) -> float:
            value = strength(np.exp(place[0]), float(np.clip(place[1], 0.0, most)), sign)
            return -float(np.log(max(value, 1e-300)))

        place = np.array([np.log(time), part])
        if np.isfinite(found[-1][0]):
            place = minimize(loss, place, method="Nelder-Mead", options={"maxiter": 60}).x
        form = shape(float(np.exp(place[0])), float(np.clip(place[1], 0.0, most)), sign)
        factor = loop.strongest(form, bound)
        if not np.isfinite(factor) or loop.crosses_late(form.times(factor)):
            raise ValueRefusedError(
                attempt,
                expected="a plant with something that limits the gains",
                found=f"a bound that any gains keep, for the poles {loop.plant.poles[:4]}",
                remedy="Add what is fast, such as the lag of a sensor or a PadeDelay",
            )
        if abs(factor * form.ki) > abs(best.ki):
            best = form.times(factor)
    return best


__all__ = ["PIDTuning", "tune_pid"]
