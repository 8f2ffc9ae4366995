"""Odd arguments, and calls of everything public to put them into."""

from __future__ import annotations

import datetime as dt
import decimal
import fractions
import pathlib
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import flexure as fx


class Hung(BaseException):
    """A call took longer than it may."""


@contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Raise `Hung` when the body computes longer, whatever else the machine does meanwhile."""

    def ring(*_: object) -> None:
        raise Hung

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def _generator() -> Iterator[float]:
    yield 1.0


#: What to call to get each of them: some can be used up.
ODD: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "True": lambda: True,
    "text": lambda: "text",
    "no text": lambda: "",
    "digits": lambda: "1.0",
    "surrogate": lambda: "\ud800",
    "bytes": lambda: b"text",
    "NumPy single": lambda: np.float32(0.5),
    "NumPy integer": lambda: np.int64(2),
    "NumPy truth": lambda: np.bool_(True),
    "NumPy text": lambda: np.array("text"),
    "NumPy date": lambda: np.datetime64("2020-01-01"),
    "NumPy objects": lambda: np.array([None, object()], dtype=object),
    "complex": lambda: 1.0 + 2.0j,
    "complex array": lambda: np.array([1.0j, 2.0]),
    "tiny": lambda: 1e-320,
    "huge": lambda: 1e308,
    "beyond float": lambda: 10**400,
    "zero": lambda: 0,
    "negative": lambda: -1,
    "NaN": lambda: float("nan"),
    "infinity": lambda: float("inf"),
    "minus infinity": lambda: float("-inf"),
    "fraction": lambda: fractions.Fraction(1, 3),
    "decimal": lambda: decimal.Decimal("0.1"),
    "date": lambda: dt.date(2020, 1, 1),
    "empty list": list,
    "empty tuple": tuple,
    "empty mapping": dict,
    "empty set": set,
    "empty array": lambda: np.array([]),
    "two by nothing": lambda: np.zeros((2, 0)),
    "three dimensions": lambda: np.zeros((2, 2, 2)),
    "three numbers": lambda: np.array([0.1, 0.2, 0.3]),
    "matrix of NaN": lambda: np.full((3, 3), np.nan),
    "ragged": lambda: [[1.0, 2.0], [3.0]],
    "nested None": lambda: [None, [None]],
    "list of texts": lambda: ["a", "b"],
    "mapping of numbers": lambda: {1: 2.0},
    "mapping of None": lambda: {"a": None},
    "mapping from None": lambda: {None: "a"},
    "generator": _generator,
    "range": lambda: range(3),
    "path": lambda: pathlib.Path("/nowhere/at/all"),
    "object": object,
    "class": lambda: int,
    "exception": lambda: ValueError("no"),
    "function": lambda: lambda *arguments: None,
    "function of nothing": lambda: lambda: 1.0,
    "module": lambda: np,
    "block": lambda: fx.Gain("stranger", 2.0),
    "block class": lambda: fx.Gain,
    "context": lambda: fx.Gain("stranger", 2.0).create_default_context(),
    "port": lambda: fx.Gain("stranger", 2.0).output_port("y"),
    "builder": lambda: fx.DiagramBuilder("stranger"),
    "body": lambda: fx.Body("stranger"),
    "slice": lambda: slice(None),
    "ellipsis": lambda: ...,
    "not implemented": lambda: NotImplemented,
}


@dataclass
class Call:
    """A public function with arguments that it takes, all by keyword.

    Attributes
    ----------
    function : callable
    arguments : dict
    snapshot : callable, optional
        What a refused call must leave as it is.
    """

    function: Callable[..., object]
    arguments: dict[str, Any] = field(default_factory=dict)
    snapshot: Callable[[], object] = lambda: None
