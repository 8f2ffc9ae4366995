"""Figures of step responses in pages are those of `step_info`, and of the steps of the runs."""

from __future__ import annotations

import json
import warnings
from dataclasses import asdict
from importlib.resources import files

import numpy as np

import flexure as fx
from tests.support.browser import run_javascript

RESPONSES = 300
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


def test_figures_of_many_responses_are_those_of_step_info() -> None:
    cases = responses()
    text = files("flexure.solvers.pages").joinpath("assets", "figures.js").read_text()
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
