"""Reduction of finite element models to interfaces and modes, after Craig and Bampton."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from flexure.blocks.flexures.bodies.dissection import Cholesky
from flexure.blocks.flexures.bodies.plate_mesh import node_numbers
from flexure.blocks.flexures.bodies.recovery import Recovery
from flexure.diagrams.checks.arguments import mapping, require_that
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.values.arrays import FloatArray, as_numbers, check_bounds, check_name

_RIGID = 1e-6  # of what stiffness there is: residual forces of rigid motions, and errors of M
_ZERO = 1e-10  # of the greatest value: errors of rounding
_NO_MASS = 1e-13  # of the greatest flexibility times mass: modes that errors of rounding hide
_DENSE = 300  # unknowns up to which all modes are computed
_STEPS, _CONVERGED, _SMALL = 40, 1e-13, 1e-24  # of the block Lanczos method
_MORE = 12  # vectors of a block than modes: more steps take longer

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
    """

    interfaces: tuple[str, ...]  # names of the interfaces
    points: FloatArray  # their origins in the frame of the mesh, in m, shape (k, 3)
    mass: float  # mass in kg
    # first, second: the integrals, shapes (3, n + 1) and (3, 3, n + 1, n + 1).
    first: FloatArray
    second: FloatArray
    stiffness: FloatArray  # stiffness of η, shape (n, n)
    num_modes: int  # number of modes with all interfaces held
    shapes: FloatArray  # Ψ at the nodes, shape (m, 3, n)
    nodes: FloatArray  # positions of the nodes in the frame of the mesh, shape (m, 3)
    # The lowest frequency in rad/s of the modes with all interfaces held that are omitted.
    next_frequency: float
    # What omitted modes add to the inertia at the interfaces, in s²: see `error_bound`.
    omitted: float
    # Where stresses are known, in the frame of the mesh; none for matrices without recovery,
    # shape (p, 3).
    stress_points: FloatArray
    # σx, σy, σz, τxy, τyz, τzx in Pa of unit coordinates, shape (p, 6, n).
    stress_shapes: FloatArray
    # S in the stiffness Σ (w_p w_q - w² δ_pq) S_pq by the stress under a spin w while all
    # interfaces are held; zero where no stress is known, shape (3, 3, n, n).
    by_spin: FloatArray
    # B_b, the stiffness by the stress under a unit force or moment on each interface,
    # shape (6 k - 6, n, n).
    by_force: FloatArray

    @property
    def stiffens(self) -> bool:
        """Whether stress changes the stiffness: by forces, and by spin."""
        return bool(np.any(self.by_spin) or np.any(self.by_force))

    @property
    def second_order(self) -> FloatArray:
        """The integrals ``second`` that contain the shortening of the body by its deformation."""
        found = self.second.copy()
        found[:, :, 1:, 1:] += self.by_spin
        return found

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

    def error_bound(self, frequency: npt.ArrayLike) -> FloatArray:
        """Bound the error of the forces at the interfaces at angular frequencies.

        The full model has the dynamic stiffness of this one, less that of the omitted modes j. With
        their participation p_j in the motion of the interfaces, the lowest of their frequencies ω₁,
        and the mass matrix M of the interfaces without modes::

            D_full = D - ω⁴ Σ p_j p_jᵀ / (ω_j² - ω²)
            ω² xᵀ Σ p_j p_jᵀ x / (ω_j² - ω²) ≤ ε xᵀ M x      ε = ω² λ / (1 - ω²/ω₁²)

        λ is the greatest eigenvalue of Σ p_j p_jᵀ / ω_j² over M, which one static solution gives.
        At ε = 0.01 the inertial forces at the interfaces err by at most 1 %, and frequencies of
        mechanisms by about 0.5 % or less.

        Parameters
        ----------
        frequency : array_like
            Angular frequencies >= 0 in rad/s.

        Returns
        -------
        array
            ε for each of them; infinite from ω₁ on, where more modes are needed.
        """
        attempt = "Cannot bound the error of a reduction"
        given = as_numbers(frequency, attempt)
        check_bounds(given, attempt, lower=0.0, unit="rad/s")
        square = given**2
        left = 1.0 - square / self.next_frequency**2
        safe = np.where(left > 0.0, left, 1.0)
        return np.where(left > 0.0, square * self.omitted / safe, np.inf)


def given_matrices(
    M: Any, K: Any, nodes: npt.ArrayLike, attempt: str
) -> tuple[Any, Any, FloatArray]:
    """Return checked M of one component, K in blocks of nodes, and positions of the nodes."""
    import scipy.sparse as sparse

    points = as_numbers(nodes, attempt)
    M, K = (each if sparse.issparse(each) else as_numbers(each, attempt) for each in (M, K))
    count = points.shape[0] if points.ndim else 0
    fits = points.shape[1:] == (3,) and M.shape == K.shape == (3 * count, 3 * count)
    expected = "nodes of shape (m, 3), and M and K of shape (3 m, 3 m): x, y, z of each node"
    found = f"nodes of shape {points.shape}, M of {M.shape} and K of {K.shape}"
    require_that(fits, attempt, expected, found)
    m = _scalar_mass(sparse.csr_array(M, dtype=float), attempt)
    K = sparse.bsr_array(K, blocksize=(3, 3), dtype=float, copy=True)
    K.eliminate_zeros()
    return m, K, points


def reduce_body(
    m: Any,
    K: Any,
    points: FloatArray,
    interfaces: Mapping[str, npt.ArrayLike],
    recovery: Recovery | None,
    basis: Any = None,
    *,
    modes: int,
    coupling: CouplingKind,
    attempt: str,
) -> ReducedBody:
    """Reduce the mass matrix of one component and the stiffness matrix in blocks of nodes.

    With a symmetric orthogonal ``basis`` T, that leaves masses and interfaces as they are, K is
    that of the unknowns T u, in which it may have fewer errors of rounding.
    """
    import scipy.sparse as sparse

    count = len(points)
    sets = _node_sets(interfaces, count, attempt)
    origins = np.stack([points[each].mean(axis=0) for each in sets.values()])
    T = sparse.eye_array(3 * count, format="csr") if basis is None else basis
    r = points - origins[0]
    rigid = T @ _rigid_motions(r)
    left = abs(K @ rigid).max(axis=0) / abs(rigid).max(axis=0)
    is_free = not np.any(left > _RIGID * np.abs(K.data).max(initial=0.0))
    expected = "a stiffness matrix of a free body, which rigid motions do not strain"
    found = f"forces of {left.max():.3g} N per unit of a rigid motion"
    remedy = "Assemble K without supports; interfaces hold the body"
    require_that(is_free, attempt, expected, found, remedy)
    known = recovery or Recovery(np.zeros((0, 3)), lambda u: np.zeros((0, 6, u.shape[1])))
    start = np.random.default_rng(0).normal(size=(3 * count, modes + 1 + _MORE))
    spun = np.asarray(T @ _spin_loads(m, r))
    if known.stiffening is None:
        spun = spun[:, :0]
    loads = np.concatenate([_inertia(m, start), spun], axis=1)
    held = _Held(K, T, points, sets, origins, loads, coupling, attempt)
    started, held.loaded = np.split(held.loaded, [start.shape[1]], axis=1)
    _check_pieces(K, sets, attempt)
    inertial = _inertia(m, held.statics)
    squares, internal, carried = _held_modes(m, held, modes + 1, started, inertial[held.free])
    following = np.sqrt(squares[modes]) if len(squares) > modes else np.inf
    vectors = np.zeros((3 * count, internal[:, :modes].shape[1]))
    vectors[held.free] = internal[:, :modes]
    if vectors.shape[1]:
        factor = np.linalg.cholesky(vectors.T @ _inertia(m, vectors))
        vectors = np.asarray(np.linalg.solve(factor, vectors.T).T)
    shapes = np.concatenate([held.statics[:, 6:], vectors], axis=1)
    stiffness = shapes.T @ (K @ shapes)
    shapes = T @ shapes
    fields = np.concatenate([r.reshape(-1, 1), shapes], axis=1)
    parts = [fields[axis::3] for axis in range(3)]
    moved = [m @ part for part in parts]
    by_spin, by_force = _stiffening(held, r, spun, shapes, known)
    second = np.stack([[a.T @ b for b in moved] for a in parts])
    of_mass = np.sqrt(np.einsum("aaii->i", second))
    of_stiffness = np.sqrt(np.diagonal(stiffness))
    return ReducedBody(
        tuple(sets),
        origins,
        float(m.sum()),
        _rounded(np.stack([each.sum(axis=0) for each in moved]), of_mass),
        _rounded(second, np.outer(of_mass, of_mass)),
        _rounded(stiffness, np.outer(of_stiffness, of_stiffness)),
        vectors.shape[1],
        shapes.reshape(count, 3, -1),
        points,
        float(following),
        _omitted(held, vectors, inertial, carried),
        known.points,
        known.stresses(shapes),
        _rounded(by_spin, np.outer(of_stiffness, of_stiffness)),
        _rounded(by_force, np.outer(of_stiffness, of_stiffness)),
    )


def _rounded(values: FloatArray, scale: FloatArray) -> FloatArray:
    """Return values without what rounding left of zeros, so that equations are short."""
    ratios = np.abs(values) / np.where(scale > 0.0, scale, 1.0)
    return np.where(ratios > _ZERO * np.max(ratios, initial=0.0), values, 0.0)


def _inertia(m: Any, u: FloatArray) -> FloatArray:
    """Return M u of displacements (3 m, n)."""
    return np.asarray((m @ u.reshape(m.shape[0], -1)).reshape(u.shape))


#: Axes of which each gives a component of the products of angular velocities, and its number.
_P, _Q = np.triu_indices(3)
_NUMBER = np.array([[0, 1, 2], [1, 3, 4], [2, 4, 5]])


def _spin_loads(m: Any, r: FloatArray) -> FloatArray:
    """Return the forces (3 m, 6) of unit products of angular velocities on nodes at r."""
    axes, x = np.eye(3), r[:, np.newaxis]
    fields = x[..., _P] * axes[:, _Q] + x[..., _Q] * axes[:, _P]
    return -0.5 * _inertia(m, fields.reshape(-1, len(_P)))


def _stiffening(
    held: _Held, r: FloatArray, loads: FloatArray, shapes: FloatArray, known: Recovery
) -> tuple[FloatArray, FloatArray]:
    """Return the stiffness by spin and by forces at interfaces; see `ReducedBody`."""
    n, width = shapes.shape[1], held.statics.shape[1] - 6
    if known.stiffening is None:
        return np.zeros((3, 3, n, n)), np.zeros((width, n, n))
    b, K, T = held.statics[:, 6:], held.K, held.T
    u = np.concatenate([held.loaded, b @ np.linalg.inv(b.T @ (K @ b))], axis=1)
    found = known.stiffening(T @ u, shapes)
    forces = K @ u
    forces[:, : len(_P)] -= loads
    forces = T @ forces
    for k, each in enumerate(list(held.sets.values())[1:]):  # θ × (θ × x)/2 of nodes on interfaces
        x = r[each] - r[each].mean(axis=0)
        FX = np.einsum("iac,ib->cab", forces[_unknowns(each)].reshape(len(each), 3, -1), x)
        traces = np.einsum("caa->c", FX)[:, np.newaxis, np.newaxis]
        turned = slice(6 * k, 6 * k + 3)
        found[:, turned, turned] += 0.5 * (FX + FX.swapaxes(1, 2)) - traces * np.eye(3)
    return found[_NUMBER], found[len(_P) :]


def _omitted(held: _Held, kept: FloatArray, load: FloatArray, carried: FloatArray) -> float:
    """Return the greatest (Σ p² / ω²) of omitted modes over the mass, by motions of interfaces."""
    # The sum over all modes is the static response to the inertia of the constraint modes.
    from scipy.linalg import eigvalsh

    of_all = load[held.free].T @ carried
    shares = kept.T @ load
    of_kept = shares.T @ np.linalg.solve(kept.T @ (held.K @ kept), shares)
    greatest = eigvalsh(of_all - of_kept, held.statics.T @ load)[-1]
    return float(max(greatest, 0.0))


def _scalar_mass(M: Any, attempt: str) -> Any:
    """Return the mass matrix of one component, after checks that all have the same."""
    m = M[0::3, 0::3]
    scale = abs(M).max() if M.nnz else 0.0
    parts = [M[a::3, b::3] - (m if a == b else 0 * m) for a in range(3) for b in range(3)]
    off = max((abs(part).max() for part in parts if part.nnz), default=0.0)
    expected = "a positive mass that is the same along x, y and z, with no product of them"
    found = f"a difference of {off:.3g} kg" if scale else "no mass"
    remedy = "Use elements that have displacements of nodes as their only unknowns"
    require_that(scale and not off > _RIGID * scale, attempt, expected, found, remedy)
    return m


def _node_sets(
    interfaces: Mapping[str, npt.ArrayLike], count: int, attempt: str
) -> dict[str, npt.NDArray[np.intp]]:
    """Return checked node sets."""
    given = mapping(interfaces, "node numbers by interfaces", attempt)
    sets = {
        check_name(name, "an interface"): np.unique(node_numbers(each, attempt))
        for name, each in given.items()
    }
    wanted = "at least one interface, each of three nodes or more that no other one has"
    require_that(sets, attempt, wanted, "none")
    taken = np.zeros(count, dtype=bool)
    for name, each in sets.items():
        fits = len(each) >= 3 and each[0] >= 0 and each[-1] < count and not taken[each].any()
        found = f"'{name}' with {len(each)} nodes, taken or absent ones among them"
        require_that(fits, attempt, wanted, found)
        taken[each] = True
    return sets


def _check_pieces(K: Any, sets: Mapping[str, npt.NDArray[np.intp]], attempt: str) -> None:
    """Refuse parts that neither elements nor interfaces connect."""
    links = [np.stack([np.repeat(each[0], len(each)), each]) for each in sets.values()]
    count = K.shape[0] // 3
    elements = np.stack([np.repeat(np.arange(count), np.diff(K.indptr)), K.indices])
    wanted = "a body in one piece, by its elements and interfaces"
    require_one_piece(np.concatenate([elements, *links], axis=1), count, wanted, attempt)


def require_one_piece(links: npt.NDArray[np.intp], count: int, expected: str, attempt: str) -> None:
    """Refuse nodes that links between pairs of them, of shape (2, k), leave in several parts."""
    import scipy.sparse as sparse
    from scipy.sparse.csgraph import connected_components

    graph = sparse.coo_array((np.ones(links.shape[1]), tuple(links)), shape=(count, count))
    parts = int(connected_components(graph, directed=False)[0])
    remedy = "Merge coincident nodes, or make a body of each part"
    require_that(parts <= 1, attempt, expected, f"{parts} parts that share no nodes", remedy)


def _rigid_motions(r: FloatArray) -> FloatArray:
    """Return the displacements (3 m, 6) of points at r for unit rotations and translations."""
    turned = np.cross(np.eye(3), r[:, np.newaxis]).swapaxes(1, 2)
    shifted = np.broadcast_to(np.eye(3), turned.shape)
    return np.concatenate([turned, shifted], axis=-1).reshape(-1, 6)


class _Held:
    """The body with all interfaces held: its displacements under loads and prescribed motions.

    Rigid interfaces prescribe their nodes. Averaged ones are constraints C u = z, where z is the
    rigid motion that fits the nodes best. Springs S that hold the body then make the stiffness
    matrix definite, and multipliers undo them: with W = (Cᵀ, S)::

        (K + S Sᵀ) u = f - W y      (Wᵀ (K + S Sᵀ)⁻¹ W - diag(0, 1)) y = Wᵀ (K + S Sᵀ)⁻¹ f - (z, 0)
    """

    def __init__(
        self,
        K: Any,
        T: Any,
        points: FloatArray,
        sets: Mapping[str, npt.NDArray[np.intp]],
        origins: FloatArray,
        loads: FloatArray,
        coupling: CouplingKind,
        attempt: str,
    ) -> None:
        import scipy.sparse as sparse
        from scipy.linalg import qr

        self.K, self.T, self.sets = K, T, sets
        size, width = K.shape[0], 6 * len(sets)
        moved, fit = np.zeros((size, width)), np.zeros((size, width))
        for k, (name, each) in enumerate(sets.items()):
            dofs, columns = _unknowns(each), slice(6 * k, 6 * k + 6)
            R = (T @ _rigid_motions(points - origins[k]))[dofs]
            fits = np.linalg.matrix_rank(R, tol=1e-9 * np.abs(R).max()) == 6
            expected = "interfaces with nodes that are not on one line"
            require_that(fits, attempt, expected, f"'{name}' on a line")
            moved[dofs, columns], fit[dofs, columns] = R, np.linalg.pinv(R).T
        nodes = np.arange(len(points))
        if coupling == "rigid":
            nodes = np.setdiff1d(nodes, np.concatenate(list(sets.values())))
            self._rows = np.zeros((3 * len(nodes), 0))
        else:
            moved = np.zeros((size, width))
            held = qr((T @ _rigid_motions(_scaled(points))).T, mode="r", pivoting=True)[1][:6]
            springs = K.diagonal()[held]
            supports = np.zeros((size, 6))
            supports[held, np.arange(6)] = np.sqrt(springs)
            self._rows = np.concatenate([fit, supports], axis=1)
            K = K + sparse.coo_array((springs, (held, held)), shape=K.shape).tobsr((3, 3))
        self.nodes = nodes  # numbers of the nodes that are not prescribed
        self.free = _unknowns(nodes)  # numbers of their unknowns
        # How many ways of moving are left.
        self.dimension = len(self.free) - (width if coupling == "averaged" else 0)
        try:
            self._factors = Cholesky(K, points, nodes)
        except np.linalg.LinAlgError as error:
            raise ValueRefusedError(
                attempt,
                expected="interfaces that hold all of the body",
                found="parts that can move freely",
                remedy="Check the mesh for parts that are not connected; a plate of less than"
                " 1e-6 of its length is lost in errors of rounding",
            ) from error
        # Large factors are slow to read, so that all is solved for at once.
        right = self._rows, -(K @ moved)[self.free], loads[self.free]
        ends = np.cumsum([each.shape[1] for each in right])
        found = self._factors.solve(np.concatenate(right, axis=1))
        self._toward, u = np.split(found, ends[:1], axis=1)
        small = self._rows.T @ self._toward
        self._scale = 1.0 / np.sqrt(np.diagonal(small))
        small[range(width, len(small)), range(width, len(small))] -= 1.0
        self._small = small * np.outer(self._scale, self._scale)
        u = self._corrected(u, np.eye(width, u.shape[1]))
        # Constraint modes: displacements under unit motions of the interfaces, shape (3 m, 6 k).
        self.statics = moved
        self.statics[self.free] += u[:, :width]
        # Displacements under the given loads, shape (3 m, l).
        self.loaded = np.zeros(loads.shape)
        self.loaded[self.free] = u[:, width:]

    def solve(self, loads: FloatArray) -> FloatArray:
        """Return the free displacements under loads on them."""
        return self._corrected(self._factors.solve(loads))

    def _corrected(self, u: FloatArray, motions: FloatArray | None = None) -> FloatArray:
        """Return displacements without springs, and with motions of averaged interfaces."""
        if not self._rows.size:
            return u
        rest = self._rows.T @ u
        if motions is not None:
            rest[: len(motions)] -= motions
        y = np.linalg.solve(self._small, (self._scale * rest.T).T)
        return np.asarray(u - self._toward @ (self._scale * y.T).T)


def _unknowns(nodes: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return the numbers of the unknowns x, y, z of nodes."""
    return np.asarray((3 * nodes[:, np.newaxis] + np.arange(3)).ravel())


def _scaled(points: FloatArray) -> FloatArray:
    """Return points around their mean, over the greatest distance from it."""
    r = points - points.mean(axis=0)
    return np.asarray(r / np.linalg.norm(r, axis=1).max())


def _held_modes(
    m: Any, held: _Held, count: int, started: FloatArray, inertial: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return squares of the lowest held frequencies, modes, and displacements under forces."""
    from scipy.linalg.blas import dgemm

    # Several vectors are solved for at once in each step, since large factors are slow to read
    # (block Lanczos method with full orthogonalization).
    n, count = len(held.free), min(count, held.dimension)
    m = m[held.nodes][:, held.nodes]
    if n <= _DENSE or count >= n // 6:
        masses, axes = np.linalg.eigh(np.kron(m.toarray(), np.eye(3)))
        root = axes * np.sqrt(np.maximum(masses, 0.0))
        moved, carried = held.solve(root), held.solve(inertial)
        values, vectors = np.linalg.eigh(root.T @ moved)
        lowest = np.arange(n)[::-1][:count]
        lowest = lowest[values[lowest] > _NO_MASS * np.max(values, initial=0.0)]
        return 1.0 / values[lowest], np.asarray(moved @ vectors[:, lowest]), carried

    x, carried = started[held.free, : count + _MORE], np.zeros((n, 0))
    basis, loads, solved = list[FloatArray](), list[FloatArray](), list[FloatArray]()
    values, shapes, projected = np.zeros(count), np.zeros((0, 0)), np.zeros((0, 0))
    for _ in range(min(_STEPS, held.dimension // x.shape[1])):
        x = x.copy()
        for is_last in (False, True):
            for each, its_load in zip(basis, loads, strict=True):  # x -= each @ (its_load.T @ x)
                dgemm(-1.0, (its_load.T @ x).T, each.T, 1.0, x.T, overwrite_c=1)
            load = _inertia(m, x) if is_last else x  # products with masses take long
            squares, turned = np.linalg.eigh(x.T @ load)
            kept = squares > _SMALL * squares[-1]
            turned = turned[:, kept] / np.sqrt(squares[kept])
            x, load = x @ turned, load @ turned
        basis.append(x)
        loads.append(load)
        waiting = inertial[:, carried.shape[1] :]  # in the first step alone
        both = held.solve(np.concatenate([load, waiting], axis=1))
        x, found = np.split(both, [load.shape[1]], axis=1)
        carried = np.concatenate([carried, found], axis=1)
        solved.append(x)
        column = np.concatenate([each.T @ x for each in loads])
        projected = np.block([[projected, column[: len(projected)]], [column.T]])
        before = values
        values, shapes = np.linalg.eigh(0.5 * (projected + projected.T))
        values, shapes = values[: -count - 1 : -1], shapes[:, : -count - 1 : -1]
        if np.abs(values - before).max() <= _CONVERGED * values[0]:
            break
    ends = np.cumsum([each.shape[1] for each in solved])
    parts = zip(solved, np.split(shapes, ends[:-1]), strict=True)
    return 1.0 / values, np.asarray(sum(each @ shape for each, shape in parts)), carried
