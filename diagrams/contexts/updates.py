"""Runs handlers of events: all updates see the same values, then their results are written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.contexts.context import Context, LeafContext
from flexure.diagrams.contexts.store import annotate
from flexure.diagrams.values.events import Initialization
from flexure.diagrams.values.state import AbstractState, ContinuousState, DiscreteState

if TYPE_CHECKING:
    from flexure.diagrams.values.events import Event, Terminate

_ALLOWED: dict[str, tuple[type[ContinuousState | DiscreteState | AbstractState], ...]] = {
    "discrete": (DiscreteState,),
    "unrestricted": (ContinuousState, DiscreteState, AbstractState),
}


def run_updates(due: Iterable[tuple[LeafContext, Event]]) -> bool:
    """Run update handlers on unchanged values, then write their results.

    When two handlers write the same state, the later one wins. When a handler fails or returns
    something unusable, nothing is written. Returns whether any value changed; abstract values,
    which may not be comparable, count as changed.
    """
    results: dict[Any, tuple[LeafContext, Any]] = {}
    for leaf, event in due:
        try:
            with only_looking(leaf, f"the update '{event.label}'", is_pure=True):
                returned = event.handler(leaf)
            for state, value in _checked(event, returned):
                results[state] = (leaf, value)
        except Exception as error:
            annotate(error, f"while computing the update '{event.label}'", leaf.time)
            raise
    changed = False
    for state, (leaf, value) in results.items():
        if not isinstance(state, AbstractState) and np.array_equal(state(leaf), value):
            continue
        changed = True
        if isinstance(state, ContinuousState):
            leaf.write_continuous_state(value)
        elif isinstance(state, DiscreteState):
            leaf.write_discrete_state(state.index, value)
        else:
            leaf.write_abstract_state(state.index, value)
    return changed


def run_publish(leaf: LeafContext, event: Event) -> Terminate | None:
    """Run one publish handler, which may not change states, and return its verdict."""
    try:
        with only_looking(leaf, f"the publish '{event.label}'"):
            verdict: Terminate | None = event.handler(leaf)
    except Exception as error:
        annotate(error, f"while computing the publish '{event.label}'", leaf.time)
        raise
    return verdict


@contextmanager
def only_looking(context: Context, who: str, *, is_pure: bool = False) -> Iterator[None]:
    """Refuse changes of the time and of states meanwhile, or of anything."""
    store = context.store
    before = store.onlooker, store.is_pure
    store.onlooker, store.is_pure = who, is_pure
    try:
        yield
    finally:
        store.onlooker, store.is_pure = before


def _checked(event: Event, returned: Any) -> list[tuple[Any, Any]]:
    """Check the result of an update handler: state handles of its block with fitting values."""
    if returned is None:
        return []
    allowed = _ALLOWED[event.kind]
    names = " or ".join(kind.what for kind in allowed)
    attempt = f"Cannot use the result of the {event.kind} update '{event.label}'"
    if not isinstance(returned, Mapping):
        raise EvaluationError(
            attempt,
            expected=f"a dictionary from handles of {names} to values",
            found=repr(returned)[:200],
        )
    checked = []
    for state, value in returned.items():
        if not isinstance(state, allowed) or state.system is not event.system:
            raise EvaluationError(
                attempt,
                expected=f"handles of {names} of '{event.system.label}' as keys",
                found=repr(state),
            )
        checked.append((state, state.check(value, attempt)))
    return checked


def initialize(context: Context) -> None:
    """Run the initialization updates of a context, and make it one that a motion can begin with."""
    run_updates(
        (leaf, event)
        for leaf in context.leaves()
        for event in leaf.system.events
        if event.kind != "publish" and isinstance(event.trigger, Initialization)
    )
    prepare_start(context)


def prepare_start(context: Context) -> None:
    """Let blocks make their states fit, and refuse what no motion can begin with."""
    for leaf in context.leaves():
        if leaf.system.prepares_starts:
            leaf.system.prepare_start(leaf)
    require_start(context)


def require_start(context: Context) -> None:
    """Refuse a context that some block refuses to begin with."""
    context.store.require_relations()
    for leaf in context.leaves():
        if leaf.system.restricts_starts:
            leaf.system.check_start(leaf)
