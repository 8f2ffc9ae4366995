"""Matrices and stresses of plates, with four-node elements on two layers of nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from flexure.blocks.flexures.bodies.plate_mesh import PlateMesh
from flexure.blocks.flexures.bodies.recovery import Recovery, assembled, stress_stiffness
from flexure.blocks.flexures.sections.materials import Material
from flexure.diagrams.values.arrays import FloatArray

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
