"""Integrators, lags and derivatives: blocks with one continuous state per component."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.signals.argument_shapes import flag, full, per_component, refusal, through_gain
from flexure.diagrams.systems.leaf import LeafSystem
from flexure.diagrams.systems.ports import InputPort
from flexure.diagrams.values.arrays import Array, FloatArray, check_size, show
from flexure.diagrams.values.events import Initialization, Settling, Witness
from flexure.diagrams.values.parameters import NumericParameter
from flexure.diagrams.values.state import DiscreteState

#: Stands for the distance to a limit that is infinite: witness functions are finite.
_FAR = 1e100
#: Added to a witness function that may rest at zero, so that it falls when it becomes negative.
_TINY = 1e-300


class Integrator(LeafSystem):
    """Integral of the input, with optional limits and an optional reset.

    Without limits ``ẋ = u, y = x``. With limits, component by component::

        ẋ = 0   where x ≥ upper and u > 0, or x ≤ lower and u < 0
        ẋ = u   elsewhere
        y = x limited to [lower, upper]

    so that the integral stops at a limit, and leaves it at once when the input turns around.

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
    x : ContinuousState
        State "x", the integral.
    mode : DiscreteState
        State "mode" of ``size``, only with limits: 1 while a simulation holds the state at the
        upper limit, -1 at the lower one, 2 while it is free. It is 0 until a simulation starts.
    y : LeafOutputPort
        Output "y", of ``size``; depends on the state alone.
    lower, upper : NumericParameter
        Parameters "lower" and "upper", only with limits; one of them may be infinite. Keep
        ``lower`` ≤ ``upper``.

    Raises
    ------
    DeclarationError
        When a shape does not fit, or the initial state is not within the limits.

    See Also
    --------
    DiscreteIntegrator : Sum of samples times the period T.

    Notes
    -----
    A witness function per component and limit finds the instant at which a limit is hit, where the
    state is put exactly on the limit and held, and then the instant at which the input turns
    around. A state beyond the limits is put on them before time goes on.

    A reset takes place at the very instant at which its signal rises through 0.5, in continuous
    motion or in a jump that a source or a sampled block makes. A signal that is high from the
    beginning does not reset.

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
    """

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
    ) -> None:
        super().__init__(name)
        size = check_size(size, f"'{name}'", minimum=1)
        start = full(self, "initial", initial, size)
        low = per_component(self, "lower", lower, size)
        high = per_component(self, "upper", upper, size)
        if not np.all((low <= start) & (start <= high)):
            found = f"lower={low.tolist()}, initial={start.tolist()}, upper={high.tolist()}"
            raise refusal(self, "lower <= initial <= upper", found)
        self.has_limits = bool(np.isfinite(low).any() or np.isfinite(high).any())
        self.has_reset = flag(self, "reset", reset)
        self.u = self.declare_vector_input("u", size, doc="integrand")
        self.x = self.declare_continuous_state(z=size, default=start, doc="integral")
        if self.has_limits:
            self._declare_limits(low, high, size)
        if self.has_reset:
            self._declare_reset(start)
        if self.has_limits or self.has_reset:
            for trigger in (Initialization(), Settling()):
                self.declare_unrestricted_update(self.change_state, trigger)
        calc = self.calc_output if self.has_limits else self.x
        self.y = self.declare_vector_output("y", size, calc, prerequisites=[self.x])

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
        """Tell whether the state is held at a limit."""
        held = self.has_limits and np.any(self.calc_time_derivatives(context) != self.u(context))
        return f"its state {show(self.x(context))} is held at a limit" if held else None

    def calc_output(self, context: Any) -> Array:
        """Return the state within the limits."""
        return np.clip(self.x(context), self.lower(context), self.upper(context))

    def change_state(self, context: Any) -> dict[Any, Array]:
        """Put the state on the reset value at a rising edge, and on a limit that it has passed.

        It is held at a limit until the input leads away from there.
        """
        x = self.x(context)
        changes = {}
        if self.has_reset:
            is_high = self.reset(context) >= 0.5
            was_low = self.reset_level(context) < 0.5
            x = np.where(is_high & was_low, self.reset_value(context), x)
            changes[self.reset_level] = np.where(is_high, 1.0, 0.0)
        if self.has_limits:
            u, lower, upper = self.u(context), self.lower(context), self.upper(context)
            x = np.clip(x, lower, upper)
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
    """Time derivative of the input, smoothed by a first-order lag.

    ``y = (u − x) / τ, ẋ = (u − x) / τ``, which is the transfer function s / (τ s + 1): slow
    changes are differentiated, and above 1/τ rad/s the gain stays at 1/τ.

    Parameters
    ----------
    name : str
        Name of the block.
    time_constant : float or array_like, shape (size,)
        τ, positive, in s.
    size : int
        Number of components.
    start_at_rest : bool
        Whether the state takes the value of the input when a simulation starts, so that the
        derivative begins at zero. Otherwise it begins at (u − x) / τ, a kick of height u/τ from
        the default state 0.

    Attributes
    ----------
    u : InputPort
        Input "u", of ``size``.
    x : ContinuousState
        State "x", the input after a lag.
    started : DiscreteState
        State "started", only with ``start_at_rest``: 0 until a simulation has started, so that
        one that is continued goes on with its state. Set it to 1 to start from a state of
        your own.
    y : LeafOutputPort
        Output "y", of ``size``; needs the input at once.
    time_constant : NumericParameter
        Parameter "time_constant".

    Raises
    ------
    DeclarationError
        When a shape does not fit.
    ValueRefusedError
        When the time constant is not positive.

    See Also
    --------
    DiscreteDerivative : Difference quotient of the last two samples.

    Notes
    -----
    For a ramp of slope r the error after the start dies out as exp(−t/τ). Drake's sampled
    ``DiscreteDerivative`` suppresses its initial transient likewise; plain transfer-function
    blocks start at zero and kick.

    Examples
    --------
    >>> import flexure as fx
    >>> rate = fx.FilteredDerivative("rate", time_constant=0.1)
    >>> context = rate.create_default_context()
    >>> rate.u.fix(context, 2.0)
    >>> rate.x.set(context, 1.5)
    >>> rate.y.eval(context)
    array([5.])
    """

    def __init__(
        self,
        name: str,
        time_constant: npt.ArrayLike,
        size: int = 1,
        start_at_rest: bool = True,
    ) -> None:
        super().__init__(name)
        size = check_size(size, f"'{name}'", minimum=1)
        self.time_constant = _declare_time_constant(self, time_constant, size)
        self.u = self.declare_vector_input("u", size)
        self.x = self.declare_continuous_state(z=size, doc="lagged input")
        if flag(self, "start_at_rest", start_at_rest):
            self.started = self.declare_discrete_state("started", 0.0)
            self.declare_unrestricted_update(self.start, Initialization())
        self.y = self.declare_vector_output(
            "y", size, self.calc_rate, prerequisites=[self.u, self.x]
        )

    def unit_relations(self) -> Iterable[tuple[Any, ...]]:
        """Return that the state has the unit of the input, and the output that per s."""
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


def _declare_time_constant(
    block: LeafSystem, time_constant: npt.ArrayLike, size: int
) -> NumericParameter:
    return block.declare_numeric_parameter(
        "time_constant",
        per_component(block, "time_constant", time_constant, size),
        unit="s",
        lower=0.0,
        exclusive=True,
        doc="time in which 63 % of a step is done",
    )
