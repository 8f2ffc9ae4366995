"""Critical loads are those of closed forms: columns of links, and arches that snap through."""

from __future__ import annotations

import pickle
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import flexure as fx
from flexure.solvers.analysis.statics.buckling import buckling_shape
from tests.support.mechanics.beams import cantilever

DOWN = (0.0, 0.0, 0.0, 0.0, 0.0, -1.0)


@cache
def column(count: int) -> fx.Plant:
    """Rigid links of 1 m on torsion springs of 1 N m, upright, with a force on the last end."""
    builder = fx.PlantBuilder("column", gravity=(0.0, 0.0, 0.0))
    last = builder.world
    for k in range(count):
        link = builder.add_body(f"link{k}", fx.SpatialInertia.point_mass(1.0), com=(0.0, 0.0, 1.0))
        foot = builder.add_frame(f"foot{k}", last, (0.0, 0.0, 1.0 if k else 0.0))
        joint = builder.add_joint(fx.RevoluteJoint(f"joint{k}", foot, link, axis=(0, 1, 0)))
        builder.add_force_element(fx.JointSpring(f"spring{k}", joint, stiffness=1.0))
        last = link
    tip = builder.add_body("tip", fx.SpatialInertia.point_mass(1.0))
    end = builder.add_frame("end", last, (0.0, 0.0, 1.0))
    builder.add_joint(fx.WeldJoint("weld", end, tip))
    builder.add_external_force("push", tip)
    return builder.build()


def arch(height: float, *, sideways: bool = False, aside: float = 0.0) -> fx.Plant:
    """A point between two springs, 1 m from either wall and above their ends, pushed down."""
    builder = fx.PlantBuilder("arch", gravity=(0.0, 0.0, 0.0))
    middle = builder.add_body("middle", fx.SpatialInertia.point_mass(1.0))
    top = middle
    builder.add_joint(fx.PrismaticJoint("slot", builder.world, middle, (0, 0, 1)))
    if sideways:
        top = builder.add_body("top", fx.SpatialInertia.point_mass(1.0))
        side = builder.add_joint(fx.PrismaticJoint("side", middle, top, (1, 0, 0)))
        builder.add_force_element(fx.JointSpring("aside", side, stiffness=aside))
    builder.add_external_force("push", top)
    origin = (0.0, 0.0, 0.0)
    for name, x in (("left", -1.0), ("right", 1.0)):
        wall = builder.add_frame(f"{name}_wall", builder.world, (x, 0.0, -height))
        length = float(np.hypot(1.0, height))
        spring = fx.LinearSpringDamper(
            name, wall, origin, top, origin, free_length=length, stiffness=100.0, damping=0.0
        )
        builder.add_force_element(spring)
    return builder.build()


def arch_force(height: float, z: float) -> float:
    """The force on the arch when its point is at a height z above the ends."""
    return float(200.0 * (np.hypot(1.0, height) / np.hypot(1.0, z) - 1.0) * z)


def test_a_column_of_two_links_buckles_in_the_golden_ratio() -> None:
    found = fx.buckling(column(2), {"push": DOWN})
    expected = [(3.0 - np.sqrt(5.0)) / 2.0, (3.0 + np.sqrt(5.0)) / 2.0]
    np.testing.assert_allclose(found.factors, expected, rtol=1e-12)
    np.testing.assert_allclose(found.linear_factors, expected, rtol=1e-9)
    assert [each.kind for each in found] == ["bifurcation", "bifurcation"]
    first = found[0].shape
    assert first["joint0.angle"] == 1.0
    assert first["joint1.angle"] == pytest.approx((np.sqrt(5.0) - 1.0) / 2.0, rel=1e-9)


@pytest.mark.full
def test_shapes_are_drawn_over_the_critical_state_and_swing_about_it(tmp_path: Path) -> None:
    plant = column(2)
    found = fx.buckling(plant, {"push": DOWN})
    shape = buckling_shape(found[0], None, "Cannot draw")
    still, bent = shape._seen(np.array([0.0, 1.0])).poses[:, :, 9:]
    first, whole = np.diff((bent - still)[1:, 0])  # along x, of the ends of links of 1 m
    angle = np.arcsin(first)
    assert (np.arcsin(whole) - angle) / angle == pytest.approx((np.sqrt(5.0) - 1.0) / 2.0)
    ax = found.plot(1, path=tmp_path / "second.png")
    assert (tmp_path / "second.png").stat().st_size > 0
    assert ax.get_title(loc="left") == "bifurcation, factor 2.618"
    found.animate(path=tmp_path / "first.gif", fps=2)
    assert (tmp_path / "first.gif").stat().st_size > 0
    with pytest.raises(fx.errors.ValueRefusedError, match="one of 2 critical loads"):
        found.plot(2)
    builder, other = fx.DiagramBuilder("two"), arch(0.1)
    builder.add_all(column.__wrapped__(2), other)
    found = fx.buckling(builder.build(), {"column.push": DOWN})
    with pytest.raises(fx.errors.ValueRefusedError, match="a shape that moves 'arch'"):
        found.plot(0, other)


def test_factors_multiply_the_load_whatever_its_size_and_sign() -> None:
    for size in (1e-6, -1e3, 1e9):
        found = fx.buckling(column(2), {"push": size * np.array(DOWN)}, num_factors=1)
        assert found.factors[0] * size == pytest.approx((3.0 - np.sqrt(5.0)) / 2.0, rel=1e-9)


def test_a_prestress_stays_and_shifts_the_factors() -> None:
    plant = column(2)
    context = plant.create_default_context()
    plant.input_port("push").fix(context, 0.25 * np.array(DOWN))
    found = fx.buckling(plant, {"push": DOWN}, context=context, num_factors=1)
    assert found.factors[0] == pytest.approx((3.0 - np.sqrt(5.0)) / 2.0 - 0.25, rel=1e-9)
    np.testing.assert_allclose(
        plant.input_port("push").eval(found[0].context),
        (found.factors[0] + 0.25) * np.array(DOWN),
    )


def test_weight_is_a_load_like_others() -> None:
    plant = column(1)
    found = fx.buckling(plant, {plant.gravity: (0.0, 0.0, -9.81)})
    assert found.factors == pytest.approx([1.0 / (2.0 * 9.81)])  # link and tip, of 1 kg each
    assert list(found.loads) == ["tree.gravity"]


@pytest.mark.parametrize("height", [0.2, 1.0])
def test_a_shallow_arch_snaps_through_at_the_extreme_of_its_force(height: float) -> None:
    found = fx.buckling(arch(height), {"push": DOWN})
    extreme = minimize_scalar(
        lambda z: -arch_force(height, z), bounds=(0.0, height), options={"xatol": 1e-12}
    )
    assert found.factors == pytest.approx([-extreme.fun], rel=1e-10)
    assert found[0].kind == "limit"
    assert found.linear_factors[0] > 1.5 * found.factors[0]


def test_a_steep_arch_bends_aside_before_it_snaps_through() -> None:
    height = 2.5
    found = fx.buckling(arch(height, sideways=True), {"push": DOWN})
    free = np.hypot(1.0, height)
    length = minimize_scalar(  # where the stiffness sideways, 1 - L0/L (1 - 1/L²), vanishes
        lambda s: (1.0 - free / s * (1.0 - 1.0 / s**2)) ** 2,
        bounds=(1.8, free),
        options={"xatol": 1e-13},
    ).x
    assert found.factors[0] == pytest.approx(arch_force(height, np.sqrt(length**2 - 1.0)), rel=1e-6)
    assert [each.kind for each in found] == ["bifurcation", "limit"]
    assert found[0].shape["side.translation"] == 1.0
    assert abs(found[0].shape["slot.translation"]) < 1e-6
    assert (
        np.linalg.norm(
            fx.stiffness(found.context.system, "top", context=found[0].context).matrix[3]
        )
        < 1
    )


def test_factors_of_what_never_buckles_are_beyond_or_none() -> None:
    found = fx.buckling(arch(1.0, sideways=True), {"push": DOWN})
    assert found[-1].kind == "beyond"
    assert np.isnan(found.factors[-1])
    assert found.table()[-1]["factor"] is None
    builder = fx.PlantBuilder("rail", gravity=(0.0, 0.0, 0.0))
    cart = builder.add_body("cart", fx.SpatialInertia.point_mass(1.0))
    rail = builder.add_joint(fx.PrismaticJoint("rail", builder.world, cart, (1, 0, 0)))
    builder.add_force_element(fx.JointSpring("spring", rail, stiffness=3.0))
    builder.add_external_force("push", cart)
    straight = fx.buckling(builder.build(), {"push": (0.0, 0.0, 0.0, 1.0, 0.0, 0.0)})
    assert len(straight) == 0
    assert repr(straight) == "<Buckling of 'rail': factors none>"


def test_linear_factors_are_those_of_the_undeformed_state() -> None:
    height, step = 2.5, 1e-5
    found = fx.buckling(arch(height, sideways=True), {"push": DOWN}, refine=False)
    assert [each.kind for each in found] == ["linear", "linear"]
    np.testing.assert_array_equal(found.factors, found.linear_factors)

    def sideways(z: float) -> float:
        length = np.hypot(1.0, z)
        return float(200.0 * (1.0 - np.hypot(1.0, height) / length * (1.0 - 1.0 / length**2)))

    slope = (sideways(height) - sideways(height - step)) / arch_force(height, height - step)
    assert found.factors[0] == pytest.approx(sideways(height) / slope, rel=1e-4)


def test_the_first_factor_does_not_need_an_estimate_of_its_shape() -> None:
    """A spring holds the point sideways, so that it snaps where the estimate is far beyond."""
    found = fx.buckling(arch(2.5, sideways=True, aside=20.0), {"push": DOWN}, num_factors=1)
    extreme = minimize_scalar(lambda z: -arch_force(2.5, z), bounds=(0.0, 2.5))
    assert found.factors == pytest.approx([-extreme.fun], rel=1e-9)
    assert found.linear_factors[0] > 1000.0


def test_parameters_load_a_mechanism_as_inputs_do() -> None:
    """Springs that grow longer push against each other until the point between them gives way."""
    builder = fx.PlantBuilder("toggle", gravity=(0.0, 0.0, 0.0))
    body = builder.add_body("body", fx.SpatialInertia.point_mass(1.0))
    slot = builder.add_joint(fx.PrismaticJoint("slot", builder.world, body, (0, 0, 1)))
    builder.add_force_element(fx.JointSpring("back", slot, stiffness=20.0))
    origin = (0.0, 0.0, 0.0)
    for name, x in (("left", -1.0), ("right", 1.0)):
        wall = builder.add_frame(f"{name}_wall", builder.world, (x, 0.0, 0.0))
        spring = fx.LinearSpringDamper(
            name, wall, origin, body, origin, free_length=1.0, stiffness=100.0, damping=0.0
        )
        builder.add_force_element(spring)
    loads = {"left.free_length": 0.01, "right.free_length": 0.01}
    found = fx.buckling(builder.build(), loads)
    assert found.factors == pytest.approx([20.0 / (2.0 * 100.0 * 0.01)], rel=1e-9)
    assert found.loads == {"left.free_length": 0.01, "right.free_length": 0.01}


def test_loads_that_are_none_and_free_motions_are_refused() -> None:
    plant = column(1)
    with pytest.raises(fx.errors.ValueRefusedError, match="expected a load; found only zeros"):
        fx.buckling(plant, {"push": np.zeros(6)})
    with pytest.raises(fx.errors.ValueRefusedError, match="push"):
        fx.buckling(plant, {"push": 1.0})
    with pytest.raises(fx.errors.ValueRefusedError, match="a mapping"):
        fx.buckling(plant, ["push"])  # type: ignore[arg-type]
    with pytest.raises(fx.errors.UnknownNameError, match="pusch"):
        fx.buckling(plant, {"pusch": DOWN})
    builder = fx.PlantBuilder("loose", gravity=(0.0, 0.0, 0.0))
    body = builder.add_body("body", fx.SpatialInertia.point_mass(1.0))
    builder.add_joint(fx.PrismaticJoint("slot", builder.world, body, (0, 0, 1)))
    loose = builder.build()
    with pytest.raises(fx.errors.EvaluationError, match=r"free motion: slot\.translation"):
        fx.buckling(loose, {loose.gravity: (0.0, 0.0, 1.0)})


def test_texts_and_copies_of_critical_loads() -> None:
    found = fx.buckling(column(2), {"push": DOWN})
    assert str(found[0]) == (
        "<CriticalLoad: 0.381966, bifurcation, joint0.angle with joint1.angle>"
    )
    assert found.table()[0]["moves"] == "joint0.angle with joint1.angle"
    assert "0.381966" in (found._repr_html_() or "")
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(found)).factors, found.factors)
    with pytest.raises(fx.errors.ValueRefusedError, match="one of 2 critical loads"):
        found[2]


@pytest.mark.parametrize("unit", [1e-300, 1e-12, 1e12, 1e200])
def test_the_unit_of_a_load_does_not_matter(unit: float) -> None:
    beam = cantilever(2)
    expected = fx.buckling(beam, {"load": [0.0, 0.0, 0.0, -1.0, 0.0, 0.0]}, num_factors=1)
    found = fx.buckling(beam, {"load": [0.0, 0.0, 0.0, -unit, 0.0, 0.0]}, num_factors=1)
    np.testing.assert_allclose(found.factors * unit, expected.factors, rtol=1e-9)
    assert expected.factors[0] == pytest.approx(np.pi**2 / 4.0, rel=1e-2)
