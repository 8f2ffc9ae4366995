"""Volume, center and moments of inertia of what a closed surface of triangles encloses."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from flexure.blocks.multibody.bodies.meshes import Mesh
from flexure.diagrams.checks.errors import DeclarationError, warn
from flexure.diagrams.values.arrays import FloatArray

_FLAT = 1e-9  # volume of a surface that encloses nothing, as a part of the cube of its size


class MeshSolid(NamedTuple):
    """A solid of uniform density.

    Attributes
    ----------
    volume : float
        In m³.
    center : array, shape (3,)
        Its center of mass in m.
    inertia : array, shape (3, 3)
        Moments and products of inertia about the center per mass, in m².
    """

    volume: float
    center: FloatArray
    inertia: FloatArray


def mesh_solid(mesh: Mesh, attempt: str) -> MeshSolid:
    """Return the solid inside a surface, else raise DeclarationError.

    With the corners a, b, c of each triangle and s = a + b + c, tetrahedra from the mean of the
    vertices have the volumes V = a · (b × c)/6, the centers s/4, and the second moments
    V (s sᵀ + a aᵀ + b bᵀ + c cᵀ)/20.

    Warns
    -----
    UserWarning
        When triangles face inwards; they are turned around.
    """
    points, numbers = np.unique(mesh.vertices, axis=0, return_inverse=True)
    triangles = numbers.reshape(-1)[mesh.triangles]
    triangles = triangles[np.all(triangles != np.roll(triangles, 1, axis=1), axis=1)]
    triangles, turned = _oriented(triangles, attempt)
    middle = np.mean(points, axis=0)
    corners = (points - middle)[triangles]
    volumes = np.linalg.det(corners) / 6.0
    volume = float(np.sum(volumes))
    if volume < 0.0:
        volumes, volume, turned = -volumes, -volume, len(triangles) - turned
    size = float(np.max(np.ptp(points, axis=0)))
    if not volume > _FLAT * size**3:
        raise DeclarationError(
            attempt,
            expected="a surface that encloses a volume",
            found=f"{volume:.3g} m³ in a surface with a size of {size:.3g} m",
        )
    if turned:
        warn(
            f"{turned} of the {len(triangles)} triangles of a mesh face inwards. They are turned"
            " around; check the surface if it has cavities"
        )
    sums = np.sum(corners, axis=1)
    center = volumes @ sums / (4.0 * volume)
    second = np.einsum("k,ki,kj->ij", volumes, sums, sums)
    second += np.einsum("k,kni,knj->ij", volumes, corners, corners)
    second = second / (20.0 * volume) - np.outer(center, center)
    return MeshSolid(volume, center + middle, np.trace(second) * np.eye(3) - second)


def _oriented(triangles: npt.NDArray[np.intp], attempt: str) -> tuple[npt.NDArray[np.intp], int]:
    """Return triangles of which neighbors face the same side, and how many were turned."""
    edges = np.concatenate([triangles[:, [k, (k + 1) % 3]] for k in range(3)])
    owners = np.tile(np.arange(len(triangles)), 3)
    order = np.lexsort(np.sort(edges, axis=1).T)
    edges, owners = edges[order], owners[order]
    _, counts = np.unique(np.sort(edges, axis=1), axis=0, return_counts=True)
    wrong = int(np.sum(counts != 2))
    if wrong or not len(triangles):
        raise DeclarationError(
            attempt,
            expected="a closed surface, with two triangles at every edge",
            found=f"{wrong} of {len(counts)} edges with another number, such as"
            f" {int(np.sum(counts == 1))} with one",
            remedy="Close the holes in the program that made the mesh",
        )
    first, second = owners[::2], owners[1::2]
    differs = edges[::2, 0] == edges[1::2, 0]  # both run along the edge in the same direction
    if not np.any(differs):
        return triangles, 0
    from scipy.sparse import coo_array  # which takes time to load
    from scipy.sparse.csgraph import breadth_first_order, connected_components

    count = len(triangles)
    graph = coo_array((np.ones(len(first)), (first, second)), (count, count)).tocsr()
    parity = dict(zip(zip(first, second, strict=True), differs, strict=True))
    _, labels = connected_components(graph, directed=False)
    flips = np.zeros(count, dtype=bool)
    for label in range(labels.max() + 1):
        members = np.flatnonzero(labels == label)
        nodes, parents = breadth_first_order(graph, members[0], directed=False)
        for node in nodes[1:]:
            pair = parents[node], node
            flips[node] = flips[pair[0]] ^ parity.get(pair, parity.get(pair[::-1], False))
        if 2 * np.sum(flips[members]) > len(members):
            flips[members] = ~flips[members]
    turned = np.where(flips[:, None], triangles[:, ::-1], triangles)
    if np.any(flips[first] ^ flips[second] ^ differs):
        raise DeclarationError(
            attempt, expected="a surface with an inside", found="one with a single side"
        )
    return turned, int(np.sum(flips))
