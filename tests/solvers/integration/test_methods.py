"""Methods by name, and what they understand."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from scipy.integrate import LSODA, RK45, OdeSolver

from flexure.diagrams.checks.errors import UnknownNameError, ValueRefusedError
from flexure.solvers.integration.methods.fixed_step import RungeKutta4
from flexure.solvers.integration.methods.methods import (
    METHOD_NAMES,
    is_fixed_step,
    is_implicit,
    method_name,
    option_names,
    resolve,
)
from tests.support.tiers import for_each


@pytest.mark.parametrize("name", METHOD_NAMES)
def test_every_name_leads_to_a_solver_class_whatever_its_case(name: str) -> None:
    solver = resolve(name)
    assert issubclass(solver, OdeSolver)
    assert resolve(name.upper()) is resolve(name.lower()) is solver
    assert method_name(name.upper()) == name


def test_a_solver_class_stands_for_itself() -> None:
    assert resolve(LSODA) is LSODA
    assert method_name(RungeKutta4) == "RungeKutta4"
    assert resolve("rk4") is RungeKutta4


@pytest.mark.parametrize("name", METHOD_NAMES)
def test_the_kind_of_a_method_is_that_of_its_class(name: str) -> None:
    assert is_fixed_step(name) == is_fixed_step(resolve(name))
    assert is_implicit(name) == is_implicit(resolve(name))


def test_options_include_those_of_base_classes() -> None:
    class Derived(RK45):
        def __init__(self, *arguments: Any, bound: float = 1.0, **options: Any) -> None:
            super().__init__(*arguments, **options)

    assert option_names(Derived) == {"rtol", "atol", "max_step", "first_step", "bound"}
    assert option_names("semi_explicit_euler") == {"step", "stretch", "positions"}


def test_an_unknown_name_is_refused_with_a_guess() -> None:
    with pytest.raises(UnknownNameError, match=r"'radua'.*Did you mean 'Radau'\?"):
        resolve("radua")


@for_each("method", [int, 4, None, {"RK45"}])
def test_what_is_no_solver_class_is_refused(method: Any) -> None:
    with pytest.raises(ValueRefusedError, match=r"a subclass of scipy\.integrate\.OdeSolver"):
        resolve(method)


@pytest.mark.parametrize(
    "module",
    [
        "integration.methods.methods",
        "integration.guard.progress_limits",
        "integration.guard.stiffness_detection",
        "tracing.differences",
    ],
)
def test_importing_does_not_import_scipy(module: str) -> None:
    code = f"import flexure.solvers.{module}, sys; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
