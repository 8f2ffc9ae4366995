"""SDF and MJCF files from plants: read again they are the same, by us, MuJoCo and Drake."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.blocks.math import RigidTransform
from flexure.diagrams.checks.errors import DeclarationError
from tests.blocks.models.test_urdf_writing import OTHER, POSE

#: A Python that has pydrake, which may be another one than this.
DRAKE = os.environ.get("PYTHON_WITH_DRAKE", sys.executable)
SOLID = fx.SpatialInertia(2.0, (0.1, 0.2, -0.1), (0.5, 0.55, 0.6, 0.01, 0.02, -0.03))
NEEDS = {"sdf": "lxml", "mjcf": "mujoco"}
SAVE: dict[str, Callable[..., Any]] = {"sdf": fx.save_sdf, "mjcf": fx.save_mjcf}
LOAD: dict[str, Callable[..., Any]] = {"sdf": fx.load_sdf, "mjcf": fx.load_mjcf}


def arm(form: str, *, is_rough: bool = True) -> fx.PlantBuilder:
    """Crooked frames everywhere, one joint from child to parent, springs, rotors and friction."""
    builder = fx.PlantBuilder("arm", gravity=(0.5, 1.0, -9.0))
    bodies = [builder.add_body(f"b{k}", SOLID) for k in range(7)]

    def ends(parent: fx.Body, child: fx.Body) -> tuple[str, fx.Frame, fx.Frame]:
        name = f"j_{child.name}"
        return name, fx.Frame(f"F_{name}", parent, POSE), fx.Frame(f"M_{name}", child, OTHER)

    turn = builder.add_joint(
        fx.RevoluteJoint(*ends(builder.world, bodies[0]), axis=(1, 2, 3), damping=0.3)
    )
    name, F, M = ends(bodies[0], bodies[1])
    slide = builder.add_joint(fx.PrismaticJoint(name, M, F, axis=(0, 1, -1), damping=0.2))
    slide.set_position_limits(-0.3, 0.4)
    builder.add_joint(fx.WeldJoint(*ends(bodies[1], bodies[2]), POSE))
    cross = builder.add_joint(fx.UniversalJoint(*ends(bodies[2], bodies[3]), damping=0.1))
    if form == "sdf":
        builder.add_joint(fx.ScrewJoint(*ends(bodies[3], bodies[4]), screw_pitch=0.3))
    else:
        turn.default_positions = [0.3]
        cross.default_positions = [0.2, -0.5]
        builder.add_joint(fx.PlanarJoint(*ends(bodies[3], bodies[4]), damping=(0.1, 0.2, 0.3)))
        rod = builder.add_body("rod", SOLID)
        tube = fx.CylindricalJoint(*ends(bodies[3], rod), axis=(1, 0, 2))
        builder.add_joint(tube)
    name, F, M = ends(bodies[4], bodies[5])
    if form == "mjcf":  # which counts turns of balls about the axes of bodies
        M = fx.Frame(f"M_{name}", bodies[5], RigidTransform(np.eye(3), POSE[1]))
    builder.add_joint(fx.BallQuaternionJoint(name, F, M))
    free = fx.QuaternionFloatingJoint("b6", builder.world, bodies[6])
    free.default_pose = POSE
    builder.add_joint(free)
    builder.add_actuator(turn.name, turn, gear_ratio=30.0, rotor_inertia=1e-3, effort_limit=20.0)
    builder.add_force_element(
        fx.JointSpring("j_b0_spring", turn, stiffness=7.0, nominal_position=0.2, preload=1.4)
    )
    builder.add_frame("eye", bodies[3], POSE)
    if is_rough:
        builder.add_force_element(fx.JointSpring("j_b3_spring", cross, stiffness=(3.0, 0.0)))
        rough = {"transition_velocity": 0.01, "viscous_friction": 0.1, "coulomb_friction": 0.7}
        builder.add_force_element(fx.JointFriction("j_b1_friction", slide, **rough))
        builder.add_constraint(fx.constraints.Coupling("belt", {slide: 2.0, turn: -0.5}, 0.3))
    return builder


def axes(plant: fx.Plant) -> dict[str, tuple[fx.multibody.Joint, int, int]]:
    """Of each coordinate by its name in MJCF: its joint, its number, and that of its velocity."""
    found = {}
    for joint in plant.joints:
        first = plant.tree.velocities_of(joint).start
        for k in range(joint.num_velocities):
            is_single = joint.num_velocities == 1
            name = joint.name if is_single else f"{joint.name}_{joint.VELOCITY_SUFFIXES[k]}"
            if isinstance(joint, (fx.UniversalJoint, fx.PlanarJoint, fx.CylindricalJoint)):
                name = f"{joint.name}_{joint.position_suffix(k)}"
            found[name] = joint, k, first + k
    return found


def at_state(plant: fx.Plant, state: dict[str, Any]) -> fx.Context:
    """Return a context with positions and velocities by the names of coordinates."""
    context = plant.create_default_context()
    for joint in plant.joints:
        of_joint = {k: name for name, (j, k, _) in axes(plant).items() if j is joint}
        if not of_joint:
            continue
        q, v = (np.array([state[of_joint[k]][i] for k in sorted(of_joint)]) for i in (0, 1))
        if not isinstance(
            joint, (fx.BallRpyJoint, fx.BallQuaternionJoint, fx.QuaternionFloatingJoint)
        ):
            joint.positions.set(context, q)
        joint.velocities.set(context, v)
    return context


def random_states(plant: fx.Plant, *, is_coupled: bool) -> list[dict[str, Any]]:
    rng = np.random.default_rng(3)
    states = []
    for _ in range(3):
        state = {name: rng.normal(size=2) for name in axes(plant)}
        if is_coupled:
            state["j_b1"] = 0.25 * state["j_b0"] + [0.15, 0.0]
        states.append(state)
    return states


@pytest.mark.parametrize("form", list(SAVE))
def test_what_is_saved_and_read_again_moves_alike(form: str, tmp_path: Path) -> None:
    pytest.importorskip(NEEDS[form], reason=f"{form} files are read with {NEEDS[form]}")
    plant = arm(form).build()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SAVE[form](plant, tmp_path / "arm.xml")
        again = LOAD[form](tmp_path / "arm.xml").build()
    assert "eye" in {frame.name for frame in again.frames}
    starts = [each.create_default_context() for each in (plant, again)]
    start = [each.body("b6").pose(c) for each, c in zip((plant, again), starts, strict=True)]
    for mine, theirs in zip(*start, strict=True):
        np.testing.assert_allclose(theirs, mine, atol=1e-12)
    for state in random_states(plant, is_coupled=True):
        found = []
        for each in (plant, again):
            context = at_state(each, state)
            order = [axes(each)[name][2] for name in axes(plant)]
            M = each.calc_mass_matrix(context)[np.ix_(order, order)]
            R, p = each.body("b5").pose(context)
            found.append((M, each.calc_vdot(context)[order], R, p))
        for mine, theirs in zip(*found, strict=True):
            np.testing.assert_allclose(theirs, mine, rtol=1e-9, atol=1e-10 * np.max(np.abs(mine)))


def test_mujoco_computes_the_same_motion_of_a_saved_plant(tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco", reason="the package mujoco is missing")
    plant = arm("mjcf", is_rough=False).build()
    fx.save_mjcf(plant, tmp_path / "arm.xml")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "arm.xml"))
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    data = mujoco.MjData(model)
    numbers = axes(plant)
    for state in random_states(plant, is_coupled=False):
        for name in state:
            if name.startswith(("b6", "j_b5")):
                state[name] = np.zeros(2)  # in MuJoCo, some of these have other axes
        mujoco.mj_resetData(model, data)
        order, theirs = [], []
        for name, (_, _, mine) in numbers.items():
            number = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, name)
            if number < 0:
                continue
            data.qpos[model.jnt_qposadr[number]] = state[name][0]
            data.qvel[model.jnt_dofadr[number]] = state[name][1]
            order.append(mine)
            theirs.append(int(model.jnt_dofadr[number]))
        mujoco.mj_forward(model, data)
        context = at_state(plant, state)
        assert len(order) == plant.num_velocities - 9
        np.testing.assert_allclose(
            data.qacc_smooth[theirs], plant.calc_vdot(context)[order], rtol=1e-8, atol=1e-8
        )
        M = np.zeros((model.nv, model.nv))
        for row, unit in zip(M, np.eye(model.nv), strict=True):
            mujoco.mj_mulM(model, data, row, unit)
        np.testing.assert_allclose(
            M[np.ix_(theirs, theirs)],
            plant.calc_mass_matrix(context)[np.ix_(order, order)],
            rtol=1e-9, atol=1e-9,
        )  # fmt: skip


IN_DRAKE = """
import json, sys
import numpy as np
from pydrake.all import MultibodyPlant, Parser
plant = MultibodyPlant(0.0)
Parser(plant).AddModels(sys.argv[1])
plant.mutable_gravity_field().set_gravity_vector([0.5, 1.0, -9.0])
plant.Finalize()
context = plant.CreateDefaultContext()
q, v = plant.GetPositions(context), plant.GetVelocities(context)
names = {}
for name, (qs, vs) in json.loads(sys.argv[2]).items():
    joint = plant.GetJointByName(name)
    k = joint.velocity_start()
    names[name] = list(range(k, k + len(vs)))
    v[k : k + len(vs)] = vs
    q[joint.position_start() : joint.position_start() + len(qs)] = qs
plant.SetPositions(context, q)
plant.SetVelocities(context, v)
order = [k for each in names.values() for k in each]
M = plant.CalcMassMatrix(context)[np.ix_(order, order)]
vdot = plant.get_generalized_acceleration_output_port()
vdot = plant.EvalTimeDerivatives(context).get_generalized_velocity().CopyToVector()[order]
print(json.dumps([M.tolist(), vdot.tolist(), plant.num_actuators()]))
"""


@pytest.mark.full
def test_drake_computes_the_same_motion_of_a_saved_plant(tmp_path: Path) -> None:
    has = subprocess.run([DRAKE, "-c", "import pydrake"], capture_output=True, check=False)
    if has.returncode:
        pytest.skip("pydrake is missing; PYTHON_WITH_DRAKE may name a Python that has it")
    plant = arm("sdf", is_rough=False).build()
    fx.save_sdf(plant, tmp_path / "arm.sdf")
    names = ["j_b0", "j_b1", "j_b3", "j_b4"]
    state = random_states(plant, is_coupled=False)[0]
    for name in state:
        if name.startswith(("b6", "j_b5")):
            state[name] = np.zeros(2)
    context = at_state(plant, state)
    order, values = [], {}
    for name in names:
        joint = plant.joint(name)
        order += list(range(*plant.tree.velocities_of(joint).indices(100)))
        values[name] = [
            np.ravel(part.get(context)).tolist() for part in (joint.positions, joint.velocities)
        ]
    ran = subprocess.run(
        [DRAKE, "-c", IN_DRAKE, str(tmp_path / "arm.sdf"), json.dumps(values)],
        capture_output=True, text=True, check=False,
        env={"PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    M, vdot, count = json.loads(ran.stdout.splitlines()[-1])
    assert count == 1
    mine = plant.calc_mass_matrix(context)[np.ix_(order, order)]
    np.testing.assert_allclose(M, mine, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(vdot, plant.calc_vdot(context)[order], rtol=1e-8, atol=1e-8)


def test_what_formats_cannot_hold_is_listed_or_refused(tmp_path: Path) -> None:
    builder = fx.PlantBuilder("bench", spin=(0.0, 0.0, 2.0))
    bodies = [builder.add_body(f"b{k}", SOLID) for k in range(3)]
    pivots = [
        builder.add_joint(fx.RevoluteJoint(f"p{k}", builder.world, body, axis=(0, 1, 0)))
        for k, body in enumerate(bodies)
    ]
    pivots[0].default_positions = [0.3]
    pivots[0].set_velocity_limits(-1.0, 2.0)
    pivots[1].set_acceleration_limits(-1.0, 1.0)
    builder.add_actuator("drive", pivots[0])
    builder.add_force_element(
        fx.JointStop("stop", pivots[1], lower=-1.0, stiffness=1e3, damping=0.1)
    )
    builder.add_constraint(fx.constraints.Coupling("sum", dict.fromkeys(pivots, 1.0)))
    builder.add_external_force("push", bodies[2])
    builder.add_shape(bodies[0], fx.BodyShape.tube(inner_radius=1, outer_radius=2, length=3))
    plant = builder.build()
    both = ("'stop'", "'sum'", "'push'", "tube", "the velocity of joint 'p0'", "joint 'p1'", "spin")
    for form, more in (("sdf", ("'p0' starts", "motor 'drive'")), ("mjcf", ())):
        with pytest.warns(UserWarning, match=f"{form.upper()} cannot hold all of 'bench'"):
            listed = "\n".join(SAVE[form](plant, tmp_path / form))
        for word in (*both, *more):
            assert word in listed or word.replace("the ", "the limits of the ") in listed, word
    builder = fx.PlantBuilder("odd")
    point = builder.add_body("point", fx.SpatialInertia(1.0))
    plate = builder.add_body("plate", SOLID)
    builder.add_joint(fx.ScrewJoint("plate", builder.world, point, screw_pitch=0.1))
    builder.add_joint(fx.PlanarJoint("table", point, plate))
    cross = builder.add_body("cross", SOLID)
    builder.add_joint(fx.UniversalJoint("u", builder.world, cross))
    wheel = builder.add_body("wheel", SOLID)
    builder.add_joint(fx.RevoluteJoint("u_qx", cross, wheel, axis=(0, 1, 0)))
    plant = builder.build()
    with pytest.raises(
        DeclarationError,
        match=r"screw joint 'plate'; the body 'point', which moves.*'u_qx', named like an axis of",
    ):
        fx.save_mjcf(plant, tmp_path / "odd.xml")
    with pytest.raises(DeclarationError, match=r"'plate', which shares its name.*joint 'table'"):
        fx.save_sdf(plant, tmp_path / "odd.sdf")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["mjcf", "sdf"]


@pytest.mark.parametrize("form", list(SAVE))
def test_loops_and_looks_come_back(form: str, tmp_path: Path) -> None:
    pytest.importorskip(NEEDS[form], reason=f"{form} files are read with {NEEDS[form]}")
    builder = fx.PlantBuilder("four_bar")
    left, right, top = (builder.add_body(name, SOLID) for name in ("left", "right", "top"))
    y = (0.0, 1.0, 0.0)
    builder.add_joint(fx.RevoluteJoint("a", builder.world, left, axis=y))
    foot = fx.Frame("foot", builder.world, (1.0, 0.0, 0.0))
    builder.add_joint(fx.RevoluteJoint("b", foot, right, axis=y))
    builder.add_joint(fx.RevoluteJoint("c", fx.Frame("tip", left, (0, 0, 1.0)), top, axis=y))
    builder.add_loop_joint(
        fx.BallRpyJoint("d", fx.Frame("end", top, (1.0, 0, 0)), fx.Frame("tip2", right, (0, 0, 1)))
    )
    looks = fx.BodyShape.box(size=(1.0, 2.0, 3.0)) + fx.BodyShape.capsule(radius=0.1, length=0.5)
    corners = np.vstack([np.zeros(3), np.eye(3)])
    looks += fx.BodyShape.mesh((corners, [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]))
    builder.add_shape(top, looks + fx.BodyShape.ellipsoid(semi_axes=(1, 2, 3)), POSE)
    builder.add_shape(top, fx.BodyShape.cylinder(radius=0.2, length=0.4), color="#336699")
    plant = builder.build()
    assert SAVE[form](plant, tmp_path / "bar.xml") == ()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = LOAD[form](tmp_path / "bar.xml").build()
    found, poses = [], []
    for each in (plant, again):
        context = each.create_default_context()
        each.joint("a").positions.set(context, [0.4])
        each.assemble(context, fixed=each.joint("a"))
        found.append((each.body("top").pose(context).p, each.calc_vdot(context)))
        parts = each.body("top").shape.primitives
        assert [p.kind for p in parts] == ["box", "capsule", "mesh", "ellipsoid", "tube"]
        assert parts[-1].color == "#336699"
        places = [p.R @ np.ravel(p.size)[:1].repeat(3) + p.p for p in parts if p.mesh is None]
        poses.append(np.concatenate(places))
    for mine, theirs in (*zip(*found, strict=True), poses):
        np.testing.assert_allclose(theirs, mine, atol=1e-9)


def test_sdf_lists_a_loop_that_is_open_where_joints_are_at_zero(tmp_path: Path) -> None:
    builder = fx.PlantBuilder("rods")
    for k in range(2):
        body = builder.add_body(f"b{k}", SOLID)
        builder.add_joint(fx.RevoluteJoint(f"p{k}", builder.world, body, axis=(0, 1, 0)))
    ends = [fx.Frame(f"e{k}", builder.body(f"b{k}"), (1.0, 0, 0.1 * k)) for k in range(2)]
    builder.add_loop_joint(fx.BallRpyJoint("tie", *ends))
    with pytest.warns(UserWarning, match="LoopJoint 'tie'"):
        fx.save_sdf(builder.build(), tmp_path / "rods.sdf")


def test_mjcf_keeps_the_pose_of_a_weld_that_closes_a_loop(tmp_path: Path) -> None:
    pytest.importorskip("mujoco", reason="MJCF files are read with mujoco")
    builder = fx.PlantBuilder("box")
    lid = builder.add_body("lid", SOLID)
    builder.add_joint(fx.QuaternionFloatingJoint("lid", builder.world, lid)).default_pose = POSE
    builder.add_loop_joint(fx.WeldJoint("latch", builder.world, lid, POSE))
    assert fx.save_mjcf(builder.build(), tmp_path / "box.xml") == ()
    again = fx.load_mjcf(tmp_path / "box.xml").build()
    errors = again.output_port("latch.error").eval(again.create_default_context())
    np.testing.assert_allclose(errors, np.zeros(6), atol=1e-12)
