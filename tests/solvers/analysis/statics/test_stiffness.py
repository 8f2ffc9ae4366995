"""Stiffness at a frame is what closed forms, sums over springs and pushed mechanisms give."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.spatial.transform import Rotation

import flexure as fx

FloatArray = npt.NDArray[np.float64]
Place = tuple[Sequence[float], Sequence[float]]

MOUNTS: tuple[Place, ...] = (
    ((0.1, 0.2, 0.3), (0.1, 0.0, 0.0)),
    ((0.0, -0.5, 0.2), (0.0, 0.3, -0.1)),
    ((0.7, 0.0, 0.0), (-0.2, 0.0, 0.2)),
)
TURN, FORCE = (1.0, 2.0, 3.0), (100.0, 200.0, 300.0)
TOOL = (Rotation.from_rotvec([0.3, -0.2, 0.5]).as_matrix(), np.array([0.1, 0.2, 0.3]))


def cross(r: FloatArray) -> FloatArray:
    return np.cross(np.eye(3), r)


def add_mount(
    builder: fx.PlantBuilder,
    name: str,
    bodies: tuple[Any, Any],
    place: Place,
    turn: Sequence[float] = TURN,
    force: Sequence[float] = FORCE,
) -> None:
    """Add a bushing between two bodies whose frames coincide where it is unstressed."""
    pose = (Rotation.from_rotvec(place[0]).as_matrix(), place[1])
    a, c = (builder.add_frame(f"{name}_{k}", body, pose) for k, body in enumerate(bodies))
    none = {"torque_damping": (0.0, 0.0, 0.0), "force_damping": (0.0, 0.0, 0.0)}
    builder.add_force_element(
        fx.LinearBushing(name, a, c, torque_stiffness=turn, force_stiffness=force, **none)
    )


@cache
def stage(mounts: tuple[Place, ...] = MOUNTS, **constants: tuple[float, ...]) -> fx.Plant:
    """A free body on mounts, with a frame ``tool`` on it."""
    builder = fx.PlantBuilder("stage", gravity=(0.0, 0.0, 0.0))
    body = builder.add_body("table", fx.SpatialInertia.solid_box(1.0, size=(0.1, 0.2, 0.1)))
    builder.add_joint(fx.QuaternionFloatingJoint("free", builder.world, body))
    for k, place in enumerate(mounts):
        add_mount(builder, f"mount{k}", (builder.world, body), place, **constants)
    builder.add_frame("tool", body, TOOL)
    return builder.build()


def own_stiffness(place: Place, at: tuple[FloatArray, FloatArray]) -> FloatArray:
    """The stiffness of a mount at a point and along axes, by moving twists to the mount."""
    R, r = Rotation.from_rotvec(place[0]).as_matrix(), np.array(place[1]) - at[1]
    there = np.kron(np.eye(2), R.T)
    there[3:, :3] = -R.T @ cross(r)
    there = there @ np.kron(np.eye(2), at[0])
    stiffness: FloatArray = there.T @ np.diag([*TURN, *FORCE]) @ there
    return stiffness


def test_mounts_in_parallel_add_their_stiffnesses() -> None:
    found = fx.stiffness(stage(), "tool")
    expected = np.sum([own_stiffness(place, TOOL) for place in MOUNTS], axis=0)
    np.testing.assert_allclose(found.matrix, expected, rtol=0, atol=1e-12 * expected.max())
    np.testing.assert_allclose(found.compliance @ expected, np.eye(6), atol=1e-12)


def test_mounts_in_a_row_add_their_compliances() -> None:
    builder = fx.PlantBuilder("row", gravity=(0.0, 0.0, 0.0))
    bodies = [builder.world]
    for k, place in enumerate(MOUNTS):
        bodies.append(builder.add_body(f"body{k}", fx.SpatialInertia.solid_sphere(1.0, radius=0.1)))
        builder.add_joint(fx.QuaternionFloatingJoint(f"free{k}", builder.world, bodies[-1]))
        add_mount(builder, f"mount{k}", (bodies[-2], bodies[-1]), place)
    builder.add_frame("tool", bodies[-1], TOOL)
    row = builder.build()
    expected = np.sum([np.linalg.inv(own_stiffness(place, TOOL)) for place in MOUNTS], axis=0)
    found = fx.stiffness(row, "tool")
    np.testing.assert_allclose(found.compliance, expected, rtol=0, atol=1e-13 * expected.max())
    between = fx.stiffness(row, bodies[2], measured_in=bodies[1], expressed_in=row.world)
    origin = (np.eye(3), np.zeros(3))
    np.testing.assert_allclose(between.matrix, own_stiffness(MOUNTS[1], origin), atol=1e-9)


def test_a_crane_under_load_gives_way_as_its_compliance_says() -> None:
    """The second route: equilibria under small loads, in a plant under load with other joints."""
    builder = fx.PlantBuilder("crane")
    boom = builder.add_body("boom", fx.SpatialInertia.solid_box(2.0, size=(0.8, 0.1, 0.2)))
    load = builder.add_body("load", fx.SpatialInertia.solid_sphere(1.0, radius=0.1))
    foot = builder.add_joint(fx.RevoluteJoint("foot", builder.world, boom, axis=(0, 1, 0)))
    builder.add_joint(fx.QuaternionFloatingJoint("free", builder.world, load))
    tip = builder.add_frame("tip", boom, (0.8, 0.0, 0.0))
    builder.add_force_element(fx.JointSpring("spring", foot, stiffness=60.0))
    rope = builder.add_frame("rope_end", load, (0.0, 0.0, 0.1))
    none = {"torque_damping": (0.0, 0.0, 0.0), "force_damping": (0.0, 0.0, 0.0)}
    builder.add_force_element(
        fx.LinearBushing("rope", tip, rope, torque_stiffness=TURN, force_stiffness=FORCE, **none)
    )
    builder.add_external_force("push", load)
    crane = builder.build()
    context = crane.create_default_context()
    crane.joint("free").pose.set(context, (np.eye(3), np.array([0.8, 0.0, -0.1])))
    found = fx.stiffness(crane, load, context=context, expressed_in=crane.world)
    assert not found.free_motions
    np.testing.assert_allclose(found.compliance, found.compliance.T, atol=1e-9)
    step = 1e-4
    for k in range(6):
        moved = []
        for sign in (step, -step):
            pushed = found.context.clone()
            crane.input_port("push").fix(pushed, sign * np.eye(6)[k])
            moved.append(load.pose(fx.equilibrium(crane, pushed).context))
        turn = Rotation.from_matrix(moved[0].R @ moved[1].R.T).as_rotvec()
        column = np.concatenate([turn, moved[0].p - moved[1].p]) / (2.0 * step)
        np.testing.assert_allclose(found.compliance[:, k], column, rtol=0, atol=2e-7)


def test_a_pendulum_on_springs_has_the_compliance_of_its_angle() -> None:
    builder = fx.PlantBuilder("pendulum")
    rod = builder.add_body("rod", fx.SpatialInertia.point_mass(2.0), com=(0.0, 0.0, -0.5))
    axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, rod, axis=(0, 1, 0)))
    builder.add_force_element(fx.JointSpring("spring", axis, stiffness=3.0))
    tip = builder.add_frame("tip", rod, (0.0, 0.0, -1.0))
    found = fx.stiffness(builder.build(), tip)
    angle = 1.0 / (3.0 + 2.0 * 9.81 * 0.5)
    assert found.compliance[1, 1] == pytest.approx(angle, rel=1e-14)
    assert found.compliance[3, 3] == pytest.approx(angle, rel=1e-14)
    assert found.compliance[1, 3] == pytest.approx(-angle, rel=1e-14)
    line = found.rotation_axis((0.0, 1.0, 0.0))
    np.testing.assert_allclose(line.point, (0.0, 0.0, 1.0), atol=1e-14)
    assert line.compliance == pytest.approx(angle)
    center = found.center_of_compliance
    np.testing.assert_allclose(center.point, (0.0, 0.0, 1.0), atol=1e-14)
    np.testing.assert_allclose(np.abs(center.directions), [[0.0, 1.0, 0.0]], atol=1e-14)
    with pytest.raises(fx.errors.EvaluationError, match="joints that take up"):
        _ = found.matrix  # x and ry are tied to each other


def test_an_inverted_pendulum_has_a_negative_stiffness() -> None:
    builder = fx.PlantBuilder("pendulum")
    rod = builder.add_body("rod", fx.SpatialInertia.point_mass(2.0), com=(0.0, 0.0, 0.5))
    axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, rod, axis=(0, 1, 0)))
    builder.add_force_element(fx.JointSpring("spring", axis, stiffness=3.0))
    found = fx.stiffness(builder.build(), rod)
    assert found.matrix[1, 1] == pytest.approx(3.0 - 2.0 * 9.81 * 0.5, rel=1e-12)
    assert np.isinf(found.matrix[0, 0])


def test_stiffness_elsewhere_is_that_of_a_frame_there() -> None:
    plant = stage()
    here, there = fx.stiffness(plant, "table"), fx.stiffness(plant, "tool")
    np.testing.assert_allclose(here.at("tool").matrix, there.matrix, atol=1e-10)
    np.testing.assert_allclose(here.at(TOOL[1]).matrix, here.at(TOOL[1] / 2).at(TOOL[1] / 2).matrix)
    along = fx.stiffness(plant, "table", p_FP=TOOL[1], expressed_in=plant.frame("tool"))
    np.testing.assert_allclose(along.matrix, there.matrix, atol=1e-10)
    np.testing.assert_allclose(
        there.at(plant.body("table")).compliance, here.compliance, atol=1e-12
    )


def test_at_the_center_of_compliance_the_coupling_is_symmetric() -> None:
    found = fx.stiffness(stage(), "tool")
    center = found.center_of_compliance
    coupling = found.at(center.point).compliance[:3, 3:]
    np.testing.assert_allclose(coupling, coupling.T, atol=1e-15)
    assert np.max(np.abs(coupling)) > 1e-5
    assert 0.01 < center.coupling < 1.0
    of_stiffness = found.center_of_stiffness
    coupling = found.at(of_stiffness.point).matrix[:3, 3:]
    np.testing.assert_allclose(coupling, coupling.T, atol=1e-12)
    assert np.linalg.norm(of_stiffness.point - center.point) > 1e-3


@cache
def remote_center(radius: float = 0.05, tilt: float = 0.4) -> fx.Plant:
    """A table on three tilted stiff rods, whose axes meet below it: a remote center device."""
    builder = fx.PlantBuilder("remote", gravity=(0.0, 0.0, 0.0))
    table = builder.add_body("table", fx.SpatialInertia.solid_box(1.0, size=(0.1, 0.1, 0.01)))
    builder.add_joint(fx.QuaternionFloatingJoint("free", builder.world, table))
    for k in range(3):
        about = Rotation.from_rotvec([0.0, 0.0, 2.0 * np.pi * k / 3.0])
        turn = about * Rotation.from_rotvec([0.0, -tilt, 0.0])
        place = about.apply([radius, 0.0, 0.0])
        stiff = {"turn": (0.5, 0.5, 0.1), "force": (200.0, 200.0, 1e6)}
        add_mount(
            builder,
            f"rod{k}",
            (builder.world, table),
            (turn.as_rotvec().tolist(), place.tolist()),
            **stiff,
        )
    return builder.build()


def test_a_remote_center_lies_where_the_rods_meet() -> None:
    found = fx.stiffness(remote_center(), "table")
    center = found.center_of_compliance
    np.testing.assert_allclose(center.point[:2], 0.0, atol=1e-12)
    assert center.point[2] == pytest.approx(0.05 / np.tan(0.4), rel=0.01)
    assert center.coupling < 1e-9
    there = found.at(center.point)
    assert np.max(np.abs(there.compliance[:3, 3:])) < 1e-12
    np.testing.assert_allclose(found.center_of_stiffness.point, center.point, atol=1e-9)
    line = found.rotation_axis((1.0, 0.0, 0.0))
    np.testing.assert_allclose(line.point, center.point, atol=1e-9)
    assert line.pitch == pytest.approx(0.0, abs=1e-12)


def test_principal_axes_are_those_of_the_springs() -> None:
    place = ((0.2, -0.1, 0.3), (0.0, 0.0, 0.0))
    found = fx.stiffness(stage((place,)), "table")
    for principal, constants in ((found.rotation, TURN), (found.translation, FORCE)):
        np.testing.assert_allclose(principal.stiffnesses, constants)
        np.testing.assert_allclose(principal.compliances, 1.0 / np.array(constants))
        np.testing.assert_allclose(
            principal.axes, Rotation.from_rotvec(place[0]).as_matrix(), atol=1e-12
        )


def test_free_motions_are_named_and_leave_a_stiffness() -> None:
    hinge = ((0.0, 0.0, 0.4), (0.1, 0.0, 0.0))
    plant = stage((hinge,), turn=(5.0, 7.0, 0.0))
    found = fx.stiffness(plant, plant.frame("mount0_1"))
    (motion,) = found.free_motions
    assert motion == pytest.approx({"free.rotation[z]": 1.0, "free.translation[y]": -0.1})
    expected = np.diag([1 / 5.0, 1 / 7.0, np.inf, *1.0 / np.array(FORCE)])
    np.testing.assert_allclose(found.compliance, expected, atol=1e-12)
    np.testing.assert_allclose(found.matrix, np.diag([5.0, 7.0, 0.0, *FORCE]), atol=1e-9)
    assert found.rotation.compliances[2] == np.inf
    assert found.rotation.stiffnesses[2] == 0.0
    assert "free to move: free.rotation[z] with free.translation[y]" in repr(found)
    elsewhere = found.at("tool")
    np.testing.assert_allclose(
        elsewhere.matrix,
        fx.stiffness(plant, "tool").matrix,
        atol=1e-9,
    )
    free = elsewhere.directions.free[:, 0]
    np.testing.assert_allclose(elsewhere.matrix @ free, 0.0, atol=1e-9)
    with pytest.raises(fx.errors.EvaluationError, match=r"free motion: free\.rotation\[z\]"):
        _ = elsewhere.compliance
    with pytest.raises(fx.errors.EvaluationError, match=r"free motion: free\.rotation\[z\]"):
        _ = found.center_of_compliance
    with pytest.raises(fx.errors.EvaluationError, match="a couple that turns it"):
        found.rotation_axis((0.0, 0.0, 1.0))


def test_a_free_motion_elsewhere_does_not_matter() -> None:
    builder = fx.PlantBuilder("two", gravity=(0.0, 0.0, 0.0))
    for name in ("held", "loose"):
        body = builder.add_body(name, fx.SpatialInertia.point_mass(1.0))
        joint = builder.add_joint(fx.PrismaticJoint(f"at_{name}", builder.world, body, (0, 0, 1)))
        if name == "held":
            builder.add_force_element(fx.JointSpring("spring", joint, stiffness=8.0))
    plant = builder.build()
    found = fx.stiffness(plant, "held")
    assert found.free_motions == ({"at_loose.translation": 1.0},)
    assert found.compliance[5, 5] == 0.125
    assert fx.stiffness(plant, "loose").compliance[5, 5] == np.inf


def test_what_is_locked_does_not_give_way() -> None:
    builder = fx.PlantBuilder("rail", gravity=(0.0, 0.0, 0.0))
    cart = builder.add_body("cart", fx.SpatialInertia.point_mass(1.0))
    load = builder.add_body("load", fx.SpatialInertia.point_mass(1.0))
    first = builder.add_joint(fx.PrismaticJoint("first", builder.world, cart, (1, 0, 0)))
    second = builder.add_joint(fx.PrismaticJoint("second", cart, load, (1, 0, 0)))
    for joint in (first, second):
        builder.add_force_element(fx.JointSpring(f"at_{joint.name}", joint, stiffness=10.0))
    rail = builder.build()
    context = rail.create_default_context()
    assert fx.stiffness(rail, load, context=context).matrix[3, 3] == pytest.approx(5.0)
    first.lock(context)
    assert fx.stiffness(rail, load, context=context).matrix[3, 3] == pytest.approx(10.0)


def test_the_equilibrium_near_a_context_is_taken() -> None:
    builder = fx.PlantBuilder("sag")
    body = builder.add_body("body", fx.SpatialInertia.point_mass(1.0))
    slot = builder.add_joint(fx.PrismaticJoint("slot", builder.world, body, (0, 0, 1)))
    wall = builder.add_frame("wall", builder.world, (1.0, 0.0, 0.0))
    origin = (0.0, 0.0, 0.0)
    spring = fx.LinearSpringDamper(
        "spring", wall, origin, body, origin, free_length=0.8, stiffness=40.0, damping=0.0
    )
    builder.add_force_element(spring)
    found = fx.stiffness(builder.build(), body)
    z = slot.translation.get(found.context)
    length = np.hypot(1.0, z)
    assert 40.0 * (1.0 - 0.8 / length) * z == pytest.approx(-9.81, rel=1e-9)
    assert found.matrix[5, 5] == pytest.approx(40.0 * (1.0 - 0.8 / length**3), rel=1e-9)


def test_tables_texts_and_copies_hold_the_matrices() -> None:
    found = fx.stiffness(remote_center(), "table")
    table = found.table()
    assert table.columns[1] == "rx [rad]"
    assert table[5]["stiffness"] == "fz [N]"
    assert table[5]["z [m]"] == found.matrix[5, 5]
    assert found.table("compliance")[0]["tx [N m]"] == found.compliance[0, 0]
    assert table[0]["z [m]"] == 0.0  # which is rounding in the matrix
    assert repr(found) == "<Stiffness of 'remote' at 'table'>"
    html = found._repr_html_()
    assert html is not None
    assert "compliance" in html
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(found)).matrix, found.matrix)


def test_frames_that_are_not_there_are_refused() -> None:
    plant = stage()
    with pytest.raises(fx.errors.UnknownNameError, match="tool"):
        fx.stiffness(plant, "tol")
    with pytest.raises(fx.errors.FlexureError):
        fx.stiffness(plant, remote_center().body("table"))
    builder = fx.PlantBuilder("welded")
    body = builder.add_body("body", fx.SpatialInertia.point_mass(1.0))
    builder.add_joint(fx.WeldJoint("weld", builder.world, body))
    with pytest.raises(fx.errors.ValueRefusedError, match="a mechanism that can move"):
        fx.stiffness(builder.build(), body)
