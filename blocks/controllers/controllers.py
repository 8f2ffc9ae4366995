"""PID controllers, continuous and sampled."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.controllers.pid_law import AntiWindup, PIDLaw
from flexure.diagrams.systems.leaf import LinearizeAs
from flexure.diagrams.values.arrays import Array
from flexure.diagrams.values.events import Initialization, Periodic


class PIDController(PIDLaw):
    """Continuous PID controller with limits, setpoint weights and anti-windup.

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
        Time constant T_f of the derivative, positive, in s. Not used with ``rate_inputs``.
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
        Tₜ, positive, in s. When omitted the integral time kp/ki of the arguments, or 1 s where that
        is no positive time; with conditional integration a hundredth of that.
    rate_inputs : bool
        Whether the rates of setpoint and measurement come from outside.
    gain_ports : bool
        Whether the gains come from outside, too; ``kp``, ``ki`` and ``kd`` are then the values of
        inputs that nothing is connected to.
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
        State "x": the integral z of the error, which ki multiplies, or with ``gain_ports`` of
        ki e; then x_f where there is a filter. Its elements are named "integral" and "filtered".
    integral, command : CacheEntry
        "integral" (z) and "command" (v), to look at.
    started : DiscreteState
        State "started", only with a filter: 0 until a simulation has started. Then x_f takes the
        value of c r − y, so that the derivative begins at zero. A simulation that is continued
        goes on with its state.
    u : LeafOutputPort
        Output "u", of ``size``; needs every input at once.
    kp, ki, kd, setpoint_weight, derivative_weight, derivative_filter : NumericParameter
        Parameters of the same names; kd, c and T_f only with a derivative part. With
        ``gain_ports``, kp, ki and kd are inputs of ``size`` instead, each an `InputPort`.
    lower, upper, tracking_time : NumericParameter
        Parameters of the same names; Tₜ only with protection from windup. Keep ``lower`` ≤
        ``upper``.

    Raises
    ------
    DeclarationError
        When a shape does not fit, lower > upper, the way of ``anti_windup`` is unknown, or there
        are rate inputs without ``kd``.
    ValueRefusedError
        When a time constant is not positive, or a gain is not finite.

    See Also
    --------
    SampledPIDController : The sampled version.
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
    """

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
        linearize_as: LinearizeAs = "exact",
    ) -> None:
        super().__init__(
            name,
            size=size,
            kp=kp,
            ki=ki,
            kd=kd,
            derivative_filter=derivative_filter,
            setpoint_weight=setpoint_weight,
            derivative_weight=derivative_weight,
            lower=lower,
            upper=upper,
            anti_windup=anti_windup,
            tracking_time=tracking_time,
            rate_inputs=rate_inputs,
            gain_ports=gain_ports,
            linearize_as=linearize_as,
        )
        parts = ["integral", "filtered"] if self.has_filter else ["integral"]
        self.x = self.declare_continuous_state(
            z=len(parts) * size,
            element_names=[
                part if size == 1 else f"{part}[{k}]" for part in parts for k in range(size)
            ],
        )
        if self.has_filter:
            self.started = self.declare_discrete_state("started", 0.0)
            self.declare_unrestricted_update(self.start, Initialization())
        self.integral = self.declare_cache_entry(
            "integral", self.calc_integral, prerequisites=[self.x]
        )
        self.command = self.declare_cache_entry(
            "command",
            self.calc_command,
            prerequisites=[self.integral, self.x, *self.inputs],
        )
        self.u = self.declare_vector_output(
            "u", size, self.calc_output, prerequisites=[self.command]
        )

    def calc_rate(self, context: Any) -> Array:
        """Return d: the rate from the inputs or the filter, or 0 without a derivative part."""
        if self.kd is None:
            return 0.0
        if not self.has_filter:
            return self.given_rate(context)
        change = self.differentiated(context) - self.x(context)[self.size :]
        return change / self.derivative_filter(context)

    def calc_integral(self, context: Any) -> Array:
        """Return z, the first part of the state."""
        return self.x(context)[: self.size]

    def calc_command(self, context: Any) -> Array:
        """Return v, the sum of all parts."""
        return self.total(context, self.integral(context), self.calc_rate(context))

    def calc_output(self, context: Any) -> Array:
        """Return u, the sum within the limits."""
        return self.limited(context, self.command(context))

    def linear_remark(self, context: Any) -> str | None:
        """Tell whether the output is at a limit."""
        return self.limit_remark(context, self.command(context))

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


class SampledPIDController(PIDLaw):
    """Sampled PID controller: computes at tₖ = offset + k period, holds in between.

    At tₖ, with setpoint r, measurement y, feedforward f, error e = r − y and the period T::

        I  ← I + T e
        d  ← (T_f d + (c r − y) − (c r − y of tₖ₋₁)) / (T_f + T)    filtered backward difference
        v  = kp (b r − y) + ki I + kd d + f
        u  = v limited to [lower, upper]                            held for tₖ < t ≤ tₖ₊₁
        I  ← I + T (u − v) / (ki Tₜ)                                with back-calculation

    Before the first sample u = 0, and at the first sample d = 0. With ``rate_inputs``
    ``d = c ṙ − ẏ``. With ``gain_ports`` the gains are inputs, and the factor ki goes from ``ki I``
    into the first line, ``I ← I + T ki e``, and out of the last.

    Parameters
    ----------
    name : str
        Name of the block.
    period : float
        Sampling period T in s.
    kp, ki, kd, size, setpoint_weight, derivative_weight, lower, upper, rate_inputs, gain_ports
        As in `PIDController`.
    derivative_filter : float or array_like, shape (size,)
        Time constant T_f of the derivative in s; may be 0.
    anti_windup : {"back_calculation", "conditional", None}
        As in `PIDController`. The conditional way leaves out a sample of the error that would
        drive v further beyond its limit.
    tracking_time : float or array_like, shape (size,), optional
        Tₜ of back-calculation in s, at least one period. When omitted the integral time kp/ki of
        the arguments, or 1 s where that is no positive time, or the period where that is longer.
    offset : float
        Time of the first sample in s.
    linearize_as : {"exact", "gain"}
        As in `PIDController`.

    Attributes
    ----------
    setpoint, measurement, setpoint_rate, measurement_rate, feedforward : InputPort
        As in `PIDController`.
    kp, ki, kd : NumericParameter or InputPort
        As in `PIDController`.
    integral : DiscreteState
        State "integral", I.
    held : DiscreteState
        State "held", the output.
    previous, rate, started : DiscreteState
        States "previous" (c r − y), "rate" (d) and "started" (1 after the first sample), only
        with the filtered derivative.
    u : LeafOutputPort
        Output "u", of ``size``; depends on the state alone.

    Raises
    ------
    DeclarationError
        As in `PIDController`, or when the period is not positive.
    ValueRefusedError
        When a time constant is too short, or a gain is not finite.

    See Also
    --------
    PIDController : The continuous version.
    tune_pid : Tune the gains.

    Notes
    -----
    The difference is the backward-Euler form of s / (T_f s + 1), without oscillation for any
    period. A changed gain takes effect at the next sample.

    Examples
    --------
    >>> import flexure as fx
    >>> pid = fx.SampledPIDController("pid", period=0.02, kp=20.0, ki=15.0)
    >>> pid.feedthrough, pid.periods
    (frozenset(), (0.02,))
    """

    def __init__(
        self,
        name: str,
        period: float,
        kp: npt.ArrayLike = 1.0,
        ki: npt.ArrayLike = 0.0,
        kd: npt.ArrayLike | None = None,
        size: int = 1,
        *,
        offset: float = 0.0,
        derivative_filter: npt.ArrayLike = 0.01,
        setpoint_weight: npt.ArrayLike = 1.0,
        derivative_weight: npt.ArrayLike | None = None,
        lower: npt.ArrayLike = -np.inf,
        upper: npt.ArrayLike = np.inf,
        anti_windup: AntiWindup | None = "back_calculation",
        tracking_time: npt.ArrayLike | None = None,
        rate_inputs: bool = False,
        gain_ports: bool = False,
        linearize_as: LinearizeAs = "exact",
    ) -> None:
        clock = Periodic(period, offset)
        super().__init__(
            name,
            size=size,
            kp=kp,
            ki=ki,
            kd=kd,
            derivative_filter=derivative_filter,
            setpoint_weight=setpoint_weight,
            derivative_weight=derivative_weight,
            lower=lower,
            upper=upper,
            anti_windup=anti_windup,
            tracking_time=tracking_time,
            rate_inputs=rate_inputs,
            gain_ports=gain_ports,
            linearize_as=linearize_as,
            period=period,
        )
        self.period = period
        nothing = np.zeros(size)
        self.integral = self.declare_discrete_state("integral", nothing)
        self.held = self.declare_discrete_state("held", nothing)
        if self.has_filter:
            self.previous = self.declare_discrete_state("previous", nothing)
            self.rate = self.declare_discrete_state("rate", nothing)
            self.started = self.declare_discrete_state("started", 0.0)
        self.declare_discrete_update(self.sample, clock)
        self.u = self.declare_vector_output("u", size, self.held, prerequisites=[self.held])

    def calc_rate(self, context: Any) -> Array:
        """Return d of this sample, or 0 without a derivative part."""
        if self.kd is None:
            return 0.0
        if not self.has_filter:
            return self.given_rate(context)
        lag = self.derivative_filter(context)
        change = self.differentiated(context) - self.previous(context)
        return (lag * self.rate(context) + self.started(context) * change) / (lag + self.period)

    def calc_command(self, context: Any, rate: Array) -> Array:
        """Return v of this sample, the sum of all parts."""
        integral = self.integral(context) + self.period * self.integrated(context)
        return self.total(context, integral, rate)

    def linear_remark(self, context: Any) -> str | None:
        """Tell whether the output is at a limit."""
        return self.limit_remark(context, self.calc_command(context, self.calc_rate(context)))

    def sample(self, context: Any) -> dict[Any, Any]:
        """Compute the output of the next period and carry the integral on."""
        integral = self.integral(context)
        rate = self.calc_rate(context)
        total = self.calc_command(context, rate)
        changes = {
            self.integral: integral + self.period * self.integrand(context, total),
            self.held: self.limited(context, total),
        }
        if self.has_filter:
            changes[self.previous] = self.differentiated(context)
            changes[self.rate] = rate
            changes[self.started] = 1.0
        return changes
