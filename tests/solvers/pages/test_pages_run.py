"""Pages in a real browser: what people change there moves curves as a simulation says."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import flexure as fx
from examples.compliant_door import build as door
from tests.support.pages.pages import OpenPage, opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser

TIGHT: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-11}


def chain() -> fx.Diagram:
    """A step through two lags, without a controller."""
    builder = fx.DiagramBuilder("chain")
    builder.add_all(
        fx.Step("source", at=0.25, to=2.0),
        fx.FirstOrderLag("first", time_constant=0.3),
        fx.FirstOrderLag("second", time_constant=0.1),
    )
    builder.connect_chain("source", "first", "second")
    return builder.build()


def swinging() -> fx.Diagram:
    """Thirty links that swing without end, whose run takes many steps and some time."""
    plant = fx.PlantBuilder("links", gravity=(0, 0, -9.81))
    hangs: Any = plant.world
    for k in range(30):
        link = plant.add_body(f"link{k}", fx.SpatialInertia.thin_rod(1.0, length=1.0, axis="z"))
        joint = plant.add_joint(fx.RevoluteJoint(f"joint{k}", hangs, link, axis=(0, 1, 0)))
        joint.default_angle = 1.0 + k
        hangs = plant.add_frame(f"end{k}", link, (0, 0, -1.0))
    return plant.build()


@pytest.fixture(scope="module")
def open_door(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenPage]:
    """Open the page of the door once for many tests."""
    page = fx.page(door(), 10.0, **TIGHT)
    with opened(browser, page, tmp_path_factory.mktemp("door")) as shown:
        yield shown


@pytest.fixture
def shown(open_door: OpenPage) -> OpenPage:
    """Return the page of the door with the values that it came with."""
    with open_door.running():
        open_door.press("Reset")
    return open_door


def assert_agrees(shown: OpenPage, system: fx.Diagram) -> fx.results.SimulationResult:
    """Run the Python that the page gives, and compare all its signals with that result."""
    scope: dict[str, Any] = {system.name: system}
    exec(shown.text("Python"), scope)
    result: fx.results.SimulationResult = scope["result"]
    table = shown.table()
    times = table.pop("time")
    same = times[1:] == times[:-1]  # the values before and after a jump, and a sample between them
    ends = ~np.append(False, np.append(same[1:] & same[:-1], False))
    times = times[ends]
    assert len(table) >= 3
    for path, column in table.items():
        values = column[ends]
        expected = result.sample(path, times)
        scale = 1.0 + np.max(np.abs(expected))
        np.testing.assert_allclose(values, expected, rtol=0.0, atol=1e-6 * scale, err_msg=path)
    return result


def assert_moves(shown: OpenPage, system: fx.Diagram, path: str) -> None:
    """Move a slider and fill a field, and compare with simulations."""
    usual = float(assert_agrees(shown, system).context.get(path))
    with shown.running():
        slider = shown.row(path).locator("input[type=range]")
        slider.focus()
        slider.press("PageUp")
    assert float(assert_agrees(shown, system).context.get(path)) > usual
    shown.enter(path, str(0.7 * usual))
    assert float(assert_agrees(shown, system).context.get(path)) == 0.7 * usual
    with shown.running():
        shown.press("Reset")
    assert float(assert_agrees(shown, system).context.get(path)) == usual


def test_sliders_and_fields_move_the_curves_to_what_a_simulation_gives(shown: OpenPage) -> None:
    assert_moves(shown, door(), "pid.kp")


def test_another_diagram_has_another_page(browser: Browser, tmp_path: Path) -> None:
    page = fx.page(chain(), 2.0, **TIGHT)
    with opened(browser, page, tmp_path) as shown:
        assert_moves(shown, chain(), "first.time_constant")
        assert shown.page.locator(".legend .name").all_inner_texts() == [
            "source.y",
            "first.y",
            "second.y",
        ]
        assert "pid" not in shown.page.locator("#values").inner_text()


def test_figures_are_those_of_step_info(shown: OpenPage) -> None:
    system = door()
    for ki, at, end in ((25.0, 0.75, "9"), (40.0, 1.25, "500")):
        shown.enter("pid.ki", str(ki))
        shown.enter("target.at", str(at))
        with shown.running():
            shown.page.locator("#final-time").fill(end)
            shown.page.locator("#final-time").press("Enter")
        found = shown.figures()
        scope: dict[str, Any] = {"servo": system}
        exec(shown.text("Python"), scope)
        other = scope["result"].step_info("door.axis.angle")
        assert len(found) == 6
        for name, value in found.items():
            assert value == pytest.approx(getattr(other, name), rel=1e-7, abs=1e-9)


def test_a_long_run_shows_that_it_goes_on_and_stops_when_asked(
    browser: Browser, tmp_path: Path
) -> None:
    with opened(browser, fx.page(swinging(), 1.0), tmp_path) as shown:
        busy, span = shown.page.locator("#busy"), shown.page.locator("#span")
        assert not busy.is_visible()
        assert span.inner_text() == "from 0 to 1 s"
        with shown.running():
            field = shown.page.locator("#final-time")
            field.fill("500")
            field.press("Enter")
            shown.press("Stop")
        assert not busy.is_visible()
        times = shown.table()["time"]
        end = times[-1]
        assert 0.0 < end < 500.0
        np.testing.assert_allclose(times, np.linspace(0.0, end, 1001), rtol=1e-9)
        assert span.inner_text() == f"from 0 to {end:.6g} s"
        assert f"stopped the run at t = {end:.6g} s" in shown.page.locator("#alert").inner_text()
        with shown.running():
            field.fill("2")
            field.press("Enter")
        assert shown.table()["time"][-1] == 2.0
        assert not shown.page.locator("#alert").is_visible()


def test_an_address_brings_the_values_back(
    shown: OpenPage, browser: Browser, tmp_path: Path
) -> None:
    shown.enter("pid.kp", "33.25")
    shown.enter("door.hinge.spring_zero_angle_rad", "-0.75")
    fragment = "#door.hinge.spring_zero_angle_rad=-0.75&pid.kp=33.25"
    shown.until("location.hash", fragment.__eq__)  # the address follows when the hand rests
    table = shown.table()
    page = fx.page(door(), 10.0, **TIGHT)
    with opened(browser, page, tmp_path, fragment=fragment) as again:
        assert again.row("pid.kp").locator("input.number").input_value() == "33.25"
        for name, values in again.table().items():
            np.testing.assert_array_equal(values, table[name])
        with again.running():
            again.page.evaluate("location.hash = 'nothing=1&pid.kp=a&pid.ki=7'")
        assert "nothing, pid.kp" in again.page.locator("#told").inner_text()
        assert again.row("pid.ki").locator("input.number").input_value() == "7"
        assert again.row("pid.kp").locator("input.number").input_value() == "60"


def test_values_come_as_toml_that_the_command_line_reads(shown: OpenPage) -> None:
    system = door()
    shown.enter("pid.kp", "80")
    shown.page.locator("summary", has_text="more values").click()
    shown.enter("door.panel.com", "0.05")
    shown.enter("door.axis.angle", "0.125")
    text = shown.text("TOML")
    scope: dict[str, Any] = {"servo": system}
    exec(shown.text("Python"), scope)
    assert tomllib.loads(text) == {
        "pid.kp": 80.0,
        "door.panel.com": [0.05, 0.3, 0.0],
        "door.axis.angle": 0.125,
    }
    context = system.create_default_context()
    for path, value in tomllib.loads(text).items():
        context.set(path, value)
    assert fx.simulate(system, 10.0, context=context, **TIGHT).context == scope["result"].context


def test_values_that_a_context_has_changed_are_handed_on(browser: Browser, tmp_path: Path) -> None:
    system = door()
    context = system.create_default_context()
    context.set("pid.upper", 20.0)
    with opened(browser, fx.page(system, 2.0, context=context, **TIGHT), tmp_path) as shown:
        assert 'context.set("pid.upper", 20.0)' in shown.text("Python")
        result = assert_agrees(shown, system)
    assert np.max(result["pid.u"]) <= 20.0


def test_play_and_scrub_move_the_values_at_the_cursor(browser: Browser, tmp_path: Path) -> None:
    with opened(browser, fx.page(chain(), 2.0, signals=["second.y"]), tmp_path) as shown:
        reading = shown.page.locator(".reading b")
        slider = shown.page.get_by_label("Time", exact=True)
        slider.fill("500")
        table = shown.table()
        expected = np.interp(1.0, table["time"], table["second.y"])
        assert float(reading.inner_text()) == pytest.approx(expected, rel=1e-3)
        slider.fill("900")
        shown.press("Play")
        shown.page.get_by_role("button", name="Play").wait_for()  # again, at the end
        assert shown.page.locator(".clock").inner_text() == "2.00 s"
        assert float(reading.inner_text()) == pytest.approx(table["second.y"][-1], rel=1e-3)


def test_signals_are_added_to_the_charts_and_taken_out(shown: OpenPage) -> None:
    names = shown.page.locator(".legend .name")
    assert "door.axis.rate" not in names.all_inner_texts()
    picker = shown.page.locator("#picker")
    with shown.running():
        picker.fill("door.axis.rate")
        picker.press("Enter")
    assert "door.axis.rate" in names.all_inner_texts()
    assert "door.axis.rate" in shown.table()
    shown.press("Hide door.axis.rate")
    assert "door.axis.rate" not in names.all_inner_texts()
    picker.fill("door.nothing")
    picker.press("Enter")
    assert "no signal door.nothing" in shown.page.locator("#told").inner_text()


def test_values_out_of_bounds_are_refused_and_change_nothing(shown: OpenPage) -> None:
    runs = shown.page.locator("body").get_attribute("data-runs")
    field = shown.row("door.hinge.spring_constant").locator("input.number")
    refusal = shown.row("door.hinge.spring_constant").locator(".refusal")
    for text in ("-1", "stiff", "", "0x10", "0b1", "1e", "1.2.3"):
        field.fill(text)
        field.press("Enter")
        assert field.get_attribute("aria-invalid") == "true"
        assert "takes a number ≥ 0" in refusal.inner_text()
    assert shown.page.locator("body").get_attribute("data-runs") == runs
    shown.enter("door.hinge.spring_constant", "4")
    assert field.get_attribute("aria-invalid") == "false"


def test_values_that_contradict_each_other_are_refused_and_change_nothing(
    browser: Browser, tmp_path: Path
) -> None:
    limit = fx.Saturation("limit", -1.0, 2.0)
    context = limit.create_default_context()
    limit.u.fix(context, 5.0)
    page = fx.page(limit, 1.0, context=context, parameters=["lower", "upper"])
    with opened(browser, page, tmp_path) as shown:
        runs = shown.page.locator("body").get_attribute("data-runs")
        field = shown.row("lower").locator("input.number")
        field.fill("20")
        field.press("Enter")
        assert field.get_attribute("aria-invalid") == "true"
        told = shown.row("lower").locator(".refusal").inner_text()
        assert told == "lower has to be ≤ 2, which is upper"
        assert shown.page.locator("body").get_attribute("data-runs") == runs
        shown.enter("upper", "21")
        shown.enter("lower", "20")
        assert not shown.page.locator("#alert").is_visible()


def test_an_input_without_a_value_is_asked_for(browser: Browser, tmp_path: Path) -> None:
    lag = fx.FirstOrderLag("lag", time_constant=0.5)
    with opened(browser, fx.page(lag, 2.0, **TIGHT), tmp_path) as shown:
        assert "its input 'u' has no value" in shown.page.locator("#alert").inner_text()
        assert shown.page.locator("#values .control").first.get_attribute("data-path") == "u"
        shown.enter("u", "2")
        assert not shown.page.locator("#alert").is_visible()
        scope: dict[str, Any] = {"lag": lag}
        exec(shown.text("Python"), scope)
        table = shown.table()
        expected = 2.0 - 2.0 * np.exp(-table["time"] / 0.5)
        np.testing.assert_allclose(table["y"], expected, atol=1e-7)
        np.testing.assert_allclose(table["y"][-1], scope["result"]["y"][-1], rtol=1e-7)


class Escape(fx.LeafSystem):
    """x' = gain x², which leaves all numbers at the time 1/gain."""

    def __init__(self) -> None:
        super().__init__("escape")
        self.gain = self.declare_numeric_parameter("gain", 0.25)
        self.x = self.declare_continuous_state(z=1, default=[1.0])
        self.declare_vector_output("y", 1, self.x)

    def calc_time_derivatives(self, context: Any) -> Any:
        return self.gain(context) * self.x(context) ** 2


def test_a_run_that_fails_says_why_and_shows_how_far_it_came(
    browser: Browser, tmp_path: Path
) -> None:
    with opened(browser, fx.page(Escape(), 2.0, parameters=["gain"]), tmp_path) as shown:
        alert = shown.page.locator("#alert")
        assert not alert.is_visible()
        shown.enter("gain", "1")
        assert "Cannot simulate 'escape'" in alert.inner_text()
        table = shown.table()
        assert 0.9 < table["time"][-1] < 1.001
        np.testing.assert_allclose(table["y"][:-9], 1.0 / (1.0 - table["time"][:-9]), rtol=1e-3)
        shown.enter("gain", "0.25")
        assert not alert.is_visible()


def test_numbers_that_are_not_finite_and_runs_that_cannot_begin_spoil_no_page(
    browser: Browser, tmp_path: Path
) -> None:
    gap = fx.TimeFunction("gap", lambda t: np.where(t > 0.5, np.log(t - 0.8), 1.0))
    never = fx.TimeFunction("never", lambda t: np.log(t - 5.0))
    builder = fx.DiagramBuilder("hole")
    builder.add_all(never, fx.Integrator("sum"))
    builder.connect("never.y", "sum.u")
    for system in (gap, builder.build()):
        with opened(browser, fx.page(system, 1.0), tmp_path) as page:  # fails by complaints
            assert "failed" not in page.page.locator("#charts").inner_text()


def test_events_that_may_have_been_missed_are_told(browser: Browser, tmp_path: Path) -> None:
    builder = fx.DiagramBuilder("fast")
    builder.add_all(
        fx.TimeFunction("wave", lambda t: 1.5 + np.sin(1e5 * t)),
        fx.StopWhen("stop", "it is low"),
        fx.Constant("one", 1.0),
        fx.FirstOrderLag("lag", 1.0),
    )
    builder.connect_chain("wave", "stop")
    builder.connect_chain("one", "lag")
    with opened(browser, fx.page(builder.build(), 0.1), tmp_path) as page:
        assert "may have been missed" in page.page.locator("#alert").inner_text()
