"""Data of a system for the rules: its blocks, bodies and modes, and the origin of its values."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.multibody.constrained_dynamics.tree import MultibodyTree
from flexure.diagrams.concurrency.threads import cached_property
from flexure.diagrams.contexts.context import Context, LeafContext
from flexure.diagrams.contexts.inventory import Paths, each_free_input, each_state
from flexure.diagrams.systems.ports import InputPort
from flexure.diagrams.systems.system import System
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.events import Periodic
from flexure.diagrams.values.parameters import NumericParameter
from flexure.solvers.analysis.equations.equations import Equations, find_variables

_LARGEST = 400  # states of which modes are computed, which takes a time like their cube
_MOST = 300  # parameters that are varied to see what governs a number
_NUDGE = 1e-3  # relative change for that
_SHARE = 0.2  # of the strongest influence that is named
_NAMED = 4  # paths at most
_SURE = 1e3  # how far beyond rounding an eigenvalue has to be
_LARGEST_RATE = 1e130  # per second, beyond which LAPACK returns other poles
_NOT_ZERO = 1e-3  # of the norm: rounding does not move even four poles at zero that far


@dataclass(frozen=True)
class Solid:
    """A body that has mass, as its parameters say.

    Attributes
    ----------
    mass : float
        In kg.
    size : ndarray, shape (3,)
        Edges in m of the uniform box that has these moments of inertia per mass, ascending.
    reach : float
        Distance in m to the farthest of its joints or its center of mass, from the origin.
    paths : tuple of str
        Of mass, center of mass and unit inertia.
    tree : LeafContext
        Where it is.
    name : str
        Its name.
    """

    mass: float
    size: FloatArray
    reach: float
    paths: tuple[str, str, str]
    tree: LeafContext
    name: str


@dataclass(frozen=True)
class Mode:
    """An eigenvalue of the linearized equations that is surely not zero.

    Attributes
    ----------
    pole : complex
        In rad/s; one of two that are conjugate.
    error : float
        How far rounding may have moved it.
    left, right : ndarray
        Its eigenvectors, with leftᴴ right = 1.
    """

    pole: complex
    error: float
    left: npt.NDArray[np.complex128]
    right: npt.NDArray[np.complex128]

    @property
    def frequency(self) -> float:
        """Magnitude of the pole in Hz."""
        return abs(self.pole) / (2.0 * math.pi)

    @property
    def shares(self) -> FloatArray:
        """How much each state takes part in the mode; the sum is 1."""
        shares = np.abs(self.left * self.right)
        return np.asarray(shares / shares.sum())


class DiagnosedSystem:
    """A system at the values of a context, as rules look at it.

    Parameters
    ----------
    context : Context
        A root context; its values are varied and put back.

    Attributes
    ----------
    unchecked : list of str
        What could not be computed, and why.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self.system = context.system
        self.path_of = Paths(self.system)
        self.leaves = list(context.leaves())
        self.unchecked: list[str] = []
        for port, slot in each_free_input(context):
            if port.size is not None and not context.store.holds(slot):
                port.fix(context, np.zeros(port.size))
                self.unchecked.append(
                    f"other values of '{self.path_of(port)}' than zero, as it has none"
                )

    # Blocks --------------------------------------------------------------------------------

    def values(self) -> Iterator[tuple[str, NumericParameter, Any]]:
        """Yield path, handle and value of each numeric parameter."""
        for leaf in self.leaves:
            for handle in leaf.system.numeric_parameters:
                yield self.path_of(handle), handle, handle(leaf)

    def system_path(self, system: System) -> str:
        """Return the path of a block, counted from the system; its name when it is alone."""
        return system.path.removeprefix(f"{self.system.path}.") or system.name

    def source_of(self, port: InputPort) -> Any:
        """Return the port of a leaf that feeds an input of a leaf, or a free input."""
        layout = self.context.store.layout
        return layout.slot_port[layout.sources[layout.position[port.system]][port.index]]

    @cached_property
    def sampled(self) -> list[tuple[LeafContext, float]]:
        """The blocks that update at a period, with it, in s."""
        return [
            (leaf, event.trigger.period)
            for leaf in self.leaves
            for event in leaf.system.events
            if event.kind != "publish" and isinstance(event.trigger, Periodic)
        ]

    # Bodies --------------------------------------------------------------------------------

    @cached_property
    def trees(self) -> list[tuple[LeafContext, MultibodyTree]]:
        """The trees of bodies and joints."""
        pairs = [(leaf, leaf.system) for leaf in self.leaves]
        return [(leaf, tree) for leaf, tree in pairs if isinstance(tree, MultibodyTree)]

    @cached_property
    def solids(self) -> list[Solid]:
        """The bodies that have mass."""
        return [solid for leaf, tree in self.trees for solid in self._solids_of(leaf, tree)]

    def _solids_of(self, leaf: LeafContext, tree: MultibodyTree) -> Iterator[Solid]:
        ends: dict[int, list[float]] = {}
        for mobilizer in tree.topology.mobilizers:
            at_parent, at_child = mobilizer.X_PF.p, mobilizer.X_MB.p
            ends.setdefault(mobilizer.inboard, []).append(float(np.linalg.norm(at_parent)))
            ends.setdefault(mobilizer.outboard, []).append(float(np.linalg.norm(at_child)))
        for number, body in enumerate(tree.topology.bodies[1:], start=1):
            if body.is_node:
                continue
            names = (f"{body.name}_{what}" for what in ("mass", "com", "unit_inertia"))
            mass, com, six = (tree.find_parameter(name) for name in names)
            if mass(leaf) > 0.0:
                yield Solid(
                    float(mass(leaf)),
                    _box(six(leaf)),
                    max([float(np.linalg.norm(com(leaf))), *ends.get(number, [])]),
                    (self.path_of(mass), self.path_of(com), self.path_of(six)),
                    leaf,
                    body.name,
                )

    # Modes ---------------------------------------------------------------------------------

    @cached_property
    def equations(self) -> Equations | None:
        """The continuous equations, sampled states held; None where they have no values."""
        try:
            return Equations(self.context, as_gain=True)
        except Exception as error:  # foreign functions raise whatever they like
            self.unchecked.append(f"modes and accelerations, because: {error}")
            return None

    def matrix(self) -> FloatArray:
        """Return the derivatives of the rates of all states by the states."""
        assert self.equations is not None
        return self.equations.jacobian(self.equations.point())

    @cached_property
    def modes(self) -> list[Mode]:
        """The modes that are surely not at zero, the fastest first."""
        size = self.context.store.layout.num_states
        if size > _LARGEST:
            self.unchecked.append(f"modes, because of {size} states: more than {_LARGEST}")
        if not 0 < size <= _LARGEST or self.equations is None:
            return []
        A = self.matrix()
        if not np.isfinite(A).all():
            self.unchecked.append("modes, because derivatives are not finite at these values")
            return []
        if np.abs(A).max() > _LARGEST_RATE:
            self.unchecked.append(f"modes, because of rates of {np.abs(A).max():.1g} per second")
            return []
        from scipy.linalg import eig, matrix_balance

        balanced, (scale, order) = matrix_balance(A, separate=True)
        scale = scale[:, np.newaxis]  # of states, so that their units do not matter
        poles, left, right = eig(balanced, left=True, right=True)  # type: ignore[misc]
        norm = float(np.linalg.norm(balanced))
        rounding = _SURE * np.finfo(float).eps * norm
        found, coincide, back = [], False, np.argsort(order)
        right, left = (scale * right)[back], (left / scale)[back]
        for pole, w, v in zip(poles, left.T, right.T, strict=True):
            overlap = np.vdot(w, v)
            error = rounding / max(abs(overlap), 1e-300)
            if pole.imag >= 0.0 and abs(pole) > error:
                found.append(Mode(complex(pole), error, w / np.conj(overlap), v))
            elif pole.imag >= 0.0:
                coincide |= abs(pole) > _NOT_ZERO * norm
        if coincide:
            self.unchecked.append("modes that coincide, such as those of equal filters in a row")
        return sorted(found, key=lambda mode: -abs(mode.pole))

    @cached_property
    def state_paths(self) -> list[str]:
        """One path for each continuous state."""
        places = [
            place for place, handle in each_state(self.system) if handle.what == "continuous state"
        ]
        return [path for place in places for path in self.path_of.components(place)]

    # What governs a number -----------------------------------------------------------------

    def moving(self, mode: Mode) -> tuple[str, ...]:
        """Return the paths of the states that a mode moves."""
        return _strongest(dict(zip(self.state_paths, mode.shares.tolist(), strict=True)))

    def governing(self, measure: Callable[[], complex]) -> tuple[str, ...]:
        """Return the paths of the parameters on which a number depends most.

        Each is changed by a small part of itself, so that its unit does not matter. Among those
        that count about the same, numbers far from 1 come first: what is between people's hands
        is not far from 1 in SI units.
        """
        before = measure()
        influences: dict[str, float] = {}
        for path, handle, value in self.values():
            if not np.isfinite(value).all() or not np.any(value) or len(influences) >= _MOST:
                continue
            (variable,) = find_variables(self.context, [handle], "Cannot vary a parameter")
            numbers = variable.read(self.context.store)
            variable.write(self.context.store, numbers * (1.0 + _NUDGE))
            try:
                change = abs(measure() - before) / (_NUDGE * abs(before))
            except Exception:  # it cannot be that much
                change = 0.0
            variable.write(self.context.store, numbers)
            size = float(np.max(np.abs(numbers)))
            influences[path] = change * (1.0 + abs(math.log10(size))) if change > 0.05 else 0.0
        return _strongest({path: each for path, each in influences.items() if math.isfinite(each)})

    def governing_mode(self, mode: Mode, part: Callable[[complex], complex]) -> tuple[str, ...]:
        """Return the paths of the parameters on which (a part of) a pole depends most.

        To first order a change dA of the matrix moves it by leftᴴ dA right.
        """
        A = self.matrix()

        def pole() -> complex:
            moved = complex(np.conj(mode.left) @ (self.matrix() - A) @ mode.right)
            return part(mode.pole + (moved if cmath.isfinite(moved) else 0.0))

        return self.governing(pole)


def _strongest(influences: dict[str, float]) -> tuple[str, ...]:
    """Return the few paths with the largest numbers."""
    most = max(influences.values(), default=0.0)
    ranked = sorted(influences, key=influences.__getitem__, reverse=True)
    return tuple(path for path in ranked[:_NAMED] if influences[path] > _SHARE * most)


def _box(six: Any) -> FloatArray:
    """Return the edges of the uniform box with given moments of inertia per mass, ascending.

    Along each principal axis the mean square s² of the distance is half the sum of the other two
    moments less its own one; that of a box with the edge L is L² / 12.
    """
    xx, yy, zz, xy, xz, yz = np.asarray(six, dtype=float)
    moments = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    squares = moments.sum() / 2.0 - moments
    return np.sort(np.sqrt(12.0 * np.maximum(squares, 0.0)))
