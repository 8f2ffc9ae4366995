"""Limits, steps, rates and relays: blocks that bend a signal.

Ports are ``u`` and ``y``. Their handles, and those of parameters and states, are attributes of the
same name. Where a parameter can be a scalar or a vector, a scalar applies to every component.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.signals.argument_shapes import common_size, flag, linearization, refusal
from flexure.blocks.signals.continuous_or_sampled import ContinuousOrSampled
from flexure.diagrams import scalars
from flexure.diagrams.systems.leaf import LeafSystem, LinearizeAs
from flexure.diagrams.values.arrays import Array, show
from flexure.diagrams.values.events import Initialization, Settling, Witness


class _Limited(LeafSystem):
    """An output computed from the input and two limits."""

    def __init__(
        self,
        name: str,
        lower: npt.ArrayLike,
        upper: npt.ArrayLike,
        size: int | None = None,
        *,
        linearize_as: LinearizeAs = "exact",
    ) -> None:
        super().__init__(name)
        self.linearize_as = linearization(self, linearize_as)
        size = common_size(self, size, lower=lower, upper=upper)
        self.lower = self.declare_numeric_parameter(
            "lower", lower, allow_infinite=True, doc="lower limit"
        )
        self.upper = self.declare_numeric_parameter(
            "upper", upper, allow_infinite=True, doc="upper limit"
        )
        self.declare_relation(self.lower, "<=", self.upper)
        self.u = self.declare_vector_input("u", size)
        self.y = self.declare_vector_output("y", size, self.calc_y, prerequisites=[self.u])

    def unit_relations(self) -> Iterable[tuple[Any, ...]]:
        """Return that output and input have one unit."""
        return [(self.u, self.y)]

    @abstractmethod
    def calc_y(self, context: Any) -> Array:
        """Return the output."""

    def _limited(self, context: Any) -> Array:
        """Return the input where it is within the limits, else the limit."""
        return scalars.clip(self.u(context), self.lower(context), self.upper(context))


class Saturation(_Limited):
    """Saturation: limits the input by component, ``y = min(max(u, lower), upper)``.

    Parameters
    ----------
    name : str
        Name within the surrounding diagram.
    lower, upper : float or array_like, shape (size,)
        Limits, the parameters ``lower`` and ``upper``, in units of u; may be infinite.
    size : int, optional
        Size of u and y; by default that of the limits.
    linearize_as : {"exact", "gain"}
        With which slope the block enters linear models: its own, zero beyond the limits, or 1
        everywhere.

    Raises
    ------
    DeclarationError
        When a lower limit is above its upper limit, or the sizes differ.

    See Also
    --------
    DeadZone : Dead zone.
    RateLimiter : Continuous rate limiter.

    Examples
    --------
    >>> import flexure as fx
    >>> limit = fx.Saturation("limit", -1.0, 2.0, size=3)
    >>> context = limit.create_default_context()
    >>> limit.u.fix(context, [-5.0, 0.5, 5.0])
    >>> limit.y(context)
    array([-1. ,  0.5,  2. ])
    """

    def calc_y(self, context: Any) -> Array:
        """Return the limited input."""
        return self.with_slope_of(self._limited(context), self.u(context))

    def linear_remark(self, context: Any) -> str | None:
        """Describe the limit that the input is beyond, if any."""
        u, lower, upper = self.u(context), self.lower(context), self.upper(context)
        if np.any((u < lower) | (u > upper)):
            return f"u = {show(u)} is beyond its limits {show(lower)} and {show(upper)}"
        return None


class DeadZone(_Limited):
    """Dead zone: the output is zero within limits, and the excess beyond them.

    ``y = u - min(max(u, lower), upper)``, component by component: zero from ``lower`` to
    ``upper``, and beyond a limit the distance from it, with its sign.

    Parameters
    ----------
    name : str
        Name within the surrounding diagram.
    lower, upper : float or array_like, shape (size,)
        Limits, the parameters ``lower`` and ``upper``, in units of u; may be infinite.
    size : int, optional
        Size of u and y; by default that of the limits.
    linearize_as : {"exact", "gain"}
        With which slope the block enters linear models: its own, zero between the limits, or 1
        everywhere.

    Raises
    ------
    DeclarationError
        When a lower limit is above its upper limit, or the sizes differ.

    See Also
    --------
    Saturation : Saturation.

    Examples
    --------
    >>> import flexure as fx
    >>> play = fx.DeadZone("play", -1.0, 2.0, size=3)
    >>> context = play.create_default_context()
    >>> play.u.fix(context, [-5.0, 0.5, 5.0])
    >>> play.y(context)
    array([-4.,  0.,  3.])
    """

    def calc_y(self, context: Any) -> Array:
        """Return what exceeds the limits."""
        u = self.u(context)
        return self.with_slope_of(u - self._limited(context), u)

    def linear_remark(self, context: Any) -> str | None:
        """Describe the band that the input is in, if any."""
        u, lower, upper = self.u(context), self.lower(context), self.upper(context)
        if np.any((u >= lower) & (u <= upper) & (lower < upper)):
            return f"u = {show(u)} is in its dead zone from {show(lower)} to {show(upper)}"
        return None


class Quantizer(LeafSystem):
    """Quantizer: rounds to multiples of an interval, ``y = q round(u / q)``.

    Halfway between two multiples, the even one is taken, as ``np.rint`` does.

    Parameters
    ----------
    name : str
        Name within the surrounding diagram.
    interval : float or array_like, shape (size,)
        Distance q between two levels, the parameter ``interval``, positive, in units of u.
    size : int, optional
        Size of u and y; by default that of ``interval``.
    linearize_as : {"gain", "exact"}
        With which slope the block enters linear models: 1, which is that of its staircase as a
        whole, or its own, which is zero between two jumps and so opens every loop.

    Raises
    ------
    DeclarationError
        When the sizes differ.
    ValueRefusedError
        When ``interval`` is not positive and finite.

    See Also
    --------
    ZeroOrderHold : Zero-order hold.

    Notes
    -----
    y jumps, and no event tells the integrator. Let u be sampled, or use a fixed step, where the
    quantized signal drives continuous state. Sensitivities, fits and optimizations never take the
    gain for the slope.

    Examples
    --------
    >>> import flexure as fx
    >>> encoder = fx.Quantizer("encoder", 0.5, size=3)
    >>> context = encoder.create_default_context()
    >>> encoder.u.fix(context, [0.7, 0.8, 1.25])
    >>> encoder.y(context)
    array([0.5, 1. , 1. ])
    """

    has_jumps = True

    def __init__(
        self,
        name: str,
        interval: npt.ArrayLike,
        size: int | None = None,
        *,
        linearize_as: LinearizeAs = "gain",
    ) -> None:
        super().__init__(name)
        self.linearize_as = linearization(self, linearize_as)
        size = common_size(self, size, interval=interval)
        self.interval = self.declare_numeric_parameter(
            "interval", interval, lower=0.0, exclusive=True, doc="distance between two levels"
        )
        self.u = self.declare_vector_input("u", size)
        self.y = self.declare_vector_output("y", size, self.calc_y, prerequisites=[self.u])

    def unit_relations(self) -> Iterable[tuple[Any, ...]]:
        """Return that output and input have one unit."""
        return [(self.u, self.y)]

    def calc_y(self, context: Any) -> Array:
        """Return the nearest multiple of the interval."""
        q, u = self.interval(context), self.u(context)
        return self.with_slope_of(q * np.rint(u / q), u)

    def linear_remark(self, context: Any) -> str | None:
        """Return that it rounds."""
        return f"it rounds to multiples of {show(self.interval(context))}"


class RateLimiter(ContinuousOrSampled):
    """Rate limiter: follows the input with a limited rate, continuous or sampled.

    In continuous time it follows with a lag,
    ``dy/dt = min(max((u - y) / time_constant, -falling), rising)``, component by component. While
    the input is farther away than ``time_constant`` times the rate, y moves at that rate; closer
    to the input, it approaches like a first-order lag. With a period
    ``y[k+1] = y[k] + min(max(u[k] - y[k], -falling period), rising period)``. y is state, so there
    is no feedthrough.

    Parameters
    ----------
    name : str
        Name within the surrounding diagram.
    rising, falling : float or array_like, shape (size,)
        Largest speeds upward and downward, both >= 0, in units of u per second; the parameters
        ``rising`` and ``falling``. They may be infinite; zero stops that direction.
    time_constant : float or array_like, shape (size,), optional
        Time constant of the final approach in seconds, positive, the parameter
        ``time_constant``. Short ones make the equation stiff. Required in continuous time; a
        sampled limiter has none.
    size : int, optional
        Size of u and y; by default that of the parameters.
    initial : float or array_like, shape (size,)
        y in new contexts, the default of the state ``x``.
    period : float, optional
        Time between two samples in seconds, positive; continuous time when omitted.
    offset : float
        Time of the first sample in seconds, not negative.
    linearize_as : {"exact", "gain"}
        How the block enters linear models: with its own slopes, zero where the rate is at a limit,
        or as if there were no limits.

    Raises
    ------
    DeclarationError
        When the sizes differ, there is a time constant with a period or neither of both, the
        period is not positive and finite, or the offset is negative.
    ValueRefusedError
        When a rate is negative, or the time constant is not positive and finite.

    See Also
    --------
    Saturation : Limit the signal itself.

    Examples
    --------
    >>> import flexure as fx
    >>> limiter = fx.RateLimiter("limiter", rising=2.0, falling=1.0, time_constant=0.01)
    >>> context = limiter.create_default_context()
    >>> limiter.u.fix(context, 5.0)
    >>> limiter.eval_time_derivatives(context)
    array([2.])
    >>> fx.RateLimiter("limiter", rising=2.0, falling=1.0, period=0.1).periods
    (0.1,)
    """

    def __init__(
        self,
        name: str,
        rising: npt.ArrayLike,
        falling: npt.ArrayLike,
        time_constant: npt.ArrayLike | None = None,
        size: int | None = None,
        initial: npt.ArrayLike = 0.0,
        *,
        period: float | None = None,
        offset: float = 0.0,
        linearize_as: LinearizeAs = "exact",
    ) -> None:
        super().__init__(name)
        self.linearize_as = linearization(self, linearize_as)
        if (time_constant is None) == (period is None):
            found = "neither" if period is None else "both"
            raise refusal(self, "a time_constant, or a period without it", found)
        lag = {} if time_constant is None else {"time_constant": time_constant}
        size = common_size(self, size, rising=rising, falling=falling, initial=initial, **lag)
        self.rising, self.falling = (
            self.declare_numeric_parameter(
                name, value, unit="1/s", lower=0.0, allow_infinite=True, doc=f"largest {name} speed"
            )
            for name, value in (("rising", rising), ("falling", falling))
        )
        if time_constant is not None:
            self.time_constant = self.declare_numeric_parameter(
                "time_constant",
                time_constant,
                unit="s",
                lower=0.0,
                exclusive=True,
                doc="time constant of the final approach",
            )
        self.declare_x(size, initial, period, offset, doc="y")
        self.u = self.declare_vector_input("u", size)
        self.y = self.declare_vector_output("y", size, self.x, prerequisites=[self.x])

    def unit_relations(self) -> Iterable[tuple[Any, ...]]:
        """Return that output, state and input have one unit."""
        return [(self.u, self.x, self.y)]

    def advance(self, context: Any) -> Array:
        """Return the limited rate of the lag, or the state moved toward the input."""
        x, rising, falling = self.x(context), self.rising(context), self.falling(context)
        wanted = self.u(context) - x
        if self.period is None:
            wanted = wanted / self.time_constant(context)
            return self.with_slope_of(scalars.clip(wanted, -falling, rising), wanted)
        change = scalars.clip(wanted, -falling * self.period, rising * self.period)
        return x + self.with_slope_of(change, wanted)

    def linear_remark(self, context: Any) -> str | None:
        """Describe the limit that the rate is at, if any."""
        lag = self.time_constant(context) if self.period is None else self.period
        rate = (self.u(context) - self.x(context)) / lag
        rising, falling = self.rising(context), self.falling(context)
        if not np.any((rate > rising) | (rate < -falling)):
            return None
        limits = f"{show(-falling)} or {show(rising)}"
        return f"its input asks for a rate of {show(rate)}, beyond {limits}"


class Relay(LeafSystem):
    """Relay with hysteresis: on above one threshold and off below another.

    ``y = on_value`` after u has reached ``on_threshold``, until it falls to ``off_threshold``;
    then ``y = off_value`` until it reaches ``on_threshold`` again. u and y have size 1. y depends
    on the state ``mode`` alone (1.0 when on, 0.0 when off), so there is no feedthrough.

    Parameters
    ----------
    name : str
        Name within the surrounding diagram.
    on_threshold, off_threshold : float
        Inputs at which the relay switches, ``off_threshold < on_threshold``; the parameters of
        these names.
    on_value, off_value : float
        Outputs, the parameters of these names.
    initially_on : bool
        The mode in new contexts. It only matters while u has not left the band between the
        thresholds: a simulation that starts outside of it starts with the right mode.

    Raises
    ------
    DeclarationError
        When ``off_threshold`` is not below ``on_threshold``.

    See Also
    --------
    PortSwitch : Choose one of several signals.
    Quantizer : Round a signal to steps.

    Notes
    -----
    A witness function finds the instant at which u, moving continuously, crosses a threshold. A
    jump of u switches at its instant, whether a source makes it or the update of another block.

    Examples
    --------
    >>> import flexure as fx
    >>> heater = fx.Relay("heater", on_threshold=1.0, off_threshold=-1.0, on_value=500.0)
    >>> context = heater.create_default_context()
    >>> heater.y(context)
    array([0.])
    >>> heater.mode.set(context, 1.0)
    >>> heater.y(context)
    array([500.])
    """

    def __init__(
        self,
        name: str,
        on_threshold: float,
        off_threshold: float,
        on_value: float = 1.0,
        off_value: float = 0.0,
        *,
        initially_on: bool = False,
    ) -> None:
        super().__init__(name)
        self.on_threshold = self.declare_numeric_parameter(
            "on_threshold", on_threshold, doc="input at which the relay switches on"
        )
        self.off_threshold = self.declare_numeric_parameter(
            "off_threshold", off_threshold, doc="input at which the relay switches off"
        )
        self.on_value = self.declare_numeric_parameter("on_value", on_value, doc="output when on")
        self.off_value = self.declare_numeric_parameter(
            "off_value", off_value, doc="output when off"
        )
        for threshold in (self.on_threshold, self.off_threshold):
            if threshold.shape:
                raise refusal(self, f"one number for {threshold.name}", f"shape {threshold.shape}")
        self.declare_relation(self.off_threshold, "<", self.on_threshold)
        self.mode = self.declare_discrete_state(
            "mode", float(flag(self, "initially_on", initially_on)), doc="1 on, 0 off"
        )
        self.u = self.declare_vector_input("u", 1)
        self.y = self.declare_vector_output("y", 1, self.calc_y, prerequisites=[self.mode])
        for trigger in (Initialization(), Witness(self.calc_margin, "falling"), Settling()):
            self.declare_discrete_update(self.update_mode, trigger)

    def calc_y(self, context: Any) -> Array:
        """Return the value that belongs to the mode."""
        is_on = self.mode(context) > 0.5
        return np.where(is_on, self.on_value(context), self.off_value(context))

    def calc_margin(self, context: Any) -> Any:
        """Return how far the input is from the threshold that ends the present mode."""
        u, is_on = self.u(context)[0], self.mode(context)[0] > 0.5
        return scalars.where(is_on, u - self.off_threshold(context), self.on_threshold(context) - u)

    def linear_remark(self, context: Any) -> str:
        """Return the mode, which no small motion changes."""
        return f"it stays {'on' if self.mode(context)[0] > 0.5 else 'off'} in small motions"

    def update_mode(self, context: Any) -> dict[Any, Array]:
        """Return the mode that the input demands, or else the present one."""
        u = self.u(context)
        kept = np.where(u <= self.off_threshold(context), 0.0, self.mode(context))
        return {self.mode: np.where(u >= self.on_threshold(context), 1.0, kept)}
