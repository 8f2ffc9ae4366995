"""Rows of a Jacobian that are sums of much, each part of which depends on a few states.

The power that an energy ledger integrates depends on every state, so that no two states could share
a direction, and the Jacobian would take as many turns as there are states. But it is the sum of the
powers of elements, each of which depends on the neighbors of one element. So these are what is
differentiated, along directions that states share, and their derivatives are added up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from flexure.diagrams.scalars.expressions.expression import Symbol
from flexure.solvers.native.emission.tangent_emission import WIDTH, DirectionPlan, Sums
from flexure.solvers.native.sharing.families.value_columns import SHIFT, IntArray
from flexure.solvers.native.sharing.jobs.changing_jobs import Part
from flexure.solvers.native.sharing.jobs.shared_entries import SharedEntries


class _Addend(NamedTuple):
    """A part of a sum: an operation of a job, or what the job reads, with its code."""

    weight: float
    part: Part
    row: int
    node: Symbol
    code: int | None
    bits: int


class SeparableRows:
    """The rows that are taken apart, and their addends.

    Jobs in ``parts`` with addends inside expose them. ``reached`` says by the codes of rows on
    which states these depend, as the bits of a number, and ``bits`` by their codes the same of
    results: what is exposed is added there, and the rows are taken out. ``most`` is on how many
    states a row depends at least, and each of its addends at most; ``column`` is the first number
    of a column that is not taken.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        reached: Iterable[int],
        bits: dict[int, int],
        most: int,
        column: int,
    ) -> None:
        self._parts, self._bits, self._most, self._column = parts, bits, most, column
        # For each of them the weights of addends, by the codes of these.
        self.rows: dict[int, dict[int, float]] = {}
        for row in reached:
            found = self._addends(row) if bits.get(row, 0).bit_count() > most else None
            if found is not None:
                weights = self.rows[row] = {}
                for addend in found:
                    code = self._code(addend)
                    weights[code] = weights.get(code, 0.0) + addend.weight
        for row in self.rows:
            del bits[row]
        self.codes = sorted({code for weights in self.rows.values() for code in weights})

    @property
    def reached(self) -> list[int]:
        """On which states each of the addends depends, by ascending codes."""
        return [self._bits[code] for code in self.codes]

    def _addends(self, row: int) -> list[_Addend] | None:
        """Return the addends of a row; None if one of them depends on too many states."""
        found: list[_Addend] = []
        pending = [(row, 1.0)]
        while pending:
            for addend in self._within(*pending.pop()):
                if addend.bits.bit_count() <= self._most:
                    found += [addend] if addend.bits else []
                elif addend.code is not None:
                    pending.append((addend.code, addend.weight))
                else:
                    return None
        return found

    def _within(self, code: int, weight: float) -> Iterator[_Addend]:
        """Yield the addends of a result within the job that computes it."""
        part, row, expression = next(self._makers(code))
        pending = [(expression, weight)]
        while pending:
            node, weight = pending.pop()
            if node.index in part.job.inputs:
                read = int(part.job.inputs[node.index][row])
                yield _Addend(weight, part, row, node, read, self._bits.get(read, 0))
            elif node.op in ("add", "subtract"):
                sign = 1.0 if node.op == "add" else -1.0
                pending += [(node.args[0], weight), (node.args[1], sign * weight)]
            elif node.op == "negative":
                pending.append((node.args[0], -weight))
            else:
                states = part.states_behind(node.index, row, self._bits)
                yield _Addend(weight, part, row, node, None, states)

    def _makers(self, code: int) -> Iterator[tuple[Part, int, Symbol]]:
        """Yield the job that computes a result, its row there, and the expression."""
        for part in self._parts:
            for expression, codes in zip(part.job.expressions, part.job.outputs, strict=True):
                for row in np.flatnonzero(codes == code):
                    yield part, int(row), expression

    def _code(self, addend: _Addend) -> int:
        """Return the code of an addend; one within a job is exposed."""
        if addend.code is not None:
            return addend.code
        exposed = addend.part.exposed
        if addend.node.index not in exposed:
            first = self._column << SHIFT
            self._column += 1
            codes = first + np.arange(len(addend.part.job.levels))
            exposed[addend.node.index] = addend.node, codes
        code = int(exposed[addend.node.index][1][addend.row])
        self._bits[code] = addend.bits
        return code

    def sums(self, entries: SharedEntries) -> Sums | None:
        """Return how the rows are added up, which become entries behind all others."""
        if not self.rows:
            return None
        totals = _Totals(len(entries.rows))
        for row, weights in self.rows.items():
            for code, weight in weights.items():
                for state, place in entries.place_of(code).items():
                    totals.add(row & ((1 << SHIFT) - 1), state, place, weight)
        totals.list_entries(entries.rows, entries.columns)
        return totals.sums

    def split(
        self, plan: DirectionPlan, count: int, places: IntArray
    ) -> tuple[DirectionPlan, Sums | None]:
        """Return a plan without addends, in which entries of the rows are behind all others.

        In the ``plan`` of all rows, those of the addends are behind ``count`` others. ``places`` is
        where derivatives of the addends are in the environment.
        """
        if not self.rows:
            return plan, None
        users: dict[int, list[tuple[int, float]]] = {}
        for row, weights in self.rows.items():
            for code, weight in weights.items():
                users.setdefault(code, []).append((row & ((1 << SHIFT) - 1), weight))
        picked = [e for e, row in enumerate(plan.rows) if row < count]
        rows, columns = ([each[e] for e in picked] for each in (plan.rows, plan.columns))
        ends = np.searchsorted(picked, plan.ends).tolist()
        totals = _Totals(len(picked))
        begin = 0
        for end in plan.ends:
            for e in range(begin, end):
                number = plan.rows[e] - count
                if number < 0:
                    continue
                source = int(places[number]) + plan.sources[e] % WIDTH
                for row, weight in users[self.codes[number]]:
                    totals.add(row, plan.columns[e], source, weight)
            totals.sums.ends.append(len(totals.sums.sources))
            begin = end
        totals.list_entries(rows, columns)
        sources = [plan.sources[e] for e in picked]
        return DirectionPlan(plan.directions, sources, ends, rows, columns), totals.sums


class _Totals:
    """Entries that are sums, behind so many others."""

    def __init__(self, others: int) -> None:
        self.sums = Sums([], [], [], [], [])
        self._others = others
        self._targets: dict[tuple[int, int], int] = {}

    def add(self, row: int, column: int, source: int, weight: float) -> None:
        """Add what is in a place of the environment, times a weight, to an entry."""
        targets, entry = self._targets, (row, column)
        self.sums.first.append(int(entry not in targets))
        self.sums.targets.append(targets.setdefault(entry, self._others + len(targets)))
        self.sums.sources.append(source)
        self.sums.weights.append(weight)

    def list_entries(self, rows: list[int], columns: list[int]) -> None:
        """Append where the entries are in the Jacobian."""
        rows += [row for row, _ in self._targets]
        columns += [column for _, column in self._targets]
