"""Factors and times that follow from the options of beams."""

from __future__ import annotations

import numpy as np

from flexure.diagrams.errors import DeclarationError
from flexure.diagrams.values import Array, as_number, check_bounds

_SHORT = 0.03  # below which 1 - tanh(x)/x is a series, to rounding


def part_left_by_warping(x: Array) -> Array:
    """Return 1 - tanh(x)/x for x > 0: free twist over that of ends kept from warping."""
    square = x * x
    series = square * (
        1.0 / 3.0 - square * (2.0 / 15.0 - square * (17.0 / 315.0 - square * (62.0 / 2835.0)))
    )
    return np.where(x < _SHORT, series, 1.0 - np.tanh(x) / x)


def time_of_damping(
    time: float | None, loss_factor: float | None, frequency: float | None, attempt: str
) -> float | None:
    """Return the time of damping, which a loss factor at a frequency gives as well."""
    if loss_factor is None and frequency is None:
        return time
    if time is not None or loss_factor is None or frequency is None:
        given = {"damping_time": time, "loss_factor": loss_factor, "at_frequency": frequency}
        raise DeclarationError(
            attempt,
            expected="damping_time alone, or loss_factor with at_frequency",
            found=", ".join(name for name, value in given.items() if value is not None),
        )
    factor = as_number(loss_factor, (), f"{attempt} with loss_factor")
    check_bounds(factor, f"{attempt} with loss_factor", lower=0.0)
    hertz = as_number(frequency, (), f"{attempt} with at_frequency")
    check_bounds(hertz, f"{attempt} with at_frequency", lower=0.0, exclusive=True, unit="Hz")
    return float(factor / (2.0 * np.pi * hertz))
