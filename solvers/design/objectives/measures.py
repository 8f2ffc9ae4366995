"""Numbers of a linear model at rest, with their derivatives by its matrices.

A measure returns *pieces*: the number, and what nearly is the number, such as the other peaks of a
gain. A search that levels all of them converges where the number alone has a kink. With left and
right eigenvectors u and v of a pole λ, and with singular vectors u and v of a response G,

    dλ = uᴴ dA v / uᴴ v,    dσ = Re(uᴴ dG v),    dG = [C R, 1] dM [R B; 1],   R = (s - A)⁻¹.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.multibody.bodies.bodies import FrameLike
from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.value_places import Way, untied
from flexure.diagrams.systems.system import System
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.frequency.quadratic_search import QuadraticSearch
from flexure.solvers.analysis.linear_models.linear_inputs import wire_place
from flexure.solvers.analysis.linear_models.loop_transfers import before
from flexure.solvers.analysis.linear_models.poles import all_decay, on_boundary
from flexure.solvers.analysis.linear_models.realizations import HIDDEN, reduction
from flexure.solvers.analysis.statics.stiffness import find_frame
from flexure.solvers.design.objectives.parametric_models import Realization, Request
from flexure.solvers.design.objectives.point_motions import PointMotion

Complex = npt.NDArray[np.complex128]
#: An upper bound over frequency: a number, or what takes frequencies in rad/s.
Bound = float | Callable[[FloatArray], FloatArray]

PIECES = 6  # of a number, at most
_NEAR = 0.5  # of the first piece: what is farther from it is none
_STILL = 1e-7  # of the fastest pole: what is no motion that comes back
_SAME = 1e-6  # of the largest pole: that of the whole model, found again on the tangent
_GRID = 200  # frequencies, beside a bound
_APART = 1e-6  # of a frequency: nearer ones are one
_ZOOM = 33  # frequencies between two of a grid
_FINE = 3e-7  # of a frequency: around a maximum, half of the digits make no difference


@dataclass(frozen=True, eq=False)
class Piece:
    """A number of a linear model."""

    value: float  # the number
    # Its derivatives by the matrices of the model; None where there are none, shape (n + p, n + m),
    # or None.
    weights: FloatArray | None = None
    by_errors: FloatArray | None = None  # by the derivatives of the errors of constraints
    by_values: FloatArray | None = None  # by the outputs
    frequency: float = math.nan  # where it is, in rad/s; NaN where it is nowhere


@dataclass(frozen=True, eq=False)
class Seen:
    """The input of a measure: a linear model, and the equations behind it."""

    model: Realization  # the linear model of its request
    equations: Any = None  # the equations behind it; None of a sampled model
    point: Any = None  # where they are


class Measure(ABC):
    """A number of a linear model.

    Attributes
    ----------
    unit : str
        Of the number.
    is_largest : bool
        Whether it is the largest of its pieces, not the smallest.
    """

    unit = ""
    is_largest = True

    @abstractmethod
    def request(self, context: Context, attempt: str) -> Request:
        """Return the linear model that is needed."""

    @abstractmethod
    def pieces(self, seen: Seen) -> list[Piece]:
        """Return the pieces, the number first."""

    def __call__(self, result: Any) -> float:
        """Return the number at the equilibrium near the end of a run."""
        from flexure.solvers.design.objectives.rest_numbers import number_at_rest

        return number_at_rest(self, result.context)


# Poles -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PoleMeasure(Measure):
    """The least decay rate or damping ratio of all poles, or the frequency of one."""

    kind: str  # ``"decay_rate"``, ``"least_damping"`` or ``"frequency"``
    number: int = 0  # which of the vibrations counts, by frequency; for a frequency
    # lower, upper: between which natural frequencies poles count, in rad/s.
    lower: float = 0.0
    upper: float = math.inf

    is_largest = False

    @property
    def unit(self) -> str:  # type: ignore[override]
        """Unit of the number."""
        return {"decay_rate": "1/s", "least_damping": "", "frequency": "Hz"}[self.kind]

    def request(self, context: Context, attempt: str) -> Request:
        """Return the linear model that is needed."""
        return Request()

    def pieces(self, seen: Seen) -> list[Piece]:
        """Return the pieces, the number first."""
        model = seen.model
        poles, lefts, rights = _moving_poles(model)
        scale: Any = np.ones(len(poles), dtype=complex)
        if model.period is not None:
            with np.errstate(all="ignore"):
                scale = 1.0 / (poles * model.period)
                poles = np.asarray(np.log(poles) / model.period, dtype=complex)
        sizes: Any = np.abs(poles)
        if self.kind == "frequency":
            fastest = sizes.max(initial=0.0)
            kept = poles.imag > _STILL * fastest
            order = np.flatnonzero(kept)[np.argsort(sizes[kept])]
            if self.number >= len(order):
                return [Piece(math.nan)]
            chosen = order[[self.number]]
            values, by_pole = sizes / (2.0 * np.pi), poles.conj() / sizes / (2.0 * np.pi)
        else:
            kept = (poles.imag >= 0.0) & (sizes >= self.lower) & (sizes <= self.upper)
            with np.errstate(all="ignore"):
                if self.kind == "decay_rate":
                    values, by_pole = -poles.real, np.full(len(poles), -1.0 + 0.0j)
                else:
                    values = np.where(sizes > 0.0, -poles.real / sizes, 0.0)
                    by_pole = -poles.imag * (poles.imag + 1j * poles.real) / sizes**3
            if not kept.any():
                return [Piece(math.inf if np.isfinite(self.upper) or self.lower else math.nan)]
            order = np.flatnonzero(kept)[np.argsort(values[kept], kind="stable")]
            chosen = order[:PIECES]
        found = []
        for k in chosen.tolist():
            slope = np.outer(lefts[:, k].conj(), rights[:, k]) / (lefts[:, k].conj() @ rights[:, k])
            weights = np.zeros((len(model.A) + len(model.C), len(model.A) + model.B.shape[1]))
            weights[: len(model.A), : len(model.A)] = (by_pole[k] * scale[k] * slope).real
            found.append(Piece(float(values[k]), weights, frequency=float(sizes[k])))
        return found


def _moving_poles(seen: Realization) -> tuple[Complex, Complex, Complex]:
    """Return the poles of motions, with left and right eigenvectors in the states."""
    from scipy import linalg

    eig: Any = linalg.eig
    n, T = len(seen.A), seen.tangent
    if not n:
        empty = np.zeros((0, 0), dtype=complex)
        return np.zeros(0, dtype=complex), empty, empty
    found: Any = eig(seen.A, left=True)
    poles, lefts, rights = found
    if T.shape[1] == n:
        return poles, lefts, rights
    left_over, kept = list(range(n)), []
    for pole in np.linalg.eigvals(T.T @ seen.A @ T):
        nearest = min(left_over, key=lambda k: abs(poles[k] - pole))
        left_over.remove(nearest)
        kept.append(nearest)
    return poles[kept], lefts[:, kept], rights[:, kept]


# Values and stiffness ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ValueMeasure(Measure):
    """The value of a port, state or parameter at rest."""

    signal: Way

    def request(self, context: Context, attempt: str) -> Request:
        """Return the linear model that is needed."""
        return Request(outputs=tuple(untied(context, self.signal)[:1]))

    def pieces(self, seen: Seen) -> list[Piece]:
        """Return the pieces, the number first."""
        model = seen.model
        if len(model.values) != 1:
            raise EvaluationError(
                f"Cannot measure '{self.signal}' at rest",
                expected="a signal with one component",
                found=f"{len(model.values)} components",
                remedy="Name one, as in 'plant.q[0]'",
            )
        zero = np.zeros((len(model.A) + 1, len(model.A) + model.B.shape[1]))
        return [Piece(float(model.values[0]), zero, by_values=np.ones(1))]


@dataclass(frozen=True, eq=False)
class StiffnessMeasure(Measure):
    """The stiffness of a point of a frame along a direction, other directions being free.

    A load along the direction moves the states by ``A x = -B j``, where B is that of generalized
    forces and j the Jacobian of the point, which is that of its velocity, ``C = (0, j)``. Under a
    load that grows like t, the states are ``x t + w`` with ``A w = x``, so that the velocity is the
    compliance, ``c = C w``.
    """

    frame: FrameLike | str
    p_FP: tuple[float, ...]
    direction: tuple[float, ...]

    @property
    def unit(self) -> str:  # type: ignore[override]
        """Unit of the number."""
        return "N m/rad" if any(self.direction[:3]) else "N/m"

    def _motion(self, system: System, attempt: str) -> PointMotion:
        return PointMotion(find_frame(system, self.frame, attempt), self.p_FP, self.direction)

    def request(self, context: Context, attempt: str) -> Request:
        """Return the linear model that is needed."""
        motion = self._motion(context.system, attempt)
        return Request((motion.plant.input_port("generalized_force"),), (motion,))

    def pieces(self, seen: Seen) -> list[Piece]:
        """Return the pieces, the number first."""
        A, B, row, here = seen.model.A, seen.model.B, seen.model.C[0], seen.equations
        layout = seen.point.store.layout
        n, m = len(A), B.shape[1]
        v = self._motion(layout.root, "Cannot find a stiffness").velocities(layout)
        j = row[v]
        x = here.rest_response(seen.point, A, -B @ j)
        w = here.rest_response(seen.point, A, x)
        compliance = float(row @ w)
        a = here.rest_adjoint(seen.point, A, row)
        b = here.rest_adjoint(seen.point, A, a[:n])
        weights = np.zeros((n + 1, n + m))
        weights[n, :n] += w
        weights[:n, :n] -= np.outer(a[:n], w) + np.outer(b[:n], x)
        weights[:n, n:] -= np.outer(b[:n], j)
        weights[n, v] -= b[:n] @ B
        by_errors = -np.outer(a[n:], w) - np.outer(b[n:], x)
        left = np.abs(A @ x + B @ j).max() / max(np.abs(B @ j).max(), 1e-300)
        if left > 1e-6:
            return [Piece(0.0)]
        scale = -1.0 / compliance**2
        return [Piece(1.0 / compliance, scale * weights, scale * by_errors)]


# Gains -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class GainMeasure(Measure):
    """The peak gain from inputs to outputs, beside a bound over frequency."""

    # inputs, outputs, openings: as for `flexure.linearize`.
    inputs: tuple[Way, ...]
    outputs: tuple[Way, ...]
    openings: tuple[Way, ...] = ()
    bound: Bound = 1.0  # what the gain is divided by
    # lower, upper: between which frequencies it counts, in rad/s.
    lower: float = 0.0
    upper: float = math.inf
    offset: float = 0.0  # a number that is added to the diagonal of the response
    needs_stability: bool = True  # whether the number of an unstable model is infinite

    def request(self, context: Context, attempt: str) -> Request:
        """Return the linear model that is needed."""
        return Request(self.inputs, self.outputs, self.openings)

    def limits(self, frequencies: FloatArray) -> FloatArray:
        """Return the bound at frequencies."""
        if not callable(self.bound):
            return np.full(len(frequencies), float(self.bound))
        return np.asarray(self.bound(frequencies), dtype=float) + np.zeros(len(frequencies))

    def pieces(self, seen: Seen) -> list[Piece]:
        """Return the pieces, the number first."""
        model = seen.model
        A, B, C, D, period = model.A, model.B, model.C, model.D, model.period
        D = D + self.offset * np.eye(*D.shape)
        if self.needs_stability and not is_stable(model):
            return [Piece(math.inf)]
        T = model.tangent
        part = reduction(T.T @ A @ T, T.T @ B, C @ T, HIDDEN)
        search = QuadraticSearch(part.A, part.B, part.C, D, period, Q=1.0)
        found = [self._piece(model, D, frequency) for frequency in self._peaks(search).tolist()]
        found.sort(key=lambda piece: -piece.value)
        return [each for each in found if each.value > _NEAR * found[0].value][:PIECES]

    def _peaks(self, search: QuadraticSearch) -> FloatArray:
        """Return the frequencies of the highest values between the limits, and of local ones."""
        low, high = self.lower, min(self.upper, search.end)

        def sizes(points: FloatArray) -> FloatArray:
            with np.errstate(all="ignore"):
                found = np.sqrt(np.maximum(search.sizes(points), 0.0)) / self.limits(points)
            return np.where(np.isfinite(found), found, -1.0)

        places = search.between(search.natural)
        if (np.isfinite(high) and high > 0.0) or low > 0.0:
            places = np.union1d(places[(places > low) & (places < high)], [low, high])
            places = places[np.isfinite(places)]
        if callable(self.bound) or low > 0.0 or np.isfinite(self.upper):
            start, end = max(places[0], 1e-9 * places[-1], 1e-12), places[-1]
            if end > start:
                places = np.union1d(places, np.geomspace(start, end, _GRID)[1:-1])
        apart = np.diff(places, prepend=-np.inf) > _APART * places
        places = places[apart]
        values = sizes(places)
        edge = np.concatenate([[-np.inf], values, [-np.inf]])
        tops = np.flatnonzero((values >= edge[:-2]) & (values > edge[2:]))
        tops = tops[values[tops] > _NEAR * values.max()]
        tops = tops[np.argsort(-values[tops])][:PIECES]
        ends = places[np.maximum(tops - 1, 0)], places[np.minimum(tops + 1, len(places) - 1)]
        found = [*_zoomed(sizes, *ends), *(each for each in (low, high) if 0.0 < each < math.inf)]
        if not callable(self.bound) and low == 0.0 and not np.isfinite(self.upper):
            found += [0.0] if np.isfinite(search.end) else [0.0, math.inf]
            if self.needs_stability:  # whatever lies between the frequencies
                found.append(search.peak()[1])
        return np.unique(found)

    def _piece(self, model: Realization, D: FloatArray, frequency: float) -> Piece:
        """Return the gain at a frequency, and its derivatives."""
        n, m = model.B.shape
        p = len(D)
        left, right = np.zeros((n + p, p), dtype=complex), np.zeros((n + m, m), dtype=complex)
        left[n:], right[n:] = np.eye(p), np.eye(m)
        if math.isfinite(frequency) and n:
            s: complex = 1j * frequency
            if model.period is not None:
                s = complex(np.exp(1j * frequency * model.period))
            resolvent = _resolvent(model.A, s)
            left[:n], right[:n] = (model.C @ resolvent).T, resolvent @ model.B
        response = model.C @ right[:n] + D
        u, sizes, vh = np.linalg.svd(response)
        limit = float(self.limits(np.array([frequency]))[0])
        weights = np.outer(left @ u[:, 0].conj(), right @ vh[0].conj()).real / limit
        return Piece(float(sizes[0]) / limit, weights, frequency=frequency)


def _resolvent(A: FloatArray, s: complex) -> Complex:
    """Return (s - A)⁻¹, or what takes its place where states do not move."""
    away = s * np.eye(len(A)) - A
    try:
        found = np.linalg.inv(away)
    except np.linalg.LinAlgError:
        found = np.linalg.pinv(away)
    return np.asarray(found, dtype=complex)


def _zoomed(
    sizes: Callable[[FloatArray], FloatArray], low: FloatArray, high: FloatArray
) -> list[float]:
    """Return where values are largest between pairs of frequencies."""
    if not len(low):
        return []
    while True:
        points = np.linspace(low, high, _ZOOM, axis=1)
        k = sizes(points.ravel()).reshape(points.shape).argmax(axis=1)
        rows = np.arange(len(points))
        low, high = points[rows, np.maximum(k - 1, 0)], points[rows, np.minimum(k + 1, _ZOOM - 1)]
        if np.all(high - low <= _FINE * high):
            return [float(each) for each in points[rows, k]]


def is_stable(model: Realization) -> bool:
    """Return whether all controllable and observable motions decay, and no other one grows."""
    T = model.tangent
    A = T.T @ model.A @ T
    poles = np.linalg.eigvals(A).astype(complex)
    if all_decay(poles, model.period) and not on_boundary(A, poles, model.period).any():
        return True
    growth = poles.real if model.period is None else np.abs(poles) - 1.0
    if np.any(growth > 1e-8 * (np.abs(poles).max(initial=0.0) if model.period is None else 1.0)):
        return False
    seen = reduction(A, T.T @ model.B, model.C @ T, HIDDEN)
    poles = np.linalg.eigvals(seen.A).astype(complex)
    neutral = on_boundary(seen.A, poles, model.period)
    return all_decay(poles, model.period) and not bool(neutral.any())


@dataclass(frozen=True, eq=False)
class H2Measure(Measure):
    """The H2 norm from inputs to outputs."""

    inputs: tuple[Way, ...]
    outputs: tuple[Way, ...]
    openings: tuple[Way, ...] = ()

    def request(self, context: Context, attempt: str) -> Request:
        """Return the linear model that is needed."""
        return Request(self.inputs, self.outputs, self.openings)

    def pieces(self, seen: Seen) -> list[Piece]:
        """Return the pieces, the number first.

        With the Gramians P and Q, the derivatives of ``tr(C P Cᵀ)`` are 2 Q P by A, 2 Q B by B and
        2 C P by C; of sampled models 2 Q A P, 2 Q B, 2 C P and 2 D.
        """
        from scipy.linalg import solve_continuous_lyapunov, solve_discrete_lyapunov

        model = seen.model
        A, B, C, D, period = model.A, model.B, model.C, model.D, model.period
        if not is_stable(model) or (period is None and D.any()):
            return [Piece(math.inf)]
        T = model.tangent
        inner = T.T @ A @ T
        driven, shown = T.T @ B @ B.T @ T, T.T @ C.T @ C @ T
        if period is None:
            P = solve_continuous_lyapunov(inner, -driven)
            Q = solve_continuous_lyapunov(inner.T, -shown)
        else:
            P, Q = solve_discrete_lyapunov(inner, driven), solve_discrete_lyapunov(inner.T, shown)
        P, Q = T @ P @ T.T, T @ Q @ T.T
        square = float(np.trace(C @ P @ C.T) + (np.sum(D**2) if period is not None else 0.0))
        norm = math.sqrt(max(square, 0.0))
        if norm == 0.0:
            return [Piece(0.0)]
        by_A = Q @ P if period is None else Q @ A @ P
        weights = np.block([[by_A, Q @ B], [C @ P, D if period is not None else 0.0 * D]]) / norm
        return [Piece(norm, weights)]


# Margins -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class MarginMeasure(Measure):
    """The modulus or disk margin of a loop at wires, ``1 / max σ(S - c)`` with c = 0 or 1/2."""

    # wires, openings: as for `flexure.loop_gain`.
    wires: tuple[Way, ...]
    openings: tuple[Way, ...] = ()
    center: float = 0.0  # the number c
    needs_stability: bool = True
    is_largest = False

    def request(self, context: Context, attempt: str) -> Request:
        """Return the linear model that is needed."""
        shown = tuple(before(wire_place(context, wire, attempt)) for wire in self.wires)
        return Request(self.wires, shown, self.openings)

    def pieces(self, seen: Seen) -> list[Piece]:
        """Return the pieces, the number first."""
        gain = GainMeasure((), (), offset=1.0 - self.center, needs_stability=self.needs_stability)
        return [
            Piece(
                1.0 / each.value,
                None if each.weights is None else -each.weights / each.value**2,
                frequency=each.frequency,
            )
            if 0.0 < each.value < math.inf
            else Piece(0.0 if each.value else math.inf)
            for each in gain.pieces(seen)
        ]
