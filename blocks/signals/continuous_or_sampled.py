"""Parts shared by blocks that move in continuous time or, with a period, from sample to sample.

Two conventions meet in sampled blocks. All updates of one instant read the values before any of
them. So u[k], the k-th sample of a signal, is its value just before the updates of
tₖ = offset + k period, and for blocks of one period and offset the difference equations in their
docstrings hold with these samples, however they are wired.

A *continuous* block, or a plot, sees what an output is between the samples. `ZeroOrderHold`,
`UnitDelay` and a sampled `FilteredDerivative` hold their outputs constant there. The output of a
sampled `StateSpace`, `TransferFunction` or `Integrator` is an expression of the next state and,
with feedthrough, of the moving input; a `ZeroOrderHold` behind them makes it the held y[k].
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy.typing as npt

from flexure.blocks.signals.argument_shapes import full, refusal
from flexure.diagrams.systems.leaf import LeafSystem
from flexure.diagrams.values.arrays import Array
from flexure.diagrams.values.events import Periodic
from flexure.diagrams.values.state import ContinuousState, DiscreteState


def sampling(block: LeafSystem, period: float | None, offset: float) -> Periodic | None:
    """Return when a block is sampled, or None in continuous time, where there is no offset."""
    clock = Periodic(1.0 if period is None else period, offset)
    if period is None and offset != 0.0:
        expected = "no offset without a sampling period"
        raise refusal(block, expected, f"offset={offset!r}", "Pass period= in s")
    return clock if period is not None else None


class ContinuousOrSampled(LeafSystem):
    """Base class of blocks with one state x, which has the same form in both kinds of time."""

    x: ContinuousState | DiscreteState
    period: float | None  # in s; None in continuous time

    def declare_x(
        self,
        size: int,
        initial: npt.ArrayLike | None,
        period: float | None,
        offset: float,
        doc: str = "",
    ) -> None:
        """Declare the state, and the update that changes it if it is sampled."""
        start = full(self, "initial", 0.0 if initial is None else initial, size)
        clock = sampling(self, period, offset)
        self.period = period
        if clock is None:
            self.x = self.declare_continuous_state(z=size, default=start, doc=doc)
        else:
            self.x = self.declare_discrete_state("x", start, doc=doc)
            self.declare_discrete_update(self.update_state, clock)

    @abstractmethod
    def advance(self, context: Any) -> Array:
        """Return the derivative of the state, or the next state."""

    def calc_time_derivatives(self, context: Any) -> Array:
        """Return the derivative of the state."""
        return self.advance(context)

    def update_state(self, context: Any) -> dict[Any, Array]:
        """Go on to the next state."""
        return {self.x: self.advance(context)}
