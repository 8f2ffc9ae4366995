"""Mechanisms whose speed is measured: a four-bar linkage, chains of them, and Andrews' squeezer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import flexure as fx
from benchmarks.loops.random_loops import Bar, Closing, Hinge, Loop, Spring
from flexure.blocks.multibody.constraints import FrameConstraint
from tests.support.mechanics import squeezer as andrews

Array = Any
G = 9.81
GROUND, CRANK, COUPLER, ROCKER = 0.9, 0.25, 0.8, 0.6  # lengths in m
LINE_MASS = 2.0  # kg/m
START = 1.5  # rad


@dataclass(frozen=True)
class Case:
    """A mechanism, how long it moves, and how accurate it has to be.

    Attributes
    ----------
    joints : tuple of str
        Joints of the tree in the order of the states in C.
    target : float
        Largest error of the states at the end, in parts of the largest of each kind.
    size : float
        The length of its longest link in m.
    """

    name: str
    title: str
    joints: tuple[str, ...]
    horizon: float
    target: float
    size: float
    build: Callable[[], tuple[fx.Plant, fx.Context]]
    constants: Callable[[], dict[str, str]]


def four_bar() -> tuple[fx.Plant, fx.Context]:
    """Build a linkage in the x-y plane at rest."""
    builder = fx.PlantBuilder("linkage", gravity=(0.0, -G, 0.0))

    def bar(name: str, length: float) -> fx.Body:
        rod = fx.SpatialInertia.thin_rod(LINE_MASS * length, length=length, axis="x")
        return builder.add_body(name, rod, com=(0.5 * length, 0.0, 0.0))

    crank, coupler, rocker = bar("crank", CRANK), bar("coupler", COUPLER), bar("rocker", ROCKER)
    places: dict[str, tuple[fx.Body | fx.Frame, fx.Body]] = {
        "shaft": (builder.world, crank),
        "knee": (builder.add_frame("tip", crank, (CRANK, 0.0, 0.0)), coupler),
        "foot": (builder.add_frame("ground", builder.world, (GROUND, 0.0, 0.0)), rocker),
    }
    for name, frames in places.items():
        joint = fx.RevoluteJoint(name, *frames, axis=(0, 0, 1))
        builder.add_joint(joint).default_angle = closed_angles(START)[name]
    ends = (
        builder.add_frame("end", coupler, (COUPLER, 0.0, 0.0)),
        builder.add_frame("top", rocker, (ROCKER, 0.0, 0.0)),
    )
    builder.add_loop_joint(fx.RevoluteJoint("pin", *ends, axis=(0, 0, 1)))
    plant = builder.build()
    return plant, plant.create_default_context()


def chain(count: int) -> tuple[fx.Plant, fx.Context]:
    """Build a chain of linkages: posts of 1 m, and bars from the top of each to the next."""
    builder = fx.PlantBuilder("chain", gravity=(0.0, -G, 0.0))
    rod = fx.SpatialInertia.thin_rod(1.0, length=1.0, axis="x")
    tops = []
    for k in range(count + 1):
        post = builder.add_body(f"post{k}", rod, com=(0.5, 0.0, 0.0))
        tops.append(builder.add_frame(f"top{k}", post, (1.0, 0.0, 0.0)))
        base = builder.add_frame(f"base{k}", builder.world, (float(k), 0.0, 0.0))
        foot = builder.add_joint(fx.RevoluteJoint(f"foot{k}", base, post, axis=(0, 0, 1)))
        foot.default_angle = 0.5 * np.pi
    for k in range(count):
        bar = builder.add_body(f"bar{k}", rod, com=(0.5, 0.0, 0.0))
        elbow = builder.add_joint(fx.RevoluteJoint(f"elbow{k}", tops[k], bar, axis=(0, 0, 1)))
        elbow.default_angle = -0.5 * np.pi
        end = builder.add_frame(f"end{k}", bar, (1.0, 0.0, 0.0))
        builder.add_loop_joint(fx.RevoluteJoint(f"pin{k}", end, tops[k + 1], axis=(0, 0, 1)))
    plant = builder.build()
    return plant, plant.create_default_context()


def closed_angles(crank: float) -> dict[str, float]:
    """Return the angles of the joints of one linkage, by the intersection of two circles."""
    tip = CRANK * np.array([np.cos(crank), np.sin(crank)])
    to_foot = np.array([GROUND, 0.0]) - tip
    distance = np.linalg.norm(to_foot)
    inner = np.arccos((COUPLER**2 + distance**2 - ROCKER**2) / (2.0 * COUPLER * distance))
    coupler = float(np.arctan2(to_foot[1], to_foot[0]) + inner)
    pin = tip + COUPLER * np.array([np.cos(coupler), np.sin(coupler)])
    foot = float(np.arctan2(pin[1], pin[0] - GROUND))
    return {"shaft": crank, "knee": coupler - crank, "foot": foot}


def _vector(numbers: Any) -> str:
    return "{" + ",".join(repr(float(number)) for number in numbers) + "}"


def _four_bar_constants() -> dict[str, str]:
    """Return what the equations in C know, by name."""
    found = {"FOUR_BAR_G": repr(G), "KNEE": f"(vector){_vector((CRANK, 0.0))}"}
    for name, length in (("CRANK", CRANK), ("COUPLER", COUPLER), ("ROCKER", ROCKER)):
        mass = LINE_MASS * length
        found[name] = (
            f"(body){{{mass!r},{mass * length**2 / 3.0!r},{_vector((0.5 * length, 0.0))}}}"
        )
        if name != "CRANK":
            found[f"{name}_TIP"] = f"(vector){_vector((length, 0.0))}"
    return found | {"FOOT": f"(vector){_vector((GROUND, 0.0))}"}


def _squeezer_constants() -> dict[str, str]:
    found = {"DRIVE": "0.033", "STIFFNESS": "4530.0", "FREE_LENGTH": "0.07785"}
    for name, (mass, moment, center) in andrews.BODIES.items():
        about_joint = moment + mass * float(np.dot(center, center))
        found[name] = f"(body){{{mass!r},{about_joint!r},{_vector(center)}}}"
    points = {f"TIP_{name}": place for name, place in andrews.TIPS.items()}
    points |= {
        "TIP_K2": (-0.028, 0.0),
        "ON_K1": andrews.JOINTS["theta"][1],
        "ON_K5": andrews.JOINTS["phi"][1],
        "ON_K7": andrews.JOINTS["omega"][1],
        "FOOT_A": andrews.JOINTS["delta"][1],
        "FOOT_B": andrews.JOINTS["gamma"][1],
        "HOLD": (0.02, -0.018),
        "FIXED": (0.014, 0.072),
    }
    return found | {name: f"(vector){_vector(place)}" for name, place in points.items()}


def as_loop(case: Case) -> Loop:
    """Return a mechanism of hinges about z as it is at the beginning, as plain data."""
    plant, context = case.build()

    def place(frame: fx.Frame) -> Array:
        return frame.pose(context).p

    bars = []
    numbers = {body.name: k for k, body in enumerate(plant.bodies[1:])}
    for body in plant.bodies[1:]:
        inertia, X = body.inertia, body.pose(context)
        assert inertia is not None
        moment = float(inertia.mass * np.reshape(inertia.unit_inertia, (3, 3))[2, 2])
        bar = Bar(position=X.p + X.R @ inertia.com, mass=float(inertia.mass), moments=(moment,) * 3)
        bars.append(bar)
    hinges = [
        Hinge(
            kind="revolute",
            parent=numbers.get(joint.parent_body.name),
            child=numbers[joint.child_body.name],
            anchor=place(joint.frame_on_child),
            axis=np.array([0.0, 0.0, 1.0]),
        )
        for joint in sorted(plant.joints, key=lambda joint: numbers[joint.child_body.name])
    ]
    closings = [
        Closing(
            kind="ball",
            bodies=(numbers[each.frame_a.body.name], numbers[each.frame_c.body.name]),
            anchors=(place(each.frame_a), place(each.frame_c)),
        )
        for each in plant.constraints
        if isinstance(each, FrameConstraint)
    ]
    if case.name == "four_bar":
        return Loop(
            name=case.title,
            bars=tuple(bars),
            hinges=tuple(hinges),
            closings=tuple(closings),
            gravity=(0.0, -G, 0.0),
        )
    held = plant.body("K3").pose(context)
    spring = Spring(
        body=numbers["K3"],
        anchors=(np.array([0.014, 0.072, 0.0]), held.p + held.R @ [0.02, -0.018, 0.0]),
        free_length=0.07785,
        stiffness=4530.0,
    )
    return Loop(
        name=case.title,
        bars=tuple(bars),
        hinges=tuple(hinges),
        closings=tuple(closings),
        gravity=(0.0, 0.0, 0.0),
        springs=(spring,),
        drive=0.033,
    )


FOUR_BAR = Case(
    "four_bar",
    "four-bar linkage",
    ("shaft", "knee", "foot"),
    5.0,
    1e-8,
    COUPLER,
    four_bar,
    _four_bar_constants,
)
SQUEEZER = Case(
    "squeezer",
    "Andrews' squeezer",
    ("beta", "theta", "gamma", "delta", "phi", "epsilon", "omega"),
    0.03,
    1e-8,
    0.04,
    andrews.squeezer,
    _squeezer_constants,
)
CASES = (FOUR_BAR, SQUEEZER)
