"""Parameter continuation with adaptive steps, so that successive results can be matched."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def follow(
    arrive: Callable[[T, float], tuple[T, bool]], here: T, low: float, high: float, halvings: int
) -> list[tuple[float, T]]:
    """Go from one value to another, and return the result there, with the intermediate values.

    ``arrive(here, value) -> (there, known)`` returns what is at a value, continued from here, and
    whether it is alike enough. Steps that are too long are halved at most ``halvings`` times.
    """
    there, known = arrive(here, high)
    middle = 0.5 * (low + high)
    if known or not halvings or middle in (low, high):
        return [(high, there)]
    way = follow(arrive, here, low, middle, halvings - 1)
    return way + follow(arrive, way[-1][1], middle, high, halvings - 1)
