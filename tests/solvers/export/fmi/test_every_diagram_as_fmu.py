"""Every diagram of the examples, and random loops, as units in FMPy against `simulate`."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flexure as fx
from tests.support.fmus import ALLOWED, run, saved, worst_error
from tests.support.systems.random_loops import draw_loop

pytestmark = pytest.mark.full

EXAMPLES = sorted(path.stem for path in (Path(__file__).parents[4] / "examples").glob("*.py"))
RTOL = 1e-8
#: Loops of one test, and how many tests there are.
EACH, TESTS = 5, 20


def compare(folder: Path, system: fx.System, context: fx.Context, paths: list[str], end: float) -> dict[str, float]:
    """Return the errors of both kinds in relative tolerances."""
    path = saved(folder, system, context, signals=paths)
    return {
        kind: worst_error(run(path, kind, end, RTOL), system, context, paths, end) / RTOL
        for kind in ALLOWED
    }


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run_as_units(name: str, tmp_path: Path) -> None:
    module = importlib.import_module(f"examples.{name}")
    if not hasattr(module, "build"):
        pytest.skip("it has no function build()")
    made: Any = module.build()
    system, context = made if isinstance(made, tuple) else (made, made.create_default_context())
    states = [row.path for row in system.signals() if row.kind == "state"]
    errors = compare(tmp_path, system, context, states[:4], 0.5)
    assert all(errors[kind] < allowed for kind, allowed in ALLOWED.items()), errors


@pytest.mark.parametrize("first", range(0, EACH * TESTS, EACH))
def test_random_loops_run_as_units(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + EACH):
        loop = draw_loop(np.random.default_rng(seed))
        folder = tmp_path / str(seed)
        folder.mkdir()
        context = loop.diagram.create_default_context()
        errors = compare(folder, loop.diagram, context, [loop.output], 0.9)
        assert all(errors[kind] < allowed for kind, allowed in ALLOWED.items()), (seed, loop.kinds, errors)
