"""Linear bushings: Drake's with roll, pitch and yaw, and one without gimbal lock."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from flexure.blocks.forces.bushings.bushing_law import (
    BushingLaw,
    RollPitchYawBushingLaw,
    RotationVectorBushingLaw,
)
from flexure.blocks.forces.bushings.halfway_element import HalfwayElement
from flexure.blocks.forces.coefficients.mounts import BushingConstants
from flexure.blocks.multibody.bodies.bodies import FrameLike
from flexure.diagrams.values.arrays import Array, FloatArray, as_number, as_numbers
from flexure.diagrams.values.parameters import NumericParameter


class Bushing(HalfwayElement):
    """Base class of the bushings between a frame A and a frame C.

    Its forces are those of a `BushingLaw`, which a subclass chooses by implementing `law`::

        on C about Co:  ( t - ½ (r×f + σ × (r×f)),   f)
        on A about Ao:  (-t - ½ (r×f - σ × (r×f)),  -f)

    Outputs are those of `HalfwayElement`. Constants, one for each angle or axis of B, or for all,
    are stiffnesses >= 0 in N m/rad and N/m and dampings >= 0 in N m s/rad and N s/m.
    """

    drawn_as = "frames"

    def __init__(
        self,
        name: str,
        frame_a: FrameLike,
        frame_c: FrameLike,
        *,
        torque_stiffness: npt.ArrayLike,
        torque_damping: npt.ArrayLike,
        force_stiffness: npt.ArrayLike,
        force_damping: npt.ArrayLike,
    ) -> None:
        super().__init__(name, frame_a, frame_c)
        declare = self._declare_constants
        self.torque_stiffness = declare("torque_stiffness", torque_stiffness, "N m/rad")
        self.torque_damping = declare("torque_damping", torque_damping, "N m s/rad")
        self.force_stiffness = declare("force_stiffness", force_stiffness, "N/m")
        self.force_damping = declare("force_damping", force_damping, "N s/m")
        self._declare_outputs()

    @classmethod
    def from_constants(
        cls,
        name: str,
        frame_a: FrameLike,
        frame_c: FrameLike,
        constants: BushingConstants,
        **options: Any,
    ) -> Self:
        """Make a bushing with the constants of a mount or of a fit.

        Parameters
        ----------
        name : str
            Name of the block.
        frame_a, frame_c : Frame or Body
            The frames A and C.
        constants : BushingConstants
            Stiffness and damping.
        **options
            Further arguments of the constructor.

        Returns
        -------
        Bushing
            Of the class on which this is called.

        Examples
        --------
        >>> from flexure.blocks.forces.bushings.bushing import LinearBushingRollPitchYaw
        >>> from flexure.blocks.multibody.bodies.bodies import Body
        >>> wall, door = Body("wall"), Body("door")
        >>> constants = BushingConstants.revolute("z", torque_stiffness=200.0, force_stiffness=1e5)
        >>> hinge = LinearBushingRollPitchYaw.from_constants("hinge", wall, door, constants)
        >>> hinge.torque_stiffness_constants
        array([200., 200.,   0.])
        """
        return cls(
            name,
            frame_a,
            frame_c,
            torque_stiffness=constants.torque_stiffness,
            torque_damping=constants.torque_damping,
            force_stiffness=constants.force_stiffness,
            force_damping=constants.force_damping,
            **options,
        )

    # Declarations ----------------------------------------------------------------------------

    def _declare_constants(self, name: str, value: npt.ArrayLike, unit: str) -> NumericParameter:
        """Declare three constants that are not negative, from three numbers or from one."""
        attempt = f"Cannot declare parameter '{self.label}.{name}'"
        numbers = as_numbers(value, attempt)
        numbers = np.full(3, numbers) if numbers.shape == () else as_number(numbers, (3,), attempt)
        return self.declare_numeric_parameter(name, numbers, unit=unit, lower=0.0)

    # Default constants -----------------------------------------------------------------------

    @property
    def torque_stiffness_constants(self) -> FloatArray:
        """Torsional stiffness in new contexts, in N m/rad."""
        return self._default(self.torque_stiffness)

    @property
    def torque_damping_constants(self) -> FloatArray:
        """Torsional damping in new contexts, in N m s/rad."""
        return self._default(self.torque_damping)

    @property
    def force_stiffness_constants(self) -> FloatArray:
        """Stiffness along the axes of B in new contexts, in N/m."""
        return self._default(self.force_stiffness)

    @property
    def force_damping_constants(self) -> FloatArray:
        """Damping along the axes of B in new contexts, in N s/m."""
        return self._default(self.force_damping)

    @staticmethod
    def _default(parameter: NumericParameter) -> FloatArray:
        constants: FloatArray = parameter.default
        return constants

    # Equations -------------------------------------------------------------------------------

    @abstractmethod
    def law(self, context: Any) -> BushingLaw:
        """Return the law with the constants of a context."""

    def constants(self, context: Any) -> tuple[Array, Array, Array, Array]:
        """Return stiffness and damping of torques, then of forces, as laws take them."""
        return (
            self.torque_stiffness(context),
            self.torque_damping(context),
            self.force_stiffness(context),
            self.force_damping(context),
        )


class LinearBushingRollPitchYaw(Bushing):
    """A bushing between the frames A and C, with torques from roll, pitch and yaw.

    With the angles q of R_AC = Rz(q₂) Ry(q₁) Rx(q₀), the position x of Co from Ao expressed in the
    frame B halfway between A and C, and diagonal matrices of the constants::

        τ = -(K₀ q + D₀ q̇)                torques about the axes of the angles
        f = -(K x + D ẋ)                  force on C, expressed in B
        V = ½ q · K₀ q + ½ x · K x        stored energy

    The torque t on C has the power t · w_AC = τ · q̇. The force f acts on C, and -f on A, at the
    point halfway between Ao and Co. The law `RollPitchYawBushingLaw` has all equations.

    Drake's forces take the angular velocity of B for half of that of C, which is exact only for
    rotations about a fixed axis. No potential belongs to them: where the entries of
    ``force_stiffness`` differ, the springs gain or lose energy around a loop of orientations, by an
    amount of second order in the angles, as the torsional energy is. With
    ``energy_consistent=True`` the rate ẋ is exact, and moments change so that no such energy
    appears; the price is that the moments of f about Co and of -f about Ao differ.

    Inputs: ``pose_A``, ``velocity_A``, ``pose_C`` and ``velocity_C`` of the bodies, but for the
    world. Outputs: ``force_on_A`` and ``force_on_C`` on the bodies about their origins in the
    world, ``force_on_frame_A`` about Ao expressed in A and ``force_on_frame_C`` about Co expressed
    in C, all in N m and N; ``angles`` in rad, ``angle_rates`` in rad/s, ``position`` x in m;
    ``stored_energy`` in J, ``conservative_power`` and ``non_conservative_power`` in W.

    Parameters
    ----------
    name : str
        Name of the block.
    frame_a, frame_c : Frame or Body
        The frames A and C on the links L0 and L1; both may be on one body, and either on the world.
    torque_stiffness : array_like
        Diagonal of K₀ for roll, pitch and yaw, or one number for all, >= 0, in N m/rad.
    torque_damping : array_like
        Diagonal of D₀, >= 0, in N m s/rad.
    force_stiffness : array_like
        Diagonal of K along x, y and z of B, >= 0, in N/m.
    force_damping : array_like
        Diagonal of D, >= 0, in N s/m.
    energy_consistent : bool
        Whether springs conserve energy exactly, instead of Drake's forces.

    Raises
    ------
    DeclarationError
        When a frame is missing.
    ValueRefusedError
        When a constant is negative or not finite, or there are not three of a kind.
    EvaluationError
        When forces, rates or powers are evaluated within 0.46 degrees of gimbal lock, which is at a
        pitch of ±90 degrees; if energy is to be consistent, also within 10 degrees of where springs
        jump.

    See Also
    --------
    LinearBushing : A bushing between the frames A and C.

    Notes
    -----
    Differences from Drake 1.51: energy and powers are computed, and the energy that Drake's springs
    gain or lose counts as non-conservative power; there is the energy-consistent variant; negative
    constants are refused in contexts, too.

    Torques of stiffness jump where roll or yaw pass ±180 degrees, and forces and their energy where
    the rotation passes a half turn, unless the entries of K are equal. With
    ``energy_consistent=True`` roll and yaw of more than 170 degrees with a stiffness, and rotations
    of more than 170 degrees with unequal ones, are refused; Drake's forces jump as in Drake. Gimbal
    lock is refused where forces are evaluated in it; a fast motion may pass between two steps of an
    integration. `LinearBushing` has no gimbal lock, and all of its axes are alike.

    `BushingConstants` helps to choose constants; see `from_constants`.

    Examples
    --------
    >>> from flexure.blocks.multibody.bodies.bodies import Body
    >>> mount = LinearBushingRollPitchYaw(
    ...     "mount",
    ...     Body("frame"),
    ...     Body("engine"),
    ...     torque_stiffness=[50.0, 50.0, 80.0],
    ...     torque_damping=0.5,
    ...     force_stiffness=[4e4, 4e4, 9e4],
    ...     force_damping=200.0,
    ... )
    >>> context = mount.create_default_context()
    >>> mount.force_damping.set(context, [150.0, 150.0, 300.0])
    >>> mount.torque_damping_constants
    array([0.5, 0.5, 0.5])
    """

    def __init__(
        self,
        name: str,
        frame_a: FrameLike,
        frame_c: FrameLike,
        *,
        torque_stiffness: npt.ArrayLike,
        torque_damping: npt.ArrayLike,
        force_stiffness: npt.ArrayLike,
        force_damping: npt.ArrayLike,
        energy_consistent: bool = False,
    ) -> None:
        super().__init__(
            name,
            frame_a,
            frame_c,
            torque_stiffness=torque_stiffness,
            torque_damping=torque_damping,
            force_stiffness=force_stiffness,
            force_damping=force_damping,
        )
        self.energy_consistent = energy_consistent

    def law(self, context: Any) -> RollPitchYawBushingLaw:
        """Return the law with the constants of a context."""
        return RollPitchYawBushingLaw(
            *self.constants(context), energy_consistent=self.energy_consistent, label=self.label
        )


class LinearBushing(Bushing):
    """A bushing between the frames A and C, with torques from the rotation vector.

    With the rotation vector θ from A to C, which has the same components in A and C and in the
    frame B halfway between them, the position x of Co from Ao expressed in B, and diagonal matrices
    of the constants::

        τ = -(K₀ θ + D₀ θ̇)                torques
        f = -(K x + D ẋ)                  force on C, expressed in B
        V = ½ θ · K₀ θ + ½ x · K x        stored energy

    Moments and forces on the bodies are those with the power τ · θ̇ + f · ẋ, with exact rates θ̇ and
    ẋ: the springs are conservative, and the dampers only dissipate. The same bushing from C to A
    exerts the same forces. The law `RotationVectorBushingLaw` has all equations.

    Inputs: ``pose_A``, ``velocity_A``, ``pose_C`` and ``velocity_C`` of the bodies, but for the
    world. Outputs: ``force_on_A`` and ``force_on_C`` on the bodies about their origins in the
    world, ``force_on_frame_A`` about Ao expressed in A and ``force_on_frame_C`` about Co expressed
    in C, all in N m and N; ``angles`` θ in rad, ``angle_rates`` θ̇ in rad/s, ``position`` x in m;
    ``stored_energy`` in J, ``conservative_power`` and ``non_conservative_power`` in W.

    Parameters
    ----------
    name : str
        Name of the block.
    frame_a, frame_c : Frame or Body
        The frames A and C; both may be on one body, and either on the world.
    torque_stiffness : array_like
        Diagonal of K₀ about x, y and z of B, or one number for all, >= 0, in N m/rad.
    torque_damping : array_like
        Diagonal of D₀, >= 0, in N m s/rad.
    force_stiffness : array_like
        Diagonal of K along x, y and z of B, >= 0, in N/m.
    force_damping : array_like
        Diagonal of D, >= 0, in N s/m.

    Raises
    ------
    DeclarationError
        When a frame is missing.
    ValueRefusedError
        When a constant is negative or not finite, or there are not three of a kind.
    EvaluationError
        When springs that jump at a half turn are evaluated at a rotation of more than 170 degrees.

    See Also
    --------
    LinearBushingRollPitchYaw : A bushing between the frames A and C.
    GeneralBushing : A bushing between frames A and C.

    Notes
    -----
    Drake has no such element. For small rotations, and for turns about one of the axes x, y and z,
    it agrees with the energy-consistent `LinearBushingRollPitchYaw`.

    Valid for rotations of less than 170 degrees. At a half turn the shortest rotation from A to C
    changes to the opposite axis: θ jumps to -θ, B by a half turn, springs that have pulled back
    would pull onwards, and their energy would jump. So larger rotations are refused, unless nothing
    jumps, that is where all of K₀ is zero and the entries of K are equal: such a bushing holds two
    points together while the frames turn as they like.

    `BushingConstants` helps to choose constants; see `from_constants`.

    Examples
    --------
    >>> import numpy as np
    >>> from flexure.blocks.multibody.bodies.bodies import Body
    >>> mount = LinearBushing(
    ...     "mount",
    ...     Body("frame"),
    ...     Body("engine"),
    ...     torque_stiffness=50.0,
    ...     torque_damping=0.5,
    ...     force_stiffness=[4e4, 4e4, 9e4],
    ...     force_damping=200.0,
    ... )
    >>> context = mount.create_default_context()
    >>> frame, engine = mount.attachments
    >>> frame.pose.fix(context, [*np.eye(3).ravel(), 0.0, 0.0, 0.0])
    >>> engine.pose.fix(context, [*np.eye(3).ravel(), 0.0, 0.0, 0.01])
    >>> mount.stored_energy.eval(context)
    array([4.5])
    """

    def law(self, context: Any) -> RotationVectorBushingLaw:
        """Return the law with the constants of a context."""
        return RotationVectorBushingLaw(*self.constants(context), label=self.label)
