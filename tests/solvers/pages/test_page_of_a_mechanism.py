"""A page of a plant shows it in 3-D, where the run in the page has brought it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import flexure as fx
from examples.compliant_door import build as door
from flexure.solvers.results.mechanisms.camera import Camera
from tests.support.pages import opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytest.importorskip("plotly")

SEEN = "() => { const {mechanism} = document.querySelector('#mechanism canvas');"
SEEN += "mechanism.draw(); return mechanism.seen(); }"


@pytest.mark.parametrize("live", [True, False], ids=["that runs", "as recorded"])
def test_the_door_turns_as_far_as_a_simulation_says(
    live: bool, browser: Browser, tmp_path: Path
) -> None:
    servo = door()
    servo_result = fx.simulate(servo, 3.0, rtol=1e-8)
    page = fx.page(servo, 3.0, rtol=1e-8) if live else servo_result.page()
    with opened(browser, page, tmp_path) as shown:
        at_start = shown.visit.page.evaluate(SEEN)
        shown.visit.page.locator("#player input[type=range]").press("End")
        at_end = shown.visit.page.evaluate(SEEN)
    angle = float(servo_result["door.axis.angle"][-1])
    camera = Camera((at_end["camera"]["azimuth"], at_end["camera"]["elevation"]))
    origin = np.array(at_end["bodies"][1])
    corner = np.array([-0.6 * np.sin(angle), 0.6 * np.cos(angle), 0.35])  # near to the edge
    right, up, _ = camera(corner)
    expected = origin + at_end["scale"] * np.array([right, -up])
    corners = [np.concatenate([f["corners"] for f in each["faces"]]) for each in (at_start, at_end)]
    off = [np.min(np.linalg.norm(each - expected, axis=1)) for each in corners]
    assert off[1] < 0.02 * at_end["scale"]  # half of the thickness, and the view
    assert off[0] > 0.1 * at_end["scale"]
