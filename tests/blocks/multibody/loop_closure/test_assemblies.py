"""Putting mechanisms together: within limits, in all ways, and against closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.errors import EvaluationError
from tests.blocks.multibody.constraints.test_closed_loops import (
    COUPLER,
    CRANK,
    GROUND,
    ROCKER,
    four_bar,
    rigid_four_bar,
)

UP = (0, -1, 0)


def test_a_four_bar_has_two_configurations_for_each_angle_of_its_crank() -> None:
    """The other one is the mirror image in the line from the tip of the crank to the foot."""
    linkage, context = four_bar()
    found = linkage.find_assemblies(context, fixed="shaft", starts=25)
    tip = CRANK * np.array([np.cos(1.5), np.sin(1.5)])
    line = np.arctan2(-tip[1], GROUND - tip[0])
    rocker = rigid_four_bar(1.5)[1]
    expected = [rocker, 2.0 * line - rocker]
    angles = [linkage.joint("foot").positions.get(each)[0] for each in found]
    assert np.exp(1j * np.array(angles)) == pytest.approx(np.exp(1j * np.array(expected)), abs=1e-9)
    assert found[0] == context
    again = linkage.find_assemblies(context, fixed="shaft", starts=25, seed=7)
    assert [linkage.joint("foot").positions.get(each)[0] for each in again] == pytest.approx(angles)


@pytest.mark.full
def test_the_crank_has_two_angles_within_reach_of_its_rocker_and_none_beyond() -> None:
    linkage, context = four_bar()
    assert len(linkage.find_assemblies(context, fixed="foot", starts=25)) == 2
    linkage.joint("foot").positions.set(context, [0.5])
    assert GROUND + CRANK + COUPLER > ROCKER
    assert linkage.find_assemblies(context, fixed="foot", starts=10) == ()
    with pytest.raises(EvaluationError, match=r"'pin' by"):
        linkage.assemble(context, fixed="foot")


def slider_crank(offset: float = 0.1, lowest: float = 0.0) -> fx.Plant:
    """Build a crank of 0.3 m with a rod of 0.7 m, and a slider on a line beside the shaft."""
    builder = fx.PlantBuilder("press")
    crank, rod = (
        builder.add_body(name, fx.SpatialInertia.thin_rod(1.0, length=length, axis="x"))
        for name, length in {"crank": 0.3, "rod": 0.7}.items()
    )
    slider = builder.add_body("slider", fx.SpatialInertia.point_mass(1.0))
    tip = builder.add_frame("tip", crank, (0.3, 0.0, 0.0))
    end = builder.add_frame("end", rod, (0.7, 0.0, 0.0))
    rail = builder.add_frame("rail", builder.world, (0.0, 0.0, offset))
    builder.add_joint(fx.RevoluteJoint("shaft", builder.world, crank, axis=UP))
    builder.add_joint(fx.RevoluteJoint("knee", tip, rod, axis=UP))
    builder.add_joint(
        fx.PrismaticJoint("slide", rail, slider, axis=(1, 0, 0), position_limits=(lowest, 2.0))
    )
    builder.add_loop_joint(fx.RevoluteJoint("pin", end, slider, axis=UP))
    return builder.build()


@pytest.mark.full
def test_a_slider_is_where_its_limits_let_it_be() -> None:
    """x = r cos φ ± √(l² - (r sin φ - e)²), of which the positive one is within its limits."""
    plant = slider_crank()
    context = plant.create_default_context()
    plant.set_positions(context, [0.8, 2.0, 0.0])
    (found,) = plant.find_assemblies(context, fixed="shaft", starts=25)
    expected = 0.3 * np.cos(0.8) + np.sqrt(0.7**2 - (0.3 * np.sin(0.8) - 0.1) ** 2)
    slide = plant.joint("slide")
    assert slide.positions.get(found)[0] == pytest.approx(expected, abs=1e-9)
    plant.assemble(context, fixed="shaft")
    assert slide.positions.get(context)[0] == pytest.approx(expected, abs=1e-9)
    other = slider_crank()
    start = other.create_default_context()
    other.set_positions(start, [0.8, 2.0, -0.4])  # nearer to what its limits forbid
    other.assemble(start, fixed="shaft")
    assert other.joint("slide").positions.get(start)[0] == pytest.approx(expected, abs=1e-9)


@pytest.mark.full
def test_what_cannot_be_closed_within_limits_says_which_joint_is_at_them() -> None:
    plant = slider_crank(offset=0.0, lowest=1.2)
    with pytest.raises(EvaluationError, match=r"'pin' by 0\.2; at its limits: 'slide'"):
        plant.assemble(plant.create_default_context())


def test_a_slider_crank_has_dead_points_where_crank_and_rod_are_in_line() -> None:
    plant = slider_crank(offset=0.0)
    context = plant.create_default_context()
    plant.set_positions(context, [0.0, 0.0, 1.0])
    with pytest.warns(UserWarning, match="dead point"):
        assert plant.assemble(context, fixed="slide").singularity == "dead point"
    assert plant.assemble(context, fixed="shaft").singularity is None


def rssr(**lengths: float) -> fx.Plant:
    """Build two cranks on crossed shafts, with a massless rod between their tips."""
    builder = fx.PlantBuilder("spatial")
    a, b, rod = lengths["a"], lengths["b"], lengths["rod"]
    inertia = fx.SpatialInertia.thin_rod(1.0, length=0.3, axis="x")
    crank, rocker = (builder.add_body(name, inertia) for name in ("crank", "rocker"))
    side = builder.add_frame("side", builder.world, (1.0, 0.2, 0.1))
    tips = [
        builder.add_frame(f"{body.name}_tip", body, (length, 0.0, 0.0))
        for body, length in ((crank, a), (rocker, b))
    ]
    builder.add_joint(fx.RevoluteJoint("shaft", builder.world, crank, axis=(0, 0, 1)))
    builder.add_joint(fx.RevoluteJoint("foot", side, rocker, axis=(0, 1, 0)))
    builder.add_constraint(
        fx.constraints.DistanceConstraint("rod", tips[0], (0, 0, 0), tips[1], (0, 0, 0), rod)
    )
    return builder.build()


@pytest.mark.full
@pytest.mark.parametrize("angle", [0.3, 2.5])
def test_a_spatial_linkage_has_the_two_roots_of_its_closed_form(angle: float) -> None:
    """|s + b (cos ψ, 0, -sin ψ) - t|² = l², which is A cos ψ + B sin ψ = C."""
    plant = rssr(a=0.3, b=0.6, rod=1.1)
    context = plant.create_default_context()
    plant.joint("shaft").positions.set(context, [angle])
    found = plant.find_assemblies(context, fixed="shaft")
    d = np.array([1.0, 0.2, 0.1]) - 0.3 * np.array([np.cos(angle), np.sin(angle), 0.0])
    A, B, C = 2.0 * 0.6 * d[0], -2.0 * 0.6 * d[2], 1.1**2 - d @ d - 0.6**2
    middle, half = np.arctan2(B, A), np.arccos(C / np.hypot(A, B))
    angles = sorted(float(plant.joint("foot").positions.get(each)[0]) for each in found)
    assert angles == pytest.approx(sorted([middle - half, middle + half]), abs=1e-9)


def test_configurations_without_end_are_refused_with_the_number_of_ways_to_move() -> None:
    linkage, context = four_bar()
    with pytest.raises(EvaluationError, match=r"free motions left: 1\..*fixed="):
        linkage.find_assemblies(context)


def test_velocities_fit_in_every_configuration() -> None:
    linkage, context = four_bar()
    linkage.joint("shaft").velocities.set(context, [2.0])
    for each in linkage.find_assemblies(context, fixed="shaft", starts=10):
        assert linkage.joint("shaft").velocities.get(each) == pytest.approx([2.0])
        rates = linkage.tree.output_port("pin_error_rate").eval(each)
        assert rates == pytest.approx(np.zeros(5), abs=1e-9)


@pytest.mark.parametrize("options", [{"starts": -1}, {"seed": 0.5}, {"tolerance": 0.0}])
def test_odd_options_are_refused(options: dict[str, Any]) -> None:
    linkage, context = four_bar()
    with pytest.raises(fx.errors.FlexureError, match="linkage"):
        linkage.find_assemblies(context, "shaft", **options)
