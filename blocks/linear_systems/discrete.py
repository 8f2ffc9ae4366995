"""Sampled blocks: their state changes at the times offset + k period, and only then.

Two conventions meet here. All updates of one instant read the values before any of them. So u[k],
the k-th sample of a signal, is its value just before the updates of tₖ = offset + k period, and for
blocks of one period and offset the difference equations in their docstrings hold with these
samples, however they are wired.

A *continuous* block, or a plot, sees what an output is between the samples. `ZeroOrderHold`,
`UnitDelay` and `DiscreteDerivative` hold their outputs constant there. The output of
`StateSpace`, `TransferFunction` and `DiscreteIntegrator` is an expression of the
next state and, with feedthrough, of the moving input; a `ZeroOrderHold` behind them makes it the
held y[k].
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from flexure.blocks.signals.argument_shapes import full, one_of
from flexure.diagrams.systems.leaf import LeafSystem
from flexure.diagrams.values.arrays import Array, check_size
from flexure.diagrams.values.events import Periodic

#: Rule by which a discrete integrator adds up its samples.
IntegrationRule: TypeAlias = Literal["forward", "backward", "trapezoidal"]
#: How much of the present sample each rule counts.
_PRESENT_PART = {"forward": 0.0, "backward": 1.0, "trapezoidal": 0.5}


class ZeroOrderHold(LeafSystem):
    """Zero-order hold: samples and holds, ``y(t) = u(tₖ)`` for tₖ < t ≤ tₖ₊₁.

    Parameters
    ----------
    name : str
        Name of the block.
    period : float
        Sampling period in s.
    offset : float
        Time of the first sample in s.
    size : int
        Number of components.
    initial : float or array_like, shape (size,)
        What is held before the first sample.

    Attributes
    ----------
    u : InputPort
        Input "u", of ``size``.
    x : DiscreteState
        State "x", the held sample.
    y : LeafOutputPort
        Output "y", of ``size``; depends on the state alone.

    Raises
    ------
    DeclarationError
        When the period is not positive or the offset is negative.

    See Also
    --------
    UnitDelay : The sample before the last one.

    Notes
    -----
    A sampled block of the same period and offset reads, at tₖ, what the hold had before:
    y[k] = u[k−1]. Among such blocks the hold is the shift operator z⁻¹. See `UnitDelay` for a
    signal that is one period late between the samples, too.

    Examples
    --------
    >>> import flexure as fx
    >>> hold = fx.ZeroOrderHold("hold", period=0.1)
    >>> hold.periods, hold.feedthrough
    ((0.1,), frozenset())
    """

    def __init__(
        self,
        name: str,
        period: float,
        offset: float = 0.0,
        size: int = 1,
        initial: npt.ArrayLike = 0.0,
    ) -> None:
        super().__init__(name)
        size = check_size(size, f"'{name}'", minimum=1)
        self.u = self.declare_vector_input("u", size)
        start = full(self, "initial", initial, size)
        self.x = self.declare_discrete_state("x", start, doc="held sample")
        self.declare_discrete_update(self.sample, Periodic(period, offset))
        self.y = self.declare_vector_output("y", size, self.x, prerequisites=[self.x])

    def unit_relations(self) -> Iterable[tuple[Any, ...]]:
        """Return that output, state and input have one unit."""
        return [(self.u, self.x, self.y)]

    def sample(self, context: Any) -> dict[Any, Array]:
        """Take the input."""
        return {self.x: self.u(context)}


class UnitDelay(LeafSystem):
    """The sample before the last one, held: ``y(t) = u(tₖ₋₁)`` for tₖ < t ≤ tₖ₊₁.

    This is the output of a `ZeroOrderHold`, exactly one period later. It takes two stages of
    state, the samples of tₖ and of tₖ₋₁, because a single one already shows u(tₖ) right after tₖ.

    Parameters
    ----------
    name : str
        Name of the block.
    period : float
        Sampling period in s.
    offset : float
        Time of the first sample in s.
    size : int
        Number of components.

    Attributes
    ----------
    u : InputPort
        Input "u", of ``size``.
    x : DiscreteState
        State "x" of twice ``size``: the last sample, then the one before; zeros at first.
    y : LeafOutputPort
        Output "y", of ``size``; depends on the state alone.

    Raises
    ------
    DeclarationError
        When the period is not positive or the offset is negative.

    See Also
    --------
    TimeDelay : Transport delay by a line of samples.

    Notes
    -----
    In a difference equation built of sampled blocks of one period and offset, z⁻¹ is a
    `ZeroOrderHold`: a block that samples this output at tₖ reads, before the update, u(tₖ₋₂).

    Examples
    --------
    >>> import flexure as fx
    >>> delay = fx.UnitDelay("delay", period=0.1)
    >>> context = delay.create_default_context()
    >>> delay.x.set(context, [7.0, 6.0])
    >>> delay.y.eval(context)
    array([6.])
    """

    def __init__(self, name: str, period: float, offset: float = 0.0, size: int = 1) -> None:
        super().__init__(name)
        self.size = check_size(size, f"'{name}'", minimum=1)
        self.u = self.declare_vector_input("u", size)
        self.x = self.declare_discrete_state("x", np.zeros(2 * size), doc="last two samples")
        self.declare_discrete_update(self.sample, Periodic(period, offset))
        self.y = self.declare_vector_output("y", size, self.calc_output, prerequisites=[self.x])

    def unit_relations(self) -> Iterable[tuple[Any, ...]]:
        """Return that output, both samples and input have one unit."""
        size = self.y.size or 0
        return [(self.u, self.y, (self.x, slice(size)), (self.x, slice(size, None)))]

    def sample(self, context: Any) -> dict[Any, Array]:
        """Take the input and pass the last sample on."""
        return {self.x: np.concatenate([self.u(context), self.x(context)[: self.size]])}

    def calc_output(self, context: Any) -> Array:
        """Return the older sample."""
        return self.x(context)[self.size :]


class DiscreteIntegrator(LeafSystem):
    """Sum of samples times the period T, with one of three rules.

    The update is ``x[k+1] = x[k] + T u[k]``, and the output::

        forward       y[k] = x[k]               T / (z − 1)          no feedthrough
        backward      y[k] = x[k] + T u[k]      T z / (z − 1)        feedthrough
        trapezoidal   y[k] = x[k] + T/2 u[k]    T/2 (z + 1)/(z − 1)  feedthrough

    Parameters
    ----------
    name : str
        Name of the block.
    period : float
        Sampling period T in s.
    method : {"forward", "backward", "trapezoidal"}
        The rule.
    offset : float
        Time of the first sample in s.
    size : int
        Number of components.
    initial : float or array_like, shape (size,)
        State in new contexts, in the unit of the input times s.

    Attributes
    ----------
    u : InputPort
        Input "u", of ``size``.
    x : DiscreteState
        State "x", the sum.
    y : LeafOutputPort
        Output "y", of ``size``.

    Raises
    ------
    DeclarationError
        When the rule is unknown, the period is not positive, or a shape does not fit.

    See Also
    --------
    Integrator : Integral of the input.

    Notes
    -----
    The input before the first sample counts as zero, so the trapezoidal rule begins with half of
    the first sample.

    Examples
    --------
    >>> import flexure as fx
    >>> total = fx.DiscreteIntegrator("total", 0.1, method="backward", initial=1.0)
    >>> context = total.create_default_context()
    >>> total.u.fix(context, 5.0)
    >>> total.y.eval(context)
    array([1.5])
    """

    def __init__(
        self,
        name: str,
        period: float,
        method: IntegrationRule = "forward",
        offset: float = 0.0,
        size: int = 1,
        initial: npt.ArrayLike = 0.0,
    ) -> None:
        super().__init__(name)
        one_of(self, "method", method, _PRESENT_PART)
        size = check_size(size, f"'{name}'", minimum=1)
        clock = Periodic(period, offset)
        self.period = period
        self._direct = _PRESENT_PART[method] * period
        start = full(self, "initial", initial, size)
        self.u = self.declare_vector_input("u", size)
        self.x = self.declare_discrete_state("x", start, doc="sum of samples times period")
        self.declare_discrete_update(self.add, clock)
        if method == "forward":
            self.y = self.declare_vector_output("y", size, self.x, prerequisites=[self.x])
        else:
            self.y = self.declare_vector_output(
                "y", size, self.calc_output, prerequisites=[self.x, self.u]
            )

    def unit_relations(self) -> Iterable[tuple[Any, ...]]:
        """Return that state and output have the unit of the input times s."""
        return [(self.u, self.x, self.y, "s")]

    def add(self, context: Any) -> dict[Any, Array]:
        """Add the input times the period."""
        return {self.x: self.x(context) + self.period * self.u(context)}

    def calc_output(self, context: Any) -> Array:
        """Return the sum with its part of the present input."""
        return self.x(context) + self._direct * self.u(context)


class DiscreteDerivative(LeafSystem):
    """Difference quotient of the last two samples: ``y(t) = (u(tₖ) − u(tₖ₋₁)) / T``.

    It holds for t > tₖ, up to and including the next sampling instant.

    Parameters
    ----------
    name : str
        Name of the block.
    period : float
        Sampling period T in s.
    offset : float
        Time of the first sample in s.
    size : int
        Number of components.

    Attributes
    ----------
    u : InputPort
        Input "u", of ``size``.
    last : DiscreteState
        State "last", the last sample.
    rate : DiscreteState
        State "rate", the held difference; zero until there are two samples.
    started : DiscreteState
        State "started", 1 as soon as there is a sample.
    y : LeafOutputPort
        Output "y", of ``size``; depends on the state alone.

    Raises
    ------
    DeclarationError
        When the period is not positive or the offset is negative.

    See Also
    --------
    FilteredDerivative : Time derivative of the input.

    Notes
    -----
    The difference is the derivative half a period ago, and that of a jump is as high as the
    period is short; `FilteredDerivative` is the continuous counterpart.

    Examples
    --------
    >>> import flexure as fx
    >>> rate = fx.DiscreteDerivative("rate", period=0.1, size=3)
    >>> rate.y.size, rate.feedthrough
    (3, frozenset())
    """

    def __init__(self, name: str, period: float, offset: float = 0.0, size: int = 1) -> None:
        super().__init__(name)
        size = check_size(size, f"'{name}'", minimum=1)
        self.period = period
        self.u = self.declare_vector_input("u", size)
        self.last = self.declare_discrete_state("last", np.zeros(size))
        self.rate = self.declare_discrete_state("rate", np.zeros(size))
        self.started = self.declare_discrete_state("started", 0.0)
        self.declare_discrete_update(self.sample, Periodic(period, offset))
        self.y = self.declare_vector_output("y", size, self.rate, prerequisites=[self.rate])

    def unit_relations(self) -> Iterable[tuple[Any, ...]]:
        """Return that the last sample has the unit of the input, and the output that per s."""
        return [(self.u, self.last), (self.u, self.rate, self.y, "1/s")]

    def sample(self, context: Any) -> dict[Any, Any]:
        """Take the input and its difference to the last sample."""
        u = self.u(context)
        rate = self.started(context) * (u - self.last(context)) / self.period
        return {self.last: u, self.rate: rate, self.started: 1.0}
