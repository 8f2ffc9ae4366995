"""The constants of polygons as sections: Green's theorem, Poisson's problem of torsion, warping."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from flexure.blocks.flexures.sections.flexure_parameters import MaterialConstants
from flexure.diagrams.checks.arguments import require_that
from flexure.diagrams.values.arrays import Array, FloatArray, as_numbers, check_bounds, show

_ATTEMPT = "Cannot make a section of a polygon"
_ACROSS = 5.0  # elements of second order across the mean thickness
_LONGEST = 1e4  # outline in mean thicknesses, which takes 10 to 20 s
_LINES = 400  # along which the shear flow is integrated
_EDGES = ((0, 1), (1, 2), (2, 0))


class Rings(NamedTuple):
    """The outline of a section, counter-clockwise, and its holes, clockwise, in one frame."""

    rings: list[FloatArray]

    @property
    def starts(self) -> FloatArray:
        """All corners."""
        return np.concatenate(self.rings)

    @property
    def ends(self) -> FloatArray:
        """The corner after each of them."""
        return np.concatenate([np.roll(ring, -1, axis=0) for ring in self.rings])

    @property
    def area(self) -> float:
        """The area, with those of holes taken off."""
        return 0.5 * float(np.sum(crossed(self.starts, self.ends)))

    def moments(self) -> tuple[float, FloatArray, FloatArray]:
        """Return the area, the centroid and ∫ r rᵀ dA about it, by Green's theorem."""
        a, b, area = self.starts, self.ends, self.area
        center = (a + b).T @ crossed(a, b) / (6.0 * area)
        a, b = a - center, b - center
        second = sum((each.T * crossed(a, b)) @ each for each in (a, b, a + b))
        return area, center, np.asarray(second) / 24.0

    def moved(self, center: FloatArray, R: FloatArray) -> Rings:
        """Return it about another point, in axes that are the columns of R."""
        return Rings([(ring - center) @ R for ring in self.rings])

    def crossings(self, levels: Array, axis: int) -> tuple[Any, Any, FloatArray]:
        """Return which sides begin above levels along an axis, which cross them, and where."""
        a, b = (np.roll(each, 1 - axis, axis=1) for each in (self.starts, self.ends))
        level = levels[:, np.newaxis]
        above = a[:, 1] > level
        crosses = above != (b[:, 1] > level)
        rise = np.where(crosses, b[:, 1] - a[:, 1], 1.0)
        return above, crosses, a[:, 0] + (level - a[:, 1]) / rise * (b[:, 0] - a[:, 0])

    def contain(self, points: FloatArray) -> npt.NDArray[np.bool_]:
        """Return which points are inside."""
        _, crosses, at = self.crossings(points[:, 1], 1)
        return np.asarray(np.sum(crosses & (points[:, :1] < at), axis=1) % 2 == 1)

    def shear_factor(self, axis: int) -> float:
        """Return I²/(A ∫ Q²/b ds) along an axis, with the width b and the static moment Q."""
        area, _, second = self.moments()
        low, high = float(self.starts[:, axis].min()), float(self.starts[:, axis].max())
        step = (high - low) / _LINES
        levels = low + step * (np.arange(_LINES) + 0.5)
        above, crosses, at = self.crossings(levels, axis)
        width = np.abs(np.sum(np.where(crosses, np.where(above, -at, at), 0.0), axis=1))
        static = np.cumsum(width * levels) * step - 0.5 * width * levels * step
        return float(second[axis, axis] ** 2 / (area * np.sum(static**2 / width) * step))


def crossed(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the cross products of vectors in a plane, along its normal."""
    return np.asarray(a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0])


def rings_of(corners: Any, holes: Any) -> Rings:
    """Return an outline and holes about its centroid, or refuse what is no polygon."""
    given = [as_numbers(each, _ATTEMPT) for each in (corners, *holes)]
    rings = []
    for k, ring in enumerate(given):
        fits = ring.ndim == 2 and ring.shape[1:] == (2,) and len(ring) >= 3
        expected = "at least three corners (y, z) of each outline"
        require_that(fits, _ATTEMPT, expected, f"an array of shape {ring.shape}")
        check_bounds(ring, _ATTEMPT, unit="m")
        area = Rings([ring]).area
        is_flat = abs(area) <= 1e-12 * np.prod(np.ptp(ring, axis=0))
        expected = "an outline that encloses an area and does not cross itself"
        found = f"{len(ring)} corners from ({show(ring[0, 0])}, {show(ring[0, 1])}) m"
        require_that(not is_flat and not _crosses_itself(ring), _ATTEMPT, expected, found)
        rings.append(ring if (area > 0.0) == (k == 0) else ring[::-1])
    outline = Rings(rings[:1])
    are_inside = all(np.all(outline.contain(hole)) for hole in rings[1:])
    require_that(are_inside, _ATTEMPT, "holes inside of the outline", "one outside")
    return Rings(rings)


def _crosses_itself(ring: FloatArray) -> bool:
    """Return whether two sides that are no neighbors cross."""
    p, q = ring[:, np.newaxis], np.roll(ring, -1, axis=0)[:, np.newaxis]
    apart = np.sign(crossed(q - p, ring - p)) * np.sign(crossed(q - p, q[:, 0] - p))
    return bool(np.any((apart < 0.0) & (apart.T < 0.0)))


def polygon_constants(corners: Any, holes: Any) -> dict[str, float]:
    """Return the fields of a `GeneralSection` of a polygon, in its principal axes."""
    rings = rings_of(corners, holes)
    area, center, second = rings.moments()
    R = principal_axes(second)
    rings = rings.moved(center, R)
    moments = np.diag(R.T @ second @ R)
    J, stress = torsion(rings)
    reach = np.max(np.abs(rings.rings[0]), axis=0)
    return {
        "area": area,
        "second_moment_y": float(moments[1]),
        "second_moment_z": float(moments[0]),
        "torsion_constant": J,
        "extent_y": float(reach[0]),
        "extent_z": float(reach[1]),
        "torsion_modulus": J / stress,
        "shear_factor_y": rings.shear_factor(0),
        "shear_factor_z": rings.shear_factor(1),
    }


def principal_axes(second: FloatArray) -> FloatArray:
    """Return the rotation to the principal axes that are nearest to y and z."""
    angle = 0.5 * np.arctan2(2.0 * second[0, 1], second[0, 0] - second[1, 1])
    angle -= 0.5 * np.pi * np.round(angle / (0.5 * np.pi))
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s], [s, c]])


def torsion(rings: Rings) -> tuple[float, float]:
    """Return the torsion constant, and the greatest slope of the stress function per twist.

    The stress function has -∇²φ = 2, vanishes outside, and is constant around each hole of the area
    A_k, with ∮ ∂φ/∂n ds = 2 A_k. It is found with triangles of second order.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.linalg import spsolve

    points, of_ring, triangles, size = _mesh(rings)
    x = points[triangles]
    edges = np.sort(triangles[:, _EDGES], axis=2).reshape(-1, 2)
    unique, number, count = np.unique(edges, axis=0, return_inverse=True, return_counts=True)
    number = number.reshape(-1, 3)
    nodes = np.hstack([triangles, len(points) + number])
    ring = np.append(of_ring, np.where(count == 1, of_ring[unique[:, 0]], -1))
    # Slopes of the barycentric coordinates, and of the six shapes at the middles of the edges.
    side = np.roll(x, -2, axis=1) - np.roll(x, -1, axis=1)
    area = 0.5 * crossed(side[:, 1], side[:, 2])
    slope = np.stack([-side[..., 1], side[..., 0]], axis=2) / (2.0 * area[:, None, None])

    def slopes(at: FloatArray) -> FloatArray:
        corner = (4.0 * at - 1.0)[:, np.newaxis] * slope
        middle = [4.0 * (at[i] * slope[:, j] + at[j] * slope[:, i]) for i, j in _EDGES]
        return np.concatenate([corner, np.stack(middle, axis=1)], axis=1)

    middles = [np.array([0.5 * (k in edge) for k in range(3)]) for edge in _EDGES]
    stiffness = sum(np.einsum("eik,ejk->eij", g, g) for g in map(slopes, middles))
    stiffness = stiffness * (area / 3.0)[:, None, None]
    # Nodes around a hole share one value, and those of the outline, numbered last, have none.
    holes, inside = len(rings.rings) - 1, ring < 0
    last = holes + np.count_nonzero(inside)
    unknown = np.where(ring > 0, ring - 1, last)
    unknown[inside] = np.arange(holes, last)
    place = unknown[nodes]
    pairs = np.repeat(place, 6, axis=1).ravel(), np.tile(place, (1, 6)).ravel()
    K: Any = coo_array((stiffness.ravel(), pairs), shape=(last + 1, last + 1)).tocsc()
    f: Array = np.bincount(place[:, 3:].ravel(), np.repeat(2.0 * area / 3.0, 3), last + 1)[:last]
    f[:holes] -= [2.0 * Rings([each]).area for each in rings.rings[1:]]
    found = spsolve(K[:last, :last], f)
    phi = np.append(found, 0.0)[place]
    greatest = 0.0
    far = _distance_to_notches(rings, points[unique].mean(axis=1)) > size
    for here, at in zip(number.T, middles, strict=True):
        steep = np.einsum("eik,ei->ek", slopes(at), phi)[(count[here] == 1) & far[here]]
        greatest = max(greatest, float(np.max(np.linalg.norm(steep, axis=1), initial=0.0)))
    return float(f @ found), greatest


def _mesh(rings: Rings) -> tuple[FloatArray, Any, Any, float]:
    """Return points, the ring of each or -1, triangles, and the mean thickness over two."""
    from scipy.spatial import Delaunay, cKDTree

    area = rings.area
    length = float(np.sum(np.linalg.norm(rings.ends - rings.starts, axis=1)))
    thickness = 2.0 * area / length
    h = thickness / _ACROSS
    remedy = "Omit small details, or give the constants to GeneralSection"
    expected = f"an outline of at most {_LONGEST:g} mean thicknesses, 2 area/outline"
    found = f"{show(length)} m, {show(length / thickness)} times {show(thickness)} m"
    require_that(length <= _LONGEST * thickness, _ATTEMPT, expected, found, remedy)
    border, of_ring = [], []
    for k, ring in enumerate(rings.rings):
        for p, q in zip(ring, np.roll(ring, -1, axis=0), strict=True):
            parts = int(np.ceil(np.linalg.norm(q - p) / h))
            border.append(p + np.arange(parts)[:, np.newaxis] / parts * (q - p))
            of_ring += [k] * parts
    edge = np.concatenate(border)
    low, high = edge.min(axis=0), edge.max(axis=0)
    rows = np.arange(low[1], high[1], h * np.sqrt(0.75))
    columns, inner = np.arange(low[0], high[0], h), [np.zeros((0, 2))]
    for k, (crosses, at) in enumerate(zip(*rings.crossings(rows, 1)[1:], strict=True)):
        y = columns + 0.5 * h * (k % 2)
        y = y[np.searchsorted(np.sort(at[crosses]), y, side="right") % 2 == 1]
        inner.append(np.column_stack([y, np.full(len(y), rows[k])]))
    within = np.concatenate(inner)
    within = within[cKDTree(edge).query(within)[0] > 0.7 * h]
    points = np.concatenate([edge, within])
    triangles = Delaunay(points).simplices  # counter-clockwise
    x = points[triangles]
    twice = crossed(x[:, 1] - x[:, 0], x[:, 2] - x[:, 0])
    kept = rings.contain(x.mean(axis=1)) & (twice > 1e-9 * h * h)
    triangles = triangles[kept]
    is_filled = abs(0.5 * np.sum(twice[kept]) - area) <= 1e-3 * area
    expected = "walls and gaps that are not much thinner than the mean wall"
    found = f"an outline that triangles of {show(h)} m do not fill"
    require_that(is_filled, _ATTEMPT, expected, found, remedy)
    ring = np.append(of_ring, np.full(len(points) - len(edge), -1))
    return points, ring, triangles, 0.5 * thickness


def _distance_to_notches(rings: Rings, points: FloatArray) -> FloatArray:
    """Return how far points are from re-entrant corners, where stress has no bound."""
    from scipy.spatial import cKDTree

    before = np.concatenate([np.roll(ring, 1, axis=0) for ring in rings.rings])
    u, v = rings.starts - before, rings.ends - rings.starts
    sharp = crossed(u, v) < -0.2 * np.linalg.norm(u, axis=1) * np.linalg.norm(v, axis=1)
    return np.asarray(cKDTree(rings.starts[sharp]).query(points)[0])


_X, _W = np.polynomial.legendre.leggauss(6)
_HALF, _WEIGHTS = 0.5 + 0.5 * _X, 0.5 * _W  # of one half of a leaf, from its middle to its end
_LONG = 3.0  # above which integrals are known in closed form, to rounding
_SHORT = 0.03  # below which 1 - tanh(x)/x is a series, to rounding


def warping_length(length: Array, section: Any, material: MaterialConstants) -> Array:
    """Return λ: the length of a leaf over that in which clamped warping fades from its ends."""
    slope = np.sqrt(12.0 * material.shear_modulus / material.youngs_modulus)
    return slope * length / section.width


def part_left_by_warping(x: Array) -> Array:
    """Return 1 - tanh(x)/x for x > 0: what is left of the twist of ends that are free to warp."""
    square = x * x
    series = square * (
        1.0 / 3.0 - square * (2.0 / 15.0 - square * (17.0 / 315.0 - square * (62.0 / 2835.0)))
    )
    return np.where(x < _SHORT, series, 1.0 - np.tanh(x) / x)


def unevenness(x: Array) -> tuple[Array, Array]:
    """Return how uneven the twist 1 - cosh(x s)/cosh(x) is along -1 < s < 1, for x > 0.

    First the mean of its fourth power over the fourth power of its mean, 2.06 of short leaves; then
    its value in the middle over its mean, 1.5 of short leaves.
    """

    def twist(x: Array, s: float) -> Array:
        return 1.0 - (np.exp(x * (s - 1.0)) + np.exp(-x * (s + 1.0))) / (1.0 + np.exp(-2.0 * x))

    short = np.minimum(x, _LONG)
    values = [twist(short, s) for s in _HALF]
    mean = sum(weight * value for weight, value in zip(_WEIGHTS, values, strict=True))
    fourth = sum(weight * value**4 for weight, value in zip(_WEIGHTS, values, strict=True))
    # Of long leaves, integrals of powers of cosh(x s)/cosh(x), which cancel where x is small.
    long = np.maximum(x, _LONG)
    tanh, t = np.tanh(long), np.tanh(long) / long
    c = 1.0 - tanh * tanh
    second = 0.5 * (c + t)
    whole = 1.0 - 4.0 * t + 6.0 * second - 4.0 * t * (c + tanh * tanh / 3.0)
    whole = whole + 0.25 * t + 0.75 * c * second
    uneven = np.where(x < _LONG, fourth / mean**4, whole / (1.0 - t) ** 4)
    return uneven, twist(x, 0.0) / part_left_by_warping(x)
