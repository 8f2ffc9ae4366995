"""The text of a model in C: its header, and its source with equations, kernels and tables."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np

from flexure.diagrams import scalars
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.inventory import each_free_input
from flexure.diagrams.scalars.derivatives.differentiation import gradient
from flexure.diagrams.scalars.derivatives.jacobians import directional
from flexure.diagrams.scalars.derivatives.simplification import simplify
from flexure.solvers.export.c import adaptive_steps, driver
from flexure.solvers.export.c.driver import Instance
from flexure.solvers.export.c.equation_functions import (
    SIGNATURE,
    Equations,
    comment,
    helpers,
    in_single_precision,
    number,
)
from flexure.solvers.export.c.fixed_steps import StepPlan
from flexure.solvers.export.c.kernel_code import Memory
from flexure.solvers.export.c.kernel_functions import CModule, structures_text
from flexure.solvers.export.c.memory import ROTATING, ModelMemory
from flexure.solvers.export.model_equations import ModelEquations
from flexure.solvers.export.model_values import ModelValues
from flexure.solvers.native.emission.emission import SEED, Environment, Place
from flexure.solvers.native.emission.tangent_emission import DirectionPlan
from flexure.solvers.native.kernels.parts import elementary
from flexure.solvers.native.kernels.parts.manifold import ManifoldData
from flexure.solvers.native.kernels.parts.run import StepData, StiffnessData, SystemData
from flexure.solvers.native.programs.method_programs import METHODS
from flexure.solvers.tracing.trace import STATE, TIME, Key

#: What the functions that a caller sees do, by the name of the kernel.
_VALUES = {
    "get": "Return a discrete value, a parameter or an input.",
    "put": "Set a discrete value, a parameter or an input.",
    "time": "Return the time.",
    "set_time": "Set the time.",
    "state": "Return a state.",
    "set_state": "Set a state.",
}
_EXCHANGED = {
    "initialize": "Run the initialization updates and what is due; return flags, or a failure.",
    "derivatives": "Compute the derivatives of the states.",
    "signals": "Compute all signals.",
    "witnesses": "Compute the witness functions.",
    "next_time": "Return the next time of a clock, or at which the equations jump.",
    "look": "Remember which witness functions have crossed zero; tell whether events are to run.",
    "handle": "Run the events that are due or remembered; return flags, or a failure.",
}
_BESIDE_LOOPS = {
    "settle_now": "Run what is due now, and would else wait for the next values of inputs.",
    "pause": "Let calls to go on return after each step of the integrator, or at the end.",
}
_ELEMENTARY = ("exp_of", "log_of", "sin_of", "cos_of", "pow_of")
_SLOPES = {
    "directional": "Compute slopes of derivatives and signals by states and inputs, along one.",
    "adjoint": "Compute slopes of a weighted sum of derivatives and signals by states and inputs.",
}
_NAMES = {"put": "set", "advance_to": "advance", "settle_now": "settle"}
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


class CSource:
    """Header and source of one model.

    Parameters
    ----------
    name : str
        With what all names of the model begin.
    context : Context
        A root context with the values.
    equations : ModelEquations
        What the model computes.
    drives : sequence of str, optional
        Paths of the inputs; all when omitted.
    fixed : collection of str
        Paths of the parameters that keep their values.
    adaptive : bool
        Whether loops of adaptive methods are among what is written.
    single : bool
        Whether numbers are of single precision.
    """

    def __init__(
        self,
        name: str,
        context: Context,
        equations: ModelEquations,
        *,
        drives: Sequence[str] | None = None,
        fixed: Collection[str] = (),
        adaptive: bool = False,
        single: bool = False,
    ) -> None:
        self.name = name
        self._single = single
        self._context = context
        self._equations = equations
        slots = frozenset(slot for _, slot in each_free_input(context))
        discrete = equations.discrete
        self._environment = Environment(discrete.count, discrete.starts, slots)
        # Places and tables of its values.
        self.values = ModelValues(context, equations, self._environment, fixed)
        wanted = [
            row for row in self.values.info["inputs"] if drives is None or row["path"] in drives
        ]
        sizes = self.values.places
        # Where the components of the inputs are in the environment.
        self.drives = [row["at"] + k for row in wanted for k in range(sizes[row["path"]]["size"])]
        self.memory = ModelMemory(equations, adaptive=adaptive, assembles=not single)
        self.memory.take_inputs(self.drives)
        parameters = [sizes[row["path"]] for row in self.values.info["parameters"]]
        first = parameters[0]["at"] if parameters else 0
        behind = parameters[-1]["at"] + parameters[-1]["size"] if parameters else 0
        self.memory.put(driver.DriverData, first_parameter=first, behind_parameters=behind)
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

    # What is written -----------------------------------------------------------------------

    def write_access(self) -> None:
        """Write functions that read and set single values."""
        kept = {k: v for k, v in _VALUES.items() if self.memory.n or "state" not in k}
        self._translate(kept)

    def write_exchange(self) -> None:
        """Write functions for an integrator outside."""
        self._translate(_EXCHANGED)

    def write_loops(self, methods: Sequence[str]) -> None:
        """Write the loop of a method, or of one for equations that become stiff after it."""
        what = "Go on to a time by steps within a tolerance; return how that ended."
        self._module.translate(
            adaptive_steps.advance_to, f"{self.name}_advance", _both(methods), what
        )
        self._translate(_BESIDE_LOOPS)

    def write_steps(self, plan: StepPlan, methods: Sequence[str]) -> None:
        """Write the function of steps, fixed ones or those of adaptive methods."""
        what = "Take the inputs, run what is due, compute the outputs, and go on by one step."
        kernel: Any = driver.step
        statics: dict[str, Any] = {"method": plan.kernel}
        if methods:
            kernel, statics = adaptive_steps.adaptive_step, _both(methods)
        self._module.translate(kernel, f"{self.name}_step", statics, what)

    def write_slopes(self) -> None:
        """Write derivatives of derivatives and signals by states and inputs."""
        outputs = [*self._equations.derivatives, *self._outputs]
        keys: list[Key] = [((STATE, 0, 0), k) for k in range(self.memory.states)]
        key_at = {place: key for key, place in self._environment.keys.items()}
        keys += [key_at[place] for place in self.drives]
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
        self._translate(_SLOPES)

    def _place_seeds(self, count: int) -> None:
        """Give places to the direction along which slopes are taken, once."""
        if self._seeds < 0:
            self._seeds = self._environment.reserve(count)
            for k in range(count):
                node = self._graph.input(((SEED, 0, 0), k))
                self._environment.places[node.index] = "env", self._seeds + k

    def _translate(self, kernels: dict[str, str]) -> None:
        for each, what in kernels.items():
            name = f"{self.name}_{_NAMES.get(each, each)}"
            self._module.translate(
                getattr(driver, each, None) or getattr(adaptive_steps, each), name, None, what
            )

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
        source = f"{helpers(body)}{body}{kind}{tables}\n{kernels}{self._reset()}{_problem(name)}"
        own = _elementary(body, single=single)
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
        includes = f'#include "{name}.h"\n\n#include <math.h>\n#include <string.h>\n\n'
        return header, f"{title}{includes}{own}{source}"

    def _equations_text(self, words: set[str]) -> list[str]:
        """Write the equations that are called."""
        environment, jacobian = self._environment, self._equations.jacobian
        if jacobian is not None and jacobian.plan is not None and "jacobian_of" in words:
            self._place_seeds(self.memory.states)
            words |= {"jacobian_numbers", "jacobian_slopes"}
        wanted = [each for each in self._functions() if each[0] in words]
        fixed = environment.place_inputs([e for _, outputs, *_ in wanted for e in outputs])
        prepared = environment.reserve(len(fixed))
        found = Equations(environment, self._value_names())
        if "prepare" in words:
            what = "Values that depend on parameters alone"
            found.write("prepare", fixed, what, first=prepared)
        for k, node in enumerate(fixed):
            environment.places[node.index] = "env", prepared + k
        for name, outputs, what, labels in wanted:
            first = environment.reserve(len(outputs)) if name == "jacobian_numbers" else 0
            found.write(name, outputs, what, labels, first)
            if name == "jacobian_numbers":
                for k, node in enumerate(outputs):
                    environment.places[node.index] = "env", first + k
        if jacobian is not None and jacobian.plan is not None and "jacobian_of" in words:
            results = environment.reserve(len(jacobian.slopes))
            found.texts.append(self._directions_text(jacobian.plan, results))
        self.memory.reserve_environment(environment.size)
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
        for k, event in enumerate(self.memory.updates):
            labels = [both[target] for target in event.targets]
            found.append((f"update_{k}", event.expressions, event.path, labels))
        for k, event in enumerate(self.memory.ending):
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
            f"  static const int64_t {name}[{len(each)}] = {{ {', '.join(map(str, each))} }};\n"
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

    def _rows(self) -> Iterator[tuple[str, str, int, str, str]]:
        """Yield letter, array, place, name and path of each value, component by component."""
        info = self.values.info
        for letter, kind, array in (("x", "states", "x"), ("d", "discrete", "env")):
            for row in info[kind]:
                yield letter, array, row["at"], row["path"], row["unit"]
        for letter, kind in (("p", "parameters"), ("u", "inputs")):
            for row in info[kind]:
                for k, path in enumerate(self._components(row)):
                    yield letter, "env", row["at"] + k, path, row["unit"]

    def _components(self, row: dict[str, Any]) -> list[str]:
        """Return the paths of the components of a parameter or input."""
        size = self.values.places[row["path"]]["size"]
        labels = row["labels"] or range(size)
        return [row["path"]] if size == 1 else [f"{row['path']}[{each}]" for each in labels]

    def _value_names(self) -> dict[Place, str]:
        """Return the names of values inside of functions."""
        taken: set[str] = set()
        return {
            (array, at): _unique(f"{letter}_{path}", taken)
            for letter, array, at, path, _ in self._rows()
        }

    def _enumerators(self) -> str:
        """Write the numbers of values and the places of each, for callers."""
        equations = self._equations
        counts = {
            "STATES": self.memory.states,
            "INPUTS": len(self.drives),
            "SIGNALS": len(self._outputs),
            "WITNESSES": self.memory.w,
        }
        lines = [f"{self.name.upper()}_{each} = {count}" for each, count in counts.items()]
        taken = {line.split()[0] for line in lines}
        for letter, _, at, path, unit in self._rows():
            name = _unique(f"{self.name}_{letter}_{path}".upper(), taken)
            lines.append(f"{name} = {at}, /* {comment(f'{path} {unit}'.rstrip())} */")
        places = [(path, at) for letter, _, at, path, _ in self._rows() if letter == "u"]
        order = {at: k for k, at in enumerate(self.drives)}
        for path, at in places:
            if at in order:
                name = _unique(f"{self.name}_in_{path}".upper(), taken)
                lines.append(f"{name} = {order[at]}, /* inputs: {comment(path)} */")
        k = 0
        for each in equations.signals:
            for label in each.reader.labels:
                path = each.path if each.reader.size == 1 else f"{each.path}[{label}]"
                name = _unique(f"{self.name}_out_{path}".upper(), taken)
                text = f"{path} {each.reader.unit}".rstrip()
                lines.append(f"{name} = {k}, /* outputs: {comment(text)} */")
                k += 1
        body = "".join(f"  {line if line.endswith('*/') else line + ','}\n" for line in lines)
        tail = body.rstrip()
        at = tail.rindex(",")
        return f"enum {{\n{tail[:at]}{tail[at + 1 :]}\n}};\n\n"

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
            finite = ", ".join(map(number, numbers))
            tables += f"  static const double {name}[{len(numbers)}] = {{ {finite} }};\n"
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


def _both(methods: Sequence[str]) -> dict[str, Any]:
    """Return a method, and the one for stiff equations if there are two."""
    found = [METHODS[each] for each in methods]
    return {"method": found[0], "stiff_method": found[1] if len(found) > 1 else None}


def _elementary(text: str, *, single: bool) -> str:
    """Return the elementary functions that a text calls; they compute in double precision."""
    module = CModule("", Memory(), "")
    names = [name for name in _ELEMENTARY if re.search(rf"\b{name}\(", text)]
    for name in names:
        module.translate(getattr(elementary, name), name)
    found = "".join(module.functions.values())
    if single:
        for name in names:
            given = ("a", "b") if name == "pow_of" else ("a",)
            arguments = ", ".join(f"(double){each}" for each in given)
            found += (
                f"static float {name}_single({', '.join(f'float {each}' for each in given)})\n"
                f"{{\n  return (float){name}({arguments});\n}}\n\n"
            )
    return found


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
