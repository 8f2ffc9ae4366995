"""The contexts that a function accepts: root contexts of its system, or a default one."""

from __future__ import annotations

from typing import Any

from flexure.diagrams.checks.errors import ContextError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.systems.system import System
from flexure.diagrams.values.handles import found_twin, require_context


def require_root(context: Any, system: System, attempt: str) -> None:
    """Refuse what is no root context of a system."""
    require_context(context, f"'{system.label}'")
    if context.system is not system or not context.is_root:
        raise ContextError(
            f"{attempt} with this context",
            expected="a root context of the same system",
            **(found_twin(context, system) or {"found": repr(context)}),
        )


def start_context(system: System, context: Context | None, attempt: str) -> Context:
    """Return a context to work with: a copy of the given one, or a default one."""
    if context is None:
        return system.create_default_context()
    require_root(context, system, attempt)
    return context.clone()
