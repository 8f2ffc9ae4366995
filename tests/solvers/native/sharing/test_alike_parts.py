"""Like parts of one block share code, as like blocks do, and the numbers are those without."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams import scalars
from flexure.diagrams.layout import Layout
from flexure.solvers.native import program as programs
from flexure.solvers.native.emission.emission import Environment
from flexure.solvers.native.llvm.library import Library
from flexure.solvers.native.program import Program
from flexure.solvers.native.sharing import instances, repetition
from flexure.solvers.native.sharing.columns import FIXED, MOTION, MOVING, RATE, SHIFT, Columns
from flexure.solvers.native.sharing.instances import Instances
from flexure.solvers.native.sharing.jobs import Job, share
from flexure.solvers.tracing.trace import PARAMETER, Key
from tests.support.many_blocks import Lag, Law
from tests.support.native import needs_llvmlite
from tests.support.shared_code import computed_by, shared

pytestmark = needs_llvmlite

BALL = fx.SpatialInertia.solid_sphere(0.5, radius=0.1)


# Systems ------------------------------------------------------------------------------------------


def bodies(count: int, points: tuple[float, ...] = (0.0,)) -> fx.Plant:
    """Free bodies in a row, each joined to the one before by a spring; points come in turn."""
    builder = fx.PlantBuilder("row")
    before = builder.world
    for k in range(count):
        body = builder.add_body(f"body{k}", BALL)
        point = (0.0, points[k % len(points)], 0.0)
        builder.add_force_element(
            fx.LinearSpringDamper(
                f"spring{k}",
                before,
                (0, 0, 0),
                body,
                point,
                free_length=0.2,
                stiffness=9,
                damping=1,
            )
        )
        before = body
    return builder.build()


def arms(count: int, links: int) -> fx.Plant:
    """Arms side by side; their joints have springs and their equations sines."""
    builder = fx.PlantBuilder("arms")
    for k in range(count):
        place: fx.Frame | fx.Body = builder.world
        for i in range(links):
            name = f"{k}_{i}"
            rod = builder.add_body(f"rod{name}", BALL, com=(0.0, 0.1, -0.5))
            joint = fx.RevoluteJoint(f"joint{name}", place, rod, ((1, 0, 0), (0, 1, 0))[i % 2])
            builder.add_joint(joint)
            builder.add_force_element(fx.JointSpring(f"spring{name}", joint, stiffness=2.0))
            place = builder.add_frame(f"end{name}", rod, (np.eye(3), (0.0, 0.0, -1.0)))
    return builder.build()


def matrix(size: int) -> fx.Diagram:
    """x' = A x + B u with a loop from y to u."""
    rng = np.random.default_rng(size)
    A, B, C = rng.normal(size=(size, size)), rng.normal(size=(size, 1)), np.ones((1, size))
    builder = fx.DiagramBuilder("matrix")
    builder.add_all(fx.StateSpace("x", A, B, C), fx.Gain("back", -0.5))
    builder.connect_chain("x", "back", "x")
    return builder.build()


class Rod(fx.LeafSystem):
    """Heat in a rod with cold ends: T_k' = a_k (T_{k-1} - 2 T_k + T_{k+1})."""

    def __init__(self, name: str, size: int) -> None:
        super().__init__(name)
        self.a = self.declare_numeric_parameter("a", np.linspace(1.0, 2.0, size))
        self.x = self.declare_continuous_state(z=size)

    def calc_time_derivatives(self, context: Any) -> Any:
        inside = self.x(context)
        cold = np.zeros(1)
        T = np.concatenate([cold, inside, cold])
        return self.a(context) * (T[:-2] - 2.0 * inside + T[2:])


def rod(size: int) -> fx.Diagram:
    builder = fx.DiagramBuilder("heat")
    builder.add(Rod("rod", size))
    return builder.build()


def long_laws(depths: list[int]) -> fx.Diagram:
    """Chains of laws with many operations: many of them come first, few in the end."""
    builder = fx.DiagramBuilder("laws")
    for k, depth in enumerate(depths):
        name = f"lag{k}"
        builder.add(Lag(name))
        before = name
        for i in range(depth):
            builder.add(Law(f"law{k}_{i}", _series))
            builder.connect(f"{before}.y", f"law{k}_{i}.u")
            before = f"law{k}_{i}"
        builder.connect(f"{before}.y", f"{name}.u")
    return builder.build()


def _series(context: Any, u: Any) -> Any:
    total = u
    for n in range(1, 25):
        total = total * u / n - np.where(total > 1.0, 1.0, 0.5 * context.time)
    return total


SYSTEMS: dict[str, Callable[[], fx.Diagram]] = {
    "bodies": partial(bodies, 11),
    "bodies with two kinds of springs": partial(bodies, 21, (0.0, 0.1)),
    "arms of one link": partial(arms, 10, 1),
    "arms of three links": partial(arms, 9, 3),
    "matrix": partial(matrix, 12),
    "rod": partial(rod, 30),
    "long laws": partial(long_laws, [3, 1, 2, 3, 1, 1, 3, 2, 1, 3, 3, 3, 3, 3, 4, 1, 2, 3, 5]),
}


@pytest.fixture
def sharing(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Let `shared` share code, however little that saves, and programs write everything out.

    Functions of the C library are called one by one, so that no bit differs.
    """
    monkeypatch.setattr(repetition, "vector_functions", lambda width: {})
    monkeypatch.setattr(instances, "_SAVING", 0)
    monkeypatch.setattr(programs, "_MANY", 10**9)
    monkeypatch.setattr(programs, "_LONG", 10**9)
    return monkeypatch


def moved(context: fx.Context, seed: int = 0) -> fx.Context:
    """Change time and states."""
    rng = np.random.default_rng(seed)
    context.time = 1.5
    state = context.continuous_state
    context.continuous_state = state + 0.3 * rng.normal(size=state.size)
    return context


# Numbers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SYSTEMS)
def test_shared_code_gives_the_numbers_of_code_that_is_written_out(
    name: str, sharing: pytest.MonkeyPatch
) -> None:
    system = SYSTEMS[name]()
    context = moved(system.create_default_context())
    found = shared(context)
    np.testing.assert_array_equal(found, computed_by(Program(system.layout), context))
    np.testing.assert_allclose(found, context.store.time_derivatives(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("width", [2, 4, 16])
def test_the_numbers_do_not_depend_on_the_width_of_registers(
    width: int, sharing: pytest.MonkeyPatch
) -> None:
    for name in ("bodies", "long laws"):
        context = moved(SYSTEMS[name]().create_default_context())
        expected = shared(context)
        with sharing.context() as patch:
            patch.setattr(repetition, "register_width", lambda: width)
            np.testing.assert_array_equal(shared(context), expected)


def test_functions_that_compute_many_numbers_at_once_err_little() -> None:
    for name in ("arms of one link", "arms of three links"):
        context = moved(SYSTEMS[name]().create_default_context())
        expected = context.store.time_derivatives()
        scale = np.abs(expected).max()
        np.testing.assert_allclose(shared(context), expected, rtol=1e-12, atol=1e-14 * scale)


def test_each_part_has_its_own_parameters(sharing: pytest.MonkeyPatch) -> None:
    plant = bodies(10)
    context = moved(plant.create_default_context())
    before = shared(context)
    context.set("tree.body4_mass", 2.0)
    context.set("spring7.stiffness", 30.0)
    after = shared(context)
    changed = np.flatnonzero(np.any((before != after)[70:].reshape(10, 6), axis=1))
    np.testing.assert_array_equal(changed, [4, 6, 7])
    np.testing.assert_allclose(after, context.store.time_derivatives(), rtol=1e-9, atol=1e-12)


def zeros_in(context: fx.Context) -> set[Key]:
    """Return the components of parameters that are zero."""
    return {
        ((PARAMETER, position, index), int(component))
        for position, leaf in enumerate(context.store.leaves)
        for index, value in enumerate(leaf.parameters)
        for component in np.flatnonzero(np.ravel(value) == 0.0)
    }


def test_zeros_among_parameters_are_left_out_of_shared_code(sharing: pytest.MonkeyPatch) -> None:
    """Also where some of the blocks have them and others do not."""
    plant = bodies(24, (0.0, 0.1))
    context = moved(plant.create_default_context())
    zeros = zeros_in(context)
    found = shared(context, zeros)
    np.testing.assert_array_equal(found, computed_by(Program(plant.layout, zeros), context))
    np.testing.assert_allclose(found, shared(context), rtol=1e-9, atol=1e-12)


# How much is written ------------------------------------------------------------------------------


def written_operations(make: Callable[[int], fx.Diagram], count: int) -> int:
    """Count the multiplications in the code of a system."""
    texts: list[str] = []

    class Noting(Library):
        def __init__(self, key: str, text: Callable[[], str], **options: Any) -> None:
            super().__init__(key, text, **options)
            texts.append(text())

    layout = make(count).layout
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(instances, "Library", Noting)
        Instances(layout, Environment(0, [[] for _ in layout.leaves]))
    (text,) = texts
    return text.count(" = fmul ")


@pytest.mark.parametrize("make", [bodies, partial(arms, links=3), rod])
def test_the_code_does_not_grow_with_the_number_of_parts(make: Callable[[int], fx.Diagram]) -> None:
    few, many = (written_operations(make, count) for count in (12, 36))
    assert few == many


def test_every_row_of_a_matrix_is_a_part() -> None:
    assert written_operations(matrix, 40) < 2 * 40 + 40


def piece(expressions: list[Any], states: dict[int, int], rows: int = 1) -> Job:
    """Make a piece whose inputs are states, or parameters where there is no number."""
    inputs = {
        node.index: (MOTION << SHIFT) + np.full(rows, states[node.index])
        if node.index in states
        else (FIXED << SHIFT) + np.full(rows, node.index)
        for node in expressions[0].graph.nodes
        if node.op == "input"
    }
    outputs = [(RATE << SHIFT) + np.full(rows, k) for k in range(len(expressions))]
    return Job(expressions, inputs, outputs, np.ones(rows, dtype=np.int64))


SORTS = list(range(5))  # of columns that have the numbers of their sorts


def test_parts_with_a_common_moving_number_stay_together_if_they_can() -> None:
    graph = scalars.Graph()
    x = [graph.input(k) for k in range(10)]
    p = graph.input("p")
    expressions = [each for k in range(10) for each in (x[k] * p, x[k] + 1.0)]
    (found,) = share([piece(expressions, {node.index: k for k, node in enumerate(x)})], SORTS)
    assert len(found.expressions) == 2
    np.testing.assert_array_equal(found.outputs[0] % 2**SHIFT, range(0, 20, 2))
    np.testing.assert_array_equal(found.inputs[x[0].index] % 2**SHIFT, range(10))


def test_operands_that_may_be_exchanged_do_not_tell_parts_apart() -> None:
    graph = scalars.Graph()
    x = [graph.input(k) for k in range(10)]
    halves = [0.5 * each for each in x[5:]]
    expressions = [each / 3.0 + 0.5 * each for each in x]  # halves are there first, or thirds are
    assert expressions[5].args[0] is halves[0] is not expressions[5].args[1]
    (found,) = share([piece(expressions, {n.index: k for k, n in enumerate(x)})], SORTS)
    assert len(found.levels) == 10


def test_parts_with_a_common_operation_are_one_part() -> None:
    graph = scalars.Graph()
    x = [graph.input(k) for k in range(10)]
    whole = piece([each + 2.0 * x[0] for each in x], {n.index: k for k, n in enumerate(x)})
    assert share([whole], SORTS) == [whole]


def test_parts_that_differ_in_a_constant_are_not_alike() -> None:
    graph = scalars.Graph()
    x = [graph.input(k) for k in range(10)]
    states = {node.index: k for k, node in enumerate(x)}
    expressions = [each * (2.0 if k < 9 else 3.0) for k, each in enumerate(x)]
    found = share([piece(expressions, states)], SORTS)
    assert [len(each.levels) for each in found] == [9, 1]
    signs = [each - (0.0 if k < 5 else -0.0) * each for k, each in enumerate(x)]
    found = share([piece(signs, states)], SORTS)
    assert [len(each.levels) for each in found] == [1]


def test_many_rows_with_few_parts_stay_whole() -> None:
    graph = scalars.Graph()
    x = [graph.input(k) for k in range(10)]
    whole = piece([2.0 * each for each in x], {n.index: k for k, n in enumerate(x)}, rows=50)
    assert share([whole], SORTS) == [whole]


# Where numbers are --------------------------------------------------------------------------------


def places_of(codes: Any, wishes: list[Any]) -> list[int]:
    """Arrange columns of one number each, and return where the numbers are."""
    columns = Columns(Environment(0, []), 0)
    made = np.array([columns.add(MOVING, 1) for _ in codes]) << SHIFT
    columns.arrange(made[wish] for wish in wishes)
    return [int(columns.locate(made[[k]])[1][0]) for k in codes]


def test_numbers_that_are_read_in_a_row_lie_in_a_row() -> None:
    places = places_of(range(6), [[4, 5], [1, 2, 3, 4, 5], [0, 1, 2, 3, 4]])
    np.testing.assert_array_equal(np.diff(places), np.ones(5))


def test_of_contradicting_wishes_the_longer_one_counts() -> None:
    places = places_of(range(3), [[1, 0], [0, 1, 2]])
    np.testing.assert_array_equal(np.diff(places), np.ones(2))
    assert sorted(places_of(range(2), [[1, 0], [0, 1]])) == [0, 1]


# When it is tried ---------------------------------------------------------------------------------


def programs_with_shared_code(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Make a program; return how often sharing was tried and how often done."""
    tried: list[bool] = []

    class Noting(Instances):
        def __init__(self, *arguments: Any) -> None:
            tried.append(False)
            super().__init__(*arguments)
            tried[-1] = True

    monkeypatch.setattr(instances, "Instances", Noting)
    Program(layout)
    return len(tried), sum(tried)


def test_few_large_blocks_share_code_when_they_fall_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    assert programs_with_shared_code(matrix(50).layout, monkeypatch) == (1, 1)


def test_a_block_that_hangs_together_is_written_out_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(programs, "_LONG", 100)
    assert programs_with_shared_code(arms(1, 6).layout, monkeypatch) == (0, 0)


def test_exact_jacobians_work_beside_parts_that_share_code(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = []
    for long in (100, 10**9):
        monkeypatch.setattr(programs, "_LONG", long)
        plant = arms(9, 1)
        context = plant.create_default_context()
        context.set("tree.x", np.linspace(-1.0, 1.0, 18))
        simulator = fx.Simulator(plant, context, method="Rodas5P", rtol=1e-8, compiled="native")
        simulator.advance_to(0.5)
        ends.append(context.continuous_state)
    shared_end, end = ends
    np.testing.assert_allclose(shared_end, end, rtol=1e-9, atol=1e-12)
