"""A solver class for SciPy that takes its steps in a native loop.

The loop takes many steps at once; SciPy gets them one by one, and a step is repeated when its
interpolant is asked for.
"""

from __future__ import annotations

import ctypes
import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.integrate import DenseOutput, OdeSolver

from flexure.diagrams.checks.errors import NativeCodeError
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.native.kernels.parts.output_rows import BEGIN, END, STEP, TIME, RowLayout
from flexure.solvers.native.kernels.parts.run import COMPLETE, DOUBTFUL
from flexure.solvers.native.programs.method_programs import loops
from flexure.solvers.native.runs.past_steps import NativeStep, StepRepeater, repeater_of
from flexure.solvers.native.runs.run_memory import CallLength, RunMemory

if TYPE_CHECKING:
    from flexure.solvers.native.runs.scipy_adapter import CompiledEquations

_FEW, _MANY = 64, 1024  # steps of the first and of later calls of a loop


class NativeSolver(OdeSolver):
    """Hands out the steps of a native loop one by one.

    Subclasses are made by `CompiledEquations.method`. Steps are those of the method of the same
    name, up to rounding. Only integration forward in time is possible.

    ``fun`` has to be the equations for which the class was made.
    """

    equations: CompiledEquations
    method: str

    def __init__(
        self,
        fun: Any,
        t0: float,
        y0: npt.ArrayLike,
        t_bound: float,
        max_step: float = math.inf,
        rtol: npt.ArrayLike = 1e-3,
        atol: npt.ArrayLike = 1e-6,
        vectorized: bool = False,
        first_step: float | None = None,
        **extraneous: object,
    ) -> None:
        if fun is not self.equations:
            raise NativeCodeError(
                f"Cannot integrate with {type(self).__name__}",
                expected="the equations for which this solver class was made",
                found=repr(fun),
                remedy="Pass the object whose method() made the class as the first argument",
            )
        if t_bound < t0:
            raise NativeCodeError(
                f"Cannot integrate with {type(self).__name__}",
                expected="a time span that goes forward",
                found=f"{t0!r} to {t_bound!r}",
                remedy=f"Use method='{self.method}' of SciPy",
            )
        super().__init__(fun, t0, np.asarray(y0, dtype=float), t_bound, vectorized)
        self._prepare(
            np.broadcast_to(np.asarray(rtol, dtype=float), (self.n,)),
            np.broadcast_to(np.asarray(atol, dtype=float), (self.n,)),
            max_step,
            first_step,
        )

    def _prepare(
        self, rtol: FloatArray, atol: FloatArray, max_step: float, first_step: float | None
    ) -> None:
        """Set up the memory of the run."""
        env = self.equations.environment().copy()
        program = self.equations.program
        assert program is not None
        memory = self._memory = RunMemory(program, self.method, rtol, atol, float(max_step))
        memory.set_environment(env)
        self._maker: StepRepeater | None = None
        self._discrete = env[: program.num_discrete]
        fields = memory.fields
        memory.x[:] = self.y
        fields.boundary = self.t_bound
        fields.jump = math.inf
        fields.step.time = self.t
        fields.step.keeping = 0
        fields.step.h_next = first_step or 0.0
        fields.rows.recording = 1
        self._row = RowLayout.of(self.n, program.num_discrete)
        memory.make_rows(_MANY + 8, self._row, np.arange(program.num_discrete))
        self._advance = loops(self.method, False).function(
            "advance", ctypes.c_int64, ctypes.c_void_p
        )
        self._budget = _FEW
        self._call_length = CallLength(_MANY, memory.work)
        self._status = -1
        self._times: list[float] = []
        self._spans: FloatArray = np.zeros((0, 2))
        self._states: list[FloatArray] = []
        self._before: FloatArray = self.y  # the state before the first of these
        self._count = self._next = 0
        self._final = -1

    def _more(self) -> None:
        """Take more steps in the loop."""
        memory = self._memory
        counts = memory.fields.counts
        memory.fields.budget = min(self._budget, self._call_length.length)
        self._budget = min(4 * self._budget, _MANY)
        began, before = time.perf_counter(), counts.steps
        self._status = self._advance(memory.pointer)
        self._call_length.measured(counts.steps - before, time.perf_counter() - began)
        kinds, table = memory.take_rows()
        table = table[kinds[:, 0] == STEP]
        self._before = self.y
        self._times = table[:, TIME].tolist()
        self._spans = table[:, [BEGIN, END]]
        self._states = list(table[:, self._row.x].copy())
        self._count, self._next = len(self._times), 0
        self._final = self._count - 1 if self._status == COMPLETE else -1
        self.nfev = int(counts.evaluations)
        self.njev = int(counts.jacobians)
        self.nlu = int(counts.factorizations)

    def step(self) -> str | None:
        """Hand out the next step, or fail; SciPy's own version takes longer than a native step."""
        k = self._next
        if k == self._count:
            return super().step()
        self.t_old = self.t
        self.t, self.y = self._times[k], self._states[k]
        self._next = k + 1
        if k == self._final:
            self.status = "finished"
        return None

    def _step_impl(self) -> tuple[bool, str | None]:
        """Take more steps, and hand out the first."""
        if self._status not in (COMPLETE, DOUBTFUL):
            self._more()
        if self._next == self._count:
            return False, self.TOO_SMALL_STEP
        self.t, self.y = self._times[0], self._states[0]
        self._next = 1
        return True, None

    def _dense_output_impl(self) -> DenseOutput:
        """Return the interpolant of the step handed out last."""
        if self._maker is None:
            self._maker = repeater_of(self._memory)
        k = self._next - 1
        x_old = self._states[k - 1] if k > 0 else self._before
        begin, end = self._spans[k].tolist()
        step = NativeStep(self._maker, begin, end, x_old, self._discrete)
        return _SciPyInterpolant(step)


class _SciPyInterpolant(DenseOutput):
    """The interpolant of a step in the form that SciPy wants."""

    def __init__(self, step: NativeStep) -> None:
        super().__init__(step.t_old, step.t)
        self._step = step

    def _call_impl(self, t: FloatArray) -> FloatArray:
        return self._step(t)
