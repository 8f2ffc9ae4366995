"""Models from SDF files: what a file may say in several ways, and what is left out or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import DeclarationError, UnknownNameError
from tests.oracle.reading import DATA
from tests.support.tiers import for_each

pytest.importorskip("lxml", reason="SDF files are read with the package lxml")

LINKS = '<link name="a"/><link name="b"><pose>0 0 -1 0 0 0</pose></link>'
GROUND = '<joint name="g" type="fixed"><parent>world</parent><child>a</child></joint>'


def model(inside: str, *, version: str = "1.7", around: str = "{}") -> str:
    text = f'<model name="m">{LINKS}{GROUND}{inside}</model>'
    return f'<sdf version="{version}">{around.format(text)}</sdf>'


def joint(kind: str = "revolute", inside: str = "", axis: str = "<xyz>0 1 0</xyz>") -> str:
    return (
        f'<joint name="j" type="{kind}"><parent>a</parent><child>b</child>'
        f"<axis>{axis}</axis>{inside}</joint>"
    )


def only_joint(text: str) -> Any:
    return fx.load_sdf(model(text)).joint("j")


def test_gravity_is_that_of_the_world_of_the_file_unless_another_one_is_given() -> None:
    world = '<world name="moon"><gravity>0 0 -1.6</gravity>{}</world>'
    assert np.array_equal(fx.load_sdf(model("", around=world)).gravity, [0.0, 0.0, -1.6])
    assert np.array_equal(fx.load_sdf(model("")).gravity, [0.0, 0.0, -9.81])
    given = fx.load_sdf(model("", around=world), gravity=[0.0, 0.0, 1.0])
    assert np.array_equal(given.gravity, [0.0, 0.0, 1.0])


def test_names_in_worlds_and_models_have_those_of_their_models_before_them() -> None:
    builder = fx.load_sdf(DATA.parent / "models" / "ships.sdf")
    names = {body.name for body in builder.bodies}
    assert names == {
        "world",
        "ship__hull",
        "ship__turret__base",
        "ship__turret__barrel",
        "quay__wall",
    }
    assert builder.name == "harbor"
    assert np.array_equal(builder.gravity, [0.1, 0.2, -9.0])
    assert {joint.name: joint.type_name for joint in builder.joints} == {
        "ship__azimuth": "revolute",
        "ship__turret__elevation": "revolute",
        "ship__hull": "quaternion_floating",
        "world_welds_to_quay__wall": "weld",
    }


def test_a_link_without_inertia_has_that_of_the_format() -> None:
    body = fx.load_sdf(model("")).body("a")
    assert body.inertia == fx.SpatialInertia(1.0, inertia=[1.0, 1.0, 1.0])


@pytest.mark.parametrize(
    ("version", "xyz"),
    [
        ("1.7", '<xyz expressed_in="__model__">0 1 0</xyz>'),
        ("1.7", '<xyz expressed_in="a">0 1 0</xyz>'),
        ("1.6", "<xyz>0 1 0</xyz><use_parent_model_frame>1</use_parent_model_frame>"),
    ],
)
def test_axes_are_expressed_in_the_frame_that_is_named(version: str, xyz: str) -> None:
    turned = "<pose>0 0 0 1.5707963267948966 0 0</pose>"  # y of the model is -z of the joint
    found = fx.load_sdf(model(joint(inside=turned, axis=xyz), version=version)).joint("j")
    assert isinstance(found, fx.RevoluteJoint)
    np.testing.assert_allclose(found.revolute_axis, [0.0, 0.0, -1.0], atol=1e-15)


def test_poses_can_be_in_degrees_or_have_quaternions() -> None:
    degrees = '<frame name="f"><pose degrees="true">0 0 1 0 90 0</pose></frame>'
    s = np.sqrt(0.5)
    quaternion = (
        f'<frame name="h"><pose rotation_format="quat_xyzw">0 0 1 0 {s} 0 {s}</pose></frame>'
    )
    builder = fx.load_sdf(model(degrees + quaternion))
    turn = [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]]
    for name in ("f", "h"):
        np.testing.assert_allclose(builder.frame(name).X_BF.R, turn, atol=1e-15)


def test_poses_of_older_files_may_name_an_empty_frame() -> None:
    text = model('<frame name="f"><pose frame="">0 0 1 0 0 0</pose></frame>', version="1.6")
    assert fx.load_sdf(text).frame("f").X_BF.p[2] == 1.0


def test_threads_are_in_meters_per_turn_or_in_radians_per_meter_to_the_left() -> None:
    new = only_joint(joint("screw", "<screw_thread_pitch>0.25</screw_thread_pitch>"))
    old = only_joint(joint("screw", f"<thread_pitch>{-2 * np.pi / 0.25}</thread_pitch>"))
    for each in (new, old):
        assert each.calc_pose(np.array([2.0 * np.pi])).p == pytest.approx([0.0, 0.25, 0.0])


def test_friction_springs_limits_and_motors_are_read() -> None:
    axis = """<xyz>0 1 0</xyz><limit><lower>-1</lower><upper>2</upper><velocity>3</velocity>
    <effort>4</effort></limit><dynamics><friction>0.5</friction><spring_stiffness>6</spring_stiffness>
    <spring_reference>0.1</spring_reference><damping>0.7</damping></dynamics>"""
    builder = fx.load_sdf(model(joint(axis=axis)))
    found: Any = builder.joint("j")
    assert (found.position_lower_limit, found.position_upper_limit) == (-1.0, 2.0)
    assert (found.velocity_upper_limit, found.default_damping) == (3.0, 0.7)
    plant = builder.build()
    assert plant.actuator("j").effort_limit == 4.0
    context = plant.create_default_context()
    found.rate.set(context, 1.0)
    forces = [plant.output_port(f"j_{each}.generalized_force") for each in ("friction", "spring")]
    assert [float(port.eval(context)[0]) for port in forces] == pytest.approx([-0.5, 0.6])


def test_a_joint_that_mimics_another_follows_it() -> None:
    link = '<link name="c"/><joint name="k" type="revolute"><parent>a</parent><child>c</child>'
    numbers = "<multiplier>2</multiplier><offset>0.3</offset><reference>0.1</reference>"
    mimic = f'<mimic joint="j">{numbers}</mimic>'
    text = f"{joint()}{link}<axis><xyz>0 1 0</xyz>{mimic}</axis></joint>"
    plant = fx.load_sdf(model(text)).build()
    context = plant.create_default_context()
    plant.joint("j").positions.set(context, [0.5])
    plant.assemble(context, fixed=plant.joint("j"))
    assert plant.joint("k").positions.get(context) == pytest.approx([2.0 * (0.5 - 0.1) + 0.3])


def test_a_joint_that_closes_a_loop_becomes_a_constraint() -> None:
    link = '<link name="c"><pose>1 0 -1 0 0 0</pose></link>'
    more = "".join(
        f'<joint name="{name}" type="revolute"><pose relative_to="{at}"/><parent>{parent}</parent>'
        f"<child>{child}</child><axis><xyz>0 1 0</xyz></axis></joint>"
        for name, at, parent, child in (("k", "c", "b", "c"), ("closing", "a", "c", "world"))
    )
    builder = fx.load_sdf(model(joint() + link + more))
    (loop,) = builder.constraints
    assert isinstance(loop, fx.constraints.LoopJoint)
    assert loop.name == "closing"
    plant = builder.build()
    errors = plant.output_port("closing.error").eval(plant.create_default_context())
    np.testing.assert_allclose(errors, 0.0, atol=1e-15)


def test_shapes_and_colors_are_read(tmp_path: Path) -> None:
    box = "<geometry><box><size>1 2 3</size></box></geometry>"
    material = "<material><ambient>1 1 1 1</ambient><diffuse>0 0 1 1</diffuse></material>"
    link = (
        f'<link name="c"><visual name="v"><pose>0 0 1 0 0 0</pose>{box}{material}</visual></link>'
    )
    (part,) = fx.load_sdf(model(link)).body("c").shape.primitives
    assert (part.kind, part.size, part.color) == ("box", (1.0, 2.0, 3.0), "#0000ff")
    assert np.array_equal(part.p, [0.0, 0.0, 1.0])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<plugin/>", "<plugin> in model 'm', line 1 of the text"),
        ('<link name="c"><sensor name="s"/></link>', "<sensor name='s'>, line 1"),
        ("<include><uri>model://x</uri></include>", "<include> in model 'm'"),
        ('<link name="c"><collision name="x"/></link>', "<collision name='x'>, line 1"),
        ('<link name="c"><gravity>false</gravity></link>', "<gravity> in link 'c'.*: false"),
        (joint(axis="<limit><stiffness>9</stiffness></limit>"), "<stiffness> in joint 'j'"),
        (
            '<link name="c"><visual name="v"><geometry><torus/></geometry></visual></link>',
            "not drawn",
        ),
    ],
)
def test_what_is_not_understood_is_listed_and_said(text: str, words: str) -> None:
    with pytest.warns(UserWarning, match=words):
        builder = fx.load_sdf(model(text))
    assert len(builder.left_out) == 1


@for_each(
    ("text", "kind", "words"),
    [
        ("<sdf/>", DeclarationError, "attribute 'version'"),
        ('<sdf version="1.4"/>', DeclarationError, "version 1.5 or later; found '1.4'"),
        ('<sdf version="1.7"/>', DeclarationError, "expected a <model>"),
        ("<robot/>", DeclarationError, "expected <sdf> as the outermost element"),
        (model(joint("gearbox")), DeclarationError, "'j'.*one of the types.*found 'gearbox'"),
        (model(joint(axis="<xyz>0 0 0</xyz>")), DeclarationError, "an axis that is not zero"),
        (
            model(joint("universal", "<axis2><xyz>0 1 1</xyz></axis2>")),
            DeclarationError,
            "right angles; found 45 degrees",
        ),
        (
            model('<frame name="f" attached_to="h"/><frame name="h" attached_to="f"/>'),
            DeclarationError,
            "in a circle; found m::f -> m::h -> m::f",
        ),
        (
            model('<frame name="f"><pose relative_to="aa"/></frame>'),
            UnknownNameError,
            "name of a frame that exists; found 'm::aa'.*'m::a'",
        ),
        (model('<link name="a"/>'), DeclarationError, "a name that no other frame has; found 'a'"),
        (model('<frame name="f"><pose>0 0 1</pose></frame>'), DeclarationError, "6 numbers; found"),
        (
            model('<frame name="f"><pose frame="a">0 0 1 0 0 0</pose></frame>'),
            DeclarationError,
            "no other attributes than 'relative_to'.*found 'frame'",
        ),
        (
            model('<link name="c"><inertial><mass>-1</mass></inertial></link>'),
            DeclarationError,
            "mass, from <inertial> in link 'c'",
        ),
    ],
)
def test_what_would_change_the_motion_unnoticed_is_refused(
    text: str, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        fx.load_sdf(text)
