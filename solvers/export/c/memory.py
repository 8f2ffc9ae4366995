"""What is known of the memory of a model: numbers, constant tables, functions and lengths."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from flexure.solvers.export.assembly import ClosingData, closing_sizes, closing_tables
from flexure.solvers.export.c.driver import (
    AT_CROSSINGS,
    AT_START,
    AT_STEPS,
    AT_TICKS,
    DriverData,
)
from flexure.solvers.export.c.equation_functions import number
from flexure.solvers.export.c.fixed_steps import StepPlan
from flexure.solvers.export.c.kernel_code import Memory
from flexure.solvers.export.c.kernel_functions import CModule
from flexure.solvers.export.model_equations import ModelEquations, ModelEvent
from flexure.solvers.integration.guard.progress_kernel import MARKS
from flexure.solvers.native.kernels.parts.clocks import ClockData
from flexure.solvers.native.kernels.parts.linear_solves import FactorData, LinearData
from flexure.solvers.native.kernels.parts.manifold import ManifoldData
from flexure.solvers.native.kernels.parts.progress import PaceData
from flexure.solvers.native.kernels.parts.rows import MOST_ROWS, STATE, RowData
from flexure.solvers.native.kernels.parts.run import (
    CountData,
    StepData,
    StiffnessData,
    SystemData,
    ToleranceData,
    UpdateData,
)
from flexure.solvers.native.kernels.parts.run_samples import WitnessData
from flexure.solvers.native.kernels.parts.zero_search import SEARCH_SIZE
from flexure.solvers.native.kernels.runs.advance import DISCRETE, UNRESTRICTED
from flexure.solvers.native.kernels.runs.pile_ups import WATCH_SIZE
from flexure.solvers.native.language.language import types_of
from flexure.solvers.native.programs.method_programs import NativeMethod, kernels_of
from flexure.solvers.native.runs.run_memory import ROOMY

_ENDING = {"initialization": AT_START, "step": AT_STEPS, "clock": AT_TICKS, "witness": AT_CROSSINGS}
#: Rows of states that steps exchange.
ROTATING = tuple((StepData, name) for name in ("x", "x_old", "x_new"))


class ModelMemory(Memory):
    """What is known of the memory of one model.

    Parameters
    ----------
    equations : ModelEquations
        What the model computes.
    adaptive : bool
        Whether the loops of adaptive methods run; a model without states then has one, which rests.
    assembles : bool
        Whether mechanisms with loops are assembled, which single precision cannot.
    """

    def __init__(self, equations: ModelEquations, *, adaptive: bool, assembles: bool) -> None:
        super().__init__()
        self.texts: dict[str, str] = {}  # constant arrays, by name
        self._equations = equations
        events = equations.events
        # The events that change something, in the order in which they run.
        self.updates = [each for each in events if each.kind != "publish"]
        # The publishes that may end a run.
        self.ending = [each for each in events if each.kind == "publish" and each.expressions]
        self.states = equations.layout.num_states
        self.n = max(self.states, 1) if adaptive else self.states
        self.w = len(equations.witnesses)
        counts = types_of(CountData)
        self.ignored = frozenset((CountData, name) for name in counts if name != "steps")
        self._describe_system()
        self._describe_clocks()
        self._describe_updates()
        self._describe_witnesses()
        self._describe_ends()
        self._describe_closings(assembles)

    def put(self, structure: Any, **values: Any) -> None:
        """Note numbers (plain), functions (text), constant arrays (lists)."""
        for name, value in values.items():
            key = structure, name
            if isinstance(value, str):
                self.functions[key] = value
            elif isinstance(value, list):
                self.table(structure, name, value)
            else:
                self.numbers[key] = value

    def room(self, structure: Any, **sizes: int) -> None:
        """Note lengths of arrays."""
        self.sizes |= {(structure, name): max(size, 1) for name, size in sizes.items()}

    def table(self, structure: Any, name: str, values: Sequence[Any]) -> None:
        """Make a constant array of whole numbers, of others, or of functions."""
        kind = types_of(structure)[name]
        text = f"{structure.__name__.removesuffix('Data').lower()}_{name}"
        self.tables[structure, name] = text
        if not values:
            return
        if kind == "Functions":
            entries = ", ".join(values)
            self.texts[text] = f"static const equation {text}[{len(values)}] = {{ {entries} }};\n"
            return
        element = "int64_t" if kind == "Ints" else "double"
        entries = ", ".join(str(v) if kind == "Ints" else number(v) for v in values)
        self.texts[text] = f"static const {element} {text}[{len(values)}] = {{ {entries} }};\n"

    def _describe_system(self) -> None:
        equations, n = self._equations, self.n
        self.put(SystemData, n=n, m=equations.discrete.count, timed=int(equations.timed))
        self.put(SystemData, rhs="derivatives_of")
        self.room(SystemData, env=0)  # until it is known
        self.room(StepData, x=n, x_old=n, x_new=n, work=max(n, 1), point=n, time_slope=n)
        self.room(ToleranceData, rtol=n, atol=n)
        count = len(equations.deviations)
        self.put(ManifoldData, count=count, coded=1, discrete=0, farthest=math.inf)
        self.put(ManifoldData, deviations="deviations_of", projection="projection_of")
        self.room(ManifoldData, values=count, landed=n, shift=n, slope=n)
        self.aliases = {(ManifoldData, "env"): "env"}

    def _describe_clocks(self) -> None:
        clocks = self._equations.clocks
        count = len(clocks)
        publishing = self._belonging(self.ending, "clock", count)
        self.put(
            ClockData,
            count=count,
            periods=[each.period for each in clocks],
            offsets=[each.offset for each in clocks],
            updating=self._belonging(self.updates, "clock", count),
            publishing=publishing,
            publishes=int(1 in publishing),
            breaking=int(bool(self._equations.breaks)),
            breaks="next_break",
        )
        self.room(ClockData, ticks=count, publish_ticks=count)

    @staticmethod
    def _belonging(events: Sequence[ModelEvent], trigger: str, count: int) -> list[int]:
        """Return for each of some triggers whether events belong to it."""
        found = {each.number for each in events if each.trigger == trigger}
        return [int(k in found) for k in range(count)]

    def _describe_updates(self) -> None:
        updates = self.updates
        ends = [0]
        for each in updates:
            ends.append(ends[-1] + len(each.targets))

        def where(*names: str) -> list[int]:
            return [int(each.trigger in names) for each in updates]

        def numbers(name: str) -> list[int]:
            return [each.number if each.trigger == name else -1 for each in updates]

        self.put(
            UpdateData,
            count=len(updates),
            functions=[f"update_{k}" for k in range(len(updates))],
            unrestricted=[
                UNRESTRICTED if each.kind == "unrestricted" else DISCRETE for each in updates
            ],
            clock=numbers("clock"),
            trigger=numbers("witness"),
            settling=where("settling"),
            settles=int("settling" in [each.trigger for each in updates]),
            first_target=ends,
            targets=[
                target if target < self.states else target + self.n - self.states
                for each in updates
                for target in each.targets
            ],
            lines=0,
        )
        self.room(UpdateData, pending=len(updates), staged=self.n, results=ends[-1])
        stepping = where("step")
        self.put(DriverData, initial=where("initialization"), stepping=stepping)
        self.put(DriverData, steps=int(1 in stepping))

    def _describe_witnesses(self) -> None:
        equations, w = self._equations, self.w
        signs = {"falling": -1, "rising": 1, "either": 0}
        samples = 5 + 4 * w
        handled = self._belonging(self.ending, "witness", w)
        waits = "step" in [each.trigger for each in self.updates]
        self.put(
            WitnessData,
            count=w,
            values="witness_values",
            directions=[signs[each.direction] for each in equations.witnesses],
            handled=[0 if waits else 1 - each for each in handled],
            turning=self._belonging(self.updates, "witness", w),
            longest=equations.max_check_interval,
        )
        self.room(
            WitnessData,
            **dict.fromkeys(("on_surface", "surface", "first", "leaping", "fast", "peaks"), w),
            samples=samples * w,
            instants=samples,
            order=samples,
            slopes=4 * w,
            search=SEARCH_SIZE,
        )
        self.room(DriverData, watches=w * WATCH_SIZE)
        if w == 0:
            self.put(WitnessData, known=0, stirred=0, crossed=0)

    def _describe_ends(self) -> None:
        ending = self.ending
        self.put(
            DriverData,
            ends=len(ending),
            triggers=[_ENDING[each.trigger] for each in ending],
            numbers=[each.number for each in ending],
            verdicts=[f"verdict_{k}" for k in range(len(ending))],
            signals="signals_of",
            prepare="prepare",
        )
        self.room(DriverData, verdict=1)

    def _describe_closings(self, assembles: bool) -> None:
        tables = closing_tables(self._equations.closings)
        count = 2 * len(self._equations.starts) if assembles else 0
        self.put(DriverData, starts=count // 2, limits="start_limits")
        self.room(DriverData, pairs=count, begun_at=self.n if count else 0)
        functions = [f"closing_{k}" for k in range(tables["count"])]
        self.put(ClosingData, values=functions, **tables)
        self.room(ClosingData, **closing_sizes(tables))

    # What depends on how a model is used ---------------------------------------------------

    def take_inputs(self, places: Sequence[int]) -> None:
        """Note where the inputs are."""
        self.put(DriverData, inputs=len(places), places=list(places))

    def reserve_environment(self, size: int) -> None:
        """Note the length of the environment."""
        self.room(SystemData, env=size)

    def take_steps(self, plan: StepPlan | None, methods: Sequence[NativeMethod]) -> None:
        """Note how fixed steps are taken, and what the loops of methods need."""
        self.put(RowData, recording=0, stepwise=0, logging=0, held=0)
        if plan is not None:
            self.room(StepData, k=plan.rows * self.n)
            self.put(DriverData, start=plan.start, period=plan.period)
            self.put(DriverData, rtol=plan.rtol, atol=plan.rtol / 1000.0)
            self.put(DriverData, first=plan.first, every=plan.every, pausing=0)
        if methods:
            self._take_adaptive_steps(methods)
        else:
            self.put(RowData, room=0)

    def _take_adaptive_steps(self, methods: Sequence[NativeMethod]) -> None:
        """Note what the loops of methods need."""
        n = self.n
        self.rotating = frozenset(ROTATING)
        rows = max(each.rows for each in methods)
        bends = max(each.bends for each in methods)
        self.room(StepData, k=rows * n, q=bends * n)
        self.put(StepData, keeping=1)
        self.put(RowData, room=MOST_ROWS, width=STATE + n, discrete=STATE + n)
        self.room(RowData, kinds=2 * MOST_ROWS, table=MOST_ROWS * (STATE + n))
        self.put(PaceData, most_steps=1e9, deliberate=math.inf)
        self.room(PaceData, marks=MARKS)
        self.put(ToleranceData, max_step=math.inf)
        self.put(DriverData, **({"stiff": 0} if len(methods) == 1 else {}))
        if len(methods) == 1:
            self.put(StiffnessData, watching=0)

        def attempt(module: CModule, statics: Mapping[str, Any]) -> str:
            method: NativeMethod = statics["method"]
            name = f"attempt_{method.name}"
            module.translate(kernels_of(method).attempt_any, name, {"tableau": method.tableau})
            return name

        self.functions[SystemData, "attempt"] = attempt
        if any(each.linear for each in methods):
            self._describe_linear()

    def _describe_linear(self) -> None:
        found, n = self._equations.jacobian, self.n
        assert found is not None
        count = len(found.rows)
        rows, columns = found.rows.tolist(), found.columns.tolist()
        self.put(LinearData, n=n, nonzeros=count, rows=rows, columns=columns)
        self.put(LinearData, jacobian="jacobian_of", roomy=int(n <= ROOMY))
        self.room(LinearData, entries=count, matrix=n * n, pivots=n, row=n)
        factors = found.factors
        self.put(LinearData, sparse=int(factors is not None))
        if factors is not None:
            for name in types_of(FactorData):
                value = getattr(factors, name)
                self.put(
                    FactorData,
                    **{name: value if isinstance(value, int) else [int(each) for each in value]},
                )
            self.room(LinearData, values=len(factors.column))
