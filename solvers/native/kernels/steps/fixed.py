"""Kernels of the explicit methods of fixed steps: one step of the length ``step.h``.

The formulas are those of `flexure.solvers.integration.methods.fixed_step`, operation by operation.
"""

from __future__ import annotations

from flexure.solvers.native.kernels.parts.arithmetic import smaller
from flexure.solvers.native.kernels.parts.run import Run, StepData
from flexure.solvers.native.language.language import Floats

EXACT = True
#: Rows of slopes that a step needs.
ROWS = {"euler": 1, "rk2": 2, "rk4": 4}


def rates_at(run: Run, time: float, x: Floats, out: Floats) -> None:
    """Compute the derivatives."""
    run.system.rhs(smaller(time, run.step.clip), x, run.system.env, out)


def point_ahead(step: StepData, n: int, h: float, k: Floats) -> None:
    """Compute a point ahead along a slope."""
    for i in range(n):
        step.work[i] = step.x[i] + h * k[i]


def euler(run: Run) -> None:
    """Take a step of Euler's method."""
    step, n = run.step, run.system.n
    rates_at(run, step.time, step.x, step.k)
    for i in range(n):
        step.x[i] = step.x[i] + step.h * step.k[i]


def rk2(run: Run) -> None:
    """Take a step of Heun's method."""
    step, n, h = run.step, run.system.n, run.step.h
    rates_at(run, step.time, step.x, step.k)
    point_ahead(step, n, h, step.k)
    rates_at(run, step.time + h, step.work, step.k[n:])
    for i in range(n):
        step.x[i] = step.x[i] + 0.5 * h * (step.k[i] + step.k[n + i])


def rk4(run: Run) -> None:
    """Take a step of the classical Runge-Kutta method."""
    step, n, h = run.step, run.system.n, run.step.h
    middle = step.time + 0.5 * h
    rates_at(run, step.time, step.x, step.k)
    point_ahead(step, n, 0.5 * h, step.k)
    rates_at(run, middle, step.work, step.k[n:])
    point_ahead(step, n, 0.5 * h, step.k[n:])
    rates_at(run, middle, step.work, step.k[2 * n :])
    point_ahead(step, n, h, step.k[2 * n :])
    rates_at(run, step.time + h, step.work, step.k[3 * n :])
    for i in range(n):
        inner = step.k[n + i] + step.k[2 * n + i]
        step.x[i] = step.x[i] + h / 6.0 * (step.k[i] + 2.0 * inner + step.k[3 * n + i])


FIXED = {"euler": euler, "rk2": rk2, "rk4": rk4}
