"""Load paths on screen: what is along the axes, what is stable, and what is special."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest

import flexure as fx
from flexure.errors import FlexureError

STEEL = fx.Material.common("stainless steel 301")


@pytest.fixture(autouse=True)
def no_figures_stay() -> Iterator[None]:
    yield
    plt.close("all")


def truss() -> fx.Plant:
    """Build a tip on two inclined springs, which snaps through."""
    builder = fx.PlantBuilder("truss", gravity=(0.0, 0.0, 0.0))
    tip = builder.add_body("tip", fx.SpatialInertia.point_mass(0.5))
    slide = builder.add_joint(fx.PrismaticJoint("slide", builder.world, tip, axis=(0, 0, 1)))
    slide.default_translation = 0.1
    for side, x in (("left", -1.0), ("right", 1.0)):
        ends = builder.world, (x, 0.0, 0.0), tip, (0.0, 0.0, 0.0)
        length = float(np.hypot(1.0, 0.1))
        bar = fx.LinearSpringDamper(side, *ends, free_length=length, stiffness=1e3, damping=0.0)
        builder.add_force_element(bar)
    builder.add_external_force("push", tip)
    return builder.build()


def column() -> fx.Plant:
    """Build two links on springs under a weight, which buckle."""
    builder = fx.PlantBuilder("column", gravity=(0.0, 0.0, 0.0))
    inner: Any = builder.world
    for k in (0, 1):
        link = builder.add_body(f"link{k}", fx.SpatialInertia.point_mass(1.0), com=(0, 0, 1))
        axis = builder.add_joint(fx.RevoluteJoint(f"axis{k}", inner, link, axis=(0, 1, 0)))
        builder.add_force_element(fx.JointSpring(f"spring{k}", axis, stiffness=1.0))
        inner = builder.add_frame(f"end{k}", link, (0.0, 0.0, 1.0))
    top = builder.add_body("top", fx.SpatialInertia.point_mass(1.0))
    builder.add_joint(fx.WeldJoint("weld", inner, top))
    builder.add_external_force("weight", top)
    return builder.build()


def leaf() -> fx.Plant:
    """Build a leaf with a tip that moves in a plane."""
    builder = fx.PlantBuilder("cantilever", gravity=(0.0, 0.0, 0.0))
    tip = builder.add_body("tip", fx.SpatialInertia.solid_box(0.02, size=(0.004, 0.012, 0.024)))
    joint = builder.add_joint(fx.PlanarJoint("end", builder.world, tip))
    joint.default_pose = np.eye(3), (0.1, 0.0, 0.0)
    size: dict[str, Any] = {"length": 0.1, "width": 0.02, "thickness": 5e-4, "material": STEEL}
    builder.add_force_element(fx.LeafSpring("leaf", builder.world, tip, planar=True, **size))
    return builder.build()


@pytest.fixture(scope="module")
def snapping() -> fx.results.LoadPath:
    return fx.load_path(truss(), {"push[fz]": -1.0})


def curves(ax: Any) -> dict[str, Any]:
    """Return the lines of the path itself by their style."""
    full = next(each for each in ax.lines if each.get_gid() == "load path")
    color = full.get_color()
    dashed = next(e for e in ax.lines if e.get_linestyle() == "--" and e.get_color() == color)
    return {"stable": full, "unstable": dashed}


def drawn(line: Any) -> Any:
    """Return the points of a line that are not gaps."""
    points = line.get_xydata()
    return points[np.all(np.isfinite(points), axis=1)]


def words(ax: Any) -> list[str]:
    return [each.get_text() for each in ax.texts if each.get_text()]


def test_a_force_is_over_what_moves_with_names_and_units(snapping: fx.results.LoadPath) -> None:
    ax = snapping.plot()
    assert ax.get_title() == "truss"
    assert ax.get_xlabel() == "slide.translation [m]"
    assert ax.get_ylabel() == "push[fz] [N]"


def test_what_is_unstable_is_dashed(snapping: fx.results.LoadPath) -> None:
    lines = curves(snapping.plot())
    low, high = sorted(float(snapping["slide.translation"][p.index]) for p in snapping.special)
    assert lines["stable"].get_linestyle() == "-"
    stable, unstable = drawn(lines["stable"])[:, 0], drawn(lines["unstable"])[:, 0]
    assert np.all((stable <= low + 1e-9) | (stable >= high - 1e-9))
    assert np.all((unstable >= low - 1e-9) & (unstable <= high + 1e-9))
    # both together are the closed form of two springs, between the points as well
    for line in lines.values():
        z, force = drawn(line).T
        length = np.hypot(1.0, 0.1)
        closed = 2e3 * z * (1.0 - length / np.hypot(1.0, z))
        np.testing.assert_allclose(force, closed, atol=2e-4)


def test_limit_points_are_marked_and_labeled(snapping: fx.results.LoadPath) -> None:
    ax = snapping.plot()
    marks = [line for line in ax.lines if line.get_gid() == "special point"]
    places = sorted(tuple(np.ravel(mark.get_xydata())) for mark in marks)
    assert [mark.get_marker() for mark in marks] == ["o", "o"]
    wanted = sorted(
        (snapping["slide.translation"][p.index], p.values["push[fz]"]) for p in snapping.special
    )
    np.testing.assert_allclose(places, wanted)
    assert sorted(words(ax)) == ["limit point -0.383", "limit point 0.383"]


@pytest.mark.full
def test_branches_share_axes_and_the_label_of_their_point() -> None:
    straight = fx.load_path(column(), {"weight[fz]": -1.0})
    ax = straight.plot("axis0.angle", "weight[fz]")
    (mark,) = (line for line in ax.lines if line.get_gid() == "special point")
    assert mark.get_marker() == "D"
    for side in (1, -1):
        branch = fx.load_path(column(), {"weight[fz]": -1.0}, branch=side)
        assert branch.plot("axis0.angle", "weight[fz]", ax=ax) is ax
    paths = [line for line in ax.lines if line.get_gid() == "load path"]
    assert len({line.get_color() for line in paths}) == 3
    assert words(ax) == ["branch point -0.382"]
    box = next(each for each in ax.texts if each.get_text()).get_window_extent()
    for path in paths:  # of which two came after the label
        assert not any(box.contains(*each) for each in ax.transData.transform(drawn(path)))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("axis0.angle [rad]", "weight[fz] [N]")


def test_strokes_are_across_and_what_they_take_is_up() -> None:
    path = fx.load_path(truss(), {"tip.position[z]": [0.1, -0.12]})
    ax = path.plot()
    assert ax.get_xlabel() == "tip.position[z] [m]"
    assert ax.get_ylabel() == "required force along tip.position[z] [N]"
    # held, it is stable all along, and the force is zero at three places
    assert not drawn(curves(ax)["unstable"]).size
    assert np.sum(np.diff(np.sign(drawn(curves(ax)["stable"])[1:, 1])) != 0) == 2


def test_components_of_joints_that_turn_and_slide_have_their_own_units() -> None:
    path = fx.load_path(leaf(), {"generalized_force[end_fy]": np.linspace(0.0, 1.0, 3)})
    ax = path.plot()
    assert ax.get_xlabel() == "end.q[qz] [rad]"
    assert ax.get_ylabel() == "generalized_force[end_fy] [N]"
    ax = path.plot("end.q[y]", "generalized_force[end_tz]")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("end.q[y] [m]", "generalized_force[end_tz] [N m]")
    held = fx.load_path(leaf(), {"end.q[y]": [0.0, 0.01]})
    assert held.plot().get_ylabel() == "required force along end.q[y] [N]"


def test_it_is_saved_at_its_size(snapping: fx.results.LoadPath, tmp_path: Path) -> None:
    file = tmp_path / "path.png"
    snapping.plot(path=file)
    height, width = plt.imread(file).shape[:2]
    assert width > height > 300
    with pytest.raises(FlexureError, match=r"found 6 of 'push'. Name .*'push\[tx\]'"):
        snapping.plot("push")
    with pytest.raises(FlexureError, match=r"tip\.position'\?"):
        snapping.plot("tip.positio[z]")
