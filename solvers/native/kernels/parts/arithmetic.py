"""Small kernels of arithmetic; a comparison with NaN fails, as it does in Python."""

from __future__ import annotations

import math

from flexure.solvers.native.language.language import Floats, Real, Reals, ceil, nextafter, where

EXACT = True  # every operation rounds by itself
INFINITY = math.inf
NAN = math.nan


def larger(a: Real, b: Real) -> Real:
    """Return Python's ``max(a, b)``."""
    return where(b > a, b, a)


def smaller(a: Real, b: Real) -> Real:
    """Return Python's ``min(a, b)``."""
    return where(b < a, b, a)


def spacing(a: float) -> float:
    """Return the distance to the next larger floating-point number."""
    size = abs(a)
    return nextafter(size, INFINITY) - size


def copy(n: int, a: Reals, out: Reals) -> None:
    """Copy numbers."""
    for i in range(n):
        out[i] = a[i]


def all_finite(n: int, a: Floats) -> bool:
    """Return whether all numbers are finite."""
    total = 0.0
    for i in range(n):
        total += a[i] * 0.0
    return total == 0.0


def next_tick(period: float, offset: float, time: float) -> float:
    """Return the next time of a clock, as `flexure.diagrams.values.events.Periodic` computes it.

    The search ends at once, as `Simulator.advance_to` refuses periods that time does not resolve.
    """
    if time < offset:
        return offset
    k = ceil((time - offset) / period) - 1.0
    while offset + k * period <= time:
        k += 1.0
    return offset + k * period
