"""Pages of live runs serve those who have the link, and do not hold up a run."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np
import pytest

import flexure as fx
from tests.support.live.clocks import OwnClock, servo
from tests.support.pages.browser import running_chromium

pytest.importorskip("websockets")


@contextmanager
def served(**options: Any) -> Iterator[tuple[Any, Any]]:
    live = fx.live(servo(), signals=["motor.y", "pid.u"], parameters=["pid.kp"], **options)
    page = live.page(0)
    try:
        yield live, page
    finally:
        live.close()
        assert page.is_closed


@contextmanager
def connected(page: Any, **changes: Any) -> Iterator[Any]:
    from websockets.sync.client import connect

    options: dict[str, Any] = {"origin": f"http://127.0.0.1:{page.port}", "compression": None}
    with connect(
        page.url.replace("http", "ws").replace("/?", "/ws?"), **options | changes
    ) as socket:
        yield socket


def heard(socket: Any, kind: str) -> Any:
    """Return the next message of a kind."""
    while True:
        message = json.loads(socket.recv(timeout=20.0))
        if message["kind"] == kind:
            return message


def send(socket: Any, **message: Any) -> None:
    socket.send(json.dumps(message))


def test_only_those_who_have_the_link_are_answered() -> None:
    from websockets.exceptions import InvalidStatus

    with served(rate="max") as (live, page):
        base, host = page.url.partition("?")[0], f"127.0.0.1:{page.port}"
        with urlopen(page.url) as answer:
            text = answer.read().decode()
            assert answer.headers["Cache-Control"] == "no-store"
        assert "<title>servo</title>" in text
        assert "http" not in text.partition("<script>")[2].replace("http://www.w3.org/2000/svg", "")
        for address, headers, code in (
            (base, {}, 403),
            (f"{base}?token=wrong", {}, 403),
            (page.url, {"Host": "evil.example"}, 403),
            (page.url.replace("/?", "/etc?"), {}, 404),
        ):
            with pytest.raises(HTTPError) as refused:
                urlopen(Request(address, headers=headers))
            assert refused.value.code == code
            refused.value.close()
        token = page.url.partition("=")[2]
        for origin in (None, "http://evil.example", f"http://{host}.evil.example", "null"):
            with pytest.raises(InvalidStatus, match="403"), connected(page, origin=origin):
                pass
        assert token not in text
        other = fx.live(servo())
        with pytest.raises(fx.errors.ValueRefusedError, match="a free port of this machine"):
            other.page(page.port)
        assert live.page(0) is page


def test_a_page_sets_values_and_steers_the_run() -> None:
    with served(rate="max") as (live, page), connected(page) as socket:
        hello = heard(socket, "hello")
        assert [each["name"] for each in hello["signals"]] == ["motor.y", "pid.u"]
        assert hello["controls"] == [
            {"path": "pid.kp", "value": 16.0, "unit": "", "doc": "proportional gain"}
            | {"lower": None, "upper": None}
        ]
        live.pause()
        thread = threading.Thread(target=live.run)
        thread.start()
        send(socket, kind="step")
        while live.time < 0.9e-3:
            time.sleep(0.01)
        send(socket, kind="set", path="pid.kp", value=20.0)
        assert heard(socket, "values")["values"] == {"pid.kp": 20.0}
        for wrong in ({"path": "motor.x", "value": 1.0}, {"path": "pid.kp", "value": "a"}, {}):
            send(socket, kind="set", **wrong)
        for garbage in (
            "{",
            "[]",
            '"text"',
            "[[1]]",
            b"\xff\x00",
            '{"kind": "no such"}',
            "9" * 4000,
        ):
            socket.send(garbage)
        send(socket, kind="set", path="pid.kp", value=float("inf"))
        assert "finite" in heard(socket, "refused")["text"]
        assert live.context.get("pid.kp") == 20.0
        send(socket, kind="resume")
        while live.time < 0.2:
            time.sleep(0.01)
        send(socket, kind="stop")
        thread.join(20.0)
        assert not thread.is_alive()
        rows = heard(socket, "rows")["rows"]
        assert len(rows[0]) == 3
        send(socket, kind="seek", share=0.5, span=0.05)
        while not (seen := heard(socket, "rows")).get("seek"):
            pass
        times, values = np.array(seen["rows"])[:, 0], np.array(seen["rows"])[:, 1]
        middle = 0.5 * (live["time"][0] + live["time"][-1])
        assert times[-1] == pytest.approx(middle, abs=2e-3)
        assert times[-1] - times[0] == pytest.approx(0.05, abs=2e-3)
        np.testing.assert_array_equal(values, np.interp(times, live["time"], live["motor.y"]))
        send(socket, kind="set", path="pid.kp", value=1.0)
        assert heard(socket, "values")["values"] == {"pid.kp": 1.0}
        send(socket, kind="continue", time=0.1)
        assert heard(socket, "values")["values"] == {"pid.kp": 20.0}
        assert live.time == pytest.approx(0.1)


@pytest.mark.full
def test_a_browser_that_floods_takes_nothing_or_vanishes_does_not_hold_up_a_run() -> None:
    from websockets.exceptions import ConnectionClosed, InvalidStatus

    with served(clock=OwnClock()) as (live, page):
        thread = threading.Thread(target=live.run)
        thread.start()
        with connected(page, max_queue=1) as silent, connected(page) as flooding:
            del silent  # which reads nothing
            for k in range(2000):
                send(flooding, kind="set", path="pid.kp", value=1.0 + k % 16)
            send(flooding, kind="stop")  # beyond the rate: it is not heard
            flooding.send("9" * 100_000)
            with pytest.raises(ConnectionClosed):
                heard(flooding, "nothing of this kind")
            before = live.time
            while live.time < before + 0.1:
                time.sleep(0.01)
        sockets = [connected(page) for _ in range(8)]
        opened = [each.__enter__() for each in sockets]
        assert all(heard(each, "hello") for each in opened)
        with pytest.raises(InvalidStatus, match="503"), connected(page):
            pass
        for each in opened:
            each.socket.close()  # without a word
        before = live.time
        while live.time < before + 0.1:
            time.sleep(0.01)
        live.stop()
        thread.join(20.0)
        assert not thread.is_alive()
        assert len(live["time"]) == round(live.time * 1000)


def test_browsers_that_leave_before_they_are_answered_are_forgotten() -> None:
    inside, gate = threading.Event(), threading.Event()

    def stall(time: float) -> float:
        inside.set()
        gate.wait(20.0)
        return 1.0

    with served(rate="max", inputs={"pid.setpoint": stall}) as (live, page):
        thread = threading.Thread(target=live.run)
        thread.start()
        inside.wait(20.0)
        for _ in range(9):
            with connected(page) as socket:
                heard(socket, "hello")
        gate.set()
        with connected(page) as socket:
            heard(socket, "rows")
        assert len(page._clients) <= 1
        live.stop()
        thread.join(20.0)


def test_a_missing_package_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "websockets.asyncio.server", None)
    with pytest.raises(fx.errors.MissingExtraError, match=r"pip install 'flexure\[live\]'"):
        fx.live(servo()).page(0)


@pytest.mark.full
def test_the_page_shows_a_run_that_goes_on_and_looks_back() -> None:
    with served(rate=1.0, period=0.01) as (live, page), running_chromium() as browser:
        thread = threading.Thread(target=live.run)
        thread.start()
        errors: list[str] = []
        for width in (1200, 390):
            view = browser.new_page(viewport={"width": width, "height": 800})
            view.on("pageerror", lambda error: errors.append(str(error)))
            view.on("console", lambda told: errors.append(told.text))
            view.goto(page.url)
            view.wait_for_function(
                "() => Number(document.getElementById('desk').dataset.drawn) > 10"
            )
            curves = view.locator("path.curve").evaluate_all(
                "paths => paths.map((path) => path.getBBox().width)"
            )
            assert len(curves) == 2
            assert min(curves) > 50
            assert view.evaluate("document.documentElement.scrollWidth") <= width
            field = view.locator("[id='value:pid.kp']")
            field.fill("18.5")
            field.press("Enter")
            view.get_by_role("button", name="Pause", exact=True).click()
            view.wait_for_function(
                "() => document.getElementById('state').textContent.includes('paused')"
            )
            assert live.context.get("pid.kp") == 18.5
            end = live.time
            view.get_by_role("slider", name="Look back").fill("500")
            onward = view.get_by_role("button", name="Continue from here")
            onward.wait_for(state="visible")
            boxes = view.locator("#desk .view").evaluate_all(
                "views => views.map((view) => view.getBoundingClientRect().width)"
            )
            assert min(boxes) > 0.7 * min(width, 900)
            onward.click()
            while live.time > 0.8 * end:
                time.sleep(0.01)
            view.get_by_role("button", name="Run", exact=True).click()
            view.close()
        live.stop()
        thread.join(20.0)
        assert errors == []
