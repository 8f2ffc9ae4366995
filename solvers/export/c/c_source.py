"""The text of a model in C: its header, and its source with equations, kernels and tables."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from inspect import signature
from typing import Any, Literal, TypeAlias

import numpy as np

from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.inventory import each_free_input
from flexure.diagrams.scalars.derivatives.differentiation import gradient
from flexure.diagrams.scalars.derivatives.jacobians import directional
from flexure.diagrams.scalars.derivatives.simplification import simplify
from flexure.diagrams.values.symbolic_values import STATE, TIME, Key
from flexure.solvers.export import operations
from flexure.solvers.export.c import adaptive_steps, driver
from flexure.solvers.export.c.driver import Instance
from flexure.solvers.export.c.equation_functions import (
    SIGNATURE,
    Equations,
    comment,
    constant_array,
    in_single_precision,
    number,
)
from flexure.solvers.export.c.kernel_expressions import Memory
from flexure.solvers.export.c.kernel_functions import CModule, structures_text
from flexure.solvers.export.c.memory import ROTATING, ModelMemory, StepPlan
from flexure.solvers.export.model_equations import ModelEquations
from flexure.solvers.export.model_values import ModelValues
from flexure.solvers.export.run_tables import Room
from flexure.solvers.integration.guard.stiffness_detection import NONSTIFF_METHOD, STIFF_METHOD
from flexure.solvers.native.emission.emission import SEED, Environment, Place
from flexure.solvers.native.emission.tangent_emission import DirectionPlan
from flexure.solvers.native.kernels.parts import elementary
from flexure.solvers.native.kernels.parts.manifold import ManifoldData
from flexure.solvers.native.kernels.parts.run import StepData, StiffnessData, SystemData
from flexure.solvers.native.kernels.steps.fixed import FIXED
from flexure.solvers.native.programs.method_programs import METHODS, NativeMethod
from flexure.solvers.tracing.signals import Signal

Kernel: TypeAlias = Callable[..., Any]

#: The functions that a caller sees: kernels, and their names where these are other ones.
_VALUES = (driver.get, driver.put, driver.time, driver.set_time)
_STATES = (driver.state, driver.set_state)
_EXCHANGED = (
    *(driver.initialize, driver.derivatives, driver.signals, driver.witnesses),
    *(driver.next_time, driver.look, driver.handle),
)
_NAMES = {
    driver.put: "set",
    adaptive_steps.advance_to: "advance",
    adaptive_steps.settle_now: "settle",
}
#: Functions that equations call: those that are ours, and operations of NumPy.
_ELEMENTARY = [getattr(elementary, f"{name}_of") for name in ("exp", "log", "sin", "cos", "pow")]
_OPERATIONS: list[Kernel] = [operations.sign, operations.maximum, operations.minimum]
_OPERATIONS += [operations.remainder_of, operations.floor_divide]
PROBLEMS = {
    driver.NOT_FINITE: "a derivative, state or update is not a finite number",
    driver.UNSETTLED: "events go on to cause each other, or settling updates to change values",
    driver.UNDEFINED: "a witness function is not finite or varies too fast",
    adaptive_steps.STUCK: "no step is short enough: the equations are not finite or not smooth",
    adaptive_steps.TOO_SLOW: "far too many steps would be needed",
    driver.ASTRAY: "projections do not bring the state to where it belongs",
    adaptive_steps.CROWDED: "events follow each other closer and closer",
    driver.OPEN: "a mechanism with loops cannot be assembled near these positions",
    adaptive_steps.BACKWARD: "a run cannot go back in time",
}

Part = Literal["step", "exchange", "run", "slopes"]


@dataclass(frozen=True)
class Wanted:
    """What is to be written."""

    # signals, inputs, parameters, method, step, precision: as of `to_c`, checked.
    signals: Sequence[Signal] | None = None
    inputs: Sequence[str] | None = None
    parameters: Sequence[str] | None = None
    method: str = "auto"
    step: float | None = None
    precision: str = "double"
    name: str = ""  # with what all names begin; that of the system when empty
    # "step" for a function of steps; "exchange" for derivatives and events, which an integrator
    # outside needs; "run" for the adaptive loops; "slopes" for directional derivatives.
    parts: frozenset[Part] = frozenset(("exchange", "run", "slopes"))
    beside: str = ""  # C that includes the header, and whose names the model must not have


class CSource:
    """Header and source of one model.

    All names begin with ``name``; ``fixed`` are paths of the parameters that keep their values.
    """

    def __init__(
        self,
        name: str,
        context: Context,
        equations: ModelEquations,
        wanted: Wanted,
        fixed: Collection[str],
    ) -> None:
        self.name = name
        self._single = wanted.precision == "single"
        self._context = context
        self._equations = equations
        slots = frozenset(slot for _, slot in each_free_input(context))
        discrete = equations.discrete
        self._environment = Environment(discrete.count, discrete.starts, slots)
        # Places and tables of its values.
        self.values = ModelValues(context, equations, self._environment, fixed)
        sizes, info = self.values.places, self.values.info
        # Where the components of the inputs are in the environment.
        self.drives = [
            row["at"] + k
            for row in info["inputs"]
            if wanted.inputs is None or row["path"] in wanted.inputs
            for k in range(sizes[row["path"]]["size"])
        ]
        # Keys of the states and of these.
        self.keys: list[Key] = [((STATE, 0, 0), k) for k in range(equations.layout.num_states)]
        key_at = {place: key for key, place in self._environment.keys.items()}
        self.keys += [key_at[place] for place in self.drives]
        parts = wanted.parts
        adaptive = "run" in parts or ("step" in parts and wanted.method not in FIXED)
        methods = _methods(equations, wanted.method) if adaptive else []
        plan = None
        if "step" in parts:
            plan = StepPlan.of(equations, wanted.method, wanted.step, adaptive=adaptive)
        self.memory = ModelMemory(equations, adaptive=adaptive, assembles=not self._single)
        self.memory.put(driver.DriverData, inputs=len(self.drives), places=self.drives)
        count, first = sum(sizes[row["path"]]["size"] for row in info["parameters"]), discrete.count
        behind = first + count if count else 0
        self.memory.put(driver.DriverData, first_parameter=first, behind_parameters=behind)
        self.memory.take_steps(plan, methods)
        self._module = CModule(name, self.memory, Instance.__name__)
        self._slopes: dict[str, list[Any]] = {}
        self._seeds = -1  # where they are in the environment
        self._outputs = [each for s in equations.signals for each in s.expressions]
        symbols = (e for e in equations.expressions() if isinstance(e, scalars.Symbol))
        known = next(symbols, None)
        self._graph = scalars.Graph() if known is None else known.graph
        now = self._graph.input(((TIME, 0, 0), 0))
        later = [scalars.where(each > now, each, math.inf) for each in equations.breaks]
        self._breaks = [reduce(np.minimum, later)] if later else []
        both = dict(zip(("method", "stiff_method"), (*methods, None, None), strict=False))
        self._translate(*_VALUES, *(_STATES if self.memory.n else ()))
        if plan is not None:
            self._translate(adaptive_steps.step, fixed=plan.kernel, **both)
        if "run" in parts:
            self._translate(adaptive_steps.advance_to, **both)
            self._translate(adaptive_steps.settle_now, adaptive_steps.pause)
        if parts & {"exchange", "run"}:
            self._translate(*_EXCHANGED)
        if "slopes" in parts:
            self._write_slopes()

    # What is written -----------------------------------------------------------------------

    def _write_slopes(self) -> None:
        """Write derivatives of derivatives and signals by states and inputs."""
        outputs = [*self._equations.derivatives, *self._outputs]
        keys = self.keys
        seeds: list[Key] = [((SEED, 0, 0), k) for k in range(max(len(keys), len(outputs)))]
        total: Any = 0.0
        for seed, each in zip(seeds, outputs, strict=False):
            if isinstance(each, scalars.Symbol):
                total = total + self._graph.input(seed) * each
        self._slopes = {
            "directional": simplify(directional(outputs, keys, seeds[: len(keys)])),
            "adjoint": simplify(list(gradient(total, keys))),
        }
        self._place_seeds(len(seeds))
        functions = {name: f"{name}_of" for name in self._slopes}
        sizes = {"seed": self._seeds, "given": len(keys), "computed": len(outputs)}
        self.memory.put(driver.DriverData, **functions, **sizes)
        self._translate(driver.directional, driver.adjoint)

    def _place_seeds(self, count: int) -> None:
        """Give places to the direction along which slopes are taken, once."""
        if self._seeds < 0:
            self._seeds = self._environment.reserve(count)
            for k in range(count):
                node = self._graph.input(((SEED, 0, 0), k))
                self._environment.places[node.index] = "env", self._seeds + k

    def _translate(self, *kernels: Kernel, **statics: Any) -> None:
        """Write functions that a caller sees."""
        for each in kernels:
            name = f"{self.name}_{_NAMES.get(each, each.__name__)}"
            self._module.translate(each, name, statics, public=True)

    # The text ------------------------------------------------------------------------------

    def text(self) -> tuple[str, str]:
        """Return header and source."""
        name, memory, single = self.name, self.memory, self._single
        kernels = self._module.text
        words = {*re.findall(r"\w+", kernels)}
        tables = "".join(text for each, text in memory.texts.items() if each in words)
        words |= {*re.findall(r"\w+", tables)}
        body = "".join(self._equations_text(words))
        types = structures_text(self._module, Instance)
        kind = f"typedef void (*equation)({SIGNATURE});\n\n" if "equation " in tables else ""
        title = f"/* {comment(self._context.system.label)}, written by Flexure. */\n\n"
        before = _translated(_called(_OPERATIONS, body))
        source = f"{before}{body}{kind}{tables}\n{kernels}{self._reset()}{_problem(name)}"
        called = _called(_ELEMENTARY, body)
        own = _translated(called)
        guard = f"{name.upper()}_H"
        header = (
            f"{title}#ifndef {guard}\n#define {guard}\n\n"
            f"#include <stdbool.h>\n#include <stdint.h>\n\n{self._enumerators()}{types}"
            f"/* Begin with the values of the context. */\nvoid {name}_reset({name} *m);\n"
            f"{''.join(self._module.declarations.values())}"
            f"/* Return what a failure means. */\nconst char *{name}_problem(int64_t status);\n\n"
            "#endif\n"
        )
        if single:
            header, source = in_single_precision(header), in_single_precision(source)
            own += "".join(map(_in_double_precision, called))
        includes = f'#include "{name}.h"\n\n#include <math.h>\n#include <string.h>\n\n'
        return header, f"{title}{includes}{own}{source}"

    def _equations_text(self, words: set[str]) -> list[str]:
        """Write the equations that are called."""
        environment, jacobian = self._environment, self._equations.jacobian
        plan = None if jacobian is None or "jacobian_of" not in words else jacobian.plan
        if plan is not None:
            self._place_seeds(self.memory.states)
            words |= {"jacobian_numbers", "jacobian_slopes"}
        wanted = [each for each in self._functions() if each[0] in words]
        fixed = environment.place_inputs([e for _, outputs, *_ in wanted for e in outputs])
        found = Equations(environment, self._value_names())
        if "prepare" in words:
            found.write("prepare", fixed, "Values that depend on parameters alone", kept=True)
        for name, outputs, what, labels in wanted:
            found.write(name, outputs, what, labels, kept=name == "jacobian_numbers")
        if jacobian is not None and plan is not None:
            results = environment.reserve(len(jacobian.slopes))
            found.texts.append(self._directions_text(plan, results))
        self.memory.put(SystemData, env=Room(environment.size))
        return found.texts

    def _functions(self) -> list[tuple[str, Sequence[Any], str, Sequence[str]]]:
        """Return name, expressions, subject and labels of all equations."""
        equations, info = self._equations, self.values.info
        states = [row["path"] for row in info["states"]]
        rest = [0.0] * (self.memory.n - self.memory.states)
        both = [*states, *(row["path"] for row in info["discrete"])]
        outputs = [s.path for s in equations.signals for _ in s.expressions]
        starts = [entry for _, *pair in equations.starts for entry in pair]
        found: list[tuple[str, Sequence[Any], str, Sequence[str]]] = [
            ("derivatives_of", [*equations.derivatives, *rest], "Derivatives of the states", ()),
            ("witness_values", equations.witness_values, "Witness functions", ()),
            ("deviations_of", equations.deviations, "Distances from where states belong", ()),
            ("projection_of", equations.projected, "States moved to where they belong", states),
            ("next_break", self._breaks, "The next time at which the equations jump", ()),
            ("signals_of", self._outputs, "Signals", outputs),
            ("start_limits", starts, "Errors of constraints, each with its limit", ()),
        ]
        for k, closing in enumerate(equations.closings):
            found.append((f"closing_{k}", closing.values, f"Loops of {closing.path}", ()))
        for k, event in enumerate(equations.updates):
            labels = [both[target] for target in event.targets]
            found.append((f"update_{k}", event.expressions, event.path, labels))
        for k, event in enumerate(equations.endings):
            found.append((f"verdict_{k}", event.expressions, event.path, ()))
        for name, each in self._slopes.items():
            found.append((f"{name}_of", each, f"Slopes, {name}", ()))
        if equations.jacobian is not None:
            what, known = "Derivatives of the derivatives by the states", equations.jacobian
            if known.plan is None:
                return [*found, ("jacobian_of", known.entries, what, ())]
            found.append(("jacobian_numbers", known.numbers, f"Numbers of: {what}", ()))
            found.append(("jacobian_slopes", known.slopes, f"{what}, along a direction", ()))
        return found

    def _directions_text(self, plan: DirectionPlan, results: int) -> str:
        """Write the function of a Jacobian along directions; behind seeds and results in `env`."""
        tables = {name: getattr(plan, name) for name in ("directions", "ends", "sources")}
        lists = "".join(
            f"  {constant_array('int64_t', name, [*map(str, each)])}"
            for name, each in tables.items()
        )
        seeds = f"env[{self._seeds} + k] = (directions[k] == turn) ? 1.0 : 0.0;"
        return (
            f"/* Derivatives of the derivatives by the states */\n"
            f"static void jacobian_of({SIGNATURE})\n{{\n{lists}  int64_t entry = 0;\n"
            f"  jacobian_numbers(t, x, env, env);\n"
            f"  for (int64_t turn = 0; turn < {len(plan.ends)}; turn++) {{\n"
            f"    for (int64_t k = 0; k < {len(plan.directions)}; k++) {{\n      {seeds}\n    }}\n"
            f"    jacobian_slopes(t, x, env, &env[{results}]);\n"
            f"    for (; entry < ends[turn]; entry++) {{\n"
            f"      out[entry] = env[{results} + sources[entry]];\n    }}\n  }}\n}}\n\n"
        )

    # Names ---------------------------------------------------------------------------------

    def _rows(self) -> Iterator[tuple[str, int, str, str]]:
        """Yield letter, place, name and path of each value, component by component."""
        info = self.values.info
        tables = {"x": "states", "d": "discrete", "p": "parameters", "u": "inputs"}
        for letter, kind in tables.items():
            for row in info[kind]:
                for k, path in enumerate(self._components(row)):
                    yield letter, row["at"] + k, path, row["unit"]

    def _components(self, row: dict[str, Any]) -> list[str]:
        """Return the paths of the components of a value or signal; of a state it is one."""
        if "labels" not in row:
            return [row["path"]]
        size = row["size"] if "size" in row else self.values.places[row["path"]]["size"]
        labels = row["labels"] or range(size)
        return [row["path"]] if size == 1 else [f"{row['path']}[{each}]" for each in labels]

    def _value_names(self) -> dict[Place, str]:
        """Return the names of values inside of functions."""
        taken: set[str] = set()
        return {
            ("x" if letter == "x" else "env", at): _unique(f"{letter}_{path}", taken)
            for letter, at, path, _ in self._rows()
        }

    def _enumerators(self) -> str:
        """Write the numbers of values and the places of each, for callers."""
        counts = {
            "STATES": self.memory.states,
            "INPUTS": len(self.drives),
            "SIGNALS": len(self._outputs),
            "WITNESSES": self.memory.w,
        }
        order = {at: k for k, at in enumerate(self.drives)}
        rows = [*self._rows()]
        values = [(letter, at, path, f"{path} {unit}") for letter, at, path, unit in rows]
        values += [
            ("in", order[at], path, f"inputs: {path}")
            for letter, at, path, _ in rows
            if letter == "u" and at in order
        ]
        outputs = [(p, s["unit"]) for s in self.values.info["signals"] for p in self._components(s)]
        values += [("out", k, p, f"outputs: {p} {unit}") for k, (p, unit) in enumerate(outputs)]
        entries = {f"{self.name.upper()}_{each} = {count}": "" for each, count in counts.items()}
        taken = {each.split()[0] for each in entries}
        for letter, at, path, what in values:
            name = _unique(f"{self.name}_{letter}_{path}".upper(), taken)
            entries[f"{name} = {at}"] = f" /* {comment(what.rstrip())} */"
        commas = [*[","] * (len(entries) - 1), ""]
        lines = (f"  {e}{c}{what}\n" for c, (e, what) in zip(commas, entries.items(), strict=True))
        return f"enum {{\n{''.join(lines)}}};\n\n"

    # Beginning -----------------------------------------------------------------------------

    def _reset(self) -> str:
        """Write the function that begins."""
        store, memory = self._context.store, self.memory
        lines = ["(void)memset(m, 0, sizeof(*m));"]
        tables = ""
        arrays = ((SystemData, "env", self.values.numbers), (StepData, "x", store.x.tolist()))
        for structure, name, numbers in arrays:
            if (structure, name) not in memory.used or not any(numbers):
                continue
            tables += f"  {constant_array('double', name, [*map(number, numbers)])}"
            part = "system.env" if name == "env" else "step.x"
            part = "step.rooms" if (structure, name) in memory.rotating else part
            size = f"sizeof({name})"
            lines.append(f"(void)memcpy(m->run.{part}, {name}, {size});")
        rooms = [key for key in ROTATING if key in memory.rotating and key in memory.used]
        for k, (_, name) in enumerate(rooms):
            lines.append(f"m->run.step.{name} = {k * max(memory.n, 1)};")
        values = {
            (StepData, "time"): ("step.time", number(self._context.time)),
            (ManifoldData, "allowed"): ("manifold.allowed", "1.0"),
            (StiffnessData, "watching"): ("stiffness.watching", "1"),
        }
        lines += [f"m->run.{to} = {v};" for key, (to, v) in values.items() if key in memory.used]
        body = "".join(f"  {line}\n" for line in lines)
        return f"void {self.name}_reset({self.name} *m)\n{{\n{tables}{body}}}\n\n"


def _methods(equations: ModelEquations, method: str) -> list[NativeMethod]:
    """Return the methods whose loops are wanted."""
    jacobian = equations.jacobian
    if method == "auto":
        names = (NONSTIFF_METHOD, STIFF_METHOD) if jacobian is not None else (NONSTIFF_METHOD,)
        return [METHODS[each] for each in names]
    if METHODS[method].linear and jacobian is None:
        raise ValueRefusedError(
            f"Cannot write C with {method}",
            expected="a Jacobian of the derivatives by the states",
            found=equations.no_jacobian,
            remedy="Take method='RK45'",
        )
    return [METHODS[method]]


def _called(kernels: Iterable[Kernel], text: str) -> list[Kernel]:
    """Return the kernels that a text calls."""
    return [each for each in kernels if re.search(rf"\b{each.__name__}\(", text)]


def _translated(kernels: Iterable[Kernel]) -> str:
    """Write kernels that know nothing of a model."""
    module = CModule("", Memory(), "")
    for each in kernels:
        module.translate(each, each.__name__)
    return "".join(module.functions.values())


def _in_double_precision(kernel: Kernel) -> str:
    """Write the function of single precision that calls one of double precision."""
    name, given = kernel.__name__, [*signature(kernel).parameters]
    parameters = ", ".join(f"float {each}" for each in given)
    arguments = ", ".join(f"(double){each}" for each in given)
    head = f"static float {name}_single({parameters})"
    return f"{head}\n{{\n  return (float){name}({arguments});\n}}\n\n"


def _problem(name: str) -> str:
    """Write the function that says what failures mean."""
    cases = "".join(
        f'    case {status}:\n      text = "{text}";\n      break;\n'
        for status, text in PROBLEMS.items()
    )
    return (
        f"const char *{name}_problem(int64_t status)\n{{\n  const char *text;\n"
        f'  switch (status) {{\n{cases}    default:\n      text = "";\n      break;\n  }}\n'
        "  return text;\n}\n"
    )


def _unique(path: str, taken: set[str]) -> str:
    """Return a path as a name that is not taken."""
    plain = re.sub(r"\W+", "_", path.encode("ascii", "replace").decode()).strip("_")
    name = plain
    count = 1
    while name in taken:
        count += 1
        name = f"{plain}_{count}"
    taken.add(name)
    return name
