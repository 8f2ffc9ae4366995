"""Reading the oracle files: numbers produced by Drake, each file with a description of its models.

The folder is ``tests/oracle/data``, or the one that the environment variable FLEXURE_ORACLE names;
other folders hold other models in the same formats.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(os.environ.get("FLEXURE_ORACLE", Path(__file__).parent / "data"))


def read(name: str) -> dict[str, Any]:
    """Return one oracle file."""
    data: dict[str, Any] = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    return data


def cases(name: str, *kinds: str) -> list[Any]:
    """Return the cases of a file as pytest parameters, optionally only those of some kinds."""
    found = [case for case in read(name)["cases"] if not kinds or case["kind"] in kinds]
    return [pytest.param(case, id=case["name"]) for case in found]
