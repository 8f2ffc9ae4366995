"""Buckling: factors of a load at which an equilibrium loses its stiffness in some direction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from flexure.diagrams.answers import Answer
from flexure.diagrams.arguments import flag, require
from flexure.diagrams.context import Context
from flexure.diagrams.errors import EvaluationError, ValueRefusedError
from flexure.diagrams.handles import start_context
from flexure.diagrams.html import heading
from flexure.diagrams.system import System, require_system
from flexure.diagrams.tables import Table
from flexure.diagrams.values import FloatArray, as_number, check_bounds, check_size
from flexure.solvers.analysis.equations import Variable, find_variables
from flexure.solvers.analysis.equilibria import settled
from flexure.solvers.analysis.modes.modes import checked_number
from flexure.solvers.analysis.statics.free_motions import alike, flexibility, motion_in_words
from flexure.solvers.analysis.statics.static_equations import StaticEquations

_FIRST = 1e-3  # angle in rad over which the stiffness is first compared
_NEAR = 1e-3  # part of the way to the critical state over which it is compared after that, and
_CLOSE = 1e-5  # at the critical state
_FARTHEST = 1e7  # largest factor beside the smallest one, beyond which nothing buckles
_REAL = 1e-7  # relative imaginary part of a factor that is real
_SYMMETRIC = 1e-6  # relative asymmetry of the stiffness under conservative forces
_CONVERGED = 1e-6  # part of the way, of a last step, whose error is about the square
_ALIKE = 0.5  # resemblance of shapes before and after a step
_NEARER = 0.1  # part of a step by which it has to come nearer
_ROUNDS = 60
_SHORTEST = 1e-6  # part of the way, of a step that leads nowhere
_STRAIGHT = 0.5  # relative distance from a tangent that a step along the path may have
_NEWTON = 12
_STEP = 1e-11  # of the largest step, where Newton's method ends
_ZERO = 100.0  # times the smallest stiffness, below which one is about zero, too
_EQUAL = 1e-6  # relative distance of factors that are one
_WORK = 1e-3  # of the load on a shape, beside that of its parts, at limit points


@dataclass(frozen=True, eq=False)
class CriticalLoad:
    """A load at which an equilibrium loses its stiffness.

    Attributes
    ----------
    factor : float
        By how much of the given load: refined at the deformed state, if that was asked for. NaN
        where the path of equilibria ends before.
    linear_factor : float
        Where the stiffness vanishes that changes linearly with the load.
    kind : str
        ``"bifurcation"``, where other equilibria branch off; ``"limit"``, where the load has an
        extreme and the mechanism snaps through; ``"linear"``, where it is not refined;
        ``"beyond"``, where it is not reached.
    shape : dict of float
        Amplitude of each joint coordinate, by path; the largest one is 1.
    context : Context
        The critical state; for a linear factor, that without the load.
    """

    factor: float
    linear_factor: float
    kind: str
    shape: dict[str, float]
    context: Context

    def __repr__(self) -> str:
        shape = motion_in_words(np.array(list(self.shape.values())), list(self.shape))
        return f"<CriticalLoad: {self.factor:.6g}, {self.kind}, {shape}>"


class Buckling(Answer):
    """Critical factors of a load; what `buckling` returns: a sequence of `CriticalLoad` objects.

    Factors of the smallest magnitude come first.

    Attributes
    ----------
    context : Context
        The equilibrium without the load.
    loads : dict
        The load that the factors belong to, by path.
    how : str
        Whether derivatives are exact or central differences, and why.
    """

    def __init__(
        self,
        context: Context,
        loads: dict[str, FloatArray],
        found: tuple[CriticalLoad, ...],
        how: str,
    ) -> None:
        self.context = context
        self.loads = loads
        self.how = how
        self._found = found

    def __len__(self) -> int:
        return len(self._found)

    def __iter__(self) -> Iterator[CriticalLoad]:
        return iter(self._found)

    def __getitem__(self, index: int) -> CriticalLoad:
        attempt = f"Cannot find a critical load of '{self.context.system.label}'"
        return self._found[checked_number(index, len(self), "critical loads", attempt)]

    @property
    def factors(self) -> FloatArray:
        """The critical factors; NaN where they are beyond the end of the path."""
        return np.array([each.factor for each in self])

    @property
    def linear_factors(self) -> FloatArray:
        """Those of a stiffness that changes linearly with the load."""
        return np.array([each.linear_factor for each in self])

    def table(self) -> Table:
        """Return a table: ``factor``, ``linear_factor``, ``kind``, and in words what ``moves``."""
        rows = [
            (
                None if np.isnan(each.factor) else each.factor,
                each.linear_factor,
                each.kind,
                motion_in_words(np.array(list(each.shape.values())), list(each.shape)),
            )
            for each in self
        ]
        return Table(("factor", "linear_factor", "kind", "moves"), rows)

    def _pieces(self) -> Iterator[str]:
        yield heading("Buckling", self.context.system.label, self.how)
        yield self.table().to_html()

    def __str__(self) -> str:
        return str(self.table())

    def __repr__(self) -> str:
        factors = ", ".join(f"{each.factor:.6g}" for each in self) or "none"
        return f"<Buckling of '{self.context.system.label}': factors {factors}>"


def buckling(
    system: System,
    loads: Mapping[Any, npt.ArrayLike],
    context: Context | None = None,
    *,
    count: int = 4,
    refine: bool = True,
) -> Buckling:
    """Find the factors of a load at which an equilibrium loses its stiffness.

    Parameters
    ----------
    system : System
        A plant, or a diagram with one.
    loads : mapping
        The load: from free inputs or parameters, by handle or path, to what is added to their
        values in the context at a factor of 1.
    context : Context, optional
        All other values, a root context; it is not changed. What acts there is a prestress that
        stays. A default context when omitted.
    count : int
        How many factors, those of the smallest magnitude, positive or negative.
    refine : bool
        Whether to follow the equilibrium to each critical state; else factors are linear.

    Returns
    -------
    Buckling

    Raises
    ------
    UnknownNameError
        When there is no such input or parameter.
    ValueRefusedError
        When the load is zero, or of another shape.
    EvaluationError
        When there is no equilibrium near the context, or something moves freely there.

    Notes
    -----
    With the stiffness K(λ) at the equilibrium under the load λ, found are the λ for which K is
    singular. First those of ``K(0) + λ K'(0)``, of which K' contains how the deformation by the
    load changes the stiffness. From there, the same is asked at the deformed state, until it is the
    critical one. So factors hold for what bends before it buckles, and find limit points, at which
    shallow arches snap through. The first loss of stiffness on either side is also looked for
    without an estimate of its shape. `load_path` follows what comes after.

    Under forces that follow the motion K is not symmetric. Then flutter may come before, of which
    this knows nothing; `modes` does.

    Examples
    --------
    A rigid column of 2 m on a torsion spring of 30 N m, which falls over under 15 N:

    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("column", gravity=(0.0, 0.0, 0.0))
    >>> rod = builder.add_body("rod", fx.SpatialInertia.point_mass(1.0), com=(0.0, 0.0, 2.0))
    >>> foot = builder.add_joint(fx.RevoluteJoint("foot", builder.world, rod, axis=(0, 1, 0)))
    >>> _ = builder.add_force_element(fx.JointSpring("spring", foot, stiffness=30.0))
    >>> column = builder.build()
    >>> found = fx.buckling(column, {column.gravity: (0.0, 0.0, -1.0)})
    >>> found
    <Buckling of 'column': factors 15>
    """
    require_system(system, "Cannot find critical loads")
    attempt = f"Cannot find critical loads of '{system.label}'"
    start = start_context(system, context, attempt)
    variables, steps = _loads(start, loads, attempt)
    check_size(count, f"{attempt}: count", minimum=1)
    flag(refine, "refine", attempt)
    rest = settled(system, start, attempt).context
    path = _Path(StaticEquations(rest.clone(), variables, attempt=attempt), np.concatenate(steps))
    free = flexibility(path.origin.K).free
    if free.size:
        told = ", and ".join(motion_in_words(each, path.names) for each in free.T)
        raise EvaluationError(
            attempt,
            expected="a mechanism whose stiffness is not singular without the load",
            found=f"a free motion: {told}",
            remedy="Hold it, or lock a joint",
        )
    estimates = path.estimates()
    found = []
    if refine:
        for linear, shape in estimates[:count]:
            found.append((linear, *path.refined(linear, shape)))
        for side in {np.sign(linear) for linear, _ in estimates}:
            first = path.first(side, min(abs(a) for a, _ in estimates if a * side > 0.0))
            alikes = [_resemblance(first[2], shape, path.origin.K) for _, shape in estimates]
            if first[1] != "beyond":
                found.append((estimates[int(np.argmax(alikes))][0], *first))
    else:
        found = [(linear, linear, "linear", shape, path.origin) for linear, shape in estimates]
    criticals = [path.told(*each) for each in found]
    given = {v.place.path: step.reshape(v.shape) for v, step in zip(variables, steps, strict=True)}
    return Buckling(rest, given, tuple(_different(criticals)[:count]), path.how)


def _loads(
    context: Context, loads: Mapping[Any, npt.ArrayLike], attempt: str
) -> tuple[list[Variable], list[FloatArray]]:
    """Return inputs and parameters, and what is added to each."""
    given: object = loads
    wanted = "a mapping from paths to loads, such as {'tip.force': [0.0, 0.0, -1.0]}"
    require(isinstance(given, Mapping) and given, loads, attempt, wanted)
    variables, steps = [], []
    for way, load in loads.items():
        (variable,) = find_variables(context, [way], attempt)
        about = f"{attempt} under '{variable.place.path}'"
        number = as_number(load, variable.shape, about)
        check_bounds(number, about)
        variables.append(variable)
        steps.append(np.ravel(number).astype(float))
    find_variables(context, list(loads), attempt)  # which refuses repetitions
    if not any(np.any(step) for step in steps):
        raise ValueRefusedError(attempt, expected="a load", found="zeros alone")
    return variables, steps


class _State(NamedTuple):
    """An equilibrium on the path.

    Attributes
    ----------
    factor : float
        Of the load.
    x : ndarray
        All states.
    K : ndarray
        The stiffness.
    push : ndarray
        Derivatives of the forces by the factor.
    tangent : ndarray
        Motion of the unknowns, then of the factor, along the path.
    """

    factor: float
    x: FloatArray
    K: FloatArray
    push: FloatArray
    tangent: FloatArray


#: Factor, kind, shape and state of a critical load.
Critical: TypeAlias = "tuple[float, str, FloatArray, _State]"


class _Path:
    """The equilibria under multiples of a load, from that without it.

    The path is measured by its length s, in which motions count as the forces that resist them, so
    that it goes on where the load has an extreme.
    """

    def __init__(self, equations: StaticEquations, step: FloatArray) -> None:
        self._equations = equations
        self._base = equations.variables
        self._step = step
        self.names = equations.coordinates.names
        self.how = equations.how
        K, push = self._read(0.0, equations.states)
        moved = flexibility(K).motions @ push
        size = alike(K)
        self._weights = np.append(size, np.linalg.norm(size * moved) or 1.0)
        tangent = np.append(moved, 1.0)
        self.origin = _State(
            0.0, equations.states, K, push, tangent / np.linalg.norm(self._weights * tangent)
        )

    def told(
        self, linear: float, factor: float, kind: str, shape: FloatArray, state: _State
    ) -> CriticalLoad:
        """Return a critical load, its shape by names."""
        amplitudes = map(float, shape / shape[np.argmax(np.abs(shape))])
        named = dict(zip(self.names, amplitudes, strict=True))
        self._put(state.factor, state.x)
        return CriticalLoad(factor, linear, kind, named, self._equations.context.clone())

    def estimates(self) -> list[tuple[float, FloatArray]]:
        """Return linear factors, those of the smallest magnitude first, with their shapes."""
        tangent, turns = self.origin.tangent, self._equations.coordinates.turns
        unit = np.where(turns, 1.0, _length(self.origin.K, turns))
        fastest = max(float(np.max(np.abs(tangent[:-1] / unit))) / _FIRST, tangent[-1])
        rough = self._vanishing(self.origin, 1.0 / fastest)
        if not rough:
            return []
        fine = self._vanishing(self.origin, _NEAR * abs(rough[0][0]))
        return [(step * tangent[-1], shape) for step, shape in fine]

    def refined(self, linear: float, shape: FloatArray) -> Critical:
        """Follow the path to where the stiffness vanishes in a direction."""
        here = self.origin
        full = step = whole = linear / here.tangent[-1]  # to where it vanishes; what is gone of it
        for _ in range(_ROUNDS):
            there = self._arrive(here, step)
            near = self._vanishing(there, _CLOSE * abs(whole)) if there else []
            if there and near:
                alikes = [_resemblance(shape, other, there.K) for _, other in near]
                left, found = near[int(np.argmax(alikes))]
                if abs(left / whole) <= _CONVERGED:
                    return self._found(there, left, found)
                nearer = abs(left) <= abs(full) - _NEARER * abs(step)
                if nearer and max(alikes) >= _ALIKE:
                    here, shape, full, step = there, found, left, left
                    continue
            step *= 0.5
            if abs(step) < _SHORTEST * abs(whole):
                break
        return float("nan"), "beyond", shape, self.origin

    def first(self, side: float, nearest: float) -> Critical:
        """Follow the path to where the stiffness vanishes first, whichever shape it has there.

        Parameters
        ----------
        side : float
            1 or -1 for positive or negative factors.
        nearest : float
            Magnitude of the smallest linear factor on this side.
        """
        here, shape = self.origin, np.ones(len(self.names))
        stable = _negative(here.K)
        whole = side * nearest / here.tangent[-1]
        step = 0.5 * whole
        for _ in range(_ROUNDS):
            there = self._arrive(here, step)
            near = self._vanishing(there, _CLOSE * abs(whole)) if there else []
            if there and near:
                left, shape = near[0]
                is_first = _negative(there.K, _ZERO) <= stable
                if abs(left / whole) <= _CONVERGED and is_first:
                    return self._found(there, left, shape)
                if _negative(there.K) == stable:
                    ahead = [one for one, _ in near if one * side > 0.0]
                    here, step = there, side * min([2.0 * abs(step), *map(abs, ahead[:1])])
                    continue
                back = step + left  # behind it
                step = back if 0.1 * abs(step) < back * side < abs(step) else 0.5 * step
                continue
            step *= 0.5
            if abs(step) < _SHORTEST * abs(whole):
                break
        return float("nan"), "beyond", shape, self.origin

    def _found(self, there: _State, left: float, shape: FloatArray) -> Critical:
        factor = there.factor + left * there.tangent[-1]
        work, most = abs(float(shape @ there.push)), float(np.abs(shape) @ np.abs(there.push))
        return factor, "limit" if work > _WORK * most else "bifurcation", shape, there

    def _vanishing(self, here: _State, step: float) -> list[tuple[float, FloatArray]]:
        """Return the steps along the path with which ``K + step K'`` is singular, and the shapes.

        K' is the difference of K over a step both ways along the tangent.
        """
        K, slope = here.K, self._slope(here, step)
        size = np.outer(alike(K), alike(K))
        shares, shapes = _eigen(K / size, slope / size)
        real = np.isfinite(shares) & (np.abs(shares.imag) <= _REAL * np.abs(shares))
        largest = np.max(np.abs(shares[real]), initial=0.0)
        kept = np.flatnonzero(real & (np.abs(shares) * _FARTHEST > largest) & (shares != 0.0))
        order = kept[np.argsort(-np.abs(shares[kept]), kind="stable")]
        return [(-1.0 / float(shares[k].real), shapes[:, k].real / alike(K)) for k in order]

    def _slope(self, here: _State, step: float) -> FloatArray:
        ends = []
        for side in (step, -step):
            moved = side * here.tangent
            x = self._equations.coordinates.moved(here.x, moved[:-1])
            ends.append(self._read(here.factor + moved[-1], x)[0])
        slope = (ends[0] - ends[1]) / (2.0 * step)
        difference = np.max(np.abs(here.K - here.K.T))
        symmetric = difference <= _SYMMETRIC * np.max(np.abs(here.K))
        return (slope + slope.T) / 2.0 if symmetric else slope

    def _arrive(self, here: _State, step: float) -> _State | None:
        """Return the equilibrium after a step, if the path leads there almost straight."""
        straight = step * here.tangent
        row = self._weights**2 * here.tangent
        total, x = straight.copy(), self._equations.coordinates.moved(here.x, straight[:-1])
        largest = abs(step)
        for _ in range(_NEWTON):
            factor = here.factor + total[-1]
            self._put(factor, x)
            point = self._equations.point()
            push = point.loads @ self._step
            if not (np.isfinite(point.forces).all() and np.isfinite(point.stiffness).all()):
                return None
            forces = np.append(point.forces, step - row @ total)
            more = _solve(_bordered(point.stiffness, push, row), forces)
            total = total + more
            if np.linalg.norm(self._weights * (total - straight)) > _STRAIGHT * abs(step):
                return None
            x = self._equations.coordinates.moved(x, more[:-1])
            size = float(np.linalg.norm(self._weights * more))
            largest = max(largest, size)
            if size <= _STEP * largest:
                return self._state(here.factor + total[-1], x, row)
        return None

    def _state(self, factor: float, x: FloatArray, row: FloatArray) -> _State:
        K, push = self._read(factor, x)
        tangent = _solve(_bordered(K, push, row), np.append(np.zeros(len(push)), 1.0))
        return _State(factor, x, K, push, tangent / np.linalg.norm(self._weights * tangent))

    def _read(self, factor: float, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        self._put(factor, x)
        point = self._equations.point()
        return point.stiffness, point.loads @ self._step

    def _put(self, factor: float, x: FloatArray) -> None:
        self._equations.set_variables(self._base + factor * self._step)
        self._equations.move_to(x)


def _bordered(K: FloatArray, push: FloatArray, row: FloatArray) -> FloatArray:
    """Return the matrix of steps along a path: forces stay zero, and the length is given."""
    return np.block([[K, -push[:, np.newaxis]], [row[np.newaxis]]])


def _solve(matrix: FloatArray, right: FloatArray) -> FloatArray:
    rows = np.max(np.abs(matrix), axis=1)  # forces and lengths have units of their own
    size = np.where(rows > 0.0, rows, 1.0)
    try:
        found: FloatArray = np.linalg.solve(matrix / size[:, np.newaxis], right / size)
    except np.linalg.LinAlgError:
        return np.full(len(right), np.inf)
    return found


def _eigen(K: FloatArray, slope: FloatArray) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return μ and φ with ``slope φ = μ K φ``."""
    from scipy.linalg import LinAlgError, eig, eigh

    if np.array_equal(slope, slope.T):
        try:
            values, vectors = eigh(slope, (K + K.T) / 2.0)
        except LinAlgError:  # K is not positive definite
            pass
        else:
            return values.astype(complex), vectors.astype(complex)
    values, vectors = eig(slope, K)
    return values, vectors


def _resemblance(one: FloatArray, other: FloatArray, K: FloatArray) -> float:
    """Return how much two shapes are alike, each coordinate measured by its stiffness."""
    weight = alike(K)
    a, b = one * weight, other * weight
    return abs(float(a @ b)) / float(np.linalg.norm(a) * np.linalg.norm(b))


def _length(K: FloatArray, turns: npt.NDArray[np.bool_]) -> float:
    """Return a length by which translations are like angles, as far as their stiffness goes."""
    diagonal = np.abs(np.diag(K))
    angles, moves = (np.max(diagonal[part], initial=0.0) for part in (turns, ~turns))
    return float(np.sqrt(angles / moves)) if angles > 0.0 and moves > 0.0 else 1.0


def _negative(K: FloatArray, beside: float = 0.0) -> int:
    """Return in how many directions a stiffness is negative, by some times the smallest one."""
    size = alike(K)
    found = np.linalg.eigvalsh((K + K.T) / (2.0 * np.outer(size, size)))
    return int(np.sum(found < -beside * np.min(np.abs(found))))


def _different(found: list[CriticalLoad]) -> list[CriticalLoad]:
    """Return critical loads in the order of their size, each state and shape once."""
    kept: list[CriticalLoad] = []
    for each in sorted(found, key=_size):
        if not any(_same(each, other) for other in kept):
            kept.append(each)
    return kept


def _size(critical: CriticalLoad) -> float:
    return np.inf if np.isnan(critical.factor) else abs(critical.factor)


def _same(one: CriticalLoad, other: CriticalLoad) -> bool:
    a, b = (np.array(list(critical.shape.values())) for critical in (one, other))
    near = abs(one.factor - other.factor) <= _EQUAL * abs(other.factor)
    return bool(near and abs(a @ b) > 0.999 * np.linalg.norm(a) * np.linalg.norm(b))


__all__ = ["Buckling", "CriticalLoad", "buckling"]
