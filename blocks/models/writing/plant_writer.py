"""The base class of writers of model files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeAlias
from xml.etree import ElementTree as ET

import numpy as np
import numpy.typing as npt

from flexure.blocks.forces.on_joints.joint_friction import JointFriction
from flexure.blocks.forces.on_joints.joint_springs import JointSpring
from flexure.blocks.math import RigidTransform, compose_transforms
from flexure.blocks.models.reading.links import BOUNDLESS, TRANSITION_VELOCITY
from flexure.blocks.models.reading.xml_elements import LeftOut
from flexure.blocks.multibody.bodies.bodies import Body, Frame
from flexure.blocks.multibody.bodies.body_shape import Primitive
from flexure.blocks.multibody.bodies.meshes import write_stl
from flexure.blocks.multibody.bodies.solids import symmetric_matrix
from flexure.blocks.multibody.constraints import Coupling
from flexure.blocks.multibody.constraints.constraint import Constraint
from flexure.blocks.multibody.force_elements.force_element import ForceElement
from flexure.blocks.multibody.joints import Joint
from flexure.blocks.multibody.plants.plant import Plant
from flexure.blocks.multibody.trees.topology import Mobilizer
from flexure.blocks.multibody.trees.tree_inputs import Actuator
from flexure.diagrams.checks.arguments import file_path, require
from flexure.diagrams.checks.errors import DeclarationError, quoted, warn
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import start_context
from flexure.diagrams.files.atomic_files import replacing
from flexure.diagrams.values.arrays import FloatArray

#: A joint, and the number of one of its coordinates.
Axis: TypeAlias = tuple[Joint, int]
#: Sizes of a shape in m, by the names that most formats give them.
Sizes: TypeAlias = dict[str, Any]

ORIGIN = RigidTransform(np.eye(3), np.zeros(3))
BALLS, FLOATING = ("ball_quaternion", "ball_rpy"), ("quaternion_floating", "rpy_floating")
_NAMES = {"weld": "fixed", **dict.fromkeys(BALLS, "ball"), **dict.fromkeys(FLOATING, "floating")}
#: Joints that are the same from the child to the parent, with the opposite axis.
_SYMMETRIC = ("revolute", "continuous", "prismatic", "screw", "cylindrical", "fixed")
_SIDES = ("lower", "upper")
_MOMENTS = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")


def numbers_text(numbers: npt.ArrayLike) -> str:
    """Return numbers that are read back as they are, with a large number for infinity."""
    finite = np.clip(np.atleast_1d(np.asarray(numbers, dtype=float)) + 0.0, -BOUNDLESS, BOUNDLESS)
    return " ".join(repr(float(each)) for each in finite)


def add(owner: ET.Element, tag: str, **attributes: npt.ArrayLike) -> ET.Element:
    """Add an element whose attributes are texts or numbers, and return it."""
    return ET.SubElement(owner, tag, attributes_of(**attributes))


def attributes_of(**values: npt.ArrayLike) -> dict[str, str]:
    """Return attributes of an element, as texts."""
    return {key: v if isinstance(v, str) else numbers_text(v) for key, v in values.items()}


def has_limits(joint: Joint, *kinds: str) -> bool:
    """Return whether a joint limits its position, velocity or acceleration."""
    sides = (getattr(joint, f"{kind}_{side}_limits") for kind in kinds for side in _SIDES)
    return any(np.isfinite(each).any() for each in sides)


@dataclass
class Carried:
    """Forces along the coordinates of a joint, each an array with one number per velocity."""

    damping: FloatArray
    friction: FloatArray
    spring_stiffness: FloatArray
    spring_reference: FloatArray


class PlantWriter(ABC):
    """Makes the elements of a file, and lists what the format cannot express.

    Meshes are saved beside the path.
    """

    FORMAT: ClassVar[str]
    KINDS: ClassVar[tuple[str, ...]]  # names of the joints that it has
    #: What it calls joints whose coordinates have axes with limits, friction and springs.
    AXES: ClassVar[tuple[str, ...]] = (*_SYMMETRIC[:-1], "universal")
    STARTS: ClassVar[tuple[str, ...]] = ()  # joints whose positions at the start it holds
    SHAPES: tuple[str, ...] = ("box", "sphere", "ellipsoid", "cylinder", "capsule", "mesh")
    HAS_SPRINGS: ClassVar[bool] = True
    FLOATS_ANYWHERE: ClassVar[bool] = False

    def __init__(self, plant: Plant, context: Context, path: Path) -> None:
        self.plant, self.context, self.path = plant, context, path
        self.left_out = LeftOut()
        found = plant.tree.topology.mobilizers
        self.mobilizers = [each for each in found if not plant.bodies[each.outboard].is_node]
        self.carried: dict[Joint, Carried] = {}

    @classmethod
    def save(cls, plant: Plant, path: str | Path, context: Context | None) -> tuple[str, ...]:
        """Save a plant, warn of what is left out, and return it."""
        attempt = f"Cannot save a plant as {cls.FORMAT}"
        require(
            isinstance(plant, Plant), plant, attempt, "a plant, as PlantBuilder.build() returns it"
        )
        name = Path(file_path(path, attempt))
        writer = cls(plant, start_context(plant, context, attempt), name)
        writer._refuse()
        writer._carry()
        root = writer.root()
        for text in writer.rest():
            writer.left_out.add(text)
        ET.indent(root)
        with replacing(name) as stream:
            stream.write('<?xml version="1.0"?>\n')
            stream.write(ET.tostring(root, encoding="unicode") + "\n")
        if writer.left_out.texts:
            left_out = writer.left_out.summary()
            warn(f"{cls.FORMAT} cannot hold all of '{plant.name}'. Left out: {left_out}.")
        return writer.left_out.texts

    @abstractmethod
    def root(self) -> ET.Element:
        """Return the whole file."""

    @abstractmethod
    def shape(self, kind: str, sizes: Sizes, file: str) -> ET.Element:
        """Return a shape of the format; a mesh has no sizes, but a file beside."""

    @abstractmethod
    def write_constraint(self, constraint: Constraint) -> bool:
        """Write a constraint into the elements that exist; return whether that is possible."""

    def holds(self, element: ForceElement) -> bool:
        """Return whether the format has a force element that is not a part of a joint."""
        return False

    # What stops a plant from being written ---------------------------------------------------

    def kind(self, joint: Joint) -> str | None:
        """Return what formats call a joint; None of a joint that is lacking, or of a subclass."""
        own = vars(type(joint)).get("TYPE_NAME")
        if own not in self.KINDS:
            return None
        is_endless = own == "revolute" and not has_limits(joint, "position")
        return "continuous" if is_endless else _NAMES.get(own, own)

    def has_axes(self, joint: Joint) -> bool:
        """Return whether the coordinates of a joint have axes."""
        return self.kind(joint) in self.AXES

    def problems(self, mobilizer: Mobilizer) -> Iterator[str]:
        """Yield why a joint cannot be written."""
        joint, kind = mobilizer.joint, self.kind(mobilizer.joint)
        what = f"the {joint.type_name} joint '{joint.name}'"
        if kind is None:
            yield what
        elif mobilizer.is_reversed and kind not in _SYMMETRIC:
            yield f"{what} from child to parent"
        elif self.plant.bodies[mobilizer.inboard].is_node:
            yield f"joint '{joint.name}' on the inside of a force element"
        if kind == "floating" and mobilizer.inboard and not self.FLOATS_ANYWHERE:
            yield f"{what} on a body that is not the world"

    def _refuse(self) -> None:
        """Refuse joints that the format cannot hold, all of them at once, and flexible bodies."""
        attempt = f"Cannot save '{self.plant.name}' as {self.FORMAT}"
        flexible = [each.name for each in self.plant.force_elements if each.coupled]
        if flexible:
            raise DeclarationError(
                attempt,
                expected="rigid bodies and force elements",
                found=f"flexible bodies, without which their mass is lost: {quoted(flexible)}",
                remedy="Replace them by rigid bodies",
            )
        wrong = [text for each in self.mobilizers for text in self.problems(each)]
        if wrong:
            raise DeclarationError(
                attempt,
                expected=f"joints that {self.FORMAT} has: {quoted(self.KINDS)}",
                found="; ".join(wrong),
                remedy="Replace them, such as a ball joint by three revolute ones",
            )

    # What joints carry -----------------------------------------------------------------------

    def _carry(self) -> None:
        """Collect what acts along joints, and list all other force elements."""
        for each in self.mobilizers:
            numbers = np.zeros((4, each.joint.num_velocities))
            if numbers.size:
                numbers[0] = each.joint.damping.get(self.context)
            self.carried[each.joint] = Carried(*numbers)
        for element in self.plant.force_elements:
            if not (self._is_carried(element) or self.holds(element)):
                self.left_out.add(f"the {type(element).__name__} '{element.name}'")
        for body in self.plant.bodies:
            if body.expansion is not None:
                self.left_out.add(f"the thermal expansion of '{body.name}'")

    def _is_carried(self, element: ForceElement) -> bool:
        """Add friction or a spring to its joint; return whether that is possible."""
        joint = getattr(element, "joint", None)
        if joint not in self.carried or not self.has_axes(joint):
            return False
        carried = self.carried[joint]
        if type(element) is JointFriction and not np.any(carried.friction):
            law = element.law(self.context)
            carried.friction += law.coulomb_friction
            carried.damping += law.viscous_friction
            what = f"the {type(element).__name__} '{element.name}'"
            if np.any(law.static_friction != law.coulomb_friction):
                self.left_out.add(f"static friction of {what}")
            if np.any(law.transition_velocity != TRANSITION_VELOCITY):
                self.left_out.add(f"the transition velocity of {what}")
            return True
        is_free = self.HAS_SPRINGS and not np.any(carried.spring_stiffness)
        if type(element) is JointSpring and is_free:
            spring = element.law(self.context)
            stiffness, preload = map(np.asarray, (spring.stiffness, spring.preload))
            if np.any((stiffness == 0.0) & (preload != 0.0)):
                return False
            shift = preload / np.where(stiffness == 0.0, 1.0, stiffness)
            carried.spring_stiffness += stiffness
            carried.spring_reference += spring.nominal_position + shift
            carried.damping += spring.damping
            return True
        return False

    def list_constraints(self) -> None:
        """Write constraints, and list those that the format lacks."""
        for each in self.plant.constraints:
            if not self.write_constraint(each):
                self.left_out.add(f"the {type(each).__name__} '{each.name}'")

    def coupled(self, constraint: Constraint) -> tuple[Axis, Axis, float, float] | None:
        """Return q', q, a and b of a coupling q' = a q + b of two axes; None of others."""
        if not isinstance(constraint, Coupling):
            return None
        pair = constraint.gearing.coordinates
        if len(pair) != 2 or not all(self.has_axes(joint) for joint, _ in pair):
            return None
        factors, offset = constraint.equation(self.context[self.plant.tree.name])
        first, second = map(float, factors)
        return pair[0], pair[1], -second / first, float(offset) / first

    # Bodies ----------------------------------------------------------------------------------

    def inertia(
        self, body: Body, X_LB: RigidTransform = ORIGIN
    ) -> tuple[float, FloatArray, dict[str, float]]:
        """Return the mass, its center in L, and the moments about it along the axes of L."""
        mass = float(body.mass.get(self.context))
        I_L = X_LB.R @ symmetric_matrix(mass * body.unit_inertia.get(self.context)) @ X_LB.R.T
        center = X_LB.R @ body.com.get(self.context) + X_LB.p
        moments = I_L[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]].tolist()
        return mass, center, dict(zip(_MOMENTS, moments, strict=True))

    def shapes(
        self, body: Body, X_LB: RigidTransform = ORIGIN
    ) -> Iterator[tuple[ET.Element, RigidTransform, str | None]]:
        """Yield what a body looks like: shapes, their poses in L and colors; save its meshes."""
        for number, each in enumerate(body.shape.primitives, start=1):
            name = f"{self.path.stem}_{body.name}_{number}.stl"
            kind, sizes = _looks(each)
            if kind not in self.SHAPES:
                self.left_out.add(f"the {each.kind} in what '{body.name}' looks like", "shapes")
                continue
            if each.mesh is not None:
                write_stl(self.path.with_name(name), each.mesh)
            pose = compose_transforms(X_LB, RigidTransform(each.R, each.p))
            yield self.shape(kind, sizes, name), pose, each.color

    def other_frames(self) -> Iterator[Frame]:
        """Yield the frames that are not those of joints."""
        joints = self.plant.joints
        of_joints = {f for each in joints for f in (each.frame_on_parent, each.frame_on_child)}
        for frame in self.plant.frames:
            if frame not in of_joints and not frame.body.is_node:
                yield frame

    # Joints ----------------------------------------------------------------------------------

    def ends(self, mobilizer: Mobilizer) -> tuple[Body, Body]:
        """Return the bodies of a joint, first the one that is nearer to the world."""
        return self.plant.bodies[mobilizer.inboard], self.plant.bodies[mobilizer.outboard]

    def start(self, joint: Joint) -> FloatArray:
        """Return the positions at which a file has a joint."""
        has_start = self.kind(joint) in self.STARTS
        return joint.default_positions if has_start else joint.zero_positions()

    def pose(self, mobilizer: Mobilizer) -> RigidTransform:
        """Return the pose of the outboard body in the inboard one, as a file has them."""
        X_FM = mobilizer.calc_pose(self.start(mobilizer.joint))
        return compose_transforms(compose_transforms(mobilizer.X_PF, X_FM), mobilizer.X_MB)

    def pose_at_joint(self, mobilizer: Mobilizer) -> RigidTransform:
        """Return the pose of the outboard body in frame F of the joint, as a file has them."""
        return compose_transforms(mobilizer.calc_pose(self.start(mobilizer.joint)), mobilizer.X_MB)

    def motors(self, joint: Joint) -> list[Actuator]:
        """Return the motors on a joint."""
        return [each for each in self.plant.actuators if each.joint is joint]

    def rotor_inertia(self, joint: Joint) -> float:
        """Return the inertia of the rotors on a joint, as the joint feels it."""
        return sum(
            float(each.gear_ratio.get(self.context)) ** 2
            * float(each.rotor_inertia.get(self.context))
            for each in self.motors(joint)
        )

    def effort(self, joint: Joint, without: float) -> float:
        """Return the greatest force of the motors on a joint, or what it is without motors."""
        efforts = {each.effort_limit for each in self.motors(joint)}
        if len(efforts) > 1:
            self.left_out.add(f"that the motors on joint '{joint.name}' have different limits")
        return max(efforts, default=without)

    def magnitude(self, joint: Joint, what: str, k: int = 0) -> float:
        """Return the limit of the magnitude of a velocity or an acceleration."""
        lower, upper = (float(getattr(joint, f"{what}_{side}_limits")[k]) for side in _SIDES)
        if lower != -upper:
            pair = lower, upper
            self.left_out.add(f"that the {what} of joint '{joint.name}' is limited to {pair}")
        return max(abs(lower), abs(upper))

    def list_limits(self, joint: Joint) -> None:
        """List the limits of a joint of a kind that has none in the format."""
        if has_limits(joint, "position", "velocity", "acceleration"):
            self.left_out.add(f"the limits of the {joint.type_name} joint '{joint.name}'")

    # What is left ----------------------------------------------------------------------------

    def rest(self) -> Iterator[str]:
        """Yield what no element can hold."""
        for each in self.mobilizers:
            joint = each.joint
            if not np.array_equal(joint.default_positions, self.start(joint)):
                yield f"the positions at which joint '{joint.name}' starts"
            if joint.num_velocities and joint.locked.get(self.context):
                yield f"that joint '{joint.name}' is locked"
        if self.plant.spin is not None and np.any(spin := self.plant.spin.get(self.context)):
            yield f"the spin {spin.tolist()} of the world"
        actuators = {each.name for each in self.plant.actuators}
        for port in self.plant.input_ports:
            if port.name not in actuators and port.name != "generalized_force":
                yield f"the input '{port.name}'"


def color_shares(color: str) -> str:
    """Return the shares of red, green, blue and opacity of ``"#rrggbb"``."""
    return numbers_text([*(int(color[k : k + 2], 16) / 255.0 for k in (1, 3, 5)), 1.0])


def _looks(part: Primitive) -> tuple[str, Sizes]:
    """Return the kind of a shape, as formats call it, and its sizes."""
    match part.kind, part.size:
        case "ellipsoid", (x, y, z) if x == y == z:
            return "sphere", {"radius": x}
        case "ellipsoid", radii:
            return "ellipsoid", {"radii": radii}
        case "tube", (0.0, radius, length):
            return "cylinder", {"radius": radius, "length": length}
        case "capsule", (radius, length):
            return "capsule", {"radius": radius, "length": length}
        case "box", size:
            return "box", {"size": size}
    return part.kind, {}
