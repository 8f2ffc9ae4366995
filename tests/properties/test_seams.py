"""What two good parts make of each other: random loops of the library, asked the same in many ways.

Each question has two routes to one answer: a reading beside another, a slope beside differences, a
verdict beside a long simulation, a page beside Python, a fit beside the truth, a sweep beside a
run. Routes agree, or one of them refuses by an error or a warning of its own.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import FlexureError
from tests.support.native.javascript import options_of
from tests.support.native.javascript_runs import simulate_all
from tests.support.native.native import needs_llvmlite
from tests.support.systems.random_loops import Loop, draw_loop
from tests.support.tiers import by_tier

pytestmark = pytest.mark.timeout(900)

SEEDS = range(by_tier(fast=30, full=500))
END = 0.8
RUN: dict[str, Any] = {"rtol": 1e-8, "atol": 1e-10}
ROUGH: dict[str, Any] = {"rtol": 1e-7, "atol": 1e-9}
GRID = np.linspace(0.0, END, 33)
#: Plants that look for events in every step, which takes long where nothing is native. EARLY is
#: enough then, when most have struck, or slipped and stuck.
SWITCHED, EARLY = {"bearing", "rigid contact", "stop"}, 0.5


@cache
def loop(seed: int) -> Loop:
    return draw_loop(np.random.default_rng(seed), more=seed >= 30 and seed % 2 == 1)


@cache
def run(seed: int) -> fx.results.SimulationResult:
    return fx.simulate(loop(seed).diagram, END, **RUN)


def misfits(question: Callable[[int, Loop], str], seeds: Any = SEEDS) -> list[str]:
    """Ask all loops, and return the answers that are none; refusals are answers."""
    found = []
    for seed in seeds:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                answer = question(seed, loop(seed))
            except (FlexureError, UserWarning):
                continue
        if answer:
            found.append(f"{seed} {loop(seed).kinds}: {answer}")
    return found


def apart(one: Any, other: Any, tolerance: float) -> str:
    """Say by how much two records differ, if they do."""
    off = float(np.max(np.abs(np.asarray(one) - np.asarray(other))))
    size = max(float(np.max(np.abs(other))), 1e-3)
    return "" if off <= tolerance * size else f"{off:.3g} apart, of {size:.3g}"


def test_most_loops_are_answered() -> None:
    """A battery whose loops were all refused would show nothing."""
    refused = []
    for seed in SEEDS:
        try:
            run(seed)
        except FlexureError as error:
            refused.append(f"{loop(seed).kinds}: {error}")
    assert len(refused) <= len(SEEDS) / 20, refused


@needs_llvmlite
def test_readings_agree() -> None:
    def question(seed: int, asked: Loop) -> str:
        if "flexible body" in asked.kinds:  # takes minutes by Python
            return ""
        quantized, switched = "quantizer" in asked.kinds, SWITCHED & {*asked.kinds}
        busy = quantized and switched and len(run(seed).time) > 1000  # half a minute, interpreted
        slow = seed % 50 == 49 and "stop" not in asked.kinds and not busy
        reading: Any = False if slow else "python"
        fine = RUN if quantized else ROUGH
        end = 0.3 if slow else EARLY if switched else END
        other = fx.simulate(asked.diagram, end, compiled=reading, **fine)
        grid = GRID[end >= GRID]
        mine = run(seed).sample(asked.output, grid)
        return apart(other.sample(asked.output, grid), mine, 2e-4)

    assert misfits(question, SEEDS[:: by_tier(fast=2, full=1)]) == []


def test_pages_run_as_python_does() -> None:
    asked: dict[str, Any] = {}
    for seed in SEEDS[::2]:
        diagram = loop(seed).diagram
        try:
            model = fx.to_javascript(diagram, method="RK45")
        except FlexureError:
            continue
        options = options_of(model, diagram.create_default_context())
        options.pop("time")
        options |= {"tFinal": END, "samples": len(GRID), "signals": [loop(seed).output]} | RUN
        asked[str(seed)] = (model, [options])
    assert len(asked) >= len(SEEDS) / 4
    wrong = []
    for name, (found,) in simulate_all(asked).items():
        seed = int(name)
        path = loop(seed).output
        if "error" in found:
            wrong.append(f"{seed} {loop(seed).kinds}: {found['error']}")
            continue
        mine = fx.simulate(loop(seed).diagram, END, method="RK45", **RUN)
        times = np.asarray(found["time"])
        off = apart(found["signals"][path], np.ravel(mine.sample(path, times)), 2e-4)
        wrong += [f"{seed} {loop(seed).kinds}: {off}"] if off else []
    assert wrong == []


def test_slopes_are_those_of_differences() -> None:
    def question(seed: int, asked: Loop) -> str:
        if asked.period is not None or {"quantizer", "conditional", "bearing"} & set(asked.kinds):
            return ""
        context = run(seed).context_at(0.55)
        model = fx.linearize(asked.diagram, context, [], [])
        x, h = context.continuous_state, 1e-6
        columns = []
        for k in range(len(x)):
            ends = []
            for step in (-h, h):
                moved = context.clone()
                moved.continuous_state = x + step * max(1.0, abs(x[k])) * (np.arange(len(x)) == k)
                ends.append(asked.diagram.eval_time_derivatives(moved))
            columns.append((ends[1] - ends[0]) / (2.0 * h * max(1.0, abs(x[k]))))
        return apart(model.A, np.transpose(columns), 1e-4)

    assert misfits(question) == []


def test_stable_loops_settle_and_others_do_not() -> None:
    def question(seed: int, asked: Loop) -> str:
        context = asked.diagram.create_default_context()
        context.set("target.to", 0.0)
        period = asked.period
        point = fx.equilibrium(asked.diagram, context, period=period).context
        margins = fx.margins(fx.loop_gain(asked.diagram, "control.u", context=point, period=period))
        if "quantizer" in asked.kinds:  # may cycle by one step where its gain of 1 is stable
            named = any("rounds to" in note for note in margins.notes)
            return "" if named else f"no note on the quantizer: {margins.notes}"
        stable = margins.is_stable
        poles = fx.linearize(asked.diagram, point, [], [], period=period).poles
        rates = np.log(np.abs(poles[poles != 0.0])) / period if period else poles.real
        slowest = float(np.max(rates))
        if abs(slowest) < 0.05:
            return ""
        if stable != (slowest < 0.0):
            return (
                f"margins say stable: {stable}, while the slowest pole has a rate of {slowest:.3g}"
            )
        context = point.clone()
        context.set("target.to", 1e-4)
        length = min(8.0 / abs(slowest), 60.0)
        result = fx.simulate(asked.diagram, length, context=context, rtol=1e-9, atol=1e-13)
        values = result.sample(asked.output, np.linspace(0.0, length, 801))[:, None].reshape(
            801, -1
        )
        early, late = np.ptp(values[:400]), np.ptp(values[600:])
        settled = late <= 0.5 * early + 1e-12  # both are rounding behind an element at its limit
        return "" if settled == stable else f"stable: {stable}, ranges {early:.3g} and {late:.3g}"

    assert misfits(question, SEEDS[::2]) == []


def test_sweeps_measure_what_runs_do() -> None:
    def question(seed: int, asked: Loop) -> str:
        highest = fx.metrics.maximum(asked.output)
        table = fx.sweep(
            asked.diagram,
            {"target.to": [run(seed).context.get("target.to")]},
            END,
            metrics={"highest": highest},
            times=np.linspace(0.0, END, 5),
            **RUN,
        )
        return apart(table.metrics["highest"][0], highest(run(seed)), 1e-4)

    assert misfits(question) == []


def test_sensitivities_are_those_of_differences() -> None:
    def question(seed: int, asked: Loop) -> str:
        context = asked.diagram.create_default_context()
        value = context.get(asked.gain)
        end = EARLY if SWITCHED & {*asked.kinds} else END
        answer = fx.parameter_sensitivity(
            asked.diagram, asked.gain, end, outputs=asked.output, **RUN
        )
        ends = []
        for step in (-1e-5, 1e-5):
            context.set(asked.gain, value * (1.0 + step))
            moved = fx.simulate(asked.diagram, end, context=context, rtol=1e-11, atol=1e-13)
            ends.append(moved[asked.output][-1])
        expected = np.ravel(ends[1] - ends[0]) / (2e-5 * value)
        found = np.ravel(answer.output_derivatives[asked.output][asked.gain][-1])
        return apart(found * value, expected * value, 5e-3)

    assert misfits(question) == []


def test_fits_find_the_truth() -> None:
    def question(seed: int, asked: Loop) -> str:
        truth = run(seed).context.get(asked.gain)
        record = {"time": GRID, asked.output: np.ravel(run(seed).sample(asked.output, GRID))}
        context = asked.diagram.create_default_context()
        context.set(asked.gain, 1.05 * truth)
        found = fx.fit(asked.diagram, record, [asked.gain], context=context)
        return apart(found[asked.gain], truth, 1e-3)

    assert misfits(question, SEEDS[::3]) == []
