"""What native code presupposes: simulations, sweeps and SciPy's front give the same reasons."""

from __future__ import annotations

from typing import Any

import pytest

import flexure as fx
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import NativeCodeError
from flexure.solvers.integration.methods.methods import resolve
from flexure.solvers.native.programs.method_programs import METHODS
from flexure.solvers.native.programs.programs import has_loop
from tests.support.native.native import needs_llvmlite


class Branching(fx.LeafSystem):
    """Equations that need a number."""

    def __init__(self) -> None:
        super().__init__("branching")
        self.x = self.declare_continuous_state(z=1, default=[1.0])

    def calc_time_derivatives(self, context: Any) -> Any:
        return [-float(self.x(context)[0])]


class Moving(fx.LeafSystem):
    """A break time that an update might move."""

    def __init__(self) -> None:
        super().__init__("moving")
        self.x = self.declare_continuous_state(z=1)
        self.at = self.declare_discrete_state("at", 0.5)

    def calc_time_derivatives(self, context: Any) -> Any:
        return [1.0]

    def calc_next_break_time(self, context: Any) -> float:
        return float(self.at(context)[0])


class TwoFaced(fx.LeafSystem):
    """Equations that are others on symbols."""

    def __init__(self) -> None:
        super().__init__("two_faced")
        self.x = self.declare_continuous_state(z=1, default=[1.0])

    def calc_time_derivatives(self, context: Any) -> Any:
        x = self.x(context)
        return -3.0 * x if scalars.is_symbolic(x) else -x


def refusal(system: fx.System, **options: Any) -> str:
    """Why a simulation that insists on native code cannot have it."""
    with pytest.raises(NativeCodeError, match=r"Cannot simulate '.*' with native code") as caught:
        fx.Simulator(system, compiled="native", **options).initialize()
    assert caught.value.found is not None
    return caught.value.found


def how_a_sweep_went(system: fx.System) -> str:
    contexts = [system.create_default_context() for _ in range(2)]
    return fx.simulate_many(system, contexts, 0.1).how


def test_without_llvmlite_all_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flexure.solvers.native.programs.programs.available", lambda: False)
    reason = "the extra flexure[fast] is not installed"
    assert refusal(Branching()) == fx.compiled_equations(Branching()).why == reason
    assert how_a_sweep_went(Branching()) == f"one after the other, because {reason}"


@needs_llvmlite
def test_without_continuous_state_all_say_so() -> None:
    step, reason = fx.Step("step", at=0.5), "there is no continuous state"
    assert refusal(step) == fx.compiled_equations(step).why == reason
    assert how_a_sweep_went(step) == f"one after the other, because {reason}"


@needs_llvmlite
def test_equations_that_need_numbers_are_refused_for_one_reason() -> None:
    block = Branching()
    reason = refusal(block)
    assert reason.startswith("cannot use a symbol as ")
    assert how_a_sweep_went(block) == f"one after the other, because {reason}"
    # SciPy's front has the whole message of the trace, which begins a sentence.
    assert fx.compiled_equations(block).why.lower().startswith(reason.lower())


@needs_llvmlite
def test_a_trace_that_gives_other_numbers_is_refused_for_one_reason() -> None:
    block, reason = TwoFaced(), "tracing the equations gave other numbers"
    assert refusal(block) == fx.compiled_equations(block).why == reason
    assert how_a_sweep_went(block) == f"one after the other, because {reason}"


@needs_llvmlite
def test_break_times_that_may_change_are_refused_for_one_reason() -> None:
    reason = "the break times of 'moving' may change"
    assert refusal(Moving()).startswith(f"{reason}, and cannot be traced (Cannot use a symbol as")
    assert how_a_sweep_went(Moving()).startswith(
        "one after the other, because cannot use a symbol as float()"
    )


@pytest.mark.parametrize("method", METHODS)
def test_loops_are_known_by_the_name_of_a_method_but_not_by_its_class(method: str) -> None:
    assert has_loop(method)
    assert has_loop(method.lower())
    assert not has_loop(resolve(method))
    assert not has_loop("LSODA")


@needs_llvmlite
def test_an_error_that_stands_in_the_way_is_quoted_as_a_part_of_a_sentence() -> None:
    with pytest.raises(NativeCodeError, match=r"found Cannot evaluate .*'lag\.u'\. Keep"):
        fx.simulate(fx.FirstOrderLag("lag", 1.0), 1.0, compiled="native")
