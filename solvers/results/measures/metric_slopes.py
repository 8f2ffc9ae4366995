"""Derivatives of metrics by what they are computed from: signals at nodes, and ends of pieces.

A metric of a record M(y) has the derivative ``Σ (∂M/∂y_kj) δy_kj`` along a change δy of the signal
at node j of piece k. Integrals ``∫ φ(y, t) dt`` have the weights ``∫ ∂φ/∂y L_j dt`` with the
polynomials L of the nodes; values at an instant, and extremes, those of the polynomials there. If a
piece ends at a time that moves, an integral gains φ there, and an extreme at the end its slope.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.contexts.value_places import path_of
from flexure.diagrams.scalars import Graph, evaluate, symbols
from flexure.diagrams.scalars.derivatives.differentiation import gradient
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.results.measures import reductions
from flexure.solvers.results.measures.curves import Curve
from flexure.solvers.results.measures.metrics import Metric, Records, calc_joined
from flexure.solvers.results.measures.polynomials import (
    coefficients_of,
    from_values,
    horner,
    quadrature,
    rows_of,
    slopes_of,
    zero_between,
)
from flexure.solvers.results.measures.signal_metrics import (
    calc_at,
    calc_first_crossing,
    calc_reduction,
    reduced_curve,
)

_KINDS = calc_joined, calc_at, calc_reduction, calc_first_crossing
_STRAIGHT = 1e-9  # of the largest magnitude: pieces that vary by less do not turn inside
#: A function of a signal and of time.
_Density = Callable[[FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class MetricSlopes:
    """The derivative of a metric of one run."""

    value: float  # the metric
    # Its derivatives by the signals at the nodes of all pieces, shape (S, nodes, W).
    values: FloatArray
    # begin, end: those by the times at which pieces begin and end, while each signal continues
    # smoothly, shape (S,).
    begin: FloatArray
    end: FloatArray
    instants: FloatArray  # given times at which the metric reads, begins or ends

    @classmethod
    def of(cls, metric: Metric, records: Records) -> MetricSlopes:
        """Return the derivative of a metric; an EvaluationError names a metric that has none."""
        if metric.functions:
            raise _without(metric, "a function of whole results")
        slopes = cls._nothing(records, float(metric.measure(records)[0]), _instants(metric))
        calc: Any = metric._calc
        kind: Any = getattr(calc, "func", None)
        arguments: tuple[Any, ...] = getattr(calc, "args", ())
        if kind in _KINDS and not np.isfinite(slopes.value):
            raise _without(metric, f"the value {slopes.value}")
        if kind is calc_joined:
            slopes._join(records, *arguments)
        elif kind is calc_at:
            signal, when = arguments
            curve = reductions.cut(records.single(signal), when, None)
            found = _Weights.of(curve)
            found.add(curve.piece[:1], curve.z0[:1], np.ones(1), moving=False)
            slopes._take(records, signal, 1.0, found)
        elif kind is calc_reduction:
            function, signal, target, window = arguments
            found = _reduced(function, reduced_curve(signal, target, window, records))
            slopes._take(records, signal, 1.0, found)
            if not isinstance(target, float):
                slopes._take(records, target, -1.0, found)
        elif kind is calc_first_crossing:
            slopes._cross(metric, records, *arguments)
        else:
            raise _without(metric, "a metric without a derivative by its signals")
        if not np.isfinite(slopes.values).all():
            raise _without(metric, "a slope that is not finite")
        return slopes

    @classmethod
    def _nothing(cls, records: Records, value: float, instants: list[float]) -> MetricSlopes:
        shape = records.dense.values.shape
        begin, end = np.zeros(shape[0]), np.zeros(shape[0])
        return cls(value, np.zeros(shape), begin, end, np.array(instants))

    def _take(self, records: Records, signal: Any, share: float, found: _Weights) -> None:
        """Add the weights of one signal, times a number."""
        self.values[:, :, records.columns[path_of(signal)]] += share * found.values
        if share > 0.0:  # those of the target are in those of the difference
            self.begin[:] += share * found.begin
            self.end[:] += share * found.end

    def _join(self, records: Records, function: Any, operands: tuple[Any, ...]) -> None:
        """Add the derivatives of the metrics of which one is computed, times its own by them."""
        metrics = [each for each in operands if isinstance(each, Metric)]
        parts = [MetricSlopes.of(each, records) for each in metrics]
        inputs = symbols(Graph(), "metric", len(metrics))
        left = iter(inputs)
        total = function(*(next(left) if isinstance(x, Metric) else x for x in operands))
        keys: list[Any] = [("metric", k) for k in range(len(metrics))]
        numbers = {key: part.value for key, part in zip(keys, parts, strict=True)}
        for part, share in zip(parts, evaluate(gradient(total, keys), numbers), strict=True):
            self.values[:] += share * part.values
            self.begin[:] += share * part.begin
            self.end[:] += share * part.end

    def _cross(
        self, metric: Metric, records: Records, signal: Any, level: float, direction: str
    ) -> None:
        """Add the derivatives of the time of a crossing: those of the signal over its slope."""
        found = reductions.crossing_arc(records.single(signal), level, direction)
        curve, (arc,), (jumps,) = found
        if jumps:
            self.begin[curve.piece[arc]] = 1.0
            return
        c = curve._polynomials(np.array([arc]))
        c[:, 0] -= level
        z = zero_between(c, curve.z0[[arc]], curve.z1[[arc]])
        piece = curve.piece[[arc]]
        slope = horner(slopes_of(c), z) * _rate(curve, piece)
        if slope == 0.0:
            raise _without(metric, f"a crossing of {level:g} at rest")
        weights = _Weights.of(curve)
        weights.add(piece, z, -1.0 / slope, moving=False)
        self._take(records, signal, 1.0, weights)


@dataclass(frozen=True, eq=False)
class _Weights:
    """Derivatives by the values of one signal at the nodes, shape (S, nodes), and by times."""

    curve: Curve
    values: FloatArray
    begin: FloatArray
    end: FloatArray

    @classmethod
    def of(cls, curve: Curve) -> _Weights:
        """Return weights of zero."""
        shape = curve.values.shape
        return cls(curve, np.zeros(shape), np.zeros(shape[0]), np.zeros(shape[0]))

    def add(
        self, piece: NDArray[np.intp], z: FloatArray, weights: FloatArray, *, moving: bool = True
    ) -> None:
        """Add weights of the signal at places in pieces, which may move with ends of these."""
        count = self.values.shape[1]
        at_nodes = np.vander(z, count, increasing=True) @ from_values(count).T
        np.add.at(self.values, piece, weights[:, np.newaxis] * at_nodes)
        if moving:
            c = coefficients_of(rows_of(self.curve.values, piece))
            rates = weights * horner(slopes_of(c), z) * _rate(self.curve, piece)
            for times, place in ((self.begin, -1.0), (self.end, 1.0)):
                np.add.at(times, piece[z == place], rates[z == place])

    def integrate(self, slope: _Density, density: _Density) -> None:
        """Add those of the integral of a density of the curve, whose slope by the signal is given.

        Arcs on which the signal changes its sign are divided there.
        """
        curve = self.curve
        z0, z1 = curve.z0, curve.z1
        arcs = np.arange(len(z0))
        signed = np.flatnonzero(curve.y0 * curve.y1 < 0.0)
        zeros = zero_between(curve._polynomials(signed), z0[signed], z1[signed])
        z0, arcs = np.append(z0, zeros), np.append(arcs, signed)
        z1 = np.append(z1, z1[signed])
        z1[signed] = zeros
        points, weights, _ = quadrature(self.values.shape[1])
        half, middle = 0.5 * (z1 - z0), 0.5 * (z0 + z1)
        c, piece = curve._polynomials(arcs), curve.piece[arcs]
        for point, weight in zip(points, weights[:, 0], strict=True):
            z = middle + half * point
            share = weight * half / _rate(curve, piece) * slope(horner(c, z), curve._time(arcs, z))
            self.add(piece, z, share, moving=False)
        for times, ends, place, y, t, sign in (
            (self.begin, curve.z0, -1.0, curve.y0, curve.t0, -1.0),
            (self.end, curve.z1, 1.0, curve.y1, curve.t1, 1.0),
        ):
            at = ends == place
            np.add.at(times, curve.piece[at], sign * density(y, t)[at])

    def scaled(self, share: float) -> _Weights:
        """Return these times a number."""
        return _Weights(self.curve, *(share * x for x in (self.values, self.begin, self.end)))


def has_slopes(metric: Metric) -> bool:
    """Return whether a metric is of a kind that has derivatives by its signals."""
    calc: Any = metric._calc
    kind: Any = getattr(calc, "func", None)
    parts = calc.args[1] if kind is calc_joined else ()
    own = kind in _KINDS and not metric.functions
    return own and all(has_slopes(each) for each in parts if isinstance(each, Metric))


def _instants(metric: Metric) -> list[float]:
    """Return the given times at which a metric reads, begins or ends."""
    calc: Any = metric._calc
    kind: Any = getattr(calc, "func", None)
    arguments: Any = getattr(calc, "args", ())
    if kind is calc_joined:
        return [t for each in arguments[1] if isinstance(each, Metric) for t in _instants(each)]
    if kind is calc_at:
        return [arguments[1]]
    return [*arguments[3].values()] if kind is calc_reduction else []


def _rate(curve: Curve, piece: NDArray[np.intp]) -> FloatArray:
    """Return how fast the place in a piece moves with time."""
    length = (curve.dense.end - curve.dense.begin)[piece]
    return np.asarray(2.0 / np.where(length > 0.0, length, np.inf))


def _reduced(function: Any, curve: Curve) -> _Weights:
    """Return the derivatives of a reduction of one run."""
    # Values of a piece around a bend, as of a Saturation, are one to rounding, and slopes are not.
    small = _STRAIGHT * float(np.maximum(curve.greatest, -curve.least).max())
    curve = replace(curve, bends=curve.bends & (curve.greatest - curve.least > small))
    if function in (reductions.iae, reductions.itae):
        curve = curve.at_level(np.zeros(1))
    found, duration = _Weights.of(curve), float(curve.stop[0] - curve.start[0])
    if function in _INTEGRALS:
        start = float(curve.start[0])
        slope, density = _INTEGRALS[function]
        found.integrate(lambda y, t: slope(y, t - start), lambda y, t: density(y, t - start))
        if function is reductions.mean:
            return found.scaled(1.0 / duration)
        if function is reductions.rms:
            size = duration * float(reductions.rms(curve)[0])
            return found.scaled(0.5 / size if size > 0.0 else 0.0)
        return found
    if function is reductions.final:
        found.add(curve.piece[-1:], curve.z1[-1:], np.ones(1), moving=False)
    elif function is reductions.total_variation:
        curve = curve.everywhere()
        jumps = np.sign(curve.y0[1:] - curve.y1[:-1])
        ways = np.sign(curve.y1 - curve.y0)
        found.add(curve.piece, curve.z1, ways - np.append(jumps, 0.0))
        found.add(curve.piece, curve.z0, np.append(0.0, jumps) - ways)
    else:
        curve = curve.at_extremes()
        y, z = np.append(curve.y0, curve.y1), np.append(curve.z0, curve.z1)
        sizes = {reductions.maximum: y, reductions.minimum: -y, reductions.peak: np.abs(y)}
        heights, k = sizes[function], int(np.argmax(sizes[function]))
        flat = curve.least == curve.greatest
        top = flat & (heights[: len(flat)] >= heights[k] - small)
        if np.any(top) and not np.all(flat):  # in the middle, far from the bends at both ends
            k = int(np.argmax(np.where(top, curve.t1 - curve.t0, -1.0)))
            z[k] = 0.5 * (curve.z0[k] + curve.z1[k])
        sign = np.sign(y[k]) if function is reductions.peak else 1.0
        found.add(np.tile(curve.piece, 2)[[k]], z[[k]], np.array([sign]))
    return found


#: Integrals: what is integrated of a signal and of the time since the start, and its slope.
_INTEGRALS: dict[Any, tuple[_Density, _Density]] = {
    **dict.fromkeys(
        (reductions.integral, reductions.mean), (lambda y, _: np.ones_like(y), lambda y, _: y)
    ),
    **dict.fromkeys((reductions.ise, reductions.rms), (lambda y, _: 2.0 * y, lambda y, _: y * y)),
    reductions.iae: (lambda y, _: np.sign(y), lambda y, _: np.abs(y)),
    reductions.itae: (lambda y, t: t * np.sign(y), lambda y, t: t * np.abs(y)),
}


def _without(metric: Metric, found: str) -> EvaluationError:
    return EvaluationError(
        f"Cannot differentiate {metric.label}",
        expected="final, at, maximum, minimum, peak, mean, rms, integral, total_variation, iae, "
        "ise, itae or first_crossing of signals, or arithmetic of them",
        found=found,
        remedy="Use one of these, or take differences of two simulations instead",
    )
