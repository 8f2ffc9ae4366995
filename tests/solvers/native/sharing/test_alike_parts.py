"""Parts of blocks that are alike share code as well, and the numbers are those without."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams import scalars
from flexure.diagrams.values.symbolic_values import PARAMETER, Key
from flexure.solvers.native.programs.program import Program
from tests.support.native.native import needs_llvmlite
from tests.support.native.shared_code import (
    derivatives,
    operations,
    shared,
    shares_code,
    sharing,
    size_of_code,
    written_out,
)
from tests.support.systems.many_blocks import Lag, Law
from tests.support.tiers import thinned

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


def moved(context: fx.Context, seed: int = 0) -> fx.Context:
    """Change time and states."""
    rng = np.random.default_rng(seed)
    context.time = 1.5
    state = context.continuous_state
    context.continuous_state = state + 0.3 * rng.normal(size=state.size)
    return context


# Numbers ------------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize("name", thinned(SYSTEMS, fast=2))
def test_shared_code_gives_the_numbers_of_code_that_is_written_out(name: str) -> None:
    context = moved(SYSTEMS[name]().create_default_context())
    found = shared(context)
    np.testing.assert_array_equal(found, written_out(context))
    np.testing.assert_allclose(found, context.store.time_derivatives(), rtol=1e-9, atol=1e-12)


@pytest.mark.full
@pytest.mark.parametrize("width", [2, 16])
def test_the_numbers_do_not_depend_on_the_width_of_registers(width: int) -> None:
    for name in ("bodies", "long laws"):
        context = moved(SYSTEMS[name]().create_default_context())
        np.testing.assert_array_equal(shared(context, width=width), shared(context))


def test_functions_that_compute_many_numbers_at_once_err_little() -> None:
    for name in ("arms of one link", "arms of three links"):
        context = moved(SYSTEMS[name]().create_default_context())
        expected = context.store.time_derivatives()
        scale = np.abs(expected).max()
        found = shared(context, one_by_one=False)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14 * scale)


def test_each_part_has_its_own_parameters() -> None:
    plant = bodies(10)
    context = moved(plant.create_default_context())
    with sharing(True):
        program = Program(plant.layout)
    before = derivatives(program, context)
    context.set("tree.body4_mass", 2.0)
    context.set("spring7.stiffness", 30.0)
    after = derivatives(program, context)
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


@pytest.mark.full
def test_zeros_among_parameters_are_left_out_of_shared_code() -> None:
    """Also where some of the blocks have them and others do not."""
    plant = bodies(18, (0.0, 0.1))
    context = moved(plant.create_default_context())
    zeros = zeros_in(context)
    found = shared(context, zeros)
    np.testing.assert_array_equal(found, written_out(context, zeros))
    expected = context.store.time_derivatives()
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


# How much is written ------------------------------------------------------------------------------


PARTS: dict[str, Callable[[int], fx.Diagram]] = {
    "bodies": bodies,
    "arms": partial(arms, links=3),
    "rod": rod,
}


@pytest.mark.full
@pytest.mark.parametrize("name", thinned(PARTS, fast=1))
def test_many_parts_take_hardly_more_code_than_few(name: str) -> None:
    few, many = (PARTS[name](count) for count in (12, 36))
    with sharing(True):
        assert size_of_code(many) < 1.25 * size_of_code(few)


def test_every_row_of_a_matrix_is_a_part() -> None:
    """A row is written once, with a product and a sum for each column."""
    sizes = []
    for everywhere in (True, False):
        with sharing(everywhere):
            sizes.append([size_of_code(matrix(size)) for size in (20, 40)])
    (few, many), (_, many_written_out) = sizes
    assert many < 2 * few
    assert many < 0.18 * many_written_out


class Row(fx.LeafSystem):
    """x_k' = law_k(x), for laws of which many are alike."""

    def __init__(self, law: Callable[[Any], list[Any]], size: int = 40) -> None:
        super().__init__("row")
        self.law = law
        self.x = self.declare_continuous_state(z=size, default=np.linspace(-2.0, 2.0, size))

    def calc_time_derivatives(self, context: Any) -> Any:
        return scalars.array(self.law(list(self.x(context))))


def third_and_half(x: list[Any], first: int) -> list[Any]:
    """Add a third and half of each; from the first one on, the halves are there before."""
    halves = [0.5 * each for each in x[first:]]
    found = [each / 3.0 + 0.5 * each for each in x[:first]]
    return found + [half + each / 3.0 for half, each in zip(halves, x[first:], strict=True)]


def test_operands_that_may_be_exchanged_do_not_tell_parts_apart() -> None:
    ordered, mixed = (Row(partial(third_and_half, first=first)) for first in (0, 20))
    with sharing(True):
        assert size_of_code(mixed) < 1.1 * size_of_code(ordered)


def test_numbers_lie_in_the_order_in_which_loops_need_them() -> None:
    """Otherwise more arms take longer tables of where their numbers are."""
    with sharing(True):
        assert size_of_code(arms(36, 2)) < 1.3 * size_of_code(arms(9, 2))


def test_results_of_the_same_states_are_one_part() -> None:
    def apart(a: Any, b: Any, c: Any, d: Any) -> list[Any]:
        return [a * b + c, b * c - d, c * d / a, d + a / b]

    def tied(a: Any, b: Any, c: Any, d: Any) -> list[Any]:
        common = a * b
        return [common + c, common * c - d, common / d - a, common + d / b]

    def size(law: Callable[..., list[Any]]) -> int:
        return size_of_code(Row(lambda x: [*chain(*map(law, *[x[k::4] for k in range(4)]))]))

    with sharing(True):
        assert size(apart) < 1.2 * size(tied)


def test_what_parts_have_in_common_is_computed_once() -> None:
    system = Row(lambda x: [each + 2.0 * np.sin(x[0]) for each in x])
    assert operations(system, everywhere=True) == operations(system, everywhere=False) == 40 + 2


CONSTANTS: dict[str, Callable[[int], float]] = {
    "values": lambda k: 2.0 if k % 2 else 3.0,
    "signs of zero": lambda k: 0.0 if k % 2 else -0.0,
}


@pytest.mark.parametrize("differ_in", CONSTANTS)
def test_parts_with_other_constants_are_not_alike(differ_in: str) -> None:
    constant = CONSTANTS[differ_in]
    system = Row(lambda x: [np.copysign(each, constant(k)) for k, each in enumerate(x)])
    if differ_in == "values":
        system = Row(lambda x: [each * constant(k) for k, each in enumerate(x)])
    context = system.create_default_context()
    np.testing.assert_array_equal(shared(context), context.store.time_derivatives())


@pytest.mark.parametrize("touches", [True, False])
@pytest.mark.parametrize("order", [6, 30])
def test_forces_that_a_condition_switches_off_are_zero_on_its_side(
    order: int, touches: bool
) -> None:
    def force(gap: Any) -> Any:
        pressed = gap
        for n in range(2, order):
            pressed = pressed * gap / n - gap
        return np.where(gap < 0.5, pressed, 0.0) if touches else np.where(gap > 0.5, 0.0, pressed)

    context = Row(lambda x: [force(each) for each in x]).create_default_context()
    np.testing.assert_array_equal(shared(context), context.store.time_derivatives())


# When it is tried ---------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize(
    ("make", "pays"),
    [(partial(matrix, 50), True), (partial(arms, 8, 3), True), (partial(arms, 1, 11), False)],
    ids=["a matrix", "many arms", "one long arm"],
)
def test_large_blocks_share_code_if_they_fall_apart(
    make: Callable[[], fx.Diagram], pays: bool
) -> None:
    context = moved(make().create_default_context())
    program = Program(context.system.layout)
    assert shares_code(program) is pays
    found, expected = derivatives(program, context), context.store.time_derivatives()
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12 * scale)


class Tuned(fx.LeafSystem):
    """x_k' = a long law of x_k, with a factor that a parameter decides for all of them."""

    def __init__(self, size: int = 40) -> None:
        super().__init__("tuned")
        self.p = self.declare_numeric_parameter("p", 0.5)
        self.x = self.declare_continuous_state(z=size, default=np.linspace(-2.0, 2.0, size))

    def calc_time_derivatives(self, context: Any) -> Any:
        factor = np.exp(self.p(context))
        rate = self.x(context)
        for n in range(1, 41):
            rate = np.sin(rate) * factor + rate / n
        return rate


def test_what_parameters_decide_ties_no_parts_together() -> None:
    context = Tuned().create_default_context()
    program = Program(context.system.layout)
    assert shares_code(program)
    found = derivatives(program, context)
    np.testing.assert_allclose(found, context.store.time_derivatives(), rtol=1e-9)


def test_exact_jacobians_work_beside_parts_that_share_code() -> None:
    ends = []
    for everywhere in (True, False):
        plant = arms(9, 1)
        context = plant.create_default_context()
        context.set("tree.x", np.linspace(-1.0, 1.0, 18))
        with sharing(everywhere):
            simulator = fx.Simulator(plant, context, method="Rodas5P", rtol=1e-8, compiled="native")
        simulator.advance_to(0.5)
        ends.append(context.continuous_state)
    shared_end, end = ends
    np.testing.assert_allclose(shared_end, end, rtol=1e-9, atol=1e-12)
