"""The options of a simulation: what they may be, and how tolerances by path are spread."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeAlias, TypedDict

import numpy as np

from flexure.diagrams.checks.arguments import is_one_of, mapping, require
from flexure.diagrams.checks.errors import UnknownNameError, quoted, warn
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.values.arrays import FloatArray, as_number, bounded
from flexure.diagrams.values.events import Terminate
from flexure.solvers.simulation.run_control.method_selection import Method

#: Whether equations are compiled, and to what.
Compiled: TypeAlias = "bool | Literal['native', 'python']"
#: Called after every step with the root context; may return `Terminate`.
Monitor: TypeAlias = Callable[[Context], "Terminate | None"]


class IntegrationOptions(TypedDict, total=False):
    """How runs are integrated: options of `flexure.Simulator`, whose defaults hold."""

    method: Method
    rtol: Tolerance | None
    atol: Tolerance | None
    max_step: float
    max_check_interval: float
    max_steps: float
    step: float | None
    compiled: Compiled


class SimulationOptions(IntegrationOptions, total=False):
    """Options of a single run, likewise."""

    options: Mapping[str, Any] | None
    isolate: bool
    monitor: Monitor | None
    progress: bool
    max_record: float | None


def checked_max_record(size: Any) -> float | None:
    """Return the bytes that a record may take, or refuse them."""
    if size is None:
        return None
    attempt = "Cannot use this max_record"
    return bounded(size, attempt, lower=0.0, allow_infinite=True, unit="bytes")


def checked_max_steps(max_steps: Any) -> float:
    """Return the number of steps of a run, or refuse it."""
    attempt, remedy = "Cannot use this max_steps", "The longest step, in seconds, is max_step="
    number = float(as_number(max_steps, (), attempt))
    require(number >= 1.0, max_steps, attempt, "a number of steps, at least 1", remedy=remedy)
    return number


def checked_compiled(compiled: Any) -> Compiled:
    """Return whether equations are compiled, and to what, or refuse it."""
    if isinstance(compiled, (bool, np.bool_)):
        return bool(compiled)
    fits = is_one_of(compiled, ("native", "python"))
    expected = "True, False, 'native' or 'python'"
    require(fits, compiled, "Cannot use the option compiled", expected)
    return compiled  # type: ignore[no-any-return]


def wants_native(compiled: Compiled | None) -> bool:
    """Return whether native code should be used if possible, also without an option."""
    return compiled not in (False, "python")


def checked_max_check_interval(interval: Any) -> float:
    """Return the longest time between two looks at witness functions, or refuse it."""
    attempt = "Cannot use this max_check_interval"
    found = float(as_number(interval, (), attempt))
    require(found > 0.0, interval, attempt, "a positive number of seconds")
    return found


#: One tolerance for all states, or one per block path; the key "" stands for all others.
Tolerance: TypeAlias = float | Mapping[str, float]
#: Relative tolerances from here on are refused.
LOOSEST_RTOL = 0.1
_SMALL = 100.0  # times the absolute tolerance: errors of smaller motions are hardly controlled
_REST = 1e-15  # below which motions are rounding


def spread(name: str, wish: Tolerance | None, default: float, context: Context) -> FloatArray:
    """Return one tolerance per component of the continuous state of a root context.

    In a ``wish``, the path of a diagram applies to everything inside that is not named more
    closely; ``default`` is for the components about which it says nothing. Raises
    `UnknownNameError` when a path names no block, or a block without continuous state, and
    `ValueRefusedError` when a tolerance is no number, or too large to mean something.
    """
    system, layout = context.system, context.store.layout
    attempt = f"Cannot set {name} of '{system.label}'"
    wishes = {} if wish is None else {"": wish}
    if isinstance(wish, Mapping):
        wishes = mapping(wish, "one number, or a mapping from paths of blocks to numbers", attempt)
    others = checked_tolerance(name, wishes.get("", default), attempt)
    values = np.full(layout.num_states, others)
    for path in sorted((path for path in wishes if path), key=len):
        span = context.find(system.get_system(path))._span()
        if span.start == span.stop:
            raise UnknownNameError(
                f"Cannot set {name} of '{path}'",
                expected="a block with continuous state: "
                + quoted(layout.leaves[k].path for k in layout.dynamic),
                found="a block without",
            )
        values[span] = checked_tolerance(name, wishes[path], attempt)
    return values


def checked_tolerance(name: str, value: object, attempt: str) -> float:
    """Return a tolerance as a number, or refuse it.

    A relative tolerance of a tenth and more keeps no digit, and an infinite absolute one keeps
    nothing at all.
    """
    number = float(as_number(value, (), attempt))
    bound = LOOSEST_RTOL if name == "rtol" else math.inf
    fits = np.asarray(value).dtype.kind != "b" and 0.0 <= number < bound
    limits = "from 0 on, below 0.1" if name == "rtol" else "from 0 on"
    expected = f"a finite number for {name}, {limits}"
    require(fits, value, attempt, expected, remedy="Leave it out for the default")
    return number


def warn_of_small_states(states: Iterable[FloatArray], atol: FloatArray, context: Context) -> None:
    """Warn of a motion so small that the default of atol leaves its error without control.

    That is one in which all states are small. What is below 1e-15 rests.

    ``states``, of shapes (k, n), are those along the motion, as far as need be.
    """
    limit, largest = _SMALL * np.min(atol, initial=np.inf), 0.0
    for rows in states:
        largest = max(largest, float(np.max(np.abs(rows), initial=0.0)))
        if not largest < limit:
            return
    if largest > _REST:
        warn(
            f"All states of '{context.system.label}' stay so small that errors within atol = "
            f"{limit / _SMALL:g} are no small part of them. Pass atol=, about a millionth of the "
            "motion that matters"
        )


def checked_tolerances(
    rtol: object, atol: object, default: float, attempt: str
) -> tuple[float, float]:
    """Return both tolerances of all states; None means the default."""
    relative = checked_tolerance("rtol", default if rtol is None else rtol, attempt)
    if atol is None:
        return relative, 1e-3 * relative
    return relative, checked_tolerance("atol", atol, attempt)
