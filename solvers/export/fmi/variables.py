"""Variables of a Functional Mock-up Unit: names, places, and what each one depends on."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from flexure.diagrams.scalars.expressions.expression import Symbol, reachable
from flexure.diagrams.values.symbolic_values import DISCRETE, STATE, TIME
from flexure.solvers.export.c.c_model import CModel
from flexure.solvers.native.emission.emission import key_of

#: Arrays of numbers, in the order of the enumeration in C.
ARRAYS = ("time", "state", "rate", "value", "signal", "indicator")
_LARGEST = sys.float_info.max
_STRUCTURED = re.compile(
    r"(der\()?[A-Za-z_]\w*(\[\d+(,\d+)*\])?(\.[A-Za-z_]\w*(\[\d+(,\d+)*\])?)*\)?", re.ASCII
)
Numbers = tuple[float, ...]


@dataclass(frozen=True)
class Variable:
    """One variable; its value reference is its position in the list of all of them."""

    name: str  # unique name
    array: str  # the array of numbers in which it is, one of `ARRAYS`
    at: int  # its first number there
    shape: tuple[int, ...] = ()  # empty for a single number
    # causality, variability, initial: as the standard defines them; ``initial`` is empty where it
    # has to be left out.
    causality: str = "local"
    variability: str = "continuous"
    initial: str = "calculated"
    # unit, doc: unit and description.
    unit: str = ""
    doc: str = ""
    start: Numbers = ()  # values to start with; empty where they are computed
    # lower, upper: bounds of each number; infinite where there are none.
    lower: Numbers = field(default=(-_LARGEST,), repr=False)
    upper: Numbers = field(default=(_LARGEST,), repr=False)
    exclusive: bool = False  # whether the bounds themselves are refused

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return math.prod(self.shape)

    @property
    def range(self) -> tuple[float, float]:
        """The smallest and the largest number that all components accept."""
        least, most = max(self.lower), min(self.upper)
        if self.exclusive:
            return math.nextafter(least, math.inf), math.nextafter(most, -math.inf)
        return least, most

    def components(self, labels: Sequence[str]) -> Iterator[Variable]:
        """Yield a variable for each number."""
        for k, label in enumerate(labels):
            parts = {n: getattr(self, n) for n in ("start", "lower", "upper")}
            chosen: dict[str, Any] = {
                n: v[k : k + 1] if len(v) > 1 else v for n, v in parts.items()
            }
            name = f"{self.name}[{label.replace(', ', ',')}]"
            yield replace(self, name=name, at=self.at + k, shape=(), **chosen)


class Variables:
    """All variables of a model.

    Without ``arrays``, each number is a variable. Signals whose paths are not in ``outputs`` are
    local variables; of parameters and inputs, those in ``settable`` are variables.
    """

    def __init__(
        self, model: CModel, arrays: bool, outputs: Collection[str], settable: Collection[str]
    ) -> None:
        self.model = model
        self._arrays = arrays
        self._outputs = outputs
        self._settable = settable
        self._behind = _dependencies(model)
        signals = {each.name: each for each in self._signals()}
        self._taken = {"time", *signals}
        self.rows: list[Variable] = []  # the variables
        if arrays:  # where it is optional, a library in wide use asks for a start value of it
            self.rows.append(Variable("time", "time", 0, (), "independent", initial="", unit="s"))
        for each in self._values():
            shown = signals.get(each.name)
            if shown is not None and self._shows(shown, each):
                del signals[each.name]  # one variable for a state and the output that shows it
                self.rows.append(replace(each, causality=shown.causality, doc=shown.doc))
            else:
                self.rows.append(replace(each, name=self._unique(each.name, "value")))
        self.rows.extend(signals.values())
        # The value reference of the rate by that of the state, in the order of the states.
        self.rates: dict[int, int] = {}
        for k, each in enumerate(tuple(self.rows)):
            if each.array == "state":
                self.rates[k] = len(self.rows)
                name = self._unique(f"der({each.name})", "rate")
                self.rows.append(Variable(name, "rate", each.at, each.shape))
        for event in model.equations.events:
            if event.trigger == "witness" and arrays:  # which are no variables otherwise
                name = self._unique(f"{event.path}.indicator", "indicator")
                self.rows.append(Variable(name, "indicator", event.number))

    @property
    def convention(self) -> str:
        """The naming convention of the standard that all names follow."""
        return "structured" if all(_STRUCTURED.fullmatch(v.name) for v in self.rows) else "flat"

    def dependencies(self, variable: Variable) -> list[int]:
        """Return the value references of what the numbers of a variable are computed from."""
        wanted = self._bits(variable)
        known = [
            k
            for k, each in enumerate(self.rows)
            if each.array in {"time", "state"} or each.causality == "input"
        ]
        return [k for k in known if wanted & self._bits(self.rows[k])]

    def _bits(self, variable: Variable) -> int:
        bits = 0
        for k in range(variable.at, variable.at + variable.size):
            bits |= self._behind[variable.array].get(k, 0)
        return bits

    def _unique(self, name: str, suffix: str) -> str:
        """Return a name that is not taken, and take it."""
        while name in self._taken:
            name = f"{name}.{suffix}"
        self._taken.add(name)
        return name

    def _pieces(self, whole: Variable, labels: Sequence[str]) -> Iterator[Variable]:
        """Yield a variable, or one for each of its numbers."""
        if self._arrays or not whole.shape:
            yield whole
        else:
            yield from whole.components(labels)

    def _signals(self) -> Iterator[Variable]:
        at = 0
        for signal in self.model.equations.signals:
            reader = signal.reader
            moves = any(self._behind["signal"].get(at + k, 0) for k in range(reader.size))
            whole = Variable(
                signal.path,
                "signal",
                at,
                reader.shape,
                "output" if signal.path in self._outputs else "local",
                "continuous" if moves else "discrete",
                unit=reader.unit,
                doc=reader.doc,
            )
            at += reader.size
            yield from self._pieces(whole, [str(label) for label in reader.labels])

    def _shows(self, signal: Variable, value: Variable) -> bool:
        """Return whether a signal has the numbers of a state or discrete value."""
        places = self._behind["shown"]
        wanted = [(value.array, value.at + k) for k in range(value.size)]
        found = [places.get(signal.at + k) for k in range(signal.size)]
        return signal.shape == value.shape and found == wanted

    def _values(self) -> Iterator[Variable]:
        """Yield what can be set: states, discrete values, parameters and inputs."""
        info = self.model.info
        for kind, array, changes in (
            ("states", "state", "continuous"),
            ("discrete", "value", "discrete"),
        ):
            for rows, base in _groups(info[kind]):
                whole = Variable(
                    base,
                    array,
                    rows[0]["at"],
                    (len(rows),) if len(rows) > 1 else (),
                    variability=changes,
                    initial="exact",
                    unit=rows[0]["unit"],
                    start=tuple(row["initial"] for row in rows),
                )
                yield from self._pieces(whole, [str(k) for k in range(len(rows))])
        for row in (*info["parameters"], *info["inputs"]):
            values = tuple(row["value"])
            if row["path"] not in self._settable or not values or np.isnan(values).any():
                continue
            known: dict[str, Any] = {"causality": "input", "initial": ""}
            if "shape" in row:
                largest = math.inf if row["infinite"] else _LARGEST
                known = {
                    "causality": "parameter",
                    "variability": "tunable",
                    "initial": "exact",
                    "lower": tuple(-largest if each is None else each for each in row["lower"]),
                    "upper": tuple(largest if each is None else each for each in row["upper"]),
                    "exclusive": row["exclusive"],
                }
            shape = tuple(row.get("shape", [len(values)])) if row["labels"] else ()
            known |= {"unit": row["unit"], "doc": row["doc"], "start": values}
            whole = Variable(row["path"], "value", row["at"], shape, **known)
            yield from self._pieces(whole, row["labels"])


def _groups(rows: list[dict[str, Any]]) -> Iterator[tuple[list[dict[str, Any]], str]]:
    """Yield numbered components that follow each other, with their common path."""
    k = 0
    while k < len(rows):
        base = rows[k]["path"].removesuffix("[0]")
        count = 1
        if base != rows[k]["path"]:
            while k + count < len(rows) and rows[k + count]["path"] == f"{base}[{count}]":
                count += 1
        yield rows[k : k + count], base if count > 1 else rows[k]["path"]
        k += count


def _dependencies(model: CModel) -> dict[str, dict[int, Any]]:
    """Find what each number of each array is computed from: bits for states, inputs and time."""
    # ``"shown"`` has the places of the signals that are a state or a discrete value.
    equations, states = model.equations, len(model.info["states"])
    bit_of = {key: 1 << k for k, key in enumerate((*model.keys, ((TIME, 0, 0), 0)))}
    signals = [entry for each in equations.signals for entry in each.expressions]
    bits: dict[int, int] = {}
    shown: dict[int, tuple[str, int]] = {}
    computed = [equations.derivatives, signals, equations.witness_values]
    for node in reachable(e for part in computed for e in part if isinstance(e, Symbol)):
        found = 0
        if node.op == "input":
            key = (what, where, index), component = key_of(node)
            found = bit_of.get(key, 0)
            if what == STATE:
                shown[node.index] = "state", component
            elif what == DISCRETE:
                place = equations.discrete.starts[where][index] + component
                shown[node.index] = "value", place
        for operand in node.args:
            found |= bits[operand.index]
        bits[node.index] = found
    names = ("rate", "signal", "indicator")
    behind: dict[str, dict[int, Any]] = {
        name: {k: bits[e.index] for k, e in enumerate(part) if isinstance(e, Symbol)}
        for name, part in zip(names, computed, strict=True)
    }
    return behind | {
        "time": {0: 1 << len(model.keys)},
        "state": {k: 1 << k for k in range(states)},
        "value": {at: 1 << (states + k) for k, at in enumerate(model.drives)},
        "shown": {
            k: shown[e.index]
            for k, e in enumerate(signals)
            if isinstance(e, Symbol) and e.index in shown
        },
    }
