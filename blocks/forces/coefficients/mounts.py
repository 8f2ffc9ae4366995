"""Constants of a bushing that replaces a joint: its stiff axes, and their damping.

Torques and forces of the bushing are those of Drake's LinearBushingRollPitchYaw: ``τ = -k q - d q̇``
for the roll, pitch and yaw angles q, ``f = -K x - D ẋ`` for the displacements x.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from flexure.blocks.forces.coefficients.compliance import damping_from_ratio
from flexure.blocks.multibody.joints.base.checks import spread
from flexure.blocks.signals.argument_shapes import Axis, is_axis
from flexure.diagrams.checks.errors import DeclarationError, ValueRefusedError
from flexure.diagrams.interface.option_names import AnswersOtherWords, answers_other_words
from flexure.diagrams.values.arrays import FloatArray, as_numbers, bounded

#: One number for each axis.
Triple: TypeAlias = tuple[float, float, float]

_ATTEMPT = "Cannot make BushingConstants"


@dataclass(frozen=True, init=False)
class BushingConstants(AnswersOtherWords):
    """Stiffness and damping of a bushing along each axis; none may be negative.

    Each argument is one number for all three axes, or three of them. The constructors named after
    joints choose the axes that are stiff. Their damping is zero; `with_damping_ratio` and
    `with_time_constant` return the same bushing with damping on its stiff axes.

    Attributes
    ----------
    torque_stiffness : tuple of float
        Torsional stiffness about roll, pitch and yaw, in N m/rad.
    torque_damping : tuple of float
        Torsional damping, in N m s/rad.
    force_stiffness : tuple of float
        Stiffness along x, y and z, in N/m.
    force_damping : tuple of float
        Damping along x, y and z, in N s/m.

    Raises
    ------
    DeclarationError
        When an entry is negative or not finite.

    See Also
    --------
    LinearBushing : The bushing that these constants describe.

    Notes
    -----
    As a substitute for a joint, a bushing violates its constraints a little: by q = M/k under a
    load M. Stiffer constants come closer to the joint, and cost the integration more steps. The
    angles do not wrap, and the pitch must stay off ±π/2.

    Examples
    --------
    A hinge about z that gives way by 1 mm under 100 N, and by 0.01 rad under 2 N m:

    >>> hinge = BushingConstants.revolute(
    ...     "z", torque_stiffness=2.0 / 0.01, force_stiffness=100.0 / 0.001
    ... )
    >>> hinge.torque_stiffness
    (200.0, 200.0, 0.0)
    >>> hinge.with_damping_ratio(1.0, inertia=0.5, mass=2.5).force_damping
    (1000.0, 1000.0, 1000.0)
    """

    torque_stiffness: Triple
    torque_damping: Triple
    force_stiffness: Triple
    force_damping: Triple

    def __init__(
        self,
        torque_stiffness: npt.ArrayLike = 0.0,
        torque_damping: npt.ArrayLike = 0.0,
        force_stiffness: npt.ArrayLike = 0.0,
        force_damping: npt.ArrayLike = 0.0,
    ) -> None:
        for field, value in zip(
            fields(self),
            (torque_stiffness, torque_damping, force_stiffness, force_damping),
            strict=True,
        ):
            object.__setattr__(self, field.name, _per_axis(field.name, value))

    @classmethod
    @answers_other_words
    def revolute(
        cls,
        axis: Axis,
        torque_stiffness: npt.ArrayLike,
        force_stiffness: npt.ArrayLike,
        free_damping: float = 0.0,
    ) -> BushingConstants:
        """Return a mount that turns about an axis, and is stiff otherwise.

        Parameters
        ----------
        axis : {"x", "y", "z"}
            The axis that it turns about.
        torque_stiffness : array_like
            Torsional stiffness in N m/rad, for all axes or for each; that about the free axis
            becomes zero.
        force_stiffness : array_like
            Stiffness along the axes in N/m.
        free_damping : float
            Torsional damping about the free axis in N m s/rad.

        Returns
        -------
        BushingConstants

        Raises
        ------
        DeclarationError
            When there is no such axis, or a constant is negative or not finite.
        """
        free = is_axis(axis, _ATTEMPT)
        k = np.where(free, 0.0, _per_axis("torque_stiffness", torque_stiffness))
        damping = np.where(free, spread(free_damping, 3, f"{_ATTEMPT} with free_damping"), 0.0)
        return cls(k, damping, force_stiffness, 0.0)

    @classmethod
    @answers_other_words
    def prismatic(
        cls,
        axis: Axis,
        torque_stiffness: npt.ArrayLike,
        force_stiffness: npt.ArrayLike,
        free_damping: float = 0.0,
    ) -> BushingConstants:
        """Return a mount that slides along an axis, and is stiff otherwise.

        Parameters
        ----------
        axis : {"x", "y", "z"}
            The axis that it slides along.
        torque_stiffness : array_like
            Torsional stiffness in N m/rad, for all axes or for each.
        force_stiffness : array_like
            Stiffness along the axes in N/m; that along the free axis becomes zero.
        free_damping : float
            Damping along the free axis in N s/m.

        Returns
        -------
        BushingConstants

        Raises
        ------
        DeclarationError
            When there is no such axis, or a constant is negative or not finite.
        """
        free = is_axis(axis, _ATTEMPT)
        k = np.where(free, 0.0, _per_axis("force_stiffness", force_stiffness))
        damping = np.where(free, spread(free_damping, 3, f"{_ATTEMPT} with free_damping"), 0.0)
        return cls(torque_stiffness, 0.0, k, damping)

    @classmethod
    @answers_other_words
    def ball(
        cls, force_stiffness: npt.ArrayLike, free_damping: npt.ArrayLike = 0.0
    ) -> BushingConstants:
        """Return a mount that turns freely and holds its place: a ball in a socket.

        Parameters
        ----------
        force_stiffness : array_like
            Stiffness along the axes in N/m.
        free_damping : array_like
            Torsional damping in N m s/rad.

        Returns
        -------
        BushingConstants

        Raises
        ------
        DeclarationError
            When a constant is negative or not finite.
        """
        return cls(0.0, free_damping, force_stiffness, 0.0)

    @classmethod
    @answers_other_words
    def weld(
        cls, torque_stiffness: npt.ArrayLike, force_stiffness: npt.ArrayLike
    ) -> BushingConstants:
        """Return a mount that is stiff about and along all axes.

        Parameters
        ----------
        torque_stiffness : array_like
            Torsional stiffness in N m/rad.
        force_stiffness : array_like
            Stiffness along the axes in N/m.

        Returns
        -------
        BushingConstants

        Raises
        ------
        DeclarationError
            When a constant is negative or not finite.
        """
        return cls(torque_stiffness, 0.0, force_stiffness, 0.0)

    @answers_other_words
    def with_damping_ratio(
        self, damping_ratio: npt.ArrayLike, *, inertia: npt.ArrayLike, mass: npt.ArrayLike
    ) -> BushingConstants:
        """Return the bushing with damping for a damping ratio: d = 2 ζ √(I k), 2 ζ √(m k).

        An axis without stiffness keeps its damping.

        Parameters
        ----------
        damping_ratio : array_like
            Damping ratio ζ >= 0; 1 for critical damping.
        inertia : array_like
            Characteristic moment of inertia in kg m² about all axes, or about each.
        mass : array_like
            Characteristic mass in kg.

        Returns
        -------
        BushingConstants

        Raises
        ------
        ValueRefusedError
            When the ratio is negative, inertia or mass not positive, or a number not finite.
        """
        damping_ratio, inertia, mass = (
            spread(value, 3, f"Cannot damp a bushing by {name}")
            for name, value in (
                ("damping_ratio", damping_ratio),
                ("inertia", inertia),
                ("mass", mass),
            )
        )
        return self._with_damping(
            damping_from_ratio(damping_ratio, self.torque_stiffness, inertia),
            damping_from_ratio(damping_ratio, self.force_stiffness, mass),
        )

    def with_time_constant(self, time_constant: float) -> BushingConstants:
        """Return the bushing with damping in proportion to stiffness: d = T k.

        T is the time in which spring and damper by themselves creep back to 1/e of a displacement.
        A load with the natural frequency ωn then has the damping ratio ζ = ωn T/2, so that
        T = 2 ζ/ωn is the rule for a damping ratio where ωn is known instead of an inertia, for
        instance from `natural_frequency_from_settling_time`. An axis without stiffness keeps its
        damping.

        Parameters
        ----------
        time_constant : float
            T >= 0 in s.

        Returns
        -------
        BushingConstants

        Raises
        ------
        ValueRefusedError
            When T is negative or not finite.
        """
        attempt = "Cannot damp a bushing by time_constant"
        T = bounded(time_constant, attempt, lower=0.0, unit="s")
        return self._with_damping(
            T * np.array(self.torque_stiffness), T * np.array(self.force_stiffness)
        )

    def _with_damping(
        self, torque_damping: FloatArray, force_damping: FloatArray
    ) -> BushingConstants:
        """Return a copy with other damping on the axes that are stiff."""
        return BushingConstants(
            self.torque_stiffness,
            np.where(np.array(self.torque_stiffness) > 0.0, torque_damping, self.torque_damping),
            self.force_stiffness,
            np.where(np.array(self.force_stiffness) > 0.0, force_damping, self.force_damping),
        )


def _per_axis(name: str, value: npt.ArrayLike) -> Triple:
    """Return three finite numbers that are not negative, or name the one that is not so."""
    attempt = f"Cannot make BushingConstants with {name}"
    try:
        numbers = as_numbers(value, attempt)
    except ValueRefusedError as error:
        raise DeclarationError(attempt, expected="real numbers", found=error.found) from None
    if numbers.shape not in ((), (3,)):
        raise DeclarationError(
            attempt, expected="one number, or three", found=f"an array of shape {numbers.shape}"
        )
    x, y, z = (float(number) for number in np.broadcast_to(numbers, 3))
    for k, number in enumerate((x, y, z)):
        if not 0.0 <= number < np.inf:
            raise DeclarationError(
                f"Cannot make BushingConstants with {name}[{k}]",
                expected="a finite number >= 0",
                found=f"{number:g}",
            )
    return x, y, z
