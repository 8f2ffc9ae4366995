"""Signals of many runs as polynomials: what is divided where they turn, and what need not be."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from flexure.solvers.results.measures import polynomials, reductions
from flexure.solvers.results.measures.curves import Curve, DenseOutput
from flexure.solvers.results.measures.disturbances import disturbance_figures
from flexure.solvers.results.measures.polynomials import NODES
from flexure.solvers.results.measures.step_characteristics import StepFigures

RUNS, PIECES = 40, 30


def swinging() -> Curve:
    """Step responses that swing, half of them with noise that turns within pieces."""
    rng = np.random.default_rng(1)
    time = np.tile(np.linspace(0.0, 10.0, PIECES + 1), (RUNS, 1))
    begin, end = time[:, :-1].ravel(), time[:, 1:].ravel()
    t = begin[:, None] + 0.5 * (end - begin)[:, None] * (np.array(NODES) + 1.0)
    omega, rate = (
        np.repeat(rng.uniform(*each, RUNS), PIECES)[:, None] for each in ((1, 6), (0, 1))
    )
    noise = 1e-3 * rng.normal(size=t.shape) * (np.repeat(np.arange(RUNS), PIECES) % 2)[:, None]
    y = 1.0 - np.exp(-rate * t) * np.cos(omega * t) + noise
    return Curve.of(DenseOutput(begin, end, np.arange(RUNS + 1) * PIECES, y[:, :, None]), y)


REDUCTIONS: dict[str, Any] = {
    name: getattr(reductions, name)
    for name in ("maximum", "minimum", "peak", "total_variation", "iae", "itae", "ise", "integral")
}
for way in ("rising", "falling", "either"):
    REDUCTIONS[way] = partial(reductions.first_crossing, level=0.3, direction=way)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_answers_are_those_of_arcs_that_never_turn(name: str) -> None:
    curve = swinging()
    ends = np.full(RUNS, 1.234), np.full(RUNS, 7.7)
    for each in (curve, curve.between(*ends), curve.moved(np.full(RUNS, -1.0))):
        found = REDUCTIONS[name](each)
        np.testing.assert_allclose(found, REDUCTIONS[name](each.everywhere()), rtol=1e-12)
        assert np.isfinite(found).any()


def test_figures_are_those_of_arcs_that_never_turn() -> None:
    curve, unknown = swinging(), np.full(RUNS, np.nan)
    for at in (0.0, 1.3):
        both = (curve, curve.everywhere())
        step = [StepFigures(y, at, unknown, 1.0, 1.0, 0.05).all() for y in both]
        push = [disturbance_figures(y, at, 1.0, np.nan, 0.05) for y in both]
        for found, expected in (step, push):
            for name, column in found.items():
                np.testing.assert_allclose(column, expected[name], rtol=1e-12, err_msg=name)
                assert name.startswith("control") or np.isfinite(column).any(), name


def test_only_arcs_that_may_hold_an_answer_are_divided() -> None:
    curve, target = swinging(), np.ones(RUNS)
    assert len(curve.piece) == RUNS * PIECES
    assert len(curve.everywhere().piece) > 1.5 * RUNS * PIECES
    for few in (curve.at_extremes(), curve.last_outside(target - 0.05, target + 0.05)):
        assert len(few.piece) < RUNS * PIECES / 2


def test_zeros_at_the_ends_of_pieces_are_found_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of the slope where a motion begins at rest."""
    monkeypatch.setattr(polynomials, "_TRIES", 12)
    c, end = np.array([[0.9, 0.8, -0.1]]), np.ones(1)  # (z + 1) - 0.1 (z + 1)²
    for sign in (1.0, -1.0):
        mirrored = c * np.array([1.0, sign, 1.0])
        np.testing.assert_allclose(polynomials.zero_between(mirrored, -end, end), -sign, rtol=1e-12)
