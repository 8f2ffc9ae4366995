"""The Dormand-Prince method with proportional-integral control of its steps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.integrate import RK45

from flexure.solvers.integration.methods.step_control import (
    BETA,
    LARGEST_FACTOR,
    LEAST_FACTOR,
    SAFETY,
    SMALLEST_ERROR,
)


class DormandPrince(RK45):
    """Explicit Runge-Kutta method of order 5(4) with proportional-integral step-size control.

    Stages, error estimate and interpolant are those of `scipy.integrate.RK45`; only the rule for
    the next step differs. With the norms e and e₋ of the errors of this good step and the one
    before (at least 1e-4, and 1e-4 at the start)::

        h⁺ = h clip(0.9 e^(0.75 β - 1/5) e₋^β, 0.2, 10),        β = 0.04

    and no more than h after a try of this step was rejected; a rejected try is followed by one
    ``max(0.2, 0.9 e^(-1/5))`` times as long. The memory of the last error damps the alternation of
    bold and rejected steps where stability limits the step.

    References
    ----------
    E. Hairer, G. Wanner, "Solving Ordinary Differential Equations II", section IV.2.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._error_old = SMALLEST_ERROR

    def _step_impl(self) -> tuple[bool, str | None]:
        """Try shorter and shorter steps until one is good, and report success."""
        solver: Any = self  # SciPy's stubs do not tell of its tolerances
        t, y = float(self.t), self.y
        shortest = 10.0 * abs(math.nextafter(t, self.direction * math.inf) - t)
        wanted = float(self.h_abs)
        h_abs = float(self.max_step) if wanted > self.max_step else max(wanted, shortest)
        rejected = False
        while h_abs >= shortest:
            t_new = float(t + self.direction * h_abs)
            if self.direction * (t_new - self.t_bound) > 0.0:
                t_new = float(self.t_bound)
            h = t_new - t
            h_abs = abs(h)
            y_new, f_new = self._try(h)
            scale = solver.atol + np.maximum(np.abs(y), np.abs(y_new)) * solver.rtol
            error = float(solver._estimate_error_norm(self.K, h, scale))
            if error < 1.0:
                self.h_previous, self.y_old = h, y
                self.t, self.y, self.f = t_new, y_new, f_new
                self.h_abs = h_abs * self._growth(error, rejected)
                return True, None
            h_abs *= max(LEAST_FACTOR, SAFETY * error**self.error_exponent)
            rejected = True
        return False, self.TOO_SMALL_STEP

    def _try(self, h: float) -> tuple[Any, Any]:
        """Compute the stages of a step, and state and slope at its end."""
        K, t, y = self.K, self.t, self.y
        K[0] = self.f
        for s in range(1, self.n_stages):
            K[s] = self.fun(t + self.C[s] * h, y + h * (self.A[s, :s] @ K[:s]))
        y_new = y + h * (self.B @ K[:-1])
        K[-1] = self.fun(t + h, y_new)
        return y_new, K[-1].copy()

    def _growth(self, error: float, rejected: bool) -> float:
        """Return how much longer than a good step the next one is to be."""
        factor = LARGEST_FACTOR
        if error > 0.0:
            exponent = self.error_exponent + 0.75 * BETA
            wanted = SAFETY * error**exponent * self._error_old**BETA
            factor = max(LEAST_FACTOR, min(factor, wanted))
        self._error_old = max(error, SMALLEST_ERROR)
        return min(factor, 1.0) if rejected else factor
