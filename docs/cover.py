"""Draw the picture of the README: a door in motion, a bent flexure, and a page that runs.

    python docs/cover.py

It needs Chromium and the extras ``fast``, ``pages`` and ``test``, and writes
docs/_static/cover.png.
"""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import flexure as fx  # noqa: E402
from examples import compliant_door  # noqa: E402
from tests.support.pages.browser import running_chromium  # noqa: E402

_TITLE: dict[str, Any] = {"loc": "left", "fontsize": 10, "color": "dimgray"}


def leaf() -> fx.results.LoadPath:
    """Push the platform of a guide of two leaves sideways."""
    builder = fx.PlantBuilder("guide", gravity=(0, 0, 0))
    inertia = fx.SpatialInertia.solid_box(0.2, size=(0.012, 0.08, 0.02))
    platform = builder.add_body("platform", inertia)
    joint = builder.add_joint(fx.RpyFloatingJoint("platform", builder.world, platform))
    joint.default_pose = np.eye(3), (0.1, 0, 0)
    guide = fx.ParallelGuide(
        "guide", builder.world, platform, distance=0.06, length=0.1, width=0.02, thickness=4e-4,
        material=fx.Material.common("stainless steel 301"), segments=4, planar=True,
    )  # fmt: skip
    builder.add_assembly(guide)
    builder.add_external_force("push", platform)
    return fx.load_path(builder.build(), {"push[fy]": 14.0})


def page(servo: fx.Diagram, folder: Path) -> bytes:
    """Return a picture of the page of a diagram."""
    file = folder / "door.html"
    fx.page(servo, 6.0, path=file, units={"rad": "deg"})
    with running_chromium() as chromium:
        view = chromium.new_page(viewport={"width": 1000, "height": 900})
        view.goto(file.as_uri())
        view.locator("body[data-drawn][data-runs]").wait_for()
        view.wait_for_timeout(1500)
        return view.screenshot()


def main() -> None:
    """Put the three pictures side by side."""
    import matplotlib.pyplot as plt

    servo = compliant_door.build()
    result = fx.simulate(servo, 10.0)
    figure, axes = plt.subplots(1, 3, figsize=(12.0, 3.9), width_ratios=[1.0, 1.0, 1.15])
    door = servo["door"]
    assert isinstance(door, fx.Plant)
    fx.plot_mechanism(door, result.context_at(0.9), forces=True, ax=axes[0], title="a door servo")
    path = leaf()
    plant = path.context(-1).system
    assert isinstance(plant, fx.Plant)
    fx.plot_mechanism(
        plant,
        path.context(-1),
        stress=True,
        view="xy",
        ax=axes[1],
        title="a bent guide",
    )
    with tempfile.TemporaryDirectory() as folder:
        axes[2].imshow(plt.imread(io.BytesIO(page(servo, Path(folder)))))
    axes[2].set_title("the servo as a page that runs", **_TITLE)
    axes[2].set_axis_off()
    figure.savefig(ROOT / "docs" / "_static" / "cover.png", dpi=140, bbox_inches="tight")


if __name__ == "__main__":
    main()
