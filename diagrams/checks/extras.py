"""Optional packages, imported where they are used."""

from __future__ import annotations

import importlib
from typing import Any

from flexure.diagrams.checks.errors import MissingExtraError


def import_extra(name: str, extra: str = "data", attempt: str = "Cannot convert the result") -> Any:
    """Import an optional package of an extra."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtraError(
            f"{attempt} with {name}",
            expected=f"the package {name}",
            found="none installed",
            remedy=f"Install it with: pip install 'flexure[{extra}]'",
        ) from error
