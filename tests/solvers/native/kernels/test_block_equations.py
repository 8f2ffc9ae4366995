"""The kernels that solve linear equations by factors in blocks, beside NumPy's solutions."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import flexure as fx
from flexure.solvers.native.emission.sparse_factors import BlockFactors, cheapest_blocks
from flexure.solvers.native.kernels.parts import blocks
from flexure.solvers.native.kernels.parts.linear_solves import LARGEST_GROWTH
from flexure.solvers.native.programs.program import Program
from flexure.solvers.native.runs.run_memory import StructureArrays, set_blocks
from tests.support.native.native import CompiledKernel, needs_llvmlite
from tests.support.native.native_runs import compiled_loop

FloatArray = npt.NDArray[np.float64]


def places_of(matrix: FloatArray) -> BlockFactors:
    found = cheapest_blocks(len(matrix), *map(np.array, np.nonzero(matrix)))
    assert found is not None
    return found


def memory_of(found: BlockFactors) -> Any:
    """Return what the kernels read and write, for those that Python runs."""
    memory = StructureArrays(blocks.BlockData)
    set_blocks(memory, found)
    counts = {"count": found.count, "kept": found.kept, "expressed": found.expressed}
    return SimpleNamespace(**counts, d=0.0, **memory.arrays)


def solution(matrix: FloatArray, d: float, b: FloatArray) -> tuple[float, FloatArray]:
    """Return the growth of factors of ``d I - matrix``, and the solution that they give."""
    found = places_of(matrix)
    memory, x = memory_of(found), b.copy()
    entries = np.append(matrix[np.nonzero(matrix)], 0.0)
    with np.errstate(all="ignore"):
        growth = float(blocks.block_growth(memory, found.size, np.float64(d), entries))
        blocks.solve_blocks(memory, found.size, x)
    return growth, x


def mechanism(sizes: list[int], seed: int, alone: int = 0) -> FloatArray:
    """Draw the Jacobian of a chain of bodies with so many velocities each.

    Positions follow velocities, and all in a body depend on it and on the bodies beside it. Further
    states depend on some of the others, as those of controllers do. All are in a random order.
    """
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    total = 2 * n + alone
    matrix = np.zeros((total, total))
    matrix[:n, n : 2 * n] = np.diag(rng.uniform(0.5, 2.0, n))
    ends = np.cumsum([0, *sizes])
    for i, rows in enumerate(pairwise(ends.tolist())):
        for j in range(max(i - 1, 0), min(i + 2, len(sizes))):
            for start in (0, n):
                columns = slice(start + ends[j], start + ends[j + 1])
                size = (sizes[i], sizes[j])
                matrix[n + rows[0] : n + rows[1], columns] = rng.normal(size=size)
    for k in range(2 * n, total):
        matrix[k, rng.choice(total, 3)] = matrix[rng.choice(total, 3), k] = rng.normal(size=3)
    order = rng.permutation(total)
    found: FloatArray = matrix[np.ix_(order, order)]
    return found


@pytest.mark.full
@pytest.mark.parametrize(
    ("sizes", "alone"),
    [
        *[([1], 0), ([], 1), ([], 7), ([3] * 9, 0), ([6] * 4, 1), ([1, 6, 3, 1, 2, 3, 6], 2)],
        *[([1] * 20, 0), ([2, 5, 2, 5], 3), ([3, 3, 3], 9)],
    ],
)
@needs_llvmlite
def test_factors_in_blocks_solve_linear_equations(sizes: list[int], alone: int) -> None:
    """By Python and as compiled, twice with the same memory, and again after numbers that are no
    numbers."""
    matrix = mechanism(sizes, len(sizes) + alone, alone)
    n = len(matrix)
    found, d = places_of(matrix), 7.0
    entries, b = np.append(matrix[np.nonzero(matrix)], 0.0), np.random.default_rng(n).normal(size=n)
    expected = np.linalg.solve(d * np.eye(n) - matrix, b)
    memory = StructureArrays(blocks.BlockData)
    set_blocks(memory, found)
    size = {"size": found.size}
    factorize = partial(CompiledKernel(blocks.block_growth, **size), memory.pointer)
    solve = partial(CompiledKernel(blocks.solve_blocks, **size), memory.pointer)
    for right in (b, np.full(n, np.nan), b):
        growth = factorize(d, entries)
        x = right.copy()
        solve(x)
        if right is b:
            plain, by_python = solution(matrix, d, b)
            assert growth == pytest.approx(plain, rel=1e-9)
            assert growth < LARGEST_GROWTH
            np.testing.assert_allclose(x, by_python, rtol=1e-10, atol=1e-12)
            np.testing.assert_allclose(x, expected, rtol=1e-10, atol=1e-12)


def test_positions_are_expressed_and_bodies_are_blocks() -> None:
    """A chain of bodies in a plane takes a tile, and one on both sides of it, for each of them."""
    found = places_of(mechanism([3] * 9, 1))
    assert (found.size, found.count, found.kept, found.expressed) == (3, 9, 27, 27)
    assert found.products == 27 * (9 + 8 + 8)
    assert set(found.states) | set(found.positions) == set(range(54))


def test_two_states_that_follow_one_and_chains_of_them_are_solved_like_others() -> None:
    """Of several integrals of a state, one is expressed by it, and so is none of those of it."""
    matrix = np.zeros((5, 5))
    matrix[0, 4] = matrix[1, 4] = matrix[2, 1] = 1.0
    matrix[3, 3], matrix[4] = -1.0, [-3.0, -2.0, -1.0, 0.5, -0.25]
    assert places_of(matrix).expressed == 2  # x0 by x4, x2 by x1
    growth, x = solution(matrix, 2.0, np.arange(5.0))
    assert growth < 100.0
    expected = np.linalg.solve(2.0 * np.eye(5) - matrix, np.arange(5.0))
    np.testing.assert_allclose(x, expected, rtol=1e-13)


def hard_matrices(count: int) -> list[tuple[float, FloatArray]]:
    """Draw matrices without dominant diagonals: with zeros that cancel, of many orders of magnitude
    or units, with equal rows, of stiff mechanisms."""
    rng = np.random.default_rng(3)
    found = []
    for k in range(count):
        n = int(rng.integers(1, 14))
        zero = rng.random((n, n)) > rng.uniform(0.05, 1.0)
        matrix = np.where(zero, 0.0, rng.normal(size=(n, n)))
        match k % 6:
            case 1:
                matrix = np.round(matrix)
            case 2:
                matrix *= 10.0 ** rng.uniform(-8.0, 8.0, size=(n, n))
            case 3:
                units = 10.0 ** rng.uniform(-6.0, 6.0, size=n)
                matrix *= units[:, None] / units
            case 4:
                matrix[rng.integers(n)] = matrix[rng.integers(n)]
            case 5:
                stiff = matrix * 10.0 ** rng.uniform(-3.0, 8.0)
                matrix = np.block([[np.zeros((n, n)), np.eye(n)], [stiff, matrix]])
        found.append((float(rng.choice([0.0, 1e-3, 1.0, 2.0, 1e4])), matrix))
    return found


@pytest.mark.full
def test_factors_are_right_or_refused() -> None:
    """Solutions lose no more digits by the way than the growth tells, and no more than are left to
    NumPy's where equations have hardly a solution."""
    refused = 0
    for d, matrix in hard_matrices(420):
        n = len(matrix)
        whole, b = d * np.eye(n) - matrix, np.linspace(1.0, 3.0, n)
        growth, x = solution(matrix, d, b)
        if not growth < LARGEST_GROWTH:
            refused += 1
            continue
        rest = np.abs(whole @ x - b) / (np.abs(whole) @ np.abs(x) + np.abs(b))
        wrong = 0.0
        if rest.max() > 1e-12:  # rows of very different sizes: as far as from NumPy's
            right = np.linalg.solve(whole, b)
            wrong = np.abs(x - right).max() / np.abs(right).max()
        assert wrong < 1e-14 * growth
    assert 40 < refused < 210


@pytest.mark.parametrize("unit", [1.0, 1e6, 1e-6])
@pytest.mark.parametrize(("corner", "right"), [(1e-2, True), (1e-6, True), (1e-12, False)])
def test_growth_is_the_same_in_all_units(corner: float, right: bool, unit: float) -> None:
    rng = np.random.default_rng(0)
    matrix = np.eye(8) + 0.1 * rng.normal(size=(8, 8))
    matrix[0, 0] = corner
    units = unit ** np.arange(8)
    growth, _ = solution(-matrix * units[:, None] / units, 1e-15, np.ones(8))
    assert (growth < LARGEST_GROWTH) == right
    assert growth == pytest.approx(solution(-matrix, 1e-15, np.ones(8))[0], rel=1e-6)


def test_equations_without_a_solution_are_refused() -> None:
    for matrix in (np.eye(3), np.ones((4, 4)), np.full((2, 2), np.nan)):
        d = float(np.nan_to_num(matrix).sum(axis=1).max())
        growth, _ = solution(matrix, d, np.ones(len(matrix)))
        assert not growth < LARGEST_GROWTH


@needs_llvmlite
def test_bodies_that_turn_and_controllers_have_blocks_too() -> None:
    """A free body whose orientation is a quaternion, one in a plane and a servo beside them: their
    Jacobian is solved as by NumPy."""
    plant = fx.PlantBuilder("plant")
    inertia = fx.SpatialInertia(2.0, (0.1, 0.0, 0.0), (0.3, 0.4, 0.5))
    free, flat, arm = (plant.add_body(name, inertia) for name in ("free", "flat", "arm"))
    plant.add_joint(fx.QuaternionFloatingJoint("floating", plant.world, free))
    plant.add_joint(fx.PlanarJoint("planar", plant.world, flat))
    axis = fx.RevoluteJoint("axis", flat, arm, axis=(0, 0, 1), damping=0.1)
    plant.add_joint(axis)
    plant.add_force_element(
        fx.LinearBushingRollPitchYaw(
            "bushing",
            free,
            arm,
            torque_stiffness=np.full(3, 50.0),
            torque_damping=np.ones(3),
            force_stiffness=np.full(3, 900.0),
            force_damping=np.ones(3),
        )
    )
    plant.add_actuator("motor", axis)
    builder = fx.DiagramBuilder("servo")
    builder.add_all(plant.build(), fx.TransferFunction("filter", [1.0], [0.01, 1.0]))
    builder.connect("plant.axis.angle", "filter.u")
    builder.connect("filter.y", "plant.motor")
    equations = fx.compiled_equations(builder.build())
    assert isinstance(equations.program, Program)
    rng = np.random.default_rng(5)
    x = equations.x0 + 0.1 * rng.normal(size=equations.x0.size)
    matrix = equations.jac(0.0, x)
    found = places_of(matrix)
    assert found.expressed >= 4  # at least what slides, and the angle
    for d in (1.0, 40.0, 1e5):
        b = rng.normal(size=x.size)
        growth, y = solution(matrix, d, b)
        assert growth < LARGEST_GROWTH
        np.testing.assert_allclose(y, np.linalg.solve(d * np.eye(x.size) - matrix, b), rtol=1e-8)


class Whirls(fx.LeafSystem):
    """Fast oscillators at rest, each beside a slow decay that it pushes."""

    def __init__(self, count: int, rate: float) -> None:
        super().__init__("whirls")
        self.rate = self.declare_numeric_parameter("rate", rate)
        self.x = self.declare_continuous_state(z=3 * count, default=[0.0, 0.0, 1.0] * count)

    def calc_time_derivatives(self, context: Any) -> Any:
        z, rate = self.x(context), self.rate(context)
        slopes: list[Any] = []
        for a, b, c in zip(z[0::3], z[1::3], z[2::3], strict=True):
            slopes += [rate * b - a, -rate * a, -c + a * b]
        return slopes


@pytest.mark.full
@needs_llvmlite
@pytest.mark.parametrize(("rate", "in_blocks"), [(1e2, 1), (1e9, 0)])
def test_steps_go_on_with_dense_factors_where_blocks_grow(
    rate: float, in_blocks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flexure.solvers.native.emission.sparse_factors._CHEAPER", 1e3)
    simulator = fx.Simulator(Whirls(15, rate), method="Rodas5P", compiled="native", rtol=1e-8)
    simulator.initialize()
    simulator.advance_to(1.0)
    memory = compiled_loop(simulator, "Rodas5P").memory
    assert memory.program.block_factors is not None
    assert memory.fields.linear.factored_sparse == in_blocks
    x = np.asarray(simulator.context.get("x"))
    np.testing.assert_allclose(x, [0.0, 0.0, np.exp(-1.0)] * 15, atol=1e-6)
