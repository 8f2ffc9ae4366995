"""Jobs of which something changes with the states, for derivatives of what they compute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flexure.diagrams.scalars.derivatives.jacobians import reach_from
from flexure.diagrams.scalars.expressions.expression import Symbol
from flexure.diagrams.scalars.expressions.vocabulary import CONDITIONS
from flexure.solvers.native.emission.emission import Node, depth_first
from flexure.solvers.native.emission.tangent_emission import WIDTH
from flexure.solvers.native.sharing.families.value_columns import MOTION, MOVING, Columns, IntArray
from flexure.solvers.native.sharing.jobs.jobs import Job
from flexure.solvers.native.sharing.jobs.repetition import spans_of


class Part:
    """A job, and which of its results change with what it reads."""

    def __init__(self, job: Job, columns: Columns) -> None:
        self.job = job
        self.operations = depth_first(job.expressions, job.inputs)
        found = job.leaves(job.expressions, self.operations)
        # What is read that may change with the states, and its codes.
        self.leaves = [
            (node, job.inputs[node.index])
            for node in found
            if columns.sort_of(job.inputs[node.index]) in (MOTION, MOVING)
            and node.op not in CONDITIONS
        ]
        starts = {node.index: 1 << k for k, (node, _) in enumerate(self.leaves)}
        self._reached = reached = reach_from(starts, self.operations)
        # Operations whose derivatives are kept, by index, with codes for them.
        self.exposed: dict[int, tuple[Node, IntArray]] = {}
        indices = [getattr(each, "index", None) for each in job.expressions]
        # For each result the leaves it changes with, as the bits of a number.
        self.behind = [0 if k is None else reached.get(k, 0) for k in indices]
        self.length = len(reached) - len(starts)  # operations that change with them
        self.operations_of_all = self.length * len(job.levels)  # those of all rows

    def follow(self, rows: range, bits: dict[int, int]) -> int:
        """Find on which states the results of some rows depend; count vectors of derivatives."""
        vectors = 0
        kinds: dict[int, list[list[int]]] = {}
        for behind, codes in zip(self.behind, self.job.outputs, strict=True):
            if behind:
                kinds.setdefault(behind, []).append(codes[rows.start : rows.stop].tolist())
        read = [codes[rows.start : rows.stop].tolist() for _, codes in self.leaves]
        for row in range(len(rows)):
            states = [bits.get(codes[row], 0) for codes in read]
            whole = 0
            for behind, written in kinds.items():
                found = 0
                for k, each in enumerate(states):
                    if behind >> k & 1:
                        found |= each
                if found:
                    whole |= found
                    for each_written in written:
                        bits[each_written[row]] = found
            size = (whole.bit_length() + 7) // WIDTH
            vectors += self.length * (size - whole.to_bytes(size, "little").count(0))
        return vectors

    def states_behind(self, index: int, row: int, bits: dict[int, int]) -> int:
        """Return on which states an operation depends in a row, as the bits of a number."""
        found, behind = 0, self._reached.get(index, 0)
        for k, (_, codes) in enumerate(self.leaves):
            if behind >> k & 1:
                found |= bits.get(int(codes[row]), 0)
        return found

    @property
    def results(self) -> list[tuple[Any, IntArray]]:
        """What is computed, with its codes, and behind that what is exposed."""
        job = self.job
        return [*zip(job.expressions, job.outputs, strict=True), *self.exposed.values()]

    def ask(self, rows: range, wanted: set[int]) -> None:
        """Want the derivatives of what some rows read for results that are wanted."""
        asked = [
            (self._reached.get(node.index, 0), codes[rows.start : rows.stop].tolist())
            for node, codes in self.results
            if isinstance(node, Symbol)
        ]
        read = [codes[rows.start : rows.stop].tolist() for _, codes in self.leaves]
        for row in range(len(rows)):
            behind = 0
            for leaves, codes in asked:
                if codes[row] in wanted:
                    behind |= leaves
            wanted.update([codes[row] for k, codes in enumerate(read) if behind >> k & 1])


def in_order(parts: Sequence[Part]) -> list[tuple[Part, range]]:
    """Return the rows of each level of each part, in the order in which they are computed."""
    spans = [
        (level, k, first, last)
        for k, part in enumerate(parts)
        for level, first, last in spans_of(part.job.levels)
    ]
    return [(parts[k], range(first, last)) for _, k, first, last in sorted(spans)]
