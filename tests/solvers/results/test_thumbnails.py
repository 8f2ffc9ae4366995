"""Small drawings of signals: every point where it belongs, whatever the numbers."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import flexure as fx
from flexure.solvers.results.records.result_tables import thumbnail
from tests.support.systems.simulation import Flow

TIME = np.linspace(0.0, 2.0, 41)


def lines_of(text: str) -> list[np.ndarray[tuple[int, int], np.dtype[np.float64]]]:
    tree = ET.fromstring(text)
    pairs = [each.get("points", "").split() for each in tree.iter("polyline")]
    return [np.array([list(map(float, pair.split(","))) for pair in each]) for each in pairs]


def test_a_line_goes_from_side_to_side_and_from_the_least_to_the_greatest_value() -> None:
    values = np.sin(TIME * np.pi)
    text = thumbnail("plant.y", "rad", TIME, values)
    [line] = lines_of(text)
    x, y = line.T
    np.testing.assert_allclose((x - x[0]) / (x[-1] - x[0]), TIME / 2.0, atol=1e-3)
    np.testing.assert_allclose((y.max() - y) / np.ptp(y), (values + 1.0) / 2.0, atol=2e-3)
    assert "-1 to 1 rad" in text
    assert "2 s" in text


@pytest.mark.parametrize(
    "values",
    [
        *(np.zeros(41), np.full(41, 1e308), 1.7e308 * (TIME - 1.0)),
        *(np.full(41, 5e-324), np.where(TIME < 1.0, 0.0, 5e-324), np.full(41, np.nan)),
        np.where(TIME < 1.0, np.inf, TIME),
        np.where((TIME > 0.5) & (TIME < 1.0), np.nan, TIME),
        *(np.zeros((41, 0)), np.random.default_rng(0).normal(size=(41, 9))),
    ],
)
def test_whatever_the_numbers_are_the_drawing_is_inside_of_its_frame(
    values: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
) -> None:
    with np.errstate(all="ignore"):
        text = thumbnail("<y>", "&", TIME, values, levels=[np.nan])
    frame = ET.fromstring(text).find("svg")
    assert frame is not None
    width, height = float(frame.get("width", 0)), float(frame.get("height", 0))
    assert not re.search(r'"[^"]*(nan|inf)[^"]*"', text)
    for line in lines_of(text):
        assert np.all((line >= 0.0) & (line <= [width, height]))
    if values.ndim == 2 and values.shape[1] > 6:
        assert "3 more components" in text


def test_a_target_is_a_broken_line_at_its_height() -> None:
    tree = ET.fromstring(thumbnail("y", "", TIME, TIME, levels=[1.0]))
    low, high, broken = (float(each.get("y1", 0)) for each in tree.iter("line"))
    assert broken == pytest.approx((low + high) / 2.0, abs=0.1)


def test_a_result_draws_its_foremost_signals_and_says_how_it_ended() -> None:
    class Falling(fx.LeafSystem):
        def __init__(self) -> None:
            super().__init__("ball")
            self.x = self.declare_continuous_state(z=1, default=[1.0])
            self.height = self.declare_vector_output("height", 1, self.x, unit="m")

        def calc_time_derivatives(self, context: object) -> list[float]:
            return [-1.0]

    result = fx.simulate(Falling(), 0.5)
    text = result._repr_html_() or ""
    assert "<code>height</code>" in text
    assert "0.5 to 1 m" in text
    assert "completed, t = 0 to 0.5 s" in text
    assert fx.simulate(Falling(), 0.0)._repr_html_() is not None


def test_a_run_that_failed_says_why_and_draws_what_there_is() -> None:
    flow = Flow(lambda t, x: [np.where(t > 0.5, np.nan, 1.0)], [0.0])
    with pytest.raises(fx.errors.NonFiniteError) as caught:
        fx.simulate(flow, 2.0)
    text = caught.value.result._repr_html_()  # type: ignore[attr-defined]
    assert "failed, t = 0 to 0.5 s" in text
    assert "Cannot integrate" in text
    assert "<polyline" in text
