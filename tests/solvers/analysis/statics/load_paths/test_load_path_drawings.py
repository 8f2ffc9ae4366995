"""Pictures and animations of a mechanism along its load path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex

import flexure as fx
from flexure.solvers.results.mechanisms.flexure_shapes import StressColors, ribbons

STROKE, MOST = "axis.translation", 4e-3
SOFT = fx.Material(2e9, poissons_ratio=0.4, density=1e3)


@pytest.fixture(scope="module")
def path() -> fx.results.LoadPath:
    """A guided leaf that is pushed aside, by small steps at first."""
    builder = fx.PlantBuilder("guide", gravity=(0.0, 0.0, 0.0))
    size = fx.SpatialInertia.solid_box(0.05, size=(0.01, 0.01, 0.01))
    block = builder.add_body("block", size)
    builder.add_joint(fx.PrismaticJoint("axis", builder.world, block, axis=(0, 1, 0)))
    foot = builder.add_frame("foot", builder.world, (-0.1, 0.0, 0.0))
    leaf: dict[str, Any] = {"length": 0.1, "width": 0.02, "thickness": 2.5e-3, "material": SOFT}
    builder.add_force_element(fx.LeafSpring("leaf", foot, block, **leaf))
    strokes = [0.0, 1e-5, 2e-5, 3e-5, *np.linspace(0.5e-3, MOST, 8)]
    return fx.load_path(builder.build(), {STROKE: strokes})


def slabs(ax: Any) -> list[Any]:
    """Return the faces of flexures, which alone have thin lines of their own color around them."""
    faces = [each for each in ax.collections if len(each.get_paths())]
    return [each for each in faces if each.get_alpha() is None and each.get_linewidth()[0] > 1.0]


def test_states_are_spread_evenly_and_share_one_scale_of_stresses(
    path: fx.results.LoadPath,
) -> None:
    ax = path.plot_mechanism(num_equilibria=3, view="xy", stress=True)
    (ribbon,) = ribbons(path.system, path.context(0))  # type: ignore[arg-type]
    stresses = path["leaf.stress"]
    colors = StressColors([ribbon], path.context(0), [stresses[-1:]])
    half = int(np.argmin(np.abs(path[STROKE] - 0.5 * MOST)))
    expected = [name for k in (0, half, -1) for name in colors(ribbon.along(stresses[k]))]
    found = [to_hex(each.get_facecolor()[0]) for each in slabs(ax)]
    assert sorted(found) == sorted(expected)
    assert ax.get_title(loc="left") == "axis.translation from 0 to 0.004"
    assert ax.figure.axes[1].get_ylim()[1] == pytest.approx(np.max(stresses))
    plt.close("all")


def test_the_last_state_is_in_front_and_bodies_of_the_others_are_pale(
    path: fx.results.LoadPath,
) -> None:
    ax = path.plot_mechanism(num_equilibria=4, view="xy", title="Guide")
    blocks: list[Any] = [
        each for each in ax.collections if len(each.get_paths()) and each not in slabs(ax)
    ]
    heights = [np.mean(each.get_paths()[0].vertices[:4, 1]) for each in blocks]
    np.testing.assert_allclose(np.sort(heights), np.linspace(0.0, MOST, 4), atol=0.3e-3)
    front = max(blocks, key=lambda each: each.get_zorder())
    assert front.get_alpha() is None
    assert np.mean(front.get_paths()[0].vertices[:4, 1]) == pytest.approx(MOST)
    assert all(each.get_alpha() < 0.5 for each in blocks if each is not front)
    assert ax.get_title(loc="left") == "Guide"
    plt.close("all")


def test_an_animation_goes_from_the_first_to_the_last_state(
    path: fx.results.LoadPath, tmp_path: Path
) -> None:
    shown = path.animate(fps=2, view="xy", stress=True, path=tmp_path / "guide.html")
    text = (tmp_path / "guide.html").read_text(encoding="utf-8")
    assert "axis.translation = 0.004" in text
    assert "stress 0" in text
    assert shown is not None
    plt.close("all")


def test_odd_wishes_are_refused(path: fx.results.LoadPath) -> None:
    for count in (1, 2.5, 10**6):
        with pytest.raises(fx.errors.FlexureError, match="a whole number of states"):
            path.plot_mechanism(num_equilibria=count)  # type: ignore[arg-type]
    with pytest.raises(fx.errors.FlexureError, match="a plant"):
        path.animate(3)  # type: ignore[arg-type]
