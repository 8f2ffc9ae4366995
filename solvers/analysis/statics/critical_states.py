"""Critical loads: estimates at the unloaded state, refined along the path of equilibria.

With the stiffness K and its derivative K' along the path, ``K + s K'`` is singular at a distance s,
about where K itself is singular on the path. What is left of that distance is asked again from
there, which ends at the critical state. The path is measured by its arc length, so that it goes on
where the load has an extreme.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.forces_at_rest.curve_points import CurvePoint, Leg, LostError
from flexure.solvers.analysis.forces_at_rest.equilibrium_curve import UNIT_LOAD, EquilibriumCurve
from flexure.solvers.analysis.forces_at_rest.static_coordinates import (
    AllowedMotions,
    allowed_motions,
)
from flexure.solvers.analysis.forces_at_rest.static_equations import (
    SLIGHT,
    StaticEquations,
    StaticPoint,
)
from flexure.solvers.analysis.statics.nearby_equilibrium import alike

_NEAR = 1e-3  # part of the way to the critical state over which K is compared, and
_CLOSE = 1e-5  # at the critical state
_TWIST = 0.01  # part of K' that may be asymmetric where forces have a potential
_FARTHEST = 1e7  # largest factor beside the smallest one, beyond which nothing buckles
_REAL = 1e-7  # relative imaginary part of a factor that is real
_CONVERGED = 1e-6  # part of the way, of a last step, whose error is about the square
_ENOUGH = 1e-4  # of one that cannot be taken, since nothing resists some motion
_LOAD = 10.0  # times the first factor is one load, beside which motions are seen
_TRIES = 12
_LITTLE, _SOME, _MUCH = 1e-6, 1e-3, 1.0  # scaled change by a unit of load, that is enough for K'
_NOISE, _MORE = 1e-13, 1e6  # change that is rounding, and times the unit then
_ALIKE = 0.5  # resemblance of shapes before and after a step
_NEARER = 0.1  # part of a step by which it has to come nearer
_ROUNDS = 60
_SHORTEST = 1e-6  # part of the way, of a step that leads nowhere
_STRAIGHT = 0.5  # relative distance from a tangent that a step along the path may have
_ZERO = 100.0  # times the smallest stiffness, below which one is about zero, too
_PULLED = 1e-5  # part of the load in the direction of a shape that counts as none


class Estimate(NamedTuple):
    """A linear critical factor, and the increments of the unknowns that it belongs to."""

    factor: float
    shape: FloatArray


class Critical(NamedTuple):
    """A critical factor, its kind and shape, and the state with the values of all variables."""

    factor: float
    kind: str
    shape: FloatArray
    x: FloatArray
    variables: FloatArray


class CriticalStates:
    """The critical states on the path of equilibria under multiples of a load.

    The equations are at the equilibrium without the load. A factor of 1 adds ``step``, with a
    largest number of about 1, to the variables. A length of ``size``, in m, counts as much as a
    radian.
    """

    def __init__(self, equations: StaticEquations, step: FloatArray, size: float) -> None:
        # Whether all stiffnesses so far, and their changes, were symmetric.
        self.has_potential = True
        self._equations = equations
        self._start, self._base = equations.states, equations.variables
        self._step, self._size = step, size
        self._begin_measured()
        rough = self._vanishing(self._origin, self._origin.along[-1])
        if rough:
            self._begin(_LOAD * abs(self._factor(self._origin, rough[0][0])))

    def _begin_measured(self) -> None:
        """Measure the load by a factor with which it does something, but not much."""
        # A load may be given in any unit, and far from what buckles anything.
        unit = 1.0
        for _ in range(_TRIES):
            self._begin(unit)
            change = self._change()
            if _LITTLE <= change <= _MUCH:
                break
            unit *= _SOME / change if change > _NOISE else _MORE

    def _change(self) -> float:
        """Return how far a step of the unit of the load moves everything, or changes stiffness."""
        along = self._origin.along
        moved = float(np.linalg.norm(along[:-1]) / max(abs(along[-1]), 1e-300))
        if moved > _LITTLE:
            return moved
        K, slope, _ = self._along_path(self._origin, float(along[-1]))
        size = np.outer(alike(K), alike(K))
        return max(moved, float(np.max(np.abs(slope / size), initial=0.0)))

    def _begin(self, unit: float) -> None:
        """Measure the load by a factor, since it ought to be about that of the first state."""
        leg = Leg(np.array([self._base, self._base + unit * self._step]), np.zeros((2, 0)))
        self._unit = unit
        self._curve = EquilibriumCurve(self._equations, leg, self._size)
        self._origin = self._curve.settled(self._start, np.zeros(0), 0.0)

    def estimates(self) -> list[Estimate]:
        """Return linear factors, those of the smallest magnitude first."""
        origin = self._origin
        found = self._vanishing(origin, _NEAR / (UNIT_LOAD * origin.along[-1]))
        return [Estimate(self._factor(origin, step), shape) for step, shape in found]

    def linear(self, estimate: Estimate) -> Critical:
        """Return an estimate itself, at the unloaded state."""
        return Critical(estimate.factor, "linear", estimate.shape, self._start, self._base)

    def beyond(self, estimate: Estimate) -> Critical:
        """Return what is not reached."""
        return Critical(float("nan"), "beyond", estimate.shape, self._start, self._base)

    def refined(self, estimate: Estimate) -> Critical | None:
        """Follow the path to where the stiffness vanishes in the direction of an estimate."""
        here, shape = self._origin, estimate.shape
        full = step = whole = estimate.factor / self._factor(here, 1.0)
        for _ in range(_ROUNDS):
            there = self._arrive(here, step)
            near = self._vanishing(there, _CLOSE * abs(whole)) if there else []
            if there and near:
                weight = alike(self._stiffness(there))
                alikes = [resemblance(shape, other, weight) for _, other in near]
                left, found = near[int(np.argmax(alikes))]
                if abs(left / whole) <= _CONVERGED:
                    return self._found(there, left, found)
                nearer = abs(left) <= abs(full) - _NEARER * abs(step)
                if nearer and max(alikes) >= _ALIKE:
                    here, shape, full, step = there, found, left, left
                    continue
            step *= 0.5
            if abs(step) < _SHORTEST * abs(whole):
                break
        return self._found(here, full, shape) if abs(full / whole) <= _ENOUGH else None

    def first(self, nearest: float) -> Critical | None:
        """Follow the path to where the stiffness vanishes first, whichever shape it has there.

        ``nearest`` is the linear factor of the smallest magnitude on this side.
        """
        here, side = self._origin, float(np.sign(nearest))
        stable = self._negative(here)
        whole = full = nearest / self._factor(here, 1.0)
        step, shape = 0.5 * whole, np.ones(len(self._start))
        for _ in range(_ROUNDS):
            there = self._arrive(here, step)
            near = self._vanishing(there, _CLOSE * abs(whole)) if there else []
            if there and near:
                left, found = near[0]
                is_first = self._negative(there, _ZERO) <= stable
                if abs(left / whole) <= _CONVERGED and is_first:
                    return self._found(there, left, found)
                if self._negative(there) == stable:
                    ahead = [one for one, _ in near if one * side > 0.0]
                    here, full, shape = there, left, found
                    step = side * min([2.0 * abs(step), *map(abs, ahead[:1])])
                    continue
                back = step + left  # to the critical state that lies behind
                step = back if 0.1 * abs(step) < back * side < abs(step) else 0.5 * step
                continue
            step *= 0.5
            if abs(step) < _SHORTEST * abs(whole):
                break
        return self._found(here, full, shape) if abs(full / whole) <= _ENOUGH else None

    def nearest(self, critical: Critical, estimates: Sequence[Estimate]) -> Estimate:
        """Return the estimate whose shape is most like that of a critical state."""
        weight = alike(self._stiffness(self._origin))
        return max(estimates, key=lambda each: resemblance(each.shape, critical.shape, weight))

    # Steps -----------------------------------------------------------------------------------

    def _factor(self, here: CurvePoint, step: float) -> float:
        """Return the factor at a distance along a tangent."""
        return self._unit * (here.load + UNIT_LOAD * step * float(here.along[-1]))

    def _arrive(self, here: CurvePoint, step: float) -> CurvePoint | None:
        """Return the equilibrium after a step, if the path leads there almost straight."""
        try:
            there, _ = self._curve.departed(here, here.along, step, stray=_STRAIGHT)
        except LostError:
            return None
        return there

    def _found(self, there: CurvePoint, left: float, shape: FloatArray) -> Critical:
        self._put(there.x, there.load)
        point = self._equations.point()
        # What drives a constraint moves everything, against the stiffness.
        moved = (point.error_slopes @ self._step) @ point.normals
        push = point.loads @ self._step + point.stiffness @ moved
        scales = self._curve.scales
        most = np.linalg.norm(shape / scales) * np.linalg.norm(scales * push)
        kind = "limit" if abs(float(shape @ push)) > _PULLED * most else "bifurcation"
        factor = self._factor(there, left)
        return Critical(factor, kind, shape, there.x, self._base + factor * self._step)

    # Stiffness -------------------------------------------------------------------------------

    def _vanishing(self, here: CurvePoint, step: float) -> list[tuple[float, FloatArray]]:
        """Return the distances along the path at which ``K + s K'`` is singular, and the shapes."""
        # K' is the difference of K over a step both ways along the tangent; there is none where
        # that leads beyond the range of an element.
        K, slope, motions = self._along_path(here, step)
        if not (np.isfinite(K).all() and np.isfinite(slope).all()):
            return []
        weight = alike(K)
        size = np.outer(weight, weight)
        shares, shapes = _eigen(K / size, slope / size)
        real = np.isfinite(shares) & (np.abs(shares.imag) <= _REAL * np.abs(shares))
        largest = np.max(np.abs(shares[real]), initial=0.0)
        kept = np.flatnonzero(real & (np.abs(shares) * _FARTHEST > largest) & (shares != 0.0))
        order = kept[np.argsort(-np.abs(shares[kept]), kind="stable")]
        return [
            (-1.0 / float(shares[k].real), motions.R @ (shapes[:, k].real / weight)) for k in order
        ]

    def _along_path(
        self, here: CurvePoint, step: float
    ) -> tuple[FloatArray, FloatArray, AllowedMotions]:
        """Return K and K' of the motions that are allowed, and these."""
        self._put(here.x, here.load)
        at = self._equations.point()
        motions, ends = allowed_motions(at.normals, at.pushes), []
        for side in (step, -step):
            moved = self._curve.scales * side * here.along[:-1]
            x = self._equations.coordinates.moved(here.x, moved)
            self._put(x, here.load + UNIT_LOAD * side * float(here.along[-1]))
            ends.append(_seen_along(motions, self._equations.point()))
        slope = (ends[0] - ends[1]) / (2.0 * step)
        K, twist = _seen_along(motions, at), np.max(np.abs(slope - slope.T), initial=0.0)
        twisted = twist > _TWIST * np.max(np.abs(slope), initial=0.0)  # not where it is NaN
        if at.asymmetry(self._curve.scales) > SLIGHT or twisted:
            self.has_potential = False
            return K, slope, motions
        return K, (slope + slope.T) / 2.0, motions

    def _stiffness(self, here: CurvePoint) -> FloatArray:
        self._put(here.x, here.load)
        return self._equations.point().stiffness

    def _put(self, x: FloatArray, load: float) -> None:
        self._equations.set_variables(self._base + load * self._unit * self._step)
        self._equations.move_to(x)

    @staticmethod
    def _negative(here: CurvePoint, beside: float = 0.0) -> int:
        """Return in how many directions a stiffness is negative, by some times the smallest."""
        least = np.min(np.abs(here.stiffnesses), initial=np.inf)
        return int(np.sum(here.stiffnesses < -beside * least))


def _seen_along(motions: AllowedMotions, point: StaticPoint) -> FloatArray:
    """Return the stiffness at a point against motions, as far as constraints allow them there."""
    if not point.normals.size:
        return point.stiffness
    R = motions.R - point.normals.T @ (point.normals @ motions.R)
    inverse = np.linalg.pinv(point.pushes)
    L = motions.L - inverse @ (point.pushes @ motions.L)
    return np.asarray(L.T @ point.stiffness @ R)


def _eigen(K: FloatArray, slope: FloatArray) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return μ and φ with ``slope φ = μ K φ``."""
    from scipy.linalg import LinAlgError, eig, eigh

    if np.array_equal(slope, slope.T):
        try:
            values, vectors = eigh(slope, (K + K.T) / 2.0)
        except LinAlgError:  # K is not positive definite
            pass
        else:
            return values.astype(complex), vectors.astype(complex)
    values, vectors = eig(slope, K)
    return values, vectors


def resemblance(one: FloatArray, other: FloatArray, weight: FloatArray) -> float:
    """Return how much two shapes are alike, each coordinate weighed by `alike` of the stiffness."""
    a, b = one * weight, other * weight
    return abs(float(a @ b)) / float(np.linalg.norm(a) * np.linalg.norm(b))
