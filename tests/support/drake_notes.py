"""Checks of what the notes in the tables of Drake's names claim, by the text of the note."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

CHECKS: dict[str, Callable[[dict[str, Any]], object]] = {}


def note(*texts: str) -> Callable[[Any], Any]:
    """Enter the check of some notes."""

    def enter(check: Any) -> Any:
        CHECKS.update(dict.fromkeys(texts, check))
        return check

    return enter
