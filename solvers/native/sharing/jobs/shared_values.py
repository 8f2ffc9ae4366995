"""Values that loops read beside the derivatives, from one trace, with code shared by equal parts.

The deviations of many mechanisms are as alike as their derivatives are. They come from a trace of
all blocks together, whose inputs are in the environment, and so are one `Job` with one row, of
which the parts that are alike become rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flexure.diagrams.values.symbolic_values import DISCRETE
from flexure.solvers.native.emission.emission import Environment, Node, depth_first, key_of
from flexure.solvers.native.llvm.compilation import ModuleTexts, care
from flexure.solvers.native.sharing.families.families import symbols_among
from flexure.solvers.native.sharing.families.value_columns import (
    DISCRETE_COLUMN,
    FIXED,
    RATE_COLUMN,
    SHIFT,
    STATE_COLUMN,
    TIME_COLUMN,
    Columns,
    IntArray,
)
from flexure.solvers.native.sharing.jobs.jobs import Job, share
from flexure.solvers.native.sharing.jobs.repetition import RepetitionWriter

_SAVING = 4  # times fewer operations that are written than computed; with less, nothing is gained


def shared_values(
    name: str, expressions: Sequence[Any], environment: Environment
) -> ModuleTexts | None:
    """Write a function that computes expressions of one trace; None if sharing does not pay.

    The environment is where the inputs of the trace are, and what depends on parameters alone.
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
