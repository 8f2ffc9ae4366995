"""Runs of a page: each change makes one, which people name, draw, compare, load and delete."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import flexure as fx
from tests.solvers.pages.test_charts import computed
from tests.support.pages.pages import OpenPage, opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def loop() -> fx.Diagram:
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.Step("target", at=0.5),
        fx.PIDController("pid", kp=16.0, ki=20.0, kd=6.0, derivative_filter=0.02),
        fx.TransferFunction("arm", [1.0], [1.0, 0.4, 4.0]),
    )
    builder.connect("target.y", "pid.setpoint")
    builder.connect_chain("pid", "arm", "pid.measurement")
    return builder.build()


def names(shown: OpenPage) -> list[str]:
    fields = shown.page.locator("#runs tbody input[type=text]").all()
    return [field.input_value() for field in fields]


def saved(shown: OpenPage, button: str, file: Path) -> str:
    with shown.page.expect_download() as download:
        shown.press(button)
    download.value.save_as(file)
    return file.read_text(encoding="utf-8")


def test_every_change_makes_a_run_that_is_named_drawn_compared_and_deleted(
    browser: Browser, tmp_path: Path
) -> None:
    system = loop()
    page = fx.page(system, 8.0, rtol=1e-9, parameters=["pid.kp", "pid.kd"])
    with opened(browser, page, tmp_path) as shown:
        curves = shown.page.locator('#charts .curve[data-name="arm.y"]')
        assert (names(shown), curves.count()) == (["Run 1"], 1)
        shown.enter("pid.kp", "30")
        slider = shown.row("pid.kd").locator("input[type=range]")
        for key in ("input", "input", "change"):  # one movement of a hand is one run
            slider.evaluate(
                "(node, key) => { node.value++; node.dispatchEvent(new Event(key)) }", key
            )
            shown.page.wait_for_timeout(100)
        with shown.running():
            slider.press("PageUp")
        assert names(shown) == ["Run 4", "Run 3", "Run 2", "Run 1"]
        assert curves.count() == 2  # the present run and the first one
        field = shown.page.get_by_label("Name of run 2")
        field.fill("stiff, <b>fast</b>")
        field.press("Enter")
        shown.page.get_by_label("Draw stiff, <b>fast</b>").check()
        assert curves.count() == 3
        dashes = [curve.evaluate("node => node.style.strokeDasharray") for curve in curves.all()]
        assert len(set(dashes)) == 3

        rows = list(csv.DictReader(saved(shown, "Runs as CSV", tmp_path / "a.csv").splitlines()))
        told = json.loads(saved(shown, "Runs as JSON", tmp_path / "a.json"))["runs"]
        assert [row["run"] for row in rows] == [run["name"] for run in told] == names(shown)[::-1]
        for row, run in zip(rows, told, strict=True):
            context = system.create_default_context()
            for path, value in run["values"].items():
                context.set(path, value[0])
                assert float(row[path]) == value[0]
            result = fx.simulate(system, 8.0, context=context, rtol=1e-9)
            info = result.step_info("arm.y")
            figures = run["figures"]["arm.y"]
            assert figures["overshoot"] == pytest.approx(info.overshoot, rel=1e-6)
            assert float(row["arm.y rise_time"]) == pytest.approx(info.rise_time, rel=1e-6)
            expected = result.sample("arm.y", run["time"][1:-1:100])
            np.testing.assert_allclose(run["signals"]["arm.y"][1:-1:100], expected, atol=1e-7)

        with shown.running():
            shown.press("Load stiff, <b>fast</b>")
        assert shown.row("pid.kp").locator("input.number").input_value() == "30"
        assert len(names(shown)) == 4  # the run was there already
        shown.press("Compare with stiff, <b>fast</b>")
        assert curves.count() == 1
        shown.press("Delete Run 3")
        assert names(shown) == ["Run 4", "stiff, <b>fast</b>", "Run 1"]
        shown.page.set_viewport_size({"width": 390, "height": 844})
        shown.until("document.documentElement.scrollWidth", lambda width: width == 390)
        link = link_of(shown, "Link to stiff, <b>fast</b>")
    with opened(browser, page, tmp_path, fragment=f"#{link.partition('#')[2]}") as again:
        assert names(again) == ["stiff, <b>fast</b>"]
        assert again.row("pid.kp").locator("input.number").input_value() == "30"


def link_of(shown: OpenPage, button: str) -> str:
    """Return what a button copies."""
    shown.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    shown.press(button)
    shown.page.locator("#told", has_text="Copied").wait_for()
    return str(shown.page.evaluate("navigator.clipboard.readText()"))


def test_a_link_copied_in_a_notebook_says_what_it_is_for(browser: Browser, tmp_path: Path) -> None:
    page: Any = fx.page(loop(), 2.0)
    file = tmp_path / "notebook.html"
    file.write_text(f"<!doctype html><title>notebook</title>{page._repr_html_()}")
    visit = browser.new_page()
    visit.goto(file.as_uri())
    inside = visit.frame_locator("iframe")
    inside.locator("body[data-drawn][data-runs]").wait_for()
    inside.locator('.control[data-path="pid.kp"] input.number').first.fill("40")
    inside.locator('.control[data-path="pid.kp"] input.number').first.press("Enter")
    inside.locator('body[data-runs="2"]').wait_for()
    inside.get_by_role("button", name="Copy link", exact=True).click()
    inside.locator("#told", has_text="has no address").wait_for()
    visit.close()


def test_the_loop_gain_of_the_present_values_is_that_of_a_linear_model(
    browser: Browser, tmp_path: Path
) -> None:
    system = loop()
    with opened(browser, fx.page(system, 8.0), tmp_path) as shown:
        shown.enter("pid.kp", "24")
        shown.press("Bode")
        faces = '[...document.querySelectorAll(".scope .part:not([hidden]) .face")]'
        shown.until(f"{faces}.filter((face) => face.data).length", lambda drawn: drawn == 2)
        gain, phase = shown.page.evaluate(
            f"{faces}.map((face) => face.data.find((line) => !line.quiet))"
            ".map(({ x, y }) => ({ x, y }))"
        )
        note = shown.page.locator(".scope .part:not([hidden]) .note")
        margins = {name: float(note.get_attribute(f"data-{name}") or "nan") for name in MARGINS}
        shown.enter("pid.ki", "2000")
        assert "no margins" in note.inner_text()
        shown.enter("pid.ki", "20")
        assert "phase margin" in note.inner_text()
    context = system.create_default_context()
    context.set("pid.kp", 24.0)
    model = fx.loop_gain(system, "pid.u", context=context)
    expected = np.ravel(model.frequency_response(np.array(gain["x"])))
    ours = np.array(gain["y"]) * np.exp(1j * np.deg2rad(phase["y"]))
    np.testing.assert_allclose(ours, expected, rtol=1e-6, atol=1e-8)
    assert np.max(np.abs(np.diff(phase["y"]))) < 30.0
    found = fx.margins(model)
    k = np.argmin(np.abs(found.phase_margins))
    others = [
        found.phase_margin_frequencies[k],
        np.rad2deg(abs(found.phase_margins[k])),
        1.0 / found.modulus_margin,
    ]
    np.testing.assert_allclose([*margins.values()], others, rtol=2e-3)


MARGINS = ("crossover", "phase-margin", "peak")


#: A resonance with a damping ratio of 0.05 %, and a zero and a pole 0.1 % apart.
PAIR = np.polymul([0.1, 1.0], [1.0, 0.0001 * 32.53, 32.53**2]), [1.0, 0.0001 * 32.5, 32.5**2]


@pytest.mark.parametrize(
    ("arm", "tuned"),
    [
        (([20.0], [1.0, 0.0317, 31.7**2]), {"kp": 0.9, "ki": 0.4, "kd": 0.002}),
        ((2.0 * np.array(PAIR[1]), PAIR[0]), {"kp": 0.9, "ki": 0.4}),
    ],
)
def test_margins_of_a_page_see_resonances_between_the_places_of_its_grid(
    arm: Any, tuned: dict[str, Any]
) -> None:
    builder = fx.DiagramBuilder("swinging")
    builder.add_all(
        fx.Step("target"),
        fx.PIDController("pid", **tuned),
        fx.TransferFunction("arm", *arm),
    )
    builder.connect("target.y", "pid.setpoint")
    builder.connect_chain("pid", "arm", "pid.measurement")
    system, gains = builder.build(), tuple(f"pid.{name}" for name in tuned)
    context = system.create_default_context()
    opened_loop = context.clone()
    for each in gains:
        opened_loop.set(each, 0.0)
    contexts = (opened_loop, context)
    matrices = [fx.linearize(system, each, inputs=(), outputs=()).A for each in contexts]
    rows, columns = np.indices(matrices[0].shape).reshape(2, -1).tolist()
    both = [{"rows": rows, "columns": columns, "values": A.ravel().tolist()} for A in matrices]
    values = {"parameters": {each: [1.0] for each in gains}, "inputs": {}}
    run = {"values": values, "result": {"time": [0.0], "state": [0.0] * len(matrices[0])}}
    jacobian = f"{json.dumps(both)}[parameters['pid.kp'][0]]"
    model = f"{{evaluate: ({{parameters}}) => ({{jacobian: {jacobian}}})}}"
    found = computed(
        f"marginsOf(loopOf({{gains: {json.dumps(gains)}}}, {json.dumps(run)}, {model}, "
        "{responses: [], run: {}}, {needed: []}))",
        "page/runner.js",
        "charts/bode.js",
    )
    expected = fx.margins(fx.loop_gain(system, "pid.u", context=context))
    k = np.argmin(np.abs(expected.phase_margins))
    assert found["phaseMargin"] == pytest.approx(
        np.rad2deg(abs(expected.phase_margins[k])), rel=1e-3
    )
    assert found["crossover"] == pytest.approx(expected.phase_margin_frequencies[k], rel=1e-5)
    assert found["peak"] == pytest.approx(1.0 / expected.modulus_margin, rel=5e-3)


def test_runs_whose_last_input_and_final_time_read_alike_in_a_row_are_different_ones() -> None:
    values = "{parameters: {}, initial: {}, inputs: {u: [u]}, tFinal}"
    keys = computed(f"[[1, 23], [12, 3]].map(([u, tFinal]) => keyOf({values}))", "runs/runs.js")
    assert keys[0] != keys[1]
