"""The bushing as it is measured, one physical situation at a time."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import flexure as fx
from flexure.blocks import math as fm
from flexure.diagrams.checks.errors import (
    DeclarationError,
    EvaluationError,
    UnknownNameError,
    ValueRefusedError,
)
from tests.support.mechanics.force_elements import (
    AT_REST,
    BodyMotion,
    context_of,
    forces,
    number,
    random_pair,
)
from tests.support.tiers import for_each

FloatArray = npt.NDArray[np.float64]
ALONG_Z = 5


def between(**options: Any) -> fx.GeneralBushing:
    return fx.GeneralBushing("mount", fx.Body("frame"), fx.Body("engine"), **options)


def along_z(**options: Any) -> fx.GeneralBushing:
    """A bushing on the world, with a stiffness of 2 N/m."""
    builder = fx.PlantBuilder("unused")
    return fx.GeneralBushing(
        "mount", builder.world, fx.Body("engine"), stiffness=[0, 0, 0, 0, 0, 2.0], **options
    )


def at_height(z: float) -> BodyMotion:
    return AT_REST._replace(X_WB=fm.RigidTransform(np.eye(3), np.array([0.0, 0.0, z])))


def driven(mount: fx.GeneralBushing, z: Callable[[Any], Any], rate: Callable[[Any], Any]) -> Any:
    """Move the frame C along z, as a testing machine does."""
    builder = fx.DiagramBuilder("machine")
    builder.add(mount)
    pose, velocity = mount.attachments[1].pose, mount.attachments[1].velocity
    assert pose is not None
    assert velocity is not None
    turned = np.eye(12)[[0, 4, 8]].sum(axis=0)
    where = builder.add(fx.TimeFunction("pose", lambda t: turned + z(t) * np.eye(12)[11], size=12))
    moves = builder.add(fx.TimeFunction("speed", lambda t: rate(t) * np.eye(6)[5], size=6))
    builder.connect(where.y, pose)
    builder.connect(moves.y, velocity)
    return builder.build()


# Springs and dampers -----------------------------------------------------------------------------


def test_with_diagonals_it_is_the_linear_bushing() -> None:
    k, d = np.array([3.0, 4.0, 5.0, 30.0, 40.0, 50.0]), np.arange(1.0, 7.0)
    general = between(stiffness=k, damping=d)
    linear = fx.LinearBushing(
        "mount",
        fx.Body("frame"),
        fx.Body("engine"),
        torque_stiffness=k[:3],
        torque_damping=d[:3],
        force_stiffness=k[3:],
        force_damping=d[3:],
    )
    for seed in range(5):
        motions = random_pair(np.random.default_rng(seed))
        first, second = context_of(general, *motions), context_of(linear, *motions)
        np.testing.assert_allclose(forces(general, first), forces(linear, second), rtol=1e-12)
        for name in ("stored_energy", "conservative_power", "non_conservative_power"):
            found = number(general.output_port(name), first)
            assert found == pytest.approx(number(linear.output_port(name), second), rel=1e-12)


def test_small_deformations_are_resisted_by_the_whole_matrix() -> None:
    root = np.random.default_rng(1).normal(size=(6, 6))
    mount = between(stiffness=root @ root.T)
    for k, direction in enumerate(np.eye(6)):
        R = fm.rotation_from_rotation_vector(1e-7 * direction[:3])
        moved = fm.RigidTransform(R, 1e-7 * direction[3:])
        context = context_of(mount, AT_REST, BodyMotion(moved, np.zeros(6)))
        load = mount.force_on_frame_C.eval(context)
        np.testing.assert_allclose(load, -1e-7 * (root @ root.T)[:, k], atol=1e-12)


def test_the_preload_acts_where_nothing_is_deformed_and_does_work() -> None:
    mount = along_z(preload=[0, 0, 0, 0, 0, 3.0])
    for z, force, energy in ((0.0, 3.0, 0.0), (1.0, 1.0, -2.0), (1.5, 0.0, -2.25)):
        context = context_of(mount, AT_REST, at_height(z))
        assert mount.force_on_frame_C.eval(context)[ALONG_Z] == pytest.approx(force)
        assert number(mount.stored_energy, context) == pytest.approx(energy)


def test_a_table_adds_its_load_and_the_area_below_it() -> None:
    mount = along_z(tables={"z": ([-1.0, 0.0, 1.0], [-8.0, 0.0, 3.0])})
    for z, load, energy in ((-0.5, -4.0, 1.0), (0.5, 1.5, 0.375), (2.0, 6.0, 6.0)):
        context = context_of(mount, AT_REST, at_height(z))
        assert mount.force_on_frame_C.eval(context)[ALONG_Z] == pytest.approx(-load - 2.0 * z)
        assert number(mount.stored_energy, context) == pytest.approx(energy + z**2)


# Relaxation --------------------------------------------------------------------------------------

SERIES = [([0, 0, 0, 0, 0, 3.0], 0.5), ([0, 0, 0, 0, 0, 7.0], 0.05)]


def test_a_mount_that_is_held_relaxes_as_its_prony_series() -> None:
    mount = along_z(branches=SERIES)
    machine = driven(mount, lambda t: 0.1 + 0.0 * t, lambda t: 0.0 * t)
    result = fx.simulate(machine, 1.0, rtol=1e-9, atol=1e-12)
    t = result.time
    expected = -0.1 * (2.0 + 3.0 * np.exp(-t / 0.5) + 7.0 * np.exp(-t / 0.05))
    np.testing.assert_allclose(
        result["mount.force_on_frame_C"][:, ALONG_Z], expected, rtol=1e-6, atol=1e-9
    )
    lost = 0.5 * 0.1**2 * (3.0 + 7.0) - result["mount.stored_energy"][-1] + 0.5 * 2.0 * 0.1**2
    assert lost == pytest.approx(
        0.5 * 0.1**2 * (3.0 * -np.expm1(-2 * t[-1] / 0.5) + 7.0 * -np.expm1(-2 * t[-1] / 0.05))
    )


@pytest.mark.parametrize("omega", [0.7, 5.0, 40.0])
def test_shaken_it_has_the_complex_stiffness_of_its_branches(omega: float) -> None:
    mount = along_z(damping=[0, 0, 0, 0, 0, 0.02], branches=SERIES)
    machine = driven(mount, lambda t: np.sin(omega * t), lambda t: omega * np.cos(omega * t))
    end = 10.0 + 2.0 * np.pi / omega  # twenty times the longest relaxation, and a period
    times = np.linspace(end - 2.0 * np.pi / omega, end, 33)[:-1]
    result = fx.simulate(machine, end, rtol=1e-9, atol=1e-10)
    load = -result.sample("mount.force_on_frame_C", times)[:, ALONG_Z]
    found = 2j * np.mean(load * np.exp(-1j * omega * times))
    s = 1j * omega
    expected = 2.0 + 0.02 * s + sum(k[-1] * T * s / (1.0 + T * s) for k, T in SERIES)
    assert found == pytest.approx(expected, rel=1e-5)


def test_relaxed_branches_carry_nothing_and_an_equilibrium_relaxes_them() -> None:
    builder = fx.PlantBuilder("plant")
    engine = builder.add_body("engine", fx.SpatialInertia.solid_sphere(3.0, radius=0.2))
    every = np.array([50.0, 50.0, 50.0, 200.0, 200.0, 300.0])
    mount = builder.add_force_element(
        fx.GeneralBushing(
            "mount", builder.world, engine, stiffness=every, branches=[(2.0 * every, 0.1)]
        )
    )
    plant = builder.build()
    context = plant.create_default_context()
    joint = plant.joints[0]
    joint.pose.set(context, fm.RigidTransform(np.eye(3), np.array([0.0, 0.0, -0.5])))
    assert mount.force_on_frame_C.eval(context)[ALONG_Z] == pytest.approx(450.0)
    mount.relax(context)
    assert mount.force_on_frame_C.eval(context)[ALONG_Z] == pytest.approx(150.0)
    rest = fx.equilibrium(plant, context).context
    assert mount.position.eval(rest)[2] == pytest.approx(-3.0 * 9.81 / 300.0, rel=1e-8)
    assert number(mount.stored_energy, rest) == pytest.approx(0.5 * (3.0 * 9.81) ** 2 / 300.0)


# Friction ----------------------------------------------------------------------------------------


def curves(x: FloatArray, limit: float, half: float) -> FloatArray:
    """The load of friction by the hyperbola from the last reversal on."""
    load, x_s, a_s, way, loads = 0.0, 0.0, 0.0, 1.0, [0.0]
    for before, now in itertools.pairwise(x):
        if (now - before) * way < 0.0:
            way, x_s, a_s = -way, before, load
        load = way * (1.0 - 1.0 / (1.0 / (1.0 - way * a_s) + way * (now - x_s) / half))
        loads.append(load)
    return limit * np.array(loads)


def test_friction_follows_hyperbolas_between_any_reversals() -> None:
    mount = along_z(friction={"z": (4.0, 0.02)})

    def z(t: Any) -> Any:
        return 0.05 * np.sin(2.0 * t) + 0.03 * np.sin(5.0 * t)

    machine = driven(mount, z, lambda t: 0.1 * np.cos(2.0 * t) + 0.15 * np.cos(5.0 * t))
    result = fx.simulate(machine, 4.0, rtol=1e-8, atol=1e-10)
    times = np.linspace(0.0, 4.0, 4001)
    found = -result.sample("mount.force_on_frame_C", times)[:, ALONG_Z] - 2.0 * z(times)
    np.testing.assert_allclose(found, curves(z(times), 4.0, 0.02), atol=2e-4)


def test_from_rest_on_friction_follows_the_curve_of_berg() -> None:
    mount = along_z(friction={"z": (4.0, 0.02)})
    machine = driven(mount, lambda t: t, lambda t: 1.0 + 0.0 * t)
    result = fx.simulate(machine, 0.3, rtol=1e-9, atol=1e-12)
    load = -result["mount.force_on_frame_C"][:, ALONG_Z] - 2.0 * result.time
    np.testing.assert_allclose(load, 4.0 * result.time / (0.02 + result.time), atol=1e-7)


@pytest.mark.parametrize("amplitude", [0.005, 0.02, 0.2])
def test_a_cycle_of_friction_loses_what_the_closed_form_says(amplitude: float) -> None:
    mount, h, F = along_z(friction={"z": (4.0, 0.02)}), 0.02, 4.0
    machine = driven(mount, lambda t: amplitude * np.sin(t), lambda t: amplitude * np.cos(t))
    times = np.pi * np.linspace(20.5, 22.5, 4001)
    result = fx.simulate(machine, times[-1], rtol=1e-8, atol=1e-11)
    load = -result.sample("mount.force_on_frame_C", times)[:, ALONG_Z]
    alpha = (np.sqrt(1.0 + 4.0 * amplitude**2 / h**2) - 1.0) * h / (2.0 * amplitude)
    assert load[0] - 2.0 * amplitude == pytest.approx(alpha * F, rel=1e-5)
    lost = np.trapezoid(load, amplitude * np.sin(times))
    closed = 2.0 * F * (2.0 * amplitude - h * np.log((1.0 + alpha) / (1.0 - alpha)))
    assert lost == pytest.approx(closed, rel=1e-3)


def berg(x: FloatArray, limit: float, half: float) -> FloatArray:
    """The load of Berg's model, from its memory of the last reversal."""
    a, b, x_b, way, loads = 0.0, 0.0, 0.0, 0.0, [0.0]
    for before, now in itertools.pairwise(x):
        if (now - before) * way <= 0.0:
            way, x_b, b = float(np.sign(now - before)), before, a
        gone = abs(now - x_b)
        a = b + way * (1.0 - way * b) * gone / (half * (1.0 - way * b) + gone)
        loads.append(a)
    return limit * np.array(loads)


@pytest.mark.full
def test_friction_with_memory_is_that_of_berg_on_any_way() -> None:
    mount = along_z(friction={"z": (4.0, 0.02)}, friction_memory=["z"])

    def z(t: Any) -> Any:
        return 0.05 * np.sin(2.0 * t) + 0.03 * np.sin(5.0 * t)

    machine = driven(mount, z, lambda t: 0.1 * np.cos(2.0 * t) + 0.15 * np.cos(5.0 * t))
    result = fx.simulate(machine, 4.0, rtol=1e-8, atol=1e-10)
    times = np.linspace(0.0, 4.0, 4001)
    found = -result.sample("mount.force_on_frame_C", times)[:, ALONG_Z] - 2.0 * z(times)
    np.testing.assert_allclose(found, berg(z(times), 4.0, 0.02), atol=2e-4)
    assert np.max(np.abs(found - curves(z(times), 4.0, 0.02))) > 0.5  # those without memory


CYCLES = 40  # in which what was before the first one is forgotten


@pytest.mark.parametrize("amplitude", [0.005, 0.02, 0.2])
def test_triangular_cycles_with_memory_lose_what_the_closed_form_says(amplitude: float) -> None:
    X, F, h = amplitude, 4.0, 0.02
    mount = along_z(friction={"z": (F, h)}, friction_memory=["z"])
    corners = X * np.array([0.0, 1.0, *([-1.0, 1.0] * CYCLES)])
    x = np.concatenate([np.linspace(a, b, 51)[1:] for a, b in itertools.pairwise(corners)])
    closed = berg(np.concatenate([[0.0], x]), F, h)[-101:]
    machine = driven(
        mount,
        lambda t: X * (2.0 / np.pi) * np.arcsin(np.sin(0.5 * np.pi * t)),
        lambda t: X * np.sign(np.cos(0.5 * np.pi * t)),
    )
    end = 4.0 * CYCLES + 1.0
    times = np.linspace(end - 4.0, end, 101)
    result = fx.simulate(machine, times[-1], rtol=1e-8, atol=1e-11, max_step=0.1)
    load = -result.sample("mount.force_on_frame_C", times)[:, ALONG_Z]
    way = np.concatenate([np.linspace(X, -X, 51), np.linspace(-X, X, 51)[1:]])
    np.testing.assert_allclose(load - 2.0 * way, closed, atol=0.02 * F)
    alpha = (np.sqrt(h**2 + X**2 + 6.0 * X * h) - h - X) / (2.0 * h)
    assert load[0] - 2.0 * X == pytest.approx(alpha * F, rel=0.01)
    reach = h * (1.0 + alpha)
    lost = 2.0 * F * (1.0 + alpha) * (2.0 * X - reach * np.log1p(2.0 * X / reach))
    assert np.trapezoid(load, way) == pytest.approx(lost - 4.0 * F * alpha * X, rel=0.02)


def test_energy_adds_up_where_friction_remembers() -> None:
    builder = fx.PlantBuilder("plant")
    engine = builder.add_body("engine", fx.SpatialInertia.solid_box(3.0, size=(0.4, 0.2, 0.3)))
    mount = builder.add_force_element(
        fx.GeneralBushing(
            "mount",
            builder.world,
            engine,
            stiffness=[5.0, 6.0, 7.0, 200.0, 300.0, 400.0],
            friction={"z": (10.0, 0.01), "rx": (0.2, 0.05)},
            friction_memory=["z", "rx"],
        )
    )
    builder.add_energy_ledger()
    plant = builder.build()
    context = plant.create_default_context()
    plant.joints[0].pose.set(context, fm.RigidTransform(np.eye(3), np.array([0.05, 0.02, -0.1])))
    result = fx.simulate(plant, 1.0, context=context, rtol=1e-8, atol=1e-10)
    assert result.statistics.witness_events > 2
    assert np.ptp(result["ledger.balance"]) < 1e-5
    assert result["ledger.works"][-1, 0] < -1.0
    mount.relax(context)


def test_friction_never_carries_more_than_its_limit() -> None:
    mount = along_z(friction={"z": (4.0, 0.02)})
    machine = driven(mount, lambda t: 0.1 + t, lambda t: 1.0 + 0.0 * t)
    result = fx.simulate(machine, 2.0, rtol=1e-8)
    load = -result["mount.force_on_frame_C"][:, ALONG_Z] - 2.0 * (0.1 + result.time)
    np.testing.assert_allclose(load, 4.0, rtol=0.02)
    assert np.all(result["mount.non_conservative_power"] < 0.0)


def test_at_rest_friction_carries_a_part_of_the_weight() -> None:
    builder = fx.PlantBuilder("plant")
    engine = builder.add_body("engine", fx.SpatialInertia.solid_sphere(3.0, radius=0.2))
    rail = fx.PrismaticJoint("rail", builder.world, engine, axis=(0, 0, 1))
    builder.add_joint(rail)
    mount = builder.add_force_element(
        fx.GeneralBushing(
            "mount",
            builder.world,
            engine,
            stiffness=[0, 0, 0, 0, 0, 300.0],
            friction={"z": (4.0, 1e-3)},
        )
    )
    plant = builder.build()
    rest = fx.equilibrium(plant).context
    assert mount.position.eval(rest)[2] == pytest.approx(-(3.0 * 9.81 - 4.0) / 300.0)


# Energy ------------------------------------------------------------------------------------------


def test_energy_adds_up_with_all_that_is_inside() -> None:
    builder = fx.PlantBuilder("plant")
    engine = builder.add_body("engine", fx.SpatialInertia.solid_box(3.0, size=(0.4, 0.2, 0.3)))
    K = np.diag([5.0, 6.0, 7.0, 200.0, 300.0, 400.0])
    K[1, 3] = K[3, 1] = 20.0
    builder.add_force_element(
        fx.GeneralBushing(
            "mount",
            builder.world,
            engine,
            stiffness=K,
            preload=[0.1, 0.0, 0.0, 0.0, 3.0, 20.0],
            tables={"x": ([-0.05, 0.0, 0.05], [-40.0, 0.0, 20.0])},
            branches=[(K, 0.02), ([0, 0, 0, 0, 50.0, 0], 0.3)],
            friction={"z": (10.0, 0.01), "rx": (0.2, 0.05)},
        )
    )
    builder.add_energy_ledger()
    plant = builder.build()
    context = plant.create_default_context()
    plant.joints[0].pose.set(context, fm.RigidTransform(np.eye(3), np.array([0.05, 0.02, -0.1])))
    result = fx.simulate(plant, 1.0, context=context, rtol=1e-8, atol=1e-10)
    assert np.ptp(result["ledger.balance"]) < 1e-5
    assert np.max(np.ptp(result["ledger.store_balances"], axis=0)) < 1e-5
    assert result["ledger.works"][-1, 0] < -1.0


# What is refused ---------------------------------------------------------------------------------

UNSYMMETRIC = np.eye(6) + 0.1 * np.eye(6, k=1)
INDEFINITE = np.eye(6) + 2.0 * (np.eye(6, k=3) + np.eye(6, k=-3))


@for_each(
    ("options", "kind", "words"),
    [
        ({"stiffness": UNSYMMETRIC}, ValueRefusedError, "not symmetric.*0.1 in row 1, column 2"),
        ({"stiffness": INDEFINITE}, ValueRefusedError, "negative eigenvalue -1 .*couplings"),
        ({"damping": INDEFINITE}, ValueRefusedError, "negative eigenvalue"),
        ({"damping": UNSYMMETRIC}, ValueRefusedError, "not symmetric"),
        ({"stiffness": np.eye(5)}, ValueRefusedError, "6 by 6 numbers.*shape"),
        ({"tables": {"z": ([0, 1], [1, 0])}}, ValueRefusedError, "0 after 1.*never fall"),
        ({"tables": {"z": ([1, 0], [0, 1])}}, DeclarationError, "increase strictly"),
        ({"tables": {"zz": ([0, 1], [0, 1])}}, UnknownNameError, "zz"),
        ({"branches": [(np.zeros(6), 1.0)]}, ValueRefusedError, "not zero"),
        ({"branches": [(-np.ones(6), 1.0)]}, ValueRefusedError, "negative eigenvalue"),
        ({"branches": [(np.ones(6), 0.0)]}, ValueRefusedError, "relaxation_time_1"),
        ({"friction": {"x": (1.0, 0.0)}}, ValueRefusedError, "friction_deformation_x"),
        ({"friction": {"x": 1.0}}, ValueRefusedError, "a load and a deformation"),
        ({"friction_memory": ["x"]}, UnknownNameError, "friction_memory for 'x'"),
    ],
)
def test_what_could_make_energy_or_means_nothing_is_refused(
    options: dict[str, Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        between(**{"stiffness": np.ones(6), **options})


def test_a_context_takes_passive_matrices_alone() -> None:
    mount = between(stiffness=np.ones(6), branches=[([0, 0, 0, 1, 1, 0], 1.0)])
    context = mount.create_default_context()
    with pytest.raises(ValueRefusedError, match="negative eigenvalue"):
        mount.stiffness.set(context, INDEFINITE)
    with pytest.raises(ValueRefusedError, match=r"branch_stiffness_1.*not symmetric"):
        mount.branch_stiffness[0].set(context, [[1.0, 0.3], [0.0, 1.0]])
    mount.branch_stiffness[0].set(context, [[1.0, 0.3], [0.3, 1.0]])


def test_the_units_of_rotations_do_not_hide_what_is_not_passive() -> None:
    stiff = np.diag([1e-3, 1.0, 1.0, 1e9, 1.0, 1.0])
    stiff[0, 3] = stiff[3, 0] = 1.01e3
    with pytest.raises(ValueRefusedError, match=r"negative eigenvalue -0\.01 "):
        between(stiffness=stiff)


def test_almost_a_half_turn_is_refused() -> None:
    mount = between(stiffness=np.ones(6))
    motions = random_pair(np.random.default_rng(0), turn=3.0)
    with pytest.raises(EvaluationError, match="less than 170 degrees"):
        forces(mount, context_of(mount, *motions))
