"""The canvas of a page shows mechanisms where their poses are, and turns when people ask for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
import pytest

import flexure as fx
from flexure.solvers.results.mechanisms.camera import Camera
from tests.support.pages.browser import Visit, visiting
from tests.support.pages.scenes import contains, plant_of, seen_first, things

if TYPE_CHECKING:
    from playwright.sync_api import Browser

TITLE = "</script><b>falls</b>"


@contextmanager
def player(
    browser: Browser, result: fx.results.SimulationResult, folder: Path, **options: Any
) -> Iterator[Visit]:
    """Open the page of an animation, and stop it."""
    size = {key: options.pop(key) for key in ("width", "height") if key in options}
    fx.animate(result, path=folder / "motion.html", **options)
    with visiting(browser, folder / "motion.html", **size) as visit:
        seek(visit, 0)
        yield visit


def seek(visit: Visit, moment: int) -> dict[str, Any]:
    """Go to a moment, and return what is seen."""
    found: dict[str, Any] = visit.page.evaluate(
        "(k) => { mechanism.seek(k); mechanism.draw(); return mechanism.seen(); }", moment
    )
    return found


def look(visit: Visit, azimuth: float, elevation: float) -> dict[str, Any]:
    found: dict[str, Any] = visit.page.evaluate(
        "(a) => { mechanism.look(...a); mechanism.draw(); return mechanism.seen(); }",
        [azimuth, elevation],
    )
    return found


def seen(visit: Visit) -> dict[str, Any]:
    """Return what is seen now."""
    found: dict[str, Any] = visit.page.evaluate(
        "() => { mechanism.draw(); return mechanism.seen(); }"
    )
    return found


@pytest.fixture(scope="module")
def chain() -> fx.results.SimulationResult:
    """Two boxes on ball joints, with a damped spring and a bushing."""
    builder = fx.PlantBuilder("chain")
    above: Any = builder.world
    joints = []
    for k in range(2):
        box = fx.SpatialInertia.solid_box(1.0, size=(0.1, 0.2, 0.5))
        body = builder.add_body(f"link{k}", box, com=(0.0, 0.0, -0.25))
        joints.append(builder.add_joint(fx.BallRpyJoint(f"ball{k}", above, body)))
        above = builder.add_frame(f"end{k}", body, (0.0, 0.0, -0.5))
    builder.add_force_element(
        fx.LinearSpringDamper(
            "spring", builder.world, (1, 0, 0), body, (0, 0, -0.5), free_length=0.5,
            stiffness=20.0, damping=0.1,
        )
    )  # fmt: skip
    plant = builder.build()
    context = plant.create_default_context()
    joints[0].angles.set(context, [0.5, -0.4, 0.3])
    return fx.simulate(plant, 1.0, context=context)


def test_bodies_are_where_their_poses_are_at_each_moment(
    browser: Browser, chain: fx.results.SimulationResult, tmp_path: Path
) -> None:
    times = np.linspace(0.0, 1.0, 11)
    second = chain.sample("link1.position", times)
    with player(browser, chain, tmp_path, fps=10, view=(-60, 20)) as visit:
        for azimuth, elevation in ((-60.0, 20.0), (140.0, -35.0)):
            look(visit, azimuth, elevation)
            camera = Camera((azimuth, elevation))
            for k in (0, 4, 10):
                shown = seek(visit, k)
                world, _, body = (np.array(place) for place in shown["bodies"])
                right, up, _ = camera(second[k])
                np.testing.assert_allclose((body - world) / shown["scale"], [right, -up], atol=1e-5)


def test_all_that_is_ever_reached_is_on_the_canvas(
    browser: Browser, chain: fx.results.SimulationResult, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"forces": True, "trace": [chain.system.body("link1")]}  # type: ignore[attr-defined]
    with player(browser, chain, tmp_path, fps=10, width=400, height=420, **options) as visit:
        for k in range(11):
            corners = np.concatenate([face["corners"] for face in seek(visit, k)["faces"]])
            assert np.all(corners > 0.0)
            assert np.all(corners < [400.0, 420.0])
        assert visit.page.evaluate("document.documentElement.scrollWidth") == 400


def test_things_hide_each_other_as_they_do_along_lines_of_sight(
    browser: Browser, tmp_path: Path
) -> None:
    made = things(4, count=9)
    plant = plant_of(made)
    result = fx.simulate(plant, 0.1)
    compared = 0
    with player(browser, result, tmp_path, fps=10) as visit:
        for azimuth, elevation in ((-60.0, 20.0), (100.0, 50.0)):
            shown = look(visit, azimuth, elevation)
            camera = Camera((azimuth, elevation))
            origin, scale = np.array(shown["bodies"][0]), shown["scale"]
            faces = [(each["body"], np.array(each["corners"])) for each in shown["faces"]]
            for place in np.random.default_rng(5).uniform(-1.2, 1.2, (60, 2)):
                expected, clear = seen_first(made, place @ camera.axes[:2], camera.axes[2])
                if clear < 0.02:
                    continue
                pixel = origin + scale * place * [1.0, -1.0]
                painted = [body for body, face in faces if contains(face, pixel)]
                assert (painted[-1] - 1 if painted else -1) == expected
                compared += 1
    assert compared > 80


def test_keys_mouse_wheel_and_buttons_turn_and_zoom(
    browser: Browser, chain: fx.results.SimulationResult, tmp_path: Path
) -> None:
    with player(browser, chain, tmp_path, fps=5, title=TITLE) as visit:
        page = visit.page
        assert page.locator("#caption").inner_text() == f"{TITLE}, t = 0.00 s"
        first = seen(visit)
        page.keyboard.press("Tab")  # the canvas can be reached, and says what it is
        assert "chain in 3-D" in page.evaluate("document.activeElement.getAttribute('aria-label')")
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("ArrowUp")
        turned = seen(visit)["camera"]
        assert turned["azimuth"] == first["camera"]["azimuth"] + 6
        assert turned["elevation"] == first["camera"]["elevation"] + 6
        page.keyboard.press("+")
        assert seen(visit)["scale"] == pytest.approx(1.2 * first["scale"], rel=0.2)
        page.keyboard.press("0")
        assert seen(visit)["camera"] == first["camera"]
        page.mouse.move(300, 300)
        page.mouse.down()
        page.mouse.move(340, 280)
        page.mouse.up()
        assert seen(visit)["camera"]["azimuth"] == first["camera"]["azimuth"] - 20
        page.mouse.wheel(0, -300)
        assert seen(visit)["camera"]["zoom"] > 1.2
        page.get_by_role("button", name="View xy").click()
        assert seen(visit)["camera"] | {"zoom": 1} == {
            "azimuth": -90,
            "elevation": 90,
            "zoom": 1,
            "pan": [0, 0],
        }
        page.get_by_role("button", name="Play").click()
        page.wait_for_function("document.getElementById('caption').textContent !== ''")
        assert page.locator("#play").inner_text() == "Pause"


def test_a_notebook_shows_the_same_canvas_in_a_frame(
    browser: Browser, chain: fx.results.SimulationResult, tmp_path: Path
) -> None:
    shown = fx.animate(chain, fps=5, title=TITLE)._repr_html_()
    file = tmp_path / "notebook.html"
    file.write_text(f"<!DOCTYPE html><meta charset='utf-8'>{shown}", encoding="utf-8")
    plt.close("all")
    with visiting(browser, file) as visit:
        frame = visit.page.frame_locator("iframe")
        assert TITLE in frame.locator("#caption").inner_text()
        assert frame.locator("canvas").evaluate("(canvas) => canvas.mechanism.seen().faces.length")
