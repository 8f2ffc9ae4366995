"""Where blocks declare that the continuous state belongs, and what becomes of states beside it.

After each step, and at the start of a motion, the deviations are checked. Where one of them is
larger than 1, the state is projected until none is. Where that does not work, as at singular
positions, it stays as it is, which is said; one that is far away ends the run. Steps are within the
tolerance of the method, and so are projections of them; it is said where that is not so at one step
after the other, since equations and inputs then contradict each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.diagrams.checks.errors import SimulationError, TraceError, quoted, warn
from flexure.diagrams.contexts.store import Store
from flexure.diagrams.values.arrays import FloatArray, freeze
from flexure.solvers.integration.methods.methods import is_fixed_step
from flexure.solvers.integration.methods.projecting import (
    FAR,
    MOST_PROJECTIONS,
    PULLED,
    ROOM,
    TIMES,
)
from flexure.solvers.tracing.compile_limits import STATEMENTS, refuse_beyond
from flexure.solvers.tracing.straight_line import (
    ARITHMETIC_ERRORS,
    Function,
    StraightLine,
    following,
)
from flexure.solvers.tracing.trace import trace
from flexure.solvers.tracing.trace_check import agree

if TYPE_CHECKING:
    from flexure.solvers.simulation.run_control.simulation_state import SimulationState


_WORTHWHILE = 50  # evaluations after which a trace pays


class Reading:
    """What is read from a root context, as a function of time and state.

    That are deviations, corrections and witness functions. They are straight-line code when that
    pays. Evaluation by interpretation moves the values of the store. ``read`` reads a vector from a
    store, of numbers or symbols. Where it is ``compiled``, it may be traced: at any evaluation if
    ``by_itself``, which changes later values by rounding errors, or by `compile_if_due`.
    """

    def __init__(
        self, store: Store, read: Callable[[Store], Any], *, compiled: bool, by_itself: bool = True
    ) -> None:
        self._store = store
        self._read = read
        self._left: float = _WORTHWHILE if compiled else math.inf
        self._by_itself = by_itself
        self._function: Function | None = None

    def __call__(self, time: float, x: FloatArray) -> FloatArray:
        """Return the vector, a fresh one."""
        if self._function is not None:
            try:
                return self._function(time, x)
            except ARITHMETIC_ERRORS:
                return self._interpreted(time, x)
        value = self._interpreted(time, x)
        self._left -= 1
        if self._left == 0 and self._by_itself:
            self._compile(time, x, value)
        return value

    def compile_if_due(self) -> bool:
        """Compile after enough evaluations, once; tell whether that was tried."""
        if self._left > 0 or self._function is not None:
            return False
        self._left = math.inf
        time, x = self._store.time, self._store.x
        self._compile(time, x, self._interpreted(time, x))
        return True

    def prepare(self) -> None:
        """Compile at the next evaluation, for who cannot wait later."""
        self._left = min(self._left, 1)

    def _interpreted(self, time: float, x: FloatArray) -> FloatArray:
        if time != self._store.time or x is not self._store.x:
            self._store.set_motion(float(time), freeze(np.array(x)))
        return np.array(self._read(self._store), dtype=float)

    def _compile(self, time: float, x: FloatArray, expected: FloatArray) -> None:
        """Compile, and keep the code if it gives the same numbers here."""
        try:
            expressions = trace(self._store.layout, lambda store: list(self._read(store)))
            code = StraightLine(expressions, self._store.layout.num_states)
            refuse_beyond(STATEMENTS, code.operations, "equations")
            function = following(lambda: code, self._store)
            if agree(function(time, x), expected):
                self._function = function
        except (TraceError, *ARITHMETIC_ERRORS):
            pass  # interpretation goes on, and says what is wrong where something is


#: What projections leave of a deviation where they are worth while, though they do not remove it.
_HELPS = 0.5


class Manifold:
    """Keeps the state of a simulation where it belongs."""

    def __init__(self, simulation: SimulationState, *, compiled: bool) -> None:
        self._simulation = simulation
        # Whether some block declares a projection.
        self.exists = bool(simulation.store.layout.projecting)
        # Largest deviation that is left; more than 1 where projections have left more.
        self.allowed = 1.0
        self._said = 1.0
        self._pulls, self._pulls_said, self._jump_said = 0, False, False
        self._deviations = Reading(simulation.store, Store.deviations, compiled=compiled)
        self._projected = Reading(simulation.store, Store.projected_state, compiled=compiled)

    def begin(self) -> None:
        """Forget what has happened so far."""
        self.allowed = self._said = 1.0
        self._pulls, self._pulls_said, self._jump_said = 0, False, False

    def place_start(self) -> bool:
        """Move the present state to where it belongs; tell whether it was beside it."""
        store = self._simulation.store
        time, x = store.time, store.x
        if not self.exists:
            return False
        found = self.place(time, x, unmoved=not self._simulation.surfaces.jumped)
        store.set_motion(time, found)
        return found is not x

    def place_end(self, time: float, x: FloatArray) -> FloatArray:
        """Return the state with which to go on at the end of a step, as `place` does."""
        found, simulation = self.place(time, x), self._simulation
        if found is x or is_fixed_step(simulation.choice.method):
            self._pulls = 0
            return found
        with np.errstate(all="ignore"):
            moved = (found - x) / (simulation.atol + simulation.rtol * np.abs(found))
            is_far = np.sqrt(np.mean(moved**2)) > PULLED
        self._pulls = self._pulls + 1 if is_far else 0
        if self._pulls == TIMES:
            self.tell_pulls(time, x)
        return found

    def tell_pulls(self, time: float, x: FloatArray) -> None:
        """Say once that steps are moved farther than they can err, and what the last one left."""
        if self._pulls_said:
            return
        self._pulls_said, store = True, self._simulation.store
        before = store.time, store.x
        store.set_motion(time, x)
        found = self._found()
        store.set_motion(*before)
        warn(
            f"The state of '{self._simulation.system.label}' was projected after each of"
            f" {TIMES} steps, more than {PULLED:.0f} times farther than the error of the method:"
            f" found {found} at t = {time:.9g} s. Check for equations that contradict each other"
            + self._on_driven(
                ", and whether velocities and accelerations of {} are the rates of its positions"
            )
            + "; this is said once"
        )

    def place(self, time: float, x: FloatArray, *, unmoved: bool = False) -> FloatArray:
        """Return the state with which to go on at a time, the same object where it is fine.

        Where a motion begins with a state that no update has moved, jumps of positions are said
        once: something prescribed jumps.

        Raises `SimulationError` when projections leave it far away.
        """
        with np.errstate(all="ignore"):
            deviation = self._deviation(time, x)
            if deviation <= self.allowed:
                if deviation <= 1.0:
                    self.allowed = 1.0
                return x
            nearest, left = x, deviation
            moved: FloatArray = x
            for _ in range(MOST_PROJECTIONS):
                moved = freeze(self._projected(time, moved))
                now = self._deviation(time, moved)
                if now <= 1.0:
                    if unmoved and deviation > FAR:
                        self._tell_jump(time, x, moved)
                    return moved
                if now < left:
                    nearest, left = moved, now
            self._tell(time, nearest, left)
        self.allowed = 1.0 if left < _HELPS * deviation else ROOM * left
        return nearest

    def _tell_jump(self, time: float, x: FloatArray, moved: FloatArray) -> None:
        """Say once that positions jump, other than by the errors of a step."""
        simulation = self._simulation
        q = simulation.store.layout.q_indices
        tolerated = (simulation.atol + simulation.rtol * np.abs(moved))[q]
        if self._jump_said or not np.any(np.abs(moved - x)[q] > FAR * tolerated):
            return
        self._jump_said = True
        simulation.store.set_motion(time, x)
        found = self._found()
        warn(
            f"Positions of '{simulation.system.label}' jump at t = {time:.9g} s: found {found}."
            " Prescribe positions that move in a finite time, with their rates, or begin the run"
            " at the new ones; this is said once"
        )

    def _deviation(self, time: float, x: FloatArray) -> float:
        return float(np.max(np.abs(self._deviations(time, x))))

    def _by_rounding(self, time: float, x: FloatArray) -> float:
        """Return the largest change of a deviation where each state is rounded."""
        here, found = self._deviations(time, x), 0.0
        for k, spacing in enumerate(np.spacing(np.maximum(np.abs(x), 1.0))):
            moved = np.array(x)
            moved[k] += spacing
            change = np.abs(self._deviations(time, freeze(moved)) - here)
            found = max(found, float(np.max(change)))
        return found

    def _tell(self, time: float, x: FloatArray, deviation: float) -> None:
        """Say what projections have left; raise where that is too much."""
        self._simulation.store.set_motion(time, x)
        found, label = self._found(), self._simulation.system.label
        by_rounding = self._by_rounding(time, x)
        if by_rounding > 1.0:
            found += f", where rounding alone is {by_rounding:.3g} times the tolerance"
        if not deviation <= FAR:
            error = SimulationError(
                f"Cannot keep '{label}' together at t = {time:.9g} s",
                expected=f"a state that {MOST_PROJECTIONS} projections bring within its tolerance",
                found=found,
                remedy="Raise the tolerance, such as constraint_tolerance of a plant"
                if by_rounding > 1.0
                else "Take smaller steps or tolerances, and stay away from positions in which a"
                f" mechanism is stretched out{self._on_driven(', and keep {} free of jumps')}",
            )
            error.time = time
            raise error
        if deviation > ROOM * self._said or self._said == 1.0:
            self._said = deviation
            warn(
                f"The state of '{label}' misses its tolerance at t = {time:.9g} s: found"
                f" {found}, which {MOST_PROJECTIONS} projections leave. Check for a singular"
                " position there, or for equations that contradict each other; this is said once"
            )

    def _on_driven(self, text: str) -> str:
        """Return a text with the names of constraints that move with time, if there are any."""
        store = self._simulation.store
        names = [
            constraint.name
            for k in store.layout.projecting
            for constraint in getattr(store.layout.leaves[k], "constraints", ())
            if constraint.is_driven
        ]
        return text.format(quoted(names)) if names else ""

    def _found(self) -> str:
        """Say what of the present state is not where it belongs."""
        store = self._simulation.store
        pairs = [
            (float(np.max(np.abs(projection.calc_deviations(leaf)))), projection.description(leaf))
            for leaf in (store.leaves[k] for k in store.layout.projecting)
            if (projection := leaf.system.projection) is not None
        ]
        away = [text for size, text in pairs if not size <= 1.0]
        return ", ".join(away or [max(pairs)[1]])
