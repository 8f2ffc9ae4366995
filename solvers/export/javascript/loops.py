"""Integration loops as JavaScript: for each method the functions that `simulate.js` calls.

It is made of the kernels that native code is made of, for the methods that are wanted. The text
does not depend on a model.
"""

from __future__ import annotations

import json
from typing import Any

from flexure.diagrams.checks.arguments import require
from flexure.diagrams.concurrency.threads import once
from flexure.solvers.export.javascript.kernel_functions import (
    HELPERS,
    FunctionModule,
    structure_text,
)
from flexure.solvers.export.loop_assembly import ClosingData, assemble_loops
from flexure.solvers.integration.guard.progress_kernel import MARKS, STRIDE
from flexure.solvers.integration.guard.stiffness_detection import NONSTIFF_METHOD, STIFF_METHOD
from flexure.solvers.integration.methods import projecting
from flexure.solvers.integration.methods.methods import method_name
from flexure.solvers.native.kernels.parts import arithmetic, clocks, manifold, output_rows, run
from flexure.solvers.native.kernels.runs import advance, zeno_detection
from flexure.solvers.native.kernels.steps.resampling import resample_all
from flexure.solvers.native.programs.method_programs import METHODS, NativeMethod, kernels_of

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
