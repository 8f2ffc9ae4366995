"""Where a simulation is given up, although no step fails: what is said, and about which state."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from flexure.solvers.simulation.run_control.diagnosis import name_fastest, name_jump, refuse_ahead

if TYPE_CHECKING:
    from flexure.solvers.integration.guard.chattering import Jump
    from flexure.solvers.simulation.run_control.simulation_state import SimulationState


def judge_record(simulation: SimulationState, land: Callable[[], None]) -> None:
    """Raise where the motion that is kept takes too much memory, after a call of ``land``.

    That puts the context where the run has come to.
    """
    history = simulation.history
    if history is not None and history.is_full:
        from flexure.solvers.integration.guard.failures import too_long_record

        land()
        time = simulation.store.time
        raise too_long_record(simulation.system, time, history.size, history.limit)


def give_up_slow(
    simulation: SimulationState, time: float, lack: str, rounding: str = ""
) -> NoReturn:
    """End a run whose steps up to a time lead nowhere, perhaps since rounding makes them short."""
    from flexure.solvers.integration.guard.failures import no_progress

    store = simulation.store
    refuse_ahead(store)
    error = no_progress(simulation.choice.method, time, "to reach the end", lack, rounding)
    name_fastest(error, store, simulation.rtol, simulation.atol)
    raise error


def give_up_chattering(simulation: SimulationState, jump: Jump) -> NoReturn:
    """End a run that chatters at a jump of the equations."""
    from flexure.solvers.integration.guard.failures import chattering

    store = simulation.store
    now = store.time, store.x
    error = chattering(simulation.choice.method, jump, name_jump(store, jump))
    store.set_motion(*now)
    name_fastest(error, store, simulation.rtol, simulation.atol)
    raise error
