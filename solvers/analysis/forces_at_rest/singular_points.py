"""Change points and dead points: positions at which constraints and strokes are singular.

The derivatives J of all that is kept have as many independent rows at one point of a path as at the
next. In between they lose one at a change point, at which a mechanism can go on in another way, and
at a dead point, at which a stroke turns back, since it cannot drive the mechanism. With the
singular values ``J₁ = U Σ Vᵀ`` of one point, the number

    g = det(Σ⁻¹ Uᵀ J₂ V)

is 1 there, smooth along the path, and zero at the next singular point.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np

from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.forces_at_rest.allowed_motions import INDEPENDENT
from flexure.solvers.analysis.forces_at_rest.curve_points import Crossing, CurvePoint, LostError
from flexure.solvers.analysis.forces_at_rest.equilibrium_curve import EquilibriumCurve

_BESIDE = (-0.06, -0.02, 0.02, 0.06)  # parts of a step from where g seems to be zero
_NOTHING = 1e-300
_HERE = 1e-6  # value of g of a singular point
_SINGULAR = 1e-2  # least singular value there, as a part of that before


def with_regular_rows(point: CurvePoint, before: CurvePoint) -> CurvePoint:
    """Return a point with the rows and stiffnesses of the one before, if it is singular itself."""
    if _count(point.rows) == _count(before.rows):
        return point
    return replace(
        point,
        rows=before.rows,
        resists=before.resists,
        calc_stiffnesses=before.calc_stiffnesses,
    )


def crossing_between(
    curve: EquilibriumCurve, start: CurvePoint, end: CurvePoint, length: float
) -> Crossing | None:
    """Return the change point or dead point between two points of a path, if there is one.

    Close to it the equations are almost singular, so that it is where a polynomial through points
    beside it says.

    ``length`` is the distance along the tangent from the one to the other.
    """
    at_end = _g(start.rows, end.rows)
    if not at_end < 0.0:
        return None
    at_start = _g(start.rows, curve.rows(start.x, start.load))
    near = [(0.0, at_start, start), (length, at_end, end)]
    if at_start < _HERE:
        return _crossing(curve, start, 0.0, start)
    with suppress(LostError):
        for _ in range(2):
            (low, g_low, _), (high, g_high, _) = _around(near)
            place = (low * g_high - high * g_low) / (g_high - g_low)
            span = high - low
            for beside in _BESIDE:
                where = min(max(place + beside * span, low), high)
                point = curve.looked(start, where)
                near.append((where, _g(start.rows, point.rows), point))
    (low, g_low, before), (high, g_high, behind) = _around(near)
    part = g_low / (g_low - g_high)
    x = (1.0 - part) * before.x + part * behind.x
    load = (1.0 - part) * before.load + part * behind.load
    coordinates = curve.equations.coordinates
    x = coordinates.moved(x, np.zeros(len(coordinates)))
    reactions = before.reactions
    if start.along[-1] * end.along[-1] > 0.0:  # where the load turns they grow without bounds
        reactions = (1.0 - part) * before.reactions + part * behind.reactions
    point = replace(before, x=x, load=load, reactions=reactions, rows=start.rows)
    return _crossing(curve, point, (1.0 - part) * low + part * high, start)


def _crossing(
    curve: EquilibriumCurve, point: CurvePoint, at: float, start: CurvePoint
) -> Crossing | None:
    """Return the crossing at a point with the motion that is not decided there."""
    _, sizes, right = np.linalg.svd(curve.rows(point.x, point.load))
    rank = _count(start.rows)
    least = np.linalg.svd(start.rows, compute_uv=False)[rank - 1]
    if sizes[rank - 1] > _SINGULAR * least:
        return None  # directions have turned far, and all is decided everywhere
    free = right[rank - 1 :]
    along = point.along[:-1] / max(float(np.linalg.norm(point.along[:-1])), _NOTHING)
    across = free - np.outer(free @ along, along)
    direction = np.linalg.svd(across)[2][0]
    first = np.argmax(np.abs(direction) > 0.999 * np.max(np.abs(direction)))
    return Crossing(point, at, direction * np.sign(direction[first]), 0.0)


def _around(
    near: list[tuple[float, float, CurvePoint]],
) -> tuple[tuple[float, float, CurvePoint], tuple[float, float, CurvePoint]]:
    """Return the last point before g becomes negative, and the first one behind."""
    ordered = sorted(near, key=lambda each: each[0])
    behind = next(k for k, (_, g, _) in enumerate(ordered) if g < 0.0)
    return ordered[behind - 1], ordered[behind]


def _count(rows: FloatArray) -> int:
    """Return the number of independent rows."""
    return int(np.linalg.matrix_rank(rows, rtol=INDEPENDENT)) if rows.size else 0


def _g(first: FloatArray, second: FloatArray) -> float:
    """Return g of the rows of two points."""
    if not first.size:
        return 1.0
    left, sizes, right = np.linalg.svd(first, full_matrices=False)
    rank = int(np.sum(sizes > INDEPENDENT * sizes[0]))
    along = left[:, :rank].T @ second @ right[:rank].T
    return float(np.linalg.det(along / sizes[:rank, np.newaxis]))
