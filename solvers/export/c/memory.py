"""What is known of the memory of a model: numbers, constant tables, functions and lengths."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from flexure.solvers.export.c.driver import AT_CROSSINGS, AT_START, AT_STEPS, AT_TICKS, DriverData
from flexure.solvers.export.c.equation_functions import constant_array, number
from flexure.solvers.export.c.fixed_steps import StepPlan
from flexure.solvers.export.c.kernel_code import Memory
from flexure.solvers.export.c.kernel_functions import CModule
from flexure.solvers.export.loop_assembly import ClosingData, closing_tables
from flexure.solvers.export.model_equations import ModelEquations
from flexure.solvers.export.run_tables import Room, rooms, run_tables
from flexure.solvers.integration.guard.progress_kernel import MARKS
from flexure.solvers.native.kernels.parts.clocks import ClockData
from flexure.solvers.native.kernels.parts.linear_solves import LinearData
from flexure.solvers.native.kernels.parts.manifold import ManifoldData
from flexure.solvers.native.kernels.parts.output_rows import MOST_ROWS, STATE, RowData
from flexure.solvers.native.kernels.parts.progress import PaceData
from flexure.solvers.native.kernels.parts.run import (
    CountData,
    StepData,
    StiffnessData,
    SystemData,
    ToleranceData,
    UpdateData,
)
from flexure.solvers.native.kernels.parts.run_samples import WitnessData
from flexure.solvers.native.kernels.runs.zeno_detection import WATCH_SIZE
from flexure.solvers.native.language.language import types_of
from flexure.solvers.native.programs.method_programs import NativeMethod, kernels_of

_CAUSES = {"initialization": AT_START, "step": AT_STEPS, "clock": AT_TICKS, "witness": AT_CROSSINGS}
#: Rows of states that steps exchange.
ROTATING = tuple((StepData, name) for name in ("x", "x_old", "x_new"))
#: The functions of all equations.
_FUNCTIONS: dict[Any, dict[str, Any]] = {
    SystemData: {"rhs": "derivatives_of"},
    ManifoldData: {"deviations": "deviations_of", "projection": "projection_of"},
    ClockData: {"breaks": "next_break"},
    WitnessData: {"values": "witness_values"},
    LinearData: {"jacobian": "jacobian_of"},
    DriverData: {"signals": "signals_of", "prepare": "prepare", "limits": "start_limits"},
}


class ModelMemory(Memory):
    """What is known of the memory of one model.

    With ``adaptive``, the loops of adaptive methods run; a model without states then has one, which
    rests. ``assembles`` is whether mechanisms with loops are assembled, which single precision
    cannot.
    """

    def __init__(self, equations: ModelEquations, *, adaptive: bool, assembles: bool) -> None:
        super().__init__()
        self.texts: dict[str, str] = {}  # constant arrays, by name
        self.states = equations.layout.num_states
        self.n = max(self.states, 1) if adaptive else self.states
        self.w = len(equations.witnesses)
        self.ignored = frozenset((CountData, k) for k in types_of(CountData) if k != "steps")
        self.aliases = {(ManifoldData, "env"): "env"}
        for tables in (run_tables(equations, self.n), _FUNCTIONS):
            for structure, values in tables.items():
                self.put(structure, **values)
        self.put(SystemData, env=Room(0))  # until it is known
        if self.w == 0:
            self.put(WitnessData, known=0, stirred=0, crossed=0)
        self._describe_events(equations)
        closings = closing_tables(equations.closings)
        functions = [f"closing_{k}" for k in range(closings["count"])]
        self.put(ClosingData, values=functions, **closings)
        starts = len(equations.starts) if assembles else 0
        self.put(DriverData, starts=starts, pairs=Room(2 * starts))
        self.put(DriverData, begun_at=Room(self.n if starts else 0))

    def put(self, structure: Any, **values: Any) -> None:
        """Note numbers (plain), functions (text), constant arrays (lists) and lengths of others."""
        for name, value in values.items():
            key = structure, name
            if isinstance(value, Room):
                self.sizes[key] = max(value, 1)
            elif isinstance(value, str):
                self.functions[key] = value
            elif isinstance(value, list):
                self._table(structure, name, value)
            else:
                self.numbers[key] = value

    def _table(self, structure: Any, name: str, values: Sequence[Any]) -> None:
        """Make a constant array of whole numbers, of others, or of functions."""
        text = f"{structure.__name__.removesuffix('Data').lower()}_{name}"
        self.tables[structure, name] = text
        kinds: dict[str, tuple[str, Any]] = {
            "Functions": ("equation", str),
            "Ints": ("int64_t", str),
        }
        element, spell = kinds.get(types_of(structure)[name], ("double", number))
        if values:
            self.texts[text] = constant_array(element, text, [*map(spell, values)])

    def _describe_events(self, equations: ModelEquations) -> None:
        """Note which events there are beside those of the loops."""
        updates, endings = equations.updates, equations.endings
        causes = [_CAUSES.get(each.trigger, -1) for each in updates]
        self.put(UpdateData, functions=[f"update_{k}" for k in range(len(updates))])
        self.put(
            DriverData,
            causes=causes,
            steps=int(AT_STEPS in causes),
            ends=len(endings),
            triggers=[_CAUSES[each.trigger] for each in endings],
            numbers=[each.number for each in endings],
            verdicts=[f"verdict_{k}" for k in range(len(endings))],
            verdict=Room(1),
            watches=Room(self.w * WATCH_SIZE),
        )

    # What depends on how a model is used ---------------------------------------------------

    def take_steps(self, plan: StepPlan | None, methods: Sequence[NativeMethod]) -> None:
        """Note how fixed steps are taken, and what the loops of methods need."""
        self.put(RowData, recording=0, stepwise=0, logging=0, held=0)
        if plan is not None:
            self.put(StepData, k=Room(plan.rows * self.n))
            self.put(DriverData, start=plan.start, period=plan.period, rtol=plan.rtol)
            self.put(DriverData, first=plan.first, every=plan.every, pausing=0)
        if methods:
            self._take_adaptive_steps(methods)
        else:
            self.put(RowData, room=0)

    def _take_adaptive_steps(self, methods: Sequence[NativeMethod]) -> None:
        """Note what the loops of methods need."""
        n, width = self.n, STATE + self.n
        self.rotating = frozenset(ROTATING)
        self.put(StepData, keeping=1, k=Room(max(each.rows for each in methods) * n))
        self.put(StepData, q=Room(max(each.bends for each in methods) * n))
        self.put(RowData, room=MOST_ROWS, width=width, discrete=width)
        self.put(RowData, kinds=Room(2 * MOST_ROWS), table=Room(MOST_ROWS * width))
        self.put(PaceData, most_steps=1e9, deliberate=math.inf, **rooms("marks", MARKS))
        self.put(ToleranceData, max_step=math.inf)
        if len(methods) == 1:
            self.put(DriverData, stiff=0)
            self.put(StiffnessData, watching=0)

        def attempt(module: CModule, statics: Mapping[str, Any]) -> str:
            method: NativeMethod = statics["method"]
            name = f"attempt_{method.name}"
            module.translate(kernels_of(method).attempt_any, name, {"tableau": method.tableau})
            return name

        self.functions[SystemData, "attempt"] = attempt
