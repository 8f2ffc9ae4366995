"""Jacobians whose code is shared by what is alike, with the numbers of those written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.blocks.flexures.beams.beam import Beam
from flexure.blocks.flexures.sections.materials import Material
from flexure.blocks.flexures.sections.rectangle_section import RectangleSection
from flexure.solvers.native.programs.program import Program
from tests.solvers.native.sharing.test_alike_parts import SYSTEMS, moved
from tests.support.native.native import equation_at, needs_llvmlite
from tests.support.native.shared_code import FloatArray, jacobian, jacobian_by
from tests.support.systems.many_blocks import DIAGRAMS
from tests.support.tiers import thinned

pytestmark = needs_llvmlite

PARTS = ("arms of one link", "matrix", "rod", "long laws")
MADE = {name: SYSTEMS[name] for name in PARTS} | {
    name: lambda make=make: make().build() for name, make in DIAGRAMS.items()
}


@pytest.mark.full
@pytest.mark.parametrize("name", MADE)
def test_shared_code_gives_the_jacobian_that_is_written_out(name: str) -> None:
    context = moved(MADE[name]().create_default_context())
    expected = jacobian(context, everywhere=False)
    found = jacobian(context, everywhere=True)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14 * scale)


def cantilever(segments: int, *, planar: bool, ledger: bool = False) -> fx.Plant:
    builder = fx.PlantBuilder("cantilever", gravity=(0.0, -9.81, 0.0))
    tip = builder.add_body("tip", fx.SpatialInertia(0.0))
    kind = fx.PlanarJoint if planar else fx.QuaternionFloatingJoint
    given: dict[str, Any] = {"damping": 1e-3} if ledger else {}
    joint = kind("tip", builder.world, tip, **given)
    joint.default_pose = (np.eye(3), [0.2, 0.0, 0.0])
    builder.add_joint(joint)
    if ledger:
        builder.add_energy_ledger()
    section = RectangleSection(width=0.02, thickness=0.001)
    steel = Material.common("structural steel S235")
    beam = Beam(
        "leaf",
        builder.world,
        tip,
        section=section,
        material=steel,
        segments=segments,
        length=0.2,
        planar=planar,
        damping_time=1e-5,
    )
    builder.add_force_element(beam)
    return builder.build()


@pytest.mark.full
@pytest.mark.parametrize(("planar", "ledger"), [(True, False), (False, False), (True, True)])
def test_the_jacobian_of_a_long_beam_is_that_of_differences(planar: bool, ledger: bool) -> None:
    plant = cantilever(30 if ledger else 20, planar=planar, ledger=ledger)
    context = plant.create_default_context()
    program = Program(plant.layout)
    jacobian, rates = map(equation_at, (program.jacobian(), program.rhs))
    way = "entry by entry" if planar else "along directions"
    assert f"{way}, by shared code" in str(program.plan)
    assert program.jacobian_entries is not None
    env, n = program.fill(context.store), program.num_states
    rng = np.random.default_rng(1)
    x = np.array(context.store.x) + 1e-4 * rng.normal(size=n)
    entries = np.empty(len(program.jacobian_entries[0]))
    jacobian(0.0, x, env, entries)
    matrix = np.zeros((n, n))
    matrix[program.jacobian_entries] = entries

    def slope(direction: FloatArray, distance: float) -> FloatArray:
        ends = np.empty((2, n))
        for end, sign in zip(ends, (1.0, -1.0), strict=True):
            rates(0.0, x + sign * distance * direction, env, end)
        change: FloatArray = (ends[0] - ends[1]) / (2.0 * distance)
        return change

    for direction in rng.normal(size=(3, n)):
        expected = (4.0 * slope(direction, 1e-7) - slope(direction, 2e-7)) / 3.0
        scales = np.abs(matrix) @ np.abs(direction) + 1e-9
        np.testing.assert_allclose((matrix @ direction - expected) / scales, 0.0, atol=1e-6)


@pytest.mark.full
def test_the_code_of_a_jacobian_does_not_grow_with_the_length_of_a_beam() -> None:
    sizes = []
    for segments in (14, 28):
        program = Program(cantilever(segments, planar=True).layout)
        make = program.shared_jacobian
        found = make(program.environment.copy()) if make is not None else None
        assert found is not None
        (text,) = found.code.modules
        sizes.append(sum(line.startswith("  %") for line in text.splitlines()))
    assert sizes[0] == pytest.approx(sizes[1], rel=0.1)


@pytest.mark.parametrize("ledger", thinned([False, True], fast=1))
def test_entry_by_entry_is_the_jacobian_along_directions(ledger: bool) -> None:
    plant = cantilever(20, planar=True, ledger=ledger)
    context = moved(plant.create_default_context())
    entries, directions = (
        jacobian_by(context, way, states=64) for way in ("entry by entry", "along directions")
    )
    assert "entry by entry" in entries[1]
    assert "along directions" in directions[1]
    scale = np.abs(directions[0]).max()
    np.testing.assert_allclose(entries[0], directions[0], rtol=1e-10, atol=1e-14 * scale)


class Cell(fx.LeafSystem):
    """A state that its neighbor drives, and the output that is the state."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.u = self.declare_vector_input("u", 1)
        self.x = self.declare_continuous_state(z=1)
        self.y = self.declare_vector_output("y", 1, self.x, prerequisites=[self.x])

    def calc_time_derivatives(self, context: Any) -> Any:
        x, u = self.x(context), self.u(context)
        return np.sin(x) * np.cos(u) - np.exp(-x * x) * x + np.tanh(x + u)


class Total(fx.LeafSystem):
    """A state whose rate is a sum of all inputs, the first one twice."""

    def __init__(self, count: int) -> None:
        super().__init__("total")
        self.inputs = [self.declare_vector_input(f"u{k}", 1) for k in range(count)]
        self.x = self.declare_continuous_state(z=1)

    def calc_time_derivatives(self, context: Any) -> Any:
        return sum((port(context) for port in self.inputs), self.inputs[0](context))


@pytest.mark.parametrize("way", ["entry by entry", "along directions"])
def test_a_sum_of_states_themselves_has_their_derivatives(way: str) -> None:
    count, builder = 80, fx.DiagramBuilder("ring")
    cells = [builder.add(Cell(f"cell{k}")) for k in range(count)]
    total = builder.add(Total(count))
    for k, cell in enumerate(cells):
        builder.connect(cell.y, cells[(k + 1) % count].u)
        builder.connect(cell.y, total.inputs[k])
    context = builder.build().create_default_context()
    matrix, found_way = jacobian_by(context, way, states=8)
    assert found_way == f"{way}, by shared code"
    np.testing.assert_array_equal(matrix[-1], [2.0, *np.ones(count - 1), 0.0])
