"""Motions with derivatives in native code: its conditions, and the run.

It serves where the equations have native code, and the method a loop for states with columns. What
is unusual, such as a value that is not finite, ends a loop, and the interpreted way goes on from
there, which knows what to say.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from flexure.diagrams.checks.errors import TraceError
from flexure.diagrams.concurrency.one_thread import in_one_thread
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.value_places import Place
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.equations.equations import Variable, read_equations, shown
from flexure.solvers.analysis.equations.kept_equations import TracedEquations, kept_equations
from flexure.solvers.analysis.linear_models.linear_inputs import Drive
from flexure.solvers.integration.guard.failures import (
    chattering,
    find_jump,
    jump_of_derivative,
    no_progress,
)
from flexure.solvers.integration.guard.progress_limits import Pace
from flexure.solvers.integration.guard.stiffness_detection import NONSTIFF_METHOD, assess
from flexure.solvers.integration.methods.methods import method_name
from flexure.solvers.integration.methods.rounding import shortened_by_rounding
from flexure.solvers.native.kernels.parts.run import SLOW, STIFF
from flexure.solvers.native.programs.method_programs import DIFFERENTIABLE
from flexure.solvers.native.programs.programs import BoundProgram, UnsuitableError, native_program
from flexure.solvers.native.programs.sensitivity_program import SensitivityProgram
from flexure.solvers.native.runs.sensitivity_run import SensitivityRun, put_line
from flexure.solvers.simulation.run_control.method_selection import Method
from flexure.solvers.tracing.trace import trace
from flexure.solvers.tracing.trace_check import OTHER_NUMBERS, agrees_at

_SMALLEST_RTOL = float(100 * np.finfo(float).eps)  # which SciPy's methods raise others to
STIFF_METHOD = "ESDIRK4"  # Rosenbrock's methods need derivatives of the Jacobian


class NativeMotion:
    """Native code for the motion of a context with its derivatives, for any number of runs.

    The context has the values that the motion begins with; there are ``count`` columns. The free
    input ports ``drives`` change along the motion.
    """

    def __init__(
        self,
        context: Context,
        variables: Sequence[Variable],
        count: int,
        outputs: Sequence[Place],
        drives: Sequence[Drive],
    ) -> None:
        self._drives = drives
        driven = frozenset(drive.slot for drive in drives)
        self._store = store = context.store
        self._read = [shown(context, place) for place in outputs]
        self._settled = ""
        try:
            program = native_program(store, driven)
            program.jacobian()
            self._bound = BoundProgram(program, store)
            self._own = self._compiled(variables, driven)
        except TraceError as error:
            raise UnsuitableError.because(error) from error
        self._run = SensitivityRun(self._bound, store, self._own, count)

    def _compiled(
        self, variables: Sequence[Variable], driven: frozenset[int]
    ) -> SensitivityProgram:
        """Return the functions beside those of the program, kept ones or new ones."""
        store, layout = self._store, self._store.layout
        keys = [key for variable in variables for key in variable.keys]
        n = layout.num_states
        with np.errstate(all="ignore"):
            expected = np.array(read_equations(store, self._read), dtype=float)

        def made() -> TracedEquations:
            found = trace(layout, lambda symbols: read_equations(symbols, self._read))
            native = SensitivityProgram(layout, found[:n], found[n:], keys, driven)
            return TracedEquations(layout, [], [], more=native)

        def agrees(traced: TracedEquations) -> bool:
            own = traced.more
            outputs = partial(own.outputs, store.time, env=own.fill(store))
            return agrees_at(outputs, store.x, expected[n:])

        if not agrees_at(partial(self._bound, store.time), store.x, expected[:n]):
            raise UnsuitableError(OTHER_NUMBERS)
        read = tuple([(slot, tuple(part)) for slot, part in self._read])
        question = "native sensitivities", read, tuple(keys), driven
        found, known = kept_equations(layout, question, made, agrees)
        if not (known or agrees(found)):
            raise UnsuitableError(OTHER_NUMBERS)
        program: SensitivityProgram = found.more
        return program

    @property
    def may_jump(self) -> bool:
        """Whether rates or outputs hold an operation that can jump."""
        return self._own.may_jump

    @staticmethod
    def obstacle(method: Method, rtol: float, atol: float) -> str:
        """Return why a motion cannot be integrated natively; nothing if it can."""
        if not (isinstance(method, str) and method in ("auto", *DIFFERENTIABLE)):
            return f"{method_name(method)} has no native loop for derivatives"
        numbers = all(isinstance(each, (int, float)) for each in (rtol, atol))
        if numbers and _SMALLEST_RTOL <= rtol < math.inf and 0.0 < atol < math.inf:
            return ""
        return "of tolerances that are refused"

    def begin(
        self,
        time: float,
        x: FloatArray,
        weights: FloatArray,
        t_final: float,
        method: Method,
        tolerances: tuple[float, float],
        why: str,
    ) -> None:
        """Begin a motion with the parameters of the context.

        ``x`` are states, and behind them the columns times the sizes of their numbers; ``weights``,
        shape (p, m), how much each component of the variables changes in each column. The method is
        one that is no obstacle; what "auto" chooses in the first run serves all. ``why`` is empty,
        or why a motion that is not native is none.
        """
        self._is_open = method == "auto"
        self._pace = Pace(time, t_final)
        self._end, self._weights, self._tolerances = t_final, weights, tolerances
        if self._is_open and not self._settled:
            self._settled = self._chosen(time, x[: self._store.layout.num_states], t_final)
        self._start(self._settled if self._is_open else method_name(method), time, x)

    @in_one_thread
    def _chosen(self, time: float, x: FloatArray, t_final: float) -> str:
        """Choose a method where the user left it open."""
        verdict = assess(self._bound, time, x, t_final - time, jac=self._bound.jacobian)
        return STIFF_METHOD if verdict.stiff else NONSTIFF_METHOD

    def _start(self, method: str, time: float, x: FloatArray) -> None:
        self._method = method
        self._run.begin(method, self._tolerances, time, x, self._weights, self._pace)
        self._run.watch(self._end, stiffness=self._is_open)

    def hold(self, x: FloatArray, weights: FloatArray) -> None:
        """Go on with other states, columns and discrete values, which updates have given."""
        self._weights = weights
        self._run.hold(x, weights)

    def advance(
        self, stop: float, clip: float, times: FloatArray, *, anew: bool
    ) -> tuple[list[FloatArray], float, FloatArray]:
        """Go on to a stop, as `SensitivityRun.advance` does.

        Returns states and columns at the times that were reached, what was reached in seconds,
        which is before the stop where something unusual is there, and states and columns there.
        Raises SimulationError when steps lead nowhere.
        """
        samples: list[FloatArray] = []
        while True:
            lines = [drive.line(self._run.time) for drive in self._drives]
            rows, status = self._run.advance(stop, clip, times[len(samples) :], lines, anew=anew)
            samples.extend(rows)
            if status == SLOW:
                self._give_up(clip)
            if status != STIFF:
                return samples, self._run.time, self._run.x
            self._settled = STIFF_METHOD
            self._start(self._settled, self._run.time, self._run.x)

    def _give_up(self, clip: float) -> None:
        """Raise, since steps lead nowhere."""
        memory, n = self._run.memory, self._store.layout.num_states
        fields = memory.fields
        time, lapse = fields.step.time_new, fields.step.time_new - fields.step.time_old
        x, tolerated = memory.x[:n].copy(), memory.tolerated(memory.x)[:n]

        def rates(time: float, x: FloatArray) -> FloatArray:
            return self._bound(min(time, clip), x)

        jump = find_jump(rates, fields.step.time, x, lapse, tolerated)
        if jump is not None:
            raise chattering(self._method, jump, jump_of_derivative(jump))
        self._pace.take_over(0, fields.pace.strides)
        lack = self._pace.report(fields.pace.slow, time)
        lapse = max(lapse, self._pace.needed(time))
        rounding = shortened_by_rounding(rates, fields.step.time, x, lapse, tolerated)
        raise no_progress(self._method, time, "to reach the end", lack, rounding)

    def shown(
        self, times: FloatArray, states: FloatArray, columns: FloatArray, weights: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the outputs at some times, and their derivatives.

        At k times, states have the shape (k, n), their derivatives (k, n, m) and those of the
        variables (p, m); the results have the shapes (k, p) and (k, p, m).
        """
        own, n = self._own, states.shape[1]
        env = own.fill(self._store)
        outputs, slopes = [], []
        states = np.ascontiguousarray(states)
        for time, x, column in zip(times.tolist(), states, columns, strict=True):
            for drive in self._drives:
                put_line(own.environment, env, drive.line(time))
            matrix = own.output_slopes(time, x, env)
            slope = matrix[:, :n] @ column + matrix[:, n:] @ weights
            outputs.append(own.outputs(time, x, env))
            slopes.append(slope)
        return np.array(outputs), np.array(slopes)
