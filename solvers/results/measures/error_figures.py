"""Integrals of the error of responses, and the effort of their control, for each run.

Each run counts from an instant of its own on. The integrals go to the end.
"""

from __future__ import annotations

import numpy as np

from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.results.measures import reductions
from flexure.solvers.results.measures.curves import Curve

ERRORS = ("iae", "ise", "itae")
CONTROLS = ("control_variation", "control_peak")


def error_figures(y: Curve, at: FloatArray, goal: FloatArray) -> dict[str, FloatArray]:
    """Return IAE, ISE and ITAE of goal - y from an instant on.

    Parameters
    ----------
    y : Curve
        The responses of N runs.
    at, goal : ndarray, shape (N,)
        When each of them begins, and what it should be.
    """
    with np.errstate(all="ignore"):  # what cannot be measured becomes NaN
        e = y.between(at, y.stop).moved(-goal)
        return {
            "iae": reductions.iae(e),
            "ise": reductions.ise(e),
            "itae": reductions.itae(e, at),
        }


def control_figures(u: Curve, at: FloatArray) -> dict[str, FloatArray]:
    """Return the total variation of a manipulated input, and its largest magnitude.

    A jump at the instant is in the variation; the magnitude counts from the instant on, after it.
    """
    with np.errstate(all="ignore"):
        since = u.between(at, u.stop)
        jump = np.abs(since.y0[since.first[:-1]] - u.value_before(at))
        fine = u.finite & (at <= u.stop)
        return {
            "control_variation": np.where(fine, reductions.total_variation(since) + jump, np.nan),
            "control_peak": np.where(fine, reductions.peak(since), np.nan),
        }
