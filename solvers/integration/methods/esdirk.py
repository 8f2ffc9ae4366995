"""ESDIRK4, a diagonally implicit method of order 4 for stiff mechanisms, as a solver for SciPy.

``solve_ivp(f, (t0, t1), x0, method=ESDIRK4, jac=jac)`` runs it like SciPy's own.
A step has an explicit stage and five implicit ones, whose nonlinear equations are solved by
Newton's iterations one after the other. It is L-stable and stiffly accurate.

A stiff beam that turns within a step is what other methods fail at: they make their linear
equations where the step begins, and soon after that, the stiff directions are others. Here they are
made at the state to which a stage is expected to come. Where that is not close enough, they are
made anew; where they are good, several stages share them.

The rules of a step, exactly, so that another implementation can take the same steps:

1. The first try is as long as the step wanted, but at least 10 spacings of floating-point numbers
   at t and at most ``max_step``. A try that would lead beyond ``t_bound`` ends there.
2. The *size* of a vector is the root mean square of its entries divided by
   ``atol_i + rtol_i max(|x_i|, |y_i|)``, with the states x at the beginning of the step and y where
   it leads or, in an iteration, has led.
3. Stages and the guesses at which they begin are those of
   `flexure.solvers.integration.methods.tableaus.DiagonallyImplicitTableau`. The first implicit
   stage makes the linear equations ``I / (gamma h) - J`` at its guess, and so do others, unless all
   ratios of the stage before were at most 0.001: then they take over its equations.
4. Newton's iteration of a stage ends after its first update if the size of that, times the largest
   ratio in the stage before if its equations were taken over, is below 1e-5. Later on, with r the
   ratio of the sizes of the last two updates, it ends if r < 1 and size r/(1 - r) < 0.01; the
   equations are made anew if r > 0.2. It fails if r > 2 after the third update or later, and with
   the eighth update.
5. The estimate of the error is multiplied by ``(I - gamma h J)⁻¹`` with the last J, which takes
   stiff components out of it, and the norm of the error is the size of that. It is at least 0.9⁴
   where a ratio exceeded 0.2, so that the next step is not longer, and it is (0.9/0.5)⁴, which
   halves the step, where an iteration failed.
6. A try is good if the norm is below 1 and f is finite at its end. The step wanted next is ``|h|``
   times ``min(6, 0.9 norm^(-1/4))``, and times 1 at most if a try of the same step was bad.
7. After a bad try the next one is ``max(0.2, 0.9 norm^(-1/4))`` times as long; 0.2 times if
   something is not finite or linear equations have no solution. The run fails when that falls below
   10 spacings of floating-point numbers.
8. The first step wanted is what `flexure.solvers.integration.methods.rosenbrock.initial_step`
   suggests, unless it is given.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from flexure.solvers.integration.methods.rosenbrock import TryingSolver, factorized
from flexure.solvers.integration.methods.step_control import (
    DIVERGING_RATIO,
    FAILED_ERROR,
    FIRST_REST,
    KEEPING_RATIO,
    LABORED_ERROR,
    MOST_UPDATES,
    NEWTON_REST,
    RENEWING_RATIO,
)
from flexure.solvers.integration.methods.tableaus import ESDIRK4 as TABLEAU

Array = NDArray[np.float64]

_A, _G = (tuple(np.array(row) for row in rows) for rows in (TABLEAU.A, TABLEAU.G))
_E = np.array(TABLEAU.E)


class _NotFiniteError(Exception):
    """Something in a try is not finite, or linear equations have no solution."""


class ESDIRK4(TryingSolver):
    """Diagonally implicit Runge-Kutta method of order 4(3) with six stages, for stiff mechanisms.

    Times are in seconds; ``t_bound < t0`` integrates backwards. The error of a step is kept below
    ``atol + rtol |x|``. ``jac(t, x)`` may be dense or sparse; without it, n evaluations approximate
    the Jacobian. ``nfev`` does not count these; ``rejected`` are the tries that were not good.
    ``vectorized`` is part of SciPy's protocol, without effect.

    A step takes at least six evaluations, a Jacobian and a factorization; stiff beams that turn
    need two or three evaluations and a Jacobian for each stage. The interpolant has order 4 and
    costs none. The method damps what is too fast for its steps: of an oscillation, a step that
    takes a tenth of its period takes 1.4e-6 of the amplitude, one of half a period 0.35 %, one of
    ten periods 85 %, and even longer ones nearly all.

    References
    ----------
    C. A. Kennedy, M. H. Carpenter, "Additive Runge-Kutta schemes for convection-diffusion-reaction
    equations", Appl. Numer. Math. 44, 139-181 (2003).

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.integrate import solve_ivp
    >>> def follow(t, x):
    ...     return -1e6 * (x - np.cos(t))
    >>> solution = solve_ivp(follow, (0.0, 1.0), [1.0], method=ESDIRK4, rtol=1e-6)
    >>> print(len(solution.t) < 30, (solution.y[0, -1] - np.cos(1.0)).round(6))
    True 1e-06
    """

    JACOBIANS_OF_TRIALS = True  #: one that is not finite makes the step shorter

    METHOD, TABLEAU, H = "ESDIRK4", TABLEAU, np.array(TABLEAU.H)

    _solve: Callable[[Array], Array]

    def _attempt(self, h: float) -> tuple[Array, Array, float]:
        """Return the state a step ahead, the increments of the stages, and the norm of the error.

        The norm is infinite where something is not finite.
        """
        increments = np.zeros((TABLEAU.stages, self.n))
        increments[0] = h * self.f
        y, ratio, largest = self.y, 1.0, 0.0
        for i in range(1, TABLEAU.stages):
            base = self.y + _A[i] @ increments[:i]
            guess = self.y + _G[i] @ increments[:i]
            try:
                y, ratio = self._stage(self.t + TABLEAU.alpha[i] * h, h, base, guess, ratio)
            except _NotFiniteError:
                return y, increments, math.inf
            if ratio == math.inf:
                return y, increments, FAILED_ERROR
            increments[i] = (y - base) / TABLEAU.gamma
            largest = max(largest, ratio)
        error = self._solve(1.0 / (TABLEAU.gamma * h) * (_E @ increments))
        norm = self._size(y, error)
        return y, increments, max(norm, LABORED_ERROR) if largest > RENEWING_RATIO else norm

    def _stage(
        self, t: float, h: float, base: Array, y: Array, before: float
    ) -> tuple[Array, float]:
        """Return the state of a stage, and the largest ratio of its iteration."""
        d = 1.0 / (TABLEAU.gamma * h)
        ratio, largest, size = before, 0.0, 0.0
        if before > KEEPING_RATIO:
            ratio = 1.0
            self._make_equations(t, y, d)
        for count in range(MOST_UPDATES):
            update = self._solve(self.fun(t, y) + d * (base - y))
            y = y + update
            previous, size = size, self._size(y, update)
            if not size < math.inf:
                raise _NotFiniteError
            if count == 0:
                if ratio * size < FIRST_REST:
                    return y, min(ratio, KEEPING_RATIO)
                continue
            ratio = size / previous
            largest = max(largest, ratio)
            if ratio < 1.0 and ratio * size < NEWTON_REST * (1.0 - ratio):
                return y, largest
            if ratio > DIVERGING_RATIO and count > 1:
                break
            if ratio > RENEWING_RATIO:
                self._make_equations(t, y, d)
        return y, math.inf

    def _make_equations(self, t: float, y: Array, d: float) -> None:
        """Make the linear equations of an iteration."""
        self.njev += 1
        jacobian = self.jac(t, y)
        self.nlu += 1
        solve = factorized(jacobian, d)
        if solve is None:
            raise _NotFiniteError
        self._solve = solve
