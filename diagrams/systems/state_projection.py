"""Declarations of states that must satisfy equations, and their projection onto them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flexure.diagrams.checks.arguments import require
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.values.arrays import Array, check_size, conform

#: A pure function of the context that returns a vector, or says something about it.
Calculation = Callable[[Any], Any]


@dataclass(frozen=True, eq=False)
class Projection:
    """How a block tells whether its continuous state is where it belongs, and moves it there."""

    system: Any  # the block
    size: int  # number of deviations
    # ``deviations(context)``: how far the state is away, in units of what is tolerated.
    deviations: Calculation
    # ``projected(context)``: the continuous state (q, v, z), moved to where it belongs, or nearer
    # to it.
    projected: Calculation
    # ``describe(context) -> str`` says for people what is not where it belongs.
    describe: Callable[[Any], str] | None = None

    def __post_init__(self) -> None:
        attempt, error = f"Cannot declare {self.label}", DeclarationError
        state = self.system.continuous_state
        require(state is not None, state, attempt, "a continuous state before it", error=error)
        check_size(self.size, self.label, minimum=1)
        for each in (self.deviations, self.projected):
            require(callable(each), each, attempt, "functions of a context", error=error)
        known = self.describe is None or callable(self.describe)
        require(known, self.describe, attempt, "describe to be a function", error=error)

    @property
    def label(self) -> str:
        """Name for messages."""
        return f"the projection of '{self.system.label}'"

    def calc_deviations(self, context: Any) -> Array:
        """Return the deviations in a context of the block, shape (size,)."""
        return conform(self.deviations(context), self.size, lambda: self.label)

    def calc_projected(self, context: Any) -> Array:
        """Return the projected state in a context of the block."""
        return conform(
            self.projected(context), self.system.continuous_state.size, lambda: self.label
        )

    def description(self, context: Any) -> str:
        """Describe what is not where it belongs."""
        if self.describe is not None:
            return self.describe(context)
        largest = max(map(abs, self.calc_deviations(context).tolist()))
        return f"'{self.system.label}' by {largest:.3g} times its tolerance"


@dataclass(frozen=True, eq=False)
class Tally:
    """How a block takes note of what projections of others change."""

    system: Any  # the block
    size: int  # how many of its last states z add up the changes
    calc: Calculation  # ``calc(context)``: the quantity to compare

    def __post_init__(self) -> None:
        attempt, error = f"Cannot declare {self.label}", DeclarationError
        check_size(self.size, self.label, minimum=1)
        state = self.system.continuous_state
        enough = state is not None and state.num_z >= self.size
        require(enough, state, attempt, f"{self.size} or more states z before it", error=error)
        require(callable(self.calc), self.calc, attempt, "a function of a context", error=error)

    @property
    def label(self) -> str:
        """Name for messages."""
        return f"the tally of '{self.system.label}'"

    def values(self, context: Any) -> Array:
        """Return the quantity in a context of the block, shape (size,)."""
        return conform(self.calc(context), self.size, lambda: self.label)
