"""Choices among numbers of one array, as choices of a place: what the samples of a delay come to.

To pick one of n numbers by comparisons takes n choices, in which all of the numbers meet. Where
they lie side by side, each condition adds a distance to a place instead, and one number is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from flexure.diagrams import scalars


@dataclass(frozen=True)
class SelectedPlace:
    """Where the number is that several conditions choose."""

    position: int  # its place in the environment where none of the conditions holds
    # The nodes of the conditions, each with what it adds to the place where it holds.
    distances: tuple[tuple[int, int], ...] = ()
    conditions: tuple[scalars.Symbol, ...] = field(default=(), compare=False)

    def load(self, conditions: Sequence[str], write: Callable[[str], str]) -> str:
        """Write how the number is read, when it is known how the conditions are written."""
        position = str(self.position)
        for condition, (_, distance) in zip(conditions, self.distances, strict=True):
            more = write(f"select i1 {condition}, i64 {distance}, i64 0")
            position = write(f"add i64 {position}, {more}")
        address = write(f"getelementptr inbounds double, ptr %env, i64 {position}")
        return write(f"load double, ptr {address}, align 8")


def selected_places(
    order: Sequence[scalars.Symbol], places: Mapping[int, tuple[str, int]]
) -> dict[int, SelectedPlace]:
    """Return the choices by two conditions or more that are choices of a place, by node.

    ``order`` has operations after their operands; ``places`` is where other numbers are, by node.
    """
    found: dict[int, SelectedPlace] = {}

    def place_of(node: scalars.Symbol) -> SelectedPlace | None:
        array, position = places.get(node.index, ("", 0))
        return SelectedPlace(position) if array == "env" else found.get(node.index)

    for node in order:
        if node.op == "where":
            condition, first, second = node.args
            a, b = place_of(first), place_of(second)
            if a is not None and b is not None and a.distances == b.distances:
                distances = (*b.distances, (condition.index, a.position - b.position))
                conditions = (*b.conditions, condition)
                found[node.index] = SelectedPlace(b.position, distances, conditions)
    return {index: place for index, place in found.items() if len(place.distances) > 1}
