"""Optional packages, imported where they are used."""

from __future__ import annotations

import importlib
from typing import Any

from flexure.diagrams.errors import MissingExtraError


def import_extra(name: str) -> Any:
    """Import an optional package of the extra ``data``."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtraError(
            f"Cannot convert the result with {name}",
            expected=f"the package {name}",
            found="none installed",
            remedy="Install it with: pip install 'flexure[data]'",
        ) from error


__all__ = ["import_extra"]
