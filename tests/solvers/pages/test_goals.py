"""Goals of pages, tied values, and the check of a page against numbers of Python."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import flexure as fx
from examples.compliant_door import build as door
from tests.solvers.pages.test_charts import computed
from tests.solvers.pages.test_runs_in_pages import loop
from tests.support.pages.pages import opened
from tests.support.tiers import for_each

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def test_goals_are_judged_by_the_run_and_strips_by_runs_along_each_slider(
    browser: Browser, tmp_path: Path
) -> None:
    goals = ["overshoot < 13", "greatest of arm.y < 1.25"]
    page = fx.page(loop(), 8.0, parameters=["pid.kp", "pid.kd"], goals=goals)
    with opened(browser, page, tmp_path) as shown:
        tiles = shown.page.locator(".goal")
        numbers = [float(tile.get_attribute("data-number") or "nan") for tile in tiles.all()]
        expected = [shown.figures()["overshoot"], np.max(shown.table()["arm.y"])]
        np.testing.assert_allclose(numbers, expected)
        strip = shown.row("pid.kp").locator(".strip")
        slider = shown.row("pid.kp").locator("input[type=range]")
        strip.and_(shown.page.locator("[data-met]:not(.old)")).wait_for()
        met = str(strip.get_attribute("data-met"))
        assert len(met) == 17
        assert len(set(met)) == 2
        edge = met.index("10" if "10" in met else "01")
        for part in (0, edge, edge + 1, 16):
            place = round((part + 0.5) * 1000 / 17)
            with shown.running():
                slider.evaluate("(node, place) => { node.value = place; }", place)
                slider.dispatch_event("input")
                slider.dispatch_event("change")
            seen = [tile.get_attribute("data-met") == "true" for tile in tiles.all()]
            assert all(seen) == (met[part] == "1")
        shown.page.get_by_text("Add a goal").click()
        shown.page.get_by_label("What the goal bounds").select_option(label="last of arm.y")
        shown.page.get_by_label("Below or above").select_option(">")
        shown.page.get_by_label("Bound of the goal").fill("many")
        shown.press("Add")
        assert "needs a number" in shown.page.locator(".rest .refusal").first.inner_text()
        shown.page.get_by_label("Bound of the goal").fill("0.5")
        shown.press("Add")
        assert "last of arm.y > 0.5" in tiles.last.inner_text()
        assert "missed" not in str(tiles.last.get_attribute("class"))
        judged = shown.page.locator("#runs .present td[data-title=goals]")
        assert judged.get_attribute("data-met") == str(1 + sum(seen))
        shown.press("Remove the goal for last of arm.y")
        assert tiles.count() == 2


def test_runs_hold_the_signals_of_goals_that_charts_do_not_show() -> None:
    data = "{signals: [{path: 'a'}, {path: 'b'}], charts: [['a']], goals: [{signal: 'b'}]}"
    assert computed(f"[...makeApp({data}, null).needed]", "runs/runs.js") == ["a", "b"]


@for_each("goal", ["overshoot", "fast < 3", "overshoot of pid.u < 3", "a < b", 3])
def test_goals_that_a_page_cannot_judge_are_refused(goal: Any) -> None:
    with pytest.raises(fx.errors.ValueRefusedError, match=re.escape(f"the goal {goal!r}")):
        fx.page(loop(), 2.0, goals=[goal])


def test_one_slider_moves_the_same_parameter_of_several_blocks(
    browser: Browser, tmp_path: Path
) -> None:
    builder = fx.DiagramBuilder("row")
    lags = [fx.FirstOrderLag(f"lag{k}", time_constant=0.5) for k in range(3)]
    builder.add_all(fx.Step("source"), fx.FirstOrderLag("other", time_constant=2.0), *lags)
    builder.connect_chain("source", "other", "lag0", "lag1", "lag2")
    with opened(browser, fx.page(builder.build(), 2.0), tmp_path) as shown:
        fields = [shown.row(f"lag{k}.time_constant").locator("input.number") for k in range(3)]
        tie = shown.row("lag1.time_constant").locator(".tie")
        assert tie.inner_text() == "= 3"
        assert shown.row("other.time_constant").locator(".tie").count() == 0
        shown.enter("lag1.time_constant", "0.25")
        assert [field.input_value() for field in fields] == ["0.5", "0.25", "0.5"]
        with shown.running():
            tie.click()
        assert [field.input_value() for field in fields] == ["0.25"] * 3
        shown.enter("lag1.time_constant", "0.75")
        assert [field.input_value() for field in fields] == ["0.75"] * 3
        with shown.running():
            tie.click()  # sets nothing else
        shown.enter("lag1.time_constant", "1")
        assert [field.input_value() for field in fields] == ["0.75", "1", "0.75"]


def test_one_slider_moves_tied_parameters(browser: Browser, tmp_path: Path) -> None:
    builder = fx.PlantBuilder("stage", gravity=(0.0, 0.0, 0.0))
    table = builder.add_body("table", fx.SpatialInertia.solid_box(0.1, size=(0.02, 0.02, 0.02)))
    ends = builder.world, builder.add_frame("ends", table, (0.05, 0.0, 0.0))
    size: dict[str, Any] = {"length": 0.05, "width": 0.01, "thickness": 4e-4, "distance": 0.03}
    steel = fx.Material.common("stainless steel 301")
    builder.add_assembly(fx.ParallelGuide("guide", *ends, material=steel, **size))
    page = fx.page(builder.build(), 0.001, parameters=["guide.thickness", "guide_leaf1.width"])
    with opened(browser, page, tmp_path) as shown:
        shown.enter("guide.thickness", "0.0005")
        field = shown.row("guide_leaf2.thickness").locator("input.number")
        assert float(field.input_value()) == 5e-4
        assert shown.row("guide_leaf1.thickness").count() == 0
        assert shown.row("guide.thickness").locator(".tie").count() == 0
        assert shown.row("guide_leaf1.width").locator(".tie").inner_text() == "= 2"


def test_a_page_compares_its_equations_with_numbers_of_python(
    browser: Browser, tmp_path: Path
) -> None:
    page = fx.page(door(), 2.0)
    with opened(browser, page, tmp_path) as shown:
        badge = shown.page.locator("#agreement")
        assert "agrees with Python to" in badge.inner_text()
        assert float(badge.get_attribute("data-number") or "nan") < 1e-12
    stored = re.findall(r'"derivatives":"([^"]+)"', page.html)[-1]
    others = 1.001 * np.frombuffer(base64.b64decode(stored))
    wrong = page.html.replace(stored, base64.b64encode(others.tobytes()).decode())
    with opened(browser, replace(page, html=wrong), tmp_path) as shown:
        assert "differs from Python by" in shown.page.locator("#agreement").inner_text()


def test_numbers_that_only_one_side_has_are_differences_from_python() -> None:
    stored = "{time: 0, state: [0], derivatives: [1, 2, Infinity], signals: {}}"
    rows = "[[1, 2, Infinity], [1, 3, Infinity], [NaN, 2, Infinity], [1, 2, 3]]"
    model = "{evaluate: () => ({derivatives: row, signals: {}})}"
    found = computed(
        f"{rows}.map((row) => String(disagreement({model}, [{stored}], () => '')))",
        "page/runner.js",
        "runs/agreement.js",
    )
    assert found == ["0", "0.5", "NaN", "Infinity"]
