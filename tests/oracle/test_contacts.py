"""Distances of shapes agree with MuJoCo, and forces of contacts with Drake."""

from __future__ import annotations

from typing import Any

import numpy as np

import flexure as fx
from flexure.blocks import math as fm
from flexure.blocks.multibody.bodies.bodies import Body
from tests.oracle.reading import read
from tests.support.mechanics.force_elements import BodyMotion, context_of, forces, number

DATA = read("contacts.json")


def shape(kind: str) -> Any:
    """Make a shape of the file."""
    size = DATA["sizes"].get(kind)
    if kind == "sphere":
        return fx.BodyShape.sphere(radius=size[0])
    if kind == "capsule":
        return fx.BodyShape.capsule(radius=size[0], length=size[1])
    return fx.BodyShape.box(size=size) if kind == "box" else kind


def contact_of(case: dict[str, Any], **options: Any) -> tuple[fx.Contact, fx.Context, Any]:
    """Make the contact of a case, its context, and the motions of its bodies."""
    options = {"stiffness": 1.0, **options}
    A, B = (shape(kind) for kind in case["shapes"])
    contact = fx.Contact("contact", Body("A"), A, Body("B"), B, **options)
    motions = [
        BodyMotion(
            fm.RigidTransform(fm.rotation_from_quaternion(each["q"]), np.array(each["p"])),
            np.array(each.get("V", np.zeros(6))),
        )
        for each in case["motions" if "motions" in case else "poses"]
    ]
    return contact, context_of(contact, *motions), motions


def test_distances_agree_with_mujoco() -> None:
    """They agree for all pairs but boxes, which are refused where no corner shows the overlap."""
    seen: dict[str, int] = {}
    for case in DATA["distances"]:
        pair, distance = "-".join(case["shapes"]), case["distance"]
        contact, context, _ = contact_of(case)
        try:
            gap = number(contact.gap, context)
        except fx.errors.EvaluationError:
            assert pair == "box-box"
            assert distance < 0.0
            continue
        lowest = -DATA["sizes"]["capsule"][0] if pair == "capsule-box" else -1.0
        if pair == "box-box":
            assert gap < 0.0 if distance < -1e-6 else gap > distance - 1e-6
        elif distance > lowest:
            assert abs(gap - distance) < 1e-12, (case, gap)
            seen[pair] = seen.get(pair, 0) + 1
    assert len(seen) == 5
    assert min(seen.values()) > 15


def test_forces_agree_with_drake() -> None:
    """Drake applies the force in the middle of the overlap of equally stiff bodies."""
    options = {**DATA["constants"], "transition_velocity": 1e-9}
    for case in DATA["forces"]:
        contact, context, (A, B) = contact_of(case, **options)
        assert abs(number(contact.gap, context) + case["depth"]) < 1e-12
        force, point = np.array(case["force_on_A"]), np.array(case["point"])
        for sign, motion, found in zip((1, -1), (A, B), forces(contact, context), strict=True):
            moment = np.cross(point - motion.X_WB.p, force)
            np.testing.assert_allclose(
                found, sign * np.concatenate([moment, force]), rtol=0.0, atol=1e-9
            )
