"""PID controllers, in continuous time and sampled."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from flexure.blocks.signals.argument_shapes import flag, full, linearization, per_component, refusal
from flexure.blocks.signals.continuous_or_sampled import sampling
from flexure.diagrams.checks.arguments import is_one_of
from flexure.diagrams.checks.errors import quoted
from flexure.diagrams.systems.leaf import LeafSystem, LinearizeAs
from flexure.diagrams.systems.ports import InputPort
from flexure.diagrams.values.arrays import Array, FloatArray, check_size, show
from flexure.diagrams.values.events import Initialization, Periodic
from flexure.diagrams.values.handles import Handle
from flexure.diagrams.values.parameters import NumericParameter
from flexure.diagrams.values.state import ContinuousState, DiscreteState

#: What keeps the integral from winding up while the output is at a limit.
AntiWindup: TypeAlias = Literal["back_calculation", "conditional"]
_ANTI_WINDUPS = ("back_calculation", "conditional")


class PIDController(LeafSystem):
    """PID controller with limits and anti-windup, continuous or sampled.

    With setpoint r, measurement y, feedforward f and error e = r − y::

        v = kp (b r − y) + ki z + kd d + f        sum of all parts
        u = v limited to [lower, upper]           output
        ż = e + (u − v) / (ki Tₜ)                 integral, with back-calculation
        d = (c r − y − x_f) / T_f,  ẋ_f = d       filtered derivative of c r − y

    With conditional integration, ż is that of back-calculation while v is beyond a limit and e
    pushes it further, but 0 where that has the sign opposite to e; elsewhere ż = e.

    With ``rate_inputs`` the derivative is exact instead, ``d = c ṙ − ẏ``, and with c = b = 1 and
    no limits the law is ``u = kp e + kd ė + ki ∫e dt``, that of Drake's ``PidController``.

    With ``gain_ports`` the gains are inputs, for a `GainSchedule`, and ki comes before the
    integral, so that it can change without a jump of the output::

        v = kp (b r − y) + z + kd d + f
        ż = ki e + (u − v) / Tₜ

    With a period T, the controller computes at tₖ = offset + k period, and holds u for
    tₖ < t ≤ tₖ₊₁, which is 0 before the first sample::

        I  ← I + T e
        d  ← (T_f d + (c r − y) − (c r − y of tₖ₋₁)) / (T_f + T)    filtered backward difference
        v  = kp (b r − y) + ki I + kd d + f
        u  = v limited to [lower, upper]
        I  ← I + T (u − v) / (ki Tₜ)                                with back-calculation

    At the first sample d = 0. Conditional integration leaves out a sample of the error that would
    drive v further beyond its limit. With ``gain_ports`` the factor ki goes from ``ki I`` into the
    first line, ``I ← I + T ki e``, and out of the last.

    Parameters
    ----------
    name : str
        Name of the block.
    kp, ki, kd : float or array_like, shape (size,)
        Gains in units of u per unit of y, per unit of y times s, and per unit of y per s. Without
        ``kd`` (None) the controller has no derivative part and no filter.
    size : int
        Number of components, each controlled by itself.
    derivative_filter : float or array_like, shape (size,)
        Time constant T_f of the derivative in s, positive; with a period, 0 or more. Not used with
        ``rate_inputs``.
    setpoint_weight : float or array_like, shape (size,)
        b, the part of the setpoint that the proportional part sees.
    derivative_weight : float or array_like, shape (size,), optional
        c, the part of the setpoint that is differentiated. When omitted 0, so that a step of the
        setpoint makes no peak; with ``rate_inputs`` 1.
    lower, upper : float or array_like, shape (size,)
        Limits of the output, in its unit; may be infinite.
    anti_windup : {"back_calculation", "conditional", None}
        How the integral is kept from growing while the output is at a limit: pulled back with the
        time constant Tₜ; stopped while the error pushes further beyond; not at all.
    tracking_time : float or array_like, shape (size,), optional
        Tₜ in s, positive; with a period, at least one period. When omitted the integral time kp/ki
        of the arguments, or 1 s where that is no positive time, or the period where that is
        longer; with conditional integration in continuous time a hundredth of that.
    rate_inputs : bool
        Whether the rates of setpoint and measurement come from outside.
    gain_ports : bool
        Whether the gains come from outside, too; ``kp``, ``ki`` and ``kd`` are then the values of
        inputs that nothing is connected to.
    period : float, optional
        Sampling period T in s; continuous time when omitted.
    offset : float
        Time of the first sample in s.
    linearize_as : {"exact", "gain"}
        How the limits enter linear models: with slope zero where the output is at one, or not at
        all.

    Attributes
    ----------
    setpoint, measurement : InputPort
        Inputs "setpoint" (r) and "measurement" (y), of ``size``.
    setpoint_rate, measurement_rate : InputPort
        Inputs "setpoint_rate" (ṙ) and "measurement_rate" (ẏ), only with ``rate_inputs``.
    feedforward : InputPort
        Input "feedforward" (f), zero while nothing is connected.
    x : ContinuousState
        State "x", in continuous time: the integral z of the error, which ki multiplies, or with
        ``gain_ports`` of ki e; then x_f where there is a filter. Its elements are named "integral"
        and "filtered".
    integral : CacheEntry or DiscreteState
        "integral", z to look at; with a period the state I.
    command : CacheEntry
        "command" (v), to look at, in continuous time.
    held : DiscreteState
        State "held", the output, with a period.
    previous, rate : DiscreteState
        States "previous" (c r − y) and "rate" (d), with a period and a filter.
    started : DiscreteState
        State "started", only with a filter: 0 until a simulation has started. Then x_f takes the
        value of c r − y, so that the derivative begins at zero. A simulation that is continued
        goes on with its state. With a period it is 1 after the first sample.
    u : LeafOutputPort
        Output "u", of ``size``; needs every input at once, with a period the state alone.
    kp, ki, kd, setpoint_weight, derivative_weight, derivative_filter : NumericParameter
        Parameters of the same names; kd, c and T_f only with a derivative part. With
        ``gain_ports``, kp, ki and kd are inputs of ``size`` instead, each an `InputPort`.
    lower, upper, tracking_time : NumericParameter
        Parameters of the same names; Tₜ only with protection from windup. Keep ``lower`` ≤
        ``upper``.

    Raises
    ------
    DeclarationError
        When a shape does not fit, lower > upper, the way of ``anti_windup`` is unknown, there are
        rate inputs without ``kd``, the period is not positive, or there is an offset without it.
    ValueRefusedError
        When a time constant is too short, or a gain is not finite.

    See Also
    --------
    tune_pid : Tune the gains.

    Notes
    -----
    Back-calculation after Åström and Hägglund, "Advanced PID Control" (2006), chapter 3. The
    division by ki only undoes the factor in front of z; where ki = 0 there is no correction. With
    ``gain_ports`` there is no such factor, and a ki of 0 holds the integral part where it is, but
    for that correction. Changes of kp and kd show in the output at once, unless what they multiply
    is zero.

    Conditional integration stops once v is beyond the limit by ki e Tₜ, which the integral would
    add in the time Tₜ. If it stopped at the very limit, a falling proportional part could switch it
    on and off infinitely often.

    The difference of a sampled controller is the backward-Euler form of s / (T_f s + 1), without
    oscillation for any period. A changed gain takes effect at the next sample.

    Examples
    --------
    >>> import flexure as fx
    >>> pid = fx.PIDController("pid", kp=2.0, ki=1.0, lower=-1.0, upper=1.0)
    >>> context = pid.create_default_context()
    >>> pid.setpoint.fix(context, 3.0)
    >>> pid.measurement.fix(context, 2.8)
    >>> pid.x.set(context, [0.5])
    >>> pid.u.eval(context)
    array([0.9])
    >>> pid.kp.set(context, 4.0)
    >>> pid.u.eval(context)
    array([1.])
    >>> pid = fx.PIDController("pid", kp=20.0, ki=15.0, period=0.02)
    >>> pid.feedthrough, pid.periods
    (frozenset(), (0.02,))
    """

    # With gain ports these are input ports, and the declared type is that of the ordinary case.
    kp: NumericParameter
    ki: NumericParameter
    kd: NumericParameter | None
    x: ContinuousState
    integral: DiscreteState  # in continuous time a cache entry
    started: DiscreteState

    def __init__(
        self,
        name: str,
        kp: npt.ArrayLike = 1.0,
        ki: npt.ArrayLike = 0.0,
        kd: npt.ArrayLike | None = None,
        size: int = 1,
        *,
        derivative_filter: npt.ArrayLike = 0.01,
        setpoint_weight: npt.ArrayLike = 1.0,
        derivative_weight: npt.ArrayLike | None = None,
        lower: npt.ArrayLike = -np.inf,
        upper: npt.ArrayLike = np.inf,
        anti_windup: AntiWindup | None = "back_calculation",
        tracking_time: npt.ArrayLike | None = None,
        rate_inputs: bool = False,
        gain_ports: bool = False,
        period: float | None = None,
        offset: float = 0.0,
        linearize_as: LinearizeAs = "exact",
    ) -> None:
        super().__init__(name)
        clock = sampling(self, period, offset)
        self.period = period
        self.linearize_as = linearization(self, linearize_as)
        known = is_one_of(anti_windup, _ANTI_WINDUPS)
        if anti_windup is not None and not known:
            choices = f"{quoted(_ANTI_WINDUPS)} or None for anti_windup"
            raise refusal(self, choices, repr(anti_windup))
        if flag(self, "rate_inputs", rate_inputs) and kd is None:
            raise refusal(self, "a gain kd of the rate inputs", "kd=None", "Pass kd=0.0 or more")
        self.size = check_size(size, f"'{name}'", minimum=1)
        self.anti_windup = anti_windup
        self.has_filter = kd is not None and not rate_inputs
        self.gain_ports = flag(self, "gain_ports", gain_ports)
        self._declare_inputs(rate_inputs)
        self._declare_gains(kp, ki, kd, setpoint_weight, derivative_weight, rate_inputs)
        if self.has_filter:
            self.derivative_filter = self.declare_numeric_parameter(
                "derivative_filter",
                per_component(self, "derivative_filter", derivative_filter, self.size),
                unit="s",
                lower=0.0,
                exclusive=period is None,
                doc="time constant of the lag in the derivative",
            )
        self._declare_limits(lower, upper)
        # A sample is taken or left out; a continuous integral has to be stopped gradually.
        self.stops_gradually = anti_windup == "conditional" and period is None
        if anti_windup == "back_calculation" or self.stops_gradually:
            usual = self._default_tracking_time() * (0.01 if self.stops_gradually else 1.0)
            time = usual if tracking_time is None else tracking_time
            self.tracking_time = self.declare_numeric_parameter(
                "tracking_time",
                per_component(self, "tracking_time", time, self.size),
                unit="s",
                lower=period or 0.0,
                exclusive=period is None,
                doc="time constant with which the integral follows a limited output",
            )
        calc: Any
        needed: Handle
        if clock is None:
            self._declare_continuous()
            calc, needed = self.calc_output, self.command
        else:
            self._declare_sampled(clock)
            calc = needed = self.held
        self.u = self.declare_vector_output("u", self.size, calc, prerequisites=[needed])

    def unit_relations(self) -> Iterable[tuple[Any, ...]]:
        """Return that setpoint and measurement have one unit, and output and feedforward another.

        Rates have the unit of what they are the rates of, per second.
        """
        rates = []
        if self.kd is not None and not self.has_filter:
            rates.append((self.setpoint_rate, self.setpoint, "s"))
            rates.append((self.measurement_rate, self.measurement, "s"))
        return [(self.setpoint, self.measurement), (self.feedforward, self.u), *rates]

    def _declare_continuous(self) -> None:
        parts = ["integral", "filtered"] if self.has_filter else ["integral"]
        numbers = [""] if self.size == 1 else [f"[{k}]" for k in range(self.size)]
        self.x = self.declare_continuous_state(
            z=len(parts) * self.size,
            element_names=[part + number for part in parts for number in numbers],
        )
        if self.has_filter:
            self.started = self.declare_discrete_state("started", 0.0)
            self.declare_unrestricted_update(self.start, Initialization())
        integral: Any = self.declare_cache_entry(
            "integral", self.calc_integral, prerequisites=[self.x]
        )
        self.integral = integral
        self.command = self.declare_cache_entry(
            "command", self.calc_command, prerequisites=[self.integral, self.x, *self.inputs]
        )

    def _declare_sampled(self, clock: Periodic) -> None:
        nothing = np.zeros(self.size)
        self.integral = self.declare_discrete_state("integral", nothing)
        self.held = self.declare_discrete_state("held", nothing)
        if self.has_filter:
            self.previous = self.declare_discrete_state("previous", nothing)
            self.rate = self.declare_discrete_state("rate", nothing)
            self.started = self.declare_discrete_state("started", 0.0)
        self.declare_discrete_update(self.sample, clock)

    def _declare_gains(
        self,
        kp: npt.ArrayLike,
        ki: npt.ArrayLike,
        kd: npt.ArrayLike | None,
        setpoint_weight: npt.ArrayLike,
        derivative_weight: npt.ArrayLike | None,
        rate_inputs: bool,
    ) -> None:
        self.kp = self._declare_gain("kp", kp, "proportional gain", self.gain_ports)
        self.ki = self._declare_gain("ki", ki, "gain of the integral of the error", self.gain_ports)
        self.setpoint_weight = self._declare_gain(
            "setpoint_weight", setpoint_weight, "weight of the setpoint in the proportional part"
        )
        self.kd = None
        if kd is not None:
            self.kd = self._declare_gain("kd", kd, "derivative gain", self.gain_ports)
            weight = float(rate_inputs) if derivative_weight is None else derivative_weight
            self.derivative_weight = self._declare_gain(
                "derivative_weight", weight, "weight of the setpoint in the derivative part"
            )
        if self.gain_ports:  # the sum of all parts sees ki through the integral alone
            gains: list[Any] = [self.kp, self.kd]
            self.inputs += [gain for gain in gains if gain is not None]

    def _declare_gain(
        self, gain: str, value: npt.ArrayLike, doc: str, as_port: bool = False
    ) -> Any:
        if as_port:
            default = full(self, gain, value, self.size)
            return self.declare_vector_input(gain, self.size, default=default, doc=doc)
        return self.declare_numeric_parameter(
            gain, per_component(self, gain, value, self.size), doc=doc
        )

    def _declare_limits(self, lower: npt.ArrayLike, upper: npt.ArrayLike) -> None:
        low = per_component(self, "lower", lower, self.size)
        high = per_component(self, "upper", upper, self.size)
        self.lower = self.declare_numeric_parameter(
            "lower", low, allow_infinite=True, doc="lower limit of the output"
        )
        self.upper = self.declare_numeric_parameter(
            "upper", high, allow_infinite=True, doc="upper limit of the output"
        )
        self.declare_relation(self.lower, "<=", self.upper)

    def _declare_inputs(self, rate_inputs: bool) -> None:
        self.setpoint = self.declare_vector_input("setpoint", self.size)
        self.measurement = self.declare_vector_input("measurement", self.size)
        # What the sum of all parts needs at once.
        self.inputs: list[InputPort] = [self.setpoint, self.measurement]
        if rate_inputs:
            self.setpoint_rate = self.declare_vector_input("setpoint_rate", self.size)
            self.measurement_rate = self.declare_vector_input("measurement_rate", self.size)
            self.inputs += [self.setpoint_rate, self.measurement_rate]
        self.feedforward = self.declare_vector_input(
            "feedforward", self.size, default=np.zeros(self.size), doc="added to the output"
        )
        self.inputs.append(self.feedforward)

    def _default_tracking_time(self) -> FloatArray:
        """Return the integral time kp/ki, or 1 s where that is not a positive time."""
        with np.errstate(divide="ignore", invalid="ignore"):
            integral_time = np.divide(self.kp.default, self.ki.default)
        usable = np.isfinite(integral_time) & (integral_time > 0.0)
        return np.maximum(np.where(usable, integral_time, 1.0), self.period or 0.0)

    def error(self, context: Any) -> Array:
        """Return r − y."""
        return self.setpoint(context) - self.measurement(context)

    def integrated(self, context: Any) -> Array:
        """Return what the integral is the integral of: e, or ki e where ki comes from outside.

        A gain before the integral makes no jump when it changes.
        """
        error = self.error(context)
        return self.ki(context) * error if self.gain_ports else error

    def gain_of_integral(self, context: Any) -> Array:
        """Return the factor between the integral and the output."""
        return 1.0 if self.gain_ports else self.ki(context)

    def differentiated(self, context: Any) -> Array:
        """Return c r − y, what the derivative part is the derivative of."""
        return self.derivative_weight(context) * self.setpoint(context) - self.measurement(context)

    def calc_rate(self, context: Any) -> Array:
        """Return d: the rate from the inputs or the filter, or 0 without a derivative part."""
        if self.kd is None:
            return 0.0
        if not self.has_filter:
            rate = self.derivative_weight(context) * self.setpoint_rate(context)
            return rate - self.measurement_rate(context)
        lag, now = self.derivative_filter(context), self.differentiated(context)
        if self.period is None:
            return (now - self.x(context)[self.size :]) / lag
        change = now - self.previous(context)
        return (lag * self.rate(context) + self.started(context) * change) / (lag + self.period)

    def total(self, context: Any, rate: Array) -> Array:
        """Return v, the sum of all parts, before the limits."""
        integral = self.integral(context)
        if self.period is not None:
            integral = integral + self.period * self.integrated(context)
        setpoint = self.setpoint_weight(context) * self.setpoint(context)
        total = self.kp(context) * (setpoint - self.measurement(context))
        total = total + self.gain_of_integral(context) * integral
        if self.kd is not None:
            total = total + self.kd(context) * rate
        return total + self.feedforward(context)

    def limited(self, context: Any, total: Array) -> Array:
        """Return the sum of all parts within the limits."""
        limited = np.clip(total, self.lower(context), self.upper(context))
        return self.with_slope_of(limited, total)

    def integrand(self, context: Any, total: Array) -> Array:
        """Return the derivative of the integral: what it integrates, corrected against windup."""
        integrated = self.integrated(context)
        gain = self.gain_of_integral(context)
        if self.anti_windup is None:
            return integrated
        pulled = 0.0
        if self.anti_windup == "back_calculation" or self.stops_gradually:
            excess = total - self.limited(context, total)
            # Without integral action there is nothing to unwind.
            unwinding = self.tracking_time(context) * np.where(gain == 0.0, np.inf, gain)
            pulled = integrated - excess / unwinding
        if self.anti_windup == "back_calculation":
            return pulled
        winds_up = (total > self.upper(context)) & (gain * integrated > 0.0)
        winds_down = (total < self.lower(context)) & (gain * integrated < 0.0)
        slowed = np.where(pulled * integrated > 0.0, pulled, 0.0)
        return self.with_slope_of(np.where(winds_up | winds_down, slowed, integrated), integrated)

    def calc_integral(self, context: Any) -> Array:
        """Return z, the first part of the state."""
        return self.x(context)[: self.size]

    def calc_command(self, context: Any) -> Array:
        """Return v, the sum of all parts."""
        return self.total(context, self.calc_rate(context))

    def calc_output(self, context: Any) -> Array:
        """Return u, the sum within the limits."""
        return self.limited(context, self.command(context))

    def linear_remark(self, context: Any) -> str | None:
        """Describe the limit that the output is at, if any."""
        total, lower, upper = self.calc_command(context), self.lower(context), self.upper(context)
        if not np.any((total < lower) | (total > upper)):
            return None
        limits = f"{show(lower)} and {show(upper)}"
        return f"its output would be {show(total)}, beyond its limits {limits}"

    def calc_time_derivatives(self, context: Any) -> Array:
        """Return ż and, with a filter, ẋ_f."""
        integrand = self.integrand(context, self.command(context))
        if not self.has_filter:
            return integrand
        return np.concatenate([integrand, self.calc_rate(context)])

    def start(self, context: Any) -> dict[Any, Any]:
        """Put the filter at its rest, the first time."""
        at_rest = np.concatenate([self.integral(context), self.differentiated(context)])
        x = np.where(self.started(context) > 0.5, self.x(context), at_rest)
        return {self.x: x, self.started: 1.0}

    def sample(self, context: Any) -> dict[Any, Any]:
        """Compute the output of the next period and carry the integral on."""
        integral = self.integral(context)
        rate = self.calc_rate(context)
        total = self.total(context, rate)
        changes = {
            self.integral: integral + self.period * self.integrand(context, total),
            self.held: self.limited(context, total),
        }
        if self.has_filter:
            changes[self.previous] = self.differentiated(context)
            changes[self.rate] = rate
            changes[self.started] = 1.0
        return changes
