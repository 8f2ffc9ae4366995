"""Model descriptions: variables, and `modelDescription.xml` of both versions of the standard."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import numpy as np

from flexure.diagrams.scalars.expressions.expression import Symbol, reachable
from flexure.diagrams.values.symbolic_values import DISCRETE, STATE, TIME
from flexure.diagrams.values.units import measure_of
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
    for node in reachable(chain.from_iterable(computed)):
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


#: Nominal value of states: with it, absolute tolerances of tools are those of `simulate`.
NOMINAL = "0.001"
#: What the functions can do, by version, kind and attribute.
_ABILITIES = {
    "2.0": {
        "": "canNotUseMemoryManagementFunctions canGetAndSetFMUstate canSerializeFMUstate "
        "providesDirectionalDerivative",
        "ModelExchange": "",
        "CoSimulation": "canHandleVariableCommunicationStepSize",
    },
    "3.0": {
        "": "canGetAndSetFMUState canSerializeFMUState providesDirectionalDerivatives "
        "providesAdjointDerivatives",
        "ModelExchange": "needsCompletedIntegratorStep",
        "CoSimulation": "canHandleVariableCommunicationStepSize providesIntermediateUpdate "
        "mightReturnEarlyFromDoStep canReturnEarlyAfterIntermediateUpdate",
    },
}
KINDS = {"me": "ModelExchange", "cs": "CoSimulation"}
_BASE_UNITS = ("m", "kg", "s", "A", "K")
_NOT_PRINTED = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


def xml_bytes(root: Element) -> bytes:
    """Return a document, with one element in each line."""
    indent(root, "  ")
    return bytes(tostring(root, encoding="UTF-8", xml_declaration=True)) + b"\n"


def numbers(values: Iterable[float]) -> str:
    """Write numbers as XML has them."""
    special = {math.inf: "INF", -math.inf: "-INF"}
    return " ".join(special.get(each) or repr(float(each)) for each in values)


class Description:
    """The description of a Functional Mock-up Unit of version "2.0" or "3.0".

    ``kinds`` are some of `KINDS`; tools recognize the unit by ``token``; ``sources`` are the names
    of the files of source text, none where these are not part of the archive.
    """

    def __init__(
        self,
        variables: Variables,
        version: str,
        kinds: Sequence[str],
        token: str,
        sources: Sequence[str],
    ) -> None:
        self._variables = variables
        self._is_old = version == "2.0"
        self._first = 1 if self._is_old else 0  # from which variables are counted
        rows, model = variables.rows, variables.model
        self.root = Element("fmiModelDescription", {"fmiVersion": version})
        self.root.set("modelName", model.info["name"])
        self.root.set("guid" if self._is_old else "instantiationToken", token)
        self.root.set("generationTool", "Flexure")
        self.root.set("variableNamingConvention", variables.convention)
        if self._is_old:
            count = sum(e.trigger == "witness" for e in model.equations.events)
            self.root.set("numberOfEventIndicators", str(count))
        for kind in kinds:
            names = " ".join(_ABILITIES[version][each] for each in ("", KINDS[kind])).split()
            element = SubElement(self.root, KINDS[kind], {"modelIdentifier": model.name})
            element.attrib |= dict.fromkeys(names, "true")
            if self._is_old and sources:
                listed = SubElement(element, "SourceFiles")
                for name in sources:
                    SubElement(listed, "File", {"name": name})
        units = sorted({each.unit for each in rows if each.unit})
        if units:
            defined = SubElement(self.root, "UnitDefinitions")
            for unit in units:
                _add_unit(defined, unit)
        categories = SubElement(self.root, "LogCategories")
        SubElement(categories, "Category", {"name": "logStatusError", "description": "Errors"})
        experiment = {"startTime": model.info["time"], "tolerance": model.rtol}
        experiment = {name: numbers([each]) for name, each in experiment.items()}
        SubElement(self.root, "DefaultExperiment", experiment)
        listed = SubElement(self.root, "ModelVariables")
        for reference, each in enumerate(rows):
            self._add(listed, reference, each)
        self._add_structure(SubElement(self.root, "ModelStructure"))

    def _attributes(self, reference: int, variable: Variable) -> dict[str, str]:
        """Return the attributes of a variable that are the same in both versions."""
        found = {"name": _text(variable.name), "valueReference": str(reference)}
        if variable.doc:
            found["description"] = _text(variable.doc)
        found |= {"causality": variable.causality, "variability": variable.variability}
        if variable.initial:
            found["initial"] = variable.initial
        return found

    def _values(self, variable: Variable) -> dict[str, str]:
        """Return the attributes of its numbers."""
        found: dict[str, str] = {}
        if variable.unit:
            found["unit"] = _text(variable.unit)
        for name, bounds in (("min", variable.lower), ("max", variable.upper)):
            if len({*bounds}) == 1 and abs(bounds[0]) < 1e308:
                found[name] = numbers(bounds[:1])
        if variable.array == "state":
            found["nominal"] = NOMINAL
        if variable.start:
            found["start"] = numbers(variable.start)
        return found

    def _add(self, parent: Element, reference: int, variable: Variable) -> None:
        """Add a variable: a scalar with its type inside, or, in version 3.0, a typed array."""
        attributes, values = self._attributes(reference, variable), self._values(variable)
        if self._is_old:
            element = SubElement(SubElement(parent, "ScalarVariable", attributes), "Real", values)
        else:
            element = SubElement(parent, "Float64", attributes | values)
        if variable.array == "rate":
            state_of = {rate: state for state, rate in self._variables.rates.items()}
            element.set("derivative", str(state_of[reference] + self._first))
        for count in variable.shape:
            SubElement(element, "Dimension", {"start": str(count)})

    def _add_structure(self, parent: Element) -> None:
        """Add what depends on what, in lists of their own in the older version."""
        rows, rates = self._variables.rows, [*self._variables.rates.values()]
        outputs = [k for k, each in enumerate(rows) if each.causality == "output"]
        unknown = sorted(k for k in {*outputs, *rates} if rows[k].initial == "calculated")
        indicators = [k for k, each in enumerate(rows) if each.array == "indicator"]
        for group, kind, found in (
            ("Outputs", "Output", outputs),
            ("Derivatives", "ContinuousStateDerivative", rates),
            ("InitialUnknowns", "InitialUnknown", unknown),
            ("", "EventIndicator", indicators),  # which are no variables of the older version
        ):
            holder = SubElement(parent, group) if found and self._is_old else parent
            for k in found:
                tag, name = ("Unknown", "index") if self._is_old else (kind, "valueReference")
                element = SubElement(holder, tag, {name: str(k + self._first)})
                if found is not unknown:
                    behind = self._variables.dependencies(rows[k])
                    element.set("dependencies", " ".join(str(k + self._first) for k in behind))


def build_description(identifier: str, sources: Sequence[str], options: Sequence[str]) -> bytes:
    """Return `buildDescription.xml`, by which tools of version 3.0 compile the sources."""
    root = Element("fmiBuildDescription", {"fmiVersion": "3.0"})
    configuration = SubElement(root, "BuildConfiguration", {"modelIdentifier": identifier})
    attributes = {"language": "C99", "compilerOptions": " ".join(options)}
    listed = SubElement(configuration, "SourceFileSet", attributes)
    for name in sources:
        SubElement(listed, "SourceFile", {"name": name})
    SubElement(configuration, "Library", {"name": "m"})
    return xml_bytes(root)


def _add_unit(parent: Element, unit: str) -> None:
    """Add a unit, with its exponents of SI base units where it is known."""
    element = SubElement(parent, "Unit", {"name": _text(unit)})
    measure = measure_of(unit)
    if isinstance(measure.kind, str):
        return
    exponents = dict(zip(_BASE_UNITS, measure.kind, strict=True)) | {"rad": measure.angle}
    attributes = {name: str(n) for name, n in exponents.items() if n}
    if measure.factor != 1.0:
        attributes["factor"] = numbers([measure.factor])
    SubElement(element, "BaseUnit", attributes)


def _text(text: str) -> str:
    """Return a text without what XML cannot hold."""
    return _NOT_PRINTED.sub(" ", text)
