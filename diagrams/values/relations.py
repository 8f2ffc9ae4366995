"""Relations between parameters of one block, such as a lower limit that is below an upper one."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import DeclarationError, ValueRefusedError
from flexure.diagrams.values.arrays import show
from flexure.diagrams.values.parameters import NumericParameter

if TYPE_CHECKING:
    from flexure.diagrams.systems.system import System

#: How the left parameter of a relation compares with the right one.
Comparison = Literal["<", "<="]
COMPARISONS = {"<": operator.lt, "<=": operator.le}


@dataclass(frozen=True)
class Relation:
    """A relation that two parameters of a block must satisfy, element by element.

    Made by `LeafSystem.declare_relation`. A scalar applies to every element of the other one.
    """

    left: NumericParameter
    comparison: Comparison  # how they compare
    right: NumericParameter

    @classmethod
    def checked(cls, block: System, left: Any, comparison: Any, right: Any) -> Relation:
        """Return the relation of two parameters of a block, if their defaults keep it."""
        own = [isinstance(e, NumericParameter) and e.system is block for e in (left, right)]
        known = isinstance(comparison, str) and comparison in COMPARISONS
        if not (all(own) and known):
            raise DeclarationError(
                f"Cannot declare a relation of '{block.label}'",
                expected="two numeric parameters of this block with '<' or '<=' between them",
                found=f"{left!r:.80} {comparison!r:.20} {right!r:.80}",
            )
        relation = cls(left, comparison, right)
        if not relation.holds(left.default, right.default):
            raise DeclarationError(
                f"Cannot make the {type(block).__name__} '{block.name}'",
                expected=str(relation),
                found=relation.found(left.default, right.default),
            )
        return relation

    def holds(self, left: Any, right: Any) -> bool:
        """Return whether values keep it; symbols do, as nothing is known of them."""
        if scalars.is_symbolic(left) or scalars.is_symbolic(right):
            return True
        return bool(np.all(COMPARISONS[self.comparison](left, right)))

    def require(self, left: Any, right: Any) -> None:
        """Refuse values that contradict each other."""
        if not self.holds(left, right):
            raise ValueRefusedError(
                f"Cannot use the parameters of '{self.left.system.label}'",
                expected=str(self),
                found=self.found(left, right),
                remedy="Set both so that they agree, in any order, before they are used",
            )

    def found(self, left: Any, right: Any) -> str:
        """Write the values that contradict each other."""
        return f"{self.left.name}={show(left)}, {self.right.name}={show(right)}"

    def __str__(self) -> str:
        return f"{self.left.name} {self.comparison} {self.right.name}"
