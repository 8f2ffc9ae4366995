"""Every reading of the equations gives the numbers of the equations themselves.

The equations are interpreted; the other readings are straight-line Python, lanes, and native code,
for one context or for several at once, in one piece or in chunks. NaN and infinity pass through all
of them alike, but for the products with constant zeros that native code leaves out.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings, strategies as st

import flexure as fx
from flexure.diagrams import scalars
from flexure.diagrams.contexts.store import Store
from flexure.diagrams.scalars.derivatives.simplification import simplify
from flexure.diagrams.scalars.expressions.vocabulary import BINARY, LOGICAL, OPERATIONS, UNARY
from flexure.diagrams.values.events import Event
from flexure.diagrams.values.symbolic_values import STATE, TIME
from flexure.solvers.native.llvm.library import available
from flexure.solvers.native.programs.program import Program
from flexure.solvers.native.programs.system_trace import EventKey
from flexure.solvers.tracing.lanes import ContextBatch, Lanes
from flexure.solvers.tracing.straight_line import ARITHMETIC_ERRORS, StraightLine
from flexure.solvers.tracing.trace import number_behind, symbolic_store
from tests.contracts.catalog import CATALOG, ONE_OF_EACH, TRIED
from tests.contracts.equations import Equation, accepted, equations, filled, run
from tests.contracts.test_every_block import NOT_TRACED, ROUNDED
from tests.properties.test_random_diagrams import Plan, build, plans
from tests.support.native.native import Compiled, equation_at, needs_llvmlite
from tests.support.tiers import by_tier, for_each

FloatArray = npt.NDArray[np.float64]

#: Width of lanes and operations per chunk of native code.
SHAPES = [(1, 1000), (1, 1), (1, 2), (1, 7), (4, 1000), (8, 1000), (4, 2)]
SPECIAL = (
    *(np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -2.0, 2.5, 3.0, 0.1, -0.7),
    *(5e-324, -1e-310, 2.0**-1022, 1.7976931348623157e308, -1e300, 1e16, 4503599627370497.5),
    *(np.pi, -0.5 * np.pi, 0.49999999999999994, 710.0, -745.5),
)
#: Those whose products do not overflow. NumPy adds up products of matrices in an order of its own,
#: which decides whether a sum of huge numbers of both signs is infinite, or not a number.
MODERATE = tuple(each for each in SPECIAL if not 1e100 < abs(each) < np.inf)


def close(found: FloatArray, expected: FloatArray, what: str = "") -> None:
    """Compare numbers up to rounding errors of the largest of them.

    Beyond 1e30, which no element reaches, the largest terms are lost in differences.
    """
    size = np.max(np.abs(expected), initial=1.0, where=np.isfinite(expected))
    atol = (1e-12 if size < 1e30 else 1e-2) * size
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=atol, err_msg=what)


def bits(numbers: FloatArray, *, signed_zeros: bool = True) -> npt.NDArray[np.int64]:
    """Return the bits of numbers; those of NaN, and of zeros without signs, are always the same."""
    numbers = np.where(np.isnan(numbers), np.nan, numbers)
    return (numbers if signed_zeros else numbers + 0.0).view(np.int64)


def same_bits(
    found: FloatArray, expected: FloatArray, what: str = "", *, signed_zeros: bool = True
) -> None:
    """Compare numbers bit by bit."""
    ours, theirs = (bits(each, signed_zeros=signed_zeros) for each in (found, expected))
    np.testing.assert_array_equal(ours, theirs, err_msg=what)


def in_lanes(
    function: Compiled, lanes: int, values: dict[Any, FloatArray], count: int
) -> FloatArray:
    """Compute many columns of values, as many at once as a function takes."""
    columns = []
    for start in range(0, count, lanes):
        wanted = np.minimum(np.arange(start, start + lanes), count - 1)
        part = function({key: numbers[wanted] for key, numbers in values.items()})
        columns.append(part.reshape(-1, lanes)[:, : count - start])
    return np.hstack(columns)


# The vocabulary ----------------------------------------------------------------------------------

_T: Any = ((TIME, 0, 0), 0)
_X: list[Any] = [((STATE, 0, 0), k) for k in range(3)]


def expressions_of_vocabulary() -> dict[str, Any]:
    graph = scalars.Graph()
    a, b = (graph.input(key) for key in _X[:2])
    found: dict[str, Any] = {op: OPERATIONS[op](a) for op in UNARY}
    found |= {op: OPERATIONS[op](a, b) for op in BINARY}
    found |= {op: OPERATIONS[op](a > 0.5, b > 0.5) for op in LOGICAL if op != "logical_not"}
    found["logical_not"] = np.logical_not(a > 0.5)
    found["where"] = np.where(a < b, a, b)
    return found


VOCABULARY = expressions_of_vocabulary()
#: The values of a root context to which expressions of time and state alone are bound.
NO_VALUES = fx.Constant("constant", 1.0).create_default_context().store
PAIRS = dict(zip(_X, np.array(list(itertools.product(SPECIAL, SPECIAL))).T.copy(), strict=False))
COUNT = len(SPECIAL) ** 2

#: Operations that native code takes from a C library, with its last bits.
OF_THE_LIBRARY = {
    *("sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2", "hypot"),
    *("sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh"),
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "cbrt", "power"),
}
#: Operations that NumPy lets choose one of two zeros.
OF_EITHER_ZERO = {"maximum", "minimum", "fmax", "fmin"}


every_operation = for_each("op", VOCABULARY)


def test_the_table_has_the_whole_vocabulary() -> None:
    assert set(VOCABULARY) == {*OPERATIONS, "where"}
    assert all(node.op == op for op, node in VOCABULARY.items())


@pytest.fixture(scope="module")
def references() -> dict[str, FloatArray]:
    """Every operation on every pair of special numbers, one after the other."""
    pairs = [dict(zip(PAIRS, pair, strict=True)) for pair in zip(*PAIRS.values(), strict=True)]
    return {
        op: np.array([float(scalars.evaluate(node, pair)) for pair in pairs])
        for op, node in VOCABULARY.items()
    }


@every_operation
def test_lanes_compute_operations_as_numpy_does(op: str, references: dict[str, FloatArray]) -> None:
    found = scalars.evaluate(VOCABULARY[op], PAIRS).astype(float)
    compare(op, found, references[op])


@every_operation
def test_straight_line_code_computes_operations_as_numpy_does(
    op: str, references: dict[str, FloatArray]
) -> None:
    function = StraightLine([VOCABULARY[op]], 2).bind(NO_VALUES)
    computed = []
    with np.errstate(all="ignore"):
        for k, pair in enumerate(zip(*PAIRS.values(), strict=True)):
            try:
                computed.append((k, float(function(0.0, np.array(pair))[0])))
            except ARITHMETIC_ERRORS:
                assert op in ("divide", "sqrt")
                assert not np.isfinite(references[op][k])
    where, found = np.array(computed).T
    compare(op, found.copy(), references[op][where.astype(int)])


@pytest.fixture(scope="module")
def native_tables() -> dict[int, FloatArray]:
    """The same by native code, for each width of lanes."""
    return {
        lanes: in_lanes(Compiled([*VOCABULARY.values()], lanes=lanes), lanes, PAIRS, COUNT)
        for lanes in (1, 4, 8)
    }


@needs_llvmlite
@pytest.mark.parametrize("lanes", [1, 4, 8])
@every_operation
def test_native_code_computes_operations_as_numpy_does(
    op: str, lanes: int, references: dict[str, FloatArray], native_tables: dict[int, FloatArray]
) -> None:
    row = [*VOCABULARY].index(op)
    compare(op, native_tables[lanes][row], references[op])
    same_bits(native_tables[lanes][row], native_tables[1][row])


def compare(op: str, found: FloatArray, expected: FloatArray) -> None:
    """Compare the results of an operation with those of NumPy, bit by bit where that can be."""
    if op == "power":  # which is a square root for some exponents
        bases, exponents = PAIRS[_X[0]], PAIRS[_X[1]]
        ambiguous = (exponents == 0.5) & ((bases == -np.inf) | (bases == 0.0))
        found, expected = found[~ambiguous], expected[~ambiguous]
    if op not in OF_THE_LIBRARY:
        either = op in OF_EITHER_ZERO
        same_bits(found, expected, signed_zeros=not either)
        return
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-300)
    exact = ~np.isnan(expected) & ((expected == 0.0) | np.isinf(expected))
    same_bits(found[exact], expected[exact])


# Random expressions ------------------------------------------------------------------------------

EXACT = [op for op in (*UNARY, *BINARY) if op not in OF_THE_LIBRARY]
#: Operations to which the sign of a zero matters, and so which one was chosen.
OF_SIGNED_ZEROS = {"divide", "copysign", "floor_divide", "remainder", "fmod"}


@st.composite
def expressions(draw: st.DrawFn, operations: list[str]) -> list[Any]:
    """Draw operations that depend on each other, conditions and choices among them."""
    graph = scalars.Graph()
    numbers = [graph.input(key) for key in (_T, *_X)]
    numbers += [graph.constant(draw(st.sampled_from(SPECIAL))) for _ in range(2)]
    truths = [graph.record("less_equal", *numbers[:2])]
    for _ in range(draw(st.integers(1, 40))):
        op = draw(st.sampled_from([*operations, "where", "where", *LOGICAL]))
        if op == "where":
            parts = [draw(st.sampled_from(among)) for among in (truths, numbers, numbers)]
        else:
            among = truths if op in LOGICAL else numbers
            parts = [draw(st.sampled_from(among)) for _ in range(OPERATIONS[op].nin)]
        found = graph.record(op, *parts)
        (truths if isinstance(found, scalars.Condition) else numbers).append(found)
    return [0.5, *draw(st.permutations([*numbers, *truths]))]


def check_readings_of(outputs: list[Any], seed: int, *, signed_zeros: bool) -> None:
    """Compare all readings of expressions bit by bit, at special numbers."""
    rng, count = np.random.default_rng(seed), 13
    numbers = [*SPECIAL, *rng.normal(0.0, 2.0, len(SPECIAL))]
    values = {key: rng.choice(numbers, count) for key in (_T, *_X)}
    columns = [{key: float(numbers[k]) for key, numbers in values.items()} for k in range(count)]
    expected = np.stack([scalars.evaluate(outputs, each) for each in columns], axis=1)

    def check(found: FloatArray, expected: FloatArray, what: str) -> None:
        same_bits(found, expected, what, signed_zeros=signed_zeros)

    check(scalars.evaluate(outputs, values), expected, "lanes")
    for k, column in enumerate(columns):
        with contextlib.suppress(*ARITHMETIC_ERRORS), np.errstate(all="ignore"):
            function = StraightLine(outputs, len(_X)).bind(NO_VALUES)
            found = function(column[_T], np.array([column[key] for key in _X]))
            check(found, expected[:, k], "straight line")
    for lanes, chunk in SHAPES:
        native = Compiled(outputs, lanes=lanes, chunk=chunk)
        check(in_lanes(native, lanes, values, count), expected, f"native, {lanes=}, {chunk=}")


@needs_llvmlite
@settings(max_examples=by_tier(fast=5, full=20))
@given(expressions([op for op in EXACT if op not in OF_EITHER_ZERO]), st.integers(0, 99))
def test_random_expressions_have_the_same_bits_in_every_reading(
    outputs: list[Any], seed: int
) -> None:
    check_readings_of(outputs, seed, signed_zeros=True)


@needs_llvmlite
@settings(max_examples=by_tier(fast=5, full=20))
@given(expressions([op for op in EXACT if op not in OF_SIGNED_ZEROS]), st.integers(0, 99))
def test_random_expressions_with_extrema_have_the_same_bits_but_for_signs_of_zeros(
    outputs: list[Any], seed: int
) -> None:
    check_readings_of(outputs, seed, signed_zeros=False)


# The shapes of what is computed ------------------------------------------------------------------


@needs_llvmlite
@pytest.mark.parametrize("lanes", [1, 4])
def test_nothing_numbers_inputs_and_truth_values_can_be_outputs(lanes: int) -> None:
    graph = scalars.Graph()
    t, x, p = (graph.input(key) for key in (_T, _X[0], "p"))
    assert Compiled([], lanes=lanes)({}).size == 0
    outputs = [x, 2.5, t, graph.constant(-0.0), p > 1.0, x, p, np.nan, (p > 1.0) & (x > 1.0), True]
    function = Compiled(outputs, lanes=lanes, chunk=1)
    found = function({_T: 7.0, _X[0]: 0.5, "p": 3.0}).reshape(-1, lanes)
    expected = np.array([0.5, 2.5, 7.0, -0.0, 1.0, 0.5, 3.0, np.nan, 0.0, 1.0])
    same_bits(found, np.repeat(expected[:, None], lanes, axis=1))


def ladder(length: int) -> list[Any]:
    """A long sum whose terms depend on all terms before them, and on conditions about them."""
    graph = scalars.Graph()
    a, b = (graph.input(key) for key in _X[:2])
    terms: list[Any] = [a, b]
    for k in range(length):
        last, before = terms[-1], terms[-2]
        terms.append(np.where(last > 0.25 * k, 0.5 * last - before, before * before + 0.1 * k))
    return [sum(terms), *terms[:: length // 5]]


@needs_llvmlite
@pytest.mark.parametrize("lanes", [1, 4])
def test_chunks_change_no_bit(lanes: int) -> None:
    values = {_X[0]: np.array([0.3, -1.0, 2.0, 0.5])[:lanes], _X[1]: np.full(lanes, 0.7)}
    outputs = ladder(30)
    whole = Compiled(outputs, lanes=lanes)
    assert ".0(" not in whole.text
    for chunk in (1, 2, 7, 29, 30, 31):
        part = Compiled(outputs, lanes=lanes, chunk=chunk)
        assert "@f.1(" in part.text
        np.testing.assert_array_equal(part(values), whole(values))


# Every block and random diagrams -----------------------------------------------------------------


class Readings:
    """What a system computes, as equations and as expressions, and contexts in which it does.

    Parameters
    ----------
    named : dict
        Equations of root contexts by name.
    contexts : list of Context
        With numbers of all kinds.
    """

    def __init__(self, named: dict[str, Equation], contexts: list[fx.Context]) -> None:
        self.named = named
        self.contexts = contexts
        self.batch = ContextBatch(contexts)
        symbolic = symbolic_store(contexts[0].store.layout).leaves[0].root
        parts = [run(equation, symbolic) for equation in named.values()]
        ends = np.cumsum([0, *map(len, parts)]).tolist()
        self.parts = [slice(*pair) for pair in itertools.pairwise(ends)]
        self.outputs: list[Any] = [entry for part in parts for entry in part]
        self.expected = np.full((len(self.outputs), len(contexts)), np.nan)
        #: Names of equations that have no meaning in some context, and its number.
        self.refused: set[tuple[str, int]] = set()
        for (name, equation), part in zip(named.items(), self.parts, strict=True):
            for k, context in enumerate(contexts):
                numbers = accepted(equation, context)
                if numbers is None:
                    self.refused.add((name, k))
                else:
                    self.expected[part, k] = numbers

    def check(self, found: FloatArray, what: str) -> None:
        """Compare rows of numbers with those of the equations, one row for each output.

        Where the equations refuse to be evaluated, there is a NaN that makes one ask for the
        reason.
        """
        for name, part in zip(self.named, self.parts, strict=True):
            for k in range(len(self.contexts)):
                if (name, k) in self.refused:
                    assert np.isnan(found[part, k]).any(), f"{name}, {what}"
                else:
                    close(found[part, k], self.expected[part, k], f"{name}, {what}")

    def check_lanes(self) -> None:
        lanes = Lanes(self.outputs)
        self.check(lanes.evaluate(self.batch.store, self.batch.lanes(lanes.keys)), "lanes")

    def check_straight_line(self, *, exact: bool) -> None:
        """Compare straight-line code with the equations; bit by bit where NumPy has no own way.

        Where code of all equations raises, each has code of its own.
        """
        size, whole = len(self.batch.store.x), slice(0, len(self.outputs))
        code_of = functools.cache(lambda a, b: StraightLine(self.outputs[a:b], size))

        def computed(part: slice, context: fx.Context) -> Any:
            store = context.store
            with contextlib.suppress(*ARITHMETIC_ERRORS), np.errstate(all="ignore"):
                return code_of(part.start, part.stop).bind(store)(store.time, np.array(store.x))

        at_once = [computed(whole, context) for context in self.contexts]
        for name, part in zip(self.named, self.parts, strict=True):
            compared = 0
            for k, context in enumerate(self.contexts):
                every = at_once[k]
                found = computed(part, context) if every is None else every[part]
                if found is None:
                    continue
                compared += 1
                if (name, k) in self.refused:
                    assert np.isnan(found).any(), name
                elif exact:
                    np.testing.assert_array_equal(found, self.expected[part, k], err_msg=name)
                else:
                    close(found, self.expected[part, k], f"{name}, straight line")
            assert compared >= len(self.contexts) // 3

    def check_native(self) -> None:
        """Compare native code with the equations, and its lanes and chunks with each other."""
        count, values = len(self.contexts), self.values()
        found = in_lanes(Compiled(self.outputs), 1, values, count)
        self.check(found, "native code")
        native = Compiled(self.outputs, lanes=4, chunk=7)
        np.testing.assert_array_equal(in_lanes(native, 4, values, count), found)

    def check_simplified_native(self) -> None:
        """Compare native code of simplified expressions with the equations.

        What is recorded gives the numbers of the equations, whatever they are. What is left after
        simplification gives all that are finite, and the others where nothing was left out.
        """
        count, values = len(self.contexts), self.values()
        outputs = simplify(self.outputs)
        found = in_lanes(Compiled(outputs), 1, values, count)
        simpler = [new is not old for new, old in zip(outputs, self.outputs, strict=True)]
        hidden = np.array(simpler, bool)[:, np.newaxis] & ~np.isfinite(self.expected)
        for name, part in zip(self.named, self.parts, strict=True):
            hidden[part, [k for refused, k in self.refused if refused == name]] = False
        self.check(np.where(hidden, self.expected, found), "simplified native code")

    def values(self) -> dict[Any, FloatArray]:
        """Return the numbers in all contexts behind everything that is read."""
        count, keys = len(self.contexts), Lanes(self.outputs).keys
        values = self.batch.lanes(keys)
        for key in keys:
            if key not in values:
                values[key] = np.full(count, number_behind(self.batch.store, key))
        return values


def made_special(context: fx.Context, rng: np.random.Generator) -> fx.Context:
    """Return a context with special numbers as time, states and inputs, which users cannot set."""
    context = context.clone()
    store = context.store
    is_spatial = isinstance(context.system, fx.multibody.ForceElement | fx.multibody.MultibodyTree)
    special = MODERATE if is_spatial else SPECIAL
    for leaf in store.leaves:
        leaf.discrete = [rng.choice(special, value.shape) for value in leaf.discrete]
    for slot in range(store.layout.input_base, len(store.layout.slot_port)):
        store.hold(slot, rng.choice(special, store.layout.slot_port[slot].size))
    store.changed(~0)
    store.set_motion(float(rng.choice(special)), rng.choice(special, store.x.size))
    return context


def traced(label: str, block: fx.LeafSystem) -> dict[str, Equation]:
    """Return the equations of a block of the catalog that symbols go through."""
    not_traced = NOT_TRACED.get(label, {})
    return {name: each for name, each in equations(block).items() if name not in not_traced}


def readings_of_block(label: str) -> Readings:
    block, rng = CATALOG[label](), np.random.default_rng(3)
    context = block.create_default_context()
    contexts = [context.clone() for _ in filled(context, seeds=by_tier(fast=2, full=5))]
    special = [made_special(each, rng) for each in contexts]
    if isinstance(block, fx.Contact):  # the closest of touches that are NaN is any of them
        special = []
    return Readings(traced(label, block), contexts + special)


every_block = pytest.mark.parametrize(
    "label", [label for label in TRIED if traced(label, CATALOG[label]())]
)


@every_block
def test_every_block_gives_the_same_numbers_in_every_reading(label: str) -> None:
    readings = readings_of_block(label)
    readings.check_lanes()
    readings.check_straight_line(exact=type(readings.contexts[0].system) not in ROUNDED)
    if available():
        if label in ONE_OF_EACH:  # as it was recorded, which no run compiles
            readings.check_native()
        readings.check_simplified_native()


@needs_llvmlite
@settings(max_examples=by_tier(fast=10, full=30))
@given(plan=plans(), seed=st.integers(0, 99))
def test_random_diagrams_give_the_same_numbers_in_every_reading(plan: Plan, seed: int) -> None:
    if not nx.is_directed_acyclic_graph(plan.dependence):
        plan = Plan(plan.blocks, {}, plan.open_inputs, plan.groups, plan.declared)
    diagram, _ = build(plan, range(len(plan.blocks)))
    rng, context = np.random.default_rng(seed), diagram.create_default_context()
    contexts = [context.clone() for _ in filled_diagram(context, rng)]
    named: dict[str, Equation] = {port.name: port for port in diagram.output_ports}
    named["derivatives"] = lambda context: context.store.time_derivatives()
    readings = Readings(named, contexts)
    readings.check_lanes()
    readings.check_straight_line(exact=False)
    readings.check_native()
    readings.check_simplified_native()
    check_program(Program(diagram.layout), contexts)


def filled_diagram(context: fx.Context, rng: np.random.Generator) -> Iterator[None]:
    """Draw all numbers of a diagram again and again."""
    for _ in range(5):
        context.time = rng.normal()
        context.continuous_state = rng.normal(size=context.store.x.shape)
        for leaf in context.leaves():
            for parameter in leaf.system.numeric_parameters:
                parameter.set(context, rng.normal(size=parameter.shape))
        for port in context.system.input_ports:
            port.fix(context, rng.normal(size=port.size))
        yield


# The functions of a program ----------------------------------------------------------------------


def check_program(program: Program, contexts: Sequence[fx.Context]) -> None:
    """Compare the native functions of a root system with its equations and handlers."""
    env = program.fill(contexts[0].store)
    for context in contexts:
        program.refresh(context.store, env)
        point = context.store.time, np.array([*context.store.x, 0.0]), env

        def call(address: int, size: int, point: Any = point) -> FloatArray:
            out = np.full(size + 1, -77.0)
            equation_at(address)(*point, out)
            assert out[-1] == -77.0
            return out[:-1]

        with np.errstate(all="ignore"):
            derivatives = context.store.time_derivatives()
            close(call(program.rhs, program.num_states), derivatives, "derivatives")
            check_updates(program, context, call)
            check_looks(program, context.store, call)


def all_states(program: Program, context: fx.Context) -> FloatArray:
    """Return continuous states and discrete values as programs lay them out."""
    discrete = np.zeros(program.num_discrete)
    program.discrete.read(context.store, discrete)
    return np.append(context.store.x, discrete)


def check_updates(program: Program, context: fx.Context, call: Callable[..., FloatArray]) -> None:
    """Compare the states after each update."""
    for key, update in program.trace.updates.items():
        after = context.clone()
        leaf = after.store.leaves[key[0]]
        event = leaf.system.events[key[1]]
        for state, new in (event.handler(leaf) or {}).items():
            value = np.array(np.broadcast_to(np.ravel(new), state.size), dtype=float)
            if isinstance(state, fx.diagrams.ContinuousState):
                leaf.write_continuous_state(value)
            else:
                leaf.write_discrete_state(state.index, value)
        found = all_states(program, context)
        found[update.targets] = call(program.update_address(key), len(update.targets))
        close(found, all_states(program, after), event.label)


def check_looks(program: Program, store: Store, call: Callable[..., FloatArray]) -> None:
    """Compare witness functions and logged signals."""
    if program.trace.witnesses:
        expected = [witness(store, key) for key in program.trace.witnesses]
        close(call(program.witness, len(expected)), np.hstack(expected), "witness functions")
    width = sum(where.stop - where.start for where in program.trace.signals.values())
    if width:
        found = call(program.signal, width)
        for key, where in program.trace.signals.items():
            leaf = store.leaves[key[0]]
            signal: Any = leaf.system.events[key[1]].signal
            close(found[where], signal(leaf), "logged signal")


def is_timed(event: Event) -> bool:
    """Return whether an event is an update that a program traces."""
    return event.kind != "publish" and isinstance(
        event.trigger, fx.diagrams.Periodic | fx.diagrams.Witness | fx.diagrams.Settling
    )


def witness(store: Store, key: EventKey) -> FloatArray:
    leaf = store.leaves[key[0]]
    trigger: Any = leaf.system.events[key[1]].trigger
    return np.ravel(trigger.calc(leaf))


@needs_llvmlite
@for_each("label", TRIED)
def test_the_program_of_every_block_computes_its_equations_and_events(label: str) -> None:
    block = CATALOG[label]()
    context = block.create_default_context()
    program = Program(block.layout)
    check_program(program, [context.clone() for _ in filled(context, seeds=2)])
    timed = [f"update {k}" for k, e in enumerate(block.events) if is_timed(e)]
    refused = {f"update {index}" for _, index in program.trace.refusals}
    assert refused == set(timed) & NOT_TRACED.get(label, {}).keys()
    assert len(program.trace.updates) == len(timed) - len(refused)
    targets = [target for update in program.trace.updates.values() for target in update.targets]
    assert all(0 <= target < program.num_states + program.num_discrete for target in targets)
