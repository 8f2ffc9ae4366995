"""The equations of a model as text, beside the tables that say what belongs together."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from flexure.solvers.export.javascript.equation_functions import (
    in_sequence,
    number,
    write_function,
    write_parts,
)
from flexure.solvers.export.loop_assembly import ClosingData, closing_tables
from flexure.solvers.export.model_equations import ModelEquations, ModelEvent
from flexure.solvers.export.model_jacobian import ModelJacobian
from flexure.solvers.export.run_tables import Room, run_tables
from flexure.solvers.native.emission.emission import Environment
from flexure.solvers.native.kernels.parts.run import Run
from flexure.solvers.native.language.language import parts_of, types_of


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
