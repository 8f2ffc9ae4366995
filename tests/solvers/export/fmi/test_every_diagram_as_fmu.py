"""Every diagram of the examples, and random loops, as units in FMPy against `simulate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flexure as fx
from docs import gallery
from flexure.solvers.tracing.signals import resolve
from tests.support.native.exported_fmus import ALLOWED, exact_run, run, saved, worst_error
from tests.support.systems.random_loops import draw_loop

pytestmark = pytest.mark.full

EXAMPLES = {script.stem: script for script in gallery.EXAMPLES}
#: Examples with time constants below 1 us, of which runs at the tolerances of others step at the
#: level of rounding, and what is pushed in them.
STIFF = {
    "bistable_switch": "slide.rate",
    "constant_force": "slide.rate",
    "cross_pivot_pendulum": "",
}
#: Ends in s of examples in which CVode gives up at longer intervals between outputs, or at impacts.
ENDS = {
    "cross_pivot_pendulum": 0.05,
    "amplifier_stage": 0.005,
    "gripper": 0.02,
    "silicon_comb": 1e-4,
    "spinning_blade": 1e-3,
}
SLOW = {"contact_aided_hinge"}  # 16 contacts along a stiff leaf, for which CVode takes minutes
RTOL = 1e-8
#: Loops of one test, and how many tests there are.
EACH, TESTS = 5, 20


@pytest.fixture(autouse=True)
def clang(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile by clang where it is installed, which takes a third of the time for long sources."""
    monkeypatch.setenv("CC", "clang")


def check(
    folder: Path,
    system: fx.System,
    context: fx.Context,
    paths: list[str],
    end: float,
    rtol: float = RTOL,
    share: float = 2.0,
    part: float = 0.1,
) -> None:
    """Compare both kinds with a run of small tolerances.

    Their errors may be larger than so many relative tolerances by a share of what `simulate` errs
    itself at that tolerance. Errors of CVode, which integrates Model Exchange in FMPy, add up to
    many of its tolerances, so it gets a part of them.
    """

    exact = exact_run(system, context, end, 1e-3 * rtol)

    def error(table: Any) -> float:
        return worst_error(table, exact, paths) / rtol

    own = fx.simulate(system, end, context=context, rtol=rtol, atol=1e-3 * rtol)
    times = np.linspace(0.0, end, 997)
    more = share * error({"time": times} | {each: own.sample(each, times) for each in paths})
    path = saved(folder, system, context, signals=paths)
    for kind, given in (("me", part * rtol), ("cs", rtol)):
        table = run(path, kind, end, given, output_interval=end / 997.0)  # CVode gives up otherwise
        found = error(table)
        assert found < ALLOWED[kind] + more, (kind, found, more)


def states_of(context: fx.Context) -> list[str]:
    """Return the paths of some numbers of the state, from the first to the last."""
    states = [row["path"] for row in context.describe() if row["kind"] == "state"]
    readers = [(path, resolve(context.system, path)) for path in states]
    found = [
        path if reader.size == 1 else f"{path}[{label}]"
        for path, reader in readers
        for label in reader.labels
    ]
    assert found
    return found[:: 1 + len(found) // 6]


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name not in SLOW])
def test_examples_run_as_units(name: str, tmp_path: Path) -> None:
    module = gallery.module_of(EXAMPLES[name])
    if not hasattr(module, "build"):
        pytest.skip("it has no function build()")
    made: Any = module.build()
    system, context = made if isinstance(made, tuple) else (made, made.create_default_context())
    if STIFF.get(name):
        context.set(STIFF[name], 0.1)
    end, rtol, part = (0.2, 1e-6, 0.03) if name in STIFF else (0.5, RTOL, 0.1)
    check(tmp_path, system, context, states_of(context), ENDS.get(name, end), rtol, part=part)


@pytest.mark.parametrize("first", range(0, EACH * TESTS, EACH))
def test_random_loops_run_as_units(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + EACH):
        loop = draw_loop(np.random.default_rng(seed))
        folder = tmp_path / str(seed)
        folder.mkdir()
        context = loop.diagram.create_default_context()
        # without an event, rates jump at the levels of quantizers, here as in `simulate`
        share = 10.0 if "quantizer" in loop.kinds else 2.0
        check(folder, loop.diagram, context, [loop.output], 0.9, share=share)
