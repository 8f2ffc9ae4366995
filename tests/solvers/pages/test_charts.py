"""Charts of pages: they draw what they are given, and hands zoom, look and hide in them."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import flexure as fx
from tests.support.pages.browser import run_javascript
from tests.support.pages.pages import OpenPage, opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ASSETS = files("flexure.solvers.pages").joinpath("assets")


def computed(expression: str, *assets: str) -> Any:
    """Return the value of an expression of JavaScript over functions of assets."""
    names = ("page/elements.js", "charts/scales.js", "page/app.js", "charts/axes.js", *assets)
    texts = [ASSETS.joinpath(name).read_text(encoding="utf-8") for name in names]
    return run_javascript("\n".join([*texts, f"console.log(JSON.stringify({expression}));"]))


def corners(text: str, held: bool) -> list[np.ndarray[Any, Any]]:
    """Return the corners of the strokes of a path."""
    strokes: list[list[list[float]]] = []
    for letter, numbers in re.findall(r"([MLHVh])([-\d. e]+)", text):
        values = [float(each) for each in numbers.split()]
        if letter == "M":
            strokes.append([values])
            continue
        u, v = strokes[-1][-1]
        new = {"L": values, "H": [values[0], v], "V": [u, values[0]], "h": [u + values[0], v]}
        strokes[-1].append(new[letter])
    return [np.array(each) for each in strokes]


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("count", [300, 40_000])
def test_paths_stay_on_their_points_with_jumps_and_gaps(held: bool, count: int) -> None:
    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(0.0, 10.0, count))
    y = np.sin(3.0 * x) + np.where(x > 4.0, 2.0, 0.0)
    x[count // 2] = x[count // 2 - 1]  # a jump at one place
    y[count // 2] += 1.5
    y[count // 5] = np.nan
    if held:
        y = np.round(y)
    line = {"x": x.tolist(), "y": [None if np.isnan(each) else each for each in y], "held": held}
    text = computed(
        f"""(() => {{
          const line = {json.dumps(line)};
          line.y = line.y.map((each) => each ?? NaN);
          const across = axisScale([0, 10], [0, 500]), down = axisScale([-2, 5], [150, 0]);
          return lineText(line, across, down, 500).text;
        }})()"""
    )
    strokes = corners(text, held)
    assert len(strokes) == 2
    assert sum(map(len, strokes)) < 1500  # of many points, few are drawn
    u, v = 50.0 * x, 150.0 * (1.0 - (y + 2.0) / 7.0)
    for at, height in zip(u[::7], v[::7], strict=True):
        if np.isnan(height):
            continue
        gaps = []
        for stroke in strokes:
            begin, end = stroke[:-1], stroke[1:]
            along = end - begin
            size = np.maximum(np.sum(along**2, axis=1), 1e-12)
            point = np.array([at, height])
            share = np.clip(np.sum((point - begin) * along, axis=1) / size, 0.0, 1.0)
            gaps.append(np.min(np.linalg.norm(begin + share[:, None] * along - point, axis=1)))
        assert min(gaps) < (0.5 if count < 1000 else 1.5)  # pixels
    top, bottom = v[np.nanargmax(y)], v[np.nanargmin(y)]
    heights = np.concatenate([stroke[:, 1] for stroke in strokes])
    assert abs(np.min(heights) - top) < 0.3
    assert abs(np.max(heights) - bottom) < 0.3


def test_ticks_are_round_numbers_inside_of_the_range_that_can_be_told_apart() -> None:
    ranges = [(0.0, 1.0), (-3e-7, 2e-7), (1.0, 1.0001), (-1e6, 4e6), (17.0, 19.5), (2.0, 9.0)]
    found = computed(
        f"{json.dumps(ranges)}.flatMap((range) => [false, range[0] > 0].map((logarithmic) =>"
        "[range, ticksOf(axisScale(range, [0, 100], logarithmic), 5)]))"
    )
    wide = computed("ticksOf(axisScale([2e-9, 3e4], [0, 100], true), 5)")
    for (first, last), ticks in [*found, ((2e-9, 3e4), wide)]:
        values, texts = ([tick[key] for tick in ticks] for key in ("value", "text"))
        assert 2 <= len(values) <= 11
        assert all(first - 1e-9 * abs(first) <= each <= last * (1 + 1e-9) for each in values)
        assert len(set(texts)) == len(texts)
        told = [float(text.replace("−", "-")) for text in texts]
        np.testing.assert_allclose(told, values, rtol=1e-9, atol=1e-12 * (last - first))
    np.testing.assert_allclose(np.diff(np.log10([tick["value"] for tick in wide])) % 1.0, 0.0)


def test_figures_between_cursors_and_spectra_are_those_of_numpy() -> None:
    t = np.linspace(0.0, 8.0, 4097)
    y = 2.0 + 3.0 * np.sin(2.0 * np.pi * 5.0 * t) + 0.25 * np.cos(2.0 * np.pi * 40.0 * t)
    first, last = 1.0003, 6.3
    for held in (False, True):
        line = json.dumps({"x": t.tolist(), "y": y.tolist(), "held": held})
        found = computed(f"statistics({line}, [{first}, {last}])", "charts/scope.js")
        fine = np.linspace(first, last, 2_000_001)
        at = np.searchsorted(t, fine, side="right") - 1
        values = y[at] if held else np.interp(fine, t, y)
        expected = {
            "a": values[0], "b": values[-1], "least": np.min(values), "greatest": np.max(values),
            "mean": np.mean(values), "rms": np.sqrt(np.mean(values**2)),
        }  # fmt: skip
        for name, value in expected.items():
            assert found[name] == pytest.approx(value, rel=1e-5, abs=1e-5)
    line = "{x: [0, 1, 2], y: [Infinity, 2, 4]}"
    assert computed(f"[heightAt({line}, 0) === Infinity, heightAt({line}, 1.5)]") == [True, 3.0]
    line = json.dumps({"x": t.tolist(), "y": y.tolist()})
    spectrum = computed(f"spectrumOf({line}, [0, 8])", "charts/scope.js")
    x, amplitudes = (np.array(spectrum[key]) for key in ("x", "y"))
    window = 1.0 - np.cos(2.0 * np.pi * np.arange(4096) / 4096)
    others = 2.0 / 4096 * np.abs(np.fft.rfft(window * (y[:-1] - np.mean(y[:-1]))))
    np.testing.assert_allclose(x, np.arange(1, 2048) / 8.0)
    np.testing.assert_allclose(amplitudes, others[1:2048], atol=1e-12)
    peaks = [amplitudes[np.argmin(np.abs(x - frequency))] for frequency in (5.0, 40.0)]
    np.testing.assert_allclose(peaks, [3.0, 0.25], rtol=1e-9)


def decay() -> fx.Diagram:
    """Two lags after a step, so that two panels share their times."""
    builder = fx.DiagramBuilder("decay")
    builder.add_all(
        fx.Step("source", at=0.5, to=2.0),
        fx.FirstOrderLag("first", time_constant=0.25),
        fx.FirstOrderLag("second", time_constant=0.5),
    )
    builder.connect_chain("source", "first", "second")
    return builder.build()


SEEN = """() => [...document.querySelectorAll(".panel .face")].map((face) => ({
  ticks: [...face.querySelectorAll(".down")].map((node) => node.textContent),
  times: [...face.querySelectorAll(".across")].map((node) => Number(node.textContent)),
  words: [...face.querySelectorAll(".words text")].map((node) => node.textContent),
  curves: [...face.querySelectorAll(".curve")].map((node) => node.dataset.name),
  paths: [...face.querySelectorAll(".curve")].map((node) => node.getAttribute("d")),
}))"""


def test_hands_zoom_all_charts_and_read_and_hide_their_curves(
    browser: Browser, tmp_path: Path
) -> None:
    page = fx.page(decay(), 4.0, signals=[["source.y", "first.y"], "second.y"])
    with opened(browser, page, tmp_path) as shown:
        first = shown.page.locator("#charts .face").first
        whole = shown.page.evaluate(SEEN)
        assert [each["curves"] for each in whole] == [["source.y", "first.y"], ["second.y"]]
        assert whole[1]["times"][0] == 0.0
        assert whole[1]["times"][-1] == 4.0

        drag(shown, first, 1.0, 2.0)
        zoomed = shown.page.evaluate(SEEN)
        assert 0.99 < zoomed[1]["times"][0] <= zoomed[1]["times"][-1] < 2.01
        assert zoomed[0]["paths"] != whole[0]["paths"]
        shown.enter("second.gain", "0.5")  # which keeps the part that is seen
        assert shown.page.evaluate(SEEN)[1]["times"] == zoomed[1]["times"]
        first.dblclick()
        assert shown.page.evaluate(SEEN)[1]["times"] == whole[1]["times"]

        table = shown.table()
        x, y = place(first, 1.5, 4.0)
        shown.page.mouse.move(x, y)
        told = [each["words"] for each in shown.page.evaluate(SEEN)]
        for words, names in zip(told, (["source.y", "first.y"], ["second.y"]), strict=True):
            for word, name in zip(words, names, strict=True):
                expected = np.interp(1.5, table["time"], table[name])
                assert float(word.split()[1]) == pytest.approx(expected, abs=0.02)
        clock = shown.page.locator(".clock")
        shown.page.mouse.click(x, y)
        assert float(clock.inner_text()[:-2]) == pytest.approx(1.5, abs=0.02)

        shown.press("first.y")
        assert shown.page.evaluate(SEEN)[0]["curves"] == ["source.y", "source.y"]  # and as it was
        shown.press("first.y")
        shown.press("Logarithmic axis of second.y")
        ticks = [float(each) for each in shown.page.evaluate(SEEN)[1]["ticks"]]
        assert min(ticks) > 0.0
        assert max(ticks) / min(ticks) >= 10.0

        charts = shown.page.get_by_role("group", name=re.compile("^Charts"))
        charts.focus()
        charts.press("ArrowRight")
        assert float(clock.inner_text()[:-2]) == pytest.approx(1.54, abs=0.02)
        charts.press("+")
        seen = shown.page.evaluate(SEEN)[1]["times"]
        assert seen[-1] - seen[0] <= 2.0


def test_two_cursors_measure_what_charts_show(browser: Browser, tmp_path: Path) -> None:
    page = fx.page(decay(), 4.0, signals=["first.y", "second.y"])
    with opened(browser, page, tmp_path) as shown:
        table = shown.table()
        shown.press("Cursors")
        first = shown.page.locator("#charts .face").first
        drag(shown, first, 3.0, 3.5)  # takes B with it
        ends = [shown.page.get_by_label(f"Cursor {name}") for name in "AB"]
        assert float(ends[0].input_value()) == 1.0
        assert float(ends[1].input_value()) == pytest.approx(3.5, abs=0.02)
        ends[1].fill("1.5")
        ends[1].press("Enter")
        rows = shown.page.locator("table.figures tbody tr").all()
        for row, name in zip(rows, ("first.y", "second.y"), strict=True):
            cells = {
                cell.get_attribute("data-figure"): float(cell.get_attribute("data-number") or "nan")
                for cell in row.locator("td").all()
            }
            ends_of = np.interp([1.0, 1.5], table["time"], table[name])
            assert cells["B − A"] == pytest.approx(np.diff(ends_of)[0], rel=1e-9)
            assert cells["slope"] == pytest.approx(2.0 * np.diff(ends_of)[0], rel=1e-9)
            assert ends_of[0] < cells["mean"] < cells["RMS"] < cells["greatest"] == ends_of[1]
        shown.press("Spectrum")
        shown.page.locator(".scope .curve").first.wait_for(state="attached")
        assert shown.page.locator(".scope .curve").count() == 1
        shown.enter("first.gain", "2")
        assert shown.page.locator(".scope .curve").count() == 2  # and that of the first run


def test_fingers_look_and_zoom_on_a_phone(browser: Browser, tmp_path: Path) -> None:
    page = fx.page(decay(), 4.0, signals=["first.y", "second.y"])
    with opened(browser, page, tmp_path, width=390, height=844) as shown:
        touch = shown.page.context.new_cdp_session(shown.page)
        touch.send("Emulation.setTouchEmulationEnabled", {"enabled": True})
        first = shown.page.locator("#charts .face").first
        clock = shown.page.locator(".clock")

        def fingers(kind: str, *times: float) -> None:
            points = [dict(zip("xy", place(first, time, 4.0), strict=True)) for time in times]
            points = [{**point, "id": k} for k, point in enumerate(points)]
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
            shown.page.evaluate("() => new Promise(requestAnimationFrame)")  # moves wait for frames

        fingers("touchStart", 1.0)
        fingers("touchEnd")
        assert float(clock.inner_text()[:-2]) == pytest.approx(1.0, abs=0.03)
        fingers("touchStart", 1.0)
        fingers("touchMove", 2.0)
        fingers("touchMove", 3.0)
        assert float(clock.inner_text()[:-2]) == pytest.approx(3.0, abs=0.03)
        fingers("touchEnd")
        fingers("touchStart", 1.5, 2.5)
        fingers("touchMove", 1.0, 3.0)
        fingers("touchEnd")
        seen = shown.page.evaluate(SEEN)[1]["times"]
        assert 0.99 < seen[0] <= seen[-1] < 3.01  # twice as wide apart: half of the times
        assert seen[-1] - seen[0] >= 1.5
        shown.press("All times")
        assert shown.page.evaluate(SEEN)[1]["times"][-1] == 4.0


def place(face: Any, time: float, end: float) -> tuple[float, float]:
    """Return where a time is in a chart that shows times up to an end, in pixels of the window."""
    box = face.locator("svg").bounding_box()
    return box["x"] + box["width"] * time / end, box["y"] + 0.5 * box["height"]


def drag(shown: OpenPage, face: Any, begin: float, end: float) -> None:
    """Drag from a time to another in a chart of four seconds."""
    face.scroll_into_view_if_needed()
    shown.page.mouse.move(*place(face, begin, 4.0))
    shown.page.mouse.down()
    shown.page.mouse.move(*place(face, 0.5 * (begin + end), 4.0))
    shown.page.mouse.move(*place(face, end, 4.0))
    shown.page.mouse.up()
