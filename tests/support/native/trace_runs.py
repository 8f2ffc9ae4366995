"""Fixed steps of the traced equations in Python: what models in C are compared with, bit by bit."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import flexure as fx
from flexure.diagrams import scalars
from flexure.diagrams.scalars.derivatives import evaluation
from flexure.solvers.native.kernels.parts import elementary
from flexure.solvers.native.kernels.steps.fixed import FIXED
from flexure.solvers.tracing.exact_jacobian import numbers_behind

FloatArray = npt.NDArray[np.float64]


def use_our_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let expressions be evaluated by the functions that are ours on every processor."""
    named = {"sin": "sin_of", "cos": "cos_of", "exp": "exp_of", "log": "log_of", "power": "pow_of"}
    for op, name in named.items():
        function = getattr(elementary, name)
        monkeypatch.setitem(
            evaluation._COMPUTE, op, lambda *values, f=function: np.float64(f(*map(float, values)))
        )


class TraceRun:
    """Takes the steps of a sampled system without witness functions, by its trace.

    Parameters
    ----------
    model : CModel
        Whose equations are run.
    context : Context
        The values; a copy is changed.
    period : float
        Of the steps, which is that of all clocks.
    """

    def __init__(self, model: Any, context: fx.Context, period: float, method: str) -> None:
        self._equations = model.equations
        self._context = context.clone()
        self._period, self._count = period, 0
        self._method = FIXED[method]

    def _numbers(self, expressions: Any, time: float, x: FloatArray) -> FloatArray:
        found = numbers_behind(self._context.store, expressions, time, x)
        return np.array(scalars.evaluate(expressions, found), dtype=float)

    def step(self, inputs: dict[str, float]) -> FloatArray:
        """Take a step; return the outputs at its begin."""
        equations, store = self._equations, self._context.store
        for path, value in inputs.items():
            self._context.set(path, value)
        time, x = self._count * self._period, np.array(store.x)
        discrete = np.zeros(equations.discrete.count)
        equations.discrete.read(store, discrete)
        new = discrete.copy()
        for event in equations.events:
            if event.kind == "discrete" and event.trigger == "clock":
                targets = np.array(event.targets) - len(x)
                new[targets] = self._numbers(event.expressions, time, x)
        equations.discrete.write(store, new)
        outputs = self._numbers([e for s in equations.signals for e in s.expressions], time, x)
        self._count += 1
        if len(x):
            self._go_on(time, self._count * self._period, x)
        return outputs

    def _go_on(self, time: float, later: float, x: FloatArray) -> None:
        n = len(x)

        def rhs(at: float, state: FloatArray, env: Any, out: FloatArray) -> None:
            out[:n] = self._numbers(self._equations.derivatives, at, state)

        step = SimpleNamespace(
            time=time, h=later - time, clip=np.inf, x=x, work=np.zeros(n), k=np.zeros(4 * n)
        )
        run: Any = SimpleNamespace(step=step, system=SimpleNamespace(n=n, rhs=rhs, env=None))
        self._method(run)
        self._context.continuous_state = step.x
