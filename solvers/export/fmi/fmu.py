"""A diagram as a Functional Mock-up Unit of the standard FMI, in C without Python."""

from __future__ import annotations

import hashlib
import html
import io
import uuid
import zipfile
from collections.abc import Collection, Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np

from flexure.diagrams.checks.arguments import flag, items_of, one_of, require
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.inventory import each_free_input
from flexure.diagrams.contexts.root_contexts import require_root
from flexure.diagrams.contexts.value_places import Way, several
from flexure.diagrams.files.atomic_files import replacing
from flexure.diagrams.interface.result_classes import Answer
from flexure.diagrams.systems.system import System, require_system
from flexure.solvers.export.c.c_model import CModel
from flexure.solvers.export.c.c_source import Part, Wanted
from flexure.solvers.export.c.equation_functions import number
from flexure.solvers.export.fmi.compilers import OPTIONS, PLATFORMS, shared_library, universal
from flexure.solvers.export.fmi.description import (
    ARRAYS,
    KINDS,
    NOMINAL,
    Description,
    Variables,
    build_description,
    xml_bytes,
)
from flexure.solvers.export.model_values import chosen_paths
from flexure.solvers.tracing.signals import Signal

VERSIONS = ("2.0", "3.0")
_PARTS: frozenset[Part] = frozenset(("exchange", "slopes", "run"))
_INCLUDES = ("math", "stdarg", "stdbool", "stdint", "stdio", "stdlib", "string")


class FMU(Answer):
    """A diagram as a Functional Mock-up Unit.

    Made by `to_fmu`.

    Attributes
    ----------
    files : dict of str to bytes
        The contents of the archive, by their names in it.
    version : str
        Version of the standard.
    kinds : tuple of str
        "me" for Model Exchange, "cs" for Co-Simulation.
    inputs, outputs, parameters : list of str
        Names of the variables that tools can connect or set.
    left_out : dict of str to str
        Why a signal is missing, by path.

    See Also
    --------
    to_fmu : Export a system.

    Examples
    --------
    >>> import flexure as fx
    >>> lag = fx.FirstOrderLag("lag", time_constant=2.0)
    >>> unit = fx.to_fmu(lag, platforms=())
    >>> unit.inputs, unit.outputs, unit.parameters
    (['u'], ['y'], ['time_constant', 'gain'])
    """

    _function = "to_fmu"

    def __init__(
        self,
        model: CModel,
        version: str,
        kinds: Sequence[str],
        outputs: Collection[str],
        settable: Collection[str],
        platforms: Sequence[str],
        sources: bool,
    ) -> None:
        variables = Variables(model, version == "3.0", outputs, settable)
        attempt = f"Cannot write an FMU of '{model.equations.context.system.label}'"
        names = [f"{model.name}.c", f"{model.name}_fmi.c"]
        self.version, self.kinds = version, tuple(kinds)
        self.left_out = model.equations.left_out
        self.inputs, self.outputs, self.parameters = (
            [each.name for each in variables.rows if each.causality == causality]
            for causality in ("input", "output", "parameter")
        )

        def describe(token: str) -> bytes:
            listed = names if sources else []
            return xml_bytes(Description(variables, version, kinds, token, listed).root)

        content = f"{model.header}{model.source}".encode() + describe("")
        token = f"{{{uuid.UUID(bytes=hashlib.sha256(content).digest()[:16])}}}"
        texts = {
            f"{model.name}.h": model.header,
            f"{model.name}.c": model.source,
            f"{model.name}_fmi.c": _functions(variables, version, kinds, token),
        }
        self.files: dict[str, bytes] = {"modelDescription.xml": describe(token)}
        for each in platforms:
            of = PLATFORMS[each]
            name = f"binaries/{of.folders[version]}/{model.name}{of.ending}"
            made, other = shared_library(texts, each, attempt), self.files.get(name)
            self.files[name] = made if other is None else universal(other, made)
        if sources:
            self.files |= {f"sources/{name}": text.encode() for name, text in texts.items()}
            if version == "3.0":
                described = build_description(model.name, names, OPTIONS)
                self.files["sources/buildDescription.xml"] = described
        self.files["documentation/index.html"] = self._documentation(model.info["name"]).encode()

    def _documentation(self, title: str) -> str:
        """Write a page about the unit."""
        lists = {
            "Inputs, constant during each step of Co-Simulation": self.inputs,
            "Outputs": self.outputs,
            "Parameters": self.parameters,
            "Signals that are missing": [f"{name}: {why}" for name, why in self.left_out.items()],
        }
        parts = [f"<!DOCTYPE html><meta charset='utf-8'><title>{html.escape(title)}</title>"]
        parts.append(f"<h1>{html.escape(title)}</h1><p>Written by Flexure. Needs no Python.</p>")
        for heading, names in lists.items():
            items = "".join(f"<li>{html.escape(name)}</li>" for name in names)
            parts.append(f"<h2>{heading}</h2><ul>{items}</ul>" if names else "")
        return "".join(parts)

    def save(self, path: str | Path) -> None:
        """Write the archive.

        The same diagram gives the same bytes, if the compilers do.

        Parameters
        ----------
        path : str or Path
            Where to, such as ``"servo.fmu"``; a file that is there is replaced.
        """
        stored = io.BytesIO()
        with zipfile.ZipFile(stored, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in self.files.items():
                entry = zipfile.ZipInfo(name)
                entry.external_attr = (0o755 if name.startswith("binaries/") else 0o644) << 16
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, content)
        with replacing(path, binary=True) as stream:
            stream.write(stored.getvalue())

    def __repr__(self) -> str:
        counts = f"{len(self.inputs)} inputs, {len(self.outputs)} outputs"
        parameters = f"{len(self.parameters)} parameters"
        return f"<FMU {self.version} ({', '.join(self.kinds)}): {counts}, {parameters}>"


def _functions(variables: Variables, version: str, kinds: Sequence[str], token: str) -> str:
    """Write the functions of the standard, with the table of variables."""
    model = variables.model
    states, drives = len(model.info["states"]), {at: k for k, at in enumerate(model.drives)}
    rows = []
    for each in variables.rows:
        # Its places among states and inputs, and among rates and signals; -1 where it has none.
        known = {"state": each.at, "value": states + drives.get(each.at, -1 - states)}
        unknown = {"rate": each.at, "signal": states + each.at}
        places = known.get(each.array, -1), unknown.get(each.array, -1)
        row = _literal(each.name), ARRAYS.index(each.array), each.at, each.size, *places
        rows.append(f"    {{{', '.join(map(str, (*row, *map(number, each.range))))}}},")
    counts = {"NX": "STATES", "NU": "INPUTS", "NS": "SIGNALS", "NZ": "WITNESSES"}
    return "\n".join(
        [
            *(f"#include <{each}.h>" for each in _INCLUDES),
            f'#include "{model.name}.h"',
            f"#define MODEL(name) {model.name}_##name",
            f"#define FMI_VERSION {version[0]}",
            "#ifdef _WIN32",
            "#define EXPORT __declspec(dllexport)",
            "#else",
            '#define EXPORT __attribute__((visibility("default")))',
            "#endif",
            f"#define TITLE {_literal(model.info['name'])}",
            f"#define TOKEN {_literal(token)}",
            f"#define TOLERANCE {number(model.rtol)}",
            f"#define NOMINAL {NOMINAL}",
            f"#define HAS_MODEL_EXCHANGE {int('me' in kinds)}",
            f"#define HAS_CO_SIMULATION {int('cs' in kinds)}",
            f"#define COUNT {len(rows)}u",
            *(f"#define {k} {model.name.upper()}_{count}" for k, count in counts.items()),
            f"typedef {model.name} model;",
            "typedef struct {",
            "    const char *name;",
            "    int32_t array, at, size, known, unknown;",
            "    double lower, upper;",
            "} variable;",
            "static const variable VARIABLES[COUNT] = {",
            *rows,
            "};",
            _asset("instance.c"),
            _asset(f"fmi{version[0]}.c"),
        ]
    )


def _asset(name: str) -> str:
    """Return the text of a file of this room."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _literal(text: str) -> str:
    """Write a text as a string of C, without signs of formats."""
    plain = text.encode().decode("latin-1")
    parts = [
        c if c.isascii() and c.isprintable() and c not in '"\\%?' else f"\\{ord(c):03o}"
        for c in plain
    ]
    return f'"{"".join(parts)}"'


def to_fmu(
    system: System,
    context: Context | None = None,
    *,
    kinds: Sequence[str] = ("me", "cs"),
    version: str = "2.0",
    signals: Signal | Sequence[Signal] | None = None,
    inputs: Way | Sequence[Way] | None = None,
    parameters: Way | Sequence[Way] | None = None,
    platforms: Sequence[str] = ("linux",),
    sources: bool = True,
) -> FMU:
    """Write a diagram as a Functional Mock-up Unit, for tools that read FMI.

    The unit contains the equations and the integrators of Flexure as C, and needs no Python.

    Model Exchange gives states, derivatives, event indicators and events to the integrator of a
    tool. Co-Simulation integrates by itself, with "auto" of `simulate` at the tolerance that the
    tool asks for. Both have exact directional derivatives; version 3.0 also has adjoint ones, and
    arrays as arrays.

    Parameters
    ----------
    system : System
        A block or diagram.
    context : Context, optional
        A root context of it, whose values are the start values; a default one when omitted.
    kinds : sequence of str
        "me" for Model Exchange, "cs" for Co-Simulation, or both.
    version : str
        Of the standard: "2.0" or "3.0".
    signals : str, Handle or list of them, optional
        Ports and states that become outputs. When omitted, the outputs of the system, or those of
        all blocks if it has none; all other signals can be read as local variables.
    inputs : str, Handle or list of them, optional
        Free input ports that become inputs; all of them when omitted. Others keep their values.
    parameters : str, Handle or list of them, optional
        Parameters that can be set in the unit; all numeric ones when omitted.
    platforms : sequence of str
        Platforms to compile for: "linux", "windows", "macos" (x86-64), "linux-arm", "macos-arm".
        For the platform of this machine the compiler that the environment variable ``CC`` names is
        used, or gcc, cc or clang; for others the package ziglang (extra ``compiler``). None of
        them with sources alone.
    sources : bool
        Whether the archive contains the C sources.

    Returns
    -------
    FMU
        The unit; ``save("servo.fmu")`` writes it.

    Raises
    ------
    ValueRefusedError
        When a kind, version or platform is unknown, or the archive would be empty.
    UnknownNameError
        When a signal, input or parameter is unknown.
    TraceError
        When an equation cannot be traced; the text names the block and its line.
    MissingExtraError
        When there is no compiler for a platform.

    See Also
    --------
    FMUBlock : An FMU as a block.
    to_c : A diagram as C for a microcontroller.

    Notes
    -----
    Nominal values of states are 0.001, so that absolute tolerances of tools, which are products of
    these and the relative tolerance, are those of `simulate`. A free input without a value starts
    at zero. Publish handlers are for Python: a unit contains only whether they end the run.

    Examples
    --------
    >>> import flexure as fx
    >>> lag = fx.FirstOrderLag("lag", time_constant=2.0)
    >>> unit = fx.to_fmu(lag, platforms=())
    >>> unit
    <FMU 2.0 (me, cs): 1 inputs, 1 outputs, 2 parameters>
    >>> [*unit.files][:2]
    ['modelDescription.xml', 'sources/lag.h']
    """
    attempt = "Cannot write an FMU"
    require_system(system, attempt)
    one_of(version, VERSIONS, "version", attempt)
    kinds = _chosen(kinds, KINDS, "kinds", attempt)
    require(kinds, kinds, attempt, "at least one of the kinds 'me' and 'cs'")
    platforms = _chosen(platforms, PLATFORMS, "platforms", attempt)
    sources = flag(sources, "sources", attempt)
    require(sources or platforms, platforms, attempt, "platforms to compile for, or sources=True")
    attempt = f"{attempt} of '{system.label}'"
    context = system.create_default_context() if context is None else context
    require_root(context, system, attempt)
    signals = None if signals is None else several(signals)
    beside = _asset("instance.c") + _asset(f"fmi{version[0]}.c")
    model = CModel(_filled(context), Wanted(signals, parts=_PARTS, beside=beside))
    known = {kind: [row["path"] for row in model.info[kind]] for kind in ("parameters", "inputs")}
    settable = [
        *chosen_paths(system, parameters, known["parameters"], attempt, "numeric parameters"),
        *chosen_paths(system, inputs, known["inputs"], attempt, "free input ports"),
    ]
    paths = [each.path for each in model.equations.signals]
    if signals is None:
        own = {port.path for port in system.output_ports}
        paths = [path for path in paths if path in own] or paths
    return FMU(model, version, kinds, paths, settable, platforms, sources)


def _filled(context: Context) -> Context:
    """Return a context in which free inputs without a value are zero."""
    store = context.store
    empty = [port for port, slot in each_free_input(context) if port.size and not store.holds(slot)]
    if not empty:
        return context
    copy = context.system.create_default_context()
    copy.copy_from(context)
    for port in empty:
        port.fix(copy, np.zeros(port.size))
    return copy


def _chosen(values: Sequence[str], known: Collection[str], what: str, attempt: str) -> list[str]:
    """Return names, each once, which are among the known ones."""
    wanted = f"{what} as a list of names"
    require(not isinstance(values, str), values, attempt, wanted)
    found = items_of(values, wanted, attempt)
    return [*dict.fromkeys(one_of(each, known, what, attempt) for each in found)]
