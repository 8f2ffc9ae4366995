"""Rigid bodies with their thermal expansion, and the frames that are fixed on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np

from flexure.blocks.math import RigidTransform, compose_transforms, relative_pose, rotate_spatial
from flexure.blocks.multibody.bodies.body_motion import (
    PointMotion,
    PoseLike,
    checked_pose,
    motion_at,
    seen_from,
)
from flexure.blocks.multibody.bodies.body_shape import BodyShape
from flexure.blocks.multibody.bodies.inertia import SpatialInertia
from flexure.blocks.multibody.bodies.plant_base import Part, TreeBase
from flexure.diagrams import LeafSystem
from flexure.diagrams.checks.arguments import require
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.systems.copying import refuse_copy
from flexure.diagrams.systems.ports import InputPort, LeafOutputPort
from flexure.diagrams.values.arrays import Array, FloatArray, bounded, check_name, freeze
from flexure.diagrams.values.parameters import NumericParameter

if TYPE_CHECKING:
    from flexure.diagrams.contexts.context import Context
    from flexure.diagrams.values.parameters import NumericParameter


class Body(Part):
    """A rigid body of a plant, made by `PlantBuilder.add_body`.

    A body has a frame of its own, with the origin Bo, in which its center of mass and its inertia
    are given. If a frame is expected, you can also pass the body; it means this frame.

    Parameters
    ----------
    name : str
        Name within the plant.
    inertia : SpatialInertia, optional
        Default values of mass, center of mass and inertia; None for the world, and for the nodes
        of force elements, which have no mass but what elements give them.
    model_instance : str, optional
        Name of the group of bodies it belongs to.

    Attributes
    ----------
    frame : Frame
        The frame of the body itself.
    number : int or None
        Position among the bodies of the plant; 0 is the world, None before it is in a plant.
    tree : MultibodyTree or None
        The block that computes its motion, once the plant is built.
    shape : BodyShape
        What it looks like in its frame: that of its inertia, and what `PlantBuilder.add_shape` has
        added.
    expansion : BodyExpansion or None
        The block with its thermal strain, after `add_thermal_expansion`.

    Raises
    ------
    DeclarationError
        When the name cannot be part of a path, or the inertia is something else.

    See Also
    --------
    PlantBuilder : Adds bodies.
    Frame : A place on a body.
    SpatialInertia : Mass, center and moments of inertia.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("door", gravity=(0.0, 0.0, 0.0))
    >>> panel = builder.add_body("panel", fx.SpatialInertia.point_mass(2.0), com=(0.5, 0.0, 0.0))
    >>> panel
    <Body 'panel'>
    """

    def __init__(
        self, name: str, inertia: SpatialInertia | None = None, *, model_instance: str = "default"
    ) -> None:
        self.name = check_name(name, "a body")
        fits = inertia is None or isinstance(inertia, SpatialInertia)
        wanted = "a SpatialInertia, or None"
        require(fits, inertia, f"Cannot make body '{name}'", wanted, error=DeclarationError)
        self.inertia = inertia
        self.shape = BodyShape() if inertia is None else inertia.shape
        self.model_instance = model_instance
        self.frame = Frame(self.name, self)
        self.number: int | None = None
        self.tree: TreeBase | None = None
        self.expansion: BodyExpansion | None = None

    def add_thermal_expansion(
        self, coefficient: float, *, reference_temperature: float = 293.15
    ) -> None:
        """Let the frames on the body move apart with its temperature.

        The position p of a frame of the body becomes (1 + α (T - T_ref)) p. The plant then has the
        input ``<name>.temperature`` in K, and the block ``<name>_expansion`` the parameters. Call
        this before elements are attached to the body; the world may expand, too.

        Parameters
        ----------
        coefficient : float
            Coefficient of expansion α in 1/K.
        reference_temperature : float
            Temperature T_ref in K at which frames are where they were placed.

        Raises
        ------
        DeclarationError
            When the body expands already, or its plant is built. Building a plant raises it where
            elements were attached before, and for joints and constraints away from the origin of
            the body, which do not follow.
        ValueRefusedError
            When a number is not finite, or the temperature is negative.

        See Also
        --------
        Beam : Expands with ``reference_temperature``.

        Notes
        -----
        Mass, center of mass, inertia and shape stay, and so do points that an element has beside
        its frame, as springs between points. The temperature changes slowly: its rate neither moves
        frames nor is its work in the ledger, which balances while the temperature rests.

        Examples
        --------
        >>> import flexure as fx
        >>> builder = fx.PlantBuilder("stage", gravity=(0.0, 0.0, 0.0))
        >>> table = builder.add_body("table", fx.SpatialInertia.point_mass(1.0))
        >>> table.add_thermal_expansion(23e-6)
        >>> corner = builder.add_frame("corner", table, (0.1, 0.0, 0.0))
        >>> context = builder.build().create_default_context()
        >>> context.set("table.temperature", 303.15)
        >>> print(f"{1e6 * (corner.pose(context).p[0] - 0.1):.1f} um")
        23.0 um
        """
        attempt = f"Cannot let body '{self.name}' expand"
        if self.expansion is not None or self.tree is not None:
            state = "a body of a built plant" if self.expansion is None else "one that does"
            raise DeclarationError(attempt, expected="a body that does not yet", found=state)
        self.expansion = BodyExpansion(self.name, coefficient, reference_temperature, attempt)

    @property
    def mass(self) -> NumericParameter:
        """Mass in contexts, in kg."""
        return self._parameter("mass")

    @property
    def com(self) -> NumericParameter:
        """Position of the center of mass in contexts, from Bo, expressed in B, in m."""
        return self._parameter("com")

    @property
    def unit_inertia(self) -> NumericParameter:
        """Inertia about the center of mass per mass in contexts: xx, yy, zz, xy, xz, yz, in m²."""
        return self._parameter("unit_inertia")

    def _parameter(self, quantity: str) -> NumericParameter:
        tree, _ = self.frame.place()
        return tree.find_parameter(f"{self.name}_{quantity}")

    def pose(self, context: Context, measured_in: FrameLike | None = None) -> RigidTransform:
        """Return the pose of the body in the world or in another frame; see `Frame.pose`."""
        return self.frame.pose(context, measured_in)

    def spatial_velocity(
        self,
        context: Context,
        measured_in: FrameLike | None = None,
        expressed_in: FrameLike | None = None,
    ) -> FloatArray:
        """Return V_WB, or what `Frame.spatial_velocity` returns for the frame of the body."""
        return self.frame.spatial_velocity(context, measured_in, expressed_in)

    def spatial_acceleration(
        self,
        context: Context,
        measured_in: FrameLike | None = None,
        expressed_in: FrameLike | None = None,
    ) -> FloatArray:
        """Return A_WB, or what `Frame.spatial_acceleration` returns for the frame of the body."""
        return self.frame.spatial_acceleration(context, measured_in, expressed_in)

    @property
    def is_world(self) -> bool:
        """Whether the body is the world, which does not move."""
        return self.number == 0

    @property
    def is_node(self) -> bool:
        """Whether the body is inside of a force element that is divided."""
        return self.inertia is None and not self.is_world

    def __copy__(self) -> NoReturn:
        refuse_copy(f"body '{self.name}'", "all of its plant")

    def __repr__(self) -> str:
        return f"<Body '{self.name}'>"


class Frame:
    """A frame F that is fixed on a body B, made by `PlantBuilder.add_frame`.

    Parameters
    ----------
    name : str
        Name within the plant.
    on : Body or Frame
        What the frame is fixed on.
    pose : tuple of array_like, shapes (3, 3) and (3,), or array_like, shape (3,), optional
        The pose (R, p) of the frame in that body or frame, or the position p alone of a frame that
        is not turned there; the identity when omitted.

    Attributes
    ----------
    body : Body
        The body that carries the frame.
    X_BF : RigidTransform
        Pose of the frame in the body.

    Raises
    ------
    DeclarationError
        When it is on neither, the pose is not finite, or its matrix is no rotation.

    See Also
    --------
    Body : A rigid body of a plant.

    Examples
    --------
    >>> panel = Body("panel")
    >>> edge = Frame("edge", panel, (0.0, 0.6, 0.0))
    >>> quarter = [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]  # about z
    >>> corner = Frame("corner", edge, (quarter, (0.0, 0.0, 0.7)))
    >>> corner.X_BF.p
    array([0. , 0.6, 0.7])
    """

    def __init__(self, name: str, on: Body | Frame, pose: PoseLike | None = None) -> None:
        self.name = check_name(name, "a frame")
        attempt = f"Cannot place frame '{name}'"
        own = checked_pose(pose, attempt)
        if not isinstance(on, (Body, Frame)):
            raise DeclarationError(attempt, expected="a Frame or a Body", found=repr(on))
        if isinstance(on, Frame):
            own = compose_transforms(on.X_BF, own)
        self.body: Body = on.body if isinstance(on, Frame) else on
        self.X_BF: RigidTransform = RigidTransform(freeze(own.R), freeze(own.p))

    def expanded(self, context: Context) -> RigidTransform:
        """Return the pose in the body at its temperature."""
        if self.body.expansion is None:
            return self.X_BF
        return grown(self.X_BF, self.body.expansion.strain.eval(context)[0])

    def pose(self, context: Context, measured_in: FrameLike | None = None) -> RigidTransform:
        """Return the pose X_MF of the frame in a frame M; the world when omitted."""
        tree, number = self.place()
        placement = tree.kinematics(context)[0][number]
        X_WF = compose_transforms((placement.R_WB, placement.p_WB), self.expanded(context))
        if measured_in is None:
            return X_WF
        return relative_pose(self._other(measured_in).pose(context), X_WF)

    def spatial_velocity(
        self,
        context: Context,
        measured_in: FrameLike | None = None,
        expressed_in: FrameLike | None = None,
    ) -> FloatArray:
        """Return V_MF: angular velocity and velocity of Fo.

        Parameters
        ----------
        context : Context
            Gives q and v.
        measured_in : Frame or Body, optional
            The frame M from which the motion is seen; the world when omitted.
        expressed_in : Frame or Body, optional
            The frame whose axes the components are along; the world when omitted.

        Returns
        -------
        array, shape (6,)
            In rad/s and m/s.
        """
        return self._expressed(self._motion(context, None, measured_in).V, context, expressed_in)

    def spatial_acceleration(
        self,
        context: Context,
        measured_in: FrameLike | None = None,
        expressed_in: FrameLike | None = None,
    ) -> FloatArray:
        """Return A_MF: angular acceleration and acceleration of Fo, under all forces and inputs.

        Parameters
        ----------
        context, measured_in, expressed_in
            As in `spatial_velocity`.

        Returns
        -------
        array, shape (6,)
            In rad/s² and m/s².
        """
        tree, _ = self.place()
        A = tree.body_accelerations.eval(context)
        return self._expressed(self._motion(context, A, measured_in).A, context, expressed_in)

    def _motion(
        self, context: Context, accelerations: Sequence[Array] | None, measured_in: FrameLike | None
    ) -> PointMotion:
        """Return how the frame moves at Fo, for given accelerations of all bodies, or none."""
        tree, number = self.place()
        placements, motions, _ = tree.kinematics(context)
        A_WB = np.zeros(6) if accelerations is None else accelerations[number]
        F = motion_at(placements[number], motions[number], A_WB, self.expanded(context).p)
        if measured_in is None:
            return F
        return seen_from(self._other(measured_in)._motion(context, accelerations, None), F)

    def _expressed(
        self, vectors: Array, context: Context, expressed_in: FrameLike | None
    ) -> FloatArray:
        """Return vectors of six components along the axes of a frame, from those in the world."""
        if expressed_in is None:
            return np.asarray(vectors)
        return np.asarray(rotate_spatial(self._other(expressed_in).pose(context).R.T, vectors))

    def _other(self, place: FrameLike) -> Frame:
        """Return another frame of the same plant, else raise."""
        attempt = f"Cannot use '{self.name}' together with another frame"
        frame = as_frame(place, attempt)
        if frame.place()[0] is not self.place()[0]:
            raise DeclarationError(
                attempt, expected="frames of one plant", found=f"{frame!r} of another plant"
            )
        return frame

    def place(self) -> tuple[TreeBase, int]:
        """Return the tree and the number of the body, in a plant that is built."""
        if self.body.tree is None or self.body.number is None:
            raise DeclarationError(
                f"Cannot use '{self.name}' with a context",
                expected="a body or frame of a plant that is built",
                found="one whose plant is not built yet",
                remedy="Call PlantBuilder.build() first",
            )
        return self.body.tree, self.body.number

    def __copy__(self) -> NoReturn:
        refuse_copy(f"frame '{self.name}'", "all of its plant")

    def __repr__(self) -> str:
        return f"<Frame '{self.name}' on '{self.body.name}'>"


def grown(X_BF: RigidTransform, strain: Array) -> RigidTransform:
    """Return a pose in a body that is strained."""
    return RigidTransform(X_BF.R, (1.0 + strain) * X_BF.p)


#: What stands for a frame: the frame, or the body whose frame is meant.
FrameLike: TypeAlias = "Frame | Body"


def as_frame(place: FrameLike, attempt: str) -> Frame:
    """Return the frame that is meant, else raise DeclarationError."""
    if isinstance(place, Body):
        return place.frame
    if isinstance(place, Frame):
        return place
    raise DeclarationError(attempt, expected="a Frame or a Body", found=repr(place))


class BodyExpansion(LeafSystem):
    """The thermal strain α (T - T_ref) of a body, of `Body.add_thermal_expansion`.

    The coefficient α in 1/K and T_ref in K, the temperature at which the frames are where they were
    placed, are parameters.
    """

    temperature: InputPort
    strain: LeafOutputPort
    thermal_expansion: NumericParameter
    reference_temperature: NumericParameter

    def __init__(
        self, body: str, coefficient: float, reference_temperature: float, attempt: str
    ) -> None:
        super().__init__(f"{body}_expansion")
        alpha = bounded(coefficient, f"{attempt} with coefficient", unit="1/K")
        T = bounded(reference_temperature, f"{attempt} with reference_temperature", lower=0.0)
        declare = self.declare_numeric_parameter
        self.thermal_expansion = declare("thermal_expansion", alpha, unit="1/K")
        self.reference_temperature = declare("reference_temperature", T, unit="K", lower=0.0)
        self.temperature = self.declare_vector_input("temperature", 1, unit="K", default=[T])
        self.strain = self.declare_vector_output(
            "strain", 1, self._calc_strain, prerequisites=[self.temperature]
        )

    def _calc_strain(self, context: Any) -> Array:
        change = self.temperature(context)[0] - self.reference_temperature(context)
        return self.thermal_expansion(context) * change
