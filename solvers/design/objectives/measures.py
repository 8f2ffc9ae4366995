"""Numbers of a linear model at rest, with their derivatives by its matrices.

A measure returns *pieces*: the number, and what nearly is the number, such as the other peaks of a
gain. A search that levels all of them converges where the number alone has a kink. With left and
right eigenvectors u and v of a pole λ, and with singular vectors u and v of a response G,

    dλ = uᴴ dA v / uᴴ v,    dσ = Re(uᴴ dG v),    dG = [C R, 1] dM [R B; 1],   R = (s - A)⁻¹.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, cast

import numpy as np

from flexure.blocks.multibody.bodies.bodies import FrameLike
from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.value_places import Way, untied
from flexure.diagrams.systems.system import System
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.frequency.frequency_search import QuadraticSearch
from flexure.solvers.analysis.frequency.norms import gramian
from flexure.solvers.analysis.linear_models.linear_inputs import wire_place
from flexure.solvers.analysis.linear_models.loop_transfers import before
from flexure.solvers.analysis.linear_models.poles import Poles, fate, stability
from flexure.solvers.analysis.linear_models.realizations import HIDDEN, reduction
from flexure.solvers.analysis.statics.stiffness import find_frame
from flexure.solvers.design.objectives.parametric_models import (
    PointMotion,
    Realization,
    Request,
    solve,
)

#: An upper bound over frequency: a number, or what takes frequencies in rad/s.
Bound = float | Callable[[FloatArray], FloatArray]

PIECES = 6  # of a number, at most
_NEAR = 0.5  # of the first piece: what is farther from it is none
_STILL = 1e-7  # of the fastest pole: what is no motion that comes back
_GRID = 200  # frequencies, beside a bound
_APART = 1e-6  # of a frequency: nearer ones are one
_ZOOM = 33  # frequencies between two of a grid
_FINE = 3e-7  # of a frequency: around a maximum, half of the digits make no difference
_SETTLED = 8.0  # time constants of a pole, after which its motion is over
_TURN = 0.3  # of the time in which a pole turns by one radian
_MOST = 2**16  # steps: motions that decay more slowly are highest before


@dataclass(frozen=True, eq=False)
class Piece:
    """A number of a linear model."""

    value: float  # the number
    # Its derivatives by the matrices of the model; None where there are none, shape (n + p, n + m),
    # or None.
    weights: FloatArray | None = None
    by_errors: FloatArray | None = None  # by the derivatives of the errors of constraints
    by_values: FloatArray | None = None  # by the outputs


@dataclass(frozen=True, eq=False)
class Seen:
    """The input of a measure: a linear model, and the equations behind it."""

    model: Realization  # the linear model of its request
    equations: Any = None  # the equations behind it; None of a sampled model
    point: Any = None  # where they are


@dataclass(frozen=True, eq=False)
class Measure(ABC):
    """A number of a linear model."""

    is_largest: ClassVar[bool] = True  # whether it is the largest of its pieces, not the smallest

    _: KW_ONLY
    # inputs, outputs, openings: as for `flexure.linearize`.
    inputs: tuple[Way, ...] = ()
    outputs: tuple[Way, ...] = ()
    openings: tuple[Way, ...] = ()

    def request(self, context: Context, attempt: str) -> Request:
        """Return the linear model that is needed."""
        return Request(self.inputs, self.outputs, self.openings)

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

    def pieces(self, seen: Seen) -> list[Piece]:
        """Return the pieces, the number first."""
        poles, lefts, rights = _moving_poles(seen.model)
        scale: Any = np.ones(len(poles), dtype=complex)
        with np.errstate(all="ignore"):
            if (period := seen.model.period) is not None:
                scale = 1.0 / (poles * period)
                poles = np.asarray(np.log(poles) / period, dtype=complex)
            sizes: Any = np.abs(poles)
            kept = (poles.imag >= 0.0) & (sizes >= self.lower) & (sizes <= self.upper)
            if self.kind == "frequency":
                kept &= poles.imag > _STILL * sizes.max(initial=0.0)
                values, by_pole = sizes / (2.0 * np.pi), poles.conj() / sizes / (2.0 * np.pi)
            elif self.kind == "decay_rate":
                values, by_pole = -poles.real, np.full(len(poles), -1.0 + 0.0j)
            else:
                values = np.where(sizes > 0.0, -poles.real / sizes, 0.0)
                by_pole = -poles.imag * (poles.imag + 1j * poles.real) / sizes**3
        order = np.flatnonzero(kept)[np.argsort(values[kept], kind="stable")]
        chosen = order[self.number :][: 1 if self.kind == "frequency" else PIECES].tolist()
        if not chosen:
            return [Piece(math.inf if np.isfinite(self.upper) or self.lower else math.nan)]
        found = []
        for k in chosen:
            slope = np.outer(lefts[:, k].conj(), rights[:, k]) / (lefts[:, k].conj() @ rights[:, k])
            found.append(Piece(float(values[k]), (by_pole[k] * scale[k] * slope).real))
        return found


def _moving_poles(model: Realization) -> tuple[Poles, Poles, Poles]:
    """Return the poles of motions, with left and right eigenvectors in the states."""
    from scipy.linalg import eig

    if not len(model.A):
        return (np.zeros((0, 0), dtype=complex),) * 3
    poles, lefts, rights = cast("Any", eig)(model.A, left=True)
    if model.tangent.shape[1] == len(poles):
        return poles, lefts, rights
    left_over, kept = list(range(len(poles))), []
    for pole in np.linalg.eigvals(model.on_tangent()[0]):
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
        rows = here.rest_rows(seen.point, A)
        none = np.zeros(len(rows) - n)  # of errors of constraints
        x = solve(rows, np.append(-B @ j, none))
        w = solve(rows, np.append(x, none))
        compliance = float(row @ w)
        a = solve(rows.T, row)
        b = solve(rows.T, a[:n])
        by_A = -np.outer(a[:n], w) - np.outer(b[:n], x)
        weights = np.block([[by_A, -np.outer(b[:n], j)], [w, np.zeros(m)]])
        weights[n, v] -= b[:n] @ B
        by_errors = -np.outer(a[n:], w) - np.outer(b[n:], x)
        left = np.abs(A @ x + B @ j).max() / max(np.abs(B @ j).max(), 1e-300)
        if left > 1e-6 or not compliance:
            return [Piece(0.0 if left > 1e-6 else math.inf)]
        scale = -1.0 / compliance**2
        return [Piece(1.0 / compliance, scale * weights, scale * by_errors)]


# Gains -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class GainMeasure(Measure):
    """The peak gain from inputs to outputs, beside a bound over frequency."""

    bound: Bound = 1.0  # what the gain is divided by
    # lower, upper: between which frequencies it counts, in rad/s.
    lower: float = 0.0
    upper: float = math.inf
    offset: float = 0.0  # a number that is added to the diagonal of the response
    needs_stability: bool = True  # whether the number of an unstable model is infinite

    def limits(self, frequencies: FloatArray) -> FloatArray:
        """Return the bound at frequencies."""
        bound = self.bound(frequencies) if callable(self.bound) else self.bound
        return np.asarray(bound, dtype=float) + np.zeros(len(frequencies))

    def pieces(self, seen: Seen) -> list[Piece]:
        """Return the pieces, the number first."""
        model = seen.model
        if self.needs_stability and not is_stable(model):
            return [Piece(math.inf)]
        D = model.D + self.offset * np.eye(*model.D.shape)
        part = reduction(*model.on_tangent(), HIDDEN)
        search = QuadraticSearch(part.A, part.B, part.C, D, model.period, Q=1.0)
        found = [self._piece(model, D, frequency) for frequency in self._peaks(search).tolist()]
        found.sort(key=lambda piece: -piece.value)
        return [each for each in found if each.value > _NEAR * found[0].value][:PIECES]

    def _peaks(self, search: QuadraticSearch) -> FloatArray:
        """Return the frequencies of the highest values between the limits, and of local ones."""
        low, high = self.lower, min(self.upper, search.end)
        is_everywhere = not callable(self.bound) and low == 0.0 and math.isinf(self.upper)

        def sizes(points: FloatArray) -> FloatArray:
            with np.errstate(all="ignore"):
                found = np.sqrt(np.maximum(search.sizes(points), 0.0)) / self.limits(points)
            return np.where(np.isfinite(found), found, -1.0)

        places = search.between(search.natural)
        if math.isfinite(high) or low > 0.0:
            places = np.union1d(places[(places > low) & (places < high)], [low, high])
            places = places[np.isfinite(places)]
        if not is_everywhere:
            start, end = max(places[0], 1e-9 * places[-1], 1e-12), places[-1]
            if end > start:
                places = np.union1d(places, np.geomspace(start, end, _GRID)[1:-1])
        places = places[np.diff(places, prepend=-np.inf) > _APART * places]
        values = sizes(places)
        edge = np.concatenate([[-np.inf], values, [-np.inf]])
        tops = np.flatnonzero((values >= edge[:-2]) & (values > edge[2:]))
        tops = tops[values[tops] > _NEAR * values.max()]
        tops = tops[np.argsort(-values[tops])][:PIECES]
        ends = places[np.maximum(tops - 1, 0)], places[np.minimum(tops + 1, len(places) - 1)]
        found = [*_zoomed(sizes, *ends), *(each for each in (low, high) if 0.0 < each < math.inf)]
        if is_everywhere:
            found += [0.0] if np.isfinite(search.end) else [0.0, math.inf]
            if self.needs_stability:  # whatever lies between the frequencies
                found.append(search.peak()[1])
        return np.unique(found)

    def _piece(self, model: Realization, D: FloatArray, frequency: float) -> Piece:
        """Return the gain at a frequency, and its derivatives."""
        n, period = len(model.A), model.period
        left, right = (np.eye(n + k, k, -n, dtype=complex) for k in D.shape)
        if math.isfinite(frequency) and n:
            s = 1j * frequency if period is None else complex(np.exp(1j * frequency * period))
            resolvent = _resolvent(model.A, s)
            left[:n], right[:n] = (model.C @ resolvent).T, resolvent @ model.B
        u, sizes, vh = np.linalg.svd(model.C @ right[:n] + D)
        limit = float(self.limits(np.array([frequency]))[0])
        weights = np.outer(left @ u[:, 0].conj(), right @ vh[0].conj()).real / limit
        return Piece(float(sizes[0]) / limit, weights)


def _resolvent(A: FloatArray, s: complex) -> Poles:
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
    A, B, C = model.on_tangent()
    if stability(A, model.period)[0]:
        return True
    poles = np.linalg.eigvals(A).astype(complex)
    if fate(poles, poles, model.period) == "grow":
        return False
    return stability(reduction(A, B, C, HIDDEN).A, model.period)[0]


@dataclass(frozen=True, eq=False)
class H2Measure(Measure):
    """The H2 norm from inputs to outputs."""

    def pieces(self, seen: Seen) -> list[Piece]:
        """Return the pieces, the number first.

        With the Gramians P and Q, the derivatives of ``tr(C P Cᵀ)`` are 2 Q P by A, 2 Q B by B and
        2 C P by C; of sampled models 2 Q A P, 2 Q B, 2 C P and 2 D.
        """
        model, T = seen.model, seen.model.tangent
        A, B, C, D, period = model.A, model.B, model.C, model.D, model.period
        if not is_stable(model) or (period is None and D.any()):
            return [Piece(math.inf)]
        inner, driven, shown = model.on_tangent()
        P = T @ gramian(inner, driven, period) @ T.T
        Q = T @ gramian(inner.T, shown.T, period) @ T.T
        norm = math.sqrt(max(float(np.trace(C @ P @ C.T) + np.sum(D**2)), 0.0))
        if norm == 0.0:
            return [Piece(0.0)]
        by_A = Q @ P if period is None else Q @ A @ P
        return [Piece(norm, np.block([[by_A, Q @ B], [C @ P, D]]) / norm)]


# Margins -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class MarginMeasure(Measure):
    """The modulus or disk margin of a loop at wires, ``1 / max σ(S - c)`` with c = 0 or 1/2."""

    wires: tuple[Way, ...]  # as for `flexure.loop_gain`, as the openings
    center: float = 0.0  # the number c
    needs_stability: bool = True
    is_largest = False

    def request(self, context: Context, attempt: str) -> Request:
        """Return the linear model that is needed."""
        shown = tuple(before(wire_place(context, wire, attempt)) for wire in self.wires)
        return Request(self.wires, shown, self.openings)

    def pieces(self, seen: Seen) -> list[Piece]:
        """Return the pieces, the number first."""
        gain = GainMeasure(offset=1.0 - self.center, needs_stability=self.needs_stability)
        return [_inverse(each) for each in gain.pieces(seen)]


def _inverse(piece: Piece) -> Piece:
    """Return the inverse of a number."""
    if piece.weights is None or not piece.value:
        return Piece(0.0 if piece.value else math.inf)
    return Piece(1.0 / piece.value, -piece.weights / piece.value**2)


# Steps -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class OvershootMeasure(Measure):
    """The overshoot of the step response of a linear model, in percent of its final value.

    With the input as one more state, the response is ``y = c exp(M t) e``. At its highest point,
    its derivatives by M are those of the exponential (Fréchet), in sampled models those of a power.
    It is looked for on a grid for each pole, as fine and as long as the motion of that pole.
    """

    def pieces(self, seen: Seen) -> list[Piece]:
        """Return the pieces, the number first."""
        model = seen.model
        if model.D.shape != (1, 1):
            raise EvaluationError(
                "Cannot measure an overshoot",
                expected="one input and one output",
                found=f"{model.D.shape[1]} and {model.D.shape[0]}",
            )
        if not is_stable(model):
            return [Piece(math.inf)]
        n, period, part = len(model.A), model.period, reduction(*model.on_tangent(), HIDDEN)
        final, by_final = _steady(model)
        if final == 0.0:
            return [Piece(math.nan)]
        row, first = np.append(model.C[0], model.D[0]), np.append(np.zeros(n), 1.0)
        held = np.eye(1, n + 1, n) if period is not None else np.zeros((1, n + 1))
        rates = np.vstack([np.hstack([model.A, model.B]), held])
        best, time, before, h = row @ first / final, 0.0, first, 0.0
        for step, count in _grids(np.linalg.eigvals(part.A).astype(complex), period):
            states = _states(_power(rates, step, period), first, count)
            values = row @ states / final
            top = int(np.argmax(values))
            if values[top] > best:
                best, time, before, h = values[top], step * top, states[:, top - 1], step
        if period is not None and h > 1.0:  # the samples between those of the grid
            near = _states(rates, before, int(2 * h) + 1)
            time += int(np.argmax(row @ near / final)) - h
        if best <= 1.0:
            return [Piece(0.0)]
        if period is None and h:
            time += _turn(rates, row @ rates, before, h)
        # Of the power of a block matrix, the corner is its derivative.
        corner = np.block([[rates.T, np.outer(row, first)], [np.zeros_like(rates), rates.T]])
        peak, total = np.split(_power(corner, time, period)[: n + 1], 2, axis=1)
        peak_state = peak.T @ first
        value = float(row @ peak_state)
        weights = total / final - value / final**2 * by_final
        weights[n] += peak_state / final
        return [Piece(100.0 * (value / final - 1.0), 100.0 * weights)]


def _grids(poles: Poles, period: float | None) -> Iterator[tuple[float, int]]:
    """Yield a step, in s or in samples, and a number of steps for each pole."""
    if period is not None:
        poles = np.log(poles[np.abs(poles) > math.exp(-_SETTLED)])
        yield 1.0, int(_SETTLED / _TURN) + len(poles)  # what is over soon
    for pole in np.unique(poles[poles.imag >= 0.0]):
        step = _TURN / abs(pole)
        step = step if period is None else max(math.floor(step), 1.0)
        yield step, min(math.ceil(_SETTLED / -pole.real / step), _MOST)


def _power(rates: FloatArray, time: float, period: float | None) -> FloatArray:
    """Return what states become after a time, in s or in samples."""
    from scipy.linalg import expm

    if period is None:
        return np.asarray(expm(time * rates))
    return np.linalg.matrix_power(rates, int(time))


def _states(whole: FloatArray, first: FloatArray, count: int) -> FloatArray:
    """Return a state and what follows from it by a number of equal steps, as columns."""
    states = first[:, np.newaxis]
    while states.shape[1] <= count:
        states, whole = np.hstack([states, whole @ states]), whole @ whole
    return states[:, : count + 1]


def _turn(rates: FloatArray, slope: FloatArray, start: FloatArray, h: float) -> float:
    """Return when a response turns, from h beyond a state, which is within h of there."""
    from scipy.optimize import brentq

    def rate(time: float) -> float:
        return float(slope @ _power(rates, time, None) @ start)

    if not rate(0.0) > 0.0 > rate(2.0 * h):
        return 0.0
    return float(brentq(rate, 0.0, 2.0 * h, xtol=1e-12 * h, rtol=1e-12)) - h


def _steady(model: Realization) -> tuple[float, FloatArray]:
    """Return the gain at frequency zero, and its derivatives by the matrices."""
    n = len(model.A)
    away = (0.0 if model.period is None else 1.0) * np.eye(n) - model.A
    inverse = np.linalg.pinv(away, rcond=1e-14)
    left, right = np.append(model.C[0] @ inverse, 1.0), np.append(inverse @ model.B[:, 0], 1.0)
    return float(model.C[0] @ right[:n] + model.D[0, 0]), np.outer(left, right)
