"""The quotients of angles and sines that rotations need, as smooth functions of squares.

A formula with sin θ / θ divides zero by zero where nothing is turned, and the length θ of a vector
has a tip there. As functions of θ² the quotients are analytic at zero, and near it they are
computed as series, so that values and derivatives of all orders that matter are right.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial

import numpy as np

from flexure.diagrams import scalars
from flexure.diagrams.values.arrays import Array

# Ten terms are exact to rounding up to the squares at which the series end, also in the slope.
_STUMPFF_SERIES = [[(-1) ** i / factorial(2 * i + k) for i in range(10)] for k in range(5)]
_ARC_SERIES = [(-1) ** i / (2 * i + 1) for i in range(10)]


def stumpff(k: int, square: Array) -> Array:
    """Return the Stumpff function c_k of a squared angle.

    With s = θ²::

        c₀ = cos θ                  c₁ = sin θ / θ
        c₂ = (1 - cos θ) / θ²       c₃ = (θ - sin θ) / θ³
        c₄ = (θ²/2 - 1 + cos θ) / θ⁴

    In general c_k = Σ (-s)ⁱ / (2i + k)!, and c_{k+2} = (1/k! - c_k) / s. Here k is 0 to 4,
    and s >= 0 is in rad².

    The series is used below s = 1, the closed form above. Errors are below 4e-16. The functions are
    named after K. Stumpff, who used them in celestial mechanics.

    >>> float(stumpff(1, np.pi**2 / 4.0)), float(stumpff(2, 0.0))
    (0.6366197723675814, 0.5)
    """
    near = square < 1.0
    series = _polynomial(_STUMPFF_SERIES[k], scalars.where(near, square, 0.0))
    square = scalars.where(near, 1.0, square)
    angle = np.sqrt(square)
    closed = np.sin(angle) / angle if k % 2 else np.cos(angle)
    for j in range(k % 2, k, 2):
        closed = (1.0 / factorial(j) - closed) / square
    return scalars.where(near, series, closed)


def arc_quotient(square: Array, cosine: Array) -> Array:
    """Return atan2(√s, c) / √s of the squared sine s >= 0 and the cosine c >= 0 of an angle.

    They are not both zero, and both may be scaled as the sides of a triangle.

    Below s = 0.01 c² it is the series of arctan, with errors below 4e-16.

    >>> float(arc_quotient(1.0, 0.0)), float(arc_quotient(0.0, 1.0))
    (1.5707963267948966, 1.0)
    """
    near = square < 0.01 * (cosine * cosine)
    divisor = scalars.where(near, cosine, 1.0)
    squared_tangent = scalars.where(near, square, 0.0) / (divisor * divisor)
    series = _polynomial(_ARC_SERIES, squared_tangent) / divisor
    sine = np.sqrt(scalars.where(near, 1.0, square))
    return scalars.where(near, series, np.arctan2(sine, cosine) / sine)


def _polynomial(coefficients: Sequence[float], x: Array) -> Array:
    """Return the sum of the coefficients, from the lowest, times the powers of x."""
    result: Array = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        result = result * x + coefficient
    return result
