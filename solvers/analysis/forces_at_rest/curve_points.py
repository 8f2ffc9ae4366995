"""Parts of a curve of equilibria: legs, points, crossings of zero, linearized equations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import lapack

from flexure.diagrams.concurrency.threads import cached_property
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.forces_at_rest.static_equations import StaticPoint

#: Part of the largest stiffness that counts as none.
NEUTRAL = 1e-10
#: Part of the largest stiffness that is rounding of one that cancels.
ROUNDING = 1e-12
_ALMOST = 1e-9  # asymmetry, as a part of the largest entry, that steps neglect
_NOTHING = 1e-300


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


@dataclass(eq=False)
class LinearizedEquilibria:
    """The equations linearized at a point, scaled so that rows are what columns are."""

    point: StaticPoint
    # units, weights: what forces, and what constraints and holders are scaled by.
    units: FloatArray
    weights: FloatArray
    # matrix, pull: minus the derivatives of the equations by increments and μ, and those by λ.
    matrix: FloatArray
    pull: FloatArray
    _eliminated: tuple[FloatArray, FloatArray, FloatArray, int] | None = field(
        default=None, init=False
    )

    @cached_property
    def factor(self) -> tuple[FloatArray, float] | None:
        """The lower factor of a matrix that is almost symmetric, and positive definite.

        Behind it is the largest difference to its transpose, over its largest entry.
        """
        if len(self.weights):
            return None
        K, half = self.matrix, self.matrix.T - self.matrix
        asymmetry = np.max(half, initial=0.0) / max(np.max(K, initial=_NOTHING), -np.min(K))
        if not asymmetry <= _ALMOST:
            return None
        half *= 0.5
        half += K
        factor, failed = lapack.dpotrf(half.T, lower=True, clean=False, overwrite_a=True)
        return None if failed else (factor, float(asymmetry))

    @property
    def is_definite(self) -> bool:
        """Whether the matrix is symmetric but for rounding, and positive definite."""
        return self.factor is not None and self.factor[1] <= ROUNDING

    @cached_property
    def _pulled(self) -> FloatArray:
        """The increments by the load."""
        assert self.factor is not None
        return np.asarray(lapack.dpotrs(self.factor[0], self.pull, lower=True)[0])

    def solved(self, held: FloatArray, right: FloatArray, *, singular: bool) -> FloatArray:
        """Return what solves these equations, and one for a direction; NaN where that is none.

        ``held`` is the direction, by unknowns and λ; its right-hand side is the last one. Equations
        that are ``singular`` have the shortest solution.
        """
        with np.errstate(all="ignore"):
            if self.factor is not None:
                own = lapack.dpotrs(self.factor[0], right[:-1], lower=True)[0]
                load = (right[-1] + held[:-1] @ own) / (held[-1] + held[:-1] @ self._pulled)
                return np.append(load * self._pulled - own, load)
        if self._eliminated is None or self._eliminated[0] is not held:
            bordered = self._bordered(held)
            if not np.isfinite(bordered).all():
                return np.full(len(right), np.nan)
            self._eliminated = held, *lapack.dgetrf(bordered)
        _, factors, pivots, failed = self._eliminated
        if not failed:
            return np.asarray(lapack.dgetrs(factors, pivots, right)[0])
        if not (singular and np.isfinite(right).all()):
            return np.full(len(right), np.nan)
        return np.asarray(np.linalg.lstsq(self._bordered(held), right, rcond=1e-14)[0])

    def _bordered(self, held: FloatArray) -> FloatArray:
        """Return the matrix with one more row and column."""
        size = len(self.matrix)
        bordered = np.empty((size + 1, size + 1))
        np.negative(self.matrix, out=bordered[:-1, :-1])
        bordered[:-1, -1] = self.pull
        bordered[-1] = np.concatenate([held[:-1], np.zeros(len(self.weights)), held[-1:]])
        return bordered
