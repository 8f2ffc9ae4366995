"""The trials of a search: candidates as runs of sweeps, and the record of what became of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.tables import Table
from flexure.solvers.design.optimization.candidates import (
    CandidateRuns,
    RestCandidates,
    Study,
    run_candidates,
)
from flexure.solvers.design.optimization.search_space import SearchSpace
from flexure.solvers.results.measures.metrics import Constraint
from flexure.solvers.simulation.run_control.progress_bar import ProgressBar

NEVER = 1e30  # excess of a candidate without numbers, beyond that of any that has some
_CLOSE = 1e-3  # of a bound: nearer to it, a constraint is active


class _Trial(NamedTuple):
    """A candidate, its numbers, the part of the search that asked, and why it has no numbers."""

    point: FloatArray
    numbers: FloatArray
    stage: str
    reason: str


class Trials:
    """Every candidate that a search has tried, and the numbers of its run."""

    def __init__(self, study: Study, space: SearchSpace, bar: ProgressBar) -> None:
        self.study = study
        self.space = space
        self.how = ""  # how the last runs were run
        # Who computes candidates at rest.
        self.rest = RestCandidates(study, space) if study.at_rest else None
        self._bar = bar
        self._found: dict[bytes, int] = {}
        self._all: list[_Trial] = []

    def __len__(self) -> int:
        return len(self._all)

    def __call__(self, points: FloatArray, stage: str) -> FloatArray:
        """Return the numbers of candidates, (N, 1 + m); run those that are not known."""
        points = np.clip(points, 0.0, 1.0) + 0.0  # without negative zeros
        keys = [point.tobytes() for point in points]
        new = {
            key: point for key, point in zip(keys, points, strict=True) if key not in self._found
        }
        if new:
            self._run(np.array(list(new.values())), stage)
        if not keys:
            return np.zeros((0, 1 + len(self.study.constraints)))
        return np.array([self._all[self._found[key]].numbers for key in keys])

    def again(self, number: int) -> FloatArray:
        """Run a candidate once more, and return its numbers, which are not kept."""
        return np.asarray(self._candidates(self.points[[number]]).numbers[0])

    def _candidates(self, points: FloatArray) -> CandidateRuns:
        """Return the numbers of candidates, without a note of them."""
        if self.rest is not None:
            return self.rest.run(points)
        return run_candidates(self.study, self.space, points)

    def _run(self, points: FloatArray, stage: str) -> None:
        """Run candidates together, without those that the context refuses."""
        study, space = self.study, self.space
        try:
            runs = self._candidates(points)
        except ValueRefusedError:
            refusals = [space.refusal(study.base, point) for point in points]
            if not any(refusals):
                raise
            numbers = np.full(1 + len(study.constraints), np.nan)
            for point, refusal in zip(points, refusals, strict=True):
                if refusal:
                    self._note(point, numbers, stage, refusal)
            points = points[[refusal is None for refusal in refusals]]
            if not len(points):
                return
            runs = self._candidates(points)
        self.how = runs.how
        for point, numbers, reason in zip(points, runs.numbers, runs.reasons, strict=True):
            if reason is not None:
                self._note(point, numbers, stage, reason or self._lacking(numbers))
        if runs.interruption is not None:
            raise runs.interruption
        self._bar.update(float(len(self)), failed=sum(map(bool, self.reasons)))

    def _note(self, point: FloatArray, numbers: FloatArray, stage: str, reason: str) -> None:
        """Keep a candidate."""
        self._found[point.tobytes()] = len(self)
        self._all.append(_Trial(point, numbers, stage, reason))

    def _lacking(self, numbers: FloatArray) -> str:
        """Say which numbers a run does not have; "" when it has all."""
        labels = [metric.label for metric in self.study.metrics]
        lacking = [name for name, x in zip(labels, numbers, strict=True) if not np.isfinite(x)]
        return f"not finite: {', '.join(dict.fromkeys(lacking))}" if lacking else ""

    @property
    def points(self) -> FloatArray:
        """Coordinates of all candidates, shape (N, n)."""
        return np.array([each.point for each in self._all]).reshape(-1, len(self.space))

    @property
    def numbers(self) -> FloatArray:
        """Goal and constraints of all candidates, shape (N, 1 + m)."""
        rows = [each.numbers for each in self._all]
        return np.array(rows).reshape(-1, 1 + len(self.study.constraints))

    @property
    def reasons(self) -> list[str]:
        """Why candidates are none, "" where they are."""
        return [each.reason for each in self._all]

    def scales(self) -> FloatArray:
        """Return what counts as much of each constraint: its bound, or typical values where 0."""
        numbers = self.numbers
        known = np.abs(numbers[np.isfinite(numbers).all(axis=1), 1:])
        typical = np.median(known, axis=0) if len(known) else np.zeros(numbers.shape[1] - 1)
        limits = np.abs([bound_of(constraint) for constraint in self.study.constraints])
        return np.where(limits > 0.0, limits, np.where(typical > 0.0, typical, 1.0))

    def excesses(self, numbers: FloatArray) -> FloatArray:
        """Return how far candidates are beyond each constraint, shape (N, m)."""
        found = np.zeros((len(numbers), len(self.study.constraints)))
        for k, constraint in enumerate(self.study.constraints):
            found[:, k] = constraint.excess(numbers[:, 1 + k])
        found[~np.isfinite(numbers).all(axis=1)] = NEVER
        return found

    def feasible(self, numbers: FloatArray) -> NDArray[np.bool_]:
        """Return which candidates have all numbers, and keep all constraints."""
        finite = np.isfinite(numbers).all(axis=1)
        return np.asarray(finite & ~np.any(self.excesses(numbers) > 0.0, axis=1))

    def best(self, preferred: FloatArray | None = None, doubt: float = 0.0) -> int | None:
        """Return the index of the best candidate, feasible or nearest to it; None without any.

        A ``preferred`` one, (n,), counts as the best if it keeps all constraints and its objective
        is larger by no more than ``doubt``, by which objectives may differ without a meaning.
        """
        numbers = self.numbers
        if not np.isfinite(numbers).all(axis=1).any():
            return None
        beyond = np.max(self.excesses(numbers) / self.scales(), axis=1, initial=0.0)
        best = int(np.lexsort((numbers[:, 0], beyond))[0])
        known = None if preferred is None else self._found.get(preferred.tobytes())
        if known is None or beyond[known] > 0.0:
            return best
        return known if numbers[known, 0] <= numbers[best, 0] + doubt else best

    def leading(self, count: int) -> FloatArray:
        """Return the best candidates, feasible or nearest to it, the best first."""
        numbers = self.numbers
        beyond = np.max(self.excesses(numbers) / self.scales(), axis=1, initial=0.0)
        goal = np.nan_to_num(numbers[:, 0], nan=np.inf)
        finite = np.isfinite(numbers).all(axis=1)
        return self.points[np.lexsort((goal, beyond, ~finite))][:count]

    def active(self, numbers: FloatArray) -> tuple[str, ...]:
        """Return the labels of the constraints that one candidate keeps just so, or breaks."""
        bounds = np.array([bound_of(each) for each in self.study.constraints])
        near = np.abs(numbers[1:] - bounds) <= _CLOSE * self.scales()
        beyond = self.excesses(numbers[np.newaxis])[0] > 0.0
        pairs = zip(self.kept, near | beyond, strict=True)
        return tuple(label for label, is_active in pairs if is_active)

    @property
    def kept(self) -> list[str]:
        """The labels of the constraints, each once."""
        return unique(each.label for each in self.study.constraints)

    def table(self) -> Table:
        """Return a row for each candidate, in the order in which they were tried."""
        goal = self.study.goal.label
        labels = unique([*self.space.names, goal, *(c.label for c in self.study.constraints)])
        columns = ["evaluation", *labels, "feasible", "stage", "reason"]
        values, numbers = self.space.numbers(self.points), self.numbers
        feasible = self.feasible(numbers).tolist()
        rows = zip(
            range(len(self)),
            *values.T.tolist(),
            *numbers.T.tolist(),
            feasible,
            [each.stage for each in self._all],
            self.reasons,
            strict=True,
        )
        return Table(columns, rows)


def bound_of(constraint: Constraint) -> float:
    """Return the one bound of a constraint."""
    return constraint.upper if np.isfinite(constraint.upper) else constraint.lower


def unique(labels: Iterable[str]) -> list[str]:
    """Return labels, of which those that come again are counted."""
    found: list[str] = []
    for label in labels:
        number = sum(each == label or each.startswith(f"{label} (") for each in found)
        found.append(f"{label} ({number + 1})" if label in found else label)
    return found
