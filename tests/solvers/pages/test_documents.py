"""What is in the file of a page, and what pages are made of."""

from __future__ import annotations

import base64
import hashlib
import math
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import flexure as fx
from examples.compliant_door import build as door
from flexure.solvers.pages import document
from tests.support.mechanics.mechanics import ForeignPendulum
from tests.support.pages.browser import visiting
from tests.support.pages.pages import opened
from tests.support.tiers import for_each

if TYPE_CHECKING:
    from playwright.sync_api import Browser


DARK = "<!doctype html><title>notebook</title><body style='background: #111'>"


def test_the_page_of_the_door_is_small_and_may_load_nothing(tmp_path: Path) -> None:
    page = fx.page(door(), 10.0, path=tmp_path / "door.html")
    file = (tmp_path / "door.html").read_bytes()
    assert page.size == len(file) < 1_500_000
    assert file.decode() == page.html
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page.html)
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == rules["connect-src"] == "'none'"
    assert "unsafe" not in policy
    kinds = r'(?: id="model")?'
    scripts = re.findall(f"<script{kinds}>(.*?)</script>", page.html, re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()) for text in scripts]
    assert rules["script-src"] == " ".join(f"'sha256-{each.decode()}'" for each in hashes)
    assert not re.search(r'(?:src|href)="(?!data:)', page.html.partition("<script")[0])


def test_a_notebook_shows_the_page_in_a_frame_of_its_own(browser: Browser, tmp_path: Path) -> None:
    page = fx.page(fx.FirstOrderLag("lag", 0.5), 1.0)
    frame = page._repr_html_()
    assert frame.startswith('<iframe sandbox="allow-scripts')
    assert "<script" not in frame
    file = tmp_path / "notebook.html"
    file.write_text(f"{DARK}{frame}", encoding="utf-8")
    with visiting(browser, file) as visit:
        inside = visit.page.frame_locator("iframe")
        inside.locator("body[data-drawn][data-runs]").wait_for()
        field = inside.locator('.control[data-path="time_constant"] input.number')
        field.fill("0.25")
        field.press("Enter")
        inside.locator('body:not([data-runs="1"])').wait_for()
        paper = inside.locator("body").evaluate("node => getComputedStyle(node).backgroundColor")
        assert max(map(int, re.findall(r"\d+", paper))) < 64  # as dark as the notebook
    assert repr(page) == f"<Page 'lag', {page.size / 1e6:.1f} MB, runs by itself>"


def test_what_cannot_be_traced_is_refused_by_name_and_shown_as_it_was_recorded(
    browser: Browser, tmp_path: Path
) -> None:
    system = ForeignPendulum("swing", angle=0.5)
    context = system.create_default_context()
    context.set("torque", 0.25)
    with pytest.raises(fx.errors.TraceError, match="swing"):
        fx.page(system, 1.0, context=context)
    result = fx.simulate(system, 1.0, context=context)
    page = result.page(signals=["angle", "x[rate]"])
    assert not page.live
    with opened(browser, page, tmp_path) as shown:
        assert "swing" in shown.page.locator(".remark").inner_text()
        assert shown.page.locator("#values").is_hidden()
        table = shown.table()
        for path in ("angle", "x[rate]"):
            np.testing.assert_array_equal(table[path], result.sample(path, table["time"]))


def test_figures_of_a_page_that_does_not_run_are_those_of_the_result(
    browser: Browser, tmp_path: Path
) -> None:
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.Step("target", at=0.5),
        fx.PIDController("pid", kp=16.0, ki=20.0, kd=6.0, derivative_filter=0.02),
        fx.TransferFunction("arm", [1.0], [1.0, 0.4, 4.0]),
        fx.FunctionBlock("sensor", lambda u: math.atan(u[0])),
    )
    builder.connect("target.y", "pid.setpoint")
    builder.connect_chain("pid", "arm", "sensor", "pid.measurement")
    with warnings.catch_warnings(action="ignore"):  # of equations that run interpreted
        result = fx.simulate(builder.build(), 60.0)
    info = result.step_info("sensor.y")
    with opened(browser, result.page(), tmp_path) as shown:
        for name, value in shown.figures().items():
            assert value == pytest.approx(getattr(info, name), rel=1e-12)


def test_a_page_of_a_result_begins_as_the_run_did(browser: Browser, tmp_path: Path) -> None:
    lag = fx.FirstOrderLag("lag", time_constant=0.5)
    context = lag.create_default_context()
    context.set("u", 3.0)
    context.set("x", 1.0)
    context.time = 2.0
    result = fx.simulate(lag, 4.0, context=context, rtol=1e-9)
    result.context.set("x", 77.0)
    with opened(browser, result.page(title="lag of a result"), tmp_path) as shown:
        table = shown.table()
        assert table["time"][[0, -1]].tolist() == [2.0, 4.0]
        expected = 3.0 - 2.0 * np.exp(-(table["time"] - 2.0) / 0.5)
        np.testing.assert_allclose(table["y"], expected, rtol=1e-5)


@pytest.mark.full
def test_contexts_of_a_run_are_those_at_its_times() -> None:
    system = door()
    result = fx.simulate(system, 2.0)
    before, after = result.context_at(0.25), result.context_at(1.0)
    assert before.time == 0.25
    again = fx.simulate(system, 2.0, context=after)
    np.testing.assert_allclose(
        again["door.axis.angle"][-1], result["door.axis.angle"][-1], rtol=1e-5
    )
    after.set("pid.kp", 1.0)
    assert result.context_at(1.0).get("pid.kp") == 60.0
    with pytest.raises(fx.errors.ValueRefusedError, match=r"\[0\.0, 2\.0\]"):
        result.context_at(3.0)


@for_each(
    ("arguments", "reason"),
    [
        ({"t_final": 0.0}, "an end after the start"),
        ({"t_final": float("inf")}, "an end after the start"),
        ({"signals": ["door.panel.pose"]}, "a signal with one component"),
        ({"signals": ["door.motor_2"]}, "door"),
        ({"parameters": ["pid.u"]}, "pid.u"),
        ({"num_samples": 1}, "at least two samples"),
        ({"title": 3}, "a title"),
    ],
)
def test_what_a_page_cannot_show_is_refused(arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(fx.errors.FlexureError, match=re.escape(reason)):
        fx.page(door(), **arguments)


@pytest.mark.parametrize("outline", [document.RUNS, document.INSPECTOR])
def test_no_script_of_a_page_hides_a_name_of_another(outline: document.Outline) -> None:
    declared = [
        name
        for script in outline.scripts
        for name in re.findall(
            r"^(?:async )?(?:function|const|let) (\w+)", document.asset(script), re.MULTILINE
        )
    ]
    assert len(declared) > 50
    assert sorted(declared) == sorted(set(declared))


def test_states_that_a_context_has_changed_are_told_component_by_component(
    browser: Browser, tmp_path: Path
) -> None:
    arm = fx.StateSpace("arm", [[0.0, 1.0], [-4.0, -0.4]], [0.0, 1.0], [1.0, 0.0])
    context = arm.create_default_context()
    context.set("u", 0.0)
    context.set("x", [0.5, -1.0])
    with opened(browser, fx.page(arm, 1.0, context=context), tmp_path) as shown:
        scope: dict[str, Any] = {"arm": arm}
        exec(shown.text("Python"), scope)
        assert scope["result"].context_at(0.0).get("x").tolist() == [0.5, -1.0]
