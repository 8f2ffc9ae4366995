"""Native Jacobians: blocks of derivatives give the numbers of derivatives one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import flexure as fx
from flexure.diagrams.scalars.derivatives import jacobians
from flexure.solvers.native.emission import jacobian_emission, tangent_emission
from flexure.solvers.native.emission.emission import Environment
from flexure.solvers.native.programs.program import Program
from flexure.solvers.tracing.exact_jacobian import ExactJacobian, JacobianCode, state_keys
from flexure.solvers.tracing.trace import trace_derivatives
from tests.support.native.native import equation_at, needs_llvmlite

pytestmark = needs_llvmlite

FloatArray = npt.NDArray[np.float64]
N = 11  # states, in two blocks of 6 and 5


class Tangle(fx.LeafSystem):
    """Every derivative depends on many states, by products, roots, quotients and choices."""

    def __init__(self) -> None:
        super().__init__("tangle")
        self.gain = self.declare_numeric_parameter("gain", 1.5)
        self.x = self.declare_continuous_state(z=N, default=np.linspace(-1.0, 1.5, N))

    def calc_time_derivatives(self, context: Any) -> Any:
        x, gain = self.x(context), self.gain(context)
        length = np.sqrt(x @ x + 1.0)
        direction = x / length
        angle = np.arctan2(direction[1], 1.0 + direction[2] ** 2)
        pull = np.where(x[3] * direction[4] > 0.0, gain * direction[4] * angle, np.abs(x[3]))
        limit = np.maximum(np.sin(direction[0]) * x[7], pull)
        chosen = np.where((x[5] > 0.0) & (limit < 3.0), np.sqrt(x[5]), x[6] * limit)
        mixed = gain**2 * direction * limit + pull * x[::-1]
        return [x[9], gain * context.time, 3.0 - chosen, *(mixed[3:10] * chosen), np.tanh(x[10])]


class Chain(fx.LeafSystem):
    """Every derivative depends on one state."""

    def __init__(self) -> None:
        super().__init__("chain")
        self.x = self.declare_continuous_state(z=3, default=[0.1, 0.2, 0.3])

    def calc_time_derivatives(self, context: Any) -> Any:
        x = self.x(context)
        return [x[1] ** 2, np.sin(x[2]), -x[0] * 3.0]


class Neighbors(fx.LeafSystem):
    """Every derivative depends on two states that follow each other."""

    def __init__(self, count: int) -> None:
        super().__init__("neighbors")
        self.x = self.declare_continuous_state(z=count)

    def calc_time_derivatives(self, context: Any) -> Any:
        x = self.x(context)
        return np.sin(x) * np.roll(x, 1)


def entries_and_exact_ones(system: fx.System, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the native Jacobian at a state, and the one that needs no further package."""
    context = system.create_default_context()
    program = Program(system.layout)
    call = equation_at(program.jacobian())
    assert program.jacobian_entries is not None
    rows, columns = program.jacobian_entries
    entries = np.full(len(rows) + 1, -77.0)
    call(0.3, x, program.fill(context.store), entries)
    assert entries[-1] == -77.0
    native = np.zeros((len(x), len(x)))
    native[rows, columns] = entries[:-1]
    store = context.store
    code = JacobianCode(trace_derivatives(system.layout), state_keys(store), len(x))
    exact = ExactJacobian(store, code)
    assert set(zip(rows.tolist(), columns.tolist(), strict=True)) == set(
        zip(*(each.tolist() for each in code.place), strict=True)
    )
    assert len(set(zip(rows.tolist(), columns.tolist(), strict=True))) == len(rows)
    return native, exact(0.3, x)


@pytest.mark.full
@pytest.mark.parametrize("chunk", [3, 40, 1000])
@pytest.mark.parametrize("seed", range(4))
def test_blocks_give_the_numbers_of_derivatives_one_by_one(
    chunk: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where vectors and conditions are handed from one part of the code to the next."""
    monkeypatch.setattr(jacobian_emission, "CHUNK", chunk)
    x = np.random.default_rng(seed).normal(size=N)
    found, expected = entries_and_exact_ones(Tangle(), x)
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)
    assert np.count_nonzero(expected) > 60


@pytest.mark.parametrize("chunk", [3, 1000])
@pytest.mark.parametrize("system", [Tangle, Chain])
def test_directions_give_the_numbers_of_derivatives_one_by_one(
    system: Callable[[], fx.System], chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long equations are differentiated along eight directions at a time."""
    monkeypatch.setattr(jacobian_emission, "LONG", 0)
    monkeypatch.setattr(tangent_emission, "CHUNK", chunk)
    size = system().layout.num_states
    for seed in range(3):
        x = np.random.default_rng(seed).normal(size=size)
        found, expected = entries_and_exact_ones(system(), x)
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)


def test_states_that_never_meet_share_a_direction(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight directions do for a long chain, whatever its length."""
    turns = {}
    for count in (30, 90):
        monkeypatch.setattr(jacobian_emission, "LONG", 0)
        system = Neighbors(count)
        found, expected = entries_and_exact_ones(system, np.linspace(0.1, 2.0, count))
        np.testing.assert_allclose(found, expected, rtol=1e-15)
        keys = state_keys(system.create_default_context().store)
        expressions = trace_derivatives(system.layout)
        _, reached = jacobians.reach(expressions, keys)
        behind = [reached[each.index] for each in expressions]
        plan = tangent_emission.plan_directions(behind, count, 8)
        turns[count] = len(plan.ends)
    assert turns == {30: 1, 90: 1}


@pytest.mark.parametrize("long", [0, 10_000])
def test_what_a_choice_leaves_out_has_no_influence(
    long: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jacobian_emission, "LONG", long)
    x = np.linspace(0.5, 1.5, N)
    x[5] = -1.0  # where the root that is not chosen is not a number
    found, expected = entries_and_exact_ones(Tangle(), x)
    assert np.all(np.isfinite(found))
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)


def test_vectors_are_for_derivatives_by_many_states() -> None:
    texts = {}
    for system in (Tangle(), Chain()):
        expressions = trace_derivatives(system.layout)
        keys = state_keys(system.create_default_context().store)
        written = jacobian_emission.emit_jacobian(expressions, keys, Environment(), ())
        texts[system.name] = "\n".join(text for text, _ in written.texts)
    assert "<8 x double>" in texts["tangle"]
    assert "<8 x double>" not in texts["chain"]
    found, expected = entries_and_exact_ones(Chain(), np.array([0.3, -0.4, 0.5]))
    np.testing.assert_allclose(found, expected, rtol=1e-15)
