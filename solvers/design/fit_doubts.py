"""Doubts about a fit that leaves much unexplained: which reading of the records would explain it.

A fit explains little of a signal when the squares of its residuals are a large share of the squares
by which the signal varies, and when they follow each other in waves where noise would scatter. Then
the records are read in other ways, with other units, signs or times, and the one that comes closest
where the search starts is followed for some evaluations.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain

import numpy as np

from flexure.blocks.forces.least_squares import approached
from flexure.diagrams.errors import FlexureError
from flexure.diagrams.values import FloatArray
from flexure.solvers.design.fit_problem import FitProblem
from flexure.solvers.design.records import Record, unit_of

_MUCH = 0.25  # share of the squares that makes other readings worth a look
_MOST = 0.5  # share that is doubted even if no other reading is better
_BETTER = 0.25  # what another reading has to leave of it
_EXACT = 1e-6  # of the values: what is no variation
_EVALUATIONS = 6  # along the best of the other readings
_LONGER = 100  # times the steps of the fit are the most that another reading may take
_GAP = 20.0  # steps of the usual length
_OUTLIERS = 0.2  # share of the samples that a robust fit may leave aside

_DEGREES = 180.0 / math.pi
_SCALES = {"thousandths": 1e3, "thousands": 1e-3, "millionths": 1e6}
_UNITS = {
    "rad": {"deg": _DEGREES, "mrad": 1e3, "revolutions": 0.5 / math.pi},
    "rad/s": {"deg/s": _DEGREES, "mrad/s": 1e3, "rpm": 30.0 / math.pi},
    "rad/s^2": {"deg/s^2": _DEGREES, "mrad/s^2": 1e3},
    "m": {"mm": 1e3, "cm": 1e2, "um": 1e6, "km": 1e-3, "in": 1.0 / 0.0254},
    "m/s": {"mm/s": 1e3, "cm/s": 1e2, "um/s": 1e6, "km/h": 3.6},
    "m/s^2": {"mm/s^2": 1e3, "g": 1.0 / 9.80665},
    "N": {"mN": 1e3, "kN": 1e-3, "kgf": 1.0 / 9.80665},
    "N m": {"N mm": 1e3, "N cm": 1e2, "kN m": 1e-3},
}
_SHORTER_TIMES = {"ms": 1e3, "us": 1e6}
_LONGER_TIMES = {"min": 1.0 / 60.0, "h": 1.0 / 3600.0}


def doubts(problem: FitProblem, computed: FloatArray, robust: bool) -> str | None:
    """Return what to warn of, if what was computed explains too little of what was measured.

    Parameters
    ----------
    problem : FitProblem
        What was looked for; its contexts still have the values of the start.
    computed : ndarray, shape (n,)
        What came closest to the measured values.
    robust : bool
        Whether some samples may be outliers.
    """
    shares = {
        path: share
        for path, share in _shares(problem, computed, robust).items()
        if not share <= _MUCH
    }
    waves = [path for path in shares if _is_wave(problem, computed, path)]
    better = _better_reading(problem, shares, robust, bool(waves)) if shares else None
    told = list(shares) if better else [path for path in waves if not shares[path] <= _MOST]
    if not told:
        return None
    remedy = (
        f"With {better}, it would explain far more: correct the records"
        if better
        else "Look at their units, signs, zeros and times, and start the search closer"
    )
    texts = [_told(problem, computed, path) for path in told]
    return f"The fit explains little of {'; and of '.join(texts)}. {remedy}"


def sizes(problem: FitProblem) -> str | None:
    """Return which signals are far larger than what is computed at the start, if any are."""
    measured, computed = (
        problem.split(problem.measured),
        problem.split(problem.computed(problem.start)),
    )
    texts = []
    for path, unit in problem.units.items():
        large, usual = (
            max(float(np.max(np.abs(each[path]))) for each in parts if path in each)
            for parts in (measured, computed)
        )
        if large > usual / _EXACT > 0.0:
            texts.append(f"'{path}' up to {large:.3g} {unit}".rstrip() + f" beside {usual:.3g}")
    return ", ".join(texts) or None


def _pairs(
    problem: FitProblem, computed: FloatArray, path: str
) -> list[tuple[FloatArray, FloatArray]]:
    """Return measured and computed values of a signal, by record."""
    parts = zip(problem.split(problem.measured), problem.split(computed), strict=True)
    return [(one[path], other[path]) for one, other in parts if path in one]


def _squares(
    problem: FitProblem, computed: FloatArray, path: str, robust: bool = False
) -> tuple[float, float]:
    """Return the mean squares of the residuals of a signal, and those by which it varies."""
    pairs = _pairs(problem, computed, path)
    errors = np.concatenate([(one - other).ravel() for one, other in pairs])
    around = np.concatenate([(one - np.mean(one, axis=0)).ravel() for one, _ in pairs])
    if robust:
        kept = np.abs(errors) <= np.quantile(np.abs(errors), 1.0 - _OUTLIERS)
        errors, around = errors[kept], around[kept]
    return float(np.mean(errors**2)), float(np.mean(around**2))


def _shares(problem: FitProblem, computed: FloatArray, robust: bool) -> dict[str, float]:
    """Return for each signal which share of its squares is left."""
    found = {}
    for path in problem.units:
        largest = max(float(np.max(np.abs(one))) for one, _ in _pairs(problem, computed, path))
        least = max(_EXACT * largest, problem.resolution / _EXACT)
        left, all_of_it = _squares(problem, computed, path, robust)
        found[path] = left / max(all_of_it, least**2)
    return found


def _is_wave(problem: FitProblem, computed: FloatArray, path: str) -> bool:
    """Tell whether the residuals of a signal follow each other from sample to sample.

    Of independent errors, the squares of the differences from sample to sample are twice their own
    squares, with a standard deviation of 2/√n.
    """
    errors = [one - other for one, other in _pairs(problem, computed, path)]
    count = sum(each.size for each in errors)
    whole = sum(float(np.sum(each**2)) for each in errors)
    steps = sum(float(np.sum(np.diff(each, axis=0) ** 2)) for each in errors)
    return steps < min(1.0, 2.0 - 6.0 / math.sqrt(count)) * whole


def _told(problem: FitProblem, computed: FloatArray, path: str) -> str:
    left, all_of_it = np.sqrt(_squares(problem, computed, path))
    unit = problem.units[path] and f" {problem.units[path]}"
    return f"'{path}': residuals of {left:.3g}{unit} rms beside a spread of {all_of_it:.3g}{unit}"


def _better_reading(
    problem: FitProblem, shares: dict[str, float], robust: bool, waves: bool
) -> str | None:
    """Return by which reading these signals are explained much better, if there is one.

    Where residuals scatter as noise does, only factors of signals are tried, which cost least.
    """
    readings = [_other_units(problem, shares)]
    if waves:
        readings += [_other_inputs(problem), _other_times(problem)]

    def explains(left: dict[str, float]) -> bool:
        return all(left[path] < _BETTER * min(share, 1.0) for path, share in shares.items())

    tried = []
    for text, records in chain.from_iterable(readings):
        with suppress(FlexureError):  # a motion that does not get to the end explains nothing
            other = problem.read_as(records, _LONGER)
            at_start = _shares(other, other.computed(other.start), robust)
            if explains(at_start):
                return text
            tried.append((sum(at_start[path] for path in shares), text, other))
    for _, text, other in sorted(tried, key=lambda each: each[0])[:1]:
        with suppress(FlexureError):
            if explains(_shares(other, approached(other, _EVALUATIONS), robust)):
                return text
    return None


def _other_units(problem: FitProblem, paths: Iterable[str]) -> Iterator[tuple[str, list[Record]]]:
    """Return the records with those factors that bring the doubted signals closest to the start."""
    start = problem.computed(problem.start)
    factors, texts = {}, []
    for path in paths:
        pairs = [
            (one - np.mean(one, axis=0), other - np.mean(other, axis=0))
            for one, other in _pairs(problem, start, path)
        ]
        named = _named(problem.units[path])
        names = {"": 1.0, "with the other sign": -1.0, **named}
        left = {
            name: sum(float(np.sum((one - factor * other) ** 2)) for one, other in pairs)
            for name, factor in names.items()
        }
        best = min(left, key=lambda name: left[name])
        if left[best] < _MOST * left[""]:
            factors[path] = names[best]
            texts.append(f"'{path}' {best}")
    if factors:
        yield (
            " and ".join(texts),
            [
                replace(
                    record,
                    outputs={
                        path: values / factors.get(path, 1.0)
                        for path, values in record.outputs.items()
                    },
                )
                for record in problem.records
            ],
        )


def _other_inputs(problem: FitProblem) -> Iterator[tuple[str, list[Record]]]:
    """Return the records with each of the measured inputs in other units."""
    places = {path: r.places[path] for r in problem.records for path in r.inputs}
    for path, place in places.items():
        for name, factor in _named(unit_of(place)).items():
            read = [
                replace(r, inputs={**r.inputs, path: r.inputs[path] / factor})
                for r in problem.records
                if path in r.inputs
            ]
            if len(read) == len(problem.records):
                yield f"'{path}' {name}", read


def _named(unit: str) -> dict[str, float]:
    """Return by which factors numbers in other units are larger."""
    if unit in _UNITS:
        return {f"in {name} instead of {unit}": value for name, value in _UNITS[unit].items()}
    named = _SCALES if unit else {"degrees for radians": _DEGREES, **_SCALES}
    return {f"in {name}{unit and f' of {unit}'}": value for name, value in named.items()}


def _other_times(problem: FitProblem) -> Iterator[tuple[str, list[Record]]]:
    """Return the records in other units of time, from the beginning on, and without gaps."""
    records = problem.records
    yield from _times_in(_SHORTER_TIMES, records)
    starts = [begin.time for begin in problem.begins]
    late = [record.times[0] - start for record, start in zip(records, starts, strict=True)]
    if any(late):
        texts = dict.fromkeys(f"{start:g} s" for start in starts)
        shifted = [replace(r, times=r.times - by) for r, by in zip(records, late, strict=True)]
        yield f"times that begin at {' and '.join(texts)}, where the motion does", shifted
    closed, gaps = [], []
    for record in records:
        steps = np.diff(record.times)
        usual = float(np.median(steps))
        wide = steps > _GAP * usual
        gaps += [
            f"{record.times[k]:g} s to {record.times[k + 1]:g} s" for k in np.flatnonzero(wide)
        ]
        ways = np.cumsum([record.times[0], *np.where(wide, usual, steps)])
        closed.append(replace(record, times=ways if np.any(wide) else record.times))
    if gaps:
        more = f" and {len(gaps) - 1} more" * (len(gaps) > 1)
        yield f"no gap in the times from {gaps[0]}{more}", closed
    yield from _times_in(_LONGER_TIMES, records)


def _times_in(
    units: dict[str, float], records: Sequence[Record]
) -> Iterator[tuple[str, list[Record]]]:
    for unit, factor in units.items():
        read = [replace(record, times=record.times / factor) for record in records]
        yield f"times in {unit} instead of s", read


__all__ = ["doubts", "sizes"]
