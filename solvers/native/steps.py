"""Steps of the past: interpolants that are made when they are asked for.

The loops keep the ends of their steps only. Where a state inside of a step is wanted, the step is
repeated from its beginning, which gives the same numbers.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np

from flexure.diagrams.layout import Layout
from flexure.diagrams.threads import Lock
from flexure.diagrams.values import FloatArray
from flexure.solvers.native.methods import loops
from flexure.solvers.native.program import Program
from flexure.solvers.native.programs import program_with
from flexure.solvers.native.record import RunRecord
from flexure.solvers.trace import Key


class StepMaker:
    """Repeats steps of one method, with the parameters of one run.

    Parameters
    ----------
    program : Program
        The equations.
    method : str
        The name of the method.
    rtol, atol : ndarray
        Tolerances; they have no influence on the numbers.
    env : ndarray
        The environment; a copy is kept.
    """

    def __init__(
        self, program: Program, method: str, rtol: FloatArray, atol: FloatArray, env: FloatArray
    ) -> None:
        self.program = program
        self._layout = program.layout
        self._method = method
        self._env = env.copy()
        self._record = RunRecord(program, method, rtol, atol)
        self._record.set_environment(self._env)
        pointer = ctypes.c_void_p
        self._call = loops(method).function(
            "resample", ctypes.c_int64, pointer, ctypes.c_int64, pointer, pointer
        )
        self._lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        arrays = self._record.arrays
        return _remake, (
            self._layout,
            self.program.zeros,
            self._method,
            arrays["rtol"],
            arrays["atol"],
            self._env,
        )

    def states(self, step: NativeStep, times: FloatArray) -> FloatArray:
        """Return the states at times inside of a step, shape (k, n)."""
        n, m = self.program.num_states, self.program.num_discrete
        out = np.empty((len(times), n))
        times = np.ascontiguousarray(times)
        with self._lock:
            fields = self._record.fields
            self._record.x[:] = step.x_old
            self._env[:m] = step.discrete
            fields.time, fields.time_new = step.t_old, step.t
            fields.h = step.t - step.t_old
            fields.clip = step.clip
            self._call(self._record.pointer, len(times), times.ctypes.data, out.ctypes.data)
        return out


def _remake(
    layout: Layout,
    zeros: frozenset[Key],
    method: str,
    rtol: FloatArray,
    atol: FloatArray,
    env: FloatArray,
) -> StepMaker:
    """Make a pickled object again; the equations are compiled anew, or come from the cache."""
    return StepMaker(program_with(layout, zeros), method, rtol, atol, env)


class NativeStep:
    """The interpolant of one step; called like SciPy's.

    Attributes
    ----------
    t_old, t : float
        Begin and end of the step in seconds, also when an event cut it.
    """

    __slots__ = ("clip", "discrete", "maker", "t", "t_old", "x_old")

    def __init__(
        self,
        maker: StepMaker,
        t_old: float,
        t: float,
        x_old: FloatArray,
        discrete: FloatArray,
        clip: float = math.inf,
    ) -> None:
        self.maker = maker
        self.t_old = t_old
        self.t = t
        self.x_old = x_old
        self.discrete = discrete
        self.clip = clip

    def __call__(self, t: Any) -> FloatArray:
        """Return the state at a time, shape (n,), or at k times, shape (n, k)."""
        times = np.asarray(t, dtype=float)
        states = self.maker.states(self, times.reshape(-1))
        return states[0] if times.ndim == 0 else states.T
