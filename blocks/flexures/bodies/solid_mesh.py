"""Matrices of solid elements on a mesh, with scikit-fem, and meshes from files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from flexure.blocks.flexures.bodies.recovery import Recovery, assembled, stress_stiffness
from flexure.blocks.flexures.bodies.reduction import require_one_piece
from flexure.blocks.flexures.sections.materials import Material
from flexure.diagrams.checks.arguments import (
    file_path,
    import_extra,
    mapping,
    require,
    require_that,
)
from flexure.diagrams.checks.errors import ValueRefusedError, quoted, suggestion, warn
from flexure.diagrams.values.arrays import FloatArray, as_numbers

#: Which nodes belong to an interface: the name of a set of the file, a plane through a point with
#: a normal, or a function of positions (m, 3) that returns which of them belong to it.
NodeSet: TypeAlias = (
    "str | tuple[npt.ArrayLike, npt.ArrayLike] | Callable[[FloatArray], npt.NDArray[np.bool_]]"
)

_LARGEST = 100.0  # m: meshes of mechanisms that are larger are in millimeters
_FLAT = 1e-9  # of the size: cells without a volume, and nodes in a plane
_CHUNK = 64  # elements whose matrices are computed together, in the cache
_KINDS = {"tetra": "Tet", "tetra10": "Tet", "hexahedron": "Hex", "hexahedron20": "Hex"}


def solid_matrices(
    mesh: Any, material: Material, interfaces: Mapping[str, NodeSet], attempt: str
) -> tuple[Any, Any, FloatArray, dict[str, npt.NDArray[np.intp]], Recovery]:
    """Return m, K, nodes, the nodes of interfaces, and stresses of quadratic elements on a mesh.

    The element stiffness is that of isotropic elasticity with Lamé's constants λ and μ, where g_i
    are the gradients of the shape functions::

        K_ia,jb = ∫ λ g_ia g_jb + μ (g_ib g_ja + δ_ab g_i · g_j) dV

    Stresses are those at the corners of the elements, of which a node has the mean.
    """
    skfem = import_extra("skfem", "mesh", attempt)
    points, cells, kind, sets = _read(mesh, attempt)
    _check(points, cells, attempt)
    tetrahedra, hexahedra = (skfem.MeshTet, skfem.ElementTetP2), (skfem.MeshHex, skfem.ElementHex2)
    make, element = tetrahedra if kind == "Tet" else hexahedra
    grid = make(points.T.copy(), cells.T.copy())
    basis = skfem.Basis(grid, element(), intorder=4)
    nodes, dofs = basis.doflocs.T, basis.element_dofs
    values = np.stack([np.asarray(each[0])[0] for each in basis.basis])
    E, nu, rho = material.youngs_modulus, material.poissons_ratio, material.density
    mu, lame = E / (2.0 * (1.0 + nu)), E * nu / ((1.0 + nu) * (1.0 - 2.0 * nu))
    one = np.eye(3)
    # stiffness by products of gradients, of shape (3, 3, 3, 3)
    terms = (lame, "ca,db->cdab"), (mu, "cb,da->cdab"), (mu, "cd,ab->cdab")
    law = sum(constant * np.einsum(each, one, one) for constant, each in terms).reshape(9, 9)
    size, count = len(dofs), len(nodes)
    blocks = np.empty((dofs.shape[1], size, size, 3, 3))
    slopes, weights = _slopes(basis), basis.dx[:, np.newaxis]
    for start in range(0, len(blocks), _CHUNK):
        part = slice(start, start + _CHUNK)
        g = slopes[part].reshape(-1, 3 * size, weights.shape[2])
        H = ((g * weights[part]) @ g.swapaxes(1, 2)).reshape(-1, size, 3, size, 3)
        blocks[part] = (H.swapaxes(2, 3).reshape(-1, 9) @ law).reshape(-1, size, size, 3, 3)
    masses = np.einsum("iq,jq,eq->eij", values, values, rho * basis.dx, optimize=True)
    K, m = assembled(dofs.T, count, blocks, masses[..., np.newaxis, np.newaxis])
    found = {}
    for name, wanted in mapping(interfaces, "node sets by interfaces", attempt).items():
        chosen = nodes_of(name, wanted, nodes, points, sets, attempt)
        found[name] = _completed(basis, chosen) if isinstance(wanted, str) else chosen
    corner = grid.elem.refdom.p
    at_corners = skfem.Basis(grid, element(), quadrature=(corner, np.ones(corner.shape[1])))
    few = skfem.Basis(grid, element(), intorder=2)
    meeting = np.bincount(grid.t.ravel())[:, np.newaxis, np.newaxis]

    def stresses(shapes: FloatArray) -> FloatArray:
        found = np.zeros((len(points), 6, shapes.shape[1]))
        at = _stresses(_gradients(_slopes(at_corners), dofs, shapes), lame, mu)
        for place, each in enumerate(grid.t):
            np.add.at(found, each, at[:, place])
        return found / meeting

    def stiffening(strained: FloatArray, shapes: FloatArray) -> FloatArray:
        slopes = _slopes(few)
        sigma = _stresses(_gradients(slopes, dofs, strained), lame, mu) * few.dx[:, :, None, None]
        G = _gradients(slopes, dofs, shapes)
        return stress_stiffness(sigma[:, :, [[0, 3, 5], [3, 1, 4], [5, 4, 2]]], G)

    return m.tocsr(), K, nodes, found, Recovery(points, stresses, stiffening)


def _slopes(basis: Any) -> FloatArray:
    """Return the gradients (e, i, 3, q) of the shape functions of all elements."""
    shape = 3, *basis.dx.shape
    slopes = [np.broadcast_to(each[0].grad, shape).swapaxes(0, 1) for each in basis.basis]
    return np.stack(slopes, axis=1)


def _gradients(slopes: FloatArray, dofs: npt.NDArray[np.intp], shapes: FloatArray) -> FloatArray:
    """Return ∂u_a/∂x_b of displacements (3 m, n) at points of elements, as (e, q, a, b, n)."""
    moved = shapes.reshape(len(shapes) // 3, 3, shapes.shape[1])[dofs]
    return np.asarray(np.einsum("eibq,iean->eqabn", slopes, moved, optimize=True))


def _stresses(gradients: FloatArray, lame: float, mu: float) -> FloatArray:
    """Return σx, σy, σz, τxy, τyz, τzx as (e, q, 6, n)."""
    strains = gradients + gradients.swapaxes(2, 3)
    found = mu * strains[:, :, [0, 1, 2, 0, 1, 2], [0, 1, 2, 1, 2, 0]]
    found[:, :, :3] += 0.5 * lame * np.einsum("eqaan->eqn", strains)[:, :, np.newaxis]
    return np.asarray(found)


def _read(mesh: Any, attempt: str) -> tuple[FloatArray, npt.NDArray[np.intp], str, dict[str, Any]]:
    """Return points in m, cells with their corners, their kind, and points by sets."""
    meshio = import_extra("meshio", "mesh", attempt)
    if not isinstance(mesh, meshio.Mesh):
        path = file_path(mesh, attempt)
        try:
            mesh = meshio.read(path)
        except (OSError, SystemExit, meshio.ReadError, ValueError, KeyError, IndexError) as error:
            raise ValueRefusedError(
                attempt, expected="a mesh file that meshio reads", found=f"{path}: {error}"
            ) from error
    solid = [each for each in mesh.cells if each.type in _KINDS]
    kinds = {_KINDS[each.type] for each in solid}
    found = f"cells of kind {quoted(sorted({each.type for each in mesh.cells}))}"
    require_that(len(kinds) == 1, attempt, "a mesh of tetrahedra or of hexahedra", found)
    kind = kinds.pop()
    corners = 4 if kind == "Tet" else 8
    cells = np.concatenate([each.data[:, :corners] for each in solid])
    sets: dict[str, Any] = {name: np.asarray(each) for name, each in mesh.point_sets.items()}
    for name, blocks in mesh.cell_sets.items():
        parts = [
            each.data[np.asarray(chosen, dtype=np.intp)].ravel()
            for each, chosen in zip(mesh.cells, blocks, strict=False)
            if chosen is not None and len(chosen)
        ]
        if parts:
            sets.setdefault(name, np.unique(np.concatenate(parts)))
    used, inverse = np.unique(cells, return_inverse=True)
    numbers = np.full(len(mesh.points), -1)
    numbers[used] = np.arange(len(used))
    sets = {name: numbers[each][numbers[each] >= 0] for name, each in sets.items()}
    cells = inverse.reshape(cells.shape)
    if kind == "Hex":  # corners of scikit-fem's hexahedra have another order
        cells = cells[:, [0, 1, 3, 4, 2, 5, 7, 6]]
    return np.asarray(mesh.points[used], dtype=float), cells, kind, sets


def _check(points: FloatArray, cells: npt.NDArray[np.intp], attempt: str) -> None:
    """Refuse flat cells and parts that are not connected; warn of meshes in millimeters."""
    size = float(np.ptp(points, axis=0).max())
    edges = points[cells[:, 1:4]] - points[cells[:, :1]]
    flat = np.flatnonzero(~(np.abs(np.linalg.det(edges)) > (_FLAT * size) ** 3))
    found = f"{len(flat)} without one, number {min(flat, default=0)} first"
    require_that(not len(flat), attempt, "cells with a volume", found, "Repair the mesh")
    links = np.stack([np.repeat(cells[:, 0], cells.shape[1]), cells.ravel()])
    require_one_piece(links, len(points), "a mesh in one piece", attempt)
    warn_of_millimeters(points)


def warn_of_millimeters(points: FloatArray) -> None:
    """Warn of a mesh that is too large to be in meters."""
    size = float(np.ptp(points, axis=0).max())
    if size > _LARGEST:
        warn(
            f"The mesh is {size:.4g} m large. Lengths are in m: "
            "multiply the points of a mesh in mm by 1e-3"
        )


def _completed(basis: Any, corners: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return corners, and the nodes on edges and faces all of whose corners are among them."""
    mesh, dofs, chosen = basis.mesh, basis.dofs, [corners]
    for numbers, ends in ((dofs.edge_dofs, mesh.edges), (dofs.facet_dofs, mesh.facets)):
        if numbers.size:
            chosen.append(numbers[0][np.isin(ends, corners).all(axis=0)])
    return np.concatenate(chosen)


def nodes_of(
    name: str,
    wanted: Any,
    nodes: FloatArray,
    corners: FloatArray,
    sets: Mapping[str, npt.NDArray[np.intp]],
    attempt: str,
) -> npt.NDArray[np.intp]:
    """Return the numbers of the nodes of an interface; of a set its corners, which come first."""
    attempt = f"{attempt} with interface '{name}'"
    if isinstance(wanted, str):
        expected = f"one of the sets {quoted(sorted(sets))}"
        remedy = None if wanted in sets else suggestion(wanted, sets)
        require_that(wanted in sets, attempt, expected, f"'{wanted}'", remedy)
        return sets[wanted]
    if callable(wanted):
        chosen = np.asarray(wanted(nodes))
        fits = chosen.shape == (len(nodes),) and chosen.dtype == bool
        expected = f"a function that returns {len(nodes)} of bool, one for each position"
        require_that(fits, attempt, expected, f"{chosen.dtype} of shape {chosen.shape}")
        return np.flatnonzero(chosen)
    expected = "the name of a set, a plane (point, normal), or a function of positions"
    require(isinstance(wanted, tuple) and len(wanted) == 2, wanted, attempt, expected)
    point, normal = (as_numbers(each, attempt) for each in wanted)
    is_plane = point.shape == normal.shape == (3,) and np.any(normal)
    require(is_plane, wanted, attempt, expected)
    size = float(np.ptp(corners, axis=0).max())
    height = (nodes - point) @ (normal / np.linalg.norm(normal))
    return np.flatnonzero(np.abs(height) < 1e-6 * size)
