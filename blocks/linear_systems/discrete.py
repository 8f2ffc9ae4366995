"""Sampled blocks without a counterpart in continuous time: hold and unit delay.

`continuous_or_sampled` states the conventions of sampled blocks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.signals.argument_shapes import full
from flexure.diagrams.systems.leaf import LeafSystem
from flexure.diagrams.values.arrays import Array, check_size
from flexure.diagrams.values.events import Periodic


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
