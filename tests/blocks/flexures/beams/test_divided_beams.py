"""Beams that are divided into segments, with bodies between them that carry their mass."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.optimize import brentq

import flexure as fx
from flexure.blocks.flexures.beams.beam import Beam
from flexure.blocks.flexures.beams.beam_segment import BeamSegment
from flexure.blocks.flexures.sections.materials import Material
from flexure.blocks.flexures.sections.rectangle_section import RectangleSection
from flexure.blocks.math import rotation_from_rotation_vector
from flexure.solvers.analysis.equations.equations import find_variables
from flexure.solvers.analysis.forces_at_rest.static_equations import StaticEquations
from flexure.solvers.native.runs import run_memory
from flexure.solvers.tracing.trace import SymbolicStore
from tests.support.mechanics import rods
from tests.support.native.native import needs_llvmlite
from tests.support.tiers import thinned

LENGTH, WIDTH, THICKNESS = 0.2, 0.02, 0.001
STEEL = Material.common("structural steel S235")
E, RHO = STEEL.youngs_modulus, STEEL.density
EMPTY = fx.SpatialInertia(0.0)


def leaf_on(
    builder: fx.PlantBuilder, a: Any, c: Any, segments: int, thickness: float, **options: Any
) -> Beam:
    section = RectangleSection(width=WIDTH, thickness=thickness)
    options = {"length": LENGTH, "planar": True, "shear": False} | options
    beam = Beam("leaf", a, c, section=section, material=STEEL, segments=segments, **options)
    return builder.add_force_element(beam)


def leaf_of(plant: fx.Plant) -> Any:
    return plant.force_element("leaf")


def cantilever(segments: int, *, thickness: float = THICKNESS, **options: Any) -> fx.Plant:
    """A beam that is clamped to the world, with a body without mass of its own at its end."""
    builder = fx.PlantBuilder("cantilever", gravity=(0, 0, 0))
    tip = builder.add_body("tip", EMPTY)
    planar = options.get("planar", True)
    kind = fx.PlanarJoint if planar else fx.QuaternionFloatingJoint
    joint = kind("tip", builder.world, tip)
    joint.default_pose = (np.eye(3), [LENGTH, 0, 0])
    builder.add_joint(joint)
    builder.add_external_force("load", tip)
    builder.add_energy_ledger()
    leaf_on(builder, builder.world, tip, segments, thickness, **options)
    return builder.build()


def clamped(segments: int, *, thickness: float = THICKNESS, **options: Any) -> fx.Plant:
    """A beam between two places of the world: all bodies are its nodes."""
    builder = fx.PlantBuilder("clamped", gravity=(0, 0, 0))
    end = builder.add_frame("end", builder.world, (LENGTH, 0, 0))
    leaf_on(builder, builder.world, end, segments, thickness, **options)
    return builder.build()


def free(segments: int, *, thickness: float = THICKNESS, **options: Any) -> fx.Plant:
    """A beam between two bodies without mass of their own."""
    builder = fx.PlantBuilder("free", gravity=(0, 0, 0))
    ends = [builder.add_body(name, EMPTY) for name in ("left", "right")]
    for x, end in zip((0.0, LENGTH), ends, strict=True):
        joint = fx.PlanarJoint(end.name, builder.world, end)
        joint.default_pose = (np.eye(3), [x, 0, 0])
        builder.add_joint(joint)
    leaf_on(builder, ends[0], ends[1], segments, thickness, **options)
    return builder.build()


PLANTS = {"cantilever": cantilever, "clamped": clamped, "free": free}


# Frequencies ------------------------------------------------------------------------------------


def bending_frequencies(plant: fx.Plant, count: int, context: fx.Context | None = None) -> Any:
    """Return the lowest frequencies of bending in rad/s, without those of stretching."""
    found = []
    for mode in fx.modes(plant, context):
        along = sum(abs(value) for path, value in mode.shape.items() if path.endswith("x"))
        if along < 1e-3 * sum(map(abs, mode.shape.values())) and abs(mode.poles[0]) > 1.0:
            found.append(abs(mode.poles[0]))
    return np.sort(found)[:count]


def exact_frequencies(
    ends: str, count: int, thickness: float, *, shear: float = 0.0, rotary: bool = False
) -> list[float]:
    """Return the frequencies of Timoshenko's beam, where the determinant of its ends is zero.

    Displacement y, turn φ, moment M and shear force V follow y' = φ + V c, φ' = M/EI,
    M' = -V - ω² ρI φ, V' = -ω² ρA y along the beam, where c is the compliance by shear.
    """
    area, inertia = WIDTH * thickness, WIDTH * thickness**3 / 12.0
    rows, columns = {
        "cantilever": ([2, 3], [2, 3]),
        "clamped": ([0, 1], [2, 3]),
        "free": ([2, 3], [0, 1]),
    }[ends]
    unit = np.sqrt(E * inertia / (RHO * area)) / LENGTH**2
    scale = np.array([LENGTH, 1.0, E * inertia / LENGTH, E * inertia / LENGTH**2])

    def determinant(omega: float) -> float:
        turning = omega**2 * RHO * inertia if rotary else 0.0
        system = np.array(
            [
                [0.0, 1.0, 0.0, shear],
                [0.0, 0.0, 1.0 / (E * inertia), 0.0],
                [0.0, -turning, 0.0, -1.0],
                [-(omega**2) * RHO * area, 0.0, 0.0, 0.0],
            ]
        )
        across = expm(system * LENGTH) / scale[:, None] * scale
        return float(np.linalg.det(across[np.ix_(rows, columns)]))

    grid = unit * np.arange(1.0, np.pi * (count + 2), 0.25) ** 2
    values = [determinant(omega) for omega in grid]
    roots = [
        brentq(determinant, a, b, rtol=1e-12)
        for (a, fa), (b, fb) in pairwise(zip(grid, values, strict=True))
        if fa * fb < 0.0
    ]
    return roots[:count]


def test_the_determinant_gives_the_frequencies_of_the_textbook() -> None:
    wanted = {
        "cantilever": lambda x: np.cos(x) * np.cosh(x) + 1.0,
        "clamped": lambda x: np.cos(x) * np.cosh(x) - 1.0,
        "free": lambda x: np.cos(x) * np.cosh(x) - 1.0,
    }
    area, inertia = WIDTH * THICKNESS, WIDTH * THICKNESS**3 / 12.0
    unit = np.sqrt(E * inertia / (RHO * area)) / LENGTH**2
    for ends, equation in wanted.items():
        near = 1.9 if ends == "cantilever" else 4.7
        root = brentq(equation, near - 0.3, near + 0.3, xtol=1e-14)
        assert exact_frequencies(ends, 1, THICKNESS)[0] == pytest.approx(root**2 * unit, rel=1e-8)


@pytest.mark.full
@pytest.mark.parametrize("ends", thinned(PLANTS, fast=1))
def test_frequencies_of_slender_beams_converge_with_fourth_order(ends: str) -> None:
    exact = np.array(exact_frequencies(ends, 2, THICKNESS))
    coarse, fine = (bending_frequencies(PLANTS[ends](n), 2) / exact - 1.0 for n in (6, 12))
    # From both sides: masses at nodes are too slow, and the rule for their sums is off at the ends.
    assert np.all(np.abs(fine) < 2e-3)
    assert np.all((np.abs(fine) < np.abs(coarse) / 8.0) | (np.abs(fine) < 2e-4))


@pytest.mark.full
@pytest.mark.parametrize("ends", PLANTS)
def test_frequencies_of_thick_beams_converge_to_those_of_timoshenko_from_below(ends: str) -> None:
    thickness = 0.04
    section = RectangleSection(width=WIDTH, thickness=thickness)
    k_y, _ = section.shear_factors(STEEL.poissons_ratio)
    shear = 1.0 / (k_y * STEEL.shear_modulus * WIDTH * thickness)
    exact = np.array(exact_frequencies(ends, 2, thickness, shear=shear, rotary=True))
    slender = np.array(exact_frequencies(ends, 2, thickness))
    coarse, fine = (
        bending_frequencies(PLANTS[ends](n, thickness=thickness, shear=True), 2) for n in (5, 10)
    )
    np.testing.assert_allclose(fine, exact, rtol=1e-2)
    assert np.all(fine < exact)
    assert np.all(np.abs(fine - exact) < 0.4 * np.abs(coarse - exact) + 1e-4 * exact)
    assert np.all(slender > 1.02 * exact)


@pytest.mark.full
def test_auto_takes_an_implicit_method_for_a_damped_beam_and_follows_an_undamped_one() -> None:
    for damping, expected in ((1e-4, "Rodas5P, because the diagram is stiff"), (0.0, "RK45")):
        options = {"damping_time": damping} if damping else {}
        result = fx.simulate(cantilever(2, **options), 1e-3 if damping else 1e-5)
        assert f"from t = 0 s: {expected}" in result.message


# Mass -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("segments", [1, 2, 3, 4, 7])
def test_mass_center_and_inertia_are_those_of_the_bar(segments: int) -> None:
    plant = free(segments)
    context = plant.create_default_context()
    mass = RHO * LENGTH * WIDTH * THICKNESS
    inertia = mass * (LENGTH**2 + THICKNESS**2) / 12.0
    np.testing.assert_allclose(
        plant.find("center_of_mass").eval(context), [0.5 * LENGTH, 0, 0], atol=1e-15
    )
    velocity = [0.0, 0.0, 3.0, 0.2, -0.1, 0.0]  # about the center
    for joint in plant.joints:
        x = joint.pose.get(context).p[0] - 0.5 * LENGTH
        joint.velocities.set(context, [0.2, -0.1 + 3.0 * x, 3.0])
    energy = 0.5 * mass * (0.2**2 + 0.1**2) + 0.5 * inertia * 9.0
    np.testing.assert_allclose(plant.find("kinetic_energy").eval(context), energy, rtol=1e-12)
    about = np.array([0.0, 0.0, 3.0 * inertia]) + np.cross(
        [0.5 * LENGTH, 0, 0], mass * np.array(velocity[3:])
    )
    np.testing.assert_allclose(plant.find("momentum").eval(context)[:3], about, atol=1e-15)


def test_a_thickness_in_the_context_changes_stiffness_and_mass() -> None:
    plant = cantilever(3)
    context = plant.create_default_context()
    (before,) = bending_frequencies(plant, 1, context)
    context.set("leaf.thickness", 2.0 * THICKNESS)
    (after,) = bending_frequencies(plant, 1, context)
    assert after == pytest.approx(2.0 * before, rel=1e-4)  # but for the rotary inertia
    context.set("leaf.density", 4.0 * RHO)
    assert bending_frequencies(plant, 1, context)[0] == pytest.approx(0.5 * after, rel=1e-9)


def test_accelerations_have_exact_derivatives_by_the_thickness() -> None:
    plant = cantilever(3)
    context = plant.create_default_context()
    plant.find("load").fix(context, [0, 0, 0, 0, 1.0, 0])
    model = fx.linearize(plant, context, inputs=["leaf.thickness"], outputs=["accelerations"])
    assert model.how == "exact derivatives"
    ends = []
    for thickness in (THICKNESS * (1 + 1e-6), THICKNESS * (1 - 1e-6)):
        context.set("leaf.thickness", thickness)
        ends.append(plant.calc_vdot(context))
    slopes = (ends[0] - ends[1]) / (2e-6 * THICKNESS)
    np.testing.assert_allclose(model.D[:, 0], slopes, atol=1e-6 * np.abs(slopes).max())


# Statics ----------------------------------------------------------------------------------------


def elastica_tip(segments: int, load: float) -> Any:
    """Return the tip of a thin cantilever over its length, under a load F L²/EI across."""
    thickness = 0.0005
    plant = cantilever(segments, thickness=thickness)
    context = plant.create_default_context()
    port = plant.input_port("load")
    port.fix(context, np.zeros(6))
    variables = find_variables(context, [port], "Cannot bend")
    equations = StaticEquations(context, variables, attempt="Cannot bend")
    unit = E * WIDTH * thickness**3 / 12.0 / LENGTH**2
    for part in np.linspace(0.0, 1.0, 51)[1:]:
        equations.set_variables(np.array([0, 0, 0, 0, part * load * unit, 0]))
        for _ in range(60):
            point = equations.point()
            step: Any = np.linalg.solve(point.stiffness, point.forces)
            equations.move_to(equations.coordinates.moved(equations.states, step))
            if np.max(np.abs(step)) < 1e-9:
                break
    return plant.body("tip").pose(equations.context).p / LENGTH


def test_the_tip_of_a_divided_cantilever_is_that_of_the_elastica() -> None:
    x, y, _ = elastica_tip(4, 1.0)
    assert y == pytest.approx(0.301721, abs=1e-5)
    assert 1.0 - x == pytest.approx(0.056433, abs=1e-5)


# The whole --------------------------------------------------------------------------------------


def bent(plant: fx.Plant, seed: int = 3, size: float = 1e-3) -> fx.Context:
    """Return a context in which all bodies are a bit off, and move."""
    rng, context = np.random.default_rng(seed), plant.create_default_context()
    q = plant.get_positions(context)
    plant.set_positions(context, q + size * rng.normal(size=q.size))
    plant.set_velocities(context, 0.1 * rng.normal(size=plant.num_velocities))
    return context


@pytest.mark.parametrize("damping", [None, 1e-5])
def test_the_whole_adds_up_its_segments(damping: float | None) -> None:
    plant = cantilever(3, damping_time=damping)
    leaf, context = leaf_of(plant), bent(plant)
    parts = leaf.inside.segments
    for what in ("stored_energy", "conservative_power", "non_conservative_power"):
        expected = sum(part.find(what).eval(context) for part in parts)
        np.testing.assert_allclose(leaf.find(what).eval(context), expected, rtol=1e-12)
    A, C = leaf.force_ports
    np.testing.assert_array_equal(A.eval(context), parts[0].force_ports[0].eval(context))
    np.testing.assert_array_equal(C.eval(context), parts[-1].force_ports[1].eval(context))
    for what, part in (("force_on_frame_A", parts[0]), ("force_on_frame_C", parts[-1])):
        np.testing.assert_allclose(
            leaf.find(what).eval(context), part.find(what).eval(context), rtol=1e-9, atol=1e-9
        )
    assert plant.force_elements == (leaf,)
    forces = plant.calc_force_elements_contribution(context)
    missing = plant.calc_inverse_dynamics(context, np.zeros(plant.num_velocities), forces)
    M, vdot = plant.calc_mass_matrix(context), plant.calc_vdot(context)
    np.testing.assert_allclose(M @ vdot, -missing, atol=1e-9 * np.abs(missing).max())


def test_stress_along_a_divided_beam_is_that_of_the_textbook() -> None:
    plant = cantilever(4)
    context = plant.create_default_context()
    for joint in plant.joints:
        x = joint.pose.get(context).p[0]
        turn = 1e-4 * (x * LENGTH - 0.5 * x**2) * 2.0 / LENGTH**2
        y = 1e-4 * (0.5 * x**2 * LENGTH - x**3 / 6.0) * 2.0 / LENGTH**2
        joint.positions.set(context, [x, y, turn])
    leaf = leaf_of(plant)
    rows = leaf.section_forces.eval(context).reshape(-1, 6)
    places = np.ravel([(k + np.array([0.0, 0.5, 1.0])) / 4.0 for k in range(4)])
    moment = E * WIDTH * THICKNESS**3 / 12.0 * 2e-4 / LENGTH * (1.0 - places)
    np.testing.assert_allclose(rows[:, 2], moment, atol=1e-5 * moment[0])
    bending = moment * 0.5 * THICKNESS / (WIDTH * THICKNESS**3 / 12.0)
    stress = leaf.stress.eval(context)
    np.testing.assert_allclose(stress, bending, atol=1.5e-2 * bending[0])  # it is stretched, too
    assert leaf.greatest_stress.eval(context)[0] == np.max(stress)


@pytest.mark.full
@needs_llvmlite
def test_the_energy_ledger_closes_over_many_periods_of_a_divided_beam() -> None:
    plant = cantilever(3)
    context = plant.create_default_context()
    plant.set_velocities(context, [0, 0.2, 0, 0, 0.02, 0, 0, 0.1, 0])
    result = fx.simulate(plant, 0.1, context=context, method="DOP853", rtol=1e-10, atol=1e-12)
    assert np.ptp(result["ledger.balance"]) < 1e-6 * np.max(result["kinetic_energy"])


def test_curved_beams_have_their_nodes_on_the_arc_and_are_at_rest_there() -> None:
    builder = fx.PlantBuilder("arc", gravity=(0, 0, 0))
    radius = 2.0 * LENGTH / np.pi
    quarter = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    end = builder.add_frame("end", builder.world, (quarter, (radius, radius, 0.0)))
    leaf_on(builder, builder.world, end, 4, THICKNESS, curvature=[0.0, 1.0 / radius])
    plant = builder.build()
    context = plant.create_default_context()
    for k in (1, 2, 3):
        angle = k * np.pi / 8.0
        at = radius * np.array([np.sin(angle), 1.0 - np.cos(angle), 0.0])
        np.testing.assert_allclose(plant.body(f"leaf_node{k}").pose(context).p, at, atol=1e-15)
    # Positions are rounded, and no acceleration is smaller than what their last bits make of it.
    by_position = fx.linearize(plant, context, inputs=[], outputs=["accelerations"]).C[:, :9]
    last_bits = np.spacing(np.abs(plant.get_positions(context)))
    assert np.all(np.abs(plant.calc_vdot(context)) < 1.5 * np.abs(by_position) @ last_bits)
    assert leaf_of(plant).stored_energy.eval(context)[0] < 1e-20


# Names, places and refusals ---------------------------------------------------------------------


def test_nodes_and_segments_are_found_but_not_listed() -> None:
    plant = cantilever(3)
    assert plant.body("leaf_node2").is_node
    assert not [port for port in plant.output_ports if "node" in port.name]
    assert [body.name for body in plant.bodies[1:]] == ["tip", "leaf_node1", "leaf_node2"]


def test_a_name_that_is_taken_inside_leaves_the_builder_as_it_was() -> None:
    builder = fx.PlantBuilder("plant")
    builder.add_body("leaf_node2", fx.SpatialInertia(1.0))
    end = builder.add_frame("end", builder.world, (LENGTH, 0, 0))
    with pytest.raises(fx.errors.WiringError, match="'leaf_node2', which is the name of"):
        leaf_on(builder, builder.world, end, 3, THICKNESS)
    assert len(builder.bodies) == 2
    assert not builder.force_elements
    leaf_on(builder, builder.world, end, 2, THICKNESS)


def test_planar_nodes_out_of_the_plane_are_refused() -> None:
    builder = fx.PlantBuilder("arc", gravity=(0, 0, 0))
    end = builder.add_frame("end", builder.world, (LENGTH, 0, 0.01))
    leaf_on(builder, builder.world, end, 2, THICKNESS, prestressed=True)
    with pytest.raises(fx.errors.DeclarationError, match="which is planar: expected a beam in the"):
        builder.build()


def test_a_pose_does_not_tell_where_nodes_are() -> None:
    builder = fx.PlantBuilder("arc", gravity=(0, 0, 0))
    end = builder.add_frame("end", builder.world, (LENGTH, 0, 0.01))
    with pytest.raises(fx.errors.DeclarationError, match="expected curvature, which"):
        leaf_on(builder, builder.world, end, 2, THICKNESS, unstressed_pose=(LENGTH, 0, 0))


# Native code ------------------------------------------------------------------------------------


@pytest.mark.full
@needs_llvmlite
def test_a_beam_of_a_hundred_segments_runs_in_native_code_that_its_segments_share() -> None:
    plant = cantilever(100)
    plan = str(fx.compiled_equations(plant).plan)
    assert "shared by what is alike in 103 blocks of 5 kinds" in plan
    context = plant.create_default_context()
    plant.set_velocities(context, np.tile([0.0, 0.1, 0.0], 100))
    run = fx.simulate(plant, 2e-6, context=context, method="RK45")
    assert run.statistics.native_steps == run.statistics.steps > 0


@pytest.mark.full
@needs_llvmlite
def test_equations_of_segments_are_prepared_as_often_for_32_as_for_16(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prepared: list[BeamSegment] = []
    law = BeamSegment.law

    def noted(segment: BeamSegment, context: Any) -> Any:
        if isinstance(context.store, SymbolicStore):
            prepared.append(segment)
        return law(segment, context)

    monkeypatch.setattr(BeamSegment, "law", noted)
    counts = []
    for segments in (16, 32):
        plant = cantilever(segments)
        prepared.clear()
        plan = str(fx.compiled_equations(plant).plan)
        assert "shared by what is alike" in plan
        counts.append(len(prepared))
    assert counts[0] == counts[1] > 0
    assert counts[0] < 16


@pytest.mark.full
@needs_llvmlite
def test_segments_share_the_jacobian_of_methods_for_stiff_beams() -> None:
    plant = clamped(100)
    context = plant.create_default_context()
    plant.set_velocities(context, np.tile([0.0, 0.1, 0.0], 99))
    ends = []
    for method in ("RK45", "Rodas5P"):
        run = fx.simulate(plant, 2e-6, context=context, method=method, rtol=1e-6, atol=1e-9)
        assert run.statistics.native_steps == run.statistics.steps > 0
        ends.append(run.context.continuous_state)
    scales = np.abs(ends[0]).reshape(2, 99, 3).max(axis=1, keepdims=True)
    errors = (ends[1] - ends[0]).reshape(2, 99, 3)
    np.testing.assert_allclose(errors / scales, 0.0, atol=1e-3)
    assert "by shared code" in str(fx.compiled_equations(plant).plan)


@pytest.mark.full
@needs_llvmlite
def test_without_room_for_dense_factors_a_long_beam_takes_long_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run_memory, "ROOMY", 10)  # in place of a beam of more than 1000 states
    plant, force = cantilever(16, damping_time=1e-2), 1e-3
    context = plant.create_default_context()
    plant.find("load").fix(context, [0, 0, 0, 0, force, 0])
    run = fx.simulate(plant, 5.0, context=context, method="Rodas5P", rtol=1e-4, atol=1e-6)
    assert run.statistics.native_steps == run.statistics.steps < 300
    rest = force * LENGTH**3 / (3.0 * E * WIDTH * THICKNESS**3 / 12.0)
    assert plant.body("tip").pose(run.context).p[1] == pytest.approx(rest, rel=1e-3)


@pytest.mark.full
@needs_llvmlite
def test_a_beam_at_rest_that_stands_askew_runs_in_native_code() -> None:
    """Its forces there are rounding, other in each code."""
    builder = fx.PlantBuilder("askew", gravity=(0, 0, 0))
    turned = rotation_from_rotation_vector(np.array([1.0, 2.0, -0.4]))
    root = builder.add_frame("root", builder.world, (turned, [1, 2, 3]))
    end = builder.add_frame("end", root, (LENGTH, 0.0, 0.0))
    leaf_on(builder, root, end, 3, THICKNESS, planar=False)
    run = fx.simulate(builder.build(), 1e-5, method="RK45")
    assert run.statistics.native_steps == run.statistics.steps > 0


@pytest.mark.full
def test_a_beam_that_is_bent_far_comes_to_rest_as_its_load_path_does() -> None:
    plant = cantilever(2)
    load = 2.0 * E * WIDTH * THICKNESS**3 / 12.0 / LENGTH**2
    context = plant.create_default_context()
    context.set("load", [0.0, 0.0, 0.0, 0.0, load, 0.0])
    rest = fx.equilibrium(plant, context).context
    followed = fx.load_path(plant, {"load[4]": load}).context(-1)
    assert rest.continuous_state == pytest.approx(followed.continuous_state, abs=1e-8)


@pytest.mark.full
def test_a_thick_beam_that_shears_ends_beside_an_exact_rod_by_as_much_as_docs_say() -> None:
    thickness = 0.2 * LENGTH
    section = RectangleSection(width=WIDTH, thickness=thickness)
    bend = E * section.second_moment_z
    k_y, _ = section.shear_factors(STEEL.poissons_ratio)
    exact = rods.rod(  # with the length and the bending stiffness as units
        axial=E * section.area * LENGTH**2 / bend,
        shear=(k_y * STEEL.shear_modulus * section.area * LENGTH**2 / bend,) * 2,
        force=(0.0, 3.0, 0.0),
        moment=(0.0, 0.0, 2.0),
    )
    load = [0.0, 0.0, 2.0 * bend / LENGTH, 0.0, 3.0 * bend / LENGTH**2, 0.0]
    path = fx.load_path(cantilever(12, thickness=thickness, shear=True), {"load": load})
    off = np.linalg.norm(path["tip.position"][-1] / LENGTH - exact.position)
    assert off == pytest.approx(1.6e-4, rel=0.05)
