"""Labels in pictures: they cover no curve and no other text, whatever the curve is."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
import pytest
from matplotlib.axes import Axes

import flexure as fx
from flexure.solvers.results.measures.step_responses import StepResponse
from flexure.solvers.results.pictures.free_labels import Label, place_labels
from tests.support.tiers import by_tier

FloatArray = npt.NDArray[np.float64]
RESPONSES = by_tier(fast=40, full=200)
EPS = 0.5  # pixels that boxes and curves may differ from what was measured


def random_response(rng: np.random.Generator) -> StepResponse:
    """A response that is damped or not, fast or slow, up or down, tiny or huge, noisy or smooth."""
    time = np.linspace(0.0, 10.0 ** rng.uniform(-3.0, 3.0), int(rng.choice([200, 600])))
    share = time / time[-1]
    damping, turns = 10.0 ** rng.uniform(-0.3, 1.8), 10.0 ** rng.uniform(-0.5, 1.7)
    values = 1.0 - np.exp(-damping * share) * np.cos(2.0 * np.pi * turns * share)
    if rng.random() < 0.3:
        values = values + 10.0 ** rng.uniform(-3.0, -1.0) * rng.normal(size=time.shape)
    kind = rng.integers(3)
    target = [None, 1.0, 1.0 + rng.normal() * 10.0 ** rng.uniform(-4.0, 0.0)][kind]
    final = float(values[-20:].mean()) if rng.random() < 0.7 else None
    scale = rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(-9.0, 9.0)
    start = scale * rng.choice([0.0, 0.0, 1.0, 30.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        info = fx.step_info(
            time,
            start + scale * values,
            initial=start,
            final=None if final is None else start + scale * final,
            target=None if target is None else start + scale * target,
        )
    return StepResponse(time, start + scale * values, info, 0.0, "y", "m")


def boxes_of(ax: Axes) -> dict[str, FloatArray]:
    """Return the corners of all texts in and beside axes, in pixels."""
    legend = ax.get_legend()
    texts: list[Any] = [*ax.texts, *([] if legend is None else legend.get_texts())]
    found = {}
    for text in texts:
        if text.get_text():
            box = text.get_window_extent()
            found[text.get_text()] = np.array([[box.x0, box.y0], [box.x1, box.y1]])
    return found


def passes(box: FloatArray, line: FloatArray) -> bool:
    """Return whether a line through some points passes a box (by clipping each of its pieces)."""
    start, way = line[:-1], np.diff(line, axis=0)
    first, last = np.zeros(len(way)), np.ones(len(way))
    for k in range(2):
        with np.errstate(divide="ignore", invalid="ignore"):
            a, b = ((side - start[:, k]) / way[:, k] for side in box[:, k])
        still = way[:, k] == 0.0
        outside = still & ((start[:, k] <= box[0, k]) | (start[:, k] >= box[1, k]))
        first = np.maximum(first, np.where(still, np.where(outside, 2.0, 0.0), np.minimum(a, b)))
        last = np.minimum(last, np.where(still, 1.0, np.maximum(a, b)))
    return bool(np.any(first < last))


def faults(ax: Axes, curve: Any) -> list[str]:
    """Return what is wrong with the texts of a picture."""
    figure: Any = ax.figure
    figure.draw_without_rendering()
    found, boxes = [], boxes_of(ax)
    frame, whole = ax.get_window_extent(), figure.bbox
    line = ax.transData.transform(curve.get_xydata())
    inside = {text.get_text() for text in ax.texts}
    for name, box in boxes.items():
        room = frame if name in inside else whole
        if np.any(box[0] < [room.x0 - EPS, room.y0 - EPS]) or np.any(
            box[1] > [room.x1 + EPS, room.y1 + EPS]
        ):
            found.append(f"{name!r} is outside")
        if name in inside and passes(box + np.array([[EPS], [-EPS]]), line):
            found.append(f"{name!r} covers the curve")
    for (name, one), (other, two) in itertools.combinations(boxes.items(), 2):
        if np.all(one[0] + EPS < two[1]) and np.all(two[0] + EPS < one[1]):
            found.append(f"{name!r} covers {other!r}")
    return found


@pytest.mark.full
def test_no_text_covers_a_random_response_or_another_text() -> None:
    """All in the same axes, without ticks, which take most of the time."""
    rng = np.random.default_rng(14)
    figure = plt.figure(figsize=(6.4, 4.0), dpi=50)
    ax = figure.add_axes((0.1, 0.12, 0.6, 0.78))
    ax.xaxis.set_visible(False)
    ax.yaxis.set_visible(False)
    told = 0
    for number in range(RESPONSES):
        response = random_response(rng)
        response.plot(ax)
        curve = next(line for line in ax.lines if len(np.ravel(line.get_xdata())) > 100)
        assert faults(ax, curve) == [], number
        told += len(boxes_of(ax))
        legend = ax.get_legend()
        for artist in (*ax.lines, *ax.texts, *ax.patches, *([] if legend is None else [legend])):
            artist.remove()
        ax.relim()
    assert told > 3 * RESPONSES  # texts for each


def hatched() -> tuple[Axes, Any]:
    """A curve that leaves no room for texts."""
    ax = plt.figure(figsize=(6.4, 4.0), dpi=50, layout="constrained").subplots()
    x = np.linspace(0.0, 1.0, 400)
    (curve,) = ax.plot(x, np.where(np.arange(400) % 2, 1.0, 0.0))
    ax.margins(0.0)
    return ax, curve


def test_texts_without_a_place_go_to_a_legend_beside_the_axes() -> None:
    ax, curve = hatched()
    row = Label("the level", (0.5, 0.5), "red", along=[(0.1, 0.5)])
    assert (
        place_labels(ax, [Label("a point", (0.2, 0.7), "blue"), row], [curve], outside=True) == []
    )
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["a point", "the level"]
    assert faults(ax, curve) == []
    assert legend.get_window_extent().x0 > ax.get_window_extent().x1


def test_texts_that_must_be_inside_cover_as_little_as_possible() -> None:
    ax, curve = hatched()
    (text,) = place_labels(ax, [Label("a point", (0.2, 0.7), "blue")], [curve])
    assert faults(ax, curve) == ["'a point' covers the curve"]
    assert text.xy == (0.2, 0.7)


def test_a_text_is_near_its_point_and_on_the_free_side() -> None:
    ax = plt.figure(dpi=72).subplots()
    (curve,) = ax.plot([0.0, 1.0], [0.0, 1.0])
    (text,) = place_labels(ax, [Label("middle", (0.5, 0.5), "blue")], [curve])
    box, point = boxes_of(ax)["middle"], ax.transData.transform((0.5, 0.5))
    assert np.hypot(*(np.clip(point, *box) - point)) < 15.0
    assert not passes(box, ax.transData.transform(curve.get_xydata()))
    assert text.get_text() == "middle"


def test_texts_about_points_outside_of_the_axes_are_left_out() -> None:
    ax = plt.figure().subplots()
    assert place_labels(ax, [Label("far", (7.0, 0.5), "blue")], []) == []
