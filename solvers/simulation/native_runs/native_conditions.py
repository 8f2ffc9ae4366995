"""Conditions for compiled loops in a simulation: returns the loops, or the obstacle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexure.diagrams.checks.errors import FlexureError
from flexure.solvers.native.programs.preconditions import UnsuitableError, native_program
from flexure.solvers.native.programs.program import Program
from flexure.solvers.simulation.native_runs.native_runner import NativeRunner
from flexure.solvers.tracing.trace_check import OTHER_NUMBERS

if TYPE_CHECKING:
    from flexure.solvers.simulation.run_control.simulation_state import SimulationState

_MOST = 60  # clocks and witness functions that a mask has room for


def find_runner(
    simulation: SimulationState, earlier: NativeRunner | None
) -> tuple[NativeRunner | None, str]:
    """Return the compiled loops for a simulation, or why there are none.

    Earlier ones for the same program restart.
    """
    try:
        program = native_program(simulation.store)
        if earlier is None or earlier.program is not program:
            _require_suitable_events(simulation, program)
            earlier = None
        return _trusted_runner(simulation, program, earlier), ""
    except UnsuitableError as reason:
        return None, str(reason)


def _trusted_runner(
    simulation: SimulationState, program: Program, earlier: NativeRunner | None
) -> NativeRunner:
    """Return loops that give the numbers of the equations, or raise `UnsuitableError`."""
    try:
        runner = earlier or NativeRunner(simulation, program)
        runner.begin()
        agrees = runner.agrees()
    except FlexureError as error:
        raise UnsuitableError(str(error).removesuffix(".")) from error
    if not agrees:
        raise UnsuitableError(OTHER_NUMBERS)
    return runner


def _require_suitable_events(simulation: SimulationState, program: Program) -> None:
    """Raise `UnsuitableError` where the loops cannot run the events of a simulation."""
    agenda = simulation.agenda
    if simulation.monitor is not None:
        raise UnsuitableError("a monitor reads every step")
    if not simulation.isolate:
        raise UnsuitableError("witness events are not isolated")
    for entry in agenda.per_step:
        if entry.event.kind != "publish":
            raise UnsuitableError(f"'{entry.event.label}' updates at every step")
    timed = [entry for _, entries in agenda.clocks for entry in entries]
    for entry in [*timed, *agenda.witnesses, *agenda.settling]:
        refusal = program.trace.refusals.get(entry.key)
        if refusal is not None and (entry in agenda.witnesses or entry.event.kind != "publish"):
            raise UnsuitableError(f"'{entry.event.label}' cannot be traced ({refusal})")
    if program.trace.no_deviations:
        raise UnsuitableError(
            f"{simulation.store.layout.root.label} cannot be projected "
            f"({program.trace.no_deviations})"
        )
    if program.trace.no_breaks:
        raise UnsuitableError(program.trace.no_breaks)
    if max(len(agenda.clocks), len(agenda.witnesses)) > _MOST:
        raise UnsuitableError(f"there are more than {_MOST} clocks or witness functions")
