"""How much stiffer twist is where the ends of a leaf cannot warp."""

from __future__ import annotations

import numpy as np

from flexure.diagrams.values.values import Array

_SHORT = 0.03  # below which 1 - tanh(x)/x is a series, to rounding


def part_left_by_warping(x: Array) -> Array:
    """Return 1 - tanh(x)/x for x > 0: what is left of the twist of ends that are free to warp."""
    square = x * x
    series = square * (
        1.0 / 3.0 - square * (2.0 / 15.0 - square * (17.0 / 315.0 - square * (62.0 / 2835.0)))
    )
    return np.where(x < _SHORT, series, 1.0 - np.tanh(x) / x)
