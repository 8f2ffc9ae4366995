"""Pseudo-rigid bodies go where the elastica goes, as far and as well as their book says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

import flexure as fx
from flexure.diagrams.checks.errors import DeclarationError, ValueRefusedError
from flexure.diagrams.values.arrays import FloatArray

STEEL = fx.Material.common("stainless steel 301")
LEAF = fx.sections.RectangleSection(width=0.01, thickness=5e-4)
LENGTH = 0.1


def elastica(n: float, curvature: float, force: float) -> FloatArray:
    """Slope, curvature, x and y at the end of a cantilever with E I = L = 1 and this curvature
    where it is clamped, under a force across and n times as much pushing along it."""

    def rates(_: float, y: FloatArray) -> list[float]:
        return [y[1], -force * (np.cos(y[0]) + n * np.sin(y[0])), np.cos(y[0]), np.sin(y[0])]

    ends = solve_ivp(rates, (0.0, 1.0), [0.0, curvature, 0.0, 0.0], rtol=1e-8, atol=1e-10).y
    return np.asarray(ends[:, -1])


def bent(n: float, curvature: float) -> tuple[float, FloatArray]:
    """Force, and the end of the elastica, with no moment there."""
    force, step = 0.0, 0.1
    while elastica(n, curvature, force + step)[1] > 0.0:
        force += step
        step *= 1.5
    force = brentq(lambda f: elastica(n, curvature, f)[1], force, force + step, xtol=1e-10)
    return float(force), elastica(n, curvature, force)


@pytest.mark.full
@pytest.mark.parametrize("n", [-5.0, -2.0, -1.0, -0.3, 0.0, 0.7, 2.0, 10.0])
def test_the_end_of_the_link_is_that_of_the_elastica(n: float) -> None:
    model = fx.laws.PseudoRigidBody("end force", n)
    radius, factor, greatest = model.factors
    angles, positions, forces, moments = [], [], [], []
    for curvature in np.linspace(0.1, 2.6, 9):
        force, (_, _, x, y) = bent(n, curvature)
        angle = np.arctan2(y, x - (1.0 - radius))
        if angle > greatest:
            break
        tip = np.array([1.0 - radius * (1.0 - np.cos(angle)), radius * np.sin(angle)])
        positions.append(np.hypot(*(tip - [x, y])) / np.hypot(1.0 - x, y))
        forces.append(factor * angle / (radius * force * (np.cos(angle) + n * np.sin(angle))))
        axial, moment = model.fixed_end(angle, factor * angle, 1.0)
        moments.append(moment / curvature)
        assert axial == pytest.approx(-n * force * forces[-1], abs=1e-12)
        angles.append(angle)
    assert len(angles) >= 2
    assert max(positions) < 0.0052  # of the way that the end has gone
    assert np.all(np.abs(np.array(forces) - 1.0) < 0.06)
    assert np.all(np.abs(np.array(moments) - 1.0) < 0.06)


def test_the_factors_without_a_force_along_it_are_those_that_everybody_knows() -> None:
    radius, factor, _ = fx.laws.PseudoRigidBody().factors
    assert radius == pytest.approx(0.85, abs=0.002)
    assert factor / radius == pytest.approx(2.65, abs=0.03)
    small = 3.0 * radius**2 / radius  # of the end of a cantilever, 3 E I/L³, per angle
    assert factor / radius == pytest.approx(small, rel=0.05)


def test_a_guided_flexure_is_two_halves_with_a_force_at_their_ends() -> None:
    guided, half = fx.laws.PseudoRigidBody("guided"), fx.laws.PseudoRigidBody("end force")
    assert guided.stiffness(3.0, 2.0) == pytest.approx(half.stiffness(3.0, 1.0))
    assert guided.pivot_distance(2.0) == pytest.approx(half.pivot_distance(1.0))
    assert guided.factors.greatest_angle == half.factors.greatest_angle
    torque = 0.8
    whole, part = guided.fixed_end(0.5, torque, 2.0), half.fixed_end(0.5, torque, 1.0)
    assert whole == pytest.approx(part)


def test_under_a_moment_the_end_is_that_of_an_arc() -> None:
    model = fx.laws.PseudoRigidBody("end moment")
    radius, factor, greatest = model.factors
    for turn in np.linspace(0.05, np.deg2rad(124.0), 20):
        x, y = np.sin(turn) / turn, (1.0 - np.cos(turn)) / turn
        angle = np.arctan2(y, x - (1.0 - radius))
        assert angle < greatest
        tip = np.array([1.0 - radius * (1.0 - np.cos(angle)), radius * np.sin(angle)])
        assert np.hypot(*(tip - [x, y])) < 0.005 * np.hypot(1.0 - x, y)
        assert factor * angle == pytest.approx(turn, rel=0.035)  # the moment is E I/L times it


def test_a_short_flexure_turns_a_long_link_about_its_middle() -> None:
    model = fx.laws.PseudoRigidBody("short")
    for turn in np.linspace(0.05, model.factors.greatest_angle, 10):
        direction = np.array([np.cos(turn), np.sin(turn)])
        exact = np.array([np.sin(turn), 1.0 - np.cos(turn)]) / turn + 10.0 * direction
        found = np.array([0.5, 0.0]) + 10.5 * direction
        assert np.hypot(*(found - exact)) < 0.006 * np.hypot(*(exact - [11.0, 0.0]))
    assert model.stiffness(3.0, 0.5) == 6.0


# The block ---------------------------------------------------------------------------------------


def cantilever(load: str = "end force", **options: Any) -> tuple[fx.Plant, Any, Any]:
    """A plant with a leaf on the world, its pivot and its hinge."""
    model = fx.laws.PseudoRigidBody(load, options.get("axial_ratio", 0.0))
    builder = fx.PlantBuilder("leaf")
    link = builder.add_body("link", fx.SpatialInertia.solid_box(0.1, size=(0.02, 0.02, 0.02)))
    root = builder.add_frame("root", builder.world, (model.pivot_distance(LENGTH), 0.0, 0.0))
    pivot = builder.add_joint(fx.RevoluteJoint("pivot", root, link, axis=(0, 0, 1)))
    hinge = fx.LumpedHinge(
        "hinge", pivot, section=LEAF, material=STEEL, length=LENGTH, load=load, **options
    )
    builder.add_force_element(hinge)
    return builder.build(), pivot, hinge


def test_the_torque_is_that_of_a_spring_from_section_and_material() -> None:
    plant, pivot, hinge = cantilever(damping_time=0.01, nominal_position=0.1)
    context = plant.create_default_context()
    pivot.angle.set(context, 0.4)
    pivot.rate.set(context, 2.0)
    stiffness = 0.8517 * 2.67617 * 193e9 * LEAF.second_moment_z / LENGTH
    found = hinge.generalized_force.eval(context)[0]
    assert found == pytest.approx(-stiffness * (0.3 + 0.01 * 2.0))
    assert hinge.stored_energy.eval(context)[0] == pytest.approx(0.5 * stiffness * 0.3**2)
    hinge.thickness.set(context, 1e-3)
    assert hinge.generalized_force.eval(context)[0] == pytest.approx(8.0 * found)


@pytest.mark.parametrize("load", ["end moment", "short"])
def test_where_the_moment_is_alike_everywhere_the_stress_is_that_of_the_torque(load: str) -> None:
    plant, pivot, hinge = cantilever(load)
    context = plant.create_default_context()
    pivot.angle.set(context, -0.2)
    torque = hinge.generalized_force.eval(context)[0]
    stress = 6.0 * torque / (0.01 * 5e-4**2)
    assert hinge.greatest_stress.eval(context)[0] == pytest.approx(stress)
    assert hinge.safety.eval(context)[0] == pytest.approx(965e6 / stress)


def test_at_rest_safety_is_infinite() -> None:
    plant, _, hinge = cantilever()
    context = plant.create_default_context()
    assert hinge.greatest_stress.eval(context)[0] == 0.0
    assert hinge.safety.eval(context)[0] == np.inf


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"load": "wind"}, "end moment"),
        ({"axial_ratio": 11.0}, "axial_ratio"),
        ({"axial_ratio": np.nan}, "axial_ratio"),
        ({"load": "short", "axial_ratio": 0.5}, "for 'short' with axial_ratio"),
        ({"length": 0.0}, "length"),
        ({"length": [0.1, 0.2]}, "with length: expected a real number"),
        ({"nominal_position": []}, "with nominal_position: expected a real number"),
        ({"damping_time": []}, "with damping_time: expected a real number"),
        ({"damping_time": -1.0}, "damping_time"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], said: str) -> None:
    axis = fx.RevoluteJoint("axis", fx.Body("frame"), fx.Body("lever"), axis=(0, 0, 1))
    given: dict[str, Any] = {"section": LEAF, "material": STEEL, "length": LENGTH} | options
    with pytest.raises(ValueRefusedError, match=said):
        fx.LumpedHinge("hinge", axis, **given)


def test_a_joint_that_slides_is_no_pivot() -> None:
    slide = fx.PrismaticJoint("slide", fx.Body("frame"), fx.Body("table"), axis=(0, 0, 1))
    with pytest.raises(DeclarationError, match="Use a RevoluteJoint"):
        fx.LumpedHinge("hinge", slide, section=LEAF, material=STEEL, length=LENGTH)


@pytest.mark.parametrize("missing", ["section", "material"])
def test_section_and_material_are_needed(missing: str) -> None:
    axis = fx.RevoluteJoint("axis", fx.Body("frame"), fx.Body("lever"), axis=(0, 0, 1))
    given: dict[str, Any] = {"section": LEAF, "material": STEEL, "length": LENGTH, missing: "steel"}
    with pytest.raises(DeclarationError, match=f"a {missing.capitalize()}"):
        fx.LumpedHinge("hinge", axis, **given)
