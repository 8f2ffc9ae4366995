"""The bushing without gimbal lock."""

from __future__ import annotations

from typing import Any

from flexure.blocks.forces.bushings.bushing_base import Bushing
from flexure.blocks.forces.bushings.gimbal_free_bushing_law import RotationVectorBushingLaw


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
