"""Integrals of the error of responses, and the effort of their control, a row for each record.

Each row counts from an instant of its own on, and is straight between its points. The integrals go
to the end of the record.
"""

from __future__ import annotations

import numpy as np

from flexure.diagrams.values.values import FloatArray
from flexure.solvers.results.measures import reductions

ERRORS = ("iae", "ise", "itae")
CONTROLS = ("control_variation", "control_peak")


def error_figures(
    t: FloatArray, y: FloatArray, at: FloatArray, goal: FloatArray
) -> dict[str, FloatArray]:
    """Return IAE, ISE and ITAE of goal - y from an instant on.

    Parameters
    ----------
    t : ndarray, shape (K,)
        Times of the records.
    y : ndarray, shape (N, K)
        The responses.
    at, goal : ndarray, shape (N,)
        When each row begins, and what it should be.
    """
    with np.errstate(all="ignore"):  # what cannot be measured becomes NaN
        begin, first = at[:, np.newaxis], reductions.values_at(t, y, at)[:, np.newaxis]
        time = np.maximum(t, begin)
        e = goal[:, np.newaxis] - np.where(t < begin, first, y)
        return {
            "iae": reductions.iae(time, e),
            "ise": reductions.ise(time, e),
            "itae": reductions.itae(time, e, at),
        }


def control_figures(t: FloatArray, u: FloatArray, at: FloatArray) -> dict[str, FloatArray]:
    """Return the total variation of a manipulated input, and its largest magnitude.

    The variation counts from the last point before the instant, so that a jump at the instant is in
    it, and the magnitude from the instant on, after the jump.
    """
    with np.errstate(all="ignore"):
        index, last = np.searchsorted(t, at), len(t) - 1
        here = t[np.minimum(index, last)] == at
        jumps = here & (t[np.minimum(index + 1, last)] == at) & (index < last)
        begin = np.where(jumps, index, np.maximum(index - 1, 0))
        places = np.arange(len(t))
        moves = np.where(places[:-1] >= begin[:, np.newaxis], np.abs(np.diff(u, axis=1)), 0.0)
        after = np.where(here, np.searchsorted(t, at, side="right") - 1, index)
        high = np.where(places >= after[:, np.newaxis], np.abs(u), 0.0)
        first = np.where(here, 0.0, np.abs(reductions.values_at(t, u, at)))
        fine = np.isfinite(u).all(axis=1) & (at <= t[-1])
        return {
            "control_variation": np.where(fine, np.sum(moves, axis=1), np.nan),
            "control_peak": np.where(fine, np.maximum(first, np.max(high, axis=1)), np.nan),
        }


__all__ = ["CONTROLS", "ERRORS", "control_figures", "error_figures"]
