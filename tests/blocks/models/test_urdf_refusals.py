"""Files that load_urdf refuses, with the line and the element that are to blame."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from flexure.blocks.models.mjcf.mjcf import load_mjcf
from flexure.blocks.models.urdf.urdf import load_urdf
from flexure.diagrams.checks.errors import (
    DeclarationError,
    FlexureError,
    MissingExtraError,
    UnknownNameError,
)
from tests.support.mechanics.robots import ARM, DOOR
from tests.support.tiers import for_each

pytest.importorskip("lxml", reason="URDF files are read with the package lxml")


def changed(old: str, new: str) -> Callable[[], str]:
    """Return a function that makes the door with one change."""

    def make() -> str:
        assert old in DOOR
        return DOOR.replace(old, new)

    return make


BOB = """<link name="bob"/><joint name="swing" type="continuous">
<parent link="panel"/><child link="bob"/>
"""

REFUSED: dict[str, tuple[Callable[[], str], str]] = {
    "no robot": (lambda: "<sdf/>", r"<sdf>, line 1 of the text: expected <robot> as the outer"),
    "robot without a name": (
        changed(' name="door"', ""),
        "<robot>, line 2.*attribute 'name'.*none",
    ),
    "unnamed link": (changed(' name="panel"', ""), "<link> in robot 'door', line 4.*'name'"),
    "empty name": (changed('name="panel"', 'name=" "'), "attribute 'name'; found an empty one"),
    "digits with an underscore": (
        changed('value="9"', 'value="1_0"'),
        "<mass> in link 'panel'.*a number in the attribute 'value'; found '1_0'",
    ),
    "digits that are not ASCII": (changed('value="9"', 'value="\u0669"'), "<mass> in link 'panel'"),
    "names that become one": (
        changed("</robot>", '<link name="a.b"/><link name="a_b"/></robot>'),
        "<link name='a_b'>, line 25.*a name that is not taken",
    ),
    "same name twice": (
        changed("</robot>", '<link name="panel"/></robot>'),
        "<link name='panel'>, line 25.*a name that is not taken",
    ),
    "no mass": (changed('<mass value="9"/>', ""), "<inertial> in link 'panel', line 5.*<mass> in"),
    "two masses": (
        changed("<mass ", '<mass value="1"/><mass '),
        "<inertial> in link 'panel', line 5.*expected one <mass>; found 2 of them",
    ),
    "negative mass": (
        changed('value="9"', 'value="-9"'),
        r"with the mass, from <inertial> in link 'panel', line 5.*in \[0, inf\] kg; found -9",
    ),
    "no moment": (changed(' ixx="0.6"', ""), "<inertia> in link 'panel', line 8.*attribute 'ixx'"),
    "impossible inertia": (
        changed('ixx="0.6"', 'ixx="0.9"'),
        "<inertial> in link 'panel', line 5.*the greatest exceeds the sum of the others",
    ),
    "word for a number": (
        changed('xyz="1 2 3"', 'xyz="1 two 3"'),
        "<origin> in joint 'axis', line 15.*3 numbers in the attribute 'xyz'; found '1 two 3'",
    ),
    "two numbers for three": (
        changed('xyz="1 2 3"', 'xyz="1 2"'),
        "<origin> in joint 'axis', line 15.*3 numbers in the attribute 'xyz'; found '1 2'",
    ),
    "infinite place": (
        changed('xyz="1 2 3"', 'xyz="1 2 inf"'),
        "<origin> in joint 'axis', line 15.*finite numbers in the attribute 'xyz'",
    ),
    "no number": (
        changed('velocity="5"', 'velocity="nan"'),
        "<limit> in joint 'axis', line 17.*a number in the attribute 'velocity'; found 'nan'",
    ),
    "orientation in other terms": (
        changed('xyz="1 2 3"', 'xyz="1 2 3" quat_xyzw="0 0 0 1"'),
        "<origin> in joint 'axis', line 15.*no other attributes than 'xyz', 'rpy'; found 'quat_",
    ),
    "no axis": (changed('xyz="2 0 0"', 'xyz="0 0 0"'), "<axis> in joint 'axis', line 16.*not zero"),
    "type of joint": (
        changed('type="revolute"', 'type="hinge"'),
        "<joint name='axis'>, line 12.*one of the types 'revolute', .*; found 'hinge'",
    ),
    "screw without a pitch": (
        changed('type="revolute"', 'type="screw"'),
        "<joint name='axis'>, line 12.*expected <drake:screw_thread_pitch> inside; found none",
    ),
    "no parent": (changed('<parent link="world"/>', ""), "<joint name='axis'>.*<parent> inside"),
    "mimic of itself": (
        changed("<axis ", '<mimic joint="axis"/><axis '),
        "<mimic> in joint 'axis', line 16.*different coordinates",
    ),
    "mimic that stands still": (
        changed("</robot>", BOB + '<mimic joint="axis" multiplier="0"/></joint></robot>'),
        "<mimic> in joint 'swing', line 27.*ratio that is not zero",
    ),
    "negative damping": (changed('"0.25"', '"-1"'), "<dynamics> in joint 'axis', line 18.*found"),
    "limits out of order": (
        changed('upper="1.6"', 'upper="-1"'),
        "<limit> in joint 'axis', line 17",
    ),
    "negative effort": (
        changed('effort="30"', 'effort="-30"'),
        "line 17.*an effort >= 0; found -30",
    ),
    "negative speed": (
        changed('velocity="5"', 'velocity="-5"'),
        "<limit> in joint 'axis', line 17",
    ),
    "loop": (
        changed(
            "</robot>",
            '<joint name="b" type="fixed"><parent link="world"/><child link="panel"/></joint>'
            "</robot>",
        ),
        "<joint name='b'>, line 25 of the text: expected .*loop",
    ),
    "loop joint": (changed("</robot>", "<loop_joint/></robot>"), "line 25.*joints without loops"),
    "constraint": (
        changed("</robot>", "<drake:tendon_constraint/></robot>"),
        "<drake:tendon_constraint> in robot 'door', line 25.*expected no tendons",
    ),
    "macros": (
        changed("</robot>", "<xacro:macro name='m'/></robot>"),
        "<xacro:macro name='m'>, line 25.*a file that xacro has expanded",
    ),
    "kind of transmission": (
        changed("interface/Simple", "interface/Differential"),
        "<transmission name='drive'>, line 20.*the type SimpleTransmission; found 'trans",
    ),
    "transmission without a motor": (
        changed('<actuator name="motor"/>', ""),
        "<transmission name='drive'>, line 20.*expected <actuator> inside; found none",
    ),
    "reduction": (
        changed('"motor"/>', '"motor"><mechanicalReduction>x</mechanicalReduction></actuator>'),
        "<mechanicalReduction> in actuator 'motor', line 23.*expected a number; found 'x'",
    ),
    "frame with the name of a link": (
        changed("</robot>", "<frame name='panel' link='panel'/></robot>"),
        "<frame name='panel'>, line 25.*a name that no link has",
    ),
    "bushing without constants": (
        lambda: ARM.replace('<drake:bushing_torque_damping value="0.1 0.2 0.3"/>', ""),
        "<drake:linear_bushing_rpy> in robot 'arm', line .*<drake:bushing_torque_damping> inside",
    ),
    "negative stiffness": (
        lambda: ARM.replace('value="10 20 30"', 'value="10 20 -30"'),
        r"<drake:linear_bushing_rpy> in robot 'arm', line .* N m/rad; found \[10, 20, -30\]",
    ),
    "spring without length": (
        lambda: ARM.replace('_free_length value="0.5"', '_free_length value="0"'),
        r"<drake:linear_spring_damper> in robot 'arm', line .*expected values in \(0, inf\) m",
    ),
    "no XML": (
        lambda: "<robot><link></robot>",
        "the text: expected well-formed XML; found in line 1",
    ),
    "nothing but space": (lambda: " <", "the text: expected well-formed XML; found in line 1"),
    "foreign entity": (lambda: "<robot name='r'>&x;</robot>", "Entity 'x' not defined"),
}


@for_each("case", REFUSED)
def test_error_names_line_and_element(case: str) -> None:
    make, message = REFUSED[case]
    with pytest.raises(DeclarationError, match=message):
        load_urdf(make())


@for_each(
    ("old", "new", "message"),
    [
        (
            'child link="panel"',
            'child link="pane"',
            "<child>.*line 14.*'link'; found 'pane'.*'panel'",
        ),
        ('joint name="axis"/>', 'joint name="hinge"/>', "<joint name='hinge'>, line 22.*'axis'"),
        ("</robot>", "<frame name='f' link='x'/></robot>", "<frame name='f'>, line 25.*found 'x'"),
    ],
)
def test_names_that_do_not_exist_are_refused_with_those_that_do(
    old: str, new: str, message: str
) -> None:
    with pytest.raises(UnknownNameError, match=message):
        load_urdf(DOOR.replace(old, new))


def test_bushing_between_frames_that_do_not_exist_is_refused() -> None:
    with pytest.raises(UnknownNameError, match=r"<drake:bushing_frameA name='sockets'>.*'socket'"):
        load_urdf(ARM.replace('frameA name="socket"', 'frameA name="sockets"'))


def test_error_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "door.urdf"
    path.write_text(DOOR.replace('"9"', '"nine"'), encoding="utf-8")
    with pytest.raises(DeclarationError, match=r"<mass> in link 'panel', line 7 of 'door\.urdf'"):
        load_urdf(path)


def test_file_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(DeclarationError, match=r"Cannot read 'no\.urdf': .* No such file"):
        load_urdf(tmp_path / "no.urdf")
    with pytest.raises(DeclarationError, match=r"found a folder, '.*Name a file in it"):
        load_urdf(tmp_path)
    with pytest.raises(DeclarationError, match="found an empty text"):
        load_urdf("")


def test_no_other_file_is_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret", encoding="utf-8")
    entity = f'<!DOCTYPE robot [<!ENTITY e SYSTEM "{secret.as_uri()}">]>'
    text = f"{entity}<robot name='r'>{DOOR[DOOR.index('<link') : -len('</robot>') - 1]}</robot>"
    kind = text.replace("transmission_interface/SimpleTransmission", "&e;")
    with pytest.raises(FlexureError) as caught:
        load_urdf(kind)
    assert "secret" not in str(caught.value)


def test_base_is_welded_or_free() -> None:
    with pytest.raises(DeclarationError, match="base to be one of 'weld', 'free'; found 'fixed'"):
        load_urdf(DOOR, base="fixed")  # type: ignore[arg-type]


def test_missing_parser_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lxml", None)
    with pytest.raises(MissingExtraError, match=r"lxml.*pip install 'flexure\[urdf\]'"):
        load_urdf(DOOR)
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(MissingExtraError, match=r"mujoco.*pip install 'flexure\[mjcf\]'"):
        load_mjcf("<mujoco/>")
