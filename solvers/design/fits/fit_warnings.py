"""Doubts about a fit that leaves much unexplained, and what may be wrong with the records.

A fit explains little of a signal when the squares of its residuals are a large share of the squares
by which the signal varies, and when they follow each other in waves where noise would scatter.
"""

from __future__ import annotations

import math
from contextlib import suppress

import numpy as np

from flexure.diagrams.checks.errors import FlexureError
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.design.fits.fit_problem import FitProblem

_MUCH = 0.25  # share of the squares that is doubted
_BETTER = 0.1  # what a unit has to leave of the squares where the search starts
_EXACT = 1e-6  # of the values: what is no variation, and beside which nothing counts
_GAP = 20.0  # steps of the usual length
_CARRY = 0.1  # of the samples, which alone carry an unknown
_ASIDE = 1e-3  # of an unknown, how far both sides are looked at, and
_NO_EFFECT = 1e-3  # of the effect on the other side, which is none

_DEGREES = 180.0 / math.pi
_UNITS = {
    "rad": {"deg": _DEGREES, "mrad": 1e3, "revolutions": 0.5 / math.pi},
    "rad/s": {"deg/s": _DEGREES, "mrad/s": 1e3, "rpm": 30.0 / math.pi},
    "m": {"mm": 1e3, "cm": 1e2, "um": 1e6, "km": 1e-3, "in": 1.0 / 0.0254},
    "m/s": {"mm/s": 1e3, "cm/s": 1e2, "um/s": 1e6, "km/h": 3.6},
    "N": {"mN": 1e3, "kN": 1e-3},
    "N m": {"N mm": 1e3, "N cm": 1e2, "kN m": 1e-3},
}
_OTHERS = {"degrees": _DEGREES, "thousandths": 1e3, "thousands": 1e-3, "millionths": 1e6}


def doubts(problem: FitProblem, computed: FloatArray) -> str | None:
    """Return what to warn of, if what was computed explains too little of what was measured."""
    texts, remedies = [], []
    for path, unit in problem.units.items():
        pairs = _pairs(problem, computed, path)
        left, spread = _sizes(pairs)
        largest = max(float(np.max(np.abs(one))) for one, _ in pairs)
        if left**2 <= _MUCH * spread**2 or spread <= _EXACT * largest or not _is_wave(pairs):
            continue
        shown = unit and f" {unit}"
        texts.append(f"'{path}': residuals of {left:.3g}{shown} rms beside {spread:.3g}{shown}")
        remedies += _other_unit(problem, path)
    if not texts:
        return None
    remedies += _gaps(problem)
    why = ", and ".join(remedies) if remedies else "check units, signs, zeros and times"
    return (
        f"The fit explains little of {'; and of '.join(texts)}, by which the signal varies. "
        f"{why[0].upper()}{why[1:]}, and start the search closer"
    )


def one_sided(problem: FitProblem, values: FloatArray) -> list[str]:
    """Return which unknowns have next to no effect on one side of what was found.

    Where a signal is at a limit for most of a record, what was found may be where it just comes to
    it. Slopes of the one side then tell of a precision that there is not on the other.
    """
    squares, names = problem.derivatives(values) ** 2, []
    for k, unknown in enumerate(problem.unknowns):
        count = np.sum(squares[:, k]) ** 2 / max(float(np.sum(squares[:, k] ** 2)), 1e-300)
        if not 0.0 < count <= _CARRY * len(squares):
            continue
        step = _ASIDE * (abs(values[k]) or 1.0) * (np.arange(len(values)) == k)
        with suppress(FlexureError):  # beyond the bounds of its declaration, or no motion
            ends = [problem.computed(values + side * step) for side in (-1.0, 0.0, 1.0)]
            less, more = sorted(float(np.linalg.norm(end - ends[1])) for end in (ends[0], ends[2]))
            names += [unknown.name] if less < _NO_EFFECT * more else []
    return names


def oversized(problem: FitProblem) -> str | None:
    """Return which signals are so large that nothing counts beside them, if any are."""
    start, texts = problem.computed(problem.start), []
    for path, unit in problem.units.items():
        pairs = _pairs(problem, start, path)
        measured, usual = (max(float(np.max(np.abs(each[k]))) for each in pairs) for k in (0, 1))
        if measured * _EXACT > usual > 0.0:
            texts.append(f"'{path}' up to {measured:.3g} {unit}".rstrip() + f" beside {usual:.3g}")
    return ", ".join(texts) or None


def _pairs(
    problem: FitProblem, computed: FloatArray, path: str
) -> list[tuple[FloatArray, FloatArray]]:
    """Return measured and computed values of a signal, by record."""
    parts = zip(problem.split(problem.measured), problem.split(computed), strict=True)
    return [(one[path], other[path]) for one, other in parts if path in one]


def _sizes(pairs: list[tuple[FloatArray, FloatArray]]) -> tuple[float, float]:
    """Return the root mean squares of residuals, and of what measured values vary by."""
    errors = np.concatenate([(one - other).ravel() for one, other in pairs])
    around = np.concatenate([(one - np.mean(one, axis=0)).ravel() for one, _ in pairs])
    return float(np.sqrt(np.mean(errors**2))), float(np.sqrt(np.mean(around**2)))


def _is_wave(pairs: list[tuple[FloatArray, FloatArray]]) -> bool:
    """Return whether residuals follow each other from sample to sample."""
    # For independent errors, the squares of the differences from sample to sample are twice their
    # own squares, with a standard deviation of 2/√n.
    errors = [one - other for one, other in pairs]
    count = sum(each.size for each in errors)
    whole = sum(float(np.sum(each**2)) for each in errors)
    steps = sum(float(np.sum(np.diff(each, axis=0) ** 2)) for each in errors)
    return steps < min(1.0, 2.0 - 6.0 / math.sqrt(count)) * whole


def _other_unit(problem: FitProblem, path: str) -> list[str]:
    """Return the unit in which a signal would come far closer to the start of the search."""
    pairs = _pairs(problem, problem.computed(problem.start), path)
    unit = problem.units[path]
    factors = _UNITS.get(unit, {} if unit else _OTHERS)
    left = {
        name: sum(float(np.sum((one - factor * other) ** 2)) for one, other in pairs)
        for name, factor in {unit: 1.0, **factors}.items()
    }
    nearest = min(left, key=lambda name: left[name])
    if left[nearest] > _BETTER * left[unit]:
        return []
    instead = f" instead of {unit}" if unit else ""
    return [f"the record of '{path}' looks as if it were in {nearest}{instead}"]


def _gaps(problem: FitProblem) -> list[str]:
    """Return where the times of records make a leap."""
    found = []
    for record in problem.records:
        steps = np.diff(record.times)
        found += [
            f"the times have a gap from {record.times[k]:g} s to {record.times[k + 1]:g} s"
            for k in np.flatnonzero(steps > _GAP * np.median(steps))[:1]
        ]
    return found
