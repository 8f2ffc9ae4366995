"""JavaScript gives the numbers of the equations: operations, blocks, elements and mechanisms.

All blocks go through one process of Node, and all mechanisms through another one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import Phase, given, settings, strategies as st

import flexure as fx
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.scalars.derivatives.jacobians import directional
from flexure.diagrams.values.events import Initialization, Periodic, PerStep, Settling, Witness
from flexure.solvers.export.javascript.equation_functions import CHUNK
from flexure.solvers.tracing.exact_jacobian import numbers_behind, state_keys
from flexure.solvers.tracing.signals import resolve
from flexure.solvers.tracing.trace import trace_derivatives
from tests.contracts.catalog import CATALOG, TRIED
from tests.contracts.equations import filled
from tests.contracts.test_every_block import NOT_TRACED
from tests.contracts.test_every_reading import (
    _T,
    _X,
    EXACT,
    OF_EITHER_ZERO,
    OF_SIGNED_ZEROS,
    PAIRS,
    SPECIAL,
    VOCABULARY,
    Readings,
    compare,
    expressions,
    ladder,
    readings_of_block,
    references,
    same_bits,
    traced,
)
from tests.support.mechanics.mechanisms import MECHANISMS, WRITTEN_MECHANISMS, random_contexts
from tests.support.native.javascript import run_expressions, run_models
from tests.support.tiers import for_each

FloatArray = npt.NDArray[np.float64]
Found = dict[str, list[dict[str, FloatArray]]]
Asked = dict[str, tuple[fx.results.JavaScriptModel, list[fx.Context]]]

__all__ = ["references"]  # a fixture

#: Blocks with equations that symbols go through.
TRACED = [label for label in TRIED if traced(label, CATALOG[label]())]


def close(found: FloatArray, expected: FloatArray, what: str) -> None:
    """Compare numbers up to rounding errors of the largest of them."""
    size = np.max(np.abs(expected), initial=1.0, where=np.isfinite(expected))
    atol = (1e-10 if size < 1e30 else 1e-2) * size
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=atol, err_msg=what)


# Expressions -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tables() -> list[FloatArray]:
    """Every operation at every pair of special numbers, in one piece and in pieces of seven."""
    asked = {"": ([*VOCABULARY.values()], PAIRS)}
    return [run_expressions(asked, chunk)[""] for chunk in (1000, 7)]


@for_each("op", VOCABULARY)
def test_operations_are_those_of_numpy(
    op: str, tables: list[FloatArray], references: dict[str, FloatArray]
) -> None:
    for table in tables:
        compare(op, table[[*VOCABULARY].index(op)], references[op])


def test_chunks_change_no_bit() -> None:
    asked = {"": (ladder(30), PAIRS)}
    whole, *parts = (run_expressions(asked, chunk)[""] for chunk in (1000, 1, 7, 31))
    for part in parts:
        np.testing.assert_array_equal(part, whole)


def test_no_equation_is_too_long_for_an_engine() -> None:
    values = {key: np.array([0.3, -1.0]) for key in _X[:2]}
    outputs = ladder(3000)
    found = run_expressions({"": (outputs, values)}, CHUNK)[""]
    same_bits(found, scalars.evaluate(outputs, values))


@pytest.mark.parametrize("signed_zeros", [True, False])
@settings(max_examples=2, phases=[Phase.generate])
@given(st.data())
def test_random_expressions_have_the_same_bits(signed_zeros: bool, data: st.DataObject) -> None:
    # The sign of NaN, which decides a copysign, is nothing that JavaScript tells.
    left_out = {*OF_EITHER_ZERO, "copysign"} if signed_zeros else OF_SIGNED_ZEROS
    drawn = data.draw(
        st.lists(expressions([op for op in EXACT if op not in left_out]), min_size=15, max_size=15)
    )
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    numbers = [*SPECIAL, *rng.normal(0.0, 2.0, len(SPECIAL))]
    values = {key: rng.choice(numbers, 20) for key in (_T, *_X)}
    asked = {str(k): (outputs, values) for k, outputs in enumerate(drawn)}
    found = [run_expressions(asked, chunk) for chunk in (1000, 3)]
    for name, (outputs, _) in asked.items():
        expected = scalars.evaluate(outputs, values)
        for each in found:
            same_bits(each[name], expected, signed_zeros=signed_zeros)


@pytest.fixture(scope="module")
def readings() -> tuple[dict[str, Readings], dict[str, FloatArray]]:
    """What blocks compute, as it was recorded, at special numbers too, and the same by Node."""
    found = {label: readings_of_block(label) for label in TRACED}
    return found, run_expressions({k: (each.outputs, each.values()) for k, each in found.items()})


@for_each("label", TRACED)
def test_what_every_block_computes_is_the_same_at_special_numbers(
    label: str, readings: tuple[dict[str, Readings], dict[str, FloatArray]]
) -> None:
    ours, found = readings
    ours[label].check(found[label], "JavaScript")


# Everything that a model computes ----------------------------------------------------------------


def expected_numbers(
    model: fx.results.JavaScriptModel, context: fx.Context
) -> dict[str, FloatArray | None]:
    """Return what `run_models` computes, by the equations; None where they refuse."""
    store = context.store
    computed: dict[str, Callable[[], Any]] = {
        "derivatives": store.time_derivatives,
        "witnesses": lambda: witness_values(context),
        "breaks": lambda: [
            leaf.system.calc_next_break_time(leaf)
            for leaf in context.leaves()
            if leaf.system.has_break_times
        ],
    }
    for row in model.info["signals"]:
        computed[f"signal {row['path']}"] = partial(signal_of, context, row["path"])
    for k, (leaf, event) in enumerate(events_of(context)):
        if event.kind != "publish":
            computed[f"event {k}"] = partial(after, context, leaf, event)
    found: dict[str, FloatArray | None] = {}
    for name, compute in computed.items():
        try:
            with np.errstate(all="ignore"):
                found[name] = np.hstack([np.zeros(0), *map(np.ravel, [compute()])])
        except EvaluationError:
            found[name] = None
    return found


def signal_of(context: fx.Context, path: str) -> Any:
    return resolve(context.system, path)(context)


def events_of(context: fx.Context) -> list[tuple[Any, Any]]:
    """Return the events that models have, with their blocks, in the order of models."""
    found = []
    for leaf in context.leaves():
        for kind in (Initialization, PerStep, Periodic, Witness, Settling):
            for event in leaf.system.events:
                if isinstance(event.trigger, kind):
                    stops = isinstance(leaf.system, fx.StopWhen)
                    if event.kind != "publish" or kind is Witness or stops:
                        found.append((leaf, event))
    return found


def witness_values(context: fx.Context) -> FloatArray:
    events = [(leaf, e.trigger) for leaf, e in events_of(context) if isinstance(e.trigger, Witness)]
    return np.hstack([np.zeros(0), *(np.ravel(trigger.calc(leaf)) for leaf, trigger in events)])


def after(context: fx.Context, leaf: Any, event: Any) -> FloatArray:
    """Return all states and then all discrete values after an update."""
    copy = context.clone()
    leaf = copy.store.leaves[leaf.position]
    for state, new in (event.handler(leaf) or {}).items():
        value = np.array(np.broadcast_to(np.ravel(new), state.size), dtype=float)
        if isinstance(state, fx.diagrams.ContinuousState):
            leaf.write_continuous_state(value)
        else:
            leaf.write_discrete_state(state.index, value)
    discrete = [value for each in copy.leaves() for value in each.discrete]
    return np.hstack([copy.store.x, *discrete])


def check(
    model: fx.results.JavaScriptModel,
    contexts: Sequence[fx.Context],
    found: Sequence[dict[str, FloatArray]],
) -> None:
    """Compare what a model computes with the equations."""
    for context, numbers in zip(contexts, found, strict=True):
        expected = expected_numbers(model, context)
        for name, value in expected.items():
            if value is None:
                assert np.isnan(numbers[name]).any(), name
            else:
                close(numbers[name], value, name)
        others = numbers.keys() - expected.keys() - {"jacobian"}
        assert all(name.startswith("event") and numbers[name] == [1.0] for name in others)
    if contexts[0].store.layout.num_states:
        check_jacobians(contexts, [numbers["jacobian"] for numbers in found])


def check_jacobians(contexts: Sequence[fx.Context], found: Sequence[FloatArray]) -> None:
    """Compare products of Jacobians and a random direction with the exact slopes along it."""
    layout = contexts[0].store.layout
    derivatives = trace_derivatives(layout)
    direction = np.random.default_rng(5).normal(size=layout.num_states)
    seeds = [("seed", k) for k in range(layout.num_states)]
    slopes = directional(derivatives, state_keys(contexts[0].store), seeds)
    for context, entries in zip(contexts, found, strict=True):
        store = context.store
        numbers: dict[Any, float] = dict(zip(seeds, direction.tolist(), strict=True))
        numbers |= numbers_behind(store, derivatives, store.time, store.x)
        with np.errstate(all="ignore"):
            expected = np.array(scalars.evaluate(slopes, numbers))
            product = entries.reshape(-1, layout.num_states) @ direction
        finite = np.isfinite(expected)
        close(product[finite], expected[finite], "Jacobian")
        assert finite.any()


@pytest.fixture(scope="module")
def blocks() -> tuple[Asked, Found]:
    """Every block of the catalog with contexts, and what JavaScript computes in these."""
    asked: Asked = {}
    for label in TRIED:
        block = CATALOG[label]()
        context = block.create_default_context()
        contexts = [context.clone() for _ in filled(context, seeds=2)]
        asked[label] = fx.to_javascript(block), contexts
    return asked, run_models(asked)


@for_each("label", TRIED)
def test_every_block_computes_the_same(label: str, blocks: tuple[Asked, Found]) -> None:
    asked, found = blocks
    model, contexts = asked[label]
    check(model, contexts, found[label])
    assert model.info["leftOut"].keys() == NOT_TRACED.get(label, {}).keys()


@pytest.fixture(scope="module")
def mechanisms() -> tuple[Asked, Found]:
    """Every mechanism with contexts, and what JavaScript computes in these."""
    asked: Asked = {}
    for name in WRITTEN_MECHANISMS:
        plant = MECHANISMS[name]()
        some = list(plant.output_ports)[::5]  # all of them take long to write
        asked[name] = fx.to_javascript(plant, signals=some), random_contexts(plant, 2)
    return asked, run_models(asked)


@for_each("name", WRITTEN_MECHANISMS)
def test_every_mechanism_computes_the_same(name: str, mechanisms: tuple[Asked, Found]) -> None:
    asked, found = mechanisms
    check(*asked[name], found[name])
