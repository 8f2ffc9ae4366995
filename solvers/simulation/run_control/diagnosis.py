"""Where a simulation fails or is given up: what is said, and about which block or state."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from flexure.diagrams.checks.errors import NonFiniteError, SimulationError
from flexure.diagrams.values.arrays import FloatArray, freeze, show

if TYPE_CHECKING:
    from flexure.diagrams.contexts.store import Store
    from flexure.solvers.integration.guard.failures import Jump
    from flexure.solvers.simulation.run_control.simulation_state import SimulationState

#: How far ahead to look, in proportion to the state.
_AHEAD = 1e-8


def explain_non_finite(store: Store, time: float, x: FloatArray) -> NonFiniteError:
    """Return an error that names where a NaN or infinity comes from at a time and state.

    Values are checked in the order in which they are computed, so that the first one that is not
    finite has finite inputs: its own block made it.
    """
    error = NonFiniteError(
        f"Cannot integrate '{store.layout.root.name}' at t = {time:.9g}",
        expected="finite numbers",
        found=_first_culprit(store, time, x),
        remedy="Check the equations of that block for a division by zero or a root or logarithm "
        "of a negative number, and its parameters; or bound its inputs",
    )
    error.time = time
    return error


def _first_culprit(store: Store, time: float, x: FloatArray) -> str:
    layout = store.layout
    bad = np.flatnonzero(~np.isfinite(x))
    if bad.size:
        return f"{show(x[bad[0]])} in the state {layout.state_name(int(bad[0]))}"
    store.set_motion(time, x)
    for slot in layout.plan:
        port = layout.slot_port[slot]
        value = store.value(slot)
        if port.size is not None and not np.all(np.isfinite(value)):
            component = int(np.flatnonzero(~np.isfinite(value))[0])
            return (
                f"{show(value[component])} in component {component} of {port.what} "
                f"'{port.full_name}', whose inputs are finite"
            )
    derivatives = store.time_derivatives()
    bad = np.flatnonzero(~np.isfinite(derivatives))
    if bad.size:
        return (
            f"{show(derivatives[bad[0]])} in the time derivative of the state "
            f"{layout.state_name(int(bad[0]))}, whose block has finite inputs"
        )
    return "a value that is not finite in a trial step nearby"


def name_jump(store: Store, jump: Jump) -> str:
    """Say which value jumps first, in the order in which values are computed.

    The motion of the store is another one afterwards.
    """
    layout = store.layout
    i = jump.state
    before, after = (_values(store, *point[:2]) for point in (jump.before, jump.after))
    what = f"the time derivative of the state {layout.state_name(i)}"
    values = float(jump.before[2][i]), float(jump.after[2][i])
    # A jump is far larger than the distance of the two points, to which others are in proportion.
    distance = np.max(np.abs(jump.after[1] - jump.before[1]))
    least = np.sqrt(distance * abs(values[1] - values[0]))
    for slot, old in before.items():
        change = np.abs(after[slot] - old)
        k = int(np.argmax(change))
        if change[k] > least:
            port = layout.slot_port[slot]
            what = f"component {k} of {port.what} '{port.full_name}'"
            values = float(old[k]), float(after[slot][k])
            break
    there = f"{layout.state_name(i)} = {show(jump.before[1][i])}"
    return f"{what} jumps from {show(values[0])} to {show(values[1])} where {there}"


def _values(store: Store, time: float, x: FloatArray) -> dict[int, FloatArray]:
    """Return the values of all vector-valued ports at a time and state, by slot."""
    store.set_motion(time, freeze(np.array(x)))
    ports = store.layout.slot_port
    return {slot: np.array(store.value(slot)) for slot in store.layout.plan if ports[slot].size}


def fastest_state(store: Store, x: FloatArray, scale: FloatArray) -> str:
    """Name the state that moves fastest, measured by ``scale``, and its rate."""
    with np.errstate(all="ignore"):
        rates = store.time_derivatives()
        speed = np.nan_to_num(np.abs(rates) / scale, nan=np.inf)
    index = int(np.argmax(speed))
    return f"{store.layout.state_name(index)} (value {show(x[index])}, rate {show(rates[index])})"


def name_fastest(error: SimulationError, store: Store, rtol: FloatArray, atol: FloatArray) -> None:
    """Add to an error which state moves fastest, where that may help."""
    try:
        fastest = fastest_state(store, store.x, atol + rtol * np.abs(store.x))
    except Exception:
        return
    error.add_note(f"the fastest state at t = {store.time:.9g} s is {fastest}")


def refuse_ahead(store: Store) -> None:
    """Raise what the equations refuse a moment later, up to which steps can only creep."""
    time, x = store.time, store.x
    rates = store.time_derivatives()
    speed = float(np.max(np.abs(rates), initial=0.0))
    moment = _AHEAD * (1.0 + float(np.max(np.abs(x), initial=0.0))) / speed if speed else 0.0
    store.set_motion(time + moment, x + moment * rates)
    try:
        with np.errstate(all="ignore"):
            store.time_derivatives()
    finally:
        store.set_motion(time, x)


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
