"""Jobs and their derivatives: which results change with what is read, and with which states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from flexure.diagrams.scalars.expression import Symbol
from flexure.diagrams.scalars.jacobians import reach_from
from flexure.diagrams.scalars.vocabulary import CONDITIONS
from flexure.solvers.native.emission.emission import Node, depth_first
from flexure.solvers.native.emission.wide_emission import WIDTH
from flexure.solvers.native.sharing.columns import (
    MOTION,
    MOVING,
    SHIFT,
    STATE_COLUMN,
    Columns,
    IntArray,
)
from flexure.solvers.native.sharing.jobs import Job
from flexure.solvers.native.sharing.repetition import spans_of


class MovingJob:
    """A job, and which of its results change with what it reads.

    Attributes
    ----------
    leaves : list of (Node, IntArray)
        What is read that may change with the states, and its codes.
    operations : list of Node
        What is computed, each after its operands.
    reached : dict
        Which leaves operations change with, as the bits of a number, by index.
    behind : list of int
        For each result the leaves it changes with, as the bits of a number.
    length : int
        Operations that change with them.
    operations_of_all : int
        Those of all rows.
    exposed : dict
        Operations whose derivatives are kept, by index, with codes for them.
    """

    def __init__(self, job: Job, columns: Columns) -> None:
        self.job = job
        self.operations = depth_first(job.expressions, job.inputs)
        found = job.leaves(job.expressions, self.operations)
        self.leaves = [
            (node, job.inputs[node.index])
            for node in found
            if columns.sort_of(job.inputs[node.index]) in (MOTION, MOVING)
            and node.op not in CONDITIONS
        ]
        starts = {node.index: 1 << k for k, (node, _) in enumerate(self.leaves)}
        self.reached = reached = reach_from(starts, self.operations)
        self.exposed: dict[int, tuple[Node, IntArray]] = {}
        indices = [getattr(each, "index", None) for each in job.expressions]
        self.behind = [0 if k is None else reached.get(k, 0) for k in indices]
        self.length = len(reached) - len(starts)
        self.operations_of_all = self.length * len(job.levels)

    def follow(self, first: int, last: int, bits: dict[int, int]) -> int:
        """Find on which states the results of some rows depend; count vectors of derivatives."""
        vectors = 0
        kinds: dict[int, list[list[int]]] = {}
        for behind, codes in zip(self.behind, self.job.outputs, strict=True):
            if behind:
                kinds.setdefault(behind, []).append(codes[first:last].tolist())
        read = [codes[first:last].tolist() for _, codes in self.leaves]
        for row in range(last - first):
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
        found, behind = 0, self.reached.get(index, 0)
        for k, (_, codes) in enumerate(self.leaves):
            if behind >> k & 1:
                found |= bits.get(int(codes[row]), 0)
        return found

    @property
    def results(self) -> list[tuple[Any, IntArray]]:
        """What is computed, with its codes, and behind that what is exposed."""
        job = self.job
        return [*zip(job.expressions, job.outputs, strict=True), *self.exposed.values()]

    def ask(self, first: int, last: int, wanted: set[int]) -> None:
        """Want the derivatives of what some rows read for results that are wanted."""
        for row in range(first, last):
            behind = 0
            for node, codes in self.results:
                if isinstance(node, Symbol) and int(codes[row]) in wanted:
                    behind |= self.reached.get(node.index, 0)
            for k, (_, codes) in enumerate(self.leaves):
                if behind >> k & 1:
                    wanted.add(int(codes[row]))


def follow(parts: Sequence[MovingJob], count: int) -> tuple[dict[int, int], int]:
    """Find on which states all numbers depend, as the bits of a number, by their codes.

    Return also how many vectors of derivatives it would take to write out all that is computed.
    """
    bits = {(STATE_COLUMN << SHIFT) + k: 1 << k for k in range(count)}
    vectors = 0
    for _, k, first, last in sorted(spans(parts)):
        vectors += parts[k].follow(first, last, bits)
    return bits, vectors


def spans(parts: Sequence[MovingJob]) -> Iterator[tuple[int, int, int, int]]:
    """Return each level of each part, with its first row and the one behind its last."""
    found = [
        [(level, k, first, last) for level, first, last in spans_of(part.job.levels)]
        for k, part in enumerate(parts)
    ]
    return chain.from_iterable(found)


__all__ = ["MovingJob", "follow", "spans"]
