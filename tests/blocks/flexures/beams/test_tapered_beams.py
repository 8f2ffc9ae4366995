"""Tapered beams that are divided: each segment has its share of the taper, and of the mass."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.integrate import simpson, solve_bvp, solve_ivp
from scipy.optimize import brentq

import flexure as fx
from flexure.diagrams.values.arrays import FloatArray
from tests.support.mechanics.beams import tip_position, under_load
from tests.support.native.native import needs_llvmlite

#: Motions in a plane are compared with the theory of plane beams.
pytestmark = pytest.mark.filterwarnings("ignore:.*holds in a plane:UserWarning")

LENGTH = 0.2
STEEL = fx.Material.common("structural steel S235")
E, RHO = STEEL.youngs_modulus, STEEL.density
FIRST = fx.sections.RectangleSection(width=0.02, thickness=0.002)
LAST = fx.sections.RectangleSection(width=0.01, thickness=0.001)


def stiffness_along(part: Any) -> tuple[Any, Any]:
    """Return area and second moment at a part of the length."""
    width, thickness = 0.02 - 0.01 * part, 0.002 - 0.001 * part
    return width * thickness, width * thickness**3 / 12.0


def arc(turn: float) -> tuple[Any, Any]:
    """Return where an arc ends that turns by an angle."""
    R = np.array([[np.cos(turn), -np.sin(turn), 0], [np.sin(turn), np.cos(turn), 0], [0, 0, 1.0]])
    x, y = (np.sin(turn) / turn, (1.0 - np.cos(turn)) / turn) if turn else (1, 0)
    return R, (LENGTH * x, LENGTH * y, 0.0)


def cantilever(
    segments: int, turn: float = 0.0, *, last: Any = LAST, free: bool = False, **options: Any
) -> fx.Plant:
    """A tapered beam, clamped or free, with bodies without mass of their own at its ends."""
    builder = fx.PlantBuilder("cantilever", gravity=(0, 0, 0))
    root = builder.world
    if free:
        root = builder.add_body("root", fx.SpatialInertia(0.0))
        builder.add_joint(fx.PlanarJoint("start", builder.world, root))
    tip = builder.add_body("tip", fx.SpatialInertia(0.0))
    joint = fx.PlanarJoint("end", builder.world, tip)
    joint.default_pose = arc(turn)
    builder.add_joint(joint)
    builder.add_external_force("load", tip)
    given: dict[str, Any] = {
        "shear": False,
        "planar": True,
        "length": LENGTH,
        "material": STEEL,
    } | options
    if turn:
        given["curvature"] = (0.0, turn / LENGTH)
    builder.add_force_element(
        fx.Beam(
            "leaf",
            root,
            tip,
            section=FIRST,
            end_section=last,
            segments=segments,
            **given,
        )
    )
    return builder.build()


# Statics ----------------------------------------------------------------------------------------


def elastica(force: FloatArray, turn: float, material: fx.Material | None = None) -> FloatArray:
    """Return the tip of the tapered rod: θ' = κ⁰ + M/EI, M' = N_y, with the force at the end.

    With a material it shears, too: sections stay at the angle θ.
    """
    soft = 0.0
    if material is not None:
        factor, _ = FIRST.shear_factors(material.poissons_ratio)
        soft = 1.0 / (factor * material.shear_modulus)

    def slopes(s: FloatArray, y: FloatArray) -> FloatArray:
        _, _, angle, moment = y
        area, second = stiffness_along(s / LENGTH)
        c, d = np.cos(angle), np.sin(angle)
        tension = force[0] * c + force[1] * d
        across = force[1] * c - force[0] * d
        stretch, sheared = 1.0 + tension / (E * area), soft * across / area
        return np.array(
            [
                stretch * c - sheared * d,
                stretch * d + sheared * c,
                turn / LENGTH + moment / (E * second),
                -stretch * across + sheared * tension,
            ]
        )

    def miss(start: FloatArray, end: FloatArray) -> FloatArray:
        return np.array([*start[:3], end[3]])

    mesh = np.linspace(0.0, LENGTH, 41)
    angle = turn * mesh / LENGTH
    guess = np.array([mesh, 0.0 * mesh, angle, 0.0 * mesh])
    for part in (0.25, 0.5, 0.75, 1.0):
        full, force = force, part * force
        found = solve_bvp(slopes, miss, mesh, guess, tol=1e-10, max_nodes=20000)
        assert found.success
        mesh, guess, force = found.x, found.y, full
    return np.array(found.y[:2, -1])


@pytest.mark.full
@pytest.mark.parametrize("turn", [0.0, 0.8])
def test_the_tip_of_a_tapered_cantilever_is_that_of_its_elastica(turn: float) -> None:
    unit = E * stiffness_along(0.5)[1] / LENGTH**2
    force = unit * np.array([-0.5, 2.0])
    exact = elastica(force, turn)
    load = [0.0, 0.0, 0.0, *force, 0.0]
    errors = []
    for n in (2, 4):
        plant = cantilever(n, turn)
        tip = tip_position(plant, under_load(plant, {"load": load}, steps=40)[0])
        errors.append(np.linalg.norm(tip[:2] - exact) / LENGTH)
    assert errors[-1] < 3e-5
    assert all(fine < coarse / 12.0 for coarse, fine in pairwise(errors))  # with fourth order


@pytest.mark.full
def test_the_tip_of_a_tapered_cantilever_that_shears_is_that_of_its_rod() -> None:
    soft = fx.Material(E, poissons_ratio=0.3, shear_modulus=E / 2500.0, density=RHO)
    unit = E * stiffness_along(0.5)[1] / LENGTH**2
    force = unit * np.array([-0.6, 1.0])
    exact = elastica(force, 0.4, soft)
    stiff = elastica(force, 0.4)
    assert np.linalg.norm(exact - stiff) > 0.01 * LENGTH
    for n in (2, 4):
        plant = cantilever(n, 0.4, shear=True, material=soft)
        load = [0.0, 0.0, 0.0, *force, 0.0]
        tip = tip_position(plant, under_load(plant, {"load": load}, steps=40)[0])
        assert np.linalg.norm(tip[:2] - exact) < 1e-4 * LENGTH


# Mass -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_segments_have_the_mass_and_center_of_the_whole(n: int) -> None:
    x = np.linspace(0.0, 1.0, 2001)
    area, second = stiffness_along(x)
    mass = RHO * LENGTH * simpson(area, x=x)
    center = RHO * LENGTH**2 * simpson(area * x, x=x) / mass
    plant = cantilever(n, free=True)
    context = plant.create_default_context()
    found = plant.find("center_of_mass").eval(context)
    np.testing.assert_allclose(found, [center, 0.0, 0.0], rtol=1e-12, atol=1e-15)
    plant.set_velocities(context, np.tile([0.0, 1.0, 0.0], n + 1))
    found = plant.find("momentum").eval(context)
    np.testing.assert_allclose(found[4:], [mass, 0.0], rtol=1e-12, atol=1e-15)
    for joint in plant.joints:
        joint.velocities.set(context, [0.0, joint.pose.get(context).p[0], 1.0])
    about = RHO * LENGTH * simpson(area * (LENGTH * x) ** 2 + second, x=x)
    found = 2.0 * plant.find("kinetic_energy").eval(context)
    np.testing.assert_allclose(found, about, rtol=1e-12 if n == 1 else 3.0 / n**4)


def test_a_taper_to_the_same_section_is_none() -> None:
    for turn in (0.0, 0.5):
        plants = [cantilever(3, turn, last=last, damping_time=1e-5) for last in (None, FIRST)]
        shown = []
        for plant in plants:
            context = plant.create_default_context()
            rng = np.random.default_rng(1)
            q = plant.get_positions(context)
            plant.set_positions(context, q + 1e-3 * rng.normal(size=q.size))
            plant.set_velocities(context, 0.1 * rng.normal(size=q.size))
            leaf: Any = plant.force_element("leaf")
            ports = [leaf.find(name) for name in ("section_forces", "stress", "stored_energy")]
            shown.append([plant.calc_vdot(context), *(port.eval(context) for port in ports)])
        for one, other in zip(*shown, strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-9 * np.abs(one).max())


def test_each_segment_has_the_stress_of_its_sections() -> None:
    plant = cantilever(3)
    context = plant.create_default_context()
    x = np.array([0.0, 1.0, 2.0, 3.0]) / 3.0
    leaf: Any = plant.force_element("leaf")
    for k, name in enumerate(("leaf_node1", "leaf_node2", "end"), start=1):
        plant.joint(name).positions.set(context, [LENGTH * x[k] * (1.0 + 1e-4), 0.0, 0.0])
    forces = leaf.section_forces.eval(context).reshape(-1, 6)[:, 3]
    parts = np.ravel((np.arange(3)[:, None] + np.array([0.0, 0.5, 1.0])) / 3.0)
    np.testing.assert_allclose(
        leaf.stress.eval(context), forces / stiffness_along(parts)[0], rtol=1e-9
    )
    # Of each segment: EA of its length in series.
    for k, force in enumerate(forces[1::3]):
        along = np.linspace(x[k], x[k + 1], 201)
        soft = simpson(1.0 / (E * stiffness_along(along)[0]), x=along)
        assert force == pytest.approx(1e-4 * (x[k + 1] - x[k]) / soft, rel=1e-6)


# Frequencies ------------------------------------------------------------------------------------


def exact_frequencies(count: int) -> list[float]:
    """Return the frequencies of the tapered Euler-Bernoulli cantilever, by shooting."""

    def determinant(omega: float) -> float:
        def slopes(x: float, y: FloatArray) -> FloatArray:
            w, turn, moment, across = y.reshape(4, 2)
            area, second = stiffness_along(x)
            slope = [turn, moment / (E * second), -across - omega**2 * RHO * second * turn]
            return LENGTH * np.concatenate([*slope, -(omega**2) * RHO * area * w])

        start = np.zeros((4, 2))
        start[2:] = np.eye(2) * E * stiffness_along(0.0)[1]
        end = solve_ivp(slopes, (0.0, 1.0), start.ravel(), "DOP853", rtol=1e-9, atol=1e-12).y
        return float(np.linalg.det(end[:, -1].reshape(4, 2)[2:]))

    unit = np.sqrt(E / 12.0 / RHO) * 0.002 / LENGTH**2
    grid = unit * np.arange(1.5, 7.0, 0.5) ** 2
    values = [determinant(omega) for omega in grid]
    pairs = pairwise(zip(grid, values, strict=True))
    roots = [brentq(determinant, a, b, rtol=1e-8) for (a, u), (b, v) in pairs if u * v < 0.0]
    return roots[:count]


@pytest.mark.full
def test_frequencies_of_a_tapered_cantilever_converge_with_fourth_order() -> None:
    exact = np.array(exact_frequencies(2))
    errors = []
    for n in (6, 12):
        found = sorted(
            abs(mode.poles[0])
            for mode in fx.modes(cantilever(n))
            if not any(
                path.endswith("x") and abs(value) > 1e-3 for path, value in mode.shape.items()
            )
        )
        errors.append(np.abs(np.array(found[:2]) / exact - 1.0))
    coarse, fine = errors
    assert np.all(fine < 1e-3)
    assert np.all(fine < coarse / [16.0, 5.0])


@pytest.mark.full
@needs_llvmlite
def test_segments_of_a_taper_share_native_code() -> None:
    plant = cantilever(24)
    assert "shared by what is alike in 26 blocks of 4 kinds" in str(
        fx.compiled_equations(plant).plan
    )
    context = plant.create_default_context()
    plant.set_velocities(context, np.tile([0.0, 0.1, 0.0], 24))
    run = fx.simulate(plant, 1e-7, context=context, method="Rodas5P", rtol=1e-8)
    assert run.statistics.native_steps == run.statistics.steps > 0
    energies = run["leaf.stored_energy"] + run["kinetic_energy"]
    np.testing.assert_allclose(energies, energies[0], rtol=1e-7)
