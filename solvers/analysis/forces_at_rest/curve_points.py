"""Parts of a curve of equilibria: legs of values, points, and crossings of zero."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from flexure.diagrams.concurrency.threads import cached_property
from flexure.diagrams.values.arrays import FloatArray

#: Part of the largest stiffness that counts as none.
NEUTRAL = 1e-10


@dataclass(frozen=True, eq=False)
class Leg:
    """From which values of variables and held outputs to which others."""

    # variables, held: their values at λ = 0 and at λ = 1, shape (2, m) and (2, k).
    variables: FloatArray
    held: FloatArray
    # Forces on unknowns that balance them at λ = 0, and are reduced to zero until λ = 1; None for
    # none, shape (n,), or None.
    released: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class CurvePoint:
    """A point of a curve of equilibria."""

    x: FloatArray  # the states
    reactions: FloatArray  # the forces of holders
    load: float  # λ
    along: FloatArray  # the tangent by the unknowns and λ, scaled, of the length 1
    resists: bool  # whether the stiffness is known to be positive definite, but for rounding
    # ``calc_stiffnesses() -> ndarray``, for `stiffnesses`.
    calc_stiffnesses: Callable[[], FloatArray]
    # The derivatives of what constraints and holders keep, by scaled increments; none without
    # constraints.
    rows: FloatArray
    asymmetry: float  # that of the stiffness, see `StaticPoint`
    # Half of the change of the tangent per length, behind the point, where that is known.
    bend: FloatArray | None = None

    @cached_property
    def stiffnesses(self) -> FloatArray:
        """Ascending eigenvalues of the scaled stiffness against what holders let move.

        Where it is not symmetric, they are real parts, but for pairs of complex ones magnitudes.
        """
        return self.calc_stiffnesses()

    @property
    def num_unstable(self) -> int:
        """Number of negative stiffnesses."""
        if self.resists:
            return 0
        tolerance = NEUTRAL * np.max(np.abs(self.stiffnesses), initial=0.0)
        return int(np.sum(self.stiffnesses < -tolerance))


@dataclass(frozen=True, eq=False)
class Crossing:
    """Where a stiffness becomes zero."""

    point: CurvePoint
    at: float  # how far it is from the beginning of the step
    direction: FloatArray  # scaled increments against which there is no stiffness; the length is 1
    # How much the load pulls in this direction, in parts of the stiffness a step away; next to
    # nothing at a branch point.
    pull: float


class LostError(Exception):
    """No equilibrium is found where one was looked for."""
