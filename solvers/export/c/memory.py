"""What is known of a model: its fixed steps, and the numbers, tables and lengths in its memory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.solvers.export.c.driver import AT_CROSSINGS, AT_START, AT_STEPS, AT_TICKS, DriverData
from flexure.solvers.export.c.equation_functions import constant_array, number
from flexure.solvers.export.c.kernel_expressions import Memory
from flexure.solvers.export.c.kernel_functions import CModule
from flexure.solvers.export.loop_assembly import ClosingData, closing_tables
from flexure.solvers.export.model_equations import ModelEquations
from flexure.solvers.export.run_tables import Room, rooms, run_tables
from flexure.solvers.integration.guard.progress_limits import MARKS
from flexure.solvers.native.kernels.parts.clocks import ClockData
from flexure.solvers.native.kernels.parts.linear_solves import LinearData
from flexure.solvers.native.kernels.parts.manifold import ManifoldData
from flexure.solvers.native.kernels.parts.output_rows import MOST_ROWS, STATE, RowData
from flexure.solvers.native.kernels.parts.run import (
    CountData,
    PaceData,
    StepData,
    StiffnessData,
    SystemData,
    ToleranceData,
    UpdateData,
)
from flexure.solvers.native.kernels.parts.run_samples import WitnessData
from flexure.solvers.native.kernels.runs.zeno_detection import WATCH_SIZE
from flexure.solvers.native.kernels.steps.fixed import FIXED, ROWS
from flexure.solvers.native.language.language import types_of
from flexure.solvers.native.programs.method_programs import NativeMethod, kernels_of

_CLOSE = 1e-6  # of a step, by which a clock may miss a step
_LARGEST = 1_000_000  # denominator of a ratio of periods


@dataclass(frozen=True)
class StepPlan:
    """Fixed steps of a model."""

    kernel: Any  # what takes a step; None without continuous states
    rows: int  # rows of slopes that it needs
    # start, period: time of the first step, and time between steps.
    start: float
    period: float
    # first, every: the step at which each clock ticks first, and how many steps are between its
    # ticks.
    first: list[int]
    every: list[int]
    rtol: float  # of adaptive steps between them

    @classmethod
    def of(
        cls, equations: ModelEquations, method: str, step: float | None, *, adaptive: bool
    ) -> StepPlan:
        """Plan the steps of a model, between which an adaptive method goes on if there is one."""
        context, clocks = equations.context, equations.clocks
        attempt, start = f"Cannot write steps of '{context.system.label}' as C", context.time
        states = equations.layout.num_states
        if step is None:
            lengths = [each for c in clocks for each in (c.period, c.offset - start) if each > 0.0]
            step = None if states else _base_period(lengths)
        if step is None:
            raise ValueRefusedError(
                attempt,
                expected="the time from one step to the next, step=..., in seconds",
                found=f"{states} continuous states and {len(clocks)} clocks, and no step",
                remedy="Give the period at which the function is called, such as step=1e-3",
            )
        first, every = [], []
        for clock in () if adaptive else clocks:
            counts = [(clock.offset - start) / step, clock.period / step]
            if max(abs(each - round(each)) for each in counts) > _CLOSE or round(counts[1]) < 1:
                raise ValueRefusedError(
                    attempt,
                    expected=f"clocks that tick at multiples of the step of {step:g} s",
                    found=f"a period of {clock.period:g} s, an offset of {clock.offset:g} s",
                    remedy="Take a step that divides all periods and offsets",
                )
            begin, between = map(round, counts)
            first.append(begin if begin >= 0 else begin % between)
            every.append(between)
        kernel = None if adaptive or not states else FIXED[method]
        rows = 0 if kernel is None else ROWS[method]
        return cls(kernel, rows, start, float(step), first, every, context.accuracy or 1e-6)


def _base_period(lengths: list[float]) -> float | None:
    """Return the longest time of which all lengths are multiples; None if there is none."""
    if not lengths:
        return None
    least = min(lengths)
    ratios = [Fraction(each / least).limit_denominator(_LARGEST) for each in lengths]
    return least / math.lcm(*(each.denominator for each in ratios))


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
