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

_LARGEST = 400  # states; the time of computing modes grows with their cube
_MOST = 300  # parameters that are varied to find those with an influence
_NUDGE = 1e-3  # relative change for that
_SHARE = 0.2  # of the strongest influence; weaker ones are not named
_NAMED = 4  # paths at most
_SURE = 1e3  # ratio of an eigenvalue to its rounding error
_LARGEST_RATE = 1e130  # per second; beyond it LAPACK returns wrong poles
_NOT_ZERO = 1e-3  # of the norm: rounding moves even four poles at zero by less


@dataclass(frozen=True)
class Solid:
    """A body with mass."""

    mass: float  # in kg
    # Edges in m of the uniform box that has these moments of inertia per mass, ascending,
    # shape (3,).
    size: FloatArray
    # Distance in m to the farthest of its joints or its center of mass, from the origin.
    reach: float
    paths: tuple[str, str, str]  # paths of mass, center of mass and unit inertia
    tree: LeafContext  # the context of its tree
    name: str


@dataclass(frozen=True)
class Mode:
    """An eigenvalue of the linearized equations that is not zero by more than rounding.

    The pole, one of a conjugate pair, is in rad/s, and ``error`` bounds its rounding error. For the
    eigenvectors, leftᴴ right = 1.
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
        """Participation of each state in the mode; the sum is 1."""
        shares = np.abs(self.left * self.right)
        return np.asarray(shares / shares.sum())


class DiagnosedSystem:
    """A system at the values of a context, as rules see it.

    The values of the context are varied and restored.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self.system = context.system
        self.path_of = Paths(self.system)
        self.leaves = list(context.leaves())
        self.unchecked: list[str] = []  # parts that could not be computed, and why
        for port, slot in each_free_input(context):
            if port.size is not None and not context.store.holds(slot):
                port.fix(context, np.zeros(port.size))
                self.unchecked.append(
                    f"'{self.path_of(port)}' with other values than zero, because it is not fixed"
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
        except Exception as error:  # functions of users may raise anything
            self.unchecked.append(f"modes and accelerations, because: {error}")
            return None

    def matrix(self) -> FloatArray:
        """Return the derivatives of the rates of all states by the states."""
        assert self.equations is not None
        return self.equations.jacobian(self.equations.point())

    @cached_property
    def modes(self) -> list[Mode]:
        """The modes whose poles are not zero, the fastest first."""
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
        scale = scale[:, np.newaxis]  # scaled states, so that their units do not matter
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
        """Return the paths of the parameters with the largest influence on a number.

        Each is changed by the same fraction, so that its unit does not matter. If influences are
        similar, values far from 1 come first: ordinary values are not far from 1 in SI units.
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
            except Exception:  # such a value is not the cause
                change = 0.0
            variable.write(self.context.store, numbers)
            size = float(np.max(np.abs(numbers)))
            influences[path] = change * (1.0 + abs(math.log10(size))) if change > 0.05 else 0.0
        return _strongest({path: each for path, each in influences.items() if math.isfinite(each)})

    def governing_mode(self, mode: Mode, part: Callable[[complex], complex]) -> tuple[str, ...]:
        """Return the paths of the parameters with the largest influence on (a part of) a pole.

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
    """Return the edges of the uniform box with given moments of inertia per mass, ascending."""
    # Along each principal axis the mean square s² of the distance is half the sum of the other two
    # moments less its own one; that of a box with the edge L is L² / 12.
    xx, yy, zz, xy, xz, yz = np.asarray(six, dtype=float)
    moments = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    squares = moments.sum() / 2.0 - moments
    return np.sort(np.sqrt(12.0 * np.maximum(squares, 0.0)))
