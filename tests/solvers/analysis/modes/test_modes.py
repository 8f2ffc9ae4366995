"""Modes are those of closed forms and of mass and stiffness matrices that come another way."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.linalg import eigh, expm

import flexure as fx
from flexure.blocks.math import RigidTransform, rotation_from_rpy
from flexure.diagrams.checks.errors import TraceError
from flexure.solvers.analysis.equations import equations
from tests.support.native.native import needs_llvmlite
from tests.support.tiers import for_each

FloatArray = npt.NDArray[np.float64]

LUMP = fx.SpatialInertia.solid_box(3.0, size=(0.1, 0.2, 0.4))
STIFFNESS = {"torque_stiffness": (20.0, 30.0, 40.0), "force_stiffness": (2e3, 3e3, 5e3)}
DAMPING = {"torque_damping": (0.02, 0.03, 0.04), "force_damping": (2.0, 3.0, 5.0)}


def oscillator(stiffness: float = 8.0, damping: float = 0.0, mass: float = 2.0) -> fx.Plant:
    """A mass on a rail, with a spring and a damper."""
    builder = fx.PlantBuilder("oscillator", gravity=(0.0, 0.0, 0.0))
    body = builder.add_body("cart", fx.SpatialInertia.point_mass(mass))
    rail = builder.add_joint(fx.PrismaticJoint("rail", builder.world, body, (1, 0, 0)))
    spring = fx.JointSpring("spring", rail, stiffness=stiffness, damping=damping)
    builder.add_force_element(spring)
    return builder.build()


def on_mounts(
    joint: type[fx.multibody.Joint] = fx.QuaternionFloatingJoint,
) -> tuple[fx.Plant, fx.Context]:
    """A body that sinks into four bushings, in its equilibrium."""
    builder = fx.PlantBuilder("rig")
    inertia = fx.SpatialInertia.solid_box(12.0, size=(0.6, 0.4, 0.2))
    block = builder.add_body("block", inertia, com=(0.02, 0.01, 0.03))
    builder.add_joint(joint("free", builder.world, block))
    for k, corner in enumerate([(0.3, 0.2), (0.3, -0.2), (-0.3, 0.2), (-0.3, -0.2)]):
        place = (np.eye(3), (*corner, -0.1))
        foot = builder.add_frame(f"foot{k}", builder.world, place)
        seat = builder.add_frame(f"seat{k}", block, place)
        mount = fx.LinearBushing(f"mount{k}", foot, seat, **STIFFNESS, **DAMPING)
        builder.add_force_element(mount)
    plant = builder.build()
    return plant, fx.equilibrium(plant).context


def links(count: int, gravity: float = 9.81) -> fx.Plant:
    """A cantilever of rods, with a spring and a damper in each joint."""
    builder = fx.PlantBuilder("beam", gravity=(0.0, 0.0, -gravity))
    rod = fx.SpatialInertia.thin_rod(0.2, length=0.3, axis="x")
    tip: Any = builder.world
    for k in range(count):
        body = builder.add_body(f"link{k}", rod, com=(0.15, 0.0, 0.0))
        joint = builder.add_joint(fx.RevoluteJoint(f"joint{k}", tip, body, axis=(0, 1, 0)))
        spring = fx.JointSpring(f"spring{k}", joint, stiffness=30.0, damping=0.01)
        builder.add_force_element(spring)
        tip = builder.add_frame(f"tip{k}", body, (np.eye(3), (0.3, 0.0, 0.0)))
    return builder.build()


def free_pair() -> fx.Plant:
    """Two bodies in space, with a bushing between them."""
    builder = fx.PlantBuilder("pair", gravity=(0.0, 0.0, 0.0))
    bodies = [builder.add_body(name, LUMP) for name in ("one", "two")]
    for body in bodies:
        builder.add_joint(fx.QuaternionFloatingJoint(f"free_{body.name}", builder.world, body))
    bushing = fx.LinearBushing("link", *bodies, **STIFFNESS, **DAMPING)  # type: ignore[arg-type, misc]
    builder.add_force_element(bushing)
    return builder.build()


def hessian(energy: Callable[[FloatArray], float], size: int, step: float = 1e-4) -> FloatArray:
    """Return second derivatives at zero, by central differences."""
    unit, middle = step * np.eye(size), energy(np.zeros(size))
    ends = [[energy(sign * row) for row in unit] for sign in (1.0, -1.0)]
    matrix = np.diag(ends[0] + np.array(ends[1]) - 2.0 * middle)
    for i, j in itertools.combinations(range(size), 2):
        both = energy(unit[i] + unit[j]) + energy(-unit[i] - unit[j]) - 2.0 * middle
        matrix[i, j] = matrix[j, i] = 0.5 * (both - matrix[i, i] - matrix[j, j])
    return np.asarray(matrix / step**2)


def moved(plant: fx.Plant, context: fx.Context, motion: FloatArray) -> fx.Context:
    """Return a context from which every joint has moved by constant velocities for 1 s."""
    twin = context.clone()
    for joint in plant.joints:
        v = motion[plant.tree.velocities_of(joint)]
        if joint.velocities_are_rates:
            joint.positions.set(twin, joint.positions.get(context) + v)
        elif joint.num_velocities:
            pose = joint.pose.get(context)
            turn = expm(np.cross(np.eye(3), v[:3]))
            shift = v[3:] if joint.can_translate else np.zeros(3)
            joint.pose.set(twin, RigidTransform(turn @ pose.R, pose.p + shift))
    return twin


def potential(plant: fx.Plant, context: fx.Context) -> Callable[[FloatArray], float]:
    """Return the potential energy over small motions."""
    return lambda motion: plant.calc_potential_energy(moved(plant, context, motion))


# Closed forms ---------------------------------------------------------------------------------


@pytest.mark.parametrize("damping", [0.0, 0.4, 7.9, 8.1, 40.0])
def test_one_mass_on_a_spring_has_the_modes_of_the_textbook(damping: float) -> None:
    mode, *others = fx.modes(oscillator(damping=damping))
    omega, zeta = np.sqrt(8.0 / 2.0), damping / (2.0 * np.sqrt(8.0 * 2.0))
    assert not others
    assert mode.kind == ("overdamped" if zeta > 1.0 else "oscillation")
    assert mode.frequency == pytest.approx(omega / (2.0 * np.pi), rel=1e-12)
    assert mode.damping_ratio == pytest.approx(zeta, rel=1e-12)
    if zeta > 1.0:
        slow, fast = 1.0 / (omega * (zeta + np.array([-1.0, 1.0]) * np.sqrt(zeta**2 - 1.0)))
        assert mode.time_constants == pytest.approx((fast, slow)[::-1], rel=1e-9)
        assert mode.damped_frequency == 0.0
    else:
        constant = 1.0 / (zeta * omega) if damping else np.inf
        assert mode.time_constants == pytest.approx((constant,), rel=1e-9)
        damped = mode.frequency * np.sqrt(1.0 - zeta**2)
        assert mode.damped_frequency == pytest.approx(damped, rel=1e-9)
    assert mode.shape == {"rail.translation": pytest.approx(1.0 / np.sqrt(2.0))}
    assert mode.strain_energy == {"spring": pytest.approx(1.0)}
    assert mode.dissipated_energy == ({"spring": pytest.approx(1.0)} if damping else {})


def test_a_double_pendulum_swings_as_the_textbook_says() -> None:
    length = 0.7
    builder = fx.PlantBuilder("pendulum")
    pivot: Any = builder.world
    for name in ("upper", "lower"):
        body = builder.add_body(name, fx.SpatialInertia.point_mass(2.0), com=(0.0, 0.0, -length))
        builder.add_joint(fx.RevoluteJoint(f"at_{name}", pivot, body, axis=(0, 1, 0)))
        pivot = builder.add_frame(f"end_of_{name}", body, (np.eye(3), (0.0, 0.0, -length)))
    found = fx.modes(builder.build())
    expected = np.sqrt(9.81 / length * (2.0 + np.sqrt(2.0) * np.array([-1.0, 1.0])))
    assert 2.0 * np.pi * found.frequencies == pytest.approx(expected, rel=1e-12)
    for mode, absolute in zip(found, (np.sqrt(2.0), -np.sqrt(2.0)), strict=True):
        ratio = mode.shape["at_lower.angle"] / mode.shape["at_upper.angle"]
        assert ratio == pytest.approx(absolute - 1.0, rel=1e-9)
        assert mode.strain_energy == {"gravity": pytest.approx(1.0)}
        lower = (1.0 + absolute) ** 2  # of the squares of the velocities, if the upper one is 1
        assert mode.bodies["lower"] == pytest.approx(lower / (1.0 + lower), rel=1e-9)


def test_a_uniform_chain_has_the_frequencies_of_the_closed_form() -> None:
    count, stiffness, mass = 6, 300.0, 0.5
    builder = fx.PlantBuilder("chain", gravity=(0.0, 0.0, 0.0))
    before = builder.world
    for k in range(count):
        body = builder.add_body(f"mass{k}", fx.SpatialInertia.point_mass(mass))
        rail = builder.add_joint(fx.PrismaticJoint(f"rail{k}", before, body, (1, 0, 0)))
        builder.add_force_element(fx.JointSpring(f"spring{k}", rail, stiffness=stiffness))
        before = body
    waves = (2.0 * np.arange(1, count + 1) - 1.0) * np.pi / (2.0 * (2.0 * count + 1.0))
    expected = 2.0 * np.sqrt(stiffness / mass) * np.sin(waves)
    found = fx.modes(builder.build())
    assert 2.0 * np.pi * found.frequencies == pytest.approx(expected, rel=1e-11)
    assert [mode.time_constants for mode in found] == [(np.inf,)] * count


def test_a_pendulum_that_stands_falls_and_gravity_works_against_its_spring() -> None:
    builder = fx.PlantBuilder("pendulum", gravity=(0.0, 0.0, -10.0))
    body = builder.add_body("bob", fx.SpatialInertia.point_mass(1.0), com=(0.0, 0.0, 1.0))
    axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, body, axis=(0, 1, 0)))
    builder.add_force_element(fx.JointSpring("spring", axis, stiffness=6.0))
    found = fx.modes(builder.build())
    assert sorted(mode.kind for mode in found) == ["decay", "growth"]
    for mode in found:
        sign = 1.0 if mode.kind == "decay" else -1.0
        assert mode.time_constants == pytest.approx((sign * 0.5,), rel=1e-12)
        assert mode.damping_ratio == sign
        assert mode.strain_energy == {
            "spring": pytest.approx(6.0 / 16.0),
            "gravity": pytest.approx(-10.0 / 16.0),
        }


# Mass and stiffness matrices that come another way --------------------------------------------


@pytest.mark.full
def test_a_body_on_four_mounts_agrees_with_its_matrices() -> None:
    plant, context = on_mounts()
    K, M = hessian(potential(plant, context), 6), plant.calc_mass_matrix(context)
    squares, _ = eigh(K, M)
    found = fx.modes(plant, context)
    assert [mode.kind for mode in found] == ["oscillation"] * 6
    assert (2.0 * np.pi * found.frequencies) ** 2 == pytest.approx(squares, rel=1e-6)
    for mode in found:
        shape = np.array(list(mode.shape.values()))
        assert (shape.conj() @ M @ shape).real == pytest.approx(1.0, rel=1e-12)
        assert (shape.conj() @ K @ shape).real == pytest.approx(abs(mode.poles[0]) ** 2, rel=1e-4)
        assert list(mode.bodies.values()) == pytest.approx([1.0])
        assert sum(mode.participation.values()) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.full
def test_coordinates_of_the_joint_do_not_matter() -> None:
    by_quaternion, by_angles = (
        fx.modes(*on_mounts(joint)) for joint in (fx.QuaternionFloatingJoint, fx.RpyFloatingJoint)
    )
    assert by_quaternion.frequencies == pytest.approx(by_angles.frequencies, rel=1e-9)
    assert by_quaternion.damping_ratios == pytest.approx(by_angles.damping_ratios, rel=1e-9)


def test_a_cantilever_of_links_agrees_with_its_matrices() -> None:
    plant = links(4)
    context = fx.equilibrium(plant).context
    for k in range(4):
        context.set(f"spring{k}.damping", 0.0)
    K, M = hessian(potential(plant, context), 4), plant.calc_mass_matrix(context)
    squares, shapes = eigh(K, M)
    found = fx.modes(plant, context)
    assert (2.0 * np.pi * found.frequencies) ** 2 == pytest.approx(squares, rel=1e-6)
    for mode, expected in zip(found, shapes.T, strict=True):
        shape = np.array(list(mode.shape.values()))
        assert abs(shape @ M @ expected) == pytest.approx(1.0, rel=1e-8)


@pytest.mark.full
def test_free_bodies_have_six_free_motions_and_nothing_else_at_zero() -> None:
    plant = free_pair()
    context = plant.create_default_context()
    place = RigidTransform(rotation_from_rpy((0.3, -0.8, 2.0)), np.array([0.3, 0.1, 2.0]))
    for joint, length in zip(plant.joints, (1.0, 3.0), strict=True):
        joint.pose.set(context, place)
        q = joint.positions.get(context).copy()
        q[:4] *= length  # which does not matter
        joint.positions.set(context, q)
    found = list(fx.modes(plant, context))
    assert [mode.kind for mode in found] == ["rigid"] * 6 + ["oscillation"] * 6
    assert all(mode.poles == (0.0,) and mode.strain_energy == {} for mode in found[:6])
    M = plant.calc_mass_matrix(context)
    shapes = np.array([list(mode.shape.values()) for mode in found])
    assert np.allclose((shapes[:6].conj() @ M @ shapes[:6].T), np.eye(6), atol=1e-10)
    assert np.allclose((shapes[:6].conj() @ M @ shapes[6:].T), 0.0, atol=1e-8)
    reduced = np.concatenate([0.5 * np.diag(LUMP.unit_inertia) * LUMP.mass, [0.5 * LUMP.mass] * 3])
    stiffness = np.array([*STIFFNESS["torque_stiffness"], *STIFFNESS["force_stiffness"]])
    speeds = [2.0 * np.pi * mode.frequency for mode in found[6:]]
    assert speeds == pytest.approx(np.sort(np.sqrt(stiffness / reduced)), rel=1e-9)


def test_the_spin_of_a_hanging_ball_is_free_and_its_swings_are_equal() -> None:
    builder = fx.PlantBuilder("lamp")
    lamp = builder.add_body(
        "lamp", fx.SpatialInertia.solid_sphere(1.0, radius=0.05), com=(0, 0, -0.8)
    )
    builder.add_joint(fx.BallQuaternionJoint("hook", builder.world, lamp))
    plant = builder.build()
    context = plant.create_default_context()
    spin = rotation_from_rpy((0.0, 0.0, 1.234))
    plant.joint("hook").pose.set(context, RigidTransform(spin, np.zeros(3)))
    spin_mode, *swings = fx.modes(plant, context)
    assert spin_mode.kind == "rigid"
    assert abs(spin_mode.shape["hook.rotation[z]"]) > 0.0
    about = 0.8**2 + 0.4 * 0.05**2
    assert [2.0 * np.pi * mode.frequency for mode in swings] == pytest.approx(
        [np.sqrt(9.81 * 0.8 / about)] * 2, rel=1e-12
    )
    M = plant.calc_mass_matrix(context)
    first, second = (np.array(list(mode.shape.values())) for mode in swings)
    assert abs(first.conj() @ M @ second) < 1e-12
    assert np.sort(np.abs(first)) == pytest.approx([0.0, 0.0, np.max(np.abs(first))], abs=1e-9)


def test_what_is_soft_beside_what_is_stiff_is_not_free() -> None:
    builder = fx.PlantBuilder("both", gravity=(0.0, 0.0, 0.0))
    for name, stiffness in (("soft", 1e-2), ("stiff", 1e10), ("free", 0.0)):
        body = builder.add_body(name, fx.SpatialInertia.point_mass(1.0))
        rail = builder.add_joint(fx.PrismaticJoint(f"on_{name}", builder.world, body, (1, 0, 0)))
        builder.add_force_element(fx.JointSpring(f"at_{name}", rail, stiffness=stiffness))
    found = fx.modes(builder.build())
    assert [mode.kind for mode in found] == ["rigid", "oscillation", "oscillation"]
    assert 2.0 * np.pi * found.frequencies == pytest.approx([0.0, 0.1, 1e5], rel=1e-9)


def test_a_locked_joint_has_no_mode() -> None:
    plant = links(3)
    context = fx.equilibrium(plant).context
    plant.joint("joint1").lock(context)
    found = fx.modes(plant, context)
    assert len(found) == 2
    assert list(found[0].shape) == ["joint0.angle", "joint2.angle"]


def lamp_with_a_ledger() -> fx.Plant:
    """A lamp on a ball joint with friction in it, and a block that nothing reads."""
    builder = fx.PlantBuilder("lamp")
    inertia = fx.SpatialInertia.solid_cylinder(0.5, radius=0.2, length=0.3)
    shade = builder.add_body("shade", inertia, com=(0.0, 0.0, -0.4))
    builder.add_joint(fx.BallQuaternionJoint("hook", builder.world, shade, damping=0.01))
    builder.add_energy_ledger()
    return builder.build()


def bodies_on_wires() -> fx.Plant:
    """Two bodies that hang below each other, where only rounding holds their spins."""
    builder = fx.PlantBuilder("wires")
    box = fx.SpatialInertia.solid_box(2.0, size=(0.1, 0.2, 0.3))
    before: fx.Frame | fx.Body = builder.world
    wire = {"free_length": 0.5, "stiffness": 800.0, "damping": 0.5}
    for name, height, offset in (("upper", -0.7, 0.02), ("lower", -1.6, 0.0)):
        body = builder.add_body(name, box, com=(0.5 * offset, offset, 0.0))
        free = fx.QuaternionFloatingJoint(f"free_{name}", builder.world, body)
        free.default_pose = (np.eye(3), (0.0, 0.0, height))
        builder.add_joint(free)
        start = (0.0, 0.0, 0.0 if before is builder.world else -0.15)
        end = (0.0, 0.0, 0.15)
        element = fx.LinearSpringDamper(f"to_{name}", before, start, body, end, **wire)
        builder.add_force_element(element)
        before = body
    return builder.build()


def in_order(poles: npt.ArrayLike) -> npt.NDArray[np.complex128]:
    """Return poles by their imaginary parts, which differ by more than rounding or not at all."""
    poles = np.asarray(poles, dtype=complex)
    return poles[np.lexsort((poles.real, poles.imag.round(6)))]


@pytest.mark.parametrize(
    ("make", "kinds"),
    [
        (lamp_with_a_ledger, {"rigid": 1, "integrator": 3, "decay": 1, "oscillation": 2}),
        (bodies_on_wires, {"rigid": 2, "oscillation": 10}),
    ],
)
def test_no_pole_is_lost_and_none_is_made_of_rounding(
    make: Callable[[], fx.Plant], kinds: dict[str, int]
) -> None:
    plant = make()
    start = plant.create_default_context()
    if plant.name == "lamp":
        start.set("hook.quaternion", [0.9, 0.1, 0.2, 0.3])
    context = fx.equilibrium(plant, start).context
    found = list(fx.modes(plant, context))
    assert collections.Counter(mode.kind for mode in found) == kinds
    poles = fx.linearize(plant, context, [], []).poles
    moving = np.concatenate([mode.poles for mode in found if mode.frequency > 0.0])
    expected = in_order(poles[np.abs(poles) > 1e-4])
    assert in_order(moving) == pytest.approx(expected, rel=1e-6, abs=1e-9)


# Other diagrams -------------------------------------------------------------------------------


def test_poles_of_controllers_and_lags_are_modes() -> None:
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        oscillator(damping=1.0),
        fx.FirstOrderLag("filter", time_constant=0.25),
        fx.Integrator("total"),
    )
    builder.connect("oscillator.rail.translation", "filter.u")
    builder.connect("filter.y", "total.u")
    loop = builder.build()
    found = fx.modes(loop)
    kinds = [mode.kind for mode in found]
    assert kinds == ["integrator", "oscillation", "decay"]
    assert found[2].time_constants == pytest.approx((0.25,), rel=1e-9)
    assert found[2].participation["filter.x"] == pytest.approx(1.0)
    assert found[0].participation["total.x"] == pytest.approx(1.0)
    assert found[1].participation["oscillator.rail.translation"] == pytest.approx(1.0)
    assert found[1].strain_energy == {"oscillator.spring": pytest.approx(1.0)}


def test_poles_of_a_diagram_are_those_of_its_linear_model() -> None:
    tf = fx.TransferFunction("filter", [1.0], [1.0, 3.0, 7.0, 5.0])
    found = fx.modes(tf, _driven(tf))
    poles = in_order(np.concatenate([mode.poles for mode in found]))
    assert poles == pytest.approx(in_order(np.roots([1.0, 3.0, 7.0, 5.0])), rel=1e-9)


def _driven(system: fx.System) -> fx.Context:
    context = system.create_default_context()
    context.set("u", 0.0)
    return context


def test_differences_serve_where_equations_cannot_be_traced() -> None:
    class Decaying(fx.LeafSystem):
        def __init__(self) -> None:
            super().__init__("slow")
            self.x = self.declare_continuous_state(z=2, default=[0.0, 0.0])

        def calc_time_derivatives(self, context: Any) -> Any:
            x, y = (float(each) for each in self.x(context))  # which no trace can follow
            return [-2.0 * x + 3.0 * y, -5.0 * y]

    found = fx.modes(Decaying())
    assert found.how.startswith("central differences")
    assert [mode.time_constants[0] for mode in found] == pytest.approx([0.5, 0.2], rel=1e-6)


# What is refused ------------------------------------------------------------------------------


def test_who_is_not_at_rest_is_warned() -> None:
    plant = links(2)
    with pytest.warns(UserWarning, match=r"not at rest: .*equilibrium\(\.\.\.\)\.context"):
        fx.modes(plant)


def test_a_sampled_controller_is_refused_by_name() -> None:
    builder = fx.DiagramBuilder("loop")
    builder.add_all(oscillator(), fx.ZeroOrderHold("hold", period=0.1))
    builder.connect("oscillator.rail.translation", "hold.u")
    with pytest.raises(fx.errors.EvaluationError, match="the sampled block 'hold'"):
        fx.modes(builder.build())


def test_a_system_without_continuous_states_is_refused() -> None:
    with pytest.raises(fx.errors.ValueRefusedError, match="with continuous states"):
        fx.modes(fx.Constant("one", 1.0))


def test_a_builder_and_numbers_are_refused() -> None:
    with pytest.raises(fx.errors.DeclarationError, match="build"):
        fx.modes(fx.PlantBuilder("rig"))  # type: ignore[arg-type]
    with pytest.raises(fx.errors.DeclarationError):
        fx.modes(3.0)  # type: ignore[arg-type]


def test_slopes_that_are_not_finite_are_refused_with_their_names() -> None:
    class Root(fx.LeafSystem):
        def __init__(self) -> None:
            super().__init__("root")
            self.x = self.declare_continuous_state(z=1, default=[0.0], element_names=["level"])

        def calc_time_derivatives(self, context: Any) -> Any:
            return -np.sqrt(self.x(context))

    with pytest.raises(fx.errors.EvaluationError, match=r"derivative of the rate of x\[level\]"):
        fx.modes(Root())


@for_each("number", [1, -2, 0.0, "0", None, True])
def test_a_mode_that_is_not_there_is_refused(number: Any) -> None:
    with pytest.raises(fx.errors.ValueRefusedError, match="one of 1 modes"):
        fx.modes(oscillator())[number]


def test_modes_say_what_they_are() -> None:
    found = fx.modes(oscillator(damping=40.0))
    assert repr(found[0]).startswith("<Mode: overdamped, 0.3183 Hz, damping ratio 5, ")
    assert repr(found) == "<Modes of 'oscillator': 1>"


def too_long(*_: Any, **__: Any) -> Any:
    raise TraceError("Cannot trace more than 3 operations", found="more")


@needs_llvmlite
def test_equations_that_are_too_long_to_be_written_out_have_exact_modes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = [mode.poles for mode in fx.modes(links(4, gravity=0.0))]
    monkeypatch.setattr(equations, "TracedEquations", too_long)
    found = fx.modes(links(4, gravity=0.0))
    assert found.how == "exact derivatives"
    np.testing.assert_allclose([mode.poles for mode in found], expected, rtol=1e-9)


def test_modes_that_differences_take_for_free_ones_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(equations, "TracedEquations", too_long)
    monkeypatch.setattr(equations.Equations, "_by_states", lambda _: None)
    with pytest.warns(
        UserWarning, match=r"Free modes of 'oscillator' may be slow modes \(1 of 1\)"
    ):
        found = fx.modes(oscillator(stiffness=0.0))
    assert found[0].kind == "rigid"


def leaf(*, free: bool = False, damping_time: float | None = None) -> fx.Plant:
    """Return a short leaf in eight segments, whose fastest mode has 1e6 rad/s and more."""
    builder = fx.PlantBuilder("leaf", gravity=(0.0, 0.0, 0.0))
    names = ("base", "tip") if free else ("tip",)
    ends = [
        builder.add_body(name, fx.SpatialInertia.solid_sphere(0.01, radius=0.01)) for name in names
    ]
    joints = [builder.add_joint(fx.PlanarJoint(f"at_{b.name}", builder.world, b)) for b in ends]
    joints[-1].default_positions = np.array([0.04, 0.0, 0.0])
    builder.add_force_element(
        fx.LeafSpring(
            "spring",
            ends[0] if free else builder.world,
            ends[-1],
            length=0.04,
            width=0.02,
            thickness=0.0005,
            material=fx.Material.common("structural steel S235"),
            segments=8,
            planar=True,
            damping_time=damping_time,
        )
    )
    return builder.build()


@pytest.mark.full
def test_damping_in_proportion_to_stiffness_leaves_every_mode_at_its_place() -> None:
    time = 1e-4
    undamped = [mode.poles[0].imag for mode in fx.modes(leaf())]
    found = fx.modes(leaf(damping_time=time))
    assert len(found) == len(undamped)
    for mode, frequency in zip(found, undamped, strict=True):
        pole = mode.poles[0]
        terms = pole**2, time * frequency**2 * pole, frequency**2
        assert abs(sum(terms)) < 1e-6 * max(map(abs, terms)), mode


def test_a_free_beam_that_is_stiff_has_three_free_motions_and_nothing_beside_zero() -> None:
    found = fx.modes(leaf(free=True))
    kinds = [mode.kind for mode in found]
    assert kinds[:3] == ["rigid"] * 3
    assert set(kinds[3:]) == {"oscillation"}
    assert len(found) == 3 * 9
    assert abs(found[3].poles[0]) > 1e3


class Chain(fx.LeafSystem):
    """Equal masses between equal springs."""

    def __init__(self, count: int) -> None:
        super().__init__("chain")
        self.state = self.declare_continuous_state(q=count, v=count)
        self._stiffness = 2.0 * np.eye(count) - np.eye(count, k=1) - np.eye(count, k=-1)

    def calc_time_derivatives(self, context: Any) -> Any:
        q, v = np.split(self.state(context), 2)
        return np.concatenate([v, -self._stiffness @ q])


def test_a_table_says_what_moves_even_if_no_coordinate_moves_much() -> None:
    moves = [row["moves"] for row in fx.modes(Chain(40)).table()]
    assert len(moves) == 40
    assert all(text.count(" %") == 3 for text in moves)
