"""The text of a model: equations beside tables that say what belongs together, and loops.

Loops, one for each method that is wanted, are made of the kernels that native code is made of.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from flexure.diagrams.checks.arguments import require
from flexure.diagrams.concurrency.threads import once
from flexure.solvers.export.javascript.equation_functions import (
    in_sequence,
    number,
    write_function,
    write_parts,
)
from flexure.solvers.export.javascript.kernel_functions import (
    HELPERS,
    FunctionModule,
    structure_text,
)
from flexure.solvers.export.loop_assembly import ClosingData, assemble_loops, closing_tables
from flexure.solvers.export.model_equations import ModelEquations, ModelEvent
from flexure.solvers.export.model_jacobian import ModelJacobian
from flexure.solvers.export.run_tables import Room, run_tables
from flexure.solvers.integration.guard.progress_limits import MARKS, STRIDE
from flexure.solvers.integration.guard.stiffness_detection import NONSTIFF_METHOD, STIFF_METHOD
from flexure.solvers.integration.methods import projecting
from flexure.solvers.integration.methods.methods import method_name
from flexure.solvers.native.emission.emission import Environment
from flexure.solvers.native.kernels.parts import arithmetic, clocks, manifold, output_rows, run
from flexure.solvers.native.kernels.parts.run import Run
from flexure.solvers.native.kernels.runs import advance, zeno_detection
from flexure.solvers.native.kernels.steps.resampling import resample_all
from flexure.solvers.native.language.language import parts_of, types_of
from flexure.solvers.native.programs.method_programs import METHODS, NativeMethod, kernels_of


def literal(value: Any) -> str:
    """Write plain data, which may hold numbers that are not finite, as JavaScript.

    No text in it ends a script of a page, and ``__proto__`` is a name like any other.
    """
    text = json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")
    return re.sub(r'(?<!\\)"__proto__":', '["__proto__"]:', text)


def equations_text(equations: ModelEquations, environment: Environment) -> str:
    """Write the object ``equations``, whose parts `JavaScriptModel` lists.

    The environment has the places of all values that can be set.
    """
    fixed = environment.place_inputs(equations.expressions())
    prepared = environment.reserve(len(fixed))
    prepare = write_function(fixed, environment)
    environment.places.update({node.index: ("env", prepared + k) for k, node in enumerate(fixed)})

    def written(outputs: Sequence[Any]) -> str:
        return write_function(outputs, environment)

    def event(each: ModelEvent) -> str:
        known = {name: getattr(each, name) for name in ("path", "kind", "trigger", "number")}
        known |= {"targets": each.targets, "reason": each.reason}
        values = written(each.expressions) if each.expressions else "null"
        return _object({name: literal(value) for name, value in known.items()} | {"values": values})

    parts = write_parts([signal.expressions for signal in equations.signals], environment)
    ends = np.cumsum([len(signal.expressions) for signal in equations.signals]).tolist()
    jacobian = "null"
    if equations.jacobian is not None:
        found = equations.jacobian
        jacobian = _object(
            {
                "rows": literal(found.rows.tolist()),
                "columns": literal(found.columns.tolist()),
                "values": _jacobian_values(found, environment),
            }
        )
    tables = run_tables(equations, max(equations.layout.num_states, 1))
    closings = {ClosingData: closing_tables(equations.closings)}
    members = {
        "states": str(equations.layout.num_states),
        "discrete": str(equations.discrete.count),
        "timed": literal(equations.timed),
        "rhs": written(equations.derivatives),
        "jacobian": jacobian,
        "noJacobian": literal(equations.no_jacobian),
        "clocks": literal([{"period": c.period, "offset": c.offset} for c in equations.clocks]),
        "witnesses": _object(
            {"count": str(len(equations.witnesses)), "values": written(equations.witness_values)}
        ),
        "manifold": _object(
            {
                "count": str(len(equations.deviations)),
                "deviations": written(equations.deviations),
                "projection": written(equations.projected),
            }
        ),
        "events": _list(map(event, equations.events)),
        "breaks": _object(
            {"count": str(len(equations.breaks)), "values": written(equations.breaks)}
        ),
        "starts": _object(
            {
                "what": literal([what for what, *_ in equations.starts]),
                "values": written([entry for _, *pair in equations.starts for entry in pair]),
            }
        ),
        "closings": _object(
            {
                "paths": literal([each.path for each in equations.closings]),
                "memory": f"() => ({_memory(closings, ClosingData)})",
                "values": _list(written(each.values) for each in equations.closings),
            }
        ),
        "signals": _object(
            {"parts": _list(parts.texts), "needs": literal(parts.needs), "ends": literal(ends)}
        ),
        "memory": f"() => ({_memory(tables, Run)})",
        "prepare": f"preparation({prepared}, {prepare})",
        "size": str(environment.size),  # the last one, as the functions before it take room
    }
    return f"const equations = {_object(members)};"


def _memory(tables: Mapping[Any, Mapping[str, Any]], structure: Any) -> str:
    """Write what a structure and its parts begin with, in new arrays."""
    kinds = types_of(structure)
    members: dict[str, str] = {}
    for name, value in tables.get(structure, {}).items():
        array = "Int32Array" if kinds[name] == "Ints" else "Float64Array"
        if isinstance(value, Room):
            members[name] = f"new {array}({max(value, 1)})"
        elif isinstance(value, list):
            members[name] = f"{array}.of({', '.join(map(number, value))})"
        else:
            members[name] = number(value)
    parts = {name: _memory(tables, kind) for name, kind in parts_of(structure).items()}
    return _object(members | {name: text for name, text in parts.items() if text != _object({})})


def _jacobian_values(jacobian: ModelJacobian, environment: Environment) -> str:
    """Write the function of the entries."""
    plan, numbers = jacobian.plan, jacobian.numbers
    if plan is None:
        return write_function(jacobian.entries, environment)
    parts = write_parts([numbers, jacobian.slopes], environment)
    count = len(parts.needs[0])
    table = {
        "directions": plan.directions,
        "sources": [len(numbers) + each for each in plan.sources],
        "ends": plan.ends,
        "count": len(numbers) + len(jacobian.slopes),
    }
    functions = _object(
        {"numbers": in_sequence(parts.texts[:count]), "slopes": in_sequence(parts.texts[count:])}
    )
    return f"alongDirections({literal(table)}, (seed) => ({functions}))"


def _object(members: Mapping[str, str]) -> str:
    """Write an object with members that are written already."""
    return "{\n" + "".join(f"{name}: {text},\n" for name, text in members.items()) + "}"


def _list(items: Any) -> str:
    """Write a list of what is written already."""
    return "[\n" + "".join(f"{text},\n" for text in items) + "]"


_CONSTANTS = {
    run: ("COMPLETE", "PAUSED", "INTERRUPTED", "STIFF", "DOUBTFUL", "SLOW", "DEPARTED"),
    manifold: ("KEPT",),
    projecting: ("FAR", "ROOM"),
    output_rows: (
        *("STEP", "CHANGE", "SAMPLE", "CROSSING"),
        *("TIME", "BEGIN", "END", "CLIP", "STATE", "MOST_ROWS"),
    ),
    advance: ("UNRESTRICTED", "DISCRETE"),
    zeno_detection: ("WATCH_SIZE",),
}
#: What is called between the calls of a loop.
_CALLED: tuple[Any, ...] = (
    *(advance.update, advance.settle, advance.finish_motion, advance.note_change),
    *(clocks.find_ticks, clocks.next_stop),
    *(arithmetic.next_tick, arithmetic.spacing, zeno_detection.piles_up),
)


@once
def loops_text(names: tuple[str, ...], assembling: bool = False) -> str:
    """Write the loops of methods, and the constants and structures that belong to them."""
    module = FunctionModule()
    kernels = (*_CALLED, assemble_loops) if assembling else _CALLED
    called = {kernel.__name__: kernel for kernel in kernels}
    for name, kernel in called.items():
        module.translate(kernel, name)
    entries = ",\n".join(f"{name}: {_loop(module, METHODS[name])}" for name in names)
    constants = {name: getattr(part, name) for part, each in _CONSTANTS.items() for name in each}
    constants |= {"STRIDE": STRIDE, "MARKS": MARKS}
    constants |= {"NONSTIFF_METHOD": NONSTIFF_METHOD, "STIFF_METHOD": STIFF_METHOD}
    words = "".join(f"const {name} = {json.dumps(value)};\n" for name, value in constants.items())
    structures = {"newRun": run.Run} | ({"newClosing": ClosingData} if assembling else {})
    structure = "".join(
        f"function {name}() {{\nreturn {structure_text(kind)};\n}}\n"
        for name, kind in structures.items()
    )
    loops = f"const loops = {{\n{entries}\n}};\n"
    given = ", ".join(["loops", *structures, "nextafter$", *called, *constants])
    body = f"{HELPERS}{words}{structure}{module.text}{loops}return {{ {given} }};\n"
    return f"const {{ {given} }} = (() => {{\n{body}}})();\n"


def _loop(module: FunctionModule, method: NativeMethod) -> str:
    """Translate the loop of a method; return an object that says what belongs to it."""
    name = method.name
    kernels: dict[str, tuple[Any, dict[str, Any]]] = {
        "advance": (advance.advance, {"method": method, "eventful": True}),
        "resample": (resample_all, {"method": method}),
        "attempt": (kernels_of(method).attempt_any, {"tableau": method.tableau}),
    }
    for what, (kernel, statics) in kernels.items():
        module.translate(kernel, f"{name}_{what}", statics)
    members = {what: f"{name}_{what}" for what in kernels}
    members |= {"rows": str(method.rows), "bends": str(method.bends)}
    members |= {"linear": json.dumps(method.linear), "watched": json.dumps(method.threshold > 0.0)}
    return "{ " + ", ".join(f"{key}: {value}" for key, value in members.items()) + " }"


def checked_method(method: Any) -> str:
    """Return the name of a method that has loops, or "auto"."""
    fits = isinstance(method, str) and (method == "auto" or method_name(method) in METHODS)
    expected = f"'auto' or a method out of {', '.join(METHODS)}"
    require(fits, method, "Cannot write JavaScript", expected)
    return "auto" if method == "auto" else method_name(method)


def methods_of(method: str) -> tuple[str, ...]:
    """Return the names of the methods of which loops are wanted; "auto" chooses between two."""
    return (NONSTIFF_METHOD, STIFF_METHOD) if method == "auto" else (method,)
