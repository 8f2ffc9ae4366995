"""Model descriptions: `modelDescription.xml` of both versions of the standard."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from flexure.diagrams.values.units import measure_of
from flexure.solvers.export.fmi.variables import Variable, Variables

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
