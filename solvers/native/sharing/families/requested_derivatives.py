"""What is asked of the blocks of a system: the derivatives that runs need, or what analyses read.

An analysis reads outputs besides derivatives, and differentiates by inputs and parameters besides
states. Those *varied* numbers follow the states in the vector of states, and are as these for all
that comes behind: the walk, the jobs, and the ways to a Jacobian.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from flexure.diagrams.concurrency.threads import cached_property
from flexure.diagrams.values.symbolic_values import INPUT, PARAMETER, Key
from flexure.solvers.tracing.trace import SymbolicStore


class Reading(Protocol):
    """What is read of a block with a state, from a store of symbols for this block alone.

    It is part of the key under which code is kept, and so can be hashed and compared.
    """

    def begin(self, store: SymbolicStore) -> None:
        """Put what is known of the block into its store, before anything is read."""

    def __call__(self, store: SymbolicStore) -> Sequence[Any]:
        """Return what is asked, at most as many expressions as the block has states."""


@dataclass(frozen=True)
class Derivatives:
    """Reads the derivatives."""

    def begin(self, store: SymbolicStore) -> None:
        """Leave everything as it is."""

    def __call__(self, store: SymbolicStore) -> Sequence[Any]:
        """Return the derivatives of all states."""
        return list(store.time_derivatives())


@dataclass(frozen=True)
class Question:
    """What is asked of the blocks of a system."""

    # Slots, and which of their components are asked for; None for the states.
    shown: tuple[tuple[int | None, tuple[int, ...]], ...] = ()
    # Components of inputs from outside and parameters that change as states do.
    varied: tuple[Key, ...] = ()
    reading: Reading = field(default_factory=Derivatives)  # what is asked of blocks with a state
    # Whether blocks that are to pass as gains in linear models have the slopes of gains.
    as_gain: bool = False

    @property
    def num_shown(self) -> int:
        """How many components are asked for."""
        return sum(len(components) for _, components in self.shown)

    @cached_property
    def places(self) -> dict[Key, int]:
        """Where varied numbers are behind the states: those of a block next to each other."""
        return {key: place for place, key in enumerate(sorted(self.varied))}

    def varied_of(self, position: int) -> list[tuple[tuple[int, int], int]]:
        """Return the varied components of parameters of a block, by index, with their places."""
        return [
            ((index, component), place)
            for ((what, where, index), component), place in self.places.items()
            if what == PARAMETER and where == position
        ]

    def place_of_input(self, slot: int, component: int) -> int | None:
        """Return the place of a component of an input, None if it is not varied."""
        return self.places.get(((INPUT, slot, 0), component))


#: What runs ask.
OF_RUNS = Question()
