"""The forces on a mechanism at rest, and their exact derivatives.

With the positions q of all trees, other states s, and inputs and parameters λ, at zero velocities::

    r(q, s, λ) = ( generalized forces of gravity, of all elements and of all inputs ;  rates of s )

An equilibrium is where r is zero. These are forces, not the accelerations that they cause: masses
count only as weights, and a body may have none. The unknowns are increments of `StaticCoordinates`,
by which ``K = -∂r/∂θ`` is the stiffness. It is symmetric at an equilibrium under conservative
forces, in any coordinates.

A holder that keeps an output g(q), such as the position of a body, at some value does so with a
force μ, which is positive in the direction in which g grows, and adds ``μ (∂g/∂θ)ᵀ`` to r.

Constraints φ(q, λ) = 0 add ``Jᵀ κ`` with ``J = ∂φ/∂θ``. Their multipliers κ are not unknowns: at
each point they are those with which as little as possible is left of r, the smallest ones where
constraints are redundant. Near an equilibrium that is so good that Newton steps lose nothing.

Other states are found with the displacements: the lag of an actuator and the integral of a
controller are where they come to rest. States whose rate is zero at rest whatever the states are,
such as those of an `EnergyLedger` or of what sticks by friction, stay what they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from flexure.blocks.multibody import MultibodyTree
from flexure.blocks.multibody.constraints import SwitchedConstraint
from flexure.blocks.multibody.force_elements.force_element import BodyForceElement
from flexure.blocks.multibody.loop_closure.closing import calc_equations, open_constraints
from flexure.diagrams.checks.errors import (
    DeclarationError,
    EvaluationError,
    ValueRefusedError,
    quoted,
)
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.value_places import Place
from flexure.diagrams.values.arrays import FloatArray, freeze
from flexure.solvers.analysis.equations.equations import (
    Variable,
    refuse_beyond_numbers,
    refuse_sampled,
    slot_of,
    write_variables,
)
from flexure.solvers.analysis.forces_at_rest.exact_forces import (
    StaticReading,
    exact_forces,
    read_forces,
)
from flexure.solvers.analysis.forces_at_rest.static_coordinates import (
    INDEPENDENT,
    Indices,
    StaticCoordinates,
    independent_rows,
    trees_of,
)

_OPEN = 1e-8  # error of a constraint, from which on it is open
_MOST_BY_DIFFERENCES = 600  # unknowns, beyond which each point takes minutes
_ROUNDING = 1e-12  # asymmetry, as a part of the largest stiffness, that is always rounding
_SOFTEST = 1e-10  # part of the largest stiffness that is none
SLIGHT = 1e-3  # asymmetry of a stiffness that changes no sign
_INCREMENT = float(np.finfo(float).eps ** (1 / 3))


@dataclass(frozen=True, eq=False)
class StaticPoint:
    """The forces at some positions, and their derivatives; n unknowns, m variables, k holders.

    There are e constraints, of whose errors c combinations are independent.
    """

    forces: FloatArray  # (n,): r with forces of holders and constraints, zero in an equilibrium
    stiffness: FloatArray  # (n, n): K, minus their derivatives by the unknowns
    loads: FloatArray  # (n, m): their derivatives by the variables
    strokes: FloatArray  # (k,): the outputs that holders keep
    directions: FloatArray  # (k, n): their derivatives by the unknowns
    stroke_slopes: FloatArray  # (k, m): their derivatives by the variables
    gaps: FloatArray  # (e,): the errors of all constraints
    rows: FloatArray  # (e, n): their derivatives by the unknowns
    errors: FloatArray  # (c,): independent combinations of these errors, which are zero as well
    normals: FloatArray  # (c, n): their derivatives by the unknowns, in orthonormal rows
    pushes: FloatArray  # (c, n): the forces of their multipliers
    error_slopes: FloatArray  # (c, m): their derivatives by the variables
    num_displacements: int  # of the unknowns; other states are behind them

    @property
    def is_closed(self) -> bool:
        """Whether all constraints are met."""
        return bool(np.all(np.abs(self.gaps) <= _OPEN))

    @property
    def closing(self) -> FloatArray:
        """The shortest increments by which constraints are met."""
        return np.asarray(-self.errors @ self.normals)

    def asymmetry(self, scales: FloatArray) -> float:
        """Return the asymmetry of K beside what it couples; 0 for rounding, infinite without scale.

        Where a force follows other states, there is no potential: their rates are no forces, and
        numbers of different units say nothing about each other. Dead moments have none either: they
        are small beside the largest stiffness, and not beside that of soft directions.

        ``scales`` are increments of the unknowns that count as 1.
        """
        d, K = self.num_displacements, scales[:, np.newaxis] * self.stiffness * scales
        if np.any(K[:d, d:]) or np.any(K[d:, :d]):
            return np.inf
        difference, largest = 0.5 * (K - K.T), np.max(np.abs(K), initial=0.0)
        if np.max(np.abs(difference), initial=0.0) <= _ROUNDING * largest:
            return 0.0
        values, shapes = np.linalg.eigh(0.5 * (K + K.T))
        sizes = np.sqrt(np.abs(values) + _SOFTEST * largest)
        return float(np.max(np.abs(shapes.T @ difference @ shapes) / np.outer(sizes, sizes)))


class StaticEquations:
    """The forces at rest below a root context as functions of unknowns and variables.

    The context is moved and changed; its velocities become zero. Forces are differentiated by
    ``variables``, inputs and parameters; holders keep the output ports ``held``, or components of
    them.

    Raises ValueRefusedError when nothing can move; DeclarationError for constraints between
    velocities, rigid stops, or friction that sticks; EvaluationError when a sampled block follows
    the motion, or outputs are to be held and the equations cannot be traced.
    """

    def __init__(
        self,
        context: Context,
        variables: Sequence[Variable] = (),
        held: Sequence[Place] = (),
        *,
        attempt: str,
    ) -> None:
        refuse_sampled(context, attempt)
        _refuse_switched(context, attempt)
        _refuse_rolling(context, attempt)
        self.context = context
        self._store = store = context.store
        self._variables = tuple(variables)
        self._held = [(slot_of(context, p.handle), int(k)) for p in held for k in p.components]
        self.num_held = len(self._held)
        self.coordinates = StaticCoordinates(context)
        if not len(self.coordinates):
            raise ValueRefusedError(
                attempt,
                expected="a mechanism that can move",
                found="no joint, or only locked ones",
                remedy="Use a Plant, or a diagram with one, and unlock a joint",
            )
        self._others = _other_states(context)
        trees = [tree for _, tree in trees_of(context)]
        self._num_forces = sum(tree.topology.num_velocities for tree in trees)
        self._num_errors = sum(each.num_equations for t in trees for each in t.constraints)
        self.move_to(store.x)
        keys = [key for variable in self._variables for key in variable.keys]
        self._exact, self.obstacle = exact_forces(
            store, StaticReading(tuple(self._held), self.coordinates.velocities), keys
        )
        if self._exact is None and held:
            raise self.obstacle or EvaluationError(attempt)
        if self._exact is None and len(self.coordinates) > _MOST_BY_DIFFERENCES:
            raise EvaluationError(
                attempt,
                expected="equations with exact derivatives, or at most"
                f" {_MOST_BY_DIFFERENCES} unknowns by differences",
                found=f"{len(self.coordinates)} unknowns: {self.obstacle}",
                remedy="Divide beams into fewer segments; 8 to 32 are accurate to 1e-5 and better",
            )
        self.coordinates = StaticCoordinates(context, self._found_states())
        present = self.forces() if self._exact is None else self._acting(None)[0]
        refuse_beyond_numbers(present, self.coordinates.names, "forces", attempt)

    @property
    def how(self) -> str:
        """How derivatives are found, in words."""
        error = self.obstacle
        if error is None:
            return "exact derivatives"
        why = f"{error.attempt[0].lower()}{error.attempt[1:]}"
        return f"central differences, because {why}" + (f": {error.found}" if error.found else "")

    @property
    def states(self) -> FloatArray:
        """The present states."""
        return np.asarray(self._store.x)

    @property
    def variables(self) -> FloatArray:
        """The present numbers of the variables, end to end."""
        return np.concatenate([np.zeros(0), *[v.read(self._store) for v in self._variables]])

    def move_to(self, x: FloatArray) -> None:
        """Set all states; velocities become zero."""
        at_rest = x.copy()
        at_rest[self.coordinates.velocities] = 0.0
        self._store.set_motion(self._store.time, freeze(at_rest))

    def set_variables(self, numbers: FloatArray) -> None:
        """Set the variables without checking bounds."""
        write_variables(self._store, self._variables, numbers)

    @property
    def strokes(self) -> FloatArray:
        """The present outputs that holders keep."""
        return self._acting(None)[1][self._num_errors :]

    def open_constraints(self) -> str:
        """Return which constraints are open at the present values, in words; nothing if none is."""
        parts = [open_constraints(t, leaf, _OPEN) for leaf, t in trees_of(self.context)]
        return ", ".join(part for part in parts if part)

    def forces(self) -> FloatArray:
        """Return r at the present values, without holders; NaN where it is not defined."""
        with np.errstate(all="ignore"):
            return self._chosen(np.array(read_forces(self._store), dtype=float))

    def point(self, reactions: FloatArray | None = None) -> StaticPoint:
        """Return forces and derivatives at the present values.

        ``reactions`` are the forces μ of the holders; zero when omitted.
        """
        store, coordinates = self._store, self.coordinates
        if self._exact is None:
            return self._differences()
        forces, strokes, directions, acting = self._acting(reactions)
        along, n = coordinates.along(self._exact.jacobian(), store.x), len(coordinates)
        c, d = self._num_errors, coordinates.num_displacements
        count, k = self._num_forces, c + self.num_held
        base = self._num_forces + len(self._others)
        slopes = self._chosen(along[:base])
        for number in np.flatnonzero(acting).tolist():
            own = base + k + number * count + coordinates.free  # derivatives of each stroke
            slopes[:d] += acting[number] * along[own]
        by_unknowns, by_variables = along[base : base + k, :n], along[base : base + k, n:]
        stiffness = np.negative(slopes[:, :n], out=slopes[:, :n])
        return StaticPoint(
            forces,
            stiffness,
            slopes[:, n:],
            strokes[c:],
            directions[c:],
            by_variables[c:],
            strokes[:c],
            by_unknowns[:c],
            *_independent(strokes[:c], by_unknowns[:c], directions[:c], by_variables[:c]),
            num_displacements=d,
        )

    def point_with_slopes_of(self, near: StaticPoint, reactions: FloatArray) -> StaticPoint | None:
        """Return forces and strokes at the present values beside the derivatives at a point.

        None where there are constraints, or no exact derivatives.
        """
        if self._exact is None or self._num_errors:
            return None
        forces, strokes, *_ = self._acting(reactions)
        return replace(near, forces=forces, strokes=strokes)

    # Reading the equations -------------------------------------------------------------------

    def _acting(
        self, reactions: FloatArray | None
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return all forces, what is kept, its derivatives by unknowns, and multipliers and μ."""
        assert self._exact is not None
        numbers, coordinates = self._exact.computed(), self.coordinates
        c, k, base = self._num_errors, self._num_errors + self.num_held, self._num_forces
        base += len(self._others)
        directions, acting = np.zeros((k, len(coordinates))), np.zeros(k)
        by_velocities = numbers[base + k :].reshape(k, self._num_forces)
        directions[:, : coordinates.num_displacements] = by_velocities[:, coordinates.free]
        forces = self._chosen(numbers[:base])
        if reactions is not None:
            acting[c:] = reactions
        acting[:c] = _multipliers(directions[:c], forces + acting @ directions)
        return forces + acting @ directions, numbers[base : base + k], directions, acting

    def _chosen(self, rows: FloatArray) -> FloatArray:
        """Return the rows of the unknowns: those of displacements, then of other states."""
        places = self._num_forces + np.searchsorted(self._others, self.coordinates.others)
        chosen = np.concatenate([self.coordinates.free, places])
        return rows if np.array_equal(chosen, np.arange(len(rows))) else np.asarray(rows[chosen])

    def _found_states(self) -> Indices:
        """Return the other states that are found: whose rates are not zero anyway, and matter.

        A state that nothing reads is a record, such as the integral of a position.
        """
        others, first = self._others, self._num_forces
        if not others.size:
            return others
        if self._exact is None:
            present, slopes = self._raw_differences()
            moved = slopes != 0.0
        else:
            present, moved = self._exact.computed(), self._exact.moved()
        rows = slice(first, first + len(others))
        found = np.any(moved[rows], axis=1) | (present[rows] != 0.0)
        strokes = slice(first + len(others), first + len(others) + self._num_errors)
        by_forces = np.any(moved[:first, others], axis=0) | np.any(
            moved[strokes][:, others], axis=0
        )
        by_rates = moved[rows][:, others] & ~np.eye(len(others), dtype=bool)
        while True:
            read = by_forces | np.any(by_rates[found], axis=0)
            if np.all(read[found]):
                return np.asarray(others[found])
            found &= read

    # Where nothing can be traced -------------------------------------------------------------

    def _differences(self) -> StaticPoint:
        """Return forces and their derivatives by central differences."""
        n, x, before = len(self.coordinates), self.states, self.variables
        errors, pushes = self._constraints()
        multipliers = _multipliers(pushes, self.forces())

        def present() -> FloatArray:
            found, directions = self._constraints()
            return np.concatenate([self.forces() + multipliers @ directions, found])

        def behind(increments: FloatArray) -> FloatArray:
            self.move_to(self.coordinates.moved(x, increments))
            return present()

        columns = [(behind(h) - behind(-h)) / (2.0 * _INCREMENT) for h in _INCREMENT * np.eye(n)]
        self.move_to(x)

        def after(numbers: FloatArray) -> FloatArray:
            self.set_variables(numbers)
            return present()

        loads = []
        for number, h in zip(before, np.eye(len(before)), strict=True):
            step = _INCREMENT * max(abs(number), 1e-3)
            loads.append((after(before + step * h) - after(before - step * h)) / (2.0 * step))
        self.set_variables(before)
        none, slopes = np.zeros((0, n)), np.stack(columns, axis=1)
        by_variables = np.stack(loads, axis=1) if loads else np.zeros((len(slopes), 0))
        return StaticPoint(
            present()[:n],
            -slopes[:n],
            by_variables[:n],
            np.zeros(0),
            none,
            np.zeros((0, len(loads))),
            errors,
            slopes[n:],
            *_independent(errors, slopes[n:], pushes, by_variables[n:]),
            num_displacements=self.coordinates.num_displacements,
        )

    def _constraints(self) -> tuple[FloatArray, FloatArray]:
        """Return the errors of all constraints, and the forces of their multipliers."""
        from scipy.linalg import block_diag

        found = [calc_equations(tree, leaf) for leaf, tree in trees_of(self.context)]
        pushes = np.zeros((self._num_errors, len(self.coordinates)))
        free = self.coordinates.free
        pushes[:, : len(free)] = block_diag(*(each.J for each in found))[:, free]
        return np.concatenate([each.errors for each in found]), pushes

    def _raw_differences(self) -> tuple[FloatArray, FloatArray]:
        """Return forces and all rates, and their derivatives by all states."""
        x, store = self.states, self._store

        def behind(moved: FloatArray) -> FloatArray:
            self.move_to(moved)
            with np.errstate(all="ignore"):
                return np.array([*read_forces(store), *self._constraints()[0]], dtype=float)

        present, steps = behind(x), np.diag(_INCREMENT * np.maximum(np.abs(x), 1e-3))
        columns = [(behind(x + h) - behind(x - h)) / (2.0 * np.max(h)) for h in steps]
        self.move_to(x)
        return present, np.stack(columns, axis=1)


def _refuse_switched(context: Context, attempt: str) -> None:
    """Refuse constraints that hold at one place and not at another, and contacts that stick."""
    switched = [
        (
            [each.name for each in tree.constraints if isinstance(each, SwitchedConstraint)],
            tree.parent_plant.label,
        )
        for _, tree in trees_of(context)
    ]
    blocks = [leaf.system for leaf in context.leaves()]
    sticking = [each.name for each in blocks if isinstance(each, BodyForceElement) and each.sticks]
    for names, label in [*switched, (sticking, context.system.label)]:
        if names:
            raise DeclarationError(
                attempt,
                expected="constraints that hold everywhere",
                found=f"rigid stops, contacts or friction that sticks: {quoted(names)} of "
                f"'{label}'",
                remedy="Use a JointStop, or a Contact with smooth friction; or simulate it with "
                "damping, and use fx.equilibrium and fx.modes where it rests",
            )


def _refuse_rolling(context: Context, attempt: str) -> None:
    """Refuse constraints between velocities, with which equilibria depend on the path."""
    for _, tree in trees_of(context):
        rolling = [c.name for c in tree.constraints if c.num_position_equations < c.num_equations]
        if rolling:
            raise DeclarationError(
                attempt,
                expected="constraints between positions",
                found=f"constraints between velocities: {quoted(rolling)} of "
                f"'{tree.parent_plant.label}'",
                remedy="The rest position of a rolling body depends on its path: simulate it "
                "with damping, and use "
                "fx.equilibrium and fx.modes there",
            )


def _multipliers(pushes: FloatArray, forces: FloatArray) -> FloatArray:
    """Return the smallest multipliers with which constraints take up most of some forces."""
    if not (pushes.size and np.isfinite(pushes).all() and np.isfinite(forces).all()):
        return np.zeros(len(pushes))
    return np.asarray(-np.linalg.lstsq(pushes.T, forces, rcond=INDEPENDENT)[0])


def _independent(
    errors: FloatArray, slopes: FloatArray, pushes: FloatArray, by_variables: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return errors, normals, pushes and error slopes of a point, from all equations."""
    if not len(slopes):
        return errors, slopes, pushes, by_variables
    normals, combine = independent_rows(slopes)
    return combine @ errors, normals, combine @ pushes, combine @ by_variables


def _other_states(context: Context) -> Indices:
    """Return all states that are not of trees."""
    parts = [
        np.arange(leaf.x_slice.start, leaf.x_slice.stop)
        for leaf in context.leaves()
        if leaf.system.continuous_state is not None and not isinstance(leaf.system, MultibodyTree)
    ]
    return np.concatenate([np.zeros(0, dtype=np.intp), *parts])
