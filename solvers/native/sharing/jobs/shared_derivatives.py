"""The derivatives of large diagrams, with the code of what is alike shared.

`plan` asks for this one, which goes through all steps in their order. Code that writes out every
block takes longer to compile the more blocks there are. Here one block of each kind is traced
(`flexure.solvers.native.sharing.families.diagram_walk`), and what it computes is cut into stages
(`flexure.solvers.native.sharing.jobs.code_levels`). Where blocks that are not of one kind compute
the same, or one block the same many times over, that is found
(`flexure.solvers.native.sharing.jobs.jobs`). Loops go over all that is alike
(`flexure.solvers.native.sharing.jobs.repetition`). The numbers are the same as when everything is
written out, but for functions of the C library, which may compute several numbers at once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from flexure.diagrams.concurrency.warnings_and_garbage import quietly
from flexure.diagrams.contexts.store import Store
from flexure.diagrams.scalars.expressions.expression import symbols_among
from flexure.diagrams.systems.layout import Layout
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.symbolic_values import DISCRETE, PARAMETER, Key
from flexure.solvers.native.emission.emission import Environment, Node, depth_first, key_of
from flexure.solvers.native.llvm.library import ModuleTexts, care
from flexure.solvers.native.sharing.families.diagram_walk import UnlikeError, Walk
from flexure.solvers.native.sharing.families.requested_derivatives import OF_RUNS, Question
from flexure.solvers.native.sharing.families.value_columns import (
    DISCRETE_COLUMN,
    FIXED,
    INPUT_COLUMN,
    RATE_COLUMN,
    SHIFT,
    STATE_COLUMN,
    TIME_COLUMN,
    Columns,
    IntArray,
)
from flexure.solvers.native.sharing.jobs.code_levels import Stages, live_columns
from flexure.solvers.native.sharing.jobs.jobs import Job, copies, separate, share
from flexure.solvers.native.sharing.jobs.repetition import RepetitionWriter
from flexure.solvers.native.sharing.jobs.shared_jacobian import shared_jacobian
from flexure.solvers.tracing.trace import SymbolicStore

_SAVING = 4  # times fewer operations that are written than computed; with less, nothing is gained
_LARGE = 1_000_000  # characters, about 10,000 operations, beyond which LLVM is to try less hard,
_HUGE = 3_000_000  # and not at all, so that it is done within seconds


class SharedInputs(NamedTuple):
    """Values that shared code reads besides time, states and discrete values, and their places."""

    # The blocks of a family, a parameter of theirs, and for each of its components where those of
    # all of these blocks begin.
    parameters: list[tuple[list[int], int, list[tuple[int, int]]]]
    # The slots of inputs from outside, and where their components begin and end.
    inputs: list[tuple[int, int, int]]

    def fill(self, store: Store, env: FloatArray) -> None:
        """Put the parameters and the inputs from outside of a context into an environment."""
        for positions, index, components in self.parameters:
            count = len(positions)
            values = [store.leaves[k].parameters[index] for k in positions]
            table = np.array(values, dtype=float).reshape(count, -1)
            for component, start in components:
                env[start : start + count] = table[:, component]
        for slot, start, stop in self.inputs:
            env[start:stop] = store.value(slot)


class SharedDerivatives:
    """The derivatives of a root system as the text of one native function, and what prepares it.

    Components of parameters in ``zeros`` are zero. ``least`` is the number of operations from which
    on sharing gains anything. Answers to the ``question`` come behind the derivatives, and varied
    numbers behind the states.

    So many ``blocks`` of so many ``kinds`` take part; of the ``operations`` of the derivatives,
    ``written`` ones are in the text. ``timed`` is whether the derivatives depend on time. ``code``
    has the functions ``rhs``, which computes the derivatives, and ``prepare``, which computes what
    depends on parameters alone, and puts it into its environment, not into its output. ``jacobian``
    returns the Jacobian, which takes room in an environment, or None if sharing does not pay.
    """

    def __init__(
        self,
        layout: Layout,
        environment: Environment,
        zeros: Collection[Key] = (),
        least: int = 0,
        question: Question = OF_RUNS,
    ) -> None:
        n = layout.num_states
        with quietly():
            walk = Walk(layout, environment, zeros, question)
            codes = (code for code, _ in walk.shown if not isinstance(code, float))
            live = live_columns(walk.variants, (code >> SHIFT for code in codes))
            writer, moving = self._write(walk, live, least, n)
        count = n + len(question.varied)
        rows = None if question is OF_RUNS else n + question.num_shown
        self.jacobian = partial(shared_jacobian, moving, walk.columns, count, rows=rows)
        self.blocks = sum(len(family.positions) for family in walk.families)
        self.kinds = len(walk.families)
        self.timed = TIME_COLUMN in live
        parameters = [
            (family.positions, index, components)
            for family in walk.families
            for index, components in family.parameters_in_use().items()
        ]
        self.inputs = SharedInputs(parameters, self._used_inputs(walk))
        text = "\n".join([*sorted(writer.declarations), *writer.texts, *writer.data.lines])
        size = sum(map(len, writer.texts))
        level = 2 if size < _LARGE else 1 if size < _HUGE else 0
        self.code = ModuleTexts([text], level, has_loops=True)

    def _write(
        self, walk: Walk, live: set[int], least: int, first: int
    ) -> tuple[RepetitionWriter, list[Job]]:
        """Write the derivatives and what prepares them; return the jobs of the former, too."""
        stages = Stages(live)
        for family in walk.families:
            stages.add(family)
        functions = {
            "rhs": [
                *share(stages.moving, walk.columns.sorts),
                *copies(walk.shown, walk.columns, first),
            ],
            "prepare": share(stages.fixed, walk.columns.sorts),
        }
        everything = list(chain(*functions.values()))
        self.operations = sum(job.operations * len(job.levels) for job in everything)
        self.written = sum(job.operations for job in everything)
        if self.operations < least:
            raise UnlikeError(f"fewer than {least} operations gain nothing by sharing")
        if self.operations < _SAVING * self.written:
            raise UnlikeError("sharing code saves too little")
        writer = RepetitionWriter()
        for jobs in functions.values():
            walk.columns.arrange(codes for job in jobs for codes in job.codes())
        for name, jobs in functions.items():
            writer.write(name, [job.placed(walk.columns) for job in jobs])
        return writer, functions["rhs"]

    @staticmethod
    def _used_inputs(walk: Walk) -> list[tuple[int, int, int]]:
        """List the slots of used inputs from outside, and the places of their components."""
        first = walk.columns.places[INPUT_COLUMN]
        if first is None:
            return []
        used = walk.columns.used_inputs
        return [
            (slot, first + rows.start, first + rows.stop)
            for slot, rows in walk.inputs
            if used[rows.start : rows.stop].any()
        ]


def may_pay(store: SymbolicStore, derivatives: Sequence[Any]) -> bool:
    """Return whether sharing code may pay, from a trace of all blocks.

    It does not if one part of a block makes up too much of the whole.

    The derivatives are not simplified, so that they begin at the outputs of other blocks.
    """
    layout = store.layout
    changing: set[int] = set()  # what depends on more than parameters, as all that moves does
    everything = depth_first(derivatives, {})
    for node in everything:
        is_changing = any(arg.index in changing for arg in node.args)
        if is_changing or not (node.args or key_of(node)[0][0] == PARAMETER):
            changing.add(node.index)
    largest = 0
    for k in layout.dynamic:
        expressions = derivatives[layout.x_slices[k]]
        read = chain.from_iterable(
            store.cache[slot]
            for slot in layout.sources[k]
            if layout.slot_port[slot].size is not None
        )
        inputs = {node.index: node for node in symbols_among(read)}
        moving = {index for index in inputs if index in changing}
        for node in depth_first(expressions, inputs):
            if node.args and any(arg.index in moving for arg in node.args):
                moving.add(node.index)
                continue
            inputs[node.index] = node
            if not node.args and key_of(node)[0][0] != PARAMETER:
                moving.add(node.index)
        for numbers in separate(expressions, inputs):
            part = depth_first([expressions[number] for number in numbers], inputs)
            largest = max(largest, len(part))
    return largest * _SAVING < len(everything)


def shared_values(
    name: str, expressions: Sequence[Any], environment: Environment
) -> ModuleTexts | None:
    """Write a function that computes expressions of one trace; None if sharing does not pay.

    The deviations of many mechanisms are as alike as their derivatives are. They are one `Job` with
    one row, of which the parts that are alike become rows. The environment is where the inputs of
    the trace are, and what depends on parameters alone.
    """
    columns = Columns(environment, 0)
    fixed = columns.add(FIXED, 0)
    columns.places[fixed] = 0

    def code(node: Node) -> IntArray:
        array, place = environment.places[node.index]
        column = {"t": TIME_COLUMN, "x": STATE_COLUMN, "env": fixed}[array]
        if node.op == "input" and key_of(node)[0][0] == DISCRETE:
            column = DISCRETE_COLUMN
        return np.array([(column << SHIFT) + place])

    operations = depth_first(expressions, environment.places)
    read = symbols_among([*expressions, *(arg for node in operations for arg in node.args)])
    inputs = {node.index: code(node) for node in read if node.index in environment.places}
    outputs = [np.array([(RATE_COLUMN << SHIFT) + k]) for k in range(len(expressions))]
    jobs = share([Job([*expressions], inputs, outputs, np.zeros(1, dtype=np.int64))], columns.sorts)
    if len(operations) < _SAVING * sum(job.operations for job in jobs):
        return None
    writer = RepetitionWriter()
    writer.write(name, [job.placed(columns) for job in jobs])
    text = "\n".join([*sorted(writer.declarations), *writer.texts, *writer.data.lines])
    return ModuleTexts([text], care(len(text)), has_loops=True)
