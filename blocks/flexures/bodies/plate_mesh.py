"""Flat plates: meshes of quadrilaterals on rectangles, rings and spiral arms, and their matrices.

Matrices and stresses are those of four-node elements on two layers of nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.flexures.bodies.recovery import Recovery, assembled, stress_stiffness
from flexure.blocks.flexures.sections.materials import Material
from flexure.blocks.flexures.sections.polygon_constants import crossed
from flexure.diagrams.checks.arguments import count_of, mapping, require_that
from flexure.diagrams.values.arrays import FloatArray, as_numbers, bounded, check_bounds

_FLAT = 1e-9  # of the square of the size: cells without an area
_LARGEST = 1e6  # m
_MOST = 1e9  # nodes
_NEXT = (1, 2, 3, 0)  # corners in order
_ATTEMPT = "Cannot make PlateMesh"


class PlateMesh:
    """Quadrilaterals in the plane of x and y, the middle surface of a plate.

    Made by `rectangle`, `ring` or `spiral`, or of points and cells.

    Parameters
    ----------
    points : array_like, shape (m, 2)
        Positions of the nodes in m.
    cells : array_like of int, shape (e, 4)
        Numbers of the corners of each cell, counterclockwise or clockwise. Cells must be convex; a
        triangle repeats a corner.
    sets : mapping of str to array_like of int, optional
        Named sets of nodes, which `FlexibleBody.from_plate` accepts as interfaces.

    Attributes
    ----------
    points, cells, sets
        As above, with all cells counterclockwise.

    Raises
    ------
    ValueRefusedError
        When shapes do not fit, a node does not exist, a cell is listed twice, is not convex or has
        no area.

    See Also
    --------
    FlexibleBody.from_plate : The elastic body of a mesh.

    Examples
    --------
    >>> mesh = PlateMesh.rectangle(0.1, 0.02, cells=(10, 2))
    >>> mesh.points.shape, sorted(mesh.sets)
    ((33, 2), ['bottom', 'left', 'right', 'top'])
    """

    def __init__(
        self,
        points: npt.ArrayLike,
        cells: npt.ArrayLike,
        sets: Mapping[str, npt.ArrayLike] | None = None,
    ) -> None:
        self.points = as_numbers(points, _ATTEMPT)
        self.cells = node_numbers(cells, _ATTEMPT)
        given = mapping({} if sets is None else sets, "node numbers", _ATTEMPT)
        self.sets = {name: np.unique(node_numbers(each, _ATTEMPT)) for name, each in given.items()}
        fits = self.points.ndim == 2 and self.points.shape[1] == 2 and self.cells.shape[1:] == (4,)
        found = f"shapes {self.points.shape} and {self.cells.shape}"
        require_that(fits, _ATTEMPT, "points of shape (m, 2) and cells of shape (e, 4)", found)
        check_bounds(self.points, _ATTEMPT, lower=-_LARGEST, upper=_LARGEST, unit="m")
        used, last = np.concatenate([self.cells.ravel(), *self.sets.values()]), len(self.points) - 1
        fits = len(self.cells) and used.min() >= 0 and used.max() <= last
        found = f"nodes from {used.min()} to {used.max()}" if len(used) else "no cells"
        require_that(fits, _ATTEMPT, f"cells and sets of nodes from 0 to {last}", found)
        nodes = np.sort(self.cells, axis=1)
        nodes[:, 1:][nodes[:, 1:] == nodes[:, :-1]] = -1  # a triangle may repeat any corner
        _, firsts, counts = np.unique(
            np.sort(nodes, axis=1), axis=0, return_index=True, return_counts=True
        )
        copied = firsts[counts > 1]
        found = f"several with the nodes of cell {min(copied, default=0)}"
        remedy = "Remove the copies, each of which would add mass and stiffness"
        require_that(not len(copied), _ATTEMPT, "each cell once", found, remedy)
        corners = self.points[self.cells]
        sides = corners[:, _NEXT] - corners
        turns = crossed(sides, sides[:, _NEXT])
        area = 0.5 * crossed(corners[:, 2] - corners[:, 0], corners[:, 3] - corners[:, 1])
        flat = _FLAT * float(np.ptp(self.points, axis=0).max()) ** 2
        turns_back = (turns * np.sign(area)[:, np.newaxis] < -flat).any(axis=1)
        odd = np.flatnonzero((np.abs(area) <= flat) | turns_back)
        found = f"{len(odd)} others, number {min(odd, default=0)} first"
        remedy = "List the corners of each cell around it"
        require_that(not len(odd), _ATTEMPT, "convex cells with an area", found, remedy)
        self.cells[area < 0.0] = self.cells[area < 0.0, ::-1]

    @classmethod
    def rectangle(
        cls, length: float, width: float, *, cells: tuple[int, int] = (24, 24)
    ) -> PlateMesh:
        """Return a rectangle from x = 0 to its length, with y = 0 in the middle.

        Parameters
        ----------
        length, width : float
            Extents > 0 along x and y in m.
        cells : tuple of int
            Numbers of cells along x and y.

        Returns
        -------
        PlateMesh
            With the sets ``left``, ``right``, ``bottom`` and ``top``.
        """
        nx, ny = _counts(cells)
        a, b = _positive("length", length), _positive("width", width)
        x, y = np.meshgrid(
            np.linspace(0.0, a, nx + 1), np.linspace(-0.5 * b, 0.5 * b, ny + 1), indexing="ij"
        )
        numbers = np.arange(x.size).reshape(x.shape)
        sides = numbers[0], numbers[-1], numbers[:, 0], numbers[:, -1]
        edges = dict(zip(("left", "right", "bottom", "top"), sides, strict=True))
        return cls(np.stack([x.ravel(), y.ravel()], axis=1), _strip(numbers), edges)

    @classmethod
    def ring(
        cls, inner_radius: float, outer_radius: float, *, cells: tuple[int, int] = (12, 48)
    ) -> PlateMesh:
        """Return a ring, or a disc, around the origin.

        Parameters
        ----------
        inner_radius : float
            Radius of the hole in m; 0 for a disc, whose middle is a ring of triangles.
        outer_radius : float
            Outer radius in m.
        cells : tuple of int
            Numbers of cells along the radius and around.

        Returns
        -------
        PlateMesh
            With the sets ``inner`` and ``outer``; ``inner`` is one node in a disc.
        """
        along, around = _counts(cells, least=(1, 3))
        inner = bounded(inner_radius, f"{_ATTEMPT} with inner_radius", lower=0.0, unit="m")
        outer = _positive("outer_radius", outer_radius, lower=inner)
        r = np.linspace(inner, outer, along + 1)[:, np.newaxis]
        angle = np.linspace(0.0, 2.0 * np.pi, around, endpoint=False)
        points = np.stack([r * np.cos(angle), r * np.sin(angle)], axis=-1).reshape(-1, 2)
        numbers = np.arange(len(points)).reshape(along + 1, around)
        if inner == 0.0:
            points, numbers = points[around - 1 :], np.maximum(numbers - around + 1, 0)
        closed = np.concatenate([numbers, numbers[:, :1]], axis=1)
        return cls(points, _strip(closed), {"inner": numbers[0], "outer": numbers[-1]})

    @classmethod
    def spiral(
        cls,
        inner_radius: float,
        outer_radius: float,
        sweep: float,
        width: float,
        *,
        arms: int = 3,
        cells: tuple[int, int] = (32, 4),
    ) -> PlateMesh:
        """Return the arms of a spiral flexure: arcs from a hub to a rim, around the origin.

        The arms are those of `SpiralFlexure`, and are connected by interfaces at their ends.

        Parameters
        ----------
        inner_radius, outer_radius : float
            Radii of the hub and of the rim, where the center lines of the arms end, in m.
        sweep : float
            Angle by which an arm turns, in rad, above 0 and at most π.
        width : float
            Width of the arms in m, below twice the radius of the arcs.
        arms : int
            Number of arms, at least 1.
        cells : tuple of int
            Numbers of cells along and across each arm.

        Returns
        -------
        PlateMesh
            With the sets ``inner`` and ``outer``, the ends of all arms.
        """
        along, across = _counts(cells)
        inner = _positive("inner_radius", inner_radius)
        outer = _positive("outer_radius", outer_radius, lower=inner)
        turn = _positive("sweep", sweep, upper=float(np.nextafter(np.pi, 4.0)), unit="rad")
        radius = arc_radius(inner, outer, turn)
        half = 0.5 * _positive("width", width, upper=2.0 * radius)
        rho = radius + np.linspace(-half, half, across + 1)
        angle = np.linspace(0.0, turn, along + 1)[:, np.newaxis]
        arc = (inner - radius + rho * np.exp(1j * angle)).ravel()
        count = count_of(arms, "arms", _ATTEMPT, minimum=1)
        around = np.exp(2j * np.pi * np.arange(count) / count)
        places = (around[:, np.newaxis] * arc).ravel()
        numbers = np.arange(len(places)).reshape(count, along + 1, across + 1)
        ends = {"inner": numbers[:, 0].ravel(), "outer": numbers[:, -1].ravel()}
        parts = np.concatenate([_strip(each) for each in numbers])
        return cls(np.stack([places.real, places.imag], axis=1), parts, ends)


def arc_radius(inner: float, outer: float, sweep: float) -> float:
    """Return the radius of an arc that leaves a hub along its circumference and ends on a rim."""
    square = 2.0 * (outer**2 - inner**2) / (1.0 - np.cos(sweep))
    return 0.5 * (float(np.sqrt(inner**2 + square)) + inner)


def _strip(numbers: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return the cells of a grid of nodes."""
    corners = numbers[:-1, :-1], numbers[1:, :-1], numbers[1:, 1:], numbers[:-1, 1:]
    return np.stack([each.ravel() for each in corners], axis=1)


def _positive(name: str, value: float, **bounds: Any) -> float:
    """Return a positive number, or refuse it by its name."""
    limits = {"lower": 0.0, "upper": _LARGEST, "unit": "m", **bounds}
    return bounded(value, f"{_ATTEMPT} with {name}", exclusive=True, **limits)


def _counts(cells: Any, least: tuple[int, int] = (1, 1)) -> tuple[int, int]:
    """Return two numbers of cells."""
    fits = isinstance(cells, tuple) and len(cells) == 2
    require_that(fits, _ATTEMPT, "cells, two numbers of them", f"{cells!r}")
    pairs = zip(cells, least, strict=True)
    first, second = (count_of(each, "cells", _ATTEMPT, minimum=low) for each, low in pairs)
    return first, second


def node_numbers(value: npt.ArrayLike, attempt: str) -> npt.NDArray[np.intp]:
    """Return numbers of nodes, after checks that they are whole, and no mask."""
    numbers = as_numbers(value, attempt)
    is_mask = np.asarray(value).dtype == bool and numbers.size > 0
    are_whole = np.all((numbers == np.rint(numbers)) & (np.abs(numbers) < _MOST))
    found, remedy = ("a mask of bool", "Pass np.flatnonzero(mask)") if is_mask else ("others", "")
    require_that(are_whole and not is_mask, attempt, "whole numbers of nodes", found, remedy)
    return numbers.astype(np.intp)


_CORNERS = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
_SHEAR = 5.0 / 6.0  # of the section that carries shear


def plate_matrices(
    mesh: PlateMesh, thickness: float, material: Material
) -> tuple[Any, Any, FloatArray, Recovery, Any]:
    """Return m, K, nodes, stresses at the centers of cells on both faces, and T of a plate.

    A node of the mesh is a pair at z = ± h/2 with h = t/√3, the points of a quadrature over the
    thickness, so that the masses of points have the rotary inertia of the plate. Their mean is the
    displacement (u, w) of the middle surface, and β = (u₊ - u₋)/h its rotation::

        ε = sym ∇u    κ = sym ∇β    γ = ∇w + β    ε_z = (w₊ - w₋)/h
        V = ½ ∫ t ε·Cε + t³/12 κ·Cκ + 5/6 G t γ·γ + E t ε_z² dA

    C is that of plane stress. ε has two incompatible modes for each direction, which are condensed
    (Taylor, Beresford and Wilson 1976), and γ is interpolated from the middles of edges (MITC4,
    Bathe and Dvorkin 1985). There is no rotation about the normal, since nodes only move. K is that
    of T u = (u₊ + u₋, u₊ - u₋)/√2, in which bending is no small difference of large entries.
    """
    import scipy.sparse as sparse
    from scipy.linalg import block_diag

    cells, count = mesh.cells, len(mesh.points)
    x = mesh.points[cells]
    h = thickness / np.sqrt(3.0)
    E, nu = material.youngs_modulus, material.poissons_ratio
    G = 0.5 * E / (1.0 + nu)
    C = E / (1.0 - nu**2) * np.array([[1.0, nu, 0.0], [nu, 1.0, 0.0], [0.0, 0.0, 0.5 * (1.0 - nu)]])
    shear = _SHEAR * G * thickness * np.eye(2)
    D = block_diag(thickness * C, thickness**3 / 12.0 * C, shear, [E * thickness])
    K, coupled, inner, m = (np.zeros((len(cells), *s)) for s in ((24, 24), (4, 24), (4, 4), (4, 4)))
    _, at_middle = _shape(x, np.zeros(2))
    points = _CORNERS / np.sqrt(3.0)  # of the quadrature
    for point in points:
        N, J = _shape(x, point)
        weight = np.linalg.det(J)[:, np.newaxis, np.newaxis]
        upper, lower = np.split(_strains(x, point, h), 2, axis=2)
        B = np.sqrt(0.5) * np.concatenate([upper + lower, upper - lower], axis=2)
        bubbles = np.linalg.solve(at_middle, np.diag(-2.0 * point)[np.newaxis])
        A = _plane(bubbles * np.linalg.det(at_middle)[:, np.newaxis, np.newaxis] / weight)
        A = A.reshape(len(cells), 3, 4)
        K += weight * (B.transpose(0, 2, 1) @ (D @ B))
        coupled += weight * (A.transpose(0, 2, 1) @ (D[:3, :3] @ B[:, :3]))
        inner += weight * (A.transpose(0, 2, 1) @ (D[:3, :3] @ A))
        m += 0.5 * material.density * thickness * weight * np.outer(N, N)
    K -= coupled.transpose(0, 2, 1) @ np.linalg.solve(inner, coupled)
    nodes = np.concatenate([cells, cells + count], axis=1)
    dofs = (3 * nodes[:, :, np.newaxis] + np.arange(3)).reshape(-1, 24)
    (layer,) = assembled(cells, count, m[..., np.newaxis, np.newaxis])
    both = np.sqrt(0.5) * np.array([[1.0, 1.0], [1.0, -1.0]])
    T = sparse.kron(both, sparse.eye_array(3 * count), format="csr")
    places = _on_both_sides(x.mean(axis=1), thickness)

    def strains(shapes: FloatArray) -> FloatArray:
        return _strains(x, np.zeros(2), h) @ shapes[dofs]

    def stresses(shapes: FloatArray) -> FloatArray:
        at, found = strains(shapes), np.zeros((2, len(cells), 6, shapes.shape[1]))
        for side, z in enumerate((0.5 * thickness, -0.5 * thickness)):
            found[side][:, [0, 1, 3]] = C @ (at[:, :3] + z * at[:, 3:6])
        return found.reshape(len(places), 6, shapes.shape[1])

    def stiffening(strained: FloatArray, shapes: FloatArray) -> FloatArray:
        forces = thickness * (C @ strains(strained)[:, :3])
        middle = 0.5 * (shapes[: 3 * count] + shapes[3 * count :])
        moved = middle.reshape(count, 3, -1)[cells]
        J = np.stack([_shape(x, point)[1] for point in points], axis=1)
        slopes = [_cartesian(J[:, q], point) for q, point in enumerate(points)]
        G = np.einsum("eqbi,eian->eqabn", np.stack(slopes, axis=1), moved, optimize=True)
        weights = np.linalg.det(J)[..., np.newaxis, np.newaxis, np.newaxis]
        return stress_stiffness(forces[:, np.newaxis, [[0, 2], [2, 1]]] * weights, G)

    (K,) = assembled(nodes, 2 * count, K.reshape(-1, 8, 3, 8, 3).swapaxes(2, 3))
    masses = sparse.block_diag([layer, layer], format="csr")
    return masses, K, _on_both_sides(mesh.points, h), Recovery(places, stresses, stiffening), T


def _on_both_sides(points: FloatArray, height: float) -> FloatArray:
    """Return points (x, y) at z = height/2, and then at -height/2."""
    z = np.repeat([0.5 * height, -0.5 * height], len(points))
    return np.column_stack([np.tile(points, (2, 1)), z])


def _slopes(point: FloatArray) -> FloatArray:
    """Return the derivatives (2, 4) of the bilinear shape functions."""
    s = 1.0 + _CORNERS * point
    return np.asarray(0.25 * np.stack([_CORNERS[:, 0] * s[:, 1], _CORNERS[:, 1] * s[:, 0]]))


def _shape(x: FloatArray, point: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the shape functions, and the Jacobian (e, 2, 2) of each element at a point."""
    return np.prod(1.0 + _CORNERS * point, axis=1) / 4.0, _slopes(point) @ x


def _cartesian(J: FloatArray, point: FloatArray) -> FloatArray:
    """Return the gradients (e, 2, 4) of the shape functions along x and y."""
    return np.asarray(np.linalg.solve(J, np.broadcast_to(_slopes(point), (len(J), 2, 4))))


def _plane(g: FloatArray) -> FloatArray:
    """Return the strains (e, 3, k, 2) by displacements, of gradients (e, 2, k)."""
    B = np.zeros((len(g), 3, g.shape[2], 2))
    B[:, 0, :, 0], B[:, 1, :, 1] = g[:, 0], g[:, 1]
    B[:, 2, :, 0], B[:, 2, :, 1] = g[:, 1], g[:, 0]
    return B


def _strains(x: FloatArray, point: FloatArray, h: float) -> FloatArray:
    """Return ε, κ, γ and ε_z at a point of each element, by the displacements of both layers."""
    count = len(x)
    N, J = _shape(x, point)
    plane = _plane(_cartesian(J, point))
    shear = np.zeros((count, 2, 4, 3))  # by β and w, in the coordinates of the element
    for axis in range(2):
        other = 1 - axis
        for a, b in ((0, 1), (3, 2)) if axis == 0 else ((0, 3), (1, 2)):
            share = 0.5 * (1.0 + _CORNERS[a, other] * point[other])
            shear[:, axis, [a, b], 2] += share * np.array([-0.5, 0.5])
            for corner in (a, b):
                shear[:, axis, corner, :2] += 0.25 * share * (x[:, b] - x[:, a])
    shear = np.asarray(np.linalg.solve(J, shear.reshape(count, 2, 12))).reshape(shear.shape)
    B = np.zeros((count, 9, 2, 4, 3))
    for layer, sign in enumerate((1.0, -1.0)):
        B[:, :3, layer, :, :2] = 0.5 * plane
        B[:, 3:6, layer, :, :2] = sign / h * plane
        B[:, 6:8, layer, :, :2] = sign / h * shear[..., :2]
        B[:, 6:8, layer, :, 2] = 0.5 * shear[..., 2]
        B[:, 8, layer, :, 2] = sign / h * N
    return B.reshape(count, 9, 24)
