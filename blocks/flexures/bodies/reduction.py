"""Reduction of finite element models to interfaces and modes, after Craig and Bampton."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.arguments import mapping
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.values.arrays import FloatArray, as_numbers, check_name

_RIGID = 1e-6  # of what stiffness there is: residual forces of rigid motions, and errors of M
_DENSE = 300  # unknowns up to which all modes are computed

#: How the nodes of an interface are coupled to its frame.
CouplingKind = Literal["rigid", "averaged"]


@dataclass(frozen=True)
class ReducedBody:
    """A finite element model that is reduced to its interfaces and to modes between them.

    The displacement of a point x relative to the frame F of the first interface is u = Ψ(x) η. The
    coordinates η are the rotation (rad) and displacement (m) of each further interface, and the
    amplitudes of modes with all interfaces held, normalized to a modal mass of 1 kg. The inertia
    of the deformed body is that of integrals over the mass, with the fields f₀ = x and f_j = Ψ_j::

        first[α, i] = ∫ f_iα dm       second[α, β, i, j] = ∫ f_iα f_jβ dm

    Attributes
    ----------
    interfaces : tuple of str
        Names of the interfaces.
    points : array, shape (k, 3)
        Their origins in the frame of the mesh, in m.
    mass : float
        Mass in kg.
    first, second : array, shapes (3, n + 1) and (3, 3, n + 1, n + 1)
        The integrals.
    stiffness : array, shape (n, n)
        Stiffness of η.
    num_modes : int
        Number of modes with all interfaces held.
    shapes : array, shape (m, 3, n)
        Ψ at the nodes.
    nodes : array, shape (m, 3)
        Positions of the nodes in the frame of the mesh.
    """

    interfaces: tuple[str, ...]
    points: FloatArray
    mass: float
    first: FloatArray
    second: FloatArray
    stiffness: FloatArray
    num_modes: int
    shapes: FloatArray
    nodes: FloatArray

    @property
    def mass_matrix(self) -> FloatArray:
        """Mass matrix of η while the first interface is held."""
        return np.asarray(np.einsum("aaij->ij", self.second)[1:, 1:])

    def modes(self) -> tuple[FloatArray, FloatArray]:
        """Return frequencies in rad/s with the first interface held, and mass-normal modes."""
        from scipy.linalg import eigh

        if not len(self.stiffness):
            return np.zeros(0), np.zeros((0, 0))
        squares, shapes = eigh(self.stiffness, self.mass_matrix)
        return np.sqrt(np.maximum(squares, 0.0)), shapes


def reduce_body(
    M: Any,
    K: Any,
    nodes: npt.ArrayLike,
    interfaces: Mapping[str, npt.ArrayLike],
    *,
    modes: int,
    coupling: CouplingKind,
    attempt: str,
) -> ReducedBody:
    """Reduce mass and stiffness matrices; see `FlexibleBody.from_matrices`."""
    points = as_numbers(nodes, attempt)
    M, K = _sparse(M, attempt), _sparse(K, attempt)
    count = points.shape[0] if points.ndim else 0
    if (
        points.ndim != 2
        or points.shape[1:] != (3,)
        or M.shape != K.shape
        or M.shape[0] != 3 * count
    ):
        raise ValueRefusedError(
            attempt,
            expected="nodes of shape (m, 3), and M and K of shape (3 m, 3 m): x, y, z of each node",
            found=f"nodes of shape {points.shape}, M of {M.shape} and K of {K.shape}",
        )
    m = _scalar_mass(M, attempt)
    sets = _node_sets(interfaces, count, attempt)
    origins = np.stack([points[each].mean(axis=0) for each in sets.values()])
    rigid = _rigid_motions(points - origins[0])
    left = np.abs(K @ rigid).max(axis=0) / np.abs(rigid).max(axis=0)
    if np.any(left > _RIGID * np.abs(K).max()):
        raise ValueRefusedError(
            attempt,
            expected="a stiffness matrix of a free body, which rigid motions do not strain",
            found=f"forces of {left.max():.3g} N per unit of a rigid motion",
            remedy="Assemble K without supports; interfaces hold the body",
        )
    shapes = _shapes(M, K, points, sets, origins, modes, coupling, attempt)[:, 6:]
    fields = np.concatenate([(points - origins[0]).reshape(-1, 1), shapes], axis=1)
    parts = [fields[axis::3] for axis in range(3)]
    moved = [m @ part for part in parts]
    return ReducedBody(
        tuple(sets),
        origins,
        float(m.sum()),
        np.stack([each.sum(axis=0) for each in moved]),
        np.stack([[a.T @ b for b in moved] for a in parts]),
        shapes.T @ (K @ shapes),
        shapes.shape[1] - 6 * (len(sets) - 1),
        shapes.reshape(count, 3, -1),
        points,
    )


def _sparse(matrix: Any, attempt: str) -> Any:
    """Return a matrix as a sparse array."""
    import scipy.sparse as sparse

    kept: Any = matrix if sparse.issparse(matrix) else as_numbers(matrix, attempt)
    if kept.ndim != 2:
        raise ValueRefusedError(attempt, expected="matrices M and K", found=f"shape {kept.shape}")
    return sparse.csr_array(kept, dtype=float)


def _scalar_mass(M: Any, attempt: str) -> Any:
    """Return the mass matrix of one component, after checks that all have the same."""
    m = M[0::3, 0::3]
    scale = abs(M).max() if M.nnz else 0.0
    parts = [M[a::3, b::3] - (m if a == b else 0 * m) for a in range(3) for b in range(3)]
    off = max((abs(part).max() for part in parts if part.nnz), default=0.0)
    if not scale or off > _RIGID * scale:
        raise ValueRefusedError(
            attempt,
            expected="a positive mass that is the same along x, y and z, with no product of them",
            found="no mass" if not scale else f"a difference of {off:.3g} kg",
            remedy="Use elements that have displacements of nodes as their only unknowns",
        )
    return m


def _node_sets(
    interfaces: Mapping[str, npt.ArrayLike], count: int, attempt: str
) -> dict[str, npt.NDArray[np.intp]]:
    """Return checked node sets."""
    sets: dict[str, npt.NDArray[np.intp]] = {}
    for name, each in mapping(interfaces, "node numbers by interfaces", attempt).items():
        sets[check_name(name, "an interface")] = np.unique(as_numbers(each, attempt)).astype(
            np.intp
        )
    wanted = "at least one interface, each of three nodes or more that no other one has"
    found = "none" if not sets else ""
    taken = np.zeros(count, dtype=bool)
    for name, each in sets.items():
        if len(each) < 3 or each[0] < 0 or each[-1] >= count or taken[each].any():
            found = f"'{name}' with {len(each)} nodes, taken or absent ones among them"
            break
        taken[each] = True
    if found:
        raise ValueRefusedError(attempt, expected=wanted, found=found)
    return sets


def _rigid_motions(r: FloatArray) -> FloatArray:
    """Return the displacements (3 m, 6) of points at r for unit rotations and translations."""
    turned = np.stack([np.cross(axis, r) for axis in np.eye(3)], axis=-1)
    return np.concatenate([turned, np.broadcast_to(np.eye(3), turned.shape)], axis=-1).reshape(
        -1, 6
    )


def _shapes(
    M: Any,
    K: Any,
    points: FloatArray,
    sets: Mapping[str, npt.NDArray[np.intp]],
    origins: FloatArray,
    modes: int,
    coupling: CouplingKind,
    attempt: str,
) -> FloatArray:
    """Return constraint modes of all interfaces, six for each, and modes with all of them held.

    Rigid interfaces prescribe their nodes; averaged ones are constraints C u = z with multipliers,
    where z is the rigid motion that fits the nodes best.
    """
    import scipy.sparse as sparse
    from scipy.sparse.linalg import splu

    size, width = K.shape[0], 6 * len(sets)
    prescribed, rows = np.zeros((size, width)), []
    is_held = np.zeros(size, dtype=bool)
    wanted = []
    for k, each in enumerate(sets.values()):
        dofs = (3 * each[:, np.newaxis] + np.arange(3)).ravel()
        R = _rigid_motions(points[each] - origins[k])
        if np.linalg.matrix_rank(R, tol=1e-9 * np.abs(R).max()) < 6:
            raise ValueRefusedError(
                attempt,
                expected="interfaces with nodes that are not on one line",
                found=f"'{list(sets)[k]}' on a line",
            )
        columns = slice(6 * k, 6 * k + 6)
        if coupling == "rigid":
            prescribed[dofs, columns], is_held[dofs] = R, True
        else:
            fit = sparse.lil_array((6, size))
            fit[:, dofs] = np.linalg.pinv(R)
            rows.append(fit.tocsr())
            wanted.append(np.eye(width)[columns])
    free = np.flatnonzero(~is_held)
    loads = -(K @ prescribed)[free]
    matrix, mass = K[free][:, free], M[free][:, free]
    if rows:
        scale = float(np.abs(K).max())
        C = sparse.vstack(rows)[:, free] * scale
        matrix = sparse.block_array([[matrix, C.T], [C, None]])
        mass = sparse.block_diag([mass, sparse.csr_array((C.shape[0], C.shape[0]))])
        loads = np.concatenate([loads, scale * np.concatenate(wanted)])
    try:
        factors = splu(
            sparse.csc_array(matrix),
            permc_spec="COLAMD" if rows else "MMD_AT_PLUS_A",
            diag_pivot_thresh=1.0 if rows else 0.0,
            options={} if rows else {"SymmetricMode": True},
        )
    except RuntimeError as error:
        raise ValueRefusedError(
            attempt,
            expected="interfaces that hold all of the body",
            found="parts that can move freely",
            remedy="Check the mesh for parts that are not connected",
        ) from error
    statics = prescribed.copy()
    statics[free] += factors.solve(loads)[: len(free)]
    internal = np.zeros((size, min(modes, len(free) - len(rows) * 6)))
    if internal.shape[1]:
        internal[free] = _held_modes(matrix, mass, factors, internal.shape[1])[: len(free)]
        internal = np.linalg.solve(np.linalg.cholesky(internal.T @ (M @ internal)), internal.T).T
    return np.concatenate([statics, internal], axis=1)


def _held_modes(matrix: Any, mass: Any, factors: Any, count: int) -> FloatArray:
    """Return the lowest modes with all interfaces held."""
    from scipy.sparse.linalg import LinearOperator, eigsh

    n = matrix.shape[0]
    if n <= _DENSE or count >= n // 3:
        values, vectors = np.linalg.eig(factors.solve(mass.toarray()))
        return np.asarray(vectors[:, np.argsort(-values.real)[:count]].real)
    inverse = LinearOperator((n, n), matvec=factors.solve, dtype=float)
    start = factors.solve(mass @ np.random.default_rng(0).normal(size=n))
    _, vectors = eigsh(matrix, count, mass, sigma=0.0, OPinv=inverse, v0=start)
    return np.asarray(vectors)
