"""The start of a simulation: initialization updates, and initial values of blocks."""

from __future__ import annotations

from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.updates import run_updates
from flexure.diagrams.values.events import Initialization


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
