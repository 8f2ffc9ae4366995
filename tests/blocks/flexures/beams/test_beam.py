"""Beams as blocks: parameters, forces in plants, stresses, and what does not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import flexure as fx
from flexure.blocks import math as fm
from flexure.blocks.multibody.bodies.bodies import Body
from flexure.diagrams.contexts.value_places import Place
from flexure.diagrams.values.arrays import FloatArray
from flexure.sections import CircleSection, RectangleSection, TubeSection
from flexure.solvers.analysis.equations.equations import Equations, find_variables
from tests.support.mechanics.force_elements import world
from tests.support.native.native import needs_llvmlite
from tests.support.tiers import for_each

STEEL = fx.Material(
    210e9, poissons_ratio=0.3, density=7850.0, yield_strength=235e6, name="a plain steel"
)
L, W, T = 0.1, 0.02, 0.001
AREA, ABOUT_Y, ABOUT_Z = W * T, T * W**3 / 12.0, W * T**3 / 12.0


def leaf(**options: Any) -> fx.Beam:
    section = RectangleSection(width=W, thickness=T)
    given = {"section": section, "material": STEEL, "length": L, **options}
    return fx.Beam("leaf", world(), Body("table"), **given)


def at(beam: fx.Beam, p: Any, theta: Any = (0.0, 0.0, 0.0)) -> fx.Context:
    """Return a context in which C stands somewhere in A, at rest."""
    context = beam.create_default_context()
    (end,) = (each for each in beam.attachments if each.pose is not None)
    assert end.pose is not None
    assert end.velocity is not None
    R = fm.rotation_from_rotation_vector(np.asarray(theta, dtype=float))
    end.pose.fix(context, np.concatenate([R.ravel(), np.asarray(p, dtype=float)]))
    end.velocity.fix(context, np.zeros(6))
    return context


def force_on_C(beam: fx.Beam, context: fx.Context) -> FloatArray:
    force: FloatArray = beam.force_ports[1].eval(context)
    return force


def timoshenko(h: float, phi_y: float, phi_z: float, factor_z: float = 1.0) -> FloatArray:
    """Return the stiffness of the end C of a clamped beam, rotations first, of the textbook."""
    E, G = STEEL.youngs_modulus, STEEL.shear_modulus
    J = float(RectangleSection(W, T).torsion_constant)
    K = np.diag([G * J / h, 0.0, 0.0, E * AREA / h, 0.0, 0.0])
    for EI, phi, across, about, sign in (
        (factor_z * E * ABOUT_Z, phi_z, 4, 2, -1.0),
        (E * ABOUT_Y, phi_y, 5, 1, 1.0),
    ):
        K[across, across] = 12.0 * EI / (h**3 * (1.0 + phi))
        K[across, about] = K[about, across] = sign * 6.0 * EI / (h**2 * (1.0 + phi))
        K[about, about] = (4.0 + phi) * EI / (h * (1.0 + phi))
    return K


def stiffness(beam: fx.Beam, context: fx.Context) -> FloatArray:
    """Return the exact derivatives of minus the force on C by rotations and positions of C."""
    end = beam.attachments[1]
    assert end.pose is not None
    variables = find_variables(context, [end.pose], "Cannot differentiate")
    equations = Equations(context.clone(), variables, [Place.of(beam.force_ports[1])])
    by_pose = equations.jacobian(equations.point())
    R = end.pose.eval(context)[:9].reshape(3, 3)
    turns = [by_pose[:, :9] @ np.ravel(fm.skew(axis) @ R) for axis in np.eye(3)]
    found: FloatArray = -np.concatenate([np.stack(turns, axis=1), by_pose[:, 9:]], axis=1)
    return found


@pytest.mark.parametrize("shear", [True, False])
def test_unstressed_it_has_the_stiffness_of_the_textbook(shear: bool) -> None:
    beam = leaf(shear=shear)
    scale = 2.6 * (12.0 + 11.0 * 0.3) / (10.0 * 1.3) / L**2 * shear  # E/(k G) over the length
    wanted = timoshenko(L, scale * W**2, scale * T**2)
    found = stiffness(beam, at(beam, (L, 0.0, 0.0)))
    assert found == pytest.approx(wanted, rel=1e-11, abs=1e-9 * np.abs(wanted).max())
    assert np.diag(found) == pytest.approx(np.diag(wanted), rel=1e-11)


def test_a_plate_and_clamped_warping_make_it_stiffer() -> None:
    beam = leaf(shear=False, plate=True, clamped_warping=True)
    found = stiffness(beam, at(beam, (L, 0.0, 0.0)))
    wanted = timoshenko(L, 0.0, 0.0, 1.0 / (1.0 - 0.3**2))
    assert np.diag(found)[1:] == pytest.approx(np.diag(wanted)[1:], rel=1e-11)
    # G J φ' - E Γ φ''' = T with φ' = 0 at both ends, where warping is clamped, and Γ = w³ t³/144.
    root = np.sqrt(48.0 / 2.6) / W
    x, step = np.linspace(0.0, L, 20001, retstep=True)
    rate = 1.0 - np.cosh(root * (x - 0.5 * L)) / np.cosh(0.5 * root * L)  # φ' over T/(G J)
    turn = step * (np.sum(rate) - 0.5 * (rate[0] + rate[-1]))
    assert found[0, 0] == pytest.approx(wanted[0, 0] * L / turn, rel=1e-6)


def test_warping_makes_short_leaves_stiff_without_a_jump() -> None:
    widths = W * np.geomspace(1.0, 1e5, 40)
    by_width = []
    for width in widths:
        section = RectangleSection(width, T)
        beam = leaf(section=section, shear=False, clamped_warping=True)
        law = beam.law(beam.create_default_context())
        by_width.append(law.torsion_stiffness / float(section.torsion_constant))
    x = L / widths * np.sqrt(12.0 / 2.6)
    # 1 - tanh(x)/x = x² Σ 2 / (a² (a² + x²)) with a = π (k + ½).
    rests = [
        each**2 * np.sum(2.0 / (a2 * (a2 + each**2)))
        for each in x
        for a2 in [(np.pi * (np.arange(1000) + 0.5)) ** 2]
    ]
    assert by_width == pytest.approx(STEEL.shear_modulus / np.array(rests), rel=1e-9)


def test_dimensions_and_elastic_constants_are_parameters() -> None:
    beam = leaf()
    names = {each.name for each in beam.numeric_parameters}
    assert names == {
        *("width", "thickness", "length"),
        *("youngs_modulus", "poissons_ratio", "density", "yield_strength"),
    }
    context = at(beam, (L, 1e-6, 0.0))
    before = force_on_C(beam, context)[4]
    beam.section.handles["thickness"].set(context, 2.0 * T)
    thick = force_on_C(beam, context)[4]
    assert thick == pytest.approx(8.0 * before, rel=1e-2)  # but for shear
    beam.youngs_modulus.set(context, 105e9)
    assert force_on_C(beam, context)[4] == pytest.approx(0.5 * thick)  # and G with it
    with pytest.raises(fx.errors.ValueRefusedError, match="thickness"):
        beam.section.handles["thickness"].set(context, 0.0)


def test_a_shear_modulus_of_its_own_is_a_parameter() -> None:
    rolled = fx.Material(210e9, poissons_ratio=0.3, shear_modulus=70e9, density=7850.0)
    beam = leaf(material=rolled)
    context = at(beam, (L, 0.0, 0.0), (1e-4, 0.0, 0.0))
    before = force_on_C(beam, context)[0]
    beam.shear_modulus.set(context, 35e9)
    assert force_on_C(beam, context)[0] == pytest.approx(0.5 * before, rel=1e-6)
    assert not hasattr(beam, "safety")
    assert not hasattr(beam, "yield_strength")


@pytest.mark.full
def test_a_tube_that_is_turned_inside_out_stops_compiled_runs_too() -> None:
    builder = fx.PlantBuilder("stage", gravity=(0, 0, 0))
    table = builder.add_body(
        "table", fx.SpatialInertia.solid_sphere(1.0, radius=0.1), com=(L, 0, 0)
    )
    tube = TubeSection(outer_diameter=0.002, inner_diameter=0.001)
    end = builder.add_frame("end", table, (L, 0.0, 0.0))
    beam = fx.Beam("tube", builder.world, end, section=tube, material=STEEL, length=L)
    builder.add_force_element(beam)
    plant = builder.build()
    context = plant.create_default_context()
    context.set("tube.inner_diameter", 0.003)
    with pytest.raises(fx.errors.FlexureError, match=r"0\.003 m inside of 0\.002 m"):
        fx.simulate(plant, 0.01, context=context)


# Sections ----------------------------------------------------------------------------------------


def test_sections_carry_what_statics_asks_of_a_leaf_under_tension() -> None:
    """Of the beam column E I v'''' = N v'' with ends that are clamped, one of them displaced."""
    beam, y, N = leaf(shear=False), 2e-4, 40.0
    bend = STEEL.youngs_modulus * ABOUT_Z
    root = np.sqrt(N / bend) * L
    shortening = L * (y / L) ** 2 * 0.6  # up to N, and little against what N lengthens
    context = at(beam, (L * (1.0 + N / (STEEL.youngs_modulus * AREA)) - shortening, y, 0.0))
    rows = beam.section_forces.eval(context).reshape(3, 6)
    pull = rows[:, 3]
    assert pull == pytest.approx(np.full(3, pull[0]), rel=1e-3)
    root = np.sqrt(pull[0] / bend) * L
    shear = bend / L**3 * root**3 / (root - 2.0 * np.tanh(root / 2.0)) * y
    end = 0.5 * (shear * L - pull[0] * y)
    assert rows[[0, 2], 2] == pytest.approx([end, -end], rel=2e-3)
    assert rows[1, 2] == pytest.approx(0.0, abs=1e-6 * end)
    assert rows[[0, 2], 4] == pytest.approx([shear, shear], rel=2e-3)


def test_a_moment_is_the_same_everywhere() -> None:
    beam = leaf(shear=False)
    angle, bend = 0.05, STEEL.youngs_modulus * ABOUT_Z
    chord = L * np.sinc(0.5 * angle / np.pi)
    end = chord * np.array([np.cos(angle / 2.0), np.sin(angle / 2.0), 0.0])
    context = at(beam, end, (0.0, 0.0, angle))
    rows = beam.section_forces.eval(context).reshape(3, 6)
    assert rows[:, 2] == pytest.approx(np.full(3, bend * angle / L), rel=1e-4)
    bending = 0.5 * T * bend * angle / L / ABOUT_Z
    tension = np.abs(rows[:, 3]) / AREA
    assert beam.stress.eval(context) == pytest.approx(bending + tension, rel=1e-4)
    (safety,) = beam.safety.eval(context)
    assert safety == pytest.approx(235e6 / beam.greatest_stress.eval(context)[0])


def test_without_stress_safety_is_infinite() -> None:
    beam = leaf()
    context = at(beam, (L, 0.0, 0.0))
    assert beam.greatest_stress.eval(context).tolist() == [0.0]
    assert beam.safety.eval(context).tolist() == [np.inf]


# Taper -------------------------------------------------------------------------------------------


def beam_column(beam: fx.Beam, pull: float, plane: str) -> FloatArray:
    """Integrate E I φ'' + k G A (w' - φ) = 0 and (k G A (w' - φ) + N w')' = 0 from A to C.

    Returns the stiffness of C by deflection and rotation, with A clamped.
    """
    context, E, G = beam.create_default_context(), 210e9, 210e9 / 2.6

    def slopes(x: float, y: FloatArray) -> FloatArray:
        section = beam.section_at(x / L, context)
        second = section.second_moment_z if plane == "y" else section.second_moment_y
        _, turn, moment, across = y.reshape(4, 4)
        rigid = G * section.area * section.shear_factors(0.3)[0]
        slope = (across + rigid * turn) / (rigid + pull)
        found = [slope, moment / (E * second), pull * slope - across, np.zeros(4)]
        return np.concatenate(found)

    y = solve_ivp(slopes, (0.0, L), np.eye(4).ravel(), "DOP853", rtol=1e-11, atol=1e-14).y
    end = y[:, -1].reshape(4, 4)  # w, φ, M and the force across at C, by those at A
    return np.array(np.linalg.solve(end[:2, 2:].T, end[[3, 2]][:, 2:].T).T, dtype=np.float64)


@pytest.mark.full
@pytest.mark.parametrize("pull", [0.0, 20.0, -20.0])
@pytest.mark.parametrize("ends", [(T, 2.0 * T), (2.0 * T, T)])
def test_a_tapered_leaf_is_as_stiff_as_its_differential_equation_says(
    ends: tuple[float, float], pull: float
) -> None:
    first, last = (RectangleSection(0.5 * W * T / thin, thin) for thin in ends)
    beam = leaf(section=first, end_section=last)
    axial = beam.law(beam.create_default_context()).axial_stiffness
    context = at(beam, (L * (1.0 + pull / axial), 0.0, 0.0))
    along = np.diag([1.0] * 3 + [1.0 + pull / axial] * 3)  # by angles of what is longer now
    K, about_z, about_y = along @ stiffness(beam, context) @ along, [4, 2], [5, 1]
    assert beam.section_forces.eval(context)[3] == pytest.approx(pull, abs=1e-7)
    wanted = beam_column(beam, pull, "y")
    assert K[np.ix_(about_z, about_z)] == pytest.approx(wanted, rel=5e-6)
    wanted = beam_column(beam, pull, "z") * np.array([[1.0, -1.0], [-1.0, 1.0]])
    assert K[np.ix_(about_y, about_y)] == pytest.approx(wanted, rel=5e-6)


def test_a_taper_to_the_same_section_changes_nothing() -> None:
    given: dict[str, Any] = {"plate": True, "damping_time": 0.1}
    plain, same = leaf(**given), leaf(end_section=RectangleSection(W, T), **given)
    pose = ((0.99 * L, 0.01 * L, 0.02 * L), (0.1, 0.2, -0.1))
    for name in ("force_on_frame_A", "stress", "inertia_on_C"):
        ports = (each.output_port(name) for each in (plain, same))
        first, second = (
            port.eval(at(beam, *pose)) for port, beam in zip(ports, (plain, same), strict=True)
        )
        assert second == pytest.approx(first, rel=1e-10)


def test_mass_and_stress_follow_the_taper() -> None:
    beam = leaf(end_section=RectangleSection(W, 3.0 * T))
    names = {each.name for each in beam.numeric_parameters}
    assert {"width", "thickness", "end_width", "end_thickness"} <= names
    carried = [port.eval(at(beam, (L, 0.0, 0.0)))[0] for port in beam.inertia_ports]
    assert carried == pytest.approx([7850.0 * L / 2.0 * W * T * k for k in (1.5, 2.5)])
    context = at(beam, (L, 0.0, 0.0), (1e-3, 0.0, 0.0))
    thickness = np.array([1.0, 2.0, 3.0]) * T
    torque = beam.section_forces.eval(context)[0]
    sections = [RectangleSection(W, each) for each in thickness]
    twisted = [np.sqrt(3.0) * each.torsion_stress(torque) for each in sections]
    assert beam.stress.eval(context) == pytest.approx(twisted, rel=1e-3)


# Mass --------------------------------------------------------------------------------------------


def test_the_halves_at_the_ends_make_the_mass_center_and_inertia_of_the_whole() -> None:
    beam = leaf()
    at_A, at_C = (port.eval(at(beam, (L, 0.0, 0.0))) for port in beam.inertia_ports)
    mass = 7850.0 * W * T * L
    assert at_A[0] + at_C[0] == pytest.approx(mass)
    assert at_A[1] + at_C[1] + L * at_C[0] == pytest.approx(mass * L / 2.0)
    about_C = at_C[6] + 2.0 * L * at_C[1] + L**2 * at_C[0]  # moved from C to A
    assert at_A[6] + about_C == pytest.approx(mass * (L**2 / 3.0 + T**2 / 12.0))


# Unstressed shapes -------------------------------------------------------------------------------


def test_a_curved_beam_is_unstressed_at_the_end_of_its_arc() -> None:
    beam = leaf(curvature=(2.0, 5.0), prestressed=True)
    turn = L * np.array([0.0, 2.0, 5.0])
    steps = [fm.rotation_from_rotation_vector(s * turn)[:, 0] for s in np.linspace(0.0, 1.0, 2001)]
    end = L * (np.sum(steps, axis=0) - 0.5 * (steps[0] + steps[-1])) / 2000.0
    assert force_on_C(beam, at(beam, end, turn)) == pytest.approx(np.zeros(6), abs=5e-3)
    given = leaf(unstressed_pose=(fm.rotation_from_rotation_vector(turn), end))
    assert force_on_C(given, at(given, end, turn)) == pytest.approx(np.zeros(6), abs=1e-9)
    assert given.stored_energy.eval(at(given, end, turn)) == pytest.approx([0.0], abs=1e-20)


# Damping -----------------------------------------------------------------------------------------


def test_dampers_are_the_stiffness_times_their_time() -> None:
    """In small motions, the force on C is -K (x + τ ẋ)."""
    beam = leaf(damping_time=1e-3)
    context = at(beam, (L, 0.0, 0.0))
    K, end = stiffness(beam, context), beam.attachments[1]
    assert end.velocity is not None
    for V in np.eye(6):
        end.velocity.fix(context, V)
        found = force_on_C(beam, context)
        assert found == pytest.approx(-1e-3 * K @ V, rel=1e-11, abs=1e-9)
        power = beam.non_conservative_power.eval(context)
        assert power == pytest.approx([-1e-3 * V @ K @ V], rel=1e-11)


def test_a_loss_factor_is_reached_at_its_frequency() -> None:
    beam = leaf(loss_factor=0.01, at_frequency=50.0)
    assert beam.damping_time is not None
    assert beam.damping_time.default == pytest.approx(0.01 / (2.0 * np.pi * 50.0))


# What does not fit -------------------------------------------------------------------------------


def stage(**options: Any) -> fx.PlantBuilder:
    builder = fx.PlantBuilder("stage")
    table = builder.add_body("table", fx.SpatialInertia.point_mass(1.0))
    slide = builder.add_joint(fx.PrismaticJoint("slide", builder.world, table, axis=(0, 1, 0)))
    slide.default_positions = [options.pop("offset", 0.0)]
    end = builder.add_frame("end", table, options.pop("end", (L, 0.0, 0.0)))
    section = RectangleSection(W, T)
    given = {"section": section, "material": STEEL, "length": L, **options}
    builder.add_force_element(fx.Beam("leaf", builder.world, end, **given))
    return builder


@pytest.mark.parametrize(
    "options",
    [
        {"length": 1.01 * L},
        {"offset": 1e-6},
        {"end": (fm.rotation_about(np.array([1.0, 0.0, 0.0]), 1e-5), (L, 0.0, 0.0))},
        {"curvature": (0.0, 1.0)},
    ],
)
def test_frames_that_do_not_fit_are_refused_when_the_plant_is_built(options: Any) -> None:
    builder = stage(**options)
    with pytest.raises(fx.errors.DeclarationError, match=r"Cannot fit beam 'leaf' of length 0\.1"):
        builder.build()
    assert stage(**options, prestressed=True).build().num_positions == 1


def table_on_x(length: float = L, **options: Any) -> fx.Plant:
    """A table that slides along a leaf that is bent by nothing, so that only its length counts."""
    builder = fx.PlantBuilder("stage", gravity=(0.0, 0.0, 0.0))
    table = builder.add_body("table", fx.SpatialInertia.point_mass(1.0))
    slide = builder.add_joint(fx.PrismaticJoint("slide", builder.world, table, axis=(1, 0, 0)))
    slide.default_pose = np.eye(3), (length, 0.0, 0.0)
    given: dict[str, Any] = {"section": RectangleSection(W, T), "material": STEEL}
    builder.add_force_element(
        fx.Beam("leaf", builder.world, table, length=length, **given, **options)
    )
    return builder.build()


BEGINNINGS: dict[str, Callable[[fx.Plant, fx.Context], object]] = {
    "modes": fx.modes,
    "a linear model": fx.linearize,
    "a simulation": lambda plant, context: fx.simulate(plant, 1e-6, context=context),
}


@pytest.mark.parametrize("begin", BEGINNINGS.values(), ids=BEGINNINGS)
def test_a_length_that_does_not_fit_between_frames_that_stay_begins_nothing(begin: Any) -> None:
    plant = table_on_x()
    context = plant.create_default_context()
    context.set("leaf.length", 1.1 * L)
    match = r"'leaf\.length' = 0\.11 m: .* squeezed by 9\.09%.* built for 0\.1 m.*equilibrium"
    with pytest.raises(fx.errors.EvaluationError, match=match):
        begin(plant, context)
    context.set("leaf.length", 1.001 * L)  # as if it were warmer
    fx.linearize(plant, context)


def test_a_length_begins_where_its_frames_fit_as_if_the_plant_were_built_for_it() -> None:
    plant, anew = table_on_x(), table_on_x(1.1 * L)
    context = plant.create_default_context()
    context.set("leaf.length", 1.1 * L)
    at_rest = fx.equilibrium(plant, context).context
    assert plant.joint("slide").positions.get(at_rest) == pytest.approx([1.1 * L])
    frequency = fx.modes(anew)[0].frequency
    assert fx.modes(plant, at_rest)[0].frequency == pytest.approx(frequency)
    tight = table_on_x(prestressed=True).create_default_context()
    tight.set("leaf.length", 1.1 * L)
    assert tight.get("leaf.section_forces[N_A]") < 0.0
    assert len(fx.linearize(tight.system, tight).A) == 2


@pytest.mark.full
def test_sweeps_and_searches_refuse_a_length_that_does_not_fit() -> None:
    plant, stress = table_on_x(), fx.metrics.final("leaf.greatest_stress")
    lengths = [L, 1.001 * L, 1.1 * L]
    given: list[dict[str, Any]] = [{}, {"compiled": False}]
    for options in given:
        swept = fx.sweep(
            plant, {"leaf.length": lengths}, 1e-6, metrics={"stress": stress}, **options
        )
        assert list(swept.failures) == [2]
        assert "squeezed by 9.09%" in swept.failures[2]
    with pytest.raises(fx.errors.EvaluationError, match=r"bounds of 'leaf\.length' at 0\.11"):
        fx.optimize(plant, {"leaf.length": (L, 1.1 * L)}, stress, t_final=1e-6)


def test_a_refused_plant_can_be_built_when_its_bodies_are_in_place() -> None:
    builder = stage(offset=1e-3)
    match = "by default_pose of joints.*prestressed=True"
    with pytest.raises(fx.errors.DeclarationError, match=match):
        builder.build()
    builder.joint("slide").default_positions = [0.0]
    plant = builder.build()
    assert plant.create_default_context().get("leaf.stored_energy") == pytest.approx([0.0])


def test_the_length_of_a_straight_beam_on_one_body_is_that_between_its_frames() -> None:
    ground = world()
    given: dict[str, Any] = {"section": RectangleSection(W, T), "material": STEEL}
    end = fx.Frame("end", ground, (0.25, 0.0, 0.0))
    beam = fx.Beam("leaf", ground, end, **given)
    assert beam.length.default == 0.25
    with pytest.raises(fx.errors.DeclarationError, match="length, since the frames are on two"):
        fx.Beam("leaf", ground, Body("table"), **given)
    with pytest.raises(fx.errors.DeclarationError, match="length, since that of a curved beam"):
        fx.Beam("leaf", ground, end, curvature=(0.0, 1.0), **given)


@for_each(
    ("options", "message"),
    [
        ({"section": 3.0}, "expected a Section; found 3.0"),
        ({"material": "steel"}, "expected a Material; found 'steel'"),
        ({"length": 0.0}, "leaf.length"),
        ({"length": np.nan}, "leaf.length"),
        ({"curvature": (1.0, 2.0), "unstressed_pose": (L, 0.0, 0.0)}, "found both of them"),
        ({"damping_time": 1.0, "loss_factor": 0.1}, "found damping_time, loss_factor"),
        ({"loss_factor": 0.1}, "loss_factor with at_frequency; found loss_factor"),
        ({"loss_factor": -0.1, "at_frequency": 1.0}, "with loss_factor"),
        ({"damping_time": -1.0}, "damping_time"),
        (
            {"section": CircleSection(0.001), "clamped_warping": True},
            "a RectangleSection with clamped_warping",
        ),
        (
            {"section": CircleSection(0.001), "plate": True},
            "a RectangleSection, or .* Omit plate",
        ),
        (
            {"section": TubeSection(0.002, 0.001), "plate": True},
            "a RectangleSection, or .* Omit plate",
        ),
        ({"segments": 1001}, "at most 1000 segments.* Use 8 to 32"),
        ({"segments": 10**6}, "at most 1000 segments.* Use 8 to 32"),
        ({"length": []}, "with length: expected a real number; found a vector of size 0"),
        ({"length": np.ones((2, 3))}, "with length: expected a real number"),
        ({"damping_time": []}, "with damping_time: expected a real number"),
        ({"shear": 1}, "True or False for shear"),
        ({"end_section": CircleSection(0.001)}, "of the kind of its section, RectangleSection"),
        ({"length": float("nan")}, "'leaf.length': expected finite numbers; found nan"),
        (
            {"end_section": RectangleSection(W, T), "clamped_warping": True},
            "clamped_warping or end_section",
        ),
    ],
)
def test_odd_options_are_refused(options: Any, message: str) -> None:
    with pytest.raises(fx.errors.FlexureError, match=message):
        leaf(**options)


@pytest.mark.parametrize(
    ("p", "theta", "found"),
    [
        ((L, 0.0, 0.0), (0.0, 3.0, 0.0), "a rotation by 171.89 degrees, and 85.94 degrees"),
        ((-L, 0.0, 0.0), (0.0, 0.0, 0.0), "a rotation by 0.00 degrees, and 180.00 degrees"),
        ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), "180.00 degrees to a line of 0 m"),
    ],
)
def test_what_is_bent_beyond_its_equations_is_refused(p: Any, theta: Any, found: str) -> None:
    beam = leaf()
    with pytest.raises(fx.errors.EvaluationError, match=f"beam 'leaf'.*found {found}|{found}"):
        force_on_C(beam, at(beam, p, theta))


def test_frames_at_one_place_have_no_distance_to_be_the_length() -> None:
    builder = fx.PlantBuilder("plant")
    table = builder.add_body("table", fx.SpatialInertia(1.0))
    top = builder.add_frame("top", table, (0.0, 0.0, 0.0))
    section = RectangleSection(W, T)
    with pytest.raises(fx.errors.DeclarationError, match="'top', which are at one place"):
        fx.Beam("leaf", table, top, section=section, material=STEEL)


def test_a_bound_that_is_excluded_is_told_as_such() -> None:
    beam = leaf()
    with pytest.raises(fx.errors.ValueRefusedError, match=r"expected values in \(-1, 0.5\]"):
        beam.poissons_ratio.set(beam.create_default_context(), -1.0)


@needs_llvmlite
def test_trials_that_bend_a_beam_beyond_its_equations_are_steps_that_were_too_long() -> None:
    builder = fx.PlantBuilder("whip", gravity=(0, 0, 0))
    tip = builder.add_body("tip", fx.SpatialInertia.solid_box(1e-3, size=(0.01, 0.01, 0.01)))
    joint = builder.add_joint(fx.PlanarJoint("tip", builder.world, tip))
    joint.default_pose = (np.eye(3), [0.2, 0, 0])
    steel, section = fx.Material.common("structural steel S235"), RectangleSection(0.02, 0.001)
    given: dict[str, Any] = {"length": 0.2, "shear": False, "planar": True}
    builder.add_force_element(
        fx.Beam("leaf", builder.world, tip, section=section, material=steel, **given)
    )
    plant = builder.build()
    context = plant.create_default_context()
    joint.velocities.set(context, [0, 0, 1e4])
    native, interpreted = (
        fx.simulate(
            plant, 1e-3, context=context.clone(), method="RK23", rtol=0.09, atol=0.1, compiled=on
        )
        for on in (True, False)
    )
    assert native.statistics.native_steps == native.statistics.steps == interpreted.statistics.steps
    np.testing.assert_allclose(
        interpreted.context.continuous_state, native.context.continuous_state, rtol=1e-6
    )


@pytest.mark.full
@pytest.mark.parametrize("segments", [1, 3])
def test_the_edges_of_a_twisted_leaf_are_stretched(segments: int) -> None:
    """Straight fibers of a leaf that is free along x: their torque, and the stress of an edge."""
    L, w, t, E, angle = 0.1, 0.02, 5e-4, 193e9, np.deg2rad(30.0)
    builder = fx.PlantBuilder("bench", gravity=(0.0, 0.0, 0.0))
    tip = builder.add_body("tip", fx.SpatialInertia.point_mass(0.01))
    joint = builder.add_joint(fx.RpyFloatingJoint("tip", builder.world, tip))
    joint.default_pose = np.eye(3), (L, 0.0, 0.0)
    steel = fx.Material(E, poissons_ratio=0.3, density=7880.0)
    size: dict[str, Any] = {"length": L, "width": w, "thickness": t, "material": steel}
    leaf = fx.LeafSpring("leaf", builder.world, tip, segments=segments, **size)
    builder.add_force_element(leaf)
    plant = builder.build()
    with pytest.warns(UserWarning, match="may err by several percent"):
        path = fx.load_path(plant, {"tip.q[0]": [0.0, 0.5 * angle, angle, 2.0 * angle]})
    torques = path.required["tip.q[0]"][path.stations]
    for station, turned in ((1, 0.5 * angle), (2, angle)):
        z = w * ((np.arange(2000) + 0.5) / 2000 - 0.5)
        k = turned / L
        stress = 0.5 * E * k**2 * (z**2 - np.mean(z**2))
        fibers = t * w * np.mean(stress * z**2) * k
        shear = 0.5 * E / 1.3 * leaf.section.default.torsion_constant * k
        assert torques[station] == pytest.approx(shear + fibers, rel=1e-4)
        found = leaf.greatest_stress.eval(path.context(path.stations[station]))[0]
        tau = leaf.section.default.torsion_stress(shear)
        assert found == pytest.approx(np.hypot(stress[0], np.sqrt(3.0) * tau), rel=2e-3)
    assert fibers > 0.3 * shear
    name = "twist per length times width squared, over thickness"
    before = fx.check_limits(plant, path.context(path.stations[2])).beyond
    assert all(each.quantity != name for each in before)
    assert any(each.quantity == name for each in fx.check_limits(path).beyond)
