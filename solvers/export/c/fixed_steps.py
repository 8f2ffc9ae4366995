"""How a model takes fixed steps: its method, its period, and at which steps clocks tick."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.solvers.export.model_equations import ModelEquations
from flexure.solvers.native.kernels.steps.fixed import FIXED, ROWS

_CLOSE = 1e-9  # of a period, by which a clock may miss a step
_LARGEST = 1_000_000  # denominator of a ratio of periods


@dataclass(frozen=True)
class StepPlan:
    """Fixed steps of a model.

    Attributes
    ----------
    kernel : callable or None
        What takes a step; None without continuous states.
    rows : int
        Rows of slopes that it needs.
    start, period : float
        Time of the first step, and time between steps.
    first, every : list of int
        The step at which each clock ticks first, and how many steps are between its ticks.
    """

    kernel: Any
    rows: int
    start: float
    period: float
    first: list[int]
    every: list[int]

    @classmethod
    def of(cls, equations: ModelEquations, method: str | None, step: float | None) -> StepPlan:
        """Plan the steps of a model.

        Raises
        ------
        ValueRefusedError
            When there is no such method, no step follows from the clocks, or the clocks do not tick
            at steps.
        """
        name, start = equations.context.system.label, equations.context.time
        attempt = f"Cannot write '{name}' with fixed steps"
        states, clocks = equations.layout.num_states, equations.clocks
        method = method or "rk4"
        if method not in FIXED:
            expected = f"a method with fixed steps: {', '.join(FIXED)}"
            raise ValueRefusedError(attempt, expected=expected, found=repr(method))
        if step is None:
            step = _base_period([x for c in clocks for x in (c.period, c.offset - start) if x > 0])
            if states or step is None:
                raise ValueRefusedError(
                    attempt,
                    expected="the time from one step to the next, step=, in seconds",
                    found=f"{states} continuous states and {len(clocks)} clocks, and no step",
                    remedy="Give the period at which the function is called, such as step=1e-3",
                )
        if not (isinstance(step, (int, float)) and 0.0 < step < math.inf):
            raise ValueRefusedError(
                attempt, expected="a positive step, in seconds", found=f"step={step!r}"
            )
        first, every = [], []
        for clock in clocks:
            for length, found in ((max(clock.offset - start, 0.0), first), (clock.period, every)):
                count = round(length / step)
                if abs(length - count * step) > _CLOSE * clock.period or (
                    found is every and not count
                ):
                    raise ValueRefusedError(
                        attempt,
                        expected=f"clocks that tick at multiples of the step of {step:g} s",
                        found=f"a period of {clock.period:g} s, an offset of {clock.offset:g} s",
                        remedy="Take a step that divides all periods and offsets",
                    )
                found.append(count)
        kernel = FIXED[method] if states else None
        return cls(kernel, ROWS[method] if states else 0, start, float(step), first, every)


def _base_period(lengths: list[float]) -> float | None:
    """Return the longest time of which all lengths are multiples; None if there is none."""
    if not lengths:
        return None
    least = min(lengths)
    ratios = [Fraction(each / least).limit_denominator(_LARGEST) for each in lengths]
    return least / math.lcm(*(each.denominator for each in ratios))
