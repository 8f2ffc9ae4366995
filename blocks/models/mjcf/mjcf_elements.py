"""Springs, friction, motors and constraints of MJCF files, and a list of what is left out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from flexure.blocks.forces.between_points.one_sided_spring import Cable
from flexure.blocks.forces.between_points.spring_damper import LinearSpringDamper
from flexure.blocks.forces.on_joints.compliant_coupling import CompliantCoupling
from flexure.blocks.math import RigidTransform, rotation_from_quaternion
from flexure.blocks.models.reading.links import add_friction, add_spring
from flexure.blocks.models.reading.visuals import color_code
from flexure.blocks.models.reading.xml_elements import LeftOut
from flexure.blocks.multibody.bodies.bodies import Body, Frame
from flexure.blocks.multibody.bodies.body_shape import BodyShape
from flexure.blocks.multibody.constraints import Coupling, GearPair, HolonomicConstraint
from flexure.blocks.multibody.force_elements.force_element import ForceElement
from flexure.blocks.multibody.joints import Joint
from flexure.blocks.multibody.joints.ball import BallRpyJoint
from flexure.blocks.multibody.joints.weld import WeldJoint
from flexure.blocks.multibody.plants.plant_builder import PlantBuilder
from flexure.blocks.multibody.plants.plant_wiring import TOTALS, TREE
from flexure.diagrams.checks.arguments import import_extra

#: Of each kind of things, what shares its names.
_PLACES = {
    "body": "frames",
    "site": "frames",
    "joint": "joints",
    "equality": "joints",
    "tendon": "joints",
}

#: What a model may have, and a plant does not, by the name of its count: its kind.
_COUNTED = {
    "nsensor": "sensor",
    "nkey": "key",
    "nflex": "flex",
    "nskin": "skin",
    "npair": "pair",
    "nplugin": "plugin",
    "ncam": "camera",
    "nlight": "light",
    "nnumeric": "numeric",
    "ntext": "text",
    "ntuple": "tuple",
}
#: Numbers of bodies and joints that are zero unless somebody uses them.
_UNUSUAL = {
    "body_gravcomp": "body",
    "jnt_stiffnesspoly": "joint",
    "jnt_springyield": "joint",
    "dof_dampingpoly": "joint",
    "actuator_damping": "actuator",
    "actuator_armature": "actuator",
}
_FLAGS = ("CONSTRAINT", "EQUALITY", "FRICTIONLOSS", "SPRING", "DAMPER", "ACTUATION")
#: Numbers of tendons that have no element, and what they are.
_OTHERS = {
    "limited": "range",
    "frictionloss": "friction",
    "armature": "armature",
    "stiffnesspoly": "nonlinear stiffness",
    "dampingpoly": "nonlinear damping",
}


ATTEMPT = "Cannot read an MJCF file"


def mujoco() -> Any:
    """Return the package mujoco, or refuse with the extra that installs it."""
    return import_extra("mujoco", "mjcf", ATTEMPT)


class Names:
    """Names of the things in a model, each made fit for a plant, and none twice."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._package = mujoco()
        self._given: dict[tuple[str, int], str] = {}
        self._taken: dict[str, set[str]] = {"frames": {"world"}}

    def of(self, kind: str, number: int) -> str:
        """Return the name of a thing, always the same."""
        if (kind, number) not in self._given:
            what = getattr(self._package.mjtObj, f"mjOBJ_{kind.upper()}")
            text = self._package.mj_id2name(self._model, what, number) or f"{kind}{number}"
            self._given[kind, number] = self.free(kind, text)
        return self._given[kind, number]

    def free(self, kind: str, name: str) -> str:
        """Return a name, with what it takes to differ from those that it has returned before."""
        name = re.sub(r"[^A-Za-z0-9_-]", "_", name)
        if not re.match("[A-Za-z_]", name):
            name = f"_{name}"
        taken = self._taken.setdefault(_PLACES.get(kind, kind), set())
        others = {TREE, TOTALS, *self._taken["frames"]} if kind == "tendon" else set()  # blocks
        while name in taken or name in others:
            name = f"{name}_{kind}"
        taken.add(name)
        return name


class Elements:
    """The elements of a compiled model that act on bodies and joints, for a builder."""

    def __init__(self, builder: PlantBuilder, model: Any) -> None:
        self.builder, self.model = builder, model
        self.left_out = LeftOut()
        self.names = Names(model)
        self.bodies: list[Body] = [builder.world]
        self.joints: list[Joint] = []

    def add_forces(self) -> None:
        """Add springs and friction of joints."""
        model = self.model
        for number, joint in enumerate(self.joints):
            first, start = int(model.jnt_dofadr[number]), int(model.jnt_qposadr[number])
            stiffness = float(np.ravel(model.jnt_stiffness[number])[0])
            if stiffness and joint.num_positions == 1:
                add_spring(self.builder, joint, [stiffness], [float(model.qpos_spring[start])])
            friction = model.dof_frictionloss[first : first + joint.num_velocities]
            add_friction(self.builder, joint, friction)

    def add_motors(self) -> None:
        """Add motors on hinges and slides, and the armatures of joints."""
        model = self.model
        armatures = {
            joint: float(model.dof_armature[int(first)])
            for joint, first in zip(self.joints, model.jnt_dofadr, strict=True)
        }
        for number in range(model.nu):
            name = self.names.of("actuator", number)
            joint = self._driven(number)
            if joint is None:
                self.left_out.add(f"the actuator '{name}', which is no motor on a hinge or a slide")
                continue
            self.builder.add_actuator(
                name,
                joint,
                rotor_inertia=armatures.pop(joint, 0.0),
                effort_limit=_effort(model, number),
            )
        for joint, armature in armatures.items():
            if armature:
                name = self.names.free("actuator", f"{joint.name}_armature")
                self.builder.add_actuator(name, joint, rotor_inertia=armature)

    def _driven(self, number: int) -> Joint | None:
        """Return the joint that a motor drives; None of another kind of actuator."""
        model, package = self.model, mujoco()
        is_motor = (
            package.mjtTrn(int(model.actuator_trntype[number]))
            in (package.mjtTrn.mjTRN_JOINT, package.mjtTrn.mjTRN_JOINTINPARENT)
            and model.actuator_dyntype[number] == int(package.mjtDyn.mjDYN_NONE)
            and model.actuator_gaintype[number] == int(package.mjtGain.mjGAIN_FIXED)
            and model.actuator_biastype[number] == int(package.mjtBias.mjBIAS_NONE)
        )
        if not is_motor:
            return None
        joint = self.joints[model.actuator_trnid[number][0]]
        return joint if joint.num_velocities == 1 else None

    def add_constraints(self) -> None:
        """Add equalities between bodies and between joints as exact constraints."""
        model, package = self.model, mujoco()
        kinds = package.mjtEq
        for number in range(model.neq):
            name, kind = self.names.of("equality", number), kinds(int(model.eq_type[number]))
            data = model.eq_data[number].copy()
            pair = int(model.eq_obj1id[number]), int(model.eq_obj2id[number])
            if not model.eq_active0[number]:
                self.left_out.add(f"the equality '{name}', which is not active")
            elif kind in (kinds.mjEQ_CONNECT, kinds.mjEQ_WELD):
                is_weld = kind == kinds.mjEQ_WELD
                if model.eq_objtype[number] == int(package.mjtObj.mjOBJ_SITE):
                    places = [self._site(each) for each in pair]
                elif is_weld:
                    relative = RigidTransform(rotation_from_quaternion(data[6:10]), data[3:6])
                    anchor = RigidTransform(np.eye(3), data[:3])
                    places = [(self.bodies[pair[0]], relative), (self.bodies[pair[1]], anchor)]
                else:
                    ends = zip(pair, (data[:3], data[3:6]), strict=True)
                    places = [(self.bodies[each], RigidTransform(np.eye(3), p)) for each, p in ends]
                F, M = (Frame(f"{name}_{k}", *place) for k, place in enumerate(places))
                self.builder.add_loop_joint((WeldJoint if is_weld else BallRpyJoint)(name, F, M))
            elif kind == kinds.mjEQ_JOINT:
                self._couple(name, pair, data[:5])
            else:
                what = kind.name.removeprefix("mjEQ_").lower()
                self.left_out.add(f"the equality '{name}' of the type {what}")

    def _site(self, number: int) -> tuple[Body, RigidTransform]:
        """Return where a site is."""
        model = self.model
        R = rotation_from_quaternion(model.site_quat[number])
        pose = RigidTransform(R, model.site_pos[number].copy())
        return self.bodies[model.site_bodyid[number]], pose

    def _couple(self, name: str, pair: tuple[int, int], factors: Any) -> None:
        """Let a joint follow another one by a polynomial, or stand still."""
        builder, model, joints = self.builder, self.model, self.joints
        joint = joints[pair[0]]
        rest = float(model.qpos0[model.jnt_qposadr[pair[0]]]) + float(factors[0])
        other = joints[pair[1]] if pair[1] >= 0 else None
        if other is None or not np.any(factors[1:]):
            builder.add_constraint(Coupling(name, {joint: 1.0}, rest))
            return
        start = float(model.qpos0[model.jnt_qposadr[pair[1]]])
        if not np.any(factors[2:]):
            ratio = float(factors[1])
            builder.add_constraint(GearPair(name, joint, other, ratio, rest - ratio * start))
            return
        a = [rest, *map(float, factors[1:])]

        def distance(q: Any, t: Any) -> Any:
            x = q[1] - start
            return q[0] - (a[0] + x * (a[1] + x * (a[2] + x * (a[3] + x * a[4]))))

        builder.add_constraint(HolonomicConstraint(name, [joint, other], distance))

    def add_tendons(self) -> None:
        """Add tendons: between two sites springs or cables, along joints couplings."""
        for number in range(self.model.ntendon):
            name = self.names.of("tendon", number)
            element = self._element(name, number)
            if element is None:
                self.left_out.add(
                    f"the tendon '{name}', which is no spring or damper of a kind here", "tendon"
                )
                continue
            self.builder.add_force_element(element)
            for key, what in _OTHERS.items():
                values = getattr(self.model, f"tendon_{key}", None)
                if values is not None and np.any(values[number]):
                    self.left_out.add(f"the {what} of the tendon '{name}'", f"tendon {key}")

    def _element(self, name: str, number: int) -> ForceElement | None:
        """Return the element with the force of a tendon, if there is one."""
        model, bodies, joints = self.model, self.bodies, self.joints
        first = int(model.tendon_adr[number])
        parts, wraps = slice(first, first + int(model.tendon_num[number])), mujoco().mjtWrap
        kinds, numbers = set(model.wrap_type[parts].tolist()), model.wrap_objid[parts].tolist()
        low, high = map(float, model.tendon_lengthspring[number])
        law = {
            what: float(np.ravel(getattr(model, f"tendon_{what}")[number])[0])
            for what in ("stiffness", "damping")
        }
        if not any(law.values()):
            return None
        has_length = low == high or not law["stiffness"]
        if kinds == {int(wraps.mjWRAP_JOINT)} and has_length:
            pairs = zip(numbers, model.wrap_prm[parts].tolist(), strict=True)
            factors: dict[Any, float] = {joints[n]: factor for n, factor in pairs if factor}
            if not factors:
                return None
            return CompliantCoupling(name, Coupling(f"{name}_length", factors, low), **law)
        if kinds != {int(wraps.mjWRAP_SITE)} or len(numbers) != 2 or high <= 0.0:
            return None
        A, B = (bodies[model.site_bodyid[n]] for n in numbers)
        p_AP, p_BQ = model.site_pos[numbers]
        if has_length:
            return LinearSpringDamper(name, A, p_AP, B, p_BQ, free_length=high, **law)
        if low > 0.0 or law["damping"]:
            return None
        return Cable(name, A, p_AP, B, p_BQ, free_length=high, stiffness=law["stiffness"])

    def geom_shape(self, number: int) -> BodyShape:
        """Return the shape of a geom in its body; note what cannot be drawn."""
        model, kinds, name = self.model, mujoco().mjtGeom, self.names.of("geom", number)
        kind, size = kinds(int(model.geom_type[number])), model.geom_size[number]
        if kind == kinds.mjGEOM_BOX:
            shape = BodyShape.box(size=2.0 * size)
        elif kind == kinds.mjGEOM_SPHERE:
            shape = BodyShape.sphere(radius=size[0])
        elif kind == kinds.mjGEOM_ELLIPSOID:
            shape = BodyShape.ellipsoid(semi_axes=size)
        elif kind == kinds.mjGEOM_CYLINDER:
            shape = BodyShape.cylinder(radius=size[0], length=2.0 * size[1])
        elif kind == kinds.mjGEOM_CAPSULE:
            shape = BodyShape.capsule(radius=size[0], length=2.0 * size[1])
        elif kind == kinds.mjGEOM_MESH:
            shape = _mesh(model, int(model.geom_dataid[number]))
        else:
            what = kind.name.removeprefix("mjGEOM_").lower()
            self.left_out.add(f"not drawn in pictures: the {what} '{name}'", "not drawn")
            return BodyShape()
        R = rotation_from_quaternion(model.geom_quat[number])
        color = color_code(model.geom_rgba[number])
        return shape.moved((R, model.geom_pos[number])).colored(color)

    def list_what_is_left_out(self) -> None:
        """List what the model has, and the plant has not."""
        model, names, left_out = self.model, self.names, self.left_out
        for count, kind in _COUNTED.items():
            for number in range(getattr(model, count)):
                left_out.add(f"the {kind} '{names.of(kind, number)}'", kind)
        for number in range(model.ngeom):
            if model.geom_contype[number] or model.geom_conaffinity[number]:
                left_out.add(f"contacts of the geom '{names.of('geom', number)}'", "contacts")
        for number in range(1, model.nbody):
            if model.body_mocapid[number] >= 0:
                body = names.of("body", number)
                left_out.add(f"the motion by hand of the body '{body}'", "mocap")
        left_out.add_all(self._unusual())
        for key in ("density", "viscosity", "wind"):
            if np.any(getattr(model.opt, key)):
                left_out.add(f"the {key} of the medium")
        package = mujoco()
        for flag in _FLAGS:
            if model.opt.disableflags & int(getattr(package.mjtDisableBit, f"mjDSBL_{flag}")):
                left_out.add(f"the flag that disables '{flag.lower()}'")

    def _unusual(self) -> Iterator[tuple[str, str]]:
        """Yield numbers that plants do not have, of versions of MuJoCo that have them."""
        model, names, kinds = self.model, self.names, mujoco().mjtJoint
        for number in range(model.njnt):
            is_axial = kinds(int(model.jnt_type[number])) in (kinds.mjJNT_HINGE, kinds.mjJNT_SLIDE)
            if np.any(model.jnt_stiffness[number]) and not is_axial:
                yield "springs", f"the stiffness of the joint '{names.of('joint', number)}'"
            if model.jnt_limited[number] and not is_axial:
                yield "limits", f"the range of the joint '{names.of('joint', number)}'"
            if np.any(model.dof_frictionloss[model.jnt_dofadr[number]]) and not is_axial:
                joint = names.of("joint", number)
                yield (
                    "friction",
                    f"the axes of the friction of the joint '{joint}', which turn with it",
                )
        for key, kind in _UNUSUAL.items():
            for number, value in enumerate(getattr(model, key, ())):
                if np.any(value):
                    owner = int(model.dof_jntid[number]) if key.startswith("dof") else number
                    what = key.partition("_")[2]
                    yield key, f"the {what} of the {kind} '{names.of(kind, owner)}'"


def _effort(model: Any, number: int) -> float:
    """Return the greatest magnitude of the force of a motor along its joint."""
    gear = abs(float(model.actuator_gear[number][0]))
    limits = [np.inf]
    if model.actuator_forcelimited[number]:
        limits.append(gear * np.max(np.abs(model.actuator_forcerange[number])))
    if model.actuator_ctrllimited[number]:
        gain = abs(float(model.actuator_gainprm[number][0]))
        limits.append(gear * gain * np.max(np.abs(model.actuator_ctrlrange[number])))
    joint = model.actuator_trnid[number][0]
    if model.jnt_actfrclimited[joint]:
        limits.append(np.max(np.abs(model.jnt_actfrcrange[joint])))
    return float(min(limits)) or np.inf


def _mesh(model: Any, number: int) -> BodyShape:
    """Return a mesh of the model, which MuJoCo has turned to its principal axes."""
    vertices = slice(model.mesh_vertadr[number], None)
    faces = slice(model.mesh_faceadr[number], None)
    points = model.mesh_vert[vertices][: model.mesh_vertnum[number]]
    corners = model.mesh_face[faces][: model.mesh_facenum[number]]
    return BodyShape.mesh((np.asarray(points, dtype=float), np.asarray(corners)))
