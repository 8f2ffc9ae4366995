"""Widgets of notebooks: sliders set the context, and the kernel runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flexure as fx
from tests.support.live.clocks import servo
from tests.support.pages.browser import running_chromium
from tests.support.pages.notebooks import executed


class Swing(fx.LeafSystem):
    """A block that a page cannot run."""

    def __init__(self, name: str = "swing") -> None:
        super().__init__(name)
        self.rate = self.declare_numeric_parameter("rate", 1.0)
        self.x = self.declare_continuous_state(z=1, default=[1.0])
        self.y = self.declare_vector_output("y", 1, self.x)

    def calc_time_derivatives(self, context: Any) -> Any:
        return [-float(self.rate(context)) * float(self.x(context)[0])]


_NOTEBOOK = """<!doctype html><meta charset="utf-8"><body><div id="cell"></div>
<script type="module">
import desk from "./widget.mjs";
const listeners = [];
const model = {
  on: (_, act) => listeners.push(act),
  off: () => null,
  send: async (message) => {
    for (const each of await window.toPython(message)) listeners.forEach((act) => act(each));
  },
};
window.tell = (message) => listeners.forEach((act) => act(message));
window.show = () => desk.render({ model, el: document.getElementById("cell") });
</script>"""


def made(
    monkeypatch: pytest.MonkeyPatch, *, runs_in_page: bool = False, **options: Any
) -> tuple[Any, list[Any]]:
    pytest.importorskip("anywidget")
    with monkeypatch.context() as patch:
        if not runs_in_page:
            patch.setattr("flexure.solvers.live_runs.widget.page", refuse)
        widget = fx.widget(servo(), 1.0, parameters=["pid.kp", "pid.ki"], **options)
    sent: list[Any] = []
    monkeypatch.setattr(widget._view, "send", sent.append)
    return widget, sent


def refuse(*_: Any, **__: Any) -> Any:
    raise fx.errors.TraceError("Cannot read equations as JavaScript")


def test_equations_that_a_page_cannot_run_have_a_desk() -> None:
    pytest.importorskip("anywidget")
    assert fx.widget(Swing(), 1.0)._page is None
    assert fx.widget(servo(), 1.0)._page is not None


def test_values_of_a_page_reach_the_kernel_all_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    widget, sent = made(monkeypatch, runs_in_page=True)
    widget._receive(None, {"kind": "ready"}, [])
    assert sent[0]["kind"] == "page"
    assert sent[0]["values"]["pid.kp"] == [16.0]
    before = widget.result
    for wrong in (
        {"pid.kp": [30.0], "pid.ki": ["much"]},
        {"pid.kp": [30.0], "nothing": [1.0]},
        None,
    ):
        widget._receive(None, {"kind": "values", "values": wrong, "t_final": 0.5}, [])
    assert widget.result is before
    assert widget.context.get("pid.kp") == 16.0
    sent.clear()
    widget._receive(None, {"kind": "values", "values": {"pid.kp": [30.0]}, "t_final": 0.5}, [])
    assert widget.context.get("pid.kp") == 30.0
    assert widget.result.time[-1] == 0.5
    assert [each["kind"] for each in sent] == ["done"]  # the page has later values, maybe
    widget.run()
    assert sent[-1]["values"]["pid.kp"] == [30.0]


def test_a_slider_sets_the_context_and_the_kernel_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    context = servo().create_default_context()
    assert context is not None
    widget, sent = made(monkeypatch, signals=["motor.y", "pid.u"])
    widget._receive(None, {"kind": "ready"}, [])
    hello = sent[0]
    assert [each["name"] for each in hello["signals"]] == ["motor.y", "pid.u"]
    sent.clear()
    widget._receive(None, {"kind": "set", "path": "pid.kp", "value": 25.0}, [])
    other = servo()
    values = other.create_default_context()
    values.set("pid.kp", 25.0)
    expected = fx.simulate(other, 1.0, context=values)
    times = np.linspace(0.0, 1.0, 401)
    rows = np.array(next(each["rows"] for each in sent if each["kind"] == "rows"))
    np.testing.assert_array_equal(rows[:, 0], times)
    np.testing.assert_allclose(rows[:, 1], expected.sample("motor.y", times), atol=1e-12)
    assert widget.context.get("pid.kp") == 25.0
    assert widget.result["motor.y"][-1] == pytest.approx(expected["motor.y"][-1])
    assert sent[-1] == {"kind": "done"}


def test_what_is_refused_is_said_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    widget, sent = made(monkeypatch)
    before = widget.result
    for wrong in (
        {"kind": "set", "path": "pid.kp", "value": "much"},
        {"kind": "set", "path": "pid.ki", "value": float("nan")},
        {"kind": "set", "path": "motor.x", "value": 1.0},
        {"kind": "set", "path": [], "value": 1.0},
        {"kind": "else"},
        "text",
        None,
    ):
        widget._receive(None, wrong, [])
    assert widget.result is before
    assert widget.context.get("pid.kp") == 16.0
    assert sum(each["kind"] == "refused" for each in sent) == 2
    with pytest.raises(fx.errors.ValueRefusedError, match="an end after the start"):
        fx.widget(servo(), 0.0)
    with pytest.raises(fx.errors.ValueRefusedError, match=r"slider of 'pid\.lower'"):
        fx.widget(servo(), 1.0, parameters=["pid.lower"])  # -inf
    with pytest.raises(fx.errors.ValueRefusedError, match="sliders of single numbers"):
        fx.widget(servo(), 1.0, parameters=["motor.denominator"])


def test_a_widget_is_small_in_a_file() -> None:
    pytest.importorskip("anywidget")
    widget = fx.widget(servo(), 1.0)
    assert len(str(widget._repr_mimebundle_())) < 1000
    state = widget._view.get_state()
    assert sum(len(str(value)) for value in state.values()) < 6_000  # all assets are the kernel's


def test_a_missing_package_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    from flexure.solvers.live_runs.widget import _view_class

    _view_class.cache_clear()
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(fx.errors.MissingExtraError, match=r"pip install 'flexure\[notebook\]'"):
        fx.widget(servo(), 1.0)


@pytest.mark.full
@pytest.mark.parametrize("runs_in_page", [True, False], ids=["page", "desk"])
def test_a_widget_in_a_browser_shows_what_the_kernel_answers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, runs_in_page: bool
) -> None:
    import functools
    import http.server
    import threading

    widget, sent = made(monkeypatch, runs_in_page=runs_in_page, signals=["motor.y"])

    def answer(message: Any) -> list[Any]:
        sent.clear()
        widget._receive(None, message, [])
        return list(sent)

    (tmp_path / "index.html").write_text(_NOTEBOOK)
    (tmp_path / "widget.mjs").write_text(widget._view._esm)

    class Quiet(http.server.SimpleHTTPRequestHandler):
        extensions_map = {"": "text/html", ".mjs": "text/javascript", ".html": "text/html"}  # noqa: RUF012

        def log_message(self, *_: Any) -> None: ...

    handler = functools.partial(Quiet, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with running_chromium() as browser:
            page = browser.new_page()
            errors: list[str] = []
            page.on("pageerror", lambda error: errors.append(str(error)))
            page.expose_function("toPython", answer)
            page.goto(f"http://127.0.0.1:{server.server_port}/index.html")
            page.evaluate("() => window.show()")
            if runs_in_page:
                assert_follows(page, widget)
                assert errors == []
                server.shutdown()
                return
            curve = page.locator("path.curve")
            curve.wait_for(state="attached")
            before = curve.get_attribute("d")
            page.get_by_role("slider").first.fill("700")
            page.wait_for_function(
                "(before) => document.querySelector('#cell > div').shadowRoot"
                ".querySelector('path.curve').getAttribute('d') !== before",
                arg=before,
            )
            assert widget.context.get("pid.kp") > 16.0
            assert errors == []
        server.shutdown()


def assert_follows(page: Any, widget: Any) -> None:
    """The kernel has the values of the page, and the page those that Python sets."""
    inside = page.frame_locator("iframe")
    field = inside.locator('.control[data-path="pid.kp"] input.number')
    inside.locator("body[data-drawn]").wait_for()
    field.fill("25")
    field.press("Enter")
    for _ in range(100):
        if widget.context.get("pid.kp") == 25.0:
            break
        page.wait_for_timeout(50)
    shown = widget.result["motor.y"][-1]
    other = servo()
    values = other.create_default_context()
    values.set("pid.kp", 25.0)
    assert shown == pytest.approx(fx.simulate(other, 1.0, context=values)["motor.y"][-1])
    page.evaluate("() => window.tell({ kind: 'kernel', values: { 'pid.kp': [40] } })")
    for _ in range(100):
        if field.input_value() == "40":
            break
        page.wait_for_timeout(50)
    assert field.input_value() == "40"
    page.evaluate("() => window.tell({ kind: 'refused', text: 'expected kp below 50' })")
    alert = inside.locator("#alert")
    alert.wait_for(state="visible")
    assert alert.inner_text().endswith("keeps its own: expected kp below 50")
    field.fill("30")
    field.press("Enter")
    alert.wait_for(state="hidden")


@pytest.mark.full
def test_a_cell_shows_a_widget_and_stores_no_page(tmp_path: Path) -> None:
    pytest.importorskip("anywidget")
    home = tmp_path / "ipython"
    home.mkdir()
    cells = [
        "import flexure as fx\nfrom tests.support.live.clocks import servo",
        "widget = fx.widget(servo(), 0.2)\nwidget",
        "widget.context.set('pid.kp', 30.0)\nwidget.run()\nprint(widget.result.outcome)",
    ]
    _, (shown,), printed = executed(cells, tmp_path, home)
    assert "application/vnd.jupyter.widget-view+json" in shown["data"]
    assert len(str(shown)) < 2500
    assert printed[-1]["text"] == "completed\n"
