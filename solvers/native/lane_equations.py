"""The equations of a system for all lanes at once, and the loops that integrate ensembles of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from flexure.diagrams.store import Store
from flexure.solvers.native import ensemble
from flexure.solvers.native.emission import Environment, emit, emit_with_preparation
from flexure.solvers.native.language import FUNCTION, Module, Value
from flexure.solvers.native.library import Library, lane_count, vector_functions
from flexure.solvers.native.methods import METHODS, source_identity
from flexure.solvers.signals import Reader
from flexure.solvers.trace import trace

if TYPE_CHECKING:
    from flexure.solvers.native.program import Program

_LARGE = 200_000  # characters, beyond which a step has no copy of the equations to itself


class LaneEquations:
    """Native functions of one root system that compute all lanes at once.

    Parameters
    ----------
    program : Program
        Of the system.
    signals : sequence of Reader
        What is sampled.

    Attributes
    ----------
    lanes : int
        Their number.
    environment : Environment
        As in `Program`, but every entry holds a number for each lane.
    expressions : list
        The components of the signals, as expressions of the trace.
    signals : int
        Address of the function that computes them.
    prepared : int
        Where in the environment the results of the function ``prepare`` go.

    Raises
    ------
    TraceError
        When a signal cannot be traced.
    """

    def __init__(self, program: Program, signals: Sequence[Reader]) -> None:
        self.lanes = lane_count(program.num_states)
        self.num_states = program.num_states
        self._vectors = vector_functions(self.lanes)
        derivatives: list[Any] = program.derivatives
        self.expressions: list[Any] = []
        if signals:
            derivatives, self.expressions = trace(
                program.layout, lambda store: _read(store, signals)
            )
        self.environment = Environment(program.num_discrete, program.environment.discrete)
        lanes, vectors = self.lanes, self._vectors
        self._texts, self.prepared = emit_with_preparation(
            {"rhs": derivatives}, self.environment, lanes=lanes, vectors=vectors
        )
        self.environment.place_inputs(self.expressions)
        text, declarations = emit(
            "signals", self.expressions, self.environment, lanes=lanes, vectors=vectors
        )
        text = "\n".join([*sorted(declarations), text])
        self._signals = Library(text, lambda: text)
        self.signals = self._signals.address("signals")
        self._steps: dict[str, Library] = {}

    def addresses(self, method: str) -> dict[str, int]:
        """Return the addresses of ``rhs``, ``prepare`` and of ``attempt``, a step of a method."""
        if method not in self._steps:
            parts = "\n".join(text for text, _ in self._texts.values())
            key = f"{self.lanes} steps of {method}, {source_identity()}\n{parts}"
            large = len(parts) > _LARGE
            self._steps[method] = Library(
                key, lambda: self._step_text(method, whole=not large), level=1 if large else 2
            )
        return {name: self._steps[method].address(name) for name in ("rhs", "prepare", "attempt")}

    def _step_text(self, method: str, *, whole: bool) -> str:
        """Write a step of a method, for these equations and this number of states or for any."""
        module = Module(self.lanes, self._vectors)
        for name, (text, declarations) in self._texts.items():
            module.functions[name] = text
            module.declarations |= declarations
        tableau = METHODS[method].tableau
        if whole:
            statics = {"tableau": tableau, "n": self.num_states, "f": Value(FUNCTION, "@rhs")}
            module.translate(ensemble.attempt, "attempt", statics)
        else:
            module.translate(ensemble.attempt_any, "attempt", {"tableau": tableau})
        return module.text


def _read(store: Store, signals: Sequence[Reader]) -> tuple[list[Any], list[Any]]:
    """Read the derivatives, and all components of the signals."""
    derivatives = list(store.time_derivatives())
    root = store.leaves[0].root
    return derivatives, [entry for signal in signals for entry in signal(root)]


@cache
def ensemble_loop(method: str, lanes: int) -> Library:
    """Return the loop of a method for a number of lanes: ``integrate(run)``."""
    key = f"{lanes} loops of {method}, {source_identity()}"
    return Library(key, lambda: _loop_text(method, lanes), level=1)


def _loop_text(method: str, lanes: int) -> str:
    module = Module(lanes, vector_functions(lanes))
    module.translate(ensemble.integrate, "integrate", {"method": METHODS[method]})
    return module.text


__all__ = ["LaneEquations", "ensemble_loop"]
