"""How much stiffer and less even twist is where the ends of a leaf cannot warp."""

from __future__ import annotations

from typing import Any

import numpy as np

from flexure.blocks.flexures.sections.flexure_parameters import MaterialConstants
from flexure.diagrams.values.arrays import Array

_X, _W = np.polynomial.legendre.leggauss(6)
_HALF, _WEIGHTS = 0.5 + 0.5 * _X, 0.5 * _W  # of one half of a leaf, from its middle to its end
_LONG = 3.0  # above which integrals are known in closed form, to rounding
_SHORT = 0.03  # below which 1 - tanh(x)/x is a series, to rounding


def warping_length(length: Array, section: Any, material: MaterialConstants) -> Array:
    """Return λ: the length of a leaf over that in which clamped warping fades from its ends."""
    slope = np.sqrt(12.0 * material.shear_modulus / material.youngs_modulus)
    return slope * length / section.width


def part_left_by_warping(x: Array) -> Array:
    """Return 1 - tanh(x)/x for x > 0: what is left of the twist of ends that are free to warp."""
    square = x * x
    series = square * (
        1.0 / 3.0 - square * (2.0 / 15.0 - square * (17.0 / 315.0 - square * (62.0 / 2835.0)))
    )
    return np.where(x < _SHORT, series, 1.0 - np.tanh(x) / x)


def unevenness(x: Array) -> tuple[Array, Array]:
    """Return how uneven the twist 1 - cosh(x s)/cosh(x) is along -1 < s < 1, for x > 0.

    First the mean of its fourth power over the fourth power of its mean, 2.06 of short leaves; then
    its value in the middle over its mean, 1.5 of short leaves.
    """

    def twist(x: Array, s: float) -> Array:
        return 1.0 - (np.exp(x * (s - 1.0)) + np.exp(-x * (s + 1.0))) / (1.0 + np.exp(-2.0 * x))

    short = np.minimum(x, _LONG)
    values = [twist(short, s) for s in _HALF]
    mean = sum(weight * value for weight, value in zip(_WEIGHTS, values, strict=True))
    fourth = sum(weight * value**4 for weight, value in zip(_WEIGHTS, values, strict=True))
    # Of long leaves, integrals of powers of cosh(x s)/cosh(x), which cancel where x is small.
    long = np.maximum(x, _LONG)
    tanh, t = np.tanh(long), np.tanh(long) / long
    c = 1.0 - tanh * tanh
    second = 0.5 * (c + t)
    whole = 1.0 - 4.0 * t + 6.0 * second - 4.0 * t * (c + tanh * tanh / 3.0)
    whole = whole + 0.25 * t + 0.75 * c * second
    uneven = np.where(x < _LONG, fourth / mean**4, whole / (1.0 - t) ** 4)
    return uneven, twist(x, 0.0) / part_left_by_warping(x)
