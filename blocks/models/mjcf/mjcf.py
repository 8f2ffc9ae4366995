"""Plants from MJCF files, as MuJoCo's own compiler reads them: trees of bodies and their joints.

Needs mujoco, which `flexure[mjcf]` installs.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.math import (
    RigidTransform,
    compose_transforms,
    rotation_about,
    rotation_from_quaternion,
)
from flexure.blocks.models.mjcf.mjcf_elements import ATTEMPT, Elements, mujoco
from flexure.blocks.multibody.bodies.bodies import Body, Frame
from flexure.blocks.multibody.bodies.body_shape import BodyShape
from flexure.blocks.multibody.bodies.inertia import SpatialInertia
from flexure.blocks.multibody.joints import Joint
from flexure.blocks.multibody.joints.ball import BallQuaternionJoint
from flexure.blocks.multibody.joints.floating import QuaternionFloatingJoint
from flexure.blocks.multibody.joints.prismatic import PrismaticJoint
from flexure.blocks.multibody.joints.revolute import RevoluteJoint
from flexure.blocks.multibody.joints.weld import WeldJoint
from flexure.blocks.multibody.plants.plant_builder import PlantBuilder
from flexure.diagrams.checks.arguments import shown
from flexure.diagrams.checks.errors import DeclarationError


def load_mjcf(
    source: str | Path, *, name: str | None = None, gravity: npt.ArrayLike | None = None
) -> PlantBuilder:
    """Read a model from an MJCF file into a new builder.

    You can add more to the builder.

    Parameters
    ----------
    source : str or Path
        Name of a file, or the text itself: what contains ``<`` is no name.
    name : str, optional
        Name of the plant and of the model instance of its bodies; that of the model if omitted.
    gravity : array_like, shape (3,), optional
        Acceleration of free fall in the world in m/s²; that of the file when omitted.

    Returns
    -------
    PlantBuilder
        It has the bodies, joints and sites of the file under their names.

    Raises
    ------
    DeclarationError
        When MuJoCo refuses the file, or something in it is impossible for plants.
    MissingExtraError
        When mujoco is not installed.

    Warns
    -----
    UserWarning
        When something in the file is left out: contacts, tendons around geoms, sensors, actuators
        other than motors on joints, and so on. The attribute ``left_out`` of the builder lists all.

    See Also
    --------
    load_urdf : Read a URDF file.
    load_sdf : Read an SDF file.

    Notes
    -----
    The compiler of MuJoCo resolves what an MJCF file may say in many ways: classes of defaults,
    included files, angles and orientations, inertia from geoms, meshes. What it makes of the file
    is read: bodies with their inertia; joints of the types hinge, slide, ball and free with
    ``range``, ``ref``, ``damping``, ``stiffness``, ``springref``, ``frictionloss`` and
    ``armature``; sites, which become frames; geoms, which are what bodies look like; equalities of
    the types connect, weld and joint, which become exact constraints; motors on hinges and slides;
    springs and dampers of tendons between two sites, which become a `LinearSpringDamper`, or a
    `Cable` if they have play from zero length, and of fixed tendons, a `CompliantCoupling`.

    A body with several joints gets bodies without mass between them, called ``<body>_1`` and so on.
    Springs are called ``<joint>_spring``, and friction ``<joint>_friction``, which is that of
    `load_urdf`. The input of a motor is the force along its joint, on the side of the joint,
    whatever its gear; its limit is the greatest magnitude of that. An armature belongs to the first
    motor of a joint; without one, to an actuator ``<joint>_armature``.

    Elements without a name in the file are called by their kind and number, such as ``body3``;
    characters other than letters, digits, underscores and hyphens become underscores.

    Examples
    --------
    >>> import flexure as fx
    >>> text = '''
    ... <mujoco><worldbody><body name="bar">
    ...   <joint name="hinge" axis="0 1 0"/>
    ...   <inertial pos="0 0 -1" mass="2" diaginertia="0.1 0.1 0.1"/>
    ... </body></worldbody></mujoco>'''
    >>> plant = fx.load_mjcf(text).build()
    >>> plant.calc_mass_matrix(plant.create_default_context()).round(6)
    array([[2.1]])
    """
    model = _compiled(source)
    given = model.opt.gravity.copy()
    if model.opt.disableflags & int(mujoco().mjtDisableBit.mjDSBL_GRAVITY):
        given[:] = 0.0
    title = _title(model) if name is None else name
    builder = PlantBuilder(title, gravity=given if gravity is None else gravity)
    loader = _Loader(builder, model)
    loader.load()
    loader.left_out.tell(builder)
    return builder


def _compiled(source: str | Path) -> Any:
    """Return what MuJoCo makes of a file."""
    if not isinstance(source, (str, Path)):
        raise DeclarationError(
            ATTEMPT,
            expected="the name of a file as str or Path, or a text with <",
            found=shown(source),
        )
    model_class = mujoco().MjModel
    try:
        if isinstance(source, str) and "<" in source:
            return model_class.from_xml_string(source)
        return model_class.from_xml_path(str(source))
    except (ValueError, UnicodeEncodeError, TypeError) as error:
        found = " ".join(str(error).split())
        raise DeclarationError(
            ATTEMPT, expected="a file that MuJoCo accepts", found=found[:500]
        ) from error


def _title(model: Any) -> str:
    """Return the name of a model, made fit for one of a plant."""
    text: str = model.names[: model.names.index(b"\0")].decode(errors="replace")
    return re.sub(r"[^A-Za-z0-9_-]", "_", text) or "model"


class _Loader(Elements):
    """Adds what a compiled model has to a builder."""

    def load(self) -> None:
        """Add bodies in the order of their numbers, so that parents come first."""
        model = self.model
        self.builder.add_shape(self.builder.world, self._shape(0))
        for number in range(1, model.nbody):
            self._add_body(number)
        for number in range(model.nsite):
            pose = _pose(model.site_pos[number], model.site_quat[number])
            body = self.bodies[model.site_bodyid[number]]
            self.builder.add_frame(self.names.of("site", number), body, pose)
        self.add_forces()
        self.add_motors()
        self.add_constraints()
        self.add_tendons()
        self.list_what_is_left_out()

    def _add_body(self, number: int) -> None:
        """Add a body, and its joints one after the other."""
        model, name = self.model, self.names.of("body", number)
        parent = self.bodies[model.body_parentid[number]]
        pose = _pose(model.body_pos[number], model.body_quat[number])
        count, first = int(model.body_jntnum[number]), int(model.body_jntadr[number])
        for k in range(count):
            is_last = k == count - 1
            own = name if is_last else self.names.free("body", f"{name}_{k + 1}")
            body = self._body(own, number if is_last else None)
            self._add_joint(first + k, parent, pose, body)
            parent, pose = body, _pose(np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]))
        if not count:
            body = self._body(name, number)
            on = self.builder.add_frame(self.names.free("site", f"{name}_base"), parent, pose)
            self.builder.add_joint(WeldJoint(self.names.free("joint", f"{name}_weld"), on, body))
        self.bodies.append(body)

    def _body(self, name: str, number: int | None) -> Body:
        """Add a body with the inertia of one of the model, or without mass."""
        if number is None:
            inertia = SpatialInertia(0.0)
        else:
            model = self.model
            pose = _pose(model.body_ipos[number], model.body_iquat[number])
            moments = model.body_inertia[number]
            inertia = SpatialInertia(float(model.body_mass[number]), inertia=moments).moved(pose)
            inertia = inertia.with_shape(self._shape(number))
        return self.builder.add_body(name, inertia, model_instance=self.builder.name)

    def _shape(self, number: int) -> BodyShape:
        """Return what a body looks like."""
        model, shape = self.model, BodyShape()
        first = int(model.body_geomadr[number])
        for geom in range(first, first + int(model.body_geomnum[number])):
            shape += self.geom_shape(geom)
        return shape

    def _add_joint(self, number: int, parent: Body, pose: RigidTransform, body: Body) -> None:
        """Add a joint at its place in the body, from which its position is counted."""
        model, kinds = self.model, mujoco().mjtJoint
        kind, name = kinds(int(model.jnt_type[number])), self.names.of("joint", number)
        start = int(model.jnt_qposadr[number])
        joint: Joint
        if kind == kinds.mjJNT_FREE:
            joint = QuaternionFloatingJoint(name, parent, body)
            joint.default_pose = pose
        else:
            axis, reference = model.jnt_axis[number], float(model.qpos0[start])
            back = RigidTransform(np.eye(3), np.zeros(3))
            if kind == kinds.mjJNT_HINGE:
                back = RigidTransform(rotation_about(axis, -reference), np.zeros(3))
            elif kind == kinds.mjJNT_SLIDE:
                back = RigidTransform(np.eye(3), -reference * axis)
            at = RigidTransform(np.eye(3), model.jnt_pos[number])
            X_PF = compose_transforms(compose_transforms(pose, at), back)
            F = Frame(f"{name}_parent", parent, X_PF)
            M = Frame(f"{name}_child", body, at)
            if kind == kinds.mjJNT_BALL:
                joint = BallQuaternionJoint(name, F, M)
            else:
                make = RevoluteJoint if kind == kinds.mjJNT_HINGE else PrismaticJoint
                joint = make(name, F, M, axis)
                joint.default_positions = [reference]
                if model.jnt_limited[number]:
                    joint.set_position_limits(*model.jnt_range[number])
        first = int(model.jnt_dofadr[number])
        joint.default_damping_vector = model.dof_damping[first : first + joint.num_velocities]
        self.joints.append(self.builder.add_joint(joint))


def _pose(position: npt.NDArray[np.float64], quaternion: npt.NDArray[np.float64]) -> RigidTransform:
    """Return a pose from a position and a quaternion w x y z."""
    return RigidTransform(rotation_from_quaternion(quaternion), position.copy())
