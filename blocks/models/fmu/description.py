"""FMUs as files: archives, checked before anything of them is unpacked, and their descriptions.

A description gives variables, capabilities and structure in the terms of blocks.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import stat
import tempfile
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from flexure.diagrams.checks.arguments import import_extra
from flexure.diagrams.checks.errors import DeclarationError, quoted
from flexure.diagrams.values.arrays import FloatArray

#: Types without numbers, and what functions that get and set enumerations are called.
_WITHOUT_NUMBERS = ("String", "Binary")
_ENUMERATION = {"2.0": "Integer", "3.0": "Int64"}
_REAL = ("Real", "Float32", "Float64")


@dataclass(frozen=True)
class Variable:
    """A variable of an FMU that carries numbers."""

    # name, port: its name in the FMU, and that of its port or parameter in the block.
    name: str
    port: str
    reference: int  # its value reference
    access: str  # what the functions that get and set it are called, such as "Float64"
    shape: tuple[int, ...]  # empty for a scalar
    start: FloatArray  # value at the start, of this shape; zeros if there is none
    # is_continuous, is_fixed: whether it changes with continuous time, or never after the
    # initialization.
    is_continuous: bool
    is_fixed: bool
    # unit, doc: unit and description.
    unit: str
    doc: str
    # lower, upper: bounds.
    lower: float
    upper: float
    # Positions of the inputs that an output depends on; None for all of them.
    needs: tuple[int, ...] | None = None

    @property
    def size(self) -> int:
        """Number of components."""
        return int(np.prod(self.shape, dtype=int))

    def numbers(self, value: Any) -> tuple[Any, ...]:
        """Return components as the FMU takes them: integers are rounded, booleans true from 0.5."""
        flat: Any = np.ravel(value)
        if self.access in _REAL:
            return tuple(flat.astype(float).tolist())
        whole = flat >= 0.5 if self.access == "Boolean" else np.rint(flat).astype(int)
        return tuple(whole.tolist())


@dataclass(frozen=True)
class Facts:
    """What is known of an FMU of one kind."""

    version: str  # of FMI, "2.0" or "3.0"
    kind: str  # "me" for Model Exchange, "cs" for Co-Simulation
    # identifier, token: name of the binary, and the token that it must have.
    identifier: str
    token: str
    # inputs, outputs, parameters: what becomes ports and parameters.
    inputs: tuple[Variable, ...]
    outputs: tuple[Variable, ...]
    parameters: tuple[Variable, ...]
    # Name, size, value reference of the state and of its derivative.
    states: tuple[tuple[str, int, int, int], ...]
    indicators: int  # number of event indicators
    can: frozenset[str]  # capabilities: "restore", "serialize", "derivatives", "vary" (the step)
    notes_steps: bool  # whether it has to hear of every completed step
    step: float | None  # step size that it suggests, in s
    left_out: tuple[str, ...]  # names of variables that carry no numbers, such as texts


def read_facts(folder: Path, kind: str, attempt: str) -> Facts:
    """Read the description in the folder of an FMU."""
    fmpy = import_extra("fmpy.model_description", "fmi", attempt)
    text = (folder / DESCRIPTION).read_bytes()
    version = re.search(rb'fmiVersion\s*=\s*"([^"]*)', text)
    if version is not None and version[1][:2] not in (b"2.", b"3."):
        raise DeclarationError(
            attempt,
            expected="version 2.0 or 3.0 of FMI",
            found=f"version {version[1].decode(errors='replace')!r:.40}",
            remedy="Export it for one of these versions",
        )
    try:
        model = fmpy.read_model_description(str(folder))
    except Exception as error:  # of whatever a wrong description makes the reader stumble over
        problems = "; ".join(getattr(error, "problems", [])) or str(error)
        raise DeclarationError(
            attempt,
            expected="a valid modelDescription.xml",
            found=f"{type(error).__name__}: {problems:.400}",
        ) from error
    kinds = {"me": model.modelExchange, "cs": model.coSimulation}
    offered = [name for name, each in kinds.items() if each is not None]
    clocks = [each.name for each in model.modelVariables if each.type == "Clock"]
    chosen = offered[0] if kind == "auto" and offered else kind
    if chosen not in offered or clocks:
        only = quoted(offered) or "scheduled execution only"
        raise DeclarationError(
            attempt,
            expected="Model Exchange ('me') or Co-Simulation ('cs'), without clocks"
            if kind == "auto"
            else f"an FMU of the kind {kind!r}, without clocks",
            found=f"{only}, and the clocks {quoted(clocks)}" if clocks else only,
        )
    tag = {"me": b"ModelExchange", "cs": b"CoSimulation"}[chosen]
    has_slopes = re.search(
        rb"<" + tag + rb"\b[^>]*\bprovidesDirectionalDerivatives?\s*=\s*[\"'](true|1)", text
    )
    return _facts(model, chosen, kinds[chosen], has_slopes is not None)


def _facts(model: Any, kind: str, interface: Any, has_slopes: bool) -> Facts:
    """Translate a description of FMPy."""
    version = model.fmiVersion[:2] + "0"
    left_out: list[str] = []
    taken: set[str] = set()

    def pick(causality: str) -> tuple[Variable, ...]:
        found = []
        for each in (each for each in model.modelVariables if each.causality == causality):
            if each.type in _WITHOUT_NUMBERS:
                left_out.append(each.name)
            else:
                access = _ENUMERATION[version] if each.type == "Enumeration" else each.type
                found.append(_variable(each, access, free_name(each.name, taken)))
        return tuple(found)

    inputs = pick("input")
    position = {each.name: k for k, each in enumerate(inputs)}
    behind = {each.variable.name: each.dependencies for each in model.outputs}
    needs = {
        name: tuple(position[each.name] for each in depends if each.name in position)
        for name, depends in behind.items()
        if depends is not None
    }
    outputs = tuple(replace(each, needs=needs.get(each.name)) for each in pick("output"))
    derivatives = [each.variable for each in model.derivatives] if kind == "me" else []
    states = tuple(
        (
            each.derivative.name,
            int(np.prod(each.derivative.shape or (), dtype=int)),
            each.derivative.valueReference,
            each.valueReference,
        )
        for each in derivatives
    )
    experiment = model.defaultExperiment
    capabilities = {
        "restore": interface.canGetAndSetFMUstate,
        "serialize": interface.canSerializeFMUstate,
        "derivatives": has_slopes,
        "vary": getattr(interface, "canHandleVariableCommunicationStepSize", False),
    }
    return Facts(
        version,
        kind,
        interface.modelIdentifier,
        model.guid if version == "2.0" else model.instantiationToken,
        inputs,
        outputs,
        pick("parameter"),
        states,
        model.numberOfEventIndicators if kind == "me" else 0,
        frozenset(name for name, can in capabilities.items() if can),
        bool(getattr(interface, "needsCompletedIntegratorStep", False)),
        float(experiment.stepSize) if experiment and experiment.stepSize else None,
        tuple(left_out),
    )


def _variable(each: Any, access: str, port: str) -> Variable:
    declared = each.declaredType
    shape = tuple(each.shape or ())
    kind = each.type
    is_boolean = kind == "Boolean"
    texts = (each.start or "").split() or ["0"]
    numbers = [float(text in ("true", "1")) if is_boolean else float(text) for text in texts]
    ends = (0.0, 1.0) if is_boolean else (-np.inf, np.inf)
    lower, upper = (
        float(getattr(each, name) or getattr(declared, name, None) or free)
        for name, free in zip(("min", "max"), ends, strict=True)
    )
    return Variable(
        each.name,
        port,
        each.valueReference,
        access,
        shape,
        np.broadcast_to(np.array(numbers), (int(np.prod(shape, dtype=int)),)).reshape(shape).copy(),
        access in _REAL and each.variability in (None, "continuous"),
        each.variability == "fixed",
        (each.unit or getattr(declared, "unit", None) or "").strip(),
        " ".join((each.description or "").split()),
        lower,
        upper,
    )


def free_name(name: str, taken: set[str]) -> str:
    """Return the name of a port for a variable, which no other one has."""
    plain = re.sub(r"[^\w\[\]-]+", "_", name).strip("_") or "_"
    if not (plain[0].isalpha() or plain[0] == "_"):
        plain = f"_{plain}"
    free, count = plain, 2
    while free in taken:
        free, count = f"{plain}_{count}", count + 1
    taken.add(free)
    return free


_LARGEST = 2**31  # bytes of an unpacked FMU
DESCRIPTION = "modelDescription.xml"


def hash_of(path: str, attempt: str) -> str:
    """Return the hash of a file, by which a changed FMU is noticed."""
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DeclarationError(
            attempt,
            expected="an FMU, a file that can be read",
            found=f"{path!r}: {error.strerror or error}",
        ) from error


def unpack(path: str, attempt: str) -> Path:
    """Unpack an FMU into a new temporary folder, or refuse it and leave nothing behind."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="flexure-fmu-"))
    except OSError as error:
        raise DeclarationError(
            attempt, expected="a temporary folder that can be written", found=str(error)
        ) from error
    try:
        with zipfile.ZipFile(path) as archive:
            _check(archive.infolist(), attempt)
            archive.extractall(folder)
        _check_xml((folder / DESCRIPTION).read_bytes(), attempt)
    except Exception as error:  # of whatever a damaged archive makes zipfile stumble over
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, DeclarationError):
            raise
        raise DeclarationError(
            attempt,
            expected=f"an FMU, a zip archive with {DESCRIPTION}",
            found=f"{path!r}: {type(error).__name__}: {error!s:.200}",
        ) from error
    return folder


def _check(entries: list[zipfile.ZipInfo], attempt: str) -> None:
    """Refuse entries that are not what they should be."""
    for entry in entries:
        name = entry.filename
        parts = PurePosixPath(name).parts
        climbs = name.startswith("/") or ".." in parts or "\\" in name or ":" in name
        if climbs or stat.S_ISLNK(entry.external_attr >> 16):
            raise DeclarationError(
                attempt,
                expected="files inside of the archive",
                found=f"{name!r:.200}, " + ("which leads out of it" if climbs else "a link"),
                remedy="Do not use this file: it may be meant to harm",
            )
    size = sum(entry.file_size for entry in entries)
    if size > _LARGEST:
        raise DeclarationError(
            attempt, expected=f"at most {_LARGEST} bytes when unpacked", found=f"{size}"
        )
    if DESCRIPTION not in {entry.filename for entry in entries}:
        raise DeclarationError(
            attempt, expected=f"an FMU, a zip archive with {DESCRIPTION}", found="none in it"
        )


def _check_xml(text: bytes, attempt: str) -> None:
    """Refuse a description with a document type, the only place where entities are declared."""
    etree = import_extra("lxml.etree", "fmi", attempt)
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    root = etree.fromstring(text, parser)
    if root.getroottree().docinfo.internalDTD is not None:
        raise DeclarationError(
            attempt,
            expected=f"{DESCRIPTION} without a document type",
            found="<!DOCTYPE ...>, which can declare entities",
            remedy="Do not use this file: it may be meant to harm",
        )
