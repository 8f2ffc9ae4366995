"""Lines of discrete values that an update passes on, such as the samples of a delay.

Most of what the update of a long delay does is to give each value the one before it. Loops move
such a line as a whole, and rows of a run do not repeat it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

#: Values from which on a line is moved as a whole; short ones are values like any other.
_LONG = 100
#: Lines of one system, which a mask has room for.
MOST_LINES = 60


@dataclass(frozen=True)
class Line:
    """Discrete values in a row, of which an update gives each the value some places before."""

    # start, end: where it begins, with the values that the update computes, and ends.
    start: int
    end: int
    apart: int  # how far values are moved, which is also the number of those that are computed


def find_line(
    expressions: Sequence[Any], targets: Sequence[int], source: Callable[[Any], int | None]
) -> Line | None:
    """Return the longest line that an update passes on, if there is a long one.

    The ``expressions`` of the update go to ``targets``, places of discrete values, negative for
    states. ``source`` gives the place of the discrete value that an expression is, or None.
    """
    longest: tuple[int, int, int] | None = None
    begin, last = 0, (0, 0)
    for target, expression in zip(targets, expressions, strict=True):
        place = source(expression)
        if place is None or not 0 <= place < target:
            last = 0, 0
            continue
        if last != (target - 1, place - 1):
            begin = target
        last = target, place
        if longest is None or target - begin > longest[1] - longest[0]:
            longest = begin, target, target - place
    if longest is None or longest[1] - longest[0] + 1 < _LONG:
        return None
    first, end, apart = longest
    if not set(range(first - apart, first)) <= set(targets):
        return None
    return Line(first - apart, end + 1, apart)
