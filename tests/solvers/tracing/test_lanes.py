"""Signals of many contexts at once are those of one context after the other."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import cycle
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import flexure as fx
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import ContextError, EvaluationError, UnknownNameError
from flexure.diagrams.values.symbolic_values import PARAMETER, STATE
from flexure.solvers.tracing import lanes
from flexure.solvers.tracing.lanes import TIME_KEY, BatchReader, ContextBatch, Lanes
from flexure.solvers.tracing.signals import resolve
from flexure.solvers.tracing.trace import trace
from tests.contracts.catalog import CATALOG
from tests.contracts.equations import DRAWS, fill
from tests.support.systems.blocks import Constant, Gain, Oscillator, diagram_of
from tests.support.tiers import for_each

FloatArray = npt.NDArray[np.float64]

MANY = 40  # contexts that are worth a trace
FOREIGN = ("FunctionBlock of a foreign function", "TimeFunction of a foreign function")


class Watched(ContextBatch):
    """Contexts that count how often somebody goes through them one by one."""

    passes = 0

    def __iter__(self) -> Iterator[fx.Context]:
        self.passes += 1
        return super().__iter__()


def one_by_one(
    system: fx.System, signals: Iterable[Any], contexts: list[fx.Context]
) -> list[FloatArray]:
    tables = []
    for signal in signals:
        reader = resolve(system, signal)
        with np.errstate(all="ignore"):
            rows = [reader(context) for context in contexts]
        tables.append(np.array(rows).reshape(len(contexts), *reader.shape))
    return tables


def assert_all_close(found: list[FloatArray], expected: list[FloatArray]) -> None:
    for each, other in zip(found, expected, strict=True):
        assert each.shape == other.shape
        np.testing.assert_allclose(each, other, rtol=1e-12, atol=1e-12)


def signals_of(block: fx.LeafSystem) -> list[Any]:
    states = [] if block.continuous_state is None else [block.continuous_state]
    return [*block.output_ports, *block.input_ports, *states, *block.discrete_states]


def random_contexts(system: fx.System, count: int = MANY) -> list[fx.Context]:
    """Return contexts in which every number is another one, scattered, zero or tied."""
    contexts = [system.create_default_context() for _ in range(count)]
    for seed, (draw, context) in enumerate(zip(cycle(DRAWS.values()), contexts, strict=False)):
        rng = np.random.default_rng(seed)
        for leaf in context.leaves():
            fill(leaf, draw, rng)
    return contexts


def refuses(block: fx.System, signals: Sequence[str], context: fx.Context) -> bool:
    """Return whether an equation has no meaning for the numbers of a context."""
    try:
        one_by_one(block, signals, [context])
    except EvaluationError:
        return True
    return False


def servo() -> fx.Diagram:
    """A sampled controller, a plant and a free input, in two levels."""
    inner = fx.DiagramBuilder("inner")
    inner.add_all(
        fx.PIDController("pid", kp=2.0, ki=0.5, period=0.1),
        fx.StateSpace("plant", [[0.0, 1.0], [-4.0, -0.5]], [[0.0], [1.0]], [[1.0, 0.0]]),
    )
    inner.connect("pid.u", "plant.u")
    inner.connect("plant.y", "pid.measurement")
    inner.export_input("pid.setpoint", name="target")
    inner.export_output("plant.y", name="angle")
    outer = fx.DiagramBuilder("servo")
    outer.add_all(inner.build(), fx.Sine("sine", 0.5), fx.Sum("sum"))
    outer.export_input("sum.u1", name="reference")
    outer.connect("sine.y", "sum.u2")
    outer.connect("sum.y", "inner.target")
    return outer.build()


def servo_contexts(system: fx.System) -> list[fx.Context]:
    """Return contexts of the servo that differ in everything."""
    rng = np.random.default_rng(11)
    contexts = [system.create_default_context() for _ in range(MANY)]
    for context in contexts:
        context.time = rng.uniform(0.0, 5.0)
        context.continuous_state = rng.normal(size=2)
        context.set("inner.pid.integral", rng.normal())
        context.set("inner.pid.held", rng.normal())
        context.set("inner.pid.kp", rng.uniform(1.0, 5.0))
        context.set("inner.plant.C", rng.normal(size=(1, 2)))
        context.set("sine.frequency", rng.uniform(1.0, 5.0))
        context.set("reference", rng.normal())
    return contexts


SERVO_SIGNALS = [
    *("inner.angle", "inner.pid.u", "inner.plant.x", "inner.plant.x[1]", "inner.plant.y[0]"),
    *("inner.pid.setpoint", "reference", "sum.y", "sine.y", "inner.pid.integral"),
]


# Equal to one after the other --------------------------------------------------------------------


#: Flexures of any elasticity and size can be so stiff that rounding decides about their forces.
FLEXURES = ("Beam", "LeafSpring", "WireFlexure", "NotchHinge")


@pytest.mark.full
@for_each("label", [*[*CATALOG][::10], *FOREIGN])  # all: tests/contracts/test_every_reading.py
def test_every_block_gives_in_lanes_what_it_gives_one_by_one(label: str) -> None:
    block = CATALOG[label]()
    signals = signals_of(block)
    drawn = random_contexts(block, 2 * MANY)
    if label.startswith(FLEXURES):
        for each in drawn:
            for parameter in block.numeric_parameters:
                parameter.set(each, parameter.default)
    contexts = [each for each in drawn if not refuses(block, signals, each)][:MANY]
    assert len(contexts) == MANY
    batch = Watched(contexts)
    found = BatchReader(block).read([resolve(block, signal) for signal in signals], batch)
    assert batch.passes == (label in FOREIGN)
    assert_all_close(found, one_by_one(block, signals, contexts))


def test_contexts_of_a_diagram_may_differ_in_everything() -> None:
    system = servo()
    contexts = servo_contexts(system)
    found = fx.evaluate_batch(system, SERVO_SIGNALS, contexts)
    assert_all_close(found, one_by_one(system, SERVO_SIGNALS, contexts))
    assert [table.shape for table in found[:4]] == [(MANY,), (MANY,), (MANY, 2), (MANY,)]


@pytest.mark.parametrize(
    "vary",
    [
        lambda context, k: setattr(context, "time", 0.1 * k),
        lambda context, k: context.set("inner.plant.x", [k, -k]),
        lambda context, k: context.set("inner.pid.integral", k),
        lambda context, k: context.set("inner.pid.kp", 1.0 + k),
        lambda context, k: context.set("inner.plant.C", [[1.0, k]]),
        lambda context, k: context.set("reference", k),
        lambda context, k: None,
    ],
    ids=["time", "state", "discrete state", "parameter", "matrix", "input", "nothing"],
)
def test_contexts_may_differ_in_one_thing_only(vary: Callable[..., None]) -> None:
    system = servo()
    start = system.create_default_context()
    start.set("reference", 0.7)
    contexts = [start.clone() for _ in range(MANY)]
    for k, context in enumerate(contexts):
        vary(context, float(k))
    found = fx.evaluate_batch(system, SERVO_SIGNALS, contexts)
    assert_all_close(found, one_by_one(system, SERVO_SIGNALS, contexts))


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 1e308])
def test_a_lane_that_is_not_finite_spoils_no_other(wrong: float) -> None:
    system = servo()
    contexts = servo_contexts(system)
    expected = one_by_one(system, SERVO_SIGNALS, contexts)
    for context in contexts[1::3]:
        context.store.set_motion(context.time, np.array([wrong, 1.0]))
    found = fx.evaluate_batch(system, SERVO_SIGNALS, contexts)
    healthy = [k for k in range(MANY) if k % 3 != 1]
    assert_all_close([each[healthy] for each in found], [each[healthy] for each in expected])
    assert found[2][1::3, 0].tolist() == pytest.approx([wrong] * len(contexts[1::3]), nan_ok=True)
    assert_all_close(found, one_by_one(system, SERVO_SIGNALS, contexts))


def test_a_batch_that_is_evaluated_in_several_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    system = servo()
    contexts = servo_contexts(system)
    at_once = fx.evaluate_batch(system, SERVO_SIGNALS, contexts)
    monkeypatch.setattr(lanes, "_AT_ONCE", 7)
    in_parts = fx.evaluate_batch(system, SERVO_SIGNALS, contexts)
    for found, expected in zip(in_parts, at_once, strict=True):
        assert found.tolist() == expected.tolist()


def test_the_contexts_stay_as_they_are() -> None:
    block = Oscillator()
    contexts = random_contexts(block)
    before = [context.clone() for context in contexts]
    fx.evaluate_batch(block, ["position", "x"], contexts)
    assert contexts == before


# Shapes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 2, MANY])
def test_arrays_have_a_row_for_each_context(count: int) -> None:
    block = Oscillator()
    contexts = random_contexts(block, count)
    position, state, rate, twice = fx.evaluate_batch(
        block, [block.position, "x", "x[rate]", "position"], contexts
    )
    assert position.shape == rate.shape == (count,)
    assert state.shape == (count, 3)
    assert rate.tolist() == state[:, 1].tolist()
    assert position.tolist() == state[:, 0].tolist() == twice.tolist()


def test_arrays_belong_to_the_caller() -> None:
    block = Oscillator()
    contexts = random_contexts(block)
    first, second = fx.evaluate_batch(block, ["x", "x"], contexts)
    assert first.flags.c_contiguous
    first[:] = 7.0
    assert second.tolist() == [block.x(context).tolist() for context in contexts]


def test_vectors_without_components_have_rows_too() -> None:
    class Empty(fx.LeafSystem):
        """y = nothing"""

        def __init__(self) -> None:
            super().__init__("empty")
            self.y = self.declare_vector_output("y", 0, lambda context: [], prerequisites=[])

    block = Empty()
    contexts = [block.create_default_context() for _ in range(MANY)]
    assert [each.shape for each in fx.evaluate_batch(block, ["y", "y"], contexts)] == [
        (MANY, 0)
    ] * 2


def test_what_does_not_depend_on_anything_is_repeated() -> None:
    block = fx.FunctionBlock("fixed", lambda u: [3.0, -1.0], output_size=2)
    contexts = random_contexts(block)
    (table,) = fx.evaluate_batch(block, ["y"], contexts)
    assert table.tolist() == [[3.0, -1.0]] * MANY


def test_no_signals_give_no_arrays() -> None:
    assert fx.evaluate_batch(Oscillator(), [], []) == []
    block = Oscillator()
    assert fx.evaluate_batch(block, [], random_contexts(block)) == []


# What cannot be traced ---------------------------------------------------------------------------


class Remembering(fx.LeafSystem):
    """y = 2 u, in a block with a value that is no number."""

    def __init__(self, name: str, kind: str) -> None:
        super().__init__(name)
        self.u = self.declare_vector_input("u", 1)
        if kind == "abstract state":
            self.declare_abstract_state("note", "nothing")
        else:
            self.declare_abstract_parameter("note", "nothing")
        self.y = self.declare_vector_output(
            "y", 1, lambda context: 2.0 * self.u(context), prerequisites=[self.u]
        )


@pytest.mark.parametrize("kind", ["abstract state", "abstract parameter"])
def test_blocks_with_values_that_are_no_numbers(kind: str) -> None:
    system = diagram_of(Remembering("block", kind), Gain("gain", 3.0))
    contexts = [system.create_default_context() for _ in range(MANY)]
    for k, context in enumerate(contexts):
        context.set("block.u", k)
        context.set("gain.u", k)
    doubled, tripled = fx.evaluate_batch(system, ["block.y", "gain.y"], contexts)
    assert doubled.tolist() == [2.0 * k for k in range(MANY)]
    assert tripled.tolist() == [3.0 * k for k in range(MANY)]


class Named(fx.LeafSystem):
    """y = a number that belongs to a name."""

    def __init__(self) -> None:
        super().__init__("named")
        self.name_of_it = self.declare_abstract_input("word", default="four")
        self.y = self.declare_vector_output(
            "y",
            1,
            lambda context: float(len(self.name_of_it(context))),
            prerequisites=[self.name_of_it],
        )


def test_contexts_may_differ_in_an_abstract_input() -> None:
    block = Named()
    contexts = [block.create_default_context() for _ in range(MANY)]
    for k, context in enumerate(contexts[:-1]):
        block.name_of_it.fix(context, "o" * k)
    (table,) = fx.evaluate_batch(block, ["y"], contexts)
    assert table.tolist() == [*map(float, range(MANY - 1)), 4.0]


def test_only_signals_behind_foreign_functions_are_evaluated_one_by_one() -> None:
    calls = []

    def foreign(u: Any) -> Any:
        calls.append(float(u[0]))
        return u

    system = diagram_of(fx.FunctionBlock("foreign", foreign), Gain("gain", 3.0))
    contexts = [system.create_default_context() for _ in range(MANY)]
    for k, context in enumerate(contexts):
        context.set("foreign.u", k)
        context.set("gain.u", k)
    calls.clear()
    readers = [resolve(system, signal) for signal in ("foreign.y", "gain.y")]
    batch = Watched(contexts)
    passed, tripled = BatchReader(system).read(readers, batch)
    assert batch.passes == 1
    assert calls == passed.tolist() == [float(k) for k in range(MANY)]
    assert tripled.tolist() == [3.0 * k for k in range(MANY)]
    batch = Watched(contexts)
    BatchReader(system).read(readers[1:], batch)
    assert batch.passes == 0


def test_equations_that_tell_symbols_from_numbers_are_not_trusted() -> None:
    block = fx.FunctionBlock("sly", lambda u: u + 1.0 if scalars.is_symbolic(u) else 5.0 * u)
    contexts = [block.create_default_context() for _ in range(MANY)]
    for k, context in enumerate(contexts):
        context.set("u", k)
    (table,) = fx.evaluate_batch(block, ["y"], contexts)
    assert table.tolist() == [5.0 * k for k in range(MANY)]


# Work --------------------------------------------------------------------------------------------


def test_equations_run_a_few_times_for_many_contexts() -> None:
    runs = []

    def noted(u: Any) -> Any:
        runs.append(u)
        return np.sin(u)

    block = fx.FunctionBlock("noted", noted)
    contexts = [block.create_default_context() for _ in range(2000)]
    for context in contexts:
        context.set("u", 0.5)
    runs.clear()
    reader, batch = BatchReader(block), ContextBatch(contexts)
    reader.read([resolve(block, "y")], batch)
    assert 0 < len(runs) < 10
    symbolic = sum(map(scalars.is_symbolic, runs))
    reader.read([resolve(block, "y")], batch)
    assert sum(map(scalars.is_symbolic, runs)) == symbolic


def test_a_reader_leaves_its_traces_behind_when_it_is_pickled() -> None:
    block = Oscillator()
    reader = BatchReader(block)
    reader.read([resolve(block, "position")], ContextBatch(random_contexts(block)))
    system, twin = pickle.loads(pickle.dumps((block, reader)))
    contexts = random_contexts(system)
    (found,) = twin.read([resolve(system, "position")], ContextBatch(contexts))
    assert found.tolist() == [system.position(context)[0] for context in contexts]
    assert len(pickle.dumps(reader)) == len(pickle.dumps(BatchReader(block)))


# Refusals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, MANY])
def test_contexts_of_other_systems_are_refused(count: int) -> None:
    block, other = Oscillator(), Oscillator()
    contexts = [block.create_default_context() for _ in range(count)]
    for stranger in (
        other.create_default_context(),
        diagram_of(Oscillator()).create_default_context(),
    ):
        with pytest.raises(ContextError, match="expected a root context of the same system"):
            fx.evaluate_batch(block, ["x"], [*contexts, stranger])
    with pytest.raises(ContextError, match="expected a context"):
        fx.evaluate_batch(block, ["x"], [*contexts, None])  # type: ignore[list-item]


def test_the_context_of_a_block_inside_is_refused() -> None:
    system = diagram_of(Gain("gain"))
    with pytest.raises(ContextError, match="expected a root context of the same system"):
        fx.evaluate_batch(system, ["gain.y"], [system.create_default_context()["gain"]])


@pytest.mark.parametrize("count", [0, 1, MANY])
def test_what_is_no_signal_is_refused(count: int) -> None:
    block = Oscillator()
    contexts = [block.create_default_context() for _ in range(count)]
    with pytest.raises(UnknownNameError, match="Did you mean 'position'"):
        fx.evaluate_batch(block, ["positoin"], contexts)
    with pytest.raises(UnknownNameError, match="expected a vector port or a numeric state"):
        fx.evaluate_batch(block, [block.k], contexts)
    with pytest.raises(UnknownNameError, match="component 0 to 2"):
        fx.evaluate_batch(block, ["x[3]"], contexts)


@pytest.mark.parametrize("count", [1, MANY])
def test_signals_of_other_systems_are_refused(count: int) -> None:
    block = Oscillator()
    contexts = [block.create_default_context() for _ in range(count)]
    with pytest.raises(ContextError, match=r"output port 'oscillator\.position'"):
        fx.evaluate_batch(block, [Oscillator().position], contexts)


@pytest.mark.parametrize("count", [1, MANY])
def test_an_input_without_value_is_named(count: int) -> None:
    block = Gain("gain")
    contexts = [block.create_default_context() for _ in range(count)]
    with pytest.raises(EvaluationError, match=r"Cannot evaluate input port 'gain\.u'"):
        fx.evaluate_batch(block, ["y"], contexts)


# Expressions -------------------------------------------------------------------------------------


def test_lanes_take_what_is_no_lane_from_the_store() -> None:
    system = diagram_of(Constant("constant", [2.0, 5.0]), Oscillator("oscillator"))
    context = system.create_default_context()
    read = Lanes(
        trace(
            system.layout,
            lambda store: [store.x[1] * store.leaves[0].parameters[0][1] + store.time, 1.0],
        )
    )
    state, parameter = ((STATE, 0, 0), 1), ((PARAMETER, 0, 0), 1)
    assert read.keys == sorted([TIME_KEY, state, parameter])
    moving = {TIME_KEY: np.array([0.0, 10.0]), state: np.array([1.0, 2.0])}
    assert read.evaluate(context.store, moving).tolist() == [[5.0, 20.0], [1.0, 1.0]]
    moving[parameter] = np.array([0.0, 3.0])
    assert read.evaluate(context.store, moving).tolist() == [[0.0, 16.0], [1.0, 1.0]]
