"""Whole plants of all kinds, and random contexts of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import flexure as fx
from flexure.blocks.flexures.beams.beam import Beam
from flexure.blocks.flexures.sections.materials import Material
from flexure.blocks.flexures.sections.rectangle_section import RectangleSection
from flexure.diagrams.checks.errors import EvaluationError
from tests.support.mechanics.multibody import KINDS, random_inertia, random_pose
from tests.support.tiers import by_tier

#: The kinds of joints that move.
MOVING = [kind for kind in KINDS if kind != "weld"]
#: The kinds of joints that can close a loop.
CLOSING = [kind for kind in KINDS if "floating" not in kind]

BOX = fx.SpatialInertia.solid_box(2.0, size=(0.1, 0.2, 0.3))


def arm(**options: Any) -> tuple[fx.PlantBuilder, fx.Body, fx.RevoluteJoint]:
    """A body that hangs on an axis."""
    builder = fx.PlantBuilder("arm", **options)
    link = builder.add_body("link", BOX, com=(0.0, 0.0, -0.5))
    axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, link, axis=(0, 1, 0)))
    return builder, link, axis


def link(builder: fx.PlantBuilder, rng: np.random.Generator) -> fx.Body:
    """Add a body with a random inertia."""
    return builder.add_body(f"body{len(builder.bodies)}", random_inertia(rng))


def hang(
    builder: fx.PlantBuilder,
    kind: str,
    inner: fx.Body,
    rng: np.random.Generator,
    *,
    is_reversed: bool = False,
) -> fx.Body:
    """Add a body, and a damped joint at random frames between it and another one."""
    body = link(builder, rng)
    ends = [
        builder.add_frame(f"{end.name}_{body.name}", end, random_pose(rng)) for end in (inner, body)
    ]
    F, M = reversed(ends) if is_reversed else ends
    joint = KINDS[kind](f"{kind}{len(builder.joints)}", F, M, rng)
    joint.default_damping_vector = rng.uniform(0.05, 0.2, joint.num_velocities)
    builder.add_joint(joint)
    return body


def chain(*kinds: str, is_reversed: bool = False, seed: int = 1) -> fx.PlantBuilder:
    """Start a plant with a chain of joints that hangs on the world."""
    builder, rng = fx.PlantBuilder("plant", gravity=(0.5, -1.0, -9.0)), np.random.default_rng(seed)
    body = builder.world
    for kind in kinds:
        body = hang(builder, kind, body, rng, is_reversed=is_reversed)
    return builder


def forest() -> fx.Plant:
    """Three trees: one on a hinge, one that floats with angles, and one nobody connected."""
    rng, builder = np.random.default_rng(2), chain("revolute", "weld", "prismatic")
    hang(builder, "universal", hang(builder, "rpy_floating", builder.world, rng), rng)
    hang(builder, "screw", link(builder, rng), rng, is_reversed=True)
    return builder.build()


def branches() -> fx.Plant:
    """A star of joints around one body."""
    rng, builder = np.random.default_rng(3), chain("planar")
    hub = builder.bodies[1]
    for kind in ("revolute", "weld", "prismatic", "revolute"):
        hang(builder, kind, hub, rng, is_reversed=kind == "prismatic")
    return builder.build()


def motors() -> fx.Plant:
    """Motors with and without rotors, two of them on one joint, and forces from outside."""
    builder = chain("revolute", "universal", "prismatic")
    turn, bend, slide = builder.joints
    builder.add_actuator("motor", turn, gear_ratio=10.0, rotor_inertia=0.01)
    builder.add_actuator("second_motor", turn, rotor_inertia=0.2)
    builder.add_actuator("wrist", bend, rotor_inertia=0.05)
    builder.add_actuator("piston", slide)
    builder.add_external_force("push", builder.bodies[-1])
    builder.add_external_force("pull", builder.bodies[1])
    builder.add_energy_ledger()
    return builder.build()


def elements_between(a: fx.Frame, b: fx.Frame, c: fx.Frame) -> list[fx.multibody.ForceElement]:
    """Make every element between bodies, each between two of three frames."""
    bushing: dict[str, Any] = {
        "torque_stiffness": [3.0, 4.0, 5.0],
        "torque_damping": [0.3, 0.2, 0.1],
        "force_stiffness": [30.0, 40.0, 50.0],
        "force_damping": [1.0, 2.0, 3.0],
    }
    rope: dict[str, Any] = {"deflections": [0.1, 0.3], "forces": [5.0, 20.0], "damping": 0.2}
    P, Q = (0.1, 0.2, 0.3), (-0.2, 0.1, 0.4)
    consistent = fx.LinearBushingRollPitchYaw("consistent", c, a, energy_consistent=True, **bushing)
    spring = fx.LinearSpringDamper(
        "spring", b, P, a, Q, free_length=1.0, stiffness=20.0, damping=1.0
    )
    return [
        fx.LinearBushing("gimbal_free", a, b, **bushing),
        fx.LinearBushingRollPitchYaw("drake", b, c, **bushing),
        consistent,
        spring,
        fx.Cable("cable", a, P, c, Q, free_length=0.5, **rope),
        fx.Bumper("bumper", b, Q, a, P, free_length=1.5, **rope),
    ]


def elements_on_bodies() -> fx.Plant:
    """Every element between bodies: one that floats, one that hangs on it, and the world."""
    builder = chain("quaternion_floating", "ball_quaternion")
    rng = np.random.default_rng(5)
    R_BW, frames = np.eye(3), []  # at the default positions all frames have the same orientation
    for k, body in enumerate(builder.bodies):
        if k:
            F, M = builder.joints[k - 1].frame_on_parent, builder.joints[k - 1].frame_on_child
            R_BW = M.X_BF.R @ F.X_BF.R.T @ R_BW
        frames.append(builder.add_frame(f"f{k}", body, (R_BW, random_pose(rng).p)))
    for element in elements_between(*frames):
        builder.add_force_element(element)
    builder.add_energy_ledger()
    return builder.build()


class Bars(fx.multibody.BodyForceElement):
    """Bars without forces: each is fixed to a frame, along x from its origin, with a mass."""

    def __init__(self, name: str, frames: dict[str, Any], lengths: Any) -> None:
        super().__init__(name, frames)
        self.lengths = self.declare_numeric_parameter("lengths", lengths, unit="m", lower=0.0)
        self.density = self.declare_numeric_parameter("density", 0.7, unit="kg/m", lower=0.0)
        self.declare_inertias(self.calc_inertias)

    def calc_inertias(self, context: Any) -> list[Any]:
        carried = []
        for length in self.lengths(context):
            mass = self.density(context) * length
            across = mass * length**2 / 3.0
            first = 0.5 * mass * length
            carried.append(
                fx.array([mass, first, 0.0, 0.0, 0.002 * mass, across, across, 0.0, 0.0, 0.0])
            )
        return carried

    def calc_spatial_forces(self, context: Any) -> list[Any]:
        return [np.zeros(6) for _ in self.attachments]

    def calc_stored_energy(self, context: Any) -> float:
        return 0.0

    calc_conservative_power = calc_non_conservative_power = calc_stored_energy


def bars_on_bodies() -> fx.Plant:
    """Elements with mass: several on a body, one on the world, and one on a body without mass."""
    builder, rng = chain("quaternion_floating", "revolute"), np.random.default_rng(6)
    empty = builder.add_body("empty", fx.SpatialInertia(0.0))
    builder.add_joint(fx.UniversalJoint("cardan", builder.bodies[2], empty))
    frames = {
        label: builder.add_frame(f"on_{label}", builder.bodies[k], random_pose(rng))
        for label, k in {"A": 1, "B": 0, "C": 2, "D": 1, "E": 3}.items()
    }
    builder.add_force_element(Bars("bars", frames, [0.3, 0.8, 0.5, 0.4, 0.6]))
    builder.add_force_element(Bars("lone", {"A": frames["E"]}, [0.2]))
    builder.add_energy_ledger()
    return builder.build()


def divided_beam() -> fx.Plant:
    """A beam with a node inside, between the world and a body that floats."""
    builder = fx.PlantBuilder("plant", gravity=(0.5, -1.0, -9.0))
    body = builder.add_body("body", BOX)
    section = RectangleSection(width=0.2, thickness=0.1)
    jelly = Material(youngs_modulus=300.0, poissons_ratio=0.4, density=1000.0)
    options: dict[str, Any] = {"length": 1.0, "damping_time": 0.02, "prestressed": True}
    builder.add_force_element(
        Beam("beam", builder.world, body, section=section, material=jelly, segments=2, **options)
    )
    builder.add_energy_ledger()
    return builder.build()


def elements_on_joints() -> fx.Plant:
    """Every element along joints."""
    builder = chain("revolute", "prismatic", "planar", "ball_rpy", seed=4)
    turn, slide, plane, ball = builder.joints
    for element in (
        fx.DoorHinge("hinge", turn, motion_threshold=0.5),
        fx.JointStop("stop", turn, stiffness=100.0, damping=0.5, lower=-0.2, upper=0.2),
        fx.TabulatedSpring("table", slide, deflections=[-1.0, 0.0, 2.0], forces=[-5.0, 1.0, 3.0]),
        fx.JointSpring("spring", plane, stiffness=[20.0, 10.0, 5.0], damping=0.3),
        fx.JointFriction("friction", ball, coulomb_friction=1.0, transition_velocity=0.5),
    ):
        builder.add_force_element(element)
    builder.add_energy_ledger()
    return builder.build()


def loops() -> fx.Plant:
    """Return chains that constraints of all kinds close, and shafts and slides that they couple."""
    rng = np.random.default_rng(26)
    builder = fx.PlantBuilder("loops", gravity=(0.3, -0.2, -9.81))
    ends = []
    for k, kinds in enumerate((("revolute", "universal"), ("revolute", "planar"))):
        body = builder.world
        for kind in kinds:
            body = hang(builder, kind, body, rng)
        ends.append(builder.add_frame(f"end{k}", body, 0.3 * rng.normal(size=3)))
    axis = (0.3, 1.0, -0.5)
    builder.add_loop_joint(fx.ScrewJoint("thread", ends[0], ends[1], axis, screw_pitch=0.2))
    guided, held = (hang(builder, kind, builder.world, rng) for kind in ("universal", "planar"))
    builder.add_constraint(
        fx.constraints.DistanceConstraint("rod", ends[0], (0, 0, 0), guided, (0, 0, 0), 1.5)
    )
    builder.add_constraint(
        fx.constraints.PointOnPlane("plate", builder.world, guided, (0, 0, 0), (0.2, 0.1, 1.0))
    )
    builder.add_constraint(
        fx.constraints.PointOnLine("rail", builder.world, held, (0, 0, 0), (1.0, 0.2, 0.1))
    )
    couple(builder, rng)
    builder.add_energy_ledger()
    return builder.build()


def closed_by(kind: str) -> fx.Plant:
    """Return a body on a pair of axes, to which a joint of a kind ties one that floats."""
    rng, builder = np.random.default_rng(3), chain("universal")
    ends = [*builder.bodies[1:], hang(builder, "rpy_floating", builder.world, rng)]
    F, M = (builder.add_frame(f"at_{end.name}", end, random_pose(rng)) for end in ends)
    builder.add_loop_joint(KINDS[kind]("loop", F, M, rng))
    builder.add_energy_ledger()
    return builder.build()


def couple(builder: fx.PlantBuilder, rng: np.random.Generator) -> None:
    """Add shafts and slides, and every coupling between them, of which none follows from others."""
    kinds = ["revolute"] * 7 + ["prismatic"] * 5
    first = len(builder.joints)
    for kind in kinds:
        hang(builder, kind, builder.world, rng)
    a, b, c, d, e, f, g, s, t, u, w, z = builder.joints[first:]
    turn = np.linspace(0.0, 2.0 * np.pi, 7)
    for constraint in (
        fx.constraints.GearPair("gears", a, b, -1.5),
        fx.constraints.Coupling("lever", {s: 2.0, t: -1.0, u: 0.5}, offset=0.1),
        fx.constraints.Coupling.rack_and_pinion("rack", b, s, radius=0.3),
        fx.constraints.Coupling.belt("belt", b, c, radii=(0.2, 0.3), crossed=True),
        fx.constraints.Coupling.screw("spindle", c, w, lead=0.4),
        fx.constraints.Coupling.differential("differential", c, d, e, ratio=2.0),
        fx.constraints.Coupling.planetary("planets", e, f, g, teeth=(20.0, 50.0)),
        fx.constraints.Coupling.mimic("mimic", t, d, multiplier=-0.5, offset=0.2),
        fx.constraints.CamFollower("cam", a, z, turn, 0.1 - 0.1 * np.cos(turn)),
        fx.constraints.PrescribedMotion("drive", g),
        fx.constraints.HolonomicConstraint(
            "law", [u, w], lambda q, t: q[0] - np.sin(2.0 * q[1] + t)
        ),
    ):
        builder.add_constraint(constraint)


def wheels() -> fx.Plant:
    """Return a ball on the ground, and a disk that rolls on a driven plate, and skates."""
    rng = np.random.default_rng(31)
    builder = fx.PlantBuilder("wheels", gravity=(0.3, -0.2, -9.81))
    plate = hang(builder, "universal", builder.world, rng)
    wheel = hang(builder, "rpy_floating", builder.world, rng)
    disk = fx.constraints.RollingDisk(
        "disk", plate, wheel, 0.4, axis=(0.1, 1.0, 0.2), crown_radius=0.05
    )
    builder.add_constraint(disk)
    builder.add_constraint(
        fx.constraints.KnifeEdge("skate", builder.world, wheel, sideways=(0.3, 1.0, 0.2))
    )
    drive = fx.constraints.VelocityConstraint(
        "drive", [builder.joints[0]], lambda q, v, t: v[0] * q[1] + v[1] * np.sin(t) - q[0]
    )
    builder.add_constraint(drive)
    ball = hang(builder, "rpy_floating", builder.world, rng)
    builder.add_constraint(fx.constraints.RollingSphere("ball", builder.world, ball, 0.3))
    builder.add_energy_ledger()
    return builder.build()


def stops_and_friction() -> fx.Plant:
    """Return an arm with friction, whose slides and joints have stops, and a loop in it."""
    rng = np.random.default_rng(14)
    builder = fx.PlantBuilder("stops_and_friction", gravity=(0.3, -0.2, -9.81))
    kinds = ("universal", "revolute", "prismatic")
    bodies = [hang(builder, kind, builder.world, rng) for kind in kinds]
    first, second, slide = builder.joints
    tip = builder.add_frame("tip", bodies[1], (0.2, 0.1, 0.0))
    builder.add_constraint(
        fx.constraints.DistanceConstraint("rod", tip, (0, 0, 0), bodies[2], (0, 0, 0), 1.5)
    )
    stop = {"restitution": 0.4, "rest_velocity": 0.1}
    builder.add_constraint(fx.RigidStop("ends", first, lower=-0.3, upper=[0.8, np.inf], **stop))
    builder.add_constraint(fx.RigidStop("floor", slide, lower=-0.2, **stop))
    builder.add_constraint(
        fx.StickSlipFriction(
            "seal",
            second,
            coulomb_friction=0.5,
            static_friction=1.0,
            stribeck_velocity=0.2,
            viscous_friction=0.1,
        )
    )
    builder.add_constraint(fx.StickSlipFriction("bearing", first, coulomb_friction=[0.2, 0.4]))
    builder.add_energy_ledger()
    return builder.build()


def loaded_bearings() -> fx.Plant:
    """Return a chain on a guide in a loop, with friction by the loads on all of its bearings."""
    rng, builder = np.random.default_rng(16), fx.PlantBuilder("loaded_bearings")
    base, bodies = builder.world, []
    for kind in ("prismatic", "revolute", "revolute"):
        base = hang(builder, kind, base, rng)
        bodies.append(base)
    guide, first, second = builder.joints
    tip = builder.add_frame("tip", bodies[2], (0.2, 0.1, 0.0))
    rail = fx.constraints.PointOnPlane("rail", builder.world, tip, (0, 0, 0), (0.2, 0.1, 1.0))
    builder.add_constraint(rail)
    builder.add_constraint(
        fx.BearingFriction(
            "slide", guide, friction=0.04, static_friction=0.08, length=1.2, radius=0.4
        )
    )
    builder.add_constraint(
        fx.BearingFriction("pin", first, friction=0.1, radius=0.02, length=0.2, thrust_radius=0.03)
    )
    builder.add_constraint(fx.BearingFriction("end", second, friction=0.3, radius=0.01))
    builder.add_energy_ledger()
    return builder.build()


def rigid_contacts() -> fx.Plant:
    """Return a box that may fall on the ground, on a rope, and a bob that may strike it."""
    rng, builder = np.random.default_rng(17), fx.PlantBuilder("rigid_contacts")
    box, bob = (hang(builder, kind, builder.world, rng) for kind in ("planar", "ball_quaternion"))
    deep = builder.add_frame("deep", builder.world, (0.0, 0.0, -9.0))
    shape, far = fx.BodyShape.box(size=(0.2, 0.1, 0.1)), fx.BodyShape.sphere(radius=9.0)
    point, ball = fx.BodyShape.point(), fx.BodyShape.sphere(radius=1e-3)
    stop: Any = {"restitution": 0.4, "rest_velocity": 0.1}
    rope = fx.RigidContact("rope", box, point, builder.world, far, inside=True, **stop)
    builder.add_constraint(rope)
    builder.add_constraint(fx.RigidContact("ground", box, shape, deep, "half_space", **stop))
    stop |= {"friction": 0.3, "transition_velocity": 0.1}
    builder.add_constraint(fx.RigidContact("blow", box, ball, bob, ball, **stop))
    builder.add_energy_ledger()
    return builder.build()


def chain_of(*kinds: str, is_reversed: bool = False) -> Callable[[], fx.Plant]:
    """Return what makes a chain of joints."""
    return lambda: chain(*kinds, is_reversed=is_reversed).build()


#: Makes a fresh plant.
MECHANISMS: dict[str, Callable[[], fx.Plant]] = {
    **{f"{kind} joint": chain_of(kind) for kind in MOVING},
    "chain of axes": chain_of("revolute", "prismatic", "screw", "universal"),
    "chain of orientations": chain_of("ball_quaternion", "planar", "ball_rpy"),
    "reversed chain": chain_of("universal", "ball_quaternion", "revolute", is_reversed=True),
    "reversed angles": chain_of("rpy_floating", "weld", "ball_rpy", is_reversed=True),
    "forest": forest,
    "branches": branches,
    "motors": motors,
    "elements on bodies": elements_on_bodies,
    "elements on joints": elements_on_joints,
    "elements with mass": bars_on_bodies,
    "divided beam": divided_beam,
    "loops and couplings": loops,
    "wheels and skates": wheels,
    "stops and friction": stops_and_friction,
    "rigid contacts": rigid_contacts,
    "loaded bearings": loaded_bearings,
}
#: Names of what a run tries: joints, elements and constraints in four plants, or all.
TRIED_MECHANISMS = by_tier(
    fast=["chain of axes", "reversed angles", "elements on joints", "wheels and skates"],
    full=[*MECHANISMS],
)
#: Names of what a run writes in other languages, operation by operation: axes, orientations, nodes
#: and drives, and constraints that roll, strike and rub.
WRITTEN_MECHANISMS = by_tier(
    fast=TRIED_MECHANISMS,
    full=[
        *("chain of axes", "chain of orientations", "reversed angles", "motors", "divided beam"),
        *("wheels and skates", "rigid contacts", "loaded bearings"),
    ],
)


def random_plant(rng: np.random.Generator, count: int) -> fx.Plant:
    """Draw a plant with a number of bodies, which hang on each other or float."""
    builder = fx.PlantBuilder("plant", gravity=rng.normal(size=3))
    for _ in range(count):
        if rng.random() < 0.2:
            link(builder, rng)
        else:
            inner = builder.bodies[int(rng.integers(len(builder.bodies)))]
            kind = str(rng.choice(list(KINDS)))
            hang(builder, kind, inner, rng, is_reversed=bool(rng.random() < 0.5))
    return builder.build()


def random_context(plant: fx.Plant, rng: np.random.Generator) -> fx.Context:
    """Draw states away from gimbal lock, inputs, and constants around their defaults."""
    while True:
        context = _drawn_context(plant, rng)
        try:
            plant.calc_potential_energy(context)
        except EvaluationError:  # a bushing that is turned too far
            continue
        return context


def _drawn_context(plant: fx.Plant, rng: np.random.Generator) -> fx.Context:
    context = plant.create_default_context()
    for joint in plant.joints:
        joint.positions.set(context, joint.nearest_positions(random_pose(rng)))
        joint.velocities.set(context, rng.normal(size=joint.num_velocities))
    for leaf in context.leaves():
        for parameter in leaf.system.numeric_parameters:
            parameter.set(leaf, parameter.default * rng.uniform(0.8, 1.2))
    for joint in plant.joints:
        is_drawn = joint.num_velocities and rng.random() < 0.2
        if is_drawn and not plant.constraints:  # which what is locked may contradict
            plant.tree.find_parameter(f"{joint.name}_locked").set(context, 1.0)
    for port in plant.input_ports:
        port.fix(context, rng.normal(size=port.size))
    return context


def random_contexts(plant: fx.Plant, count: int, seed: int = 0) -> list[fx.Context]:
    """Draw contexts."""
    rng = np.random.default_rng(seed)
    return [random_context(plant, rng) for _ in range(count)]
