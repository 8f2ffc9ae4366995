"""The unknowns of statics: a displacement for each velocity that can move, and other states.

Displacements are increments along the velocities of a tree, δq = N(q) δθ, so that a quaternion has
three of them and needs no condition for its length, and a locked joint has none. They are those of
`MinimalCoordinates`, without rates and without masses.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from flexure.blocks.multibody import MultibodyTree, Plant
from flexure.blocks.multibody.constraints.stabilization import GRAVITY
from flexure.blocks.multibody.force_elements.force_element import BodyForceElement
from flexure.blocks.multibody.joints import Joint
from flexure.blocks.multibody.trees.component_names import common_unit
from flexure.diagrams.checks.errors import DeclarationError, quoted
from flexure.diagrams.contexts.context import Context, LeafContext
from flexure.diagrams.contexts.root_contexts import start_context
from flexure.diagrams.systems.system import System
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.equations.equations import state_names

if TYPE_CHECKING:
    from scipy.sparse import csr_array


Indices = npt.NDArray[np.intp]
_DIRECTIONS = {"w": "rotation", "v": "translation"}


@dataclass(frozen=True, eq=False)
class _Alike:
    """Joints of one class, whose position rates N(q) v are computed together."""

    joints: list[Joint]
    # q, increments: where their positions are in the state, and their displacements among the
    # unknowns, shapes (J, num_positions) and (J, num_velocities).
    q: Indices
    increments: Indices

    def rates(self, x: FloatArray, v: FloatArray) -> FloatArray:
        """Return N(q) v for velocities of the shape (num_velocities, ..., J)."""
        q = x[self.q.T].reshape(-1, *[1] * (v.ndim - 2), len(self.joints))
        return np.asarray(self.joints[0].calc_position_rates(q, v), dtype=float)

    def slopes(self, x: FloatArray) -> FloatArray:
        """Return N(q) of each joint, of the shape (J, num_positions, num_velocities)."""
        count = self.increments.shape[1]
        unit = np.broadcast_to(np.eye(count)[..., np.newaxis], (count, count, len(self.joints)))
        return self.rates(x, unit).transpose(2, 0, 1)

    def parts(self) -> list[_Alike]:
        """Return this, or each joint alone if together they do not compute what each one does."""
        rng = np.random.default_rng(0)
        x = rng.uniform(0.1, 0.9, int(self.q.max()) + 1)
        v = rng.uniform(-1.0, 1.0, self.increments.shape)
        with suppress(ValueError, TypeError, IndexError), np.errstate(all="ignore"):
            alone = [
                joint.calc_position_rates(x[q], own)
                for joint, q, own in zip(self.joints, self.q, v, strict=True)
            ]
            together = self.rates(x, v.T), np.einsum("jqv,jv->qj", self.slopes(x), v)
            if all(np.allclose(each.T, alone, rtol=1e-12, atol=1e-14) for each in together):
                return [self]
        rows = zip(self.joints, self.q, self.increments, strict=True)
        return [_Alone([joint], q[np.newaxis], own[np.newaxis]) for joint, q, own in rows]


class _Alone(_Alike):
    """One joint, whose position rates are computed for one velocity at a time."""

    def rates(self, x: FloatArray, v: FloatArray) -> FloatArray:
        """Return N(q) v for velocities of the shape (num_velocities, 1)."""
        rates = self.joints[0].calc_position_rates(x[self.q[0]], v[:, 0])
        return np.asarray(rates, dtype=float)[:, np.newaxis]

    def slopes(self, x: FloatArray) -> FloatArray:
        """Return N(q), of the shape (1, num_positions, num_velocities)."""
        columns = [self.rates(x, v[:, np.newaxis]) for v in np.eye(self.increments.shape[1])]
        return np.hstack(columns)[np.newaxis]


class StaticCoordinates:
    """How the unknowns of statics move the states of a root context.

    ``others`` are the states that are not of trees and are to be found as well.
    """

    def __init__(self, context: Context, others: npt.ArrayLike = ()) -> None:
        # What the unknowns are: joint coordinates by path, then other states.
        self.names: list[str] = []
        groups: dict[type[Joint], list[tuple[Joint, list[int], list[int]]]] = {}
        turns: list[bool] = []
        free: list[int] = []
        positions: list[int] = []
        velocities: list[int] = []
        before = 0  # velocities of trees that came before
        for leaf, tree in trees_of(context):
            topology, start = tree.topology, leaf.x_slice.start
            end = start + topology.num_positions
            positions += range(start, end)
            velocities += range(end, leaf.x_slice.stop)
            moves = tree.constants.mobile(leaf)
            for mobilizer, moving in zip(topology.mobilizers, moves, strict=True):
                joint, q, v = mobilizer.joint, mobilizer.q, mobilizer.v
                if not (joint.num_velocities and moving):
                    continue
                first = len(self.names)
                self.names += displacement_names(tree, joint)
                own = list(range(start + q.start, start + q.stop)), [*range(first, len(self.names))]
                groups.setdefault(type(joint), []).append((joint, *own))
                turns += [common_unit([s], "rad", "m") == "rad" for s in joint.VELOCITY_SUFFIXES]
                free += range(before + v.start, before + v.stop)
            before += topology.num_velocities
        self._parts: list[_Alike] = []
        for members in groups.values():
            joints, q_rows, increments = (list(each) for each in zip(*members, strict=True))
            self._parts += _Alike(joints, np.array(q_rows), np.array(increments)).parts()
        self._pattern: tuple[Indices, Indices, Indices] | None = None  # of what moves states
        self.turns = np.array(turns, dtype=bool)  # whether a displacement is an angle
        self.num_displacements = len(self.names)  # how many of the unknowns are displacements
        # Where the positions of all trees are in the state.
        self.positions = np.array(positions, dtype=np.intp)
        self.velocities = np.array(velocities, dtype=np.intp)  # where their velocities are
        # Which of the velocities of all trees, end to end, are displacements.
        self.free = np.array(free, dtype=np.intp)
        self.others: Indices = np.array(others, dtype=np.intp)  # the other states
        names = state_names(context) if self.others.size else []
        self.names += [names[k] for k in self.others]

    def __len__(self) -> int:
        return len(self.names)

    def moved(self, x: FloatArray, increments: FloatArray) -> FloatArray:
        """Return the states behind increments of the unknowns; quaternions keep the length 1."""
        there = x.copy()
        for part in self._parts:
            moved = there[part.q] + part.rates(x, increments[part.increments.T]).T
            there[part.q] = part.joints[0].normalized_positions(moved.T).T
        there[self.others] += increments[self.num_displacements :]
        return there

    def push(self, context: Context, forces: FloatArray) -> None:
        """Add forces along displacements to those at the free inputs of plants."""
        numbers = np.zeros(len(self.velocities))
        numbers[self.free] = forces[: self.num_displacements]
        start = 0
        for _, tree in trees_of(context):
            plant, end = tree.parent_plant, start + tree.topology.num_velocities
            port = plant.input_port("generalized_force")
            if context.find(plant).input_is_free(port.index):
                port.fix(context, port.eval(context) + numbers[start:end])
            start = end

    def along(self, slopes: FloatArray | csr_array, x: FloatArray) -> FloatArray:
        """Return derivatives by unknowns and variables, of those by states and variables."""
        n, others = len(self), slopes.shape[1] - len(x)
        if not isinstance(slopes, np.ndarray):
            return self._along_sparse(slopes, x)
        found = np.empty((len(slopes), n + others))
        found[:, n:] = slopes[:, len(x) :]
        for part in self._parts:
            columns = slopes[:, part.q]
            if not part.joints[0].velocities_are_rates:
                columns = (columns.transpose(1, 0, 2) @ part.slopes(x)).transpose(1, 0, 2)
            found[:, part.increments] = columns
        found[:, self.num_displacements : n] = slopes[:, self.others]
        return found

    def _along_sparse(self, slopes: csr_array, x: FloatArray) -> FloatArray:
        """Do so for a sparse matrix: times one that says how unknowns and variables move states."""
        from scipy.sparse import csr_array

        n, size = len(self), slopes.shape[1]
        if self._pattern is None:
            rows = [self.others, np.arange(len(x), size)]
            columns = [np.arange(self.num_displacements, n + size - len(x))]
            for part in self._parts:
                shape = (*part.q.shape, part.increments.shape[1])
                rows.append(np.broadcast_to(part.q[:, :, np.newaxis], shape).ravel())
                columns.append(np.broadcast_to(part.increments[:, np.newaxis], shape).ravel())
            row, column = np.concatenate(rows), np.concatenate(columns)
            order = np.lexsort((column, row))
            starts = np.searchsorted(row[order], np.arange(size + 1))
            self._pattern = order, column[order], starts
        order, column, starts = self._pattern
        count = len(self.others) + size - len(x)
        numbers = [np.ones(count), *(part.slopes(x).ravel() for part in self._parts)]
        moves = (np.concatenate(numbers)[order], column, starts)
        return np.asarray((slopes @ csr_array(moves, shape=(size, n + size - len(x)))).toarray())


def trees_of(context: Context) -> list[tuple[LeafContext, MultibodyTree]]:
    """Return the trees below a root context in which something can move, with their contexts."""
    leaves = [(leaf, leaf.system) for leaf in context.leaves()]
    return [
        (leaf, system)
        for leaf, system in leaves
        if isinstance(system, MultibodyTree) and system.continuous_state is not None
    ]


def plants_in(system: System) -> Iterator[Plant]:
    """Yield all plants of a system."""
    if isinstance(system, Plant):
        yield system
        return
    for child in system.children or ():
        yield from plants_in(child)


def spinning(
    system: System, context: Context | None, spin: npt.ArrayLike | None, attempt: str
) -> Context | None:
    """Return a context in which the worlds of all plants spin; the given one without spin.

    The given context is not changed; without one, a default one spins. ``spin`` is an angular
    velocity in rad/s, shape (3,).
    """
    if spin is None:
        return context
    spun, plants = start_context(system, context, attempt), list(plants_in(system))
    if not plants or any(plant.spin is None for plant in plants):
        still = [plant.label for plant in plants if plant.spin is None]
        raise DeclarationError(
            f"{attempt} with spin",
            expected="plants whose world can spin",
            found=quoted(still) if still else "no plant",
            remedy="Build them by PlantBuilder(..., spin=(0, 0, 0))",
        )
    for plant in plants:
        assert plant.spin is not None
        plant.spin.set(spun, spin)
    return spun


def size_of(context: Context) -> float:
    """Return the size of the mechanisms below a root context, in m; 1 where there is none."""
    points: list[FloatArray] = [np.zeros((0, 3))]
    for leaf, tree in trees_of(context):
        placements, _, inertias = tree.kinematics(leaf)
        points += [
            np.stack([placement.p_WB, placement.p_WB + np.asarray(inertia.com)])
            for placement, inertia in zip(placements, inertias, strict=True)
        ]
    for leaf in context.leaves():
        if isinstance(leaf.system, BodyForceElement):
            points += [a.pose_of_frame(leaf).p[np.newaxis] for a in leaf.system.attachments]
    spread = np.ptp(np.vstack(points), axis=0) if len(points) > 1 else np.zeros(3)
    size = float(np.linalg.norm(spread))
    return size if np.isfinite(size) and size > 0.0 else 1.0


def weight_of(context: Context) -> float:
    """Return the moment of the weight of all bodies about a point as far away as they are large."""
    masses = [
        inertia.mass for leaf, tree in trees_of(context) for inertia in tree.kinematics(leaf)[2]
    ]
    for leaf, tree in trees_of(context):
        placements = tree.kinematics(leaf)[0]
        masses += [each.mass_moment(placements)[0] for each in tree.constants.couplings(leaf)]
    return float(GRAVITY * np.sum(np.array(masses, dtype=float)) * size_of(context))


def path_in_plant(tree: MultibodyTree, name: str) -> str:
    """Return the path of what a plant calls by a name."""
    prefix = tree.path.rpartition(".")[0]
    return f"{prefix}.{name}" if prefix else name


def displacement_names(tree: MultibodyTree, joint: Joint) -> list[str]:
    """Return the names of the displacements of a joint."""
    owner = path_in_plant(tree, joint.name)
    if not joint.velocities_are_rates:
        return [f"{owner}.{_DIRECTIONS[name[0]]}[{name[1:]}]" for name in joint.VELOCITY_SUFFIXES]
    path = f"{owner}.{joint.PORT_NAMES[0]}"
    suffixes = joint.POSITION_SUFFIXES
    return [path] if len(suffixes) == 1 else [f"{path}[{suffix}]" for suffix in suffixes]


INDEPENDENT = 1e-7  # least singular value of independent equations, as a part of the largest


class AllowedMotions(NamedTuple):
    """Bases of the motions that constraints allow, and of the forces that count.

    With independent equations ``N δθ = 0`` of all constraints and holders, and with the forces
    ``Cᵀ λ`` by which they are upheld, motions are ``R y`` with ``N R = 0``, and forces count as
    ``Lᵀ f`` with ``C L = 0``. The bases L and R are one, unless equations read states that are not
    displacements, as where a lag moves a joint.
    """

    # Motions, in orthonormal columns; all unknowns where there are no constraints, shape (n, a).
    R: FloatArray
    L: FloatArray  # what adds up forces, shape (n, a)

    def stiffness(self, K: FloatArray) -> FloatArray:
        """Return the stiffness of the motions, so that its eigenvalues are those of K there."""
        along: FloatArray = self.L.T @ K @ self.R
        if self.L is self.R:
            return along
        return np.asarray(np.linalg.solve(self.L.T @ self.R, along))


class IndependentRows(NamedTuple):
    """Combinations of equations that are independent: orthonormal rows N = A J."""

    rows: FloatArray  # the rows, shape (r, n)
    combine: FloatArray  # the matrix A, shape (r, c)


def independent_rows(J: FloatArray) -> IndependentRows:
    """Return as many combinations of rows as are independent."""
    if not J.size or not np.isfinite(J).all():
        return IndependentRows(np.zeros((0, J.shape[1])), np.zeros((0, len(J))))
    left, sizes, right = np.linalg.svd(J, full_matrices=False)
    rank = int(np.sum(sizes > INDEPENDENT * sizes[0])) if sizes[0] > 0.0 else 0
    return IndependentRows(right[:rank], left[:, :rank].T / sizes[:rank, np.newaxis])


def allowed_motions(normals: FloatArray, pushes: FloatArray) -> AllowedMotions:
    """Return bases of what rows N leave free, and of what forces along the rows C do not touch."""
    if not normals.size:
        everything: FloatArray = np.eye(normals.shape[1])
        return AllowedMotions(everything, everything)
    R = _left_over(normals)
    return AllowedMotions(R, R if np.array_equal(normals, pushes) else _left_over(pushes))


def _left_over(rows: FloatArray) -> FloatArray:
    """Return an orthonormal basis of what is at right angles to some rows."""
    _, sizes, right = np.linalg.svd(rows)
    rank = int(np.sum(sizes > INDEPENDENT * sizes[0]))
    return np.asarray(right[rank:].T)
