"""Plants from SDF files: models with their links, frames, joints and springs.

Needs lxml, which `flexure[urdf]` installs.
"""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import numpy.typing as npt

from flexure.blocks.math import RigidTransform, relative_pose
from flexure.blocks.models.reading.links import Loader, Unphysical, loose_bases, outermost
from flexure.blocks.models.reading.visuals import Visuals, color_code, folder_of, only_shape
from flexure.blocks.models.reading.xml_elements import TRUE, Element, plant_name
from flexure.blocks.models.sdf.sdf_joints import FrameGraph, add_sdf_joint, pose_in_link, scoped
from flexure.blocks.multibody.bodies.bodies import Body
from flexure.blocks.multibody.bodies.body_shape import BodyShape
from flexure.blocks.multibody.bodies.inertia import SpatialInertia
from flexure.blocks.multibody.constraints import GearPair
from flexure.blocks.multibody.joints.floating import QuaternionFloatingJoint
from flexure.blocks.multibody.joints.weld import WeldJoint
from flexure.blocks.multibody.plants.plant_builder import PlantBuilder

_GRAVITY = (0.0, 0.0, -9.81)
_OLDEST = 1.5  # before, axes of joints were expressed in the frame of the model

#: Settings of programs, which have no importance to a motion.
_OF_WORLDS = ("scene", "gui", "physics", "spherical_coordinates", "audio")
_OF_MODELS = ("allow_auto_disable",)


def load_sdf(
    source: str | Path,
    *,
    name: str | None = None,
    gravity: npt.ArrayLike | None = None,
    unphysical: Unphysical = "refuse",
) -> PlantBuilder:
    """Read the models of an SDF file into a new builder.

    You can add more to the builder.

    Parameters
    ----------
    source : str or Path
        Name of a file, or the text itself: what contains ``<`` is no name.
    name : str, optional
        Name of the plant; that of the only model, or of the world, if omitted.
    gravity : array_like, shape (3,), optional
        Acceleration of free fall in the world in m/s²; that of the file when omitted, and
        (0, 0, -9.81) where it has none.
    unphysical : {"refuse", "repair"}
        What becomes of moments of inertia that no body can have, as for `load_urdf`.

    Returns
    -------
    PlantBuilder
        It has the bodies, joints and frames of the file under their names, with ``_`` for
        characters that names in plants cannot have, such as dots, and before a first digit.

    Raises
    ------
    DeclarationError
        When the file cannot be read, something is missing in it or impossible, or it asks for
        something that plants do not have, such as joints with a gearbox. The error names the
        element, its line and the file.
    UnknownNameError
        When a link, frame or joint is referred to that does not exist.
    MissingExtraError
        When lxml is not installed.

    Warns
    -----
    UserWarning
        When something in the file is left out: what is not understood, files that it includes,
        collisions, a visual that cannot be drawn. The attribute ``left_out`` of the builder lists
        all of it with the lines.

    See Also
    --------
    load_urdf : Read a URDF file.
    load_mjcf : Read an MJCF file.

    Notes
    -----
    Read is a part of SDF 1.7, also from files of other versions from 1.5 on: ``world`` with
    ``gravity``; ``model``, also inside of models, with ``pose`` and ``static``; ``link`` with
    ``inertial`` and ``visual``; ``frame``; ``joint`` of the types revolute, continuous, prismatic,
    fixed, ball, universal, revolute2 and screw with ``axis``, ``axis2``, their ``limit``,
    ``dynamics`` and ``mimic``. Poses are in the frames that ``relative_to`` names, axes in those
    of ``expressed_in``, as 1.7 defines them; ``use_parent_model_frame`` of older files is
    understood.

    Links without ``inertial`` have the mass 1 kg and moments of 1 kg m², as SDF says. Links that no
    joint connects to the world float: a `QuaternionFloatingJoint` with the name of the link starts
    at its pose. Links of a static model are welded to the world, without its joints. A joint
    that closes a loop becomes a constraint, by `PlantBuilder.add_loop_joint`.

    A ``friction`` becomes a `JointFriction` with the name ``<joint>_friction``, as by `load_urdf`;
    a ``spring_stiffness`` becomes a `JointSpring` with the name ``<joint>_spring``; a ``mimic``
    becomes a `GearPair` with the name ``<joint>_mimic``. A joint whose ``limit`` has an ``effort``
    above zero gets an actuator with its own name. Other limits are only stored, and those of 10¹⁶
    and more are infinite. Of Drake's elements, ``drake:rotor_inertia`` and ``drake:gear_ratio`` of
    a joint are read.

    Names of what is inside of models in a model, and in a world with several models, have those of
    their models before them, with two underscores for ``::``.

    Examples
    --------
    >>> pendulum = load_sdf('''
    ... <sdf version="1.7">
    ...   <model name="pendulum">
    ...     <link name="bob">
    ...       <pose>0 0 -2 0 0 0</pose>
    ...       <inertial><mass>3</mass>
    ...         <inertia><ixx>0.1</ixx><iyy>0.1</iyy><izz>0.1</izz></inertia>
    ...       </inertial>
    ...     </link>
    ...     <joint name="pivot" type="revolute">
    ...       <pose relative_to="__model__"/>
    ...       <parent>world</parent> <child>bob</child>
    ...       <axis><xyz>0 1 0</xyz>
    ...         <dynamics><spring_stiffness>5</spring_stiffness></dynamics></axis>
    ...     </joint>
    ...   </model>
    ... </sdf>''').build()
    >>> pendulum.calc_mass_matrix(pendulum.create_default_context())
    array([[12.1]])
    >>> pendulum.force_elements
    (<JointSpring 'pivot_spring'>,)
    """
    root = outermost(source, "sdf", unphysical, "Cannot load an SDF file")
    version = root.text("version")
    try:
        is_readable = float(".".join(version.split(".")[:2])) >= _OLDEST
    except ValueError:
        is_readable = False
    if not is_readable:
        raise root.refusal(expected=f"version {_OLDEST} or later", found=repr(version))
    world = root.child("world")
    models = root.children("model") if world is None else world.children("model")
    if not models:
        raise root.refusal(expected="a <model>", found="none")
    if gravity is None:
        given = None if world is None else world.child("gravity")
        gravity = _GRAVITY if given is None else given.numbers_inside(3)
    elif world is not None:
        world.pass_over("gravity")
    title = (world if world is not None and len(models) > 1 else models[0]).plant_name()
    builder = PlantBuilder(title if name is None else name, gravity=gravity)
    visuals = SdfVisuals(folder_of(source))
    loader = _Loader(builder, visuals, unphysical, is_single=len(models) == 1)
    if world is not None:
        world.pass_over(*_OF_WORLDS)
        loader.add_frames(world, "")
    for model in models:
        loader.declare(model, "", "world")
    for model in models:
        loader.load(model, "")
    loader.let_float()
    return loader.finish(root)


class _Loader(Loader):
    """Adds models to a builder: first all frames, then what is in them."""

    def __init__(
        self, builder: PlantBuilder, visuals: SdfVisuals, unphysical: Unphysical, *, is_single: bool
    ) -> None:
        super().__init__(builder, visuals, unphysical)
        self._is_single = is_single
        self._frames = FrameGraph()
        self._links: dict[Body, Element] = {}
        self._names: dict[Body, str] = {}
        self._groups = nx.utils.UnionFind()

    # Frames ----------------------------------------------------------------------------------

    def declare(self, model: Element, scope: str, outer: str) -> None:
        """Add the frames of a model and of what is in it."""
        full = scope + model.text("name")
        if model.attributes.get("placement_frame"):
            raise model.refusal(expected="no placement_frame", found="one")
        inner = f"{full}::"
        names = [each.text("name") for each in model.children("link")]
        nested = model.children("model")
        first = names[0] if names else (nested[0].text("name") if nested else None)
        canonical = model.text_or("canonical_link", first or "")
        if not canonical:
            raise model.refusal(expected="a <link>", found="none")
        self._frames.add(
            full, model, scope=scope, default=outer, attached_to=scoped(canonical, inner)
        )
        for link in model.children("link"):
            own = inner + link.text("name")
            self._frames.add(own, link, scope=inner, default=full, attached_to=own)
        for joint in model.children("joint"):
            child = scoped(joint.required("child").content, inner)
            own = inner + joint.text("name")
            self._frames.add(own, joint, scope=inner, default=child, attached_to=child)
        self.add_frames(model, inner)
        for each in nested:
            self.declare(each, inner, full)

    def add_frames(self, owner: Element, scope: str) -> None:
        """Add the frames with names of a model or of a world."""
        for frame in owner.children("frame"):
            outer = scope.removesuffix("::") or "world"
            given = frame.text_or("attached_to", "")
            attached_to = scoped(given, scope) if given else outer
            self._frames.add(
                scope + frame.text("name"),
                frame,
                scope=scope,
                default=attached_to,
                attached_to=attached_to,
            )

    def _name(self, full: str) -> str:
        """Return the name in the plant."""
        return plant_name(full.partition("::")[2] if self._is_single else full)

    # Contents --------------------------------------------------------------------------------

    def load(self, model: Element, scope: str, *, is_static: bool = False) -> None:
        """Add the links, frames and joints of a model."""
        inner = f"{scope}{model.text('name')}::"
        is_static = model.is_set("static") or is_static
        model.pass_over(*_OF_MODELS)
        for link in model.children("link"):
            self._add_link(link, inner)
        for each in model.children("model"):
            self.load(each, inner, is_static=is_static)
        for frame in model.children("frame"):
            full = inner + frame.text("name")
            pose = self._frames.on_body(full, frame)
            body = self._bodies[self._frames.body(full, frame)]
            with frame.blamed():
                self.builder.add_frame(self._name(full), body, pose)
        if is_static:
            for link in model.children("link"):
                body = self._bodies[inner + link.text("name")]
                pose = self._frames.pose(inner + link.text("name"), link)
                weld = WeldJoint(
                    f"world_welds_to_{body.name}",
                    self.builder.add_frame(f"{body.name}_base", self.builder.world, pose),
                    body,
                )
                self.builder.add_joint(weld)
            for joint in model.children("joint"):
                self.left_out.add(f"{joint} of a static model", "joint of a static model")
                joint.pass_over()
            return
        for joint in model.children("joint"):
            self._add_joint(joint, inner)
        for joint in model.children("joint"):
            self._add_mimic(joint, inner)

    def _add_link(self, link: Element, scope: str) -> None:
        full = scope + link.text("name")
        for key, usual in (("gravity", "true"), ("kinematic", "false")):
            given = link.children(key)
            if given and given[0].content not in (usual, str(int(usual == "true"))):
                self.left_out.add(f"{given[0]}: {given[0].content}", f"{key} of links")
        shape = self.visuals.shape_of(link)
        inertia = self._inertia(link)
        if shape.primitives:
            inertia = inertia.with_shape(shape)
        with link.blamed():
            body = self.builder.add_body(
                self._name(full), inertia, model_instance=plant_name(scope.removesuffix("::"))
            )
        self._bodies[full] = body
        self._links[body], self._names[body] = link, full

    def _inertia(self, link: Element) -> SpatialInertia:
        """Return the inertia of a link, with the numbers of SDF for what is not given."""
        inertial = link.child("inertial")
        if inertial is None:
            return SpatialInertia(1.0, inertia=[1.0, 1.0, 1.0])
        if inertial.text_or("auto", "false") in TRUE:
            raise inertial.refusal(expected="inertia that is given", found="auto")
        inertia, six = inertial.child("inertia"), np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
        if inertia is not None:
            for k, key in enumerate(("ixx", "iyy", "izz", "ixy", "ixz", "iyz")):
                six[k] = inertia.number_of(key, six[k])
        pose = pose_in_link(inertial)
        return self._inertia_of(inertial, inertial.number_of("mass", 1.0), six, pose)

    def _add_joint(self, element: Element, scope: str) -> None:
        full = scope + element.text("name")
        parent, child = (
            self._bodies[self._frames.body(scoped(element.required(key).content, scope), element)]
            for key in ("parent", "child")
        )
        X_WJ = self._frames.pose(full, element)

        def rotation(frame: str) -> npt.NDArray[np.float64]:
            """Return the orientation of a frame in that of the joint."""
            return np.asarray(X_WJ.R.T @ self._frames.pose(scoped(frame, scope), element).R)

        is_loop = self._groups[parent] == self._groups[child]
        self._groups.union(parent, child)
        add_sdf_joint(
            self.builder,
            element,
            self._name(full),
            (parent, self._relative(parent, X_WJ)),
            (child, self._relative(child, X_WJ)),
            rotation,
            is_loop=is_loop,
            left_out=self.left_out,
        )

    def _relative(self, body: Body, X_WF: RigidTransform) -> RigidTransform:
        """Return a pose in the link of a body."""
        if body.is_world:
            return X_WF
        link = self._links[body]
        return relative_pose(self._frames.pose(self._names[body], link), X_WF)

    def _add_mimic(self, element: Element, scope: str) -> None:
        """Couple a joint to the one that it follows: q = multiplier (q' - reference) + offset."""
        axis = element.child("axis")
        mimic = None if axis is None else axis.child("mimic")
        if mimic is None:
            return
        followed = self._name(scoped(mimic.text("joint"), scope))
        joint = self.builder.joint(self._name(scope + element.text("name")))
        multiplier, offset, reference = (
            mimic.number_of(key, 0.0) for key in ("multiplier", "offset", "reference")
        )
        with mimic.blamed():
            other = self.builder.joint(followed)
            shift = offset - multiplier * reference
            gear = GearPair(f"{joint.name}_mimic", joint, other, multiplier, shift)
            self.builder.add_constraint(gear)

    def let_float(self) -> None:
        """Let what is not connected to the world start where the file has it."""
        for body in loose_bases(self.builder):
            joint = QuaternionFloatingJoint(body.name, self.builder.world, body)
            joint.default_pose = self._frames.pose(self._names[body], self._links[body])
            self.builder.add_joint(joint)


#: What matters to renderers alone.
_RENDERING = ("cast_shadows", "transparency", "laser_retro", "visibility_flags", "meta", "plugin")


class SdfVisuals(Visuals):
    """Reads what the links of a model look like."""

    def pose(self, visual: Element) -> RigidTransform:
        """Return the pose of a visual in its link."""
        visual.pass_over(*_RENDERING)
        return pose_in_link(visual)

    def geometry(self, visual: Element) -> BodyShape:
        """Return the shape of a visual in its own frame."""
        shape = only_shape(visual)
        match shape.tag:
            case "box":
                return BodyShape.box(size=shape.required("size").numbers_inside(3))
            case "sphere":
                return BodyShape.sphere(radius=shape.required("radius").number_inside())
            case "ellipsoid":
                return BodyShape.ellipsoid(semi_axes=shape.required("radii").numbers_inside(3))
            case "cylinder" | "capsule":
                radius, length = (
                    shape.required(key).number_inside() for key in ("radius", "length")
                )
                make = BodyShape.cylinder if shape.tag == "cylinder" else BodyShape.capsule
                return make(radius=radius, length=length)
            case "mesh":
                scale = shape.child("scale")
                factors = np.ones(3) if scale is None else scale.numbers_inside(3)
                return self.mesh(shape.required("uri").content, factors)
            case "empty":
                return BodyShape()
        expected = "box, sphere, ellipsoid, cylinder, capsule or mesh"
        raise shape.refusal(expected=expected, found=shape.tag)

    def color(self, material: Element) -> str | None:
        """Return the diffuse color of a material, or the ambient one."""
        given = [material.child(key) for key in ("diffuse", "ambient")]
        material.pass_over("specular", "emissive", "lighting")
        shares = next((each for each in given if each is not None), None)
        return None if shares is None else color_code(shares.numbers_inside(3, 4))
