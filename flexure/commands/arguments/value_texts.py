"""Values as words: numbers, arrays, and what is assigned to a path."""

from __future__ import annotations

import tomllib
from argparse import ArgumentTypeError
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from flexure.diagrams.checks.errors import ValueRefusedError


class Assignment(NamedTuple):
    """What is written as ``path=value``."""

    path: str
    value: Any


class Span(NamedTuple):
    """What is written as ``name=low:high``."""

    path: str
    low: float
    high: float


def split_assignment(text: str, value: str = "VALUE") -> tuple[str, str]:
    """Return path and value of ``path=value``; the value may hold further signs of equality."""
    path, sign, word = text.partition("=")
    if not (sign and path.strip() and word.strip()):
        raise ArgumentTypeError(f"expected PATH={value}; found {text!r}")
    return path.strip(), word.strip()


def assignment(text: str) -> Assignment:
    """Read ``path=value``.

    >>> assignment("arm.A[1,0]=-4")
    Assignment(path='arm.A[1,0]', value=-4.0)
    """
    path, word = split_assignment(text)
    return Assignment(path, parsed(word))


def span(text: str) -> Span:
    """Read ``name=low:high``.

    >>> span("angle=-0.1:1.6")
    Span(path='angle', low=-0.1, high=1.6)
    """
    path, word = split_assignment(text, "LOW:HIGH")
    low, sign, high = word.partition(":")
    if not sign:
        raise ArgumentTypeError(f"expected LOW:HIGH; found {word!r}")
    return Span(path, number(low), number(high))


def parsed(word: str) -> Any:
    """Return a number, an array as ``1,2,3`` or ``1,2;3,4``, a truth value, or the text itself.

    >>> parsed("80"), parsed("1,2,3"), parsed("1,2;3,4"), parsed("2,"), parsed("true")
    (80.0, [1.0, 2.0, 3.0], [[1.0, 2.0], [3.0, 4.0]], [2.0], True)
    """
    if word in ("true", "false"):
        return word == "true"
    try:
        rows = [_row(row) for row in word.strip().strip("[]").split(";")]
    except ValueError:
        return word  # which only abstract parameters take: others say what they want
    if len(rows) > 1:
        return rows
    return rows[0] if "," in word or word.startswith("[") else rows[0][0]


def _row(text: str) -> list[float]:
    return [float(entry) for entry in text.strip().removesuffix(",").split(",")]


def names(text: str) -> list[str]:
    """Return names that are separated by commas, of which those in brackets do not count.

    >>> names("door.axis.angle, arm.A[1,0], max(pid.u, 3)")
    ['door.axis.angle', 'arm.A[1,0]', 'max(pid.u, 3)']
    """
    found, depth = [""], 0
    for letter in text:
        depth += (letter in "[(") - (letter in ")]")
        if letter == "," and depth == 0:
            found.append("")
        else:
            found[-1] += letter
    stripped = [name.strip() for name in found]
    if not all(stripped):
        raise ArgumentTypeError(f"expected names separated by commas; found {text!r}")
    return stripped


def tolerance(text: str) -> Any:
    """Return a tolerance, or several by path: ``1e-8``, or ``plant=1e-9,=1e-6``."""
    if "=" not in text:
        return number(text)
    pairs = (entry.partition("=") for entry in names(text))
    return {path.strip(): number(word) for path, _, word in pairs}


def number(text: str) -> float:
    """Return a number."""
    try:
        return float(text)
    except ValueError:
        raise ArgumentTypeError(f"expected a number; found {text!r}") from None


def read_parameters(file: str) -> list[Assignment]:
    """Return what a TOML file assigns to paths, ``"pid.kp" = 80``; tables are parts of paths."""
    attempt = f"Cannot read parameters from '{file}'"
    try:
        content = tomllib.loads(Path(file).read_bytes().decode("utf-8"))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ValueRefusedError(
            attempt, expected='a TOML file with lines such as "pid.kp" = 80', found=reason
        ) from error
    return list(_flat(content, ""))


def _flat(table: Mapping[str, Any], before: str) -> Iterator[Assignment]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield Assignment(f"{before}{key}", value)
