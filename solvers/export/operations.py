"""Kernels of NumPy's operations that other languages lack, or give other results for.

They are for translation alone: Python refuses to divide by zero.
"""

from __future__ import annotations

import math

from flexure.solvers.native.language.language import ceil

EXACT = True


def sign(a: float) -> float:
    """Return -1, 0 or 1, or what is no number."""
    return 1.0 if a > 0.0 else (-1.0 if a < 0.0 else a + 0.0)


def maximum(a: float, b: float) -> float:
    """Return the larger number, or what is no number."""
    return a if a >= b or a != a else b


def minimum(a: float, b: float) -> float:
    """Return the smaller number, or what is no number."""
    return a if a <= b or a != a else b


def remainder_of(a: float, b: float) -> float:
    """Return the remainder, which has the sign of the divisor."""
    rest = math.fmod(a, b)
    if b == 0.0:
        return rest
    if rest == 0.0:
        return math.copysign(0.0, b)
    return rest + b if (b < 0.0) != (rest < 0.0) else rest


def floor_divide(a: float, b: float) -> float:
    """Return the quotient rounded down, consistent with the remainder."""
    rest = math.fmod(a, b)
    plain = a / b
    if b == 0.0:
        return plain
    quotient = (a - rest) / b
    if rest != 0.0 and (b < 0.0) != (rest < 0.0):
        quotient -= 1.0
    if quotient == 0.0:
        return math.copysign(0.0, plain)
    down = -ceil(-quotient)
    return down + 1.0 if quotient - down > 0.5 else down
