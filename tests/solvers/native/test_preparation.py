"""Preparation of native code: in pieces, within bounds, and whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import TraceError
from flexure.diagrams.scalars import Graph
from flexure.solvers.native.emission import jacobian_emission
from flexure.solvers.native.llvm import library
from flexure.solvers.native.programs import plan
from flexure.solvers.native.programs.program import Program
from flexure.solvers.tracing import derivatives as python_reading
from tests.support.native.native import equation_at, needs_llvmlite

pytestmark = needs_llvmlite

N = 12


class Web(fx.LeafSystem):
    """Every derivative depends on every state, and the first state is fast and stable."""

    def __init__(self, name: str = "web", rate: float = 3000.0) -> None:
        super().__init__(name)
        self.rate = self.declare_numeric_parameter("rate", rate)
        self.x = self.declare_continuous_state(z=N, default=np.linspace(0.2, 1.0, N))

    def calc_time_derivatives(self, context: Any) -> Any:
        x = self.x(context)
        size = np.sqrt(x @ x + 1.0)
        pull = [-np.sin(x[k] * size) * x[k - 1] / (9.0 + x[k - 2] ** 2) for k in range(1, N)]
        return [self.rate(context) * (np.cos(context.time) - x[0]), *pull]


def final_state(system: fx.System, **options: Any) -> Any:
    """Return where a run of a second ends, and how it was computed."""
    simulator = fx.Simulator(system, rtol=1e-6, **options)
    simulator.advance_to(1.0)
    return simulator.context.continuous_state, simulator.explain()


def cut_into_pieces(monkeypatch: pytest.MonkeyPatch, piece: int) -> list[int]:
    """Let modules be small, and Jacobians be long; return the lengths of the texts to come."""
    monkeypatch.setattr(library, "_PIECE", piece)
    monkeypatch.setattr(jacobian_emission, "LONG", 0)
    for name in ("jacobian_emission", "tangent_emission"):
        monkeypatch.setattr(f"flexure.solvers.native.emission.{name}.CHUNK", 10)
    lengths: list[int] = []
    compiled = library._Machine.compile

    def note(machine: Any, text: str, *arguments: Any) -> bytes:
        lengths.append(len(text))
        return compiled(machine, text, *arguments)

    monkeypatch.setattr(library._Machine, "compile", note)
    return lengths


def test_modules_that_call_each_other_give_the_numbers_of_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FLEXURE_CACHE", "off")
    system, x = Web(), np.linspace(-1.0, 1.0, N)
    entries = []
    for piece in (10**9, 4000):
        with monkeypatch.context() as patch:
            lengths = cut_into_pieces(patch, piece)
            made = Program(system.layout)
            call = equation_at(made.jacobian())
        assert made.jacobian_entries is not None
        out = np.zeros(len(made.jacobian_entries[0]))
        call(0.3, x, made.fill(system.create_default_context().store), out)
        entries.append(out)
    assert len(lengths) > 5
    np.testing.assert_array_equal(entries[0], entries[1])


@pytest.mark.full
def test_an_interruption_leaves_nothing_half_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever piece it hits, the next run goes on with those that are complete."""
    expected, _ = final_state(Web(), method="Rodas5P")
    monkeypatch.setenv("FLEXURE_CACHE", str(tmp_path / "cache"))
    system, hits = Web("interrupted"), 0
    cut_into_pieces(monkeypatch, 15_000)
    compiled = library._Machine.compile
    for _ in range(20):
        calls = iter(range(100))

        def interrupt(machine: Any, *arguments: Any, calls: Any = calls) -> bytes:
            if next(calls) == 1:  # the first one is added to the cache
                raise KeyboardInterrupt
            return compiled(machine, *arguments)

        monkeypatch.setattr(library._Machine, "compile", interrupt)
        try:
            found, how = final_state(system, method="Rodas5P")
            break
        except KeyboardInterrupt:
            hits += 1
    assert hits > 2
    assert "native code" in how
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.full
@pytest.mark.parametrize("compiled", [True, "python"])
def test_what_is_too_long_to_compile_is_interpreted_and_says_so(
    compiled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, _ = final_state(Web(), compiled=False, method="RK45")
    monkeypatch.setattr(plan, "WRITTEN", 20)
    monkeypatch.setattr(python_reading, "STATEMENTS", 20)
    found, how = final_state(Web(), compiled=compiled, method="RK45")
    np.testing.assert_array_equal(found, expected)
    assert "equations: interpreted, because cannot compile equations of" in how
    assert ("no native code, because cannot compile derivatives of" in how) == (compiled is True)
    with pytest.raises(fx.errors.NativeCodeError, match="operations in reasonable time"):
        final_state(Web(), compiled="native", method="RK45")


def test_a_jacobian_that_is_too_long_leaves_the_rest_native(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected, _ = final_state(Web(), method="Rodas5P")
    monkeypatch.setattr(jacobian_emission, "WRITTEN", 20)
    monkeypatch.setattr(jacobian_emission, "LONG", 0)
    monkeypatch.setattr(python_reading, "JACOBIAN_STATEMENTS", 20)
    found, how = final_state(Web(), method="Rodas5P")
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert "Jacobian by differences" in how
    assert "no native code, because cannot compile the Jacobian of" in how
    _, how = final_state(Web(), method="RK45")
    assert "equations: native code" in how
    found, how = final_state(Web())
    assert "Rodas5P, because" in how
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    equations = fx.compiled_equations(Web())
    assert equations.method("Rodas5P").__name__ == "Rodas5P"


def test_a_trace_is_bounded() -> None:
    graph = Graph(most=3)
    x = graph.input("x")
    assert (x * 2.0).op == "multiply"
    with pytest.raises(TraceError, match="more than 3 operations"):
        x * 2.0 + x


def test_the_jacobian_of_a_dense_plant_is_its_matrix() -> None:
    """It is copied: there is no operation in it."""
    count = 60
    A = np.random.default_rng(0).normal(size=(count, count))
    system = fx.StateSpace("plant", A, np.ones((count, 1)), np.eye(1, count))
    made = Program(system.layout)
    call = equation_at(made.jacobian())
    assert made.jacobian_entries is not None
    out = np.zeros(count**2)
    context = system.create_default_context()
    context.set("u", 1.0)
    call(0.0, np.zeros(count), made.fill(context.store), out)
    found = np.zeros_like(A)
    found[made.jacobian_entries] = out
    np.testing.assert_array_equal(found, A)
