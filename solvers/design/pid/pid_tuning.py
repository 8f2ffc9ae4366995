"""Gains of PID controllers: by a goal, within a bound for robustness, or by a known rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from flexure.blocks.controllers.controllers import PIDController
from flexure.diagrams.checks.arguments import one_of, require
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import start_context
from flexure.diagrams.interface.html import Shown, fold, heading, lines
from flexure.diagrams.interface.option_names import answers_other_words
from flexure.diagrams.systems.system import System, require_system
from flexure.diagrams.values.arrays import bounded
from flexure.diagrams.values.tables import Table
from flexure.solvers.analysis.linear_models.linear_inputs import wire_place
from flexure.solvers.analysis.linear_models.linear_model import LinearModel
from flexure.solvers.analysis.linear_models.linear_model_tables import poles
from flexure.solvers.analysis.linear_models.loop_transfers import approximated_delays, around_wires
from flexure.solvers.design.pid.pid_loops import PIDLoop
from flexure.solvers.design.pid.pid_rules import RULES, rule_gains
from flexure.solvers.design.pid.pid_search import Search, weakened
from flexure.solvers.design.pid.pid_verification import Controlled, seen, verified
from flexure.solvers.design.state_space.weights import Poles, ordered
from flexure.solvers.results.measures.step_characteristics import StepInfo

#: What gains are to be good at.
Goal: TypeAlias = Literal["disturbance", "setpoint"]
#: Rules for the gains of simple processes.
Rule: TypeAlias = Literal["simc", "amigo", "lambda"]
#: What a controller is to consist of.
Parts: TypeAlias = Literal["P", "PI", "PD", "PID"]
_MOST_SENSITIVE = 1.6  # when nothing is said


@dataclass(frozen=True, eq=False, repr=False)
class PIDTuning(Shown):
    """Gains of a PID controller, and measures of the linear loop with them.

    Attributes
    ----------
    controller : PIDController
        Whose gains they are.
    kp, ki, kd : float
        The gains; 0 for parts that there are not.
    derivative_filter : float or None
        Time constant of the lag in the derivative, in s; None without one.
    max_sensitivity : float
        Peak of the sensitivity, the inverse of the smallest distance of the loop gain from -1.
    peak_frequency : float
        Where that is, in rad/s.
    poles : ndarray of complex
        Of the closed loop, the least stable ones first; in z for a sampled controller.
    plant : LinearModel
        From the output of the controller to what it measures, and to its rate where that is an
        input of the controller; sampled for a sampled controller. Its ``notes`` name blocks that
        are linearized as gains, and delays whose approximation is wrong at the peak.
    linear, simulated : StepInfo or None
        How the measurement answers a step: by the linear loop, and by the diagram itself, with
        limits and everything that is not linear. ``control_peak`` and ``control_variation`` are
        those of the output of the controller. None without ``step_to``.
    at_limits : float or None
        Share of the time, from 0 to 1, that the controller is at a limit in the simulated step.
        None without ``step_to``.
    component : int
        Which component of the controller.

    See Also
    --------
    tune_pid : Tune a controller.

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
    >>> fx.tune_pid(builder.build(), "pid", rule="simc")
    <PIDTuning: kp=2, ki=1, peak of the sensitivity 1.59>
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
    at_limits: float | None = None
    component: int = 0

    def apply(self, context: Context) -> None:
        """Set the gains in a context; with an integral, the output does not jump.

        Its integral is scaled by the old and new gain, so that their product stays. Without a new
        integral gain, there is nothing that could hold it.

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
        place = Controlled(pid, self.component)
        state: Any = pid.x if pid.period is None else pid.integral
        held = place.value(context, pid.ki) * float(state.get(context)[self.component])
        place.set(context, pid.kp, self.kp)
        place.set(context, pid.ki, self.ki)
        if pid.kd is not None:
            place.set(context, pid.kd, self.kd)
        if self.derivative_filter is not None:
            place.set(context, pid.derivative_filter, self.derivative_filter)
        if self.ki:
            place.set(context, state, held / self.ki)

    def _pieces(self) -> Iterator[str]:
        yield heading("PIDTuning", self.controller.label)
        names = ("kp", "ki", "kd", "derivative_filter", "max_sensitivity", "at_limits")
        there = ((name, getattr(self, name)) for name in names if getattr(self, name) is not None)
        yield Table(("", "value"), there).to_html()
        yield fold("Poles", poles(self.poles, self.plant.period), len(self.poles))
        for title, info in (("linear loop", self.linear), ("simulated", self.simulated)):
            if info is not None:
                yield fold(f"Step: {title}", lines(str(info)), opened=True)

    def __repr__(self) -> str:
        gains = f"kp={self.kp:.4g}, ki={self.ki:.4g}"
        if self.controller.kd is not None:
            gains += f", kd={self.kd:.4g}"
        if self.derivative_filter is not None:
            gains += f", derivative_filter={self.derivative_filter:.4g}"
        rests = "".join(f"; {note}" for note in self.plant.notes)
        return f"<PIDTuning: {gains}, peak of the sensitivity {self.max_sensitivity:.3g}{rests}>"


@answers_other_words
def tune_pid(
    system: System,
    controller: PIDController | str,
    *,
    context: Context | None = None,
    goal: Goal | None = None,
    rule: Rule | None = None,
    max_sensitivity: float | None = None,
    max_overshoot: float = 5.0,
    closed_loop_time: float | None = None,
    parts: Parts | None = None,
    component: int | None = None,
    filter_ratio: float = 10.0,
    step_to: Mapping[str, float] | None = None,
    t_final: float | None = None,
) -> PIDTuning:
    """Tune a PID controller for a goal, within a bound on robustness.

    The loop is opened at the output of the controller, and linearized from there to the
    measurement; the path through the setpoint, if this controller is inside another loop, is not
    part of it. The gains are chosen such that the loop is stable, its sensitivity nowhere exceeds
    the bound, and

    - with the goal ``"disturbance"``, the integral gain is largest, so that the integral of the
      error after a step of a load, 1/ki, is smallest. Without an integral, the proportional gain
      is largest.
    - with the goal ``"setpoint"``, the integral of the absolute error after a step of the setpoint
      is smallest, ``IAE = ∫ |r - y| dt``, and the measurement y overshoots by no more than
      ``max_overshoot``. The weights of the setpoint are those that the controller has.

    Rules give gains in closed form instead, or are a start for the search when a goal is given too.

    Parameters
    ----------
    system : System
        A diagram.
    controller : PIDController or str
        The controller, by handle or path. A controller without ``kd`` is tuned as a PI controller.
    context : Context, optional
        Operating point of the linearization, a root context; it is not changed. A default context
        when omitted. Limits of the controller are ignored.
    goal : {"disturbance", "setpoint"}, optional
        The goal of the search; "disturbance" when neither goal nor rule is given.
    rule : {"simc", "amigo", "lambda"}, optional
        Alone, the gains of the rule, see the notes; for PI and PID controllers in continuous time.
    max_sensitivity : float, optional
        Bound of the peak of the sensitivity, more than 1: 1.4 is cautious, 2 is fast; 1.6 when
        omitted. The loop keeps a gain margin of at least Ms / (Ms - 1), and a phase margin of 2
        asin(1 / (2 Ms)). The gains of a rule alone are refused beyond a bound that is given.
    max_overshoot : float
        Largest overshoot in percent, for the goal "setpoint".
    closed_loop_time : float, optional
        Desired time constant of the closed loop in s, for a rule: when omitted, the dead time for
        "simc", the lag of the plant for "lambda"; three times that is more robust. Refused without
        one of these rules.
    parts : {"P", "PI", "PD", "PID"}, optional
        Terms of the controller; all that it has when omitted. The other gains become 0.
    component : int, optional
        Component of a controller with several; the others keep their gains.
    filter_ratio : float
        Derivative time kd/kp by the time constant of the derivative's filter.

    step_to : mapping from str to float, optional
        Step for a simulation, such as ``{"target.value": 2.0}``: the path of a parameter, or of a
        free input, with one component, and its new value. The diagram is then simulated with the
        new gains, from the context on, which is best at an equilibrium.
    t_final : float, optional
        Duration of that simulation in s; long enough for the slowest pole when omitted.

    Returns
    -------
    PIDTuning

    Warns
    -----
    UserWarning
        When the linear and the simulated step differ by more than a factor of two in rise or
        settling time, or by 25 percent in overshoot.

    Raises
    ------
    ValueRefusedError
        When no gains within the bound stabilize the loop, when nothing in the model limits them,
        when the controller moves nothing of what it measures, as behind a saturated block,
        when something grows that the measurement does not show, or when the plant is none for the
        rule, such as one that oscillates.
    UnknownNameError
        When there is no such block.
    EvaluationError
        As for `linearize`.

    See Also
    --------
    optimize : Tune any parameters in simulation.
    margins : Check the robustness.
    PIDController : The controller block.

    Notes
    -----
    The derivative time is at most a quarter of the integral time. Beyond that, the integral gain
    still grows, but the response to a load oscillates. The integral gain as the goal is that of
    Panagopoulos, Åström and Hägglund (2002), the absolute error within a bound of the sensitivity
    that of Grimholt and Skogestad (2012). Since the latter does not consider loads, the integral
    gain stays above a tenth of that for disturbances.

    Rules approximate the plant by simple processes, which follow from its exact linear model:

    - "simc" (Skogestad 2003): a lag with dead time for PI, two lags for PID, by the half rule from
      poles and zeros; Padé approximants count as dead time, integrators are taken as such.
    - "amigo" (Åström and Hägglund 2004): a lag with dead time whose step response has the steepest
      tangent of the plant, and its time to 63 %; or an integrator with dead time.
    - "lambda": the same lag with dead time, which the controller cancels, so that the closed loop
      is a lag of the given time, but for what the dead time is not.

    A sampled controller is tuned by its exact sampled loop, period and hold included: the bound
    holds for the sensitivity on the unit circle, and its setpoint error is that at the samples.

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
    >>> fx.tune_pid(loop, "pid", rule="simc")
    <PIDTuning: kp=2, ki=1, peak of the sensitivity 1.59>
    """
    require_system(system, "Cannot tune a controller")
    attempt = f"Cannot tune a controller of '{system.label}'"
    start = start_context(system, context, attempt)
    controlled = Controlled.find(system, controller, component, attempt)
    block = controlled.block
    ratio = _number("filter_ratio", filter_ratio, attempt, 0.0)
    most = _number("max_overshoot", max_overshoot, attempt)
    bound = _MOST_SENSITIVE
    if max_sensitivity is not None:
        bound = _number("max_sensitivity", max_sensitivity, attempt, 1.0)
    if goal is not None:
        one_of(goal, ("disturbance", "setpoint"), "goal", attempt)
    if rule is not None:
        one_of(rule, RULES, "rule", attempt)
    if closed_loop_time is not None:
        closed_loop_time = _number("closed_loop_time", closed_loop_time, attempt, 0.0)
        expected = "rule='simc' or rule='lambda' where there is a closed_loop_time"
        require(rule in ("simc", "lambda"), rule, attempt, expected)
    require(step_to is not None or t_final is None, t_final, attempt, "no t_final without step_to")
    wanted = _parts(controlled, parts, attempt)
    loop = PIDLoop(seen(controlled.plant(system, start), attempt))
    first = None
    if rule is not None:
        _check_rule(controlled, wanted, attempt)
        first = rule_gains(rule, loop.plant, wanted, closed_loop_time, ratio, attempt)
    if first is None or goal is not None:
        derivative_weight = block.derivative_weight if block.has_filter else None
        weights = (
            controlled.value(start, block.setpoint_weight),
            controlled.value(start, derivative_weight),
        )
        search = Search(loop, wanted, bound, ratio, weights, attempt, first)
        gains = search.setpoint(most) if goal == "setpoint" else search.disturbance()
        peak, place = loop.peak(gains)
        if peak > bound:  # between the frequencies that were looked at
            gains = weakened(loop, gains, bound)
            peak, place = loop.peak(gains)
        fits = peak <= bound * (1.0 + 1e-6)
        remedy = "The plant has sharp resonances; allow a larger max_sensitivity"
    else:
        gains = first
        peak, place = loop.peak(gains)
        fits = max_sensitivity is None or peak <= bound
        remedy = "Pass goal= as well, and the rule is where the search starts"
    stable = loop.is_stable(gains)
    expected = f"a peak of the sensitivity of {bound:g}" if stable else "gains that stabilize"
    require(fits and stable, peak, attempt, expected, remedy=remedy)
    places = [wire_place(start, controlled.way(block.u), attempt)]
    notes = [
        f"{text}, and the peak is at {place:.3g} rad/s: raise its order"
        for text, highest in approximated_delays(start, around_wires(start, places))
        if highest < place
    ]
    tuning = PIDTuning(
        block,
        gains.kp,
        gains.ki,
        gains.kd,
        gains.lag if block.has_filter and "D" in wanted else None,
        peak,
        place,
        ordered(loop.poles(gains), loop.period),
        replace(loop.plant, notes=(*loop.plant.notes, *notes)),
        component=controlled.component,
    )
    if step_to is None:
        return tuning
    tuning.apply(start)
    slowest = float(-loop.rates(tuning.poles).real.max(initial=-np.inf))
    info = verified(controlled, system, start, slowest, step_to, t_final, attempt)
    return replace(tuning, linear=info[0], simulated=info[1], at_limits=info[2])


def _number(name: str, value: Any, attempt: str, least: float | None = None) -> float:
    """Return a finite number beyond the least or, without one, a number that is not negative."""
    about = f"{attempt} with this {name}"
    return bounded(value, about, lower=least or 0.0, exclusive=least is not None)


def _parts(controlled: Controlled, parts: Any, attempt: str) -> str:
    """Return what the controller is to consist of."""
    whole = "PI" if controlled.block.kd is None else "PID"
    if parts is None:
        return whole
    one_of(parts, ("P", "PI", "PD", "PID"), "parts", attempt)
    wanted = f"parts without D, as '{controlled.block.path}' is made without kd"
    require(set(parts) <= set(whole), parts, attempt, wanted, remedy="Make it with kd=0.0")
    return str(parts)


def _check_rule(controlled: Controlled, parts: str, attempt: str) -> None:
    """Refuse what rules are not made for."""
    found = None
    if controlled.period is not None:
        found = f"a period of {controlled.period:g} s"
    elif "I" not in parts:
        found = f"a {parts} controller"
    if found is not None:
        raise ValueRefusedError(
            attempt,
            expected="a PI or PID controller in continuous time for a rule",
            found=found,
            remedy="Leave out rule=, and tune by a goal",
        )
