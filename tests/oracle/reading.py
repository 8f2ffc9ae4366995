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

DATA = Path(__file__).parent / "data"
FOLDER = Path(os.environ.get("FLEXURE_ORACLE", DATA))


def read(name: str) -> dict[str, Any]:
    """Return one oracle file; a folder named by the environment may hold fewer files."""
    if FOLDER != DATA and not (FOLDER / name).exists():
        pytest.skip(f"{FOLDER} holds no {name}", allow_module_level=True)
    data: dict[str, Any] = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    return data


def cases(name: str, *kinds: str) -> list[Any]:
    """Return the cases of a file as pytest parameters, optionally only those of some kinds."""
    found = [case for case in read(name)["cases"] if not kinds or case["kind"] in kinds]
    return [pytest.param(case, id=case["name"]) for case in found]
