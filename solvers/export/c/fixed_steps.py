"""How a model takes fixed steps: its method, its period, and at which steps clocks tick."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.solvers.export.model_equations import ModelEquations
from flexure.solvers.native.kernels.steps.fixed import FIXED, ROWS

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
