"""What is said when an equation needs the number behind a symbol, and at which line."""

from __future__ import annotations

import linecache
import os
import sys
import sysconfig
import traceback
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import numpy as np

from flexure.diagrams.checks.errors import TraceError

_HERE = Path(__file__).parents[1]
_INSIDE = (f"{_HERE}{os.sep}", f"{Path(np.__file__).parent}{os.sep}")
_FLEXURE = f"{Path(__file__).parents[3]}{os.sep}"
_LIBRARIES = tuple({f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "purelib")})


def refusal(
    attempt: str, *, remedy: str, expected: str | None = None, found: str | None = None
) -> TraceError:
    """Make the error for an attempt, with the user's line added to it, if there is one."""
    return TraceError(f"{attempt}{_source_line()}", expected=expected, found=found, remedy=remedy)


def _source_line() -> str:
    """Return `` at file.py:line, 'code'`` of the innermost caller outside this package and NumPy.

    If that is a line of another library, the line of the user that called it is named instead. For
    a line of Flexure itself the text is empty; the notes of the error name the block.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
        frame = frame.f_back
    caller: FrameType | None = frame
    while caller is not None and _is_library(caller.f_code.co_filename):
        caller = caller.f_back
    frame = frame if caller is None else caller
    if frame.f_code.co_filename.startswith(_FLEXURE):
        return ""
    filename, number = frame.f_code.co_filename, frame.f_lineno
    return _quoted(filename, number, linecache.getline(filename, number, frame.f_globals))


def line_behind(error: BaseException) -> str:
    """Return `` at file.py:line, 'code'`` of the innermost line of a user that raised an error.

    The text is empty where no line of a user was at work.
    """
    lines = traceback.extract_tb(error.__traceback__)
    mine = [line for line in lines if not line.filename.startswith((_FLEXURE, *_LIBRARIES))]
    return _quoted(mine[-1].filename, mine[-1].lineno, mine[-1].line) if mine else ""


def _is_library(filename: str) -> bool:
    """Return whether a source file is installed, and not a part of Flexure."""
    return filename.startswith(_LIBRARIES) and not filename.startswith(_FLEXURE)


def _quoted(filename: str, number: int | None, code: str | None) -> str:
    """Quote a line of code and say where it is."""
    place = f" at {Path(filename).name}:{number}"
    return f"{place}, '{code.strip()}'" if code and code.strip() else place


_USES = {
    "decision": "a decision (if, while, and, or, not, min, max, sorted)",
    "float": "float(), a function of math, or an entry of a float array",
    "integer": "int(), round(), an integer type, or an index of a list",
    "array": "np.array([...]), np.asarray, an index, or a slice of a float array",
    "mask": "an index of an array",
    "text": "a formatted number",
}
_REMEDIES = {
    "decision": (
        "Write np.where(condition, a, b) instead of 'if', np.maximum, np.minimum or np.clip "
        "instead of max() and min(), and & | ~ instead of 'and', 'or', 'not'"
    ),
    "float": (
        "Write np.sin(x) instead of math.sin(x), omit float(), and fill an array made by "
        "fx.array([...]), np.stack([...]) or np.zeros_like(x)"
    ),
    "integer": (
        "Write np.trunc, np.floor or np.rint instead of int() and round(), and np.where or "
        "np.interp instead of an index that depends on a value"
    ),
    "array": (
        "Write fx.array([...]) or np.stack([...]) instead of np.array([...]), np.zeros_like(x) "
        "for an array to be filled, and np.where or np.interp instead of an index that depends on "
        "a value"
    ),
    "mask": (
        "Write np.where(mask, x, 0.0) instead of x[mask], y = np.where(mask, value, y) instead of "
        "y[mask] = value, and np.interp to look up a table"
    ),
    "text": "Leave the formatting out of the equation",
}


def needs_number(use: str, found: object) -> TraceError:
    """Make the error for a use of ``found`` that only a number allows."""
    return refusal(
        f"Cannot use a symbol as {_USES[use]}",
        expected="operations that are the same for every value",
        found=repr(found),
        remedy=_REMEDIES[use],
    )


def only_of_numbers(use: str) -> Any:
    """Make a method that only numbers have, such as ``__float__``, of what is none."""

    def method(self: object, *args: object, **options: object) -> NoReturn:
        raise needs_number(use, self)

    return method


def too_many_ways(most: int, found: object) -> TraceError:
    """Make the error for a calculation that decides again and again."""
    return refusal(
        f"Cannot use a symbol as {_USES['decision']}",
        expected=f"at most {most} ways through a calculation",
        found=f"more, with {found!r}",
        remedy=_REMEDIES["decision"],
    )
