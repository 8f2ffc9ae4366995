"""Figures of step responses in pages are those of `step_info`, and of the steps of the runs."""

from __future__ import annotations

import json
import warnings
from dataclasses import asdict
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

import flexure as fx
from tests.support.native.javascript_runs import ask_models
from tests.support.pages.browser import run_javascript
from tests.support.tiers import by_tier

RESPONSES = 300
LOOPS = by_tier(fast=3, full=40)
LEFT_OUT = {"control_variation", "control_peak"}


def responses() -> list[dict[str, object]]:
    """Draw responses of all sorts: settled or not, with jumps, with and without target."""
    rng = np.random.default_rng(7)
    found: list[dict[str, object]] = []
    for _ in range(RESPONSES):
        end = rng.uniform(1.0, 20.0)
        at = rng.choice([0.0, rng.uniform(0.0, 0.4 * end)])
        t = np.sort(np.concatenate([[0.0, at, at, end], rng.uniform(0.0, end, 200)]))
        s = np.where(t > at, t - at, 0.0)
        pole = complex(rng.uniform(-2.0, 0.1), rng.uniform(0.0, 6.0))
        size = rng.choice([-1.0, 1.0]) * rng.uniform(0.1, 5.0)
        y = rng.normal() + size * (1.0 - np.real(np.exp(pole * s)))
        y[np.flatnonzero(t == at)[-1] :] += rng.choice([0.0, 0.3 * size])
        options: dict[str, float] = {"at": at, "band": float(rng.choice([0.02, 0.05]))}
        for name in ("target", "initial", "final"):
            if rng.random() < 0.3:
                options[name] = float(y[0] + size * rng.uniform(0.7, 1.3))
        found.append({"t": t.tolist(), "y": y.tolist(), "options": options})
    return found


@pytest.mark.full
def test_figures_of_many_responses_are_those_of_step_info() -> None:
    cases = responses()
    text = files("flexure.solvers.pages").joinpath("assets", "charts", "figures.js").read_text()
    run = f"""{text}
    const cases = {json.dumps(cases)};
    const nodes = [-1, -Math.SQRT1_2, 0, Math.SQRT1_2, 1];
    const straight = (a, b) => nodes.map((z) => (z === 1 ? b : a + 0.5 * (z + 1) * (b - a)));
    const figures = cases.map(({{t, y, options}}) => {{
      const steps = [...t.keys()].slice(1);
      return stepInfo({{
        begin: steps.map((k) => t[k - 1]),
        end: steps.map((k) => t[k]),
        values: Float64Array.from(steps.flatMap((k) => straight(y[k - 1], y[k]))),
      }}, options);
    }});
    console.log(JSON.stringify(figures, (_, value) => (Number.isNaN(value) ? "nan" : value)));
    """
    found = run_javascript(run)
    lacking = 0
    for case, figures in zip(cases, found, strict=True):
        with warnings.catch_warnings(action="ignore"):
            info = fx.step_info(case["t"], case["y"], **case["options"])  # type: ignore[arg-type]
        for name, expected in asdict(info).items():
            if name in LEFT_OUT:
                continue
            lacking += np.isnan(expected)
            np.testing.assert_allclose(
                float(figures[name]), expected, rtol=1e-9, atol=1e-12, err_msg=name
            )
    assert lacking > RESPONSES  # of figures that a record does not contain


def random_loop(rng: np.random.Generator) -> tuple[fx.Diagram, float, float]:
    """Draw a loop with limits and a second-order plant, the instant of its step, and its end."""
    end = 10.0 ** rng.uniform(-1.0, 3.0)
    at = float(rng.choice([0.0, rng.uniform(0.0, 0.2) * min(end, 5.0)]))
    damping, stiffness = rng.uniform(0.1, 3.0), rng.uniform(0.3, 5.0)
    gains: dict[str, Any] = {
        "kp": rng.uniform(0.5, 8.0),
        "ki": rng.uniform(0.1, 2.0),
        "kd": rng.uniform(0.5, 4.0),
    }
    gains |= {"derivative_filter": 0.05, "lower": -30.0, "upper": rng.uniform(2.0, 30.0)}
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.Step("target", at=at, to=rng.uniform(0.5, 2.0)),
        fx.PIDController("pid", **gains)
        if rng.random() < 0.6 or end > 20.0  # many samples take long
        else fx.PIDController("pid", period=0.02, **gains),
        fx.FirstOrderLag("amplifier", time_constant=rng.uniform(0.01, 0.1)),
        fx.TransferFunction("plant", [stiffness], [1.0, damping, stiffness]),
    )
    builder.connect("target.y", "pid.setpoint")
    builder.connect_chain("pid", "amplifier", "plant", "pid.measurement")
    return builder.build(), at, end


@pytest.mark.full
def test_figures_of_random_loops_are_those_of_python_for_short_and_long_runs() -> None:
    rng = np.random.default_rng(11)
    figures = files("flexure.solvers.pages").joinpath("assets", "charts", "figures.js").read_text()
    ask = """(() => {
      const { outcome, dense } = model.simulate({ ...options.run, samples: 2, dense: ["plant.y"] });
      const pieces = { ...dense, values: dense.signals["plant.y"] };
      return { outcome, ...stepInfo(pieces, options.step) };
    })()"""
    for number in range(LOOPS):
        system, at, end = random_loop(rng)
        target = float(system.create_default_context().get("target.to"))
        run = {"tFinal": end, "rtol": 1e-10, "budget": 1_000_000}  # last bits may part the steps
        options = {"run": run, "step": {"at": at, "target": target}}
        (found,) = ask_models({"": (fx.to_javascript(system), [options])}, ask, figures)[""]
        with warnings.catch_warnings(action="ignore"):
            info = asdict(fx.simulate(system, end, rtol=1e-10).step_info("plant.y"))
        assert found["outcome"] == "completed"
        creeps = info["overshoot"] < 1e-6  # and is farthest where rounding says
        for name in info.keys() - LEFT_OUT - ({"peak_time"} if creeps else set()):
            np.testing.assert_allclose(
                found[name], info[name], rtol=1e-9, atol=1e-9, err_msg=f"{name} of loop {number}"
            )
