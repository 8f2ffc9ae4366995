"""The options of a simulation: what they may be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias, TypedDict

import numpy as np

from flexure.diagrams.checks.arguments import is_one_of, require
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.values.arrays import as_number, bounded
from flexure.diagrams.values.events import Terminate
from flexure.solvers.simulation.run_control.error_tolerances import Tolerance
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
