"""Walking through a diagram, with one trace for all blocks that have equal keys.

The walk goes through the outputs that the derivatives need in topological order, as a root system
is evaluated, and then through the derivatives. Values that a block passes on unchanged (a state, a
parameter, one of its inputs) keep their code, and values that are known while tracing are plain
numbers. So the patterns of the inputs of every block are known when its turn comes, and with them
the variant that applies; only the first block of a variant is traced. `code_levels` goes on with
the variants.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import Any

from flexure.diagrams.systems.layout import Layout
from flexure.diagrams.values.symbolic_values import Key
from flexure.solvers.native.emission.emission import Environment
from flexure.solvers.native.sharing.families.families import (
    FROM_INPUTS,
    KNOWN,
    Family,
    Pattern,
    Prototype,
    Variant,
)
from flexure.solvers.native.sharing.families.requested_derivatives import OF_RUNS, Question
from flexure.solvers.native.sharing.families.structural_key import structural_key
from flexure.solvers.native.sharing.families.value_columns import (
    DISCRETE_COLUMN,
    FIXED,
    INPUT_COLUMN,
    MOTION,
    SHIFT,
    STATE_COLUMN,
    TIME_COLUMN,
    Columns,
)

_NOT_ALONE = "a block cannot be traced without the others"


class UnlikeError(Exception):
    """The blocks of a diagram have too little in common, or one cannot be traced by itself."""


class Walk:
    """A walk through the derivatives of a root system.

    The environment knows where discrete values are, and gives room to columns. Components of
    parameters in ``zeros`` are zero; blocks with other zeros are not alike.

    ``families`` are the blocks that take part, ``variants`` all traces, complete. ``inputs`` are
    the slots of inputs from outside, and the rows of their components. ``shown`` is what is shown
    besides derivatives: codes, or known numbers, each with a level that it is there from.
    """

    def __init__(
        self,
        layout: Layout,
        environment: Environment,
        zeros: Collection[Key] = (),
        question: Question = OF_RUNS,
    ) -> None:
        self._layout, self._question = layout, question
        self._first_varied = (STATE_COLUMN << SHIFT) + layout.num_states
        slots = len(layout.slot_port)
        self._codes: list[tuple[Any, ...]] = [()] * slots
        self._levels = [0] * slots
        self._patterns: list[Pattern] = [None]
        self._numbers: dict[Pattern, int] = {None: 0}
        self._offered = [0] * slots  # the number of the pattern of each slot
        self.variants: list[Variant] = []
        self.columns = Columns(environment, self._place_inputs())
        self._gather_families(environment.discrete, zeros)
        self._go()
        for variant in self.variants:
            variant.complete()
        self.shown: list[tuple[int | float, int]] = []
        for shown, components in question.shown:
            for k in components:
                state = (STATE_COLUMN << SHIFT) + k
                own = (state, 0) if shown is None else (self._codes[shown][k], self._levels[shown])
                self.shown.append(own)

    def _place_inputs(self) -> int:
        """Give codes to the inputs from outside; return how many components they have."""
        self.inputs: list[tuple[int, range]] = []
        first = count = INPUT_COLUMN << SHIFT
        for slot in range(self._layout.input_base, len(self._layout.slot_port)):
            size = self._layout.slot_port[slot].size
            if size is not None:
                self.inputs.append((slot, range(count - first, count - first + size)))
                varied = [self._question.place_of_input(slot, k) for k in range(size)]
                self._codes[slot] = tuple(
                    [
                        count + k if place is None else self._first_varied + place
                        for k, place in enumerate(varied)
                    ]
                )
                offered = tuple([FIXED if place is None else MOTION for place in varied])
                self._offered[slot] = self._number_of(offered)
                count += size
        return count - first

    def _number_of(self, pattern: Pattern) -> int:
        """Return a number that identifies a pattern."""
        number = self._numbers.setdefault(pattern, len(self._patterns))
        if number == len(self._patterns):
            self._patterns.append(pattern)
        return number

    def _gather_families(self, discrete: Sequence[Sequence[int]], zeros: Collection[Key]) -> None:
        """Find out which blocks are alike."""
        layout = self._layout
        slots = [slot for slot, _ in self._question.shown if slot is not None]
        self._plan = layout.order_for(slots) if slots else layout.plan
        blocks = sorted({layout.slot_leaf[slot] for slot in self._plan}.union(layout.dynamic))
        varied_of = {k: self._question.varied_of(k) for k in blocks}
        zeros_of: dict[int, set[Key]] = {}  # as a block by itself has them
        for (what, k, index), component in zeros:
            zeros_of.setdefault(k, set()).add(((what, 0, index), component))
        alike: dict[Hashable, list[int]] = {}
        for k in blocks:
            varied = tuple([each for each, _ in varied_of[k]])
            kind = structural_key(layout.leaves[k]), frozenset(zeros_of.get(k, ())), varied
            alike.setdefault(kind, []).append(k)
        self.families: list[Family] = []
        self._blocks: dict[int, tuple[Family, tuple[int, ...]]] = {}
        for positions in alike.values():
            first = positions[0]
            try:
                prototype = Prototype(
                    layout.leaves[first],
                    zeros_of.get(first, ()),
                    self._question.reading,
                    as_gain=self._question.as_gain,
                )
            except Exception as error:
                raise UnlikeError(_NOT_ALONE) from error
            bases: list[tuple[int, ...]] = [
                (
                    TIME_COLUMN << SHIFT,
                    (STATE_COLUMN << SHIFT) + layout.x_slices[k].start,
                    (DISCRETE_COLUMN << SHIFT) + min(discrete[k], default=0),
                    self._first_varied + (varied_of[k][0][1] if varied_of[k] else 0),
                    row,
                )
                for row, k in enumerate(positions)
            ]
            own = [each for each, _ in varied_of[first]]
            family = Family(prototype, positions, bases, self.columns, own)
            self.families.append(family)
            for k, each in zip(positions, bases, strict=True):
                self._blocks[k] = family, each

    def _go(self) -> None:
        """Pass all calculations."""
        layout = self._layout
        for slot in self._plan:
            k = layout.slot_leaf[slot]
            if slot < layout.entry_base[k] and layout.slot_port[slot].size is not None:
                self._pass(k, slot - layout.output_base[k], slot)
        for k in layout.dynamic:
            self._pass(k, self._blocks[k][0].prototype.derivatives, None)

    def _pass(self, k: int, calculation: int, slot: int | None) -> None:
        """Pass a calculation of a block: of the output in a slot, or of the derivatives."""
        family, bases = self._blocks[k]
        sources, offered, levels = self._layout.sources[k], self._offered, self._levels
        feeding = [sources[port] for port in family.prototype.inputs[calculation]]
        key = tuple([offered[source] for source in feeding])
        known = family.variants[calculation].get(key)
        variant, offer = known or self._trace(family, calculation, feeding, key)
        values = [code for source in feeding for code in self._codes[source]]
        level = 0
        for source in feeding:
            if level < levels[source]:
                level = levels[source]
        if variant.targets:
            level += 1
            variant.add(bases[-1], level, values)
        if slot is not None:
            offered[slot] = offer
            levels[slot] = level
            self._codes[slot] = tuple(
                [
                    bases[base] + offset
                    if base < FROM_INPUTS
                    else (offset if base == KNOWN else values[offset])
                    for base, offset in variant.results
                ]
            )

    def _trace(
        self, family: Family, calculation: int, feeding: list[int], key: tuple[int, ...]
    ) -> tuple[Variant, int]:
        """Trace a calculation for new patterns."""
        ports = self._layout.slot_port
        for number, source in zip(key, feeding, strict=True):
            if number == 0 and ports[source].size is not None:
                raise UnlikeError("an output comes before what it needs, which it does not declare")
        try:
            variant = Variant(family, calculation, [self._patterns[number] for number in key])
        except Exception as error:
            raise UnlikeError(_NOT_ALONE) from error
        self.variants.append(variant)
        found = family.variants[calculation][key] = variant, self._number_of(variant.pattern)
        return found
