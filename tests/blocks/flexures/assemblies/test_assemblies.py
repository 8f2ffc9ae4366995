"""Assemblies of leaves: stiffness and parasitic motion against the textbook, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.errors import FlexureError, WiringError
from tests.support.tiers import by_tier, for_each

E, WIDTH, THICKNESS, LENGTH = 193e9, 0.01, 3e-4, 0.05
STEEL = fx.Material(E, shear_modulus=78e9, density=7880.0, name="steel")
EI = E * WIDTH * THICKNESS**3 / 12.0
LEAF: dict[str, Any] = {
    "length": LENGTH,
    "width": WIDTH,
    "thickness": THICKNESS,
    "material": STEEL,
    "shear": False,
}


def plant_with(kind: str, **options: Any) -> tuple[fx.Plant, fx.Body]:
    """Build a body on an assembly that takes a force, and return it with its plant."""
    builder = fx.PlantBuilder("stage", gravity=(0.0, 0.0, 0.0))
    body = builder.add_body("body", fx.SpatialInertia.solid_box(mass=0.1, size=(0.02, 0.02, 0.02)))
    leaf = LEAF | options
    if kind == "parallel":
        end = builder.add_frame("end", body, (LENGTH, 0.0, 0.0))
        builder.add_assembly(fx.ParallelGuide("guide", builder.world, end, distance=0.03, **leaf))
    elif kind == "folded":
        shuttle = fx.SpatialInertia.solid_box(mass=0.02, size=(0.005, 0.06, 0.01))
        guide = fx.FoldedGuide(
            "guide",
            builder.world,
            body,
            outer_distance=0.06,
            inner_distance=0.02,
            shuttle=shuttle,
            **leaf,
        )
        builder.add_assembly(guide)
    else:
        builder.add_assembly(fx.CrossPivot("guide", builder.world, body, **leaf))
    builder.add_external_force("push", body)
    return builder.build(), body


def pose_under(kind: str, load: list[float], **options: Any) -> Any:
    """Return the pose of the body at rest under a load, and its plant and context."""
    plant, body = plant_with(kind, **options)
    path = fx.load_path(plant, {"push": load})
    context = path.context(-1)
    return body.pose(context), plant, context


def test_a_parallel_guide_is_as_stiff_and_shortens_as_the_textbook_says() -> None:
    stroke = 1e-3
    force = 24.0 * EI / LENGTH**3 * stroke
    pose, _, _ = pose_under("parallel", [0.0, 0.0, 0.5 * LENGTH * force, 0.0, force, 0.0])
    x, y, z = pose.p
    assert y == pytest.approx(stroke, rel=1e-3)
    assert x == pytest.approx(-0.6 * y**2 / LENGTH, rel=2e-3)
    assert abs(z) < 1e-15
    turn = np.arctan2(pose.R[1, 0], pose.R[0, 0])
    assert abs(turn) < 1e-2 * stroke / LENGTH  # leaves that stretch let it turn a little


@pytest.mark.full
def test_a_folded_guide_goes_straight_with_half_of_the_stiffness() -> None:
    stroke = 1e-3
    force = 12.0 * EI / LENGTH**3 * stroke
    pose, plant, context = pose_under("folded", [0.0, 0.0, 0.0, 0.0, force, 0.0])
    x, y, _ = pose.p
    assert y == pytest.approx(stroke, rel=1e-2)
    assert abs(x) < 1e-3 * 0.6 * y**2 / LENGTH
    shuttle = plant.body("guide_shuttle").pose(context).p
    assert shuttle[1] == pytest.approx(0.5 * y, rel=1e-2)


def test_a_cross_pivot_meets_a_moment_with_two_ei_over_l() -> None:
    angle = 0.01
    pose, _, _ = pose_under("pivot", [0.0, 0.0, 2.0 * EI / LENGTH * angle, 0.0, 0.0, 0.0])
    assert np.arctan2(pose.R[1, 0], pose.R[0, 0]) == pytest.approx(angle, rel=1e-4)
    # Where the center goes: both leaves, bent to arcs, shorten, and their ends meet again.
    assert np.linalg.norm(pose.p) == pytest.approx(
        np.sqrt(2.0) / 12.0 * angle**2 * LENGTH, rel=1e-3
    )


def test_each_leaf_has_parameters_of_its_own() -> None:
    plant, _ = plant_with("parallel")
    context = plant.create_default_context()
    context.set("guide_leaf1.thickness", 4e-4)
    assert context.get("guide_leaf2.thickness") == THICKNESS


def test_a_length_moves_the_ends_of_all_leaves_with_what_they_carry() -> None:
    """The second route builds the same plant with the other length."""
    other = 1.3 * LENGTH
    divided: list[tuple[str, dict[str, Any]]] = [
        ("pivot", {"crossing": 0.3, "segments": 3, "angle": 1.2, "gap": 0.01}),
        ("folded", {"segments": 2}),
    ]
    for kind, options in (("pivot", {"damping_time": 1e-4}), *by_tier(fast=[], full=divided)):
        plant, _ = plant_with(kind, **options)
        context = plant.create_default_context()
        context.set("guide.length", other)
        if "segments" in options:  # whose nodes are where they were
            with pytest.raises(FlexureError, match="length"):
                fx.simulate(plant, 1e-4, context=context)
        else:
            fx.simulate(plant, 1e-4, context=context)  # it begins without strain
        context = fx.equilibrium(plant, context=context).context
        assert context.get("guide_leaf2.length") == other
        built, _ = plant_with(kind, **options | {"length": other})
        found, wanted = (
            fx.stiffness(each, "body", context=at).compliance
            for each, at in ((plant, context), (built, built.create_default_context()))
        )
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6 * np.abs(wanted).max())
        if kind == "pivot":  # the mass of a shuttle stays where it was
            assert fx.modes(plant, context)[0].frequency == pytest.approx(
                fx.modes(built)[0].frequency, rel=1e-6
            )
    plant, body = plant_with("parallel")
    context = plant.create_default_context()
    context.set("guide.length", other)
    context = fx.equilibrium(plant, context=context).context
    np.testing.assert_allclose(body.pose(context).p, [other - LENGTH, 0.0, 0.0], atol=1e-12)


def test_tied_parameters_have_one_value_or_none() -> None:
    plant, _ = plant_with("pivot")
    context = plant.create_default_context()
    thickness = plant.find("guide.thickness")
    thickness.set(context, 2e-4)
    assert thickness.get(context) == context.get("guide_leaf2.thickness") == 2e-4
    with pytest.raises(FlexureError, match=r"guide\.thickness"):
        context.set("guide.thickness", -1.0)
    assert thickness.get(context) == 2e-4
    plans = fx.plans.zipped({"guide.thickness": [2e-4, 4e-4]})
    swept = fx.sweep(plant, plans, 1e-4, metrics=fx.metrics.final("guide_leaf2.thickness"))
    np.testing.assert_array_equal(swept.values["guide.thickness"], [2e-4, 4e-4])
    assert swept.context(1).get("guide_leaf2.thickness") == 4e-4
    context.set("guide_leaf1.thickness", 3e-4)
    with pytest.raises(FlexureError, match=r"(?s)guide\.thickness.*guide_leaf2\.thickness"):
        context.get("guide.thickness")
    with pytest.raises(FlexureError, match=r"Did you mean 'guide\.thickness'"):
        context.get("guide.thicknes")


def test_searches_and_exports_have_a_tied_parameter_as_one() -> None:
    plant, _ = plant_with("pivot")
    least, fast = fx.metrics.at_rest("guide.thickness"), fx.metrics.frequency() >= 20.0
    found = fx.optimize(plant, {"guide.thickness": (1e-4, 9e-4)}, least, [fast], population=5)
    assert str(found).count("\nguide.thickness ") == 1
    assert "leaf" not in str(found)
    assert "guide.thickness" in found.table().columns
    best = found.values["guide.thickness"]
    assert best == found["guide.thickness"] == found.values["guide_leaf2.thickness"]
    context = plant.create_default_context()
    found.apply(context)
    assert context.get("guide_leaf2.thickness") == best
    assert fx.modes(plant, context)[0].frequency == pytest.approx(20.0, rel=1e-3)
    model = fx.to_c(plant, signals="positions", parameters="guide.thickness", step=1e-5)
    tunable = [row["path"] for row in model.info["parameters"]]
    assert tunable == ["guide_leaf1.thickness", "guide_leaf2.thickness"]
    page = fx.page(plant, 0.1, parameters=["guide.thickness"])
    assert (
        '"tied":{"guide.thickness":["guide_leaf1.thickness","guide_leaf2.thickness"]}' in page.html
    )


def test_options_of_leaves_are_handed_on() -> None:
    plant, _ = plant_with("pivot", segments=2, damping_time=1e-4)
    assert "guide_leaf1_node1" in [body.name for body in plant.bodies]
    assert plant.create_default_context().get("guide_leaf1.damping_time") == 1e-4


def test_a_refused_assembly_adds_nothing() -> None:
    builder = fx.PlantBuilder("stage")
    body = builder.add_body("body", fx.SpatialInertia.point_mass(1.0))
    builder.add_body("guide_leaf4", fx.SpatialInertia.point_mass(1.0))
    shuttle = fx.SpatialInertia.point_mass(0.1)
    guide = fx.FoldedGuide(
        "guide",
        builder.world,
        body,
        outer_distance=0.06,
        inner_distance=0.02,
        shuttle=shuttle,
        **LEAF,
    )
    with pytest.raises(WiringError, match="guide_leaf4"):
        builder.add_assembly(guide)
    assert len(builder.bodies) == 3
    assert not builder.joints
    assert not builder.force_elements


@for_each(
    ("kind", "wrong"),
    [
        (fx.CrossPivot, {"angle": 0.0}),
        (fx.CrossPivot, {"crossing": 1.0}),
        (fx.CrossPivot, {"thickness": 0.0}),
        (fx.CrossPivot, {"length": np.nan}),
        (fx.ParallelGuide, {"distance": -0.1}),
        (fx.FoldedGuide, {"outer_distance": 0.05, "inner_distance": 0.01, "shuttle": 3.0}),
    ],
)
def test_what_makes_no_assembly_is_refused_by_name(kind: Any, wrong: dict[str, Any]) -> None:
    with pytest.raises(FlexureError, match=r"guide|Section"):
        kind("guide", fx.Body("a"), fx.Body("b"), **(LEAF | wrong))
