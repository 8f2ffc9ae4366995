"""From variants to jobs: what alike blocks compute together, and what is kept for later.

A block may compute one output as soon as its state is known, another when some input is, and its
derivatives last. What it computes at one level is a stage. For all blocks that have the same stages
in the same order, a stage is one `Job`. It leaves in the environment what others read, and what
later stages of the same block go on with. Values that depend on parameters alone are a separate
job, which runs when parameters are filled in. Values that are not needed are left out. All jobs go
on to `jobs`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from flexure.diagrams.scalars.expressions.expression import reachable, symbols_among
from flexure.diagrams.values.symbolic_values import TIME
from flexure.solvers.native.emission.emission import Node, depth_first, key_of
from flexure.solvers.native.sharing.families.families import FROM_STATE, Family, Variant
from flexure.solvers.native.sharing.families.value_columns import (
    FIXED,
    MOVING,
    RATE_COLUMN,
    SHIFT,
    STATE_COLUMN,
    TIME_COLUMN,
    IntArray,
    columns_of,
)
from flexure.solvers.native.sharing.jobs.jobs import Job


def live_columns(variants: Sequence[Variant], asked: Iterable[int] = ()) -> set[int]:
    """Return the columns on which derivatives, and others that are asked for, depend.

    Columns of parameters and states are left out.
    """
    makers: dict[int, list[tuple[Variant, Node]]] = {}
    waiting: list[tuple[Variant, list[Any]]] = []
    for variant in variants:
        if variant.is_derivative:
            waiting.append((variant, variant.targets))
        else:
            for node in variant.targets:
                makers.setdefault(variant.column_of(node), []).append((variant, node))
    live: set[int] = set()
    passed: dict[Variant, set[int]] = {variant: set() for variant in variants}
    for column in set(asked):
        live.add(column)
        waiting += [(maker, [made]) for maker, made in makers.get(column, [])]
    while waiting:
        variant, targets = waiting.pop()
        for node in _reachable_anew(targets, passed[variant]):
            for column in _columns_behind(node, variant):
                if column not in live:
                    live.add(column)
                    waiting += [(maker, [made]) for maker, made in makers.get(column, [])]
    return live


def _reachable_anew(targets: Iterable[Any], passed: set[int]) -> Iterator[Node]:
    """Go through the nodes behind some targets, but for those that were passed before."""
    stack = symbols_among(targets)
    while stack:
        node = stack.pop()
        if node.index not in passed:
            passed.add(node.index)
            stack.extend(node.args)
            yield node


def _columns_behind(node: Node, variant: Variant) -> list[int]:
    """Return the columns of an input of a trace, if it is time or comes from other blocks."""
    if node.op != "input":
        return []
    if node.index in variant.inputs:
        return columns_of(variant.codes[:, variant.inputs[node.index]])
    return [TIME_COLUMN] if key_of(node)[0][0] == TIME else []


@dataclass
class _Stage:
    """The computations of some blocks of a family, each at one level."""

    family: Family
    # rows, levels: the blocks and their levels, in ascending order of levels.
    rows: IntArray
    levels: IntArray
    # The calculations, and where the blocks are among those of the variant.
    variants: list[tuple[Variant, IntArray]]
    # results, derivatives: what others read, and what the integrator reads.
    results: list[Node] = field(default_factory=list)
    derivatives: list[Any] = field(default_factory=list)
    moving: set[int] = field(default_factory=set)  # nodes that change during a run
    fixed: dict[int, Node] = field(default_factory=dict)  # operations that do not, by index
    # Operations that do and that no earlier stage has done.
    order: list[Node] = field(default_factory=list)
    kept: dict[int, Node] = field(default_factory=dict)  # what is left in the environment, by index

    def __post_init__(self) -> None:
        # The calculation that reads a node from other blocks, where the blocks are among its
        # blocks, and the column of the node in its codes, by index of the node.
        self.sources = {
            index: (variant, places, k)
            for variant, places in self.variants
            for index, k in variant.inputs.items()
        }

    def needs(self) -> list[Node]:
        """Return the operands of all operations, and what is to be known in the end."""
        operands = [arg for node in self.order for arg in node.args]
        return symbols_among([*operands, *self.results, *self.derivatives])


class Stages:
    """The stages of all families: ``moving`` jobs during a run, and ``fixed`` ones before.

    ``live`` are the columns that are needed.
    """

    def __init__(self, live: set[int]) -> None:
        self._live = live
        self.moving: list[Job] = []
        self.fixed: list[Job] = []

    def add(self, family: Family) -> None:
        """Add the stages of a family."""
        found = [variant for each in family.variants for variant, _ in each.values()]
        wanted = {variant: self._wanted(variant) for variant in found}
        needed = [variant for variant in found if wanted[variant]]
        for stages in _groups(family, needed) if needed else ():
            _plan(stages, wanted)
            prepared: dict[int, Node] = {}
            for stage in stages:
                new = {
                    node.index: node
                    for node in stage.needs()
                    if node.index in stage.fixed and node.index not in prepared
                }
                order = _operations(new.values(), prepared)
                self._add(self.fixed, stage, order, list(new.values()), [])
                kept = [stage.kept[index] for index in sorted(stage.kept)]
                self._add(self.moving, stage, stage.order, kept, stage.derivatives)
                prepared |= new

    def _wanted(self, variant: Variant) -> list[Any]:
        """Return the targets of a variant that are needed."""
        if variant.is_derivative:
            return variant.targets
        return [node for node in variant.targets if variant.column_of(node) in self._live]

    def _add(
        self,
        jobs: list[Job],
        stage: _Stage,
        order: list[Node],
        kept: list[Node],
        derivatives: list[Any],
    ) -> None:
        """Add a job of operations, unless nothing is to come out of it."""
        if not kept and not derivatives:
            return
        done = {node.index for node in order}
        leaves: dict[int, IntArray] = {}
        operands = [arg for node in order for arg in node.args]
        for node in symbols_among([*operands, *derivatives]):
            if node.op != "constant" and node.index not in done and node.index not in leaves:
                leaves[node.index] = self._codes(stage, node)
        outputs = [self._codes(stage, node) for node in kept]
        starts = stage.family.bases[stage.rows, FROM_STATE] + (RATE_COLUMN - STATE_COLUMN << SHIFT)
        outputs += [starts + k for k in range(len(derivatives))]
        jobs.append(Job([*kept, *derivatives], leaves, outputs, stage.levels))

    @staticmethod
    def _codes(stage: _Stage, node: Node) -> IntArray:
        """Return the representation of a node in every block."""
        if node.args:
            sort = MOVING if node.index in stage.moving else FIXED
            return (stage.family.result_column(node, sort) << SHIFT) + stage.rows
        if node.index in stage.sources:
            variant, places, k = stage.sources[node.index]
            inputs: IntArray = variant.codes[places, k]
            return inputs
        base, offset = stage.family.origin(key_of(node))
        own: IntArray = stage.family.bases[stage.rows, base] + offset
        return own


def _groups(family: Family, variants: Sequence[Variant]) -> Iterator[list[_Stage]]:
    """Sort the blocks of a family by their variants, and by the order in which these come."""
    calculations = sorted({variant.calculation for variant in variants})
    place_of = {calculation: k for k, calculation in enumerate(calculations)}
    shape = len(family.positions), len(calculations)
    number, level, place = np.full(shape, -1), np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for k, variant in enumerate(variants):
        column = place_of[variant.calculation]
        number[variant.rows, column] = k
        level[variant.rows, column] = variant.levels
        place[variant.rows, column] = np.arange(len(variant.rows))
    rank = _ranks(level)
    kinds, kind_of = np.unique(np.hstack([number, rank]), axis=0, return_inverse=True)
    for k, kind in enumerate(kinds):
        numbers, ranks = np.split(kind, 2)
        rows = np.flatnonzero(kind_of.reshape(-1) == k)
        stages = []
        for each in np.unique(ranks[numbers >= 0]):
            together = np.flatnonzero((ranks == each) & (numbers >= 0))
            levels = level[rows, together[0]]
            order = np.argsort(levels, kind="stable")
            ordered = rows[order]
            found = [(variants[numbers[column]], place[ordered, column]) for column in together]
            stages.append(_Stage(family, ordered, levels[order], found))
        yield stages


def _ranks(levels: IntArray) -> IntArray:
    """Return how many numbers of the same row are smaller, for each number."""
    count, width = levels.shape
    apart = levels + (levels.max() + 1) * np.arange(count)[:, np.newaxis]
    before = np.searchsorted(np.sort(apart, axis=None), apart)
    ranks: IntArray = before - width * np.arange(count)[:, np.newaxis]
    return ranks


def _plan(stages: Sequence[_Stage], wanted: Mapping[Variant, list[Any]]) -> None:
    """Find out for the stages of some blocks which one computes what, and what it has to keep."""
    maker: dict[int, _Stage] = {}
    for stage in stages:
        for variant, _ in stage.variants:
            (stage.derivatives if variant.is_derivative else stage.results).extend(wanted[variant])
            stage.moving |= variant.moving
        ends = symbols_among([*stage.results, *stage.derivatives])
        stage.fixed = {
            node.index: node
            for node in reachable(ends)
            if node.args and node.index not in stage.moving
        }
        stage.order = _operations(ends, {**maker, **stage.fixed})
        for node in stage.needs():
            if node.index in maker:
                maker[node.index].kept[node.index] = node
        maker |= dict.fromkeys([node.index for node in stage.order], stage)
        for node in stage.results:
            if node.index in stage.moving:
                maker[node.index].kept[node.index] = node


def _operations(ends: Iterable[Node], stop: Mapping[int, Any]) -> list[Node]:
    """Return the operations behind some nodes, those behind others left out."""
    return [node for node in depth_first(list(ends), stop) if node.args]
