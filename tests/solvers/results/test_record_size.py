"""The memory that a recorded run takes: known, bounded, and told before there is none left."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import SimulationError, ValueRefusedError
from flexure.solvers.results.records import history
from flexure.solvers.results.records.history import free_memory
from flexure.solvers.simulation.simulation import result_of
from tests.support.native.native import needs_llvmlite
from tests.support.tiers import for_each


class Oscillators(fx.LeafSystem):
    """Oscillators beside each other, sampled when wanted."""

    def __init__(self, count: int = 1, period: float | None = None) -> None:
        super().__init__("oscillators")
        self.count = count
        self.x = self.declare_continuous_state(
            q=count, v=count, default=[1.0] * count + [0.0] * count
        )
        if period is not None:
            self.n = self.declare_discrete_state("n", [0.0])
            self.declare_discrete_update(
                lambda context: {self.n: self.n(context) + 1.0}, fx.diagrams.Periodic(period)
            )

    def calc_time_derivatives(self, context: Any) -> Any:
        x = self.x(context)
        return [*x[self.count :], *(-x[: self.count])]


CASES: dict[str, tuple[Oscillators, dict[str, Any]]] = {
    "interpreted": (Oscillators(), {"compiled": False, "max_step": 0.05}),
    "interpreted, 20 states": (Oscillators(10), {"compiled": False, "max_step": 0.05}),
    "interpreted, Radau": (Oscillators(5), {"compiled": "python", "method": "Radau", "rtol": 1e-8}),
    "fixed steps": (Oscillators(), {"method": "rk4", "step": 0.05}),
    "sampled": (Oscillators(1, 0.05), {"compiled": False}),
}
NATIVE: dict[str, tuple[Oscillators, dict[str, Any]]] = {
    "native": (Oscillators(), {"compiled": "native", "max_step": 0.01}),
    "native, sampled": (Oscillators(1, 0.02), {"compiled": "native"}),
}
every_kind = pytest.mark.parametrize(
    "case",
    [*CASES, *(pytest.param(name, marks=needs_llvmlite) for name in NATIVE)],
)


@pytest.mark.full
@every_kind
def test_the_estimate_is_near_what_a_run_takes(case: str) -> None:
    system, options = (CASES | NATIVE)[case]
    fx.simulate(system, 0.1, **options)
    simulator = fx.Simulator(system, record=True, **options)
    simulator.advance_to(0.1)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    assert simulator.history is not None
    size = simulator.history.size
    simulator.advance_to(10.0)
    gc.collect()  # what a run leaves behind is not what it keeps
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert 0.6 < (simulator.history.size - size) / taken < 1.6


@every_kind
def test_a_run_ends_where_the_record_takes_more_than_it_may(case: str) -> None:
    system, options = (CASES | NATIVE)[case]
    with pytest.raises(SimulationError, match="a record of the motion of at most 5e") as caught:
        fx.simulate(system, 1e4, max_record=50_000, **options)
    result = caught.value.result  # type: ignore[attr-defined]
    time = caught.value.time
    assert time is not None
    assert 0.0 < time < 1e4
    assert "VectorLog" in str(caught.value)
    assert result.outcome == "failed"
    assert result.time[-1] <= result.context.time == time
    np.testing.assert_allclose(
        result.sample("x[0]", [0.2]), np.cos(0.2), atol=1e-4 if "fixed" in case else 1e-5
    )


def test_without_an_option_half_of_the_free_memory_is_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(history, "_SMALL", 10_000.0)
    monkeypatch.setattr(history, "free_memory", lambda: 100_000.0)
    with pytest.raises(SimulationError, match=r"at most 5\.\d+e\+04 bytes; found about 5"):
        fx.simulate(Oscillators(), 1e4, compiled=False, max_step=0.05)


def test_free_memory_is_a_number_of_bytes() -> None:
    assert free_memory() > 2**20


@for_each("size", [-1.0, np.nan, "much", [1.0, 2.0]])
def test_a_limit_that_is_none_is_refused(size: Any) -> None:
    with pytest.raises(ValueRefusedError, match="Cannot use this max_record"):
        fx.simulate(Oscillators(), 1.0, max_record=size)


def test_an_infinite_limit_and_a_simulator_without_record_have_no_end() -> None:
    assert fx.simulate(Oscillators(), 1.0, max_record=np.inf).outcome == "completed"
    simulator = fx.Simulator(Oscillators(), max_record=0.0)
    simulator.advance_to(20.0)
    assert simulator.context.time == 20.0


@needs_llvmlite
@pytest.mark.parametrize("method", ["RK45", "DOP853", "Rodas5P", "ESDIRK4"])
def test_a_record_of_few_states_gives_all_of_them_to_the_last_bit(method: str) -> None:
    system, found = Oscillators(20, 0.7), []
    for most in (np.inf, 0.0):
        simulator = fx.Simulator(system, method=method, max_step=2e-3, record=True)
        simulator._keep_few_states(most)
        simulator.advance_to(20.0)
        result = result_of(simulator)
        times = np.linspace(0.0, 20.0, 777)
        found.append((result._history.size, result["x"], result["n"], result.sample("x", times)))
    (whole, *expected), (few, *computed) = found
    assert few < 0.3 * whole
    for one, other in zip(expected, computed, strict=True):
        np.testing.assert_array_equal(one, other)
