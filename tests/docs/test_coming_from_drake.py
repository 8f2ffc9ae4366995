"""Every name in the table of Drake's members leads somewhere, and no member is left out."""

from __future__ import annotations

import re
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

import flexure as fx

DOCS = Path(__file__).parents[2] / "docs"
PAGE, MEMBERS = DOCS / "coming-from-drake.md", DOCS / "coming-from-drake-members.md"
SECTIONS = {
    "LinearBushingRollPitchYaw": 22,
    "LinearSpringDamper": 11,
    "DoorHinge": 16,
    "ForceElement": 10,
    "MultibodyElement": 8,
    "BallRpyJoint": 15,
    "Joint": 30,
    "RevoluteJoint": 12,
}


def rows(section: str) -> list[list[str]]:
    """Return the cells of the rows of the table below a heading."""
    text = MEMBERS.read_text(encoding="utf-8")
    match = re.search(rf"^## {section}(?: \(.*\))?\n\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert match, section
    return [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in match[1].splitlines()[2:]
    ]


def sample() -> dict[str, Any]:
    """Build a plant with the elements and joints of the table."""
    builder = fx.PlantBuilder("plant")
    body = builder.add_body("body", fx.SpatialInertia.solid_sphere(1.0, radius=0.1))
    arm = builder.add_body("arm", fx.SpatialInertia.solid_sphere(1.0, radius=0.1))
    ball = builder.add_joint(fx.BallRpyJoint("ball", builder.world, body))
    axis = builder.add_joint(fx.RevoluteJoint("axis", body, arm, axis=(0, 1, 0)))
    keys = [f"{what}_{kind}" for what in ("torque", "force") for kind in ("stiffness", "damping")]
    constants: dict[str, Any] = {key: [1.0, 2.0, 3.0] for key in keys}
    bushing = builder.add_force_element(
        fx.LinearBushingRollPitchYaw("bushing", builder.world, arm, **constants)
    )
    spring = builder.add_force_element(
        fx.LinearSpringDamper(
            "spring", body, (1, 0, 0), arm, (0, 1, 0), free_length=1.0, stiffness=1.0, damping=0.0
        )
    )
    hinge = builder.add_force_element(fx.DoorHinge("hinge", axis))
    motor = builder.add_actuator("motor", axis, gear_ratio=3.0, rotor_inertia=0.1)
    plant = builder.build()
    names = {
        "motor": motor,
        "fx": fx,
        "builder": builder,
        "plant": plant,
        "body": body,
        "bushing": bushing,
    }
    names |= {"spring": spring, "hinge": hinge, "element": bushing, "ball": ball, "axis": axis}
    return names | {"joint": ball, "context": plant.create_default_context()}


def resolve(expression: str, names: dict[str, Any]) -> Any:
    """Follow a dotted name, in which ``(context)`` is a call."""
    first, *rest = expression.split(".")

    def step(thing: Any, name: str) -> Any:
        called = name.endswith("(context)")
        found = getattr(thing, name.removesuffix("(context)"))
        return found(names["context"]) if called else found

    return reduce(step, rest, names[first])


@pytest.mark.parametrize("section", [*SECTIONS, "MultibodyPlant"])
def test_every_name_of_ours_exists(section: str) -> None:
    names = sample()
    checked = 0
    for _, ours, difference in rows(section):
        for expression in re.findall(r"`([^`]+)`", ours):
            assert resolve(expression, names) is not None, expression
            checked += 1
        for expression in re.findall(
            r"`((?:fx|hinge|plant|builder|bushing|motor)\.[\w.]+)`", difference
        ):
            assert resolve(expression, names) is not None, expression
    assert checked > 5


@pytest.mark.parametrize("section", SECTIONS)
def test_no_member_of_drake_is_left_out(section: str) -> None:
    assert len(rows(section)) >= SECTIONS[section]
    for drake, ours, difference in rows(section):
        assert drake
        assert ours != "-" or difference, drake


def test_a_wrong_name_is_found() -> None:
    with pytest.raises(AttributeError):
        resolve("bushing.torque_stifness.get", sample())
