"""Models from MJCF files: they move as MuJoCo moves them, and what plants do not have is listed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.constraints import Coupling, GearPair, HolonomicConstraint, LoopJoint
from flexure.diagrams.checks.errors import DeclarationError
from tests.support.tiers import for_each

mujoco: Any = pytest.importorskip("mujoco", reason="MJCF files are read with the package mujoco")

FREE = 'contype="0" conaffinity="0"'
MACHINE = f"""
<mujoco model="machine">
  <compiler angle="degree" autolimits="true"/>
  <option gravity="0.3 0.2 -9"/>
  <worldbody>
    <body name="cart" pos="0 0 0.4" euler="10 20 30">
      <joint name="x" type="slide" axis="1 0.2 0" ref="0.1" springref="0.3" stiffness="40"/>
      <joint name="y" type="slide" axis="0 1 0" pos="0.1 0.2 0.3" damping="3"/>
      <joint name="turn" axis="0.1 0 1" pos="0.2 0 0" ref="30" armature="0.4" range="-90 120"/>
      <geom type="box" size="0.3 0.2 0.1" mass="5" {FREE}/>
      <body name="plate" pos="0 0 0.3" quat="1 0.1 0.2 0.3">
        <geom type="cylinder" size="0.2 0.05" mass="2" {FREE}/>
        <site name="plate" pos="0.1 0 0.2"/>
        <body name="arm" pos="0.2 0 0">
          <joint name="a" axis="0 1 0" springref="-20" stiffness="7" damping="0.2"/>
          <joint name="b" axis="1 0 0" pos="0 0 0.1"/>
          <geom type="capsule" size="0.03" fromto="0 0 0 0.4 0 0.1" mass="1" {FREE}/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor name="drive" joint="turn" gear="5" ctrlrange="-2 2"/>
    <motor joint="a" forcerange="-3 1"/>
  </actuator>
</mujoco>"""


WALKER = """
<mujoco model="walker">
  <compiler angle="degree" eulerseq="zyx"/>
  <default>
    <joint damping="0.7" armature="0.02"/>
    <geom contype="0" conaffinity="0" density="800"/>
    <default class="leg">
      <joint axis="0 1 0" stiffness="3" springref="12"/>
      <geom type="capsule" size="0.04"/>
      <default class="foot">
        <joint stiffness="0" damping="0.1"/>
        <geom type="ellipsoid" size="0.1 0.04 0.02"/>
      </default>
    </default>
  </default>
  <worldbody>
    <body name="torso" pos="0 0 1.2" euler="10 20 30">
      <freejoint/>
      <inertial pos="0.1 0 0.2" mass="20" fullinertia="1.3 1.4 1.5 0.1 -0.2 0.3"/>
      <frame pos="0 0.1 -0.3" axisangle="1 0 0 15">
        <body name="thigh" childclass="leg">
          <joint name="hip" pos="0 0 0.02"/><geom fromto="0 0 0 0 0.02 -0.4"/>
          <body name="shin" pos="0 0.02 -0.4">
            <joint name="knee"/><geom fromto="0 0 0 0 0 -0.4"/>
            <body name="foot" pos="0 0 -0.42" xyaxes="1 0.1 0 0 1 0">
              <joint name="ankle" class="foot" type="ball"/><geom class="foot" pos="0.05 0 0"/>
            </body>
          </body>
        </body>
      </frame>
    </body>
  </worldbody>
</mujoco>"""


@pytest.mark.parametrize("seed", range(3))
def test_a_machine_moves_as_mujoco_moves_it(seed: int) -> None:
    model = mujoco.MjModel.from_xml_string(MACHINE)
    data = mujoco.MjData(model)
    rng = np.random.default_rng(seed)
    data.qpos[:], data.qvel[:] = rng.normal(size=(2, model.nv))
    data.ctrl[:] = 0.7, -0.3
    mujoco.mj_forward(model, data)
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M) if mujoco.__version__ >= "4" else mujoco.mj_fullM(
        model, M, data.qM
    )
    plant = fx.load_mjcf(MACHINE).build()
    context = plant.create_default_context()
    names = ["x", "y", "turn", "a", "b"]
    order = [plant.tree.velocities_of(plant.joint(name)).start for name in names]
    for name, q, v in zip(names, data.qpos, data.qvel, strict=True):
        plant.joint(name).positions.set(context, [q])
        plant.joint(name).velocities.set(context, [v])
    plant.input_port("drive").fix(context, [5.0 * 0.7])
    plant.input_port("actuator1").fix(context, [-0.3])
    np.testing.assert_allclose(plant.calc_mass_matrix(context)[np.ix_(order, order)], M, atol=1e-9)
    np.testing.assert_allclose(plant.calc_vdot(context)[order], data.qacc, rtol=1e-8)
    for number in range(1, model.nbody):
        pose = plant.body(model.body(number).name).pose(context)
        np.testing.assert_allclose(pose.p, data.xpos[number], atol=1e-12)
        np.testing.assert_allclose(pose.R, data.xmat[number].reshape(3, 3), atol=1e-12)
    site = plant.frame("plate_site").pose(context)
    np.testing.assert_allclose(site.p, data.site_xpos[0], atol=1e-12)


def test_a_walker_with_defaults_frames_and_degrees_moves_as_mujoco_moves_it() -> None:
    model = mujoco.MjModel.from_xml_string(WALKER)
    model.opt.integrator, model.opt.timestep = int(mujoco.mjtIntegrator.mjINT_RK4), 5e-4
    data = mujoco.MjData(model)
    plant = fx.load_mjcf(WALKER).build()
    context = plant.create_default_context()
    for name, rate in (("hip", 2.0), ("knee", -3.0)):
        data.joint(name).qvel[:] = rate
        plant.joint(name).velocities.set(context, [rate])
    mujoco.mj_step(model, data, 600)
    final = fx.simulate(
        plant, 0.3, context=context, rtol=1e-9, atol=1e-11, compiled="python"
    ).context
    for name in ("torso", "thigh", "foot"):
        pose = plant.body(name).pose(final)
        np.testing.assert_allclose(pose.p, data.body(name).xpos, atol=1e-7)
        np.testing.assert_allclose(pose.R, data.body(name).xmat.reshape(3, 3), atol=1e-7)


def test_names_limits_and_motors_are_those_of_the_file() -> None:
    builder = fx.load_mjcf(MACHINE)
    assert builder.left_out == ()
    assert [body.name for body in builder.bodies[1:4]] == ["cart_1", "cart_2", "cart"]
    turn: Any = builder.joint("turn")
    limits = turn.position_lower_limit, turn.position_upper_limit
    assert limits == pytest.approx((-np.pi / 2, np.pi / 1.5))
    assert turn.default_angle == pytest.approx(np.pi / 6)
    plant = builder.build()
    assert plant.actuator("drive").effort_limit == 10.0
    assert plant.actuator("drive").default_rotor_inertia == 0.4
    assert plant.actuator("actuator1").effort_limit == 3.0


LINKS = f"""
<mujoco model="links">
  <worldbody>
    <body name="crank"><joint name="c" axis="0 1 0"/><geom size="0.1" pos="0.1 0 0" {FREE}/></body>
    <body name="rocker" pos="1 0 0">
      <joint name="r" axis="0 1 0"/><geom size="0.1" pos="0.1 0 0" {FREE}/>
    </body>
    <body name="loose" pos="0 0 1"><freejoint name="f"/><geom size="0.1" {FREE}/></body>
  </worldbody>
  <equality>{{}}</equality>
</mujoco>"""


@pytest.mark.parametrize(
    ("equality", "kind", "count"),
    [
        ('<connect name="e" body1="loose" body2="crank" anchor="0.1 0.2 -1"/>', LoopJoint, 3),
        ('<weld name="e" body1="crank" body2="loose"/>', LoopJoint, 6),
        ('<weld name="e" body1="loose"/>', LoopJoint, 6),
        ('<weld name="e" body1="crank" body2="loose" anchor="0.1 0.2 0.3"/>', LoopJoint, 6),
        ('<joint name="e" joint1="c" joint2="r" polycoef="0.1 -2 0 0 0"/>', GearPair, 1),
        ('<joint name="e" joint1="c" polycoef="0.1 0 0 0 0"/>', Coupling, 1),
        (
            '<joint name="e" joint1="c" joint2="r" polycoef="0.1 1 2 3 4"/>',
            HolonomicConstraint,
            1,
        ),
    ],
)
def test_equalities_become_constraints_with_the_errors_that_mujoco_has(
    equality: str, kind: type[Any], count: int
) -> None:
    text = LINKS.format(equality)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qpos[:2] = 0.3, -0.2
    mujoco.mj_forward(model, data)
    plant = fx.load_mjcf(text).build()
    (found,) = plant.constraints
    assert type(found) is kind
    context = plant.create_default_context()
    start = plant.output_port("e.error")
    rest = 0.1 if "polycoef" in equality else 0.0
    np.testing.assert_allclose(np.abs(start.eval(context)), rest, atol=1e-12)
    plant.joint("c").positions.set(context, [0.3])
    plant.joint("r").positions.set(context, [-0.2])
    errors = start.eval(context)
    assert errors.shape == data.efc_pos.shape == (count,)
    if count < 6:  # those of orientations have other measures
        assert np.linalg.norm(errors) == pytest.approx(np.linalg.norm(data.efc_pos), rel=1e-9)


ODD = """
<mujoco model="odd one">
  <option density="1.2"/>
  <worldbody>
    <site name="e"/><geom name="floor" type="plane" size="1 1 1"/>
    <body name="a/b"><freejoint/><geom name="ball" size="0.1"/><site name="s"/></body>
    <body name="h"><joint name="hinge"/><geom size="0.1"/></body>
    <body name="a_b">
      <joint type="ball" stiffness="3" range="0 40" frictionloss="1"/><geom size="0.1"/>
    </body>
    <camera name="eye"/><light name="sun"/>
  </worldbody>
  <tendon><spatial name="rope"><site site="s"/><site site="e"/></spatial></tendon>
  <actuator><position name="servo" joint="hinge" kp="3"/></actuator>
  <sensor><gyro name="gyro" site="s"/></sensor>
  <custom><numeric name="hint" data="1"/></custom>
</mujoco>"""


def test_what_plants_do_not_have_is_listed_and_said() -> None:
    with pytest.warns(UserWarning, match="'odd_one'.*left_out of the builder lists all"):
        builder = fx.load_mjcf(ODD)
    text = "\n".join(builder.left_out)
    for words in (
        *("the plane 'floor'", "contacts of the geom 'ball'", "the tendon 'rope'", "sensor 'gyro'"),
        *("the actuator 'servo'", "density of the medium", "the stiffness of the joint 'joint2'"),
        *("the range of the joint 'joint2'", "the axes of the friction of the joint 'joint2'"),
        *("the camera 'eye'", "the light 'sun'", "the numeric 'hint'"),
    ):
        assert words in text
    assert [body.name for body in builder.bodies[1:]] == ["a_b", "h", "a_b_body"]
    assert builder.frame("s").body.name == "a_b"


TENDONS = f"""
<mujoco>
  <option gravity="0.3 0.2 -9"/>
  <worldbody>
    <site name="roof" pos="0.1 0.2 0.5"/>
    <body name="cart" pos="0 0 0.1">
      <joint name="x" type="slide" axis="1 0 0" ref="0.1"/><geom size="0.1" mass="2" {FREE}/>
      <body name="bob">
        <joint name="turn" axis="0 1 0"/>
        <geom size="0.1" mass="2" {FREE}/><site name="eye" pos="0.1 0 0.05"/>
        <body name="tip" pos="0 0 -0.4">
          <joint name="swing" axis="0 1 0.1"/><geom size="0.05" pos="0.1 0 0" mass="1" {FREE}/>
          <site name="end" pos="0 0 -0.1"/>
        </body>
      </body>
    </body>
  </worldbody>
  <tendon>
    <spatial name="spring" stiffness="300" damping="2" springlength="0.2">
      <site site="roof"/><site site="eye"/></spatial>
    <spatial name="damper" damping="5"><site site="roof"/><site site="end"/></spatial>
    <spatial name="rope" stiffness="900" springlength="0 0.4">
      <site site="roof"/><site site="end"/></spatial>
    <fixed name="mix" stiffness="20" damping="0.7" springlength="0.3">
      <joint joint="x" coef="2"/><joint joint="swing" coef="-0.5"/></fixed>
  </tendon>
</mujoco>"""


@pytest.mark.parametrize("is_saved", [False, True])
def test_tendons_pull_as_those_of_mujoco(is_saved: bool, tmp_path: Path) -> None:
    model = mujoco.MjModel.from_xml_string(TENDONS)
    builder = fx.load_mjcf(TENDONS)
    if is_saved:
        _, turn, swing = builder.joints
        gears = GearPair("gears", turn, swing, ratio=-2.0, offset=-0.1)
        builder.add_force_element(fx.CompliantCoupling("teeth", gears, stiffness=30.0))
    plant = builder.build()
    if is_saved:
        assert fx.save_mjcf(plant, tmp_path / "tendons.xml") == ()
        model = mujoco.MjModel.from_xml_path(str(tmp_path / "tendons.xml"))
        assert model.ntendon == 5
    names, rng = ["x", "turn", "swing"], np.random.default_rng(5)
    order = [plant.tree.velocities_of(plant.joint(name)).start for name in names]
    for _ in range(5):
        data, context = mujoco.MjData(model), plant.create_default_context()
        data.qpos[:], data.qvel[:] = 0.5 * rng.normal(size=(2, 3))
        mujoco.mj_forward(model, data)
        for name, q, v in zip(names, data.qpos, data.qvel, strict=True):
            plant.joint(name).positions.set(context, [q])
            plant.joint(name).velocities.set(context, [v])
        np.testing.assert_allclose(plant.calc_vdot(context)[order], data.qacc, rtol=1e-8)


@pytest.mark.parametrize("name", ["bob", "tree", "totals"])
def test_tendons_may_have_names_of_other_blocks_and_factors_of_zero(name: str) -> None:
    named = TENDONS.replace('name="mix"', f'name="{name}"').replace('coef="-0.5"', 'coef="0"')
    context = fx.load_mjcf(named).build().create_default_context()
    assert context.get(f"{name}_tendon.stiffness") == 20.0
    nothing = named.replace('coef="2"', 'coef="0"')
    with pytest.warns(UserWarning, match=f"the tendon '{name}_tendon'"):
        fx.load_mjcf(nothing).build()


def test_elements_that_are_no_tendons_are_not_saved_as_such(tmp_path: Path) -> None:
    builder = fx.load_mjcf(TENDONS)
    joints, pair = builder.joints, (builder.world, (0, 0, 1), builder.bodies[1], (0, 0, 0))
    gears = GearPair("gears", joints[1], joints[2], ratio=-2.0, offset=-0.1)
    for element in (
        fx.CompliantCoupling("teeth", gears, stiffness=3.0, efficiency=0.9),
        fx.Cable("wet", *pair, free_length=0.5, stiffness=3.0, damping=0.1),
        fx.Cable("table", *pair, free_length=0.5, deflections=[0.1, 0.2], forces=[1.0, 3.0]),
        fx.Bumper("buffer", *pair, free_length=0.5, stiffness=3.0),
    ):
        builder.add_force_element(element)
    with pytest.warns(UserWarning, match="'teeth'.*'wet'"):
        left_out = fx.save_mjcf(builder.build(), tmp_path / "file.xml")
    assert len(left_out) == 4


def test_tendons_of_other_kinds_are_left_out_by_name() -> None:
    played = TENDONS.replace('springlength="0 0.4"', 'springlength="0.1 0.4"')
    limited = played.replace('name="mix"', 'name="mix" range="-1 1" limited="true"')
    with pytest.warns(UserWarning, match="the tendon 'rope'.*the range of the tendon 'mix'"):
        fx.load_mjcf(limited)


@for_each("source", ["<mujoco><nothing/></mujoco>", "<", "<sdf/>", "no such file.xml"])
def test_what_mujoco_refuses_is_refused_with_its_words(source: str) -> None:
    with pytest.raises(DeclarationError, match="Cannot read an MJCF file: expected a file that"):
        fx.load_mjcf(source)


def test_files_are_read_by_their_names_with_what_they_include(tmp_path: Path) -> None:
    (tmp_path / "part.xml").write_text(
        f'<mujoco><worldbody><body name="p"><geom size="0.1" {FREE}/></body></worldbody></mujoco>',
        encoding="utf-8",
    )
    path = tmp_path / "whole.xml"
    path.write_text('<mujoco model="whole"><include file="part.xml"/></mujoco>', encoding="utf-8")
    builder = fx.load_mjcf(path, gravity=(0.0, 0.0, 0.0))
    assert (builder.name, builder.body("p").name) == ("whole", "p")
    assert not np.any(builder.gravity)
