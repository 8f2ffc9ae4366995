"""Integrators, lags and derivatives: blocks with one state per component."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from flexure.blocks.signals.argument_shapes import (
    flag,
    full,
    one_of,
    per_component,
    refusal,
    through_gain,
)
from flexure.blocks.signals.continuous_or_sampled import sampling
from flexure.diagrams.systems.leaf import LeafSystem
from flexure.diagrams.systems.ports import InputPort
from flexure.diagrams.values.arrays import Array, FloatArray, check_size, show
from flexure.diagrams.values.events import Initialization, Settling, Witness
from flexure.diagrams.values.handles import Handle
from flexure.diagrams.values.parameters import NumericParameter
from flexure.diagrams.values.state import ContinuousState, DiscreteState

#: Rule by which a sampled integrator adds up its samples.
IntegrationRule: TypeAlias = Literal["forward", "backward", "trapezoidal"]
#: How much of the present sample each rule counts.
_PRESENT_PART = {"forward": 0.0, "backward": 1.0, "trapezoidal": 0.5}

#: Stands for the distance to a limit that is infinite: witness functions are finite.
_FAR = 1e100
#: Added to a witness function that may rest at zero, so that it falls when it becomes negative.
_TINY = 1e-300


class Integrator(LeafSystem):
    """Integral of the input, or sum of its samples, with optional limits and reset.

    In continuous time ``ẋ = u, y = x``. With limits, component by component::

        ẋ = 0   where x ≥ upper and u > 0, or x ≤ lower and u < 0
        ẋ = u   elsewhere
        y = x limited to [lower, upper]

    so that the integral stops at a limit, and leaves it at once when the input turns around.

    With a period T, ``x[k+1] = x[k] + T u[k]``, limited to [lower, upper], and by one of three
    rules::

        forward       y[k] = x[k]               T / (z − 1)          no feedthrough
        backward      y[k] = x[k] + T u[k]      T z / (z − 1)        feedthrough
        trapezoidal   y[k] = x[k] + T/2 u[k]    T/2 (z + 1)/(z − 1)  feedthrough

    Parameters
    ----------
    name : str
        Name of the block.
    size : int
        Number of components.
    initial : float or array_like, shape (size,)
        State in new contexts, in the unit of the input times s.
    lower, upper : float or array_like, shape (size,)
        Limits of the state, in its unit. When all are infinite, the block has no limits and no
        parameters for them.
    reset : bool
        Whether the state can be reset from outside.
    period : float, optional
        Sampling period T in s; continuous time when omitted.
    method : {"forward", "backward", "trapezoidal"}
        The rule of a sum of samples.
    offset : float
        Time of the first sample in s.

    Attributes
    ----------
    u : InputPort
        Input "u", of ``size``.
    reset : InputPort
        Input "reset" of size 1, only with ``reset=True``: where it rises through 0.5, the state
        becomes the value at "reset_value".
    reset_value : InputPort
        Input "reset_value" of ``size``, only with ``reset=True``; ``initial`` while nothing is
        connected.
    x : ContinuousState or DiscreteState
        State "x", the integral or the sum.
    mode : DiscreteState
        State "mode" of ``size``, only with limits in continuous time: 1 while a simulation holds
        the state at the upper limit, -1 at the lower one, 2 while it is free. It is 0 until a
        simulation starts.
    y : LeafOutputPort
        Output "y", of ``size``; depends on the state alone, except by the rules with feedthrough.
    lower, upper : NumericParameter
        Parameters "lower" and "upper", only with limits; one of them may be infinite. Keep
        ``lower`` ≤ ``upper``.

    Raises
    ------
    DeclarationError
        When a shape does not fit, the initial state is not within the limits, the rule is unknown,
        the period is not positive, or there is a rule or an offset without it.

    See Also
    --------
    FilteredDerivative : Time derivative of the input.

    Notes
    -----
    A witness function per component and limit finds the instant at which a limit is hit, where the
    state is put exactly on the limit and held, and then the instant at which the input turns
    around. A state beyond the limits is put on them before time goes on.

    A reset takes place at the very instant at which its signal rises through 0.5, in continuous
    motion or in a jump that a source or a sampled block makes. A sampled integrator is reset at the
    first sample at which the signal is high. A signal that is high from the beginning does not
    reset.

    The input before the first sample counts as zero, so the trapezoidal rule begins with half of
    the first sample.

    Examples
    --------
    >>> import flexure as fx
    >>> tank = fx.Integrator("tank", initial=2.0, lower=0.0, upper=2.0)
    >>> context = tank.create_default_context()
    >>> tank.u.fix(context, 0.3)
    >>> tank.eval_time_derivatives(context)
    array([0.])
    >>> tank.u.fix(context, -0.3)
    >>> tank.eval_time_derivatives(context)
    array([-0.3])
    >>> total = fx.Integrator("total", initial=1.0, period=0.1, method="backward")
    >>> context = total.create_default_context()
    >>> total.u.fix(context, 5.0)
    >>> total.y.eval(context)
    array([1.5])
    """

    x: ContinuousState | DiscreteState
    lower: NumericParameter
    upper: NumericParameter
    reset: InputPort
    reset_value: InputPort
    mode: DiscreteState
    reset_level: DiscreteState

    def __init__(
        self,
        name: str,
        size: int = 1,
        initial: npt.ArrayLike = 0.0,
        lower: npt.ArrayLike = -np.inf,
        upper: npt.ArrayLike = np.inf,
        reset: bool = False,
        *,
        period: float | None = None,
        method: IntegrationRule = "forward",
        offset: float = 0.0,
    ) -> None:
        super().__init__(name)
        size = check_size(size, f"'{name}'", minimum=1)
        clock = sampling(self, period, offset)
        if one_of(self, "method", method, _PRESENT_PART) != "forward" and period is None:
            expected = "no rule of summation without a sampling period"
            raise refusal(self, expected, f"method='{method}'", "Pass period= in s")
        self.period = period
        self._direct = _PRESENT_PART[method] * (period or 0.0)
        start = full(self, "initial", initial, size)
        low = per_component(self, "lower", lower, size)
        high = per_component(self, "upper", upper, size)
        if not np.all((low <= start) & (start <= high)):
            found = f"lower={low.tolist()}, initial={start.tolist()}, upper={high.tolist()}"
            raise refusal(self, "lower <= initial <= upper", found)
        self.has_limits = bool(np.isfinite(low).any() or np.isfinite(high).any())
        self.has_reset = flag(self, "reset", reset)
        self.u = self.declare_vector_input("u", size, doc="integrand")
        if clock is None:
            self.x = self.declare_continuous_state(z=size, default=start, doc="integral")
        else:
            self.x = self.declare_discrete_state("x", start, doc="sum of samples times period")
            self.declare_discrete_update(self.change_state, clock)
        if self.has_limits:
            self._declare_limits(low, high, size)
        if self.has_reset:
            self._declare_reset(start)
        if clock is None and (self.has_limits or self.has_reset):
            for trigger in (Initialization(), Settling()):
                self.declare_unrestricted_update(self.change_state, trigger)
        calc = self.calc_output if self.has_limits or self._direct else self.x
        needs: list[Handle] = [self.x, self.u] if self._direct else [self.x]
        self.y = self.declare_vector_output("y", size, calc, prerequisites=needs)

    def unit_relations(self) -> Iterable[tuple[Any, ...]]:
        """Return that state and output have the unit of the input times s."""
        resets = [(self.x, self.reset_value)] if self.has_reset else []
        return [(self.u, self.x, self.y, "s"), *resets]

    def _declare_limits(self, low: FloatArray, high: FloatArray, size: int) -> None:
        self.lower = self.declare_numeric_parameter(
            "lower", low, allow_infinite=True, doc="lower limit of the state"
        )
        self.upper = self.declare_numeric_parameter(
            "upper", high, allow_infinite=True, doc="upper limit of the state"
        )
        self.declare_relation(self.lower, "<=", self.upper)
        if self.period is not None:
            return
        self.mode = self.declare_discrete_state(
            "mode", np.zeros(size), doc="1 held at the upper limit, -1 at the lower one, 2 free"
        )
        for component in range(size):
            for margin in (self._margin_below, self._margin_above):
                switch = Witness(partial(margin, component), "falling")
                self.declare_unrestricted_update(self.change_state, switch)

    def _declare_reset(self, start: FloatArray) -> None:
        self.reset = self.declare_vector_input("reset", 1, doc="resets by rising through 0.5")
        self.reset_value = self.declare_vector_input(
            "reset_value", start.size, default=start, doc="state after a reset"
        )
        # High at first, so that a signal that is high from the beginning has no edge.
        self.reset_level = self.declare_discrete_state(
            "reset_level", 1.0, doc="1 where 'reset' was high when last seen, 0 where it was low"
        )
        if self.period is None:
            edge = Witness(self._reset_margin, "falling")
            self.declare_unrestricted_update(self.change_state, edge)

    def calc_time_derivatives(self, context: Any) -> Array:
        """Return u, or 0 where the state is at a limit and u pushes beyond."""
        u = self.u(context)
        if not self.has_limits:
            return u
        x, mode = self.x(context), self.mode(context)
        # Within a step, trial states pass a limit, or the input turns around, before an event says
        # so. What jumped there would mislead the control of errors.
        unknown = mode == 0.0
        above = (mode == 1.0) | unknown & (u > 0.0)
        below = (mode == -1.0) | unknown & (u < 0.0)
        stops = (x >= self.upper(context)) & above | (x <= self.lower(context)) & below
        return np.where(stops, 0.0, u)

    def linear_remark(self, context: Any) -> str | None:
        """Describe the limit that holds the state, if any."""
        if not self.has_limits:
            return None
        if self.period is None:
            held = self.calc_time_derivatives(context) != self.u(context)
        else:
            x = self.x(context) + self.period * self.u(context)
            held = (x > self.upper(context)) | (x < self.lower(context))
        return f"its state {show(self.x(context))} is held at a limit" if np.any(held) else None

    def calc_output(self, context: Any) -> Array:
        """Return the state, with its part of the present sample, within the limits."""
        y = self.x(context)
        if self._direct:
            y = y + self._direct * self.u(context)
        return np.clip(y, self.lower(context), self.upper(context)) if self.has_limits else y

    def change_state(self, context: Any) -> dict[Any, Array]:
        """Put the state on the reset value at a rising edge, and on a limit that it has passed.

        It is held at a limit until the input leads away from there. A sampled one adds the input
        times the period before that.
        """
        x = self.x(context)
        if self.period is not None:
            x = x + self.period * self.u(context)
        changes = {}
        if self.has_reset:
            is_high = self.reset(context) >= 0.5
            was_low = self.reset_level(context) < 0.5
            x = np.where(is_high & was_low, self.reset_value(context), x)
            changes[self.reset_level] = np.where(is_high, 1.0, 0.0)
        if self.has_limits:
            u, lower, upper = self.u(context), self.lower(context), self.upper(context)
            x = np.clip(x, lower, upper)
            if self.period is None:
                below = np.where((x <= lower) & (u <= 0.0), -1.0, 2.0)
                changes[self.mode] = np.where((x >= upper) & (u >= 0.0), 1.0, below)
        return {self.x: x, **changes}

    def _margin_above(self, component: int, context: Any) -> Array:
        room, u = self.upper(context) - self.x(context), self.u(context)
        return _margin(room, u, self.mode(context) == 1.0)[component]

    def _margin_below(self, component: int, context: Any) -> Array:
        room, u = self.x(context) - self.lower(context), self.u(context)
        return _margin(room, -u, self.mode(context) == -1.0)[component]

    def _reset_margin(self, context: Any) -> Array:
        rise = self.reset(context)[0] - 0.5
        return np.where(self.reset_level(context)[0] < 0.5, -rise, rise + _TINY)


def _margin(room: Array, push: Array, is_held: Array) -> Array:
    """Return how far the state is from a limit, and at the limit how far from leaving it."""
    free = np.minimum(np.maximum(room, -push), _FAR)
    return np.where(is_held, push + _TINY, free)


class FirstOrderLag(LeafSystem):
    """First-order lag, also called a low-pass filter: ``τ ẋ = k u − x, y = x``.

    Parameters
    ----------
    name : str
        Name of the block.
    time_constant : float or array_like, shape (size,)
        τ, positive, in s.
    gain : float or array_like, shape (size,)
        k, in units of the output per unit of the input.
    size : int
        Number of components.
    initial : float or array_like, shape (size,)
        State in new contexts, in the unit of the output.
    unit : str
        Unit of the gain, such as ``"N/V"``, from which labels know that of y by that of u. When
        omitted, a gain of 1 keeps the unit.

    Attributes
    ----------
    u : InputPort
        Input "u", of ``size``.
    x : ContinuousState
        State "x".
    y : LeafOutputPort
        Output "y", of ``size``; depends on the state alone.
    time_constant, gain : NumericParameter
        Parameters "time_constant" and "gain".

    Raises
    ------
    DeclarationError
        When a shape does not fit.
    ValueRefusedError
        When the time constant is not positive.

    See Also
    --------
    LeadLag : Lead or lag compensator.
    TransferFunction : Proper transfer function from one input to one output.

    Examples
    --------
    >>> import flexure as fx
    >>> motor = fx.FirstOrderLag("motor", time_constant=0.5, gain=2.0)
    >>> context = motor.create_default_context()
    >>> motor.u.fix(context, 1.0)
    >>> motor.eval_time_derivatives(context)
    array([4.])
    """

    def __init__(
        self,
        name: str,
        time_constant: npt.ArrayLike,
        gain: npt.ArrayLike = 1.0,
        size: int = 1,
        initial: npt.ArrayLike = 0.0,
        *,
        unit: str = "",
    ) -> None:
        super().__init__(name)
        size = check_size(size, f"'{name}'", minimum=1)
        self.time_constant = _declare_time_constant(self, time_constant, size)
        self.gain = self.declare_numeric_parameter(
            "gain",
            per_component(self, "gain", gain, size),
            unit=unit,
            doc="output per input, at rest",
        )
        start = full(self, "initial", initial, size)
        self.u = self.declare_vector_input("u", size)
        self.x = self.declare_continuous_state(z=size, default=start)
        self.y = self.declare_vector_output("y", size, self.x, prerequisites=[self.x])

    def unit_relations(self) -> Iterable[tuple[Any, ...]]:
        """Return that state and output have one unit, that of the input times that of the gain."""
        return [(self.x, self.y), *through_gain(self.gain, self.u, self.y)]

    def calc_time_derivatives(self, context: Any) -> Array:
        """Return (k u − x) / τ."""
        target = self.gain(context) * self.u(context)
        return (target - self.x(context)) / self.time_constant(context)


class FilteredDerivative(LeafSystem):
    """Time derivative of the input, smoothed by a first-order lag, or of its samples.

    In continuous time ``y = (u − x) / τ, ẋ = (u − x) / τ``, which is the transfer function
    s / (τ s + 1): slow changes are differentiated, and above 1/τ rad/s the gain stays at 1/τ.

    With a period T it is the backward difference of s / (τ s + 1), with τ = 0 the difference
    quotient of the last two samples. For t > tₖ, up to and including the next sampling instant::

        y(t) = (τ y(tₖ) + u(tₖ) − u(tₖ₋₁)) / (τ + T)

    Parameters
    ----------
    name : str
        Name of the block.
    time_constant : float or array_like, shape (size,)
        τ in s, positive; with a period, 0 or more.
    size : int
        Number of components.
    start_at_rest : bool
        Whether the state takes the value of the input when a simulation starts, or at the first
        sample, so that the derivative begins at zero. Otherwise it begins at (u − x) / τ, a kick
        of height u/τ from the default state 0, and with a period at u / (τ + T).
    period : float, optional
        Sampling period T in s; continuous time when omitted.
    offset : float
        Time of the first sample in s.

    Attributes
    ----------
    u : InputPort
        Input "u", of ``size``.
    x : ContinuousState
        State "x", the input after a lag, in continuous time.
    last, rate : DiscreteState
        States "last", the last sample, and "rate", the held derivative, with a period.
    started : DiscreteState
        State "started", in continuous time only with ``start_at_rest``: 0 until a simulation has
        started or there is a sample, so that one that is continued goes on with its state. Set it
        to 1 to start from a state of your own.
    y : LeafOutputPort
        Output "y", of ``size``; needs the input at once, with a period the state alone.
    time_constant : NumericParameter
        Parameter "time_constant".

    Raises
    ------
    DeclarationError
        When a shape does not fit, the period is not positive, or there is an offset without it.
    ValueRefusedError
        When the time constant is too short.

    See Also
    --------
    Integrator : Integral of the input.

    Notes
    -----
    For a ramp of slope r the error after the start dies out as exp(−t/τ). Drake's sampled
    ``FilteredDerivative`` suppresses its initial transient likewise; plain transfer-function
    blocks start at zero and kick.

    The difference of two samples is the derivative half a period ago, and that of a jump is as high
    as the period is short.

    Examples
    --------
    >>> import flexure as fx
    >>> rate = fx.FilteredDerivative("rate", time_constant=0.1)
    >>> context = rate.create_default_context()
    >>> rate.u.fix(context, 2.0)
    >>> rate.x.set(context, 1.5)
    >>> rate.y.eval(context)
    array([5.])
    >>> fx.FilteredDerivative("rate", time_constant=0.0, size=3, period=0.1).feedthrough
    frozenset()
    """

    x: ContinuousState
    last: DiscreteState
    rate: DiscreteState
    started: DiscreteState

    def __init__(
        self,
        name: str,
        time_constant: npt.ArrayLike,
        size: int = 1,
        start_at_rest: bool = True,
        *,
        period: float | None = None,
        offset: float = 0.0,
    ) -> None:
        super().__init__(name)
        size = check_size(size, f"'{name}'", minimum=1)
        clock = sampling(self, period, offset)
        self.period = period
        self.time_constant = _declare_time_constant(
            self, time_constant, size, may_be_zero=clock is not None
        )
        self.u = self.declare_vector_input("u", size)
        at_rest = flag(self, "start_at_rest", start_at_rest)
        if clock is not None:
            self.last = self.declare_discrete_state("last", np.zeros(size))
            self.rate = self.declare_discrete_state("rate", np.zeros(size))
            self.started = self.declare_discrete_state("started", 0.0 if at_rest else 1.0)
            self.declare_discrete_update(self.sample, clock)
            self.y = self.declare_vector_output("y", size, self.rate, prerequisites=[self.rate])
            return
        self.x = self.declare_continuous_state(z=size, doc="lagged input")
        if at_rest:
            self.started = self.declare_discrete_state("started", 0.0)
            self.declare_unrestricted_update(self.start, Initialization())
        self.y = self.declare_vector_output(
            "y", size, self.calc_rate, prerequisites=[self.u, self.x]
        )

    def unit_relations(self) -> Iterable[tuple[Any, ...]]:
        """Return that the state has the unit of the input, and the output that per s."""
        if self.period is not None:
            return [(self.u, self.last), (self.u, self.rate, self.y, "1/s")]
        return [(self.u, self.x), (self.u, self.y, "1/s")]

    def calc_rate(self, context: Any) -> Array:
        """Return (u − x) / τ."""
        return (self.u(context) - self.x(context)) / self.time_constant(context)

    def calc_time_derivatives(self, context: Any) -> Array:
        """Return (u − x) / τ."""
        return self.calc_rate(context)

    def start(self, context: Any) -> dict[Any, Array]:
        """Give the state the value of the input, the first time."""
        x = np.where(self.started(context) > 0.5, self.x(context), self.u(context))
        return {self.x: x, self.started: 1.0}

    def sample(self, context: Any) -> dict[Any, Any]:
        """Take the input and its smoothed difference to the last sample."""
        u, lag = self.u(context), self.time_constant(context)
        change = self.started(context) * (u - self.last(context))
        rate = (lag * self.rate(context) + change) / (lag + self.period)
        return {self.last: u, self.rate: rate, self.started: 1.0}


def _declare_time_constant(
    block: LeafSystem, time_constant: npt.ArrayLike, size: int, *, may_be_zero: bool = False
) -> NumericParameter:
    return block.declare_numeric_parameter(
        "time_constant",
        per_component(block, "time_constant", time_constant, size),
        unit="s",
        lower=0.0,
        exclusive=not may_be_zero,
        doc="time in which 63 % of a step is done",
    )
