"""Which step a signal responds to in each run of a sweep."""

from __future__ import annotations

import math

import numpy as np

from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.results.measures.step_sources import StepFinder, StepInput
from flexure.solvers.sweeps.running.variants import Variants
from flexure.solvers.tracing.signals import Reader


def find_steps(
    variants: Variants,
    reader: Reader,
    start: float,
    end: float,
    at: FloatArray,
    disturbs: bool = False,
) -> dict[str, FloatArray]:
    """Return instant and target of the step in each run of a sweep; see `StepFinder`.

    Parameters
    ----------
    variants : Variants
        The runs.
    reader : Reader
        The signal.
    start, end : float
        Begin and end of the records in seconds.
    at : ndarray, shape (N,)
        Instants of the steps, NaN where they are not known.
    disturbs : bool
        Whether a disturbance is looked for, and not a step.
    """
    base = variants.base()
    finder = StepFinder(base.system, reader)
    find = finder.find_disturbance if disturbs else finder.find
    known = [None if math.isnan(time) else time for time in at.tolist()]
    if not (known and (len(set(known)) > 1 or any(map(variants.differ_in, finder.deciding)))):
        found = [find(base, start, end, time) for time in known[:1]] * len(known)
    else:
        found = [find(variants.context(k), start, end, time) for k, time in enumerate(known)]
    columns = np.array(found, dtype=float).reshape(-1, 2).T
    return dict(zip(StepInput._fields, columns, strict=True))
