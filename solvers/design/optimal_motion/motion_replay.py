"""Replays: the inputs of a plan, played into the unmodified system by the simulator."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from flexure.blocks import Trajectory
from flexure.diagrams.building.builder import DiagramBuilder
from flexure.diagrams.checks.errors import ContextError, EvaluationError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.systems.diagram import Diagram
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.equations.equations import Variable
from flexure.solvers.results.records.result import SimulationResult
from flexure.solvers.simulation.simulation import simulate


class Player:
    """A system with values for all but its free inputs, at which copies of it get sources."""

    def __init__(self, context: Context, inputs: list[Variable], attempt: str) -> None:
        self._context, self._inputs = context, inputs
        self.prefix = context.system.name
        times = context.time + np.arange(2.0)
        held = np.zeros((sum(len(each.keys) for each in inputs), 2))
        _, played = self._bench(times, held, "linear")
        try:
            with np.errstate(all="ignore"):
                played.store.time_derivatives()
        except ContextError as error:
            raise EvaluationError(
                attempt,
                expected="a system whose copy, which the replay needs, has equations of its own",
                found=f"one whose copy reads the original: {error}",
                remedy="Use methods, not lambdas or functions in functions",
            ) from error

    def play(
        self, times: FloatArray, values: FloatArray, kind: str, start: FloatArray, **options: Any
    ) -> SimulationResult:
        """Return the run from a start to the last time, with a row of points for each input."""
        whole, played = self._bench(times, values, kind)
        played[self.prefix].continuous_state = start
        return simulate(whole, float(times[-1]), context=played, **options)

    def _bench(self, times: FloatArray, values: FloatArray, kind: str) -> tuple[Diagram, Context]:
        """Return a diagram of a copy of the system and its sources, with a context."""
        context = self._context
        system = copy.deepcopy(context.system)
        builder = DiagramBuilder("replay" if self.prefix != "replay" else "replay_of_motion")
        builder.add(system)
        fed, row = {}, 0
        store, layout = context.store, context.store.layout
        for each in self._inputs:
            slot, port = each.keys[0][0][1], layout.slot_port[each.keys[0][0][1]]
            if port not in fed:
                held = store.value(slot) if store.holds(slot) else np.zeros(port.size)
                fed[port] = np.tile(held, (len(times), 1))
            fed[port][:, [k for _, k in each.keys]] = values[row : row + len(each.keys)].T
            row += len(each.keys)
        for number, (port, points) in enumerate(fed.items()):
            source = Trajectory(f"{self.prefix}_input_{number}", times, points, kind=kind)  # type: ignore[arg-type]
            builder.add(source)
            builder.connect(source.y, system.input_ports[port.index])
        others = [port for port in context.system.input_ports if port not in fed]
        for port in others:
            builder.export_input(system.input_ports[port.index], name=port.name)
        whole = builder.build()
        played = whole.create_default_context()
        played.time, played.accuracy = context.time, context.accuracy
        for mine, given in zip(played.find(system).leaves(), context.leaves(), strict=True):
            mine.take(given)
        for port, inner in zip(whole.input_ports, others, strict=True):
            slot = layout.held[inner]
            if store.holds(slot):
                played.store.fix(played.store.layout.held[port], store.value(slot))
        return whole, played


def states_of(result: SimulationResult, times: FloatArray) -> FloatArray:
    """Return all continuous states of a run at ascending times, shape (n, k)."""
    leaves = result.context.store.layout.leaves
    handles = [each.continuous_state for each in leaves if each.continuous_state is not None]
    columns = result.sample_all(handles, times)
    return np.concatenate([np.reshape(each, (len(times), -1)) for each in columns], axis=1).T
