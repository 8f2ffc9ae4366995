"""Random diagrams of blocks that are alike: every way to their Jacobian gives the same matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams import scalars
from flexure.diagrams.scalars.expressions.expression import reachable
from flexure.diagrams.values.symbolic_values import STATE, TIME
from flexure.solvers.tracing.trace import number_behind, trace_derivatives
from tests.support.native.native import needs_llvmlite
from tests.support.native.shared_code import FloatArray, jacobian_by
from tests.support.systems.alike_at_random import diagram_of
from tests.support.tiers import by_tier

WAYS = ["entry by entry", "along directions", "written out", "written out along directions"]
#: Half of them have totals among whose addends are states.
SEEDS = by_tier(fast=[3, 43], full=[3, 4, *range(43, 49)])


def backward(context: fx.Context) -> FloatArray:
    """Differentiate each rate backward, through equations of which nothing is shared."""
    store = context.store
    rates = trace_derivatives(context.system.layout)
    keys = [((STATE, 0, 0), k) for k in range(len(store.x))]
    values: dict[Any, Any] = {((TIME, 0, 0), 0): store.time} | dict(zip(keys, store.x, strict=True))
    matrix = np.zeros((len(rates), len(keys)))
    for row, rate in zip(matrix, rates, strict=True):
        nodes = reachable([rate] if isinstance(rate, scalars.Symbol) else [])
        others: set[Any] = {node.key for node in nodes if node.op == "input"} - values.keys()
        values |= {key: number_behind(store, key) for key in others}
        with np.errstate(all="ignore"):
            row[:] = scalars.evaluate(scalars.gradient(rate, keys), values)
    return matrix


@needs_llvmlite
@pytest.mark.parametrize("seed", SEEDS)
def test_every_way_to_a_jacobian_gives_one_matrix(seed: int) -> None:
    rng = np.random.default_rng(seed)
    diagram = diagram_of(seed)
    context = diagram.create_default_context()
    x = 0.7 * rng.normal(size=diagram.layout.num_states)
    context.continuous_state = x
    expected = backward(context)
    scale = 1.0 + np.abs(expected).max()

    direction = rng.normal(size=len(x))
    ends = []
    for sign in (1.0, -1.0):
        context.continuous_state = x + sign * 1e-6 * direction
        ends.append(diagram.eval_time_derivatives(context))
    slope = (ends[0] - ends[1]) / 2e-6
    np.testing.assert_allclose(expected @ direction, slope, rtol=1e-6, atol=1e-7 * scale)

    context.continuous_state = x
    for way in WAYS:
        found, _ = jacobian_by(context, way, states=int(rng.choice([2, 4, 8, 64])))
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13 * scale, err_msg=way)
