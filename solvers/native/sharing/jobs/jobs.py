"""Jobs of work, and how parts of them that are alike come together.

A job is what all blocks of a family compute at one stage (`code_levels`), in a row for each.
Blocks that cannot be seen to be alike may yet compute the same, and large blocks often do the same
many times over: a plant moves each of its bodies, a gain multiplies each of its components. So
every job is taken apart into *parts* that have no operation in common. Parts with the same
operations, if on other numbers, become the rows of one new job, as the blocks of a family are rows.
What is left stays together.

That is tried in two ways. First, parts that read a common moving number stay together, so that a
body is one part. Then they do not, so that each row of a matrix, times a state that is the same for
all rows, is one. Parameters and time may be common in both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from flexure.diagrams import scalars
from flexure.diagrams.scalars.expressions.vocabulary import COMMUTATIVE, CONDITIONS
from flexure.solvers.native.emission.emission import SEED, Node, depth_first
from flexure.solvers.native.sharing.families.value_columns import (
    CLOCK,
    FIXED,
    RATE_COLUMN,
    SHIFT,
    Columns,
    IntArray,
)
from flexure.solvers.native.sharing.jobs.job_loops import Repetition

_FEW = 8  # parts, for which a loop over them does not pay


@dataclass
class Job:
    """Expressions that are computed for many rows."""

    expressions: list[Any]  # expressions of one trace, or numbers
    # The codes of the nodes at which the expressions begin, by index of the node.
    inputs: dict[int, IntArray]
    outputs: list[IntArray]  # the codes of the results
    levels: IntArray  # the level of each row, ascending

    @property
    def operations(self) -> int:
        """How many operations a row takes."""
        return len(depth_first(self.expressions, self.inputs))

    def codes(self) -> Iterator[IntArray]:
        """Return the codes of all results and inputs."""
        return chain(self.outputs, self.inputs.values())

    def placed(self, columns: Columns) -> Repetition:
        """Turn codes into places."""
        return Repetition(
            self.expressions,
            {index: columns.locate(codes) for index, codes in self.inputs.items()},
            [columns.locate(codes) for codes in self.outputs],
            self.levels,
        )

    def only(self, numbers: Sequence[int]) -> Job:
        """Return the job with some of its expressions alone."""
        expressions = [self.expressions[number] for number in numbers]
        leaves = self.leaves(expressions, depth_first(expressions, self.inputs))
        return Job(
            expressions,
            {node.index: self.inputs[node.index] for node in leaves},
            [self.outputs[number] for number in numbers],
            self.levels,
        )

    def leaves(self, expressions: Iterable[Any], operations: Iterable[Node]) -> list[Node]:
        """Return the inputs among some expressions and the operands of operations, in order."""
        nodes = chain(expressions, chain.from_iterable(node.args for node in operations))
        found = {e.index: e for e in nodes if isinstance(e, scalars.Symbol)}
        return [found[index] for index in sorted(found) if index in self.inputs]


@dataclass
class _Part:
    """Some of the expressions of a job."""

    job: Job
    numbers: list[int]  # which ones
    leaves: list[Node]  # the inputs of these


def share(jobs: Sequence[Job], sorts: Sequence[int]) -> list[Job]:
    """Make parts that are alike the rows of new jobs, where that makes many rows of few.

    ``sorts`` are those of the columns.
    """
    shared: list[Job] = []
    left = list(jobs)
    for together in (True, False):
        reader = _Reader(sorts)
        classes: dict[tuple[int, ...], list[_Part]] = {}
        for job in left:
            common = _moving_inputs(job, sorts) if together else ()
            for numbers in separate(job.expressions, job.inputs, common):
                part, key = reader.read(job, numbers)
                classes.setdefault(key, []).append(part)
        taken: dict[int, set[int]] = {}
        for parts in classes.values():
            if len(parts) >= max(_FEW, *[len(part.job.levels) + 1 for part in parts]):
                shared.append(_joined(parts))
                for part in parts:
                    taken.setdefault(id(part.job), set()).update(part.numbers)
        for k, job in enumerate(left):
            if id(job) in taken:
                rest = set(range(len(job.expressions))) - taken[id(job)]
                left[k] = job.only(sorted(rest))
    return [*shared, *(job for job in left if job.expressions)]


def copies(shown: Sequence[tuple[int | float, int]], columns: Columns, first: int) -> list[Job]:
    """Return jobs that hand on what is known under codes, each behind its level, or numbers.

    ``shown`` are codes of ``columns``, or numbers, with the levels from which on they are there.
    The first becomes the result number ``first``.
    """
    start = np.zeros(1, dtype=np.int64)
    jobs, by_sort = [], dict[int, list[tuple[int, int, int]]]()
    for target, (code, level) in enumerate(shown, (RATE_COLUMN << SHIFT) + first):
        if isinstance(code, float):
            jobs.append(Job([code], {}, [start + target], start))
        else:
            sort = columns.sorts[code >> SHIFT]
            by_sort.setdefault(sort, []).append((level + 1, code, target))
    for found in by_sort.values():
        levels, codes, targets = np.array(sorted(found), dtype=np.int64).T
        node = scalars.Graph().input(((SEED, 0, 0), 0))
        jobs.append(Job([node], {node.index: codes}, [targets], levels))
    return jobs


def _moving_inputs(job: Job, sorts: Sequence[int]) -> set[int]:
    """Return the inputs of a job that change during a run, but for time."""
    still = CLOCK, FIXED
    return {k for k, codes in job.inputs.items() if sorts[codes[0] >> SHIFT] not in still}


def separate(
    expressions: Sequence[Any], inputs: Collection[int], common: Collection[int] = ()
) -> Iterable[list[int]]:
    """Take expressions of one trace apart; return which of them have operations in common.

    ``inputs`` are the indices of the nodes at which they begin; those in ``common`` hold together
    what reads them.
    """
    leader = list(range(len(expressions)))
    first: dict[int, int] = {}  # the expression from which a node was reached first

    def leader_of(number: int) -> int:
        while leader[number] != number:
            leader[number] = number = leader[leader[number]]
        return number

    for number, expression in enumerate(expressions):
        stack = [expression] if isinstance(expression, scalars.Symbol) else []
        while stack:
            node = stack.pop()
            is_input = node.index in inputs
            if node.op == "constant" or (is_input and node.index not in common):
                continue
            if node.index in first:
                leader[leader_of(number)] = leader_of(first[node.index])
            else:
                first[node.index] = number
                if not is_input:
                    stack.extend(node.args)
    parts: dict[int, list[int]] = {}
    for number in range(len(leader)):
        parts.setdefault(leader_of(number), []).append(number)
    return parts.values()


class _Reader:
    """Reads what parts compute.

    Every node has a number that identifies its computation, given the inputs of the part in their
    order. The order of operands does not count where they may be exchanged.
    """

    def __init__(self, sorts: Sequence[int]) -> None:
        self._sorts = sorts
        self._numbers: dict[tuple[Any, ...], int] = {}

    def _number(self, *content: Any) -> int:
        return self._numbers.setdefault(content, len(self._numbers))

    def read(self, job: Job, numbers: list[int]) -> tuple[_Part, tuple[int, ...]]:
        """Return a part, and what all parts that are alike have in common."""
        sorts = self._sorts
        expressions = [job.expressions[number] for number in numbers]
        operations = depth_first(expressions, job.inputs)
        leaves = job.leaves(expressions, operations)
        known: dict[int, int] = {}
        for rank, node in enumerate(leaves):
            sort = sorts[job.inputs[node.index][0] >> SHIFT]
            known[node.index] = self._number("input", rank, sort, node.op in CONDITIONS)
        for node in operations:
            operands = [self._meaning(arg, known) for arg in node.args]
            if node.op in COMMUTATIVE:
                operands.sort()
            known[node.index] = self._number(node.op, *operands)
        key = [self._meaning(expression, known) for expression in expressions]
        key += [sorts[job.outputs[number][0] >> SHIFT] for number in numbers]
        return _Part(job, numbers, leaves), tuple(key)

    def _meaning(self, expression: Any, known: dict[int, int]) -> int:
        """Return the number of an expression."""
        if not isinstance(expression, scalars.Symbol):
            return self._number("constant", float(expression).hex())
        if expression.op == "constant":
            return self._number("constant", expression.value.hex())
        return known[expression.index]


def _joined(parts: Sequence[_Part]) -> Job:
    """Make parts that are alike the rows of one job."""
    levels = np.concatenate([part.job.levels for part in parts])
    order = np.argsort(levels, kind="stable")

    def rows(codes: Iterable[IntArray]) -> IntArray:
        found: IntArray = np.concatenate(list(codes))[order]
        return found

    model = parts[0]
    return Job(
        [model.job.expressions[number] for number in model.numbers],
        {
            leaf.index: rows(part.job.inputs[part.leaves[k].index] for part in parts)
            for k, leaf in enumerate(model.leaves)
        },
        [
            rows(part.job.outputs[part.numbers[k]] for part in parts)
            for k in range(len(model.numbers))
        ],
        levels[order],
    )
