"""Rodas5P, a linearly implicit method of order 5 for stiff systems, as a solver class for SciPy.

``solve_ivp(f, (t0, t1), x0, method=Rodas5P, jac=jac)`` runs it like SciPy's own. A step solves
eight systems of linear equations with one matrix and iterates nothing: there is no convergence to
fail, and after an interruption it goes on at full order. It is L-stable and stiffly accurate.

The rules of a step, exactly, so that another implementation can take the same steps:

1. The first try is as long as the step wanted, but at least 10 spacings of floating-point numbers
   at t and at most ``max_step``. A try that would lead beyond ``t_bound`` ends there.
2. The Jacobian is evaluated once, at the beginning of the step. The derivative of f by time there
   is approximated anew for each try, within its h, by ``(4 a - b) / (2 δ)`` with
   ``a = f(t + δ, x) - f(t, x)`` and ``b = f(t + 2δ, x) - f(t, x)``, where δ is what floating-point
   numbers make of ``h / 100``, namely ``(t + h / 100) - t``. If a vanishes, the derivative does.
3. The stages are those of
   `flexure.solvers.integration.methods.tableaus.RosenbrockTableau`. A try ends with the first one
   that is not finite.
4. The norm of the error e of the new state x⁺ is the root mean square of its entries e_i divided
   by ``atol_i + rtol_i max(|x_i|, |x⁺_i|)``.
5. A try is good if the norm is below 1 and f is finite at its end. The step wanted next is ``|h|``
   times ``min(6, 0.9 norm^(-1/5))``, and times 1 at most if a try of the same step was bad.
6. After a bad try the next one is ``max(0.2, 0.9 norm^(-1/5))`` times as long; 0.2 times if a stage
   or f at the end is not finite or W is singular. The run fails when that falls below 10 spacings
   of floating-point numbers.
7. The first step wanted is what `initial_step` suggests, unless it is given.
"""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Callable
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import DenseOutput, OdeSolver
from scipy.linalg.lapack import dgetrf, dgetrs
from scipy.sparse import csc_array, eye_array
from scipy.sparse.linalg import splu

from flexure.diagrams.checks.arguments import require_that
from flexure.solvers.integration.methods.step_control import (
    LARGEST_ROSENBROCK_FACTOR,
    LEAST_FACTOR,
    SAFETY,
)
from flexure.solvers.integration.methods.tableaus import (
    RODAS5P,
    DiagonallyImplicitTableau,
    RosenbrockTableau,
)
from flexure.solvers.tracing.differences import difference_jacobian

Array = NDArray[np.float64]
RightHandSide = Callable[[float, Array], Array]
Solve = Callable[[Array], Array]

_EPSILON = float(np.finfo(float).eps)

_A, _C = (tuple(np.array(row) for row in rows) for rows in (RODAS5P.A, RODAS5P.C))


class TryingSolver(OdeSolver):
    """Base class of implicit methods: options, and repetition of a step until it is accepted.

    A method has a `METHOD` name, a `TABLEAU`, its row `H` as an array, and `_attempt`, which tries
    a step. What it keeps of a good one for its interpolant are the ``_stages``.
    """

    METHOD: ClassVar[str]
    TABLEAU: ClassVar[RosenbrockTableau | DiagonallyImplicitTableau]
    H: ClassVar[Array]

    def __init__(
        self,
        fun: RightHandSide,
        t0: float,
        y0: ArrayLike,
        t_bound: float,
        max_step: float = math.inf,
        rtol: ArrayLike = 1e-3,
        atol: ArrayLike = 1e-6,
        jac: Callable[[float, Array], Any] | None = None,
        vectorized: bool = False,
        first_step: float | None = None,
        **extraneous: object,
    ) -> None:
        if extraneous:
            names = ", ".join(sorted(extraneous))
            warnings.warn(f"{type(self).__name__} ignores the options {names}", stacklevel=3)
        super().__init__(fun, t0, np.asarray(y0, dtype=float), t_bound, vectorized)
        self.max_step = checked_step("max_step", max_step, self.METHOD)
        self.rtol = checked_tolerance("rtol", rtol, self.n, 100.0 * _EPSILON, self.METHOD)
        self.atol = checked_tolerance("atol", atol, self.n, 0.0, self.METHOD)
        self.jac = self._difference_jacobian if jac is None else jac
        self.rejected = 0
        self.f = self.fun(self.t, self.y)
        if first_step is None:
            self.h_abs = initial_step(
                self.fun,
                self.t,
                self.y,
                self.f,
                t_bound,
                order=self.TABLEAU.error_order,
                rtol=self.rtol,
                atol=self.atol,
            )
        else:
            self.h_abs = checked_step("first_step", first_step, self.METHOD)
        self._y_old = self.y
        self._stages = np.empty((0, self.n))

    def _difference_jacobian(self, t: float, x: Array) -> Array:
        """Approximate the Jacobian where no function was given for it."""
        return difference_jacobian(self.fun_single, t, x, self._slope_at(t, x))

    def _slope_at(self, t: float, x: Array) -> Array:
        """Return f where the Jacobian is approximated."""
        return self.fun(t, x)

    def _begin_tries(self) -> None:
        """Do what all tries of a step share; here that is nothing."""

    @abstractmethod
    def _attempt(self, h: float) -> tuple[Array, Array, float]:
        """Return the state a step ahead, the stages, and the norm of the error.

        The norm is infinite or NaN where something is not finite.
        """

    def _step_impl(self) -> tuple[bool, str | None]:
        """Try shorter and shorter steps until one is good, and report success."""
        t, direction = float(self.t), float(self.direction)
        shortest = 10.0 * abs(math.nextafter(t, direction * math.inf) - t)
        h_abs = min(max(self.h_abs, shortest), self.max_step)
        self._begin_tries()
        largest_factor = LARGEST_ROSENBROCK_FACTOR
        while h_abs >= shortest:
            t_new = t + direction * h_abs
            if direction * (t_new - self.t_bound) > 0.0:
                t_new = self.t_bound
            h = float(t_new - t)
            h_abs = abs(h)
            x_new, stages, norm = self._attempt(h)
            if norm < 1.0:
                f_new = self.fun(t_new, x_new)
                if np.isfinite(f_new).all():
                    self.h_abs = h_abs * min(self._factor(norm), largest_factor)
                    self._y_old, self._stages = self.y, stages
                    self.t, self.y, self.f = t_new, x_new, f_new
                    return True, None
                norm = math.inf
            self.rejected += 1
            h_abs *= self._factor(norm)
            largest_factor = 1.0
        return False, self.TOO_SMALL_STEP

    def _factor(self, norm: float) -> float:
        """Return the factor between the step that had an error of this norm and the next one."""
        if not math.isfinite(norm):
            return LEAST_FACTOR
        if norm == 0.0:
            return LARGEST_ROSENBROCK_FACTOR
        wanted = SAFETY * math.pow(norm, -1.0 / (self.TABLEAU.error_order + 1))
        return min(LARGEST_ROSENBROCK_FACTOR, max(LEAST_FACTOR, wanted))

    def _size(self, y: Array, v: Array) -> float:
        """Return the root mean square of a vector in units of what is tolerated up to a state."""
        return root_mean_square(v / (self.atol + self.rtol * np.maximum(abs(self.y), abs(y))))

    def go_on_from(self, y: Array) -> None:
        """Go on from another state than the last step has led to."""
        self.y, self.f = y, self.fun(self.t, y)

    def _dense_output_impl(self) -> DenseOutput:
        """Interpolate the last step."""
        return StageInterpolant(self, self._y_old, self.H @ self._stages)


class Rodas5P(TryingSolver):
    """Rosenbrock method Rodas5P of order 5(4) with eight stages, for stiff systems.

    Times are in seconds; ``t_bound < t0`` integrates backwards. The error of a step is kept below
    ``atol + rtol |x|``. ``jac(t, x)``, dense or sparse, should be accurate; without it, n
    evaluations per step approximate the Jacobian. ``nfev`` does not count these; there is one
    Jacobian per step and one factorization per try. ``vectorized`` is part of SciPy's protocol,
    without effect.

    A good step takes nine evaluations, and a tenth one where f depends on time explicitly; a bad
    try takes one less. The interpolant has order 4 and costs none.

    References
    ----------
    G. Steinebach, "Construction of Rosenbrock-Wanner method Rodas5P and numerical benchmarks
    within the Julia Differential Equations package", BIT Numer. Math. 63, 27 (2023).

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.integrate import solve_ivp
    >>> def follow(t, x):
    ...     return -1e6 * (x - np.cos(t))
    >>> solution = solve_ivp(follow, (0.0, 1.0), [1.0], method=Rodas5P, rtol=1e-6)
    >>> print(len(solution.t) < 20, (solution.y[0, -1] - np.cos(1.0)).round(6))
    True 1e-06
    """

    METHOD, TABLEAU, H = "Rodas5P", RODAS5P, np.array(RODAS5P.H)

    def _slope_at(self, t: float, x: Array) -> Array:
        """Return f at the beginning of the step, which is known."""
        return self.f

    def _begin_tries(self) -> None:
        """Evaluate the Jacobian, once for all tries."""
        self._jacobian = self.jac(float(self.t), self.y)
        self.njev += 1

    def _attempt(self, h: float) -> tuple[Array, Array, float]:
        """Return the state a step ahead, the stages, and the norm of the error."""
        x_new, stages = self._advance(h, self._jacobian)
        return x_new, stages, self._size(x_new, stages[-1])

    def _advance(self, h: float, jacobian: Any) -> tuple[Array, Array]:
        """Return the state a step ahead and the stages; NaN in both if the try is given up."""
        t, x, y, slope = self.t, self.y, self.y, self.f
        stages = np.full((RODAS5P.stages, self.n), np.nan)
        time_slope = self._time_slope(h)
        solve = factorized(jacobian, 1.0 / (RODAS5P.gamma * h))
        self.nlu += 1
        if solve is None:
            return stages[-1], stages
        for i, (a, c) in enumerate(zip(_A, _C, strict=True)):
            if i > 0:
                y = x + a @ stages[:i]
                slope = self.fun(t + RODAS5P.alpha[i] * h, y) + c @ stages[:i] / h
            stages[i] = solve(slope + (h * RODAS5P.gammas[i]) * time_slope)
            if not np.isfinite(stages[i]).all():
                break
        return y + stages[-1], stages

    def _time_slope(self, h: float) -> Array:
        """Approximate the derivative of f by time with differences inside of the step."""
        t, x = self.t, self.y
        distance = (t + 0.01 * h) - t
        near = self.fun(t + distance, x) - self.f
        if not near.any():
            return near
        far = self.fun(t + 2.0 * distance, x) - self.f
        slope: Array = (4.0 * near - far) / (2.0 * distance)
        return slope


class StageInterpolant(DenseOutput):
    """The polynomial of degree 4 that belongs to the stages of a step."""

    def __init__(self, solver: OdeSolver, y_old: Array, bends: Array) -> None:
        super().__init__(solver.t_old, solver.t)
        self._y_old = y_old
        self._change = solver.y - y_old
        self._bends = bends

    def _call_impl(self, t: Array) -> Array:
        s = np.asarray((t - self.t_old) / (self.t - self.t_old))[..., None]
        first, second, third = self._bends
        bend = first + s * (second + s * third)
        states: Array = self._y_old + s * (self._change + (1.0 - s) * bend)
        return states.T


def initial_step(
    fun: RightHandSide,
    t: float,
    x: Array,
    slope: Array,
    t_bound: float,
    *,
    order: int,
    rtol: ArrayLike,
    atol: ArrayLike,
) -> float:
    """Suggest a first step from the slope at the initial state and one evaluation beyond it.

    With the root mean square ``|v|`` of ``v_i / (atol_i + rtol_i |x_i|)``, these are the rules of
    SciPy's solvers::

        d0, d1 = |x|, |f(t, x)|
        h0     = 0.01 d0 / d1, or 1e-6 s if d0 or d1 is below 1e-5; at most the interval
        d2     = |f(t + h0, x + h0 f(t, x)) - f(t, x)| / h0
        h1     = (0.01 / max(d1, d2))^(1 / (order + 1)), or max(1e-6 s, h0 / 1000) if d1 and d2 are
                 below 1e-15
        h      = min(100 h0, h1); at most the interval

    ``order`` is that of the solution that serves to estimate errors. A ``d2`` that is not finite
    counts as zero. The step is 0 where h0 is, because d1 is beyond the largest number.

    References
    ----------
    E. Hairer, S. P. Nørsett, G. Wanner, "Solving Ordinary Differential Equations I", section II.4.
    """
    interval = abs(t_bound - t)
    if interval == 0.0:
        return 0.0
    tolerated = np.asarray(atol) + np.asarray(rtol) * np.abs(x)
    d0, d1 = root_mean_square(x / tolerated), root_mean_square(slope / tolerated)
    h0 = 1e-6 if d0 < 1e-5 or d1 < 1e-5 else 0.01 * d0 / d1
    h0 = min(h0, interval)
    if h0 == 0.0:  # the slope is beyond all measure, and so is any step
        return 0.0
    h = math.copysign(h0, t_bound - t)
    d2 = root_mean_square((fun(t + h, x + h * slope) - slope) / tolerated) / h0
    steepest = max(d1, d2) if math.isfinite(d2) else d1
    h1 = (0.01 / steepest) ** (1.0 / (order + 1)) if steepest > 1e-15 else max(1e-6, 1e-3 * h0)
    return min(100.0 * h0, h1, interval)


def factorized(jacobian: Any, diagonal: float) -> Solve | None:
    """Factorize ``diagonal I - jacobian`` and return what solves with it; None if singular."""
    if hasattr(jacobian, "toarray"):
        try:
            solve: Solve = splu(diagonal * _identity(jacobian.shape[0]) - csc_array(jacobian)).solve
        except RuntimeError:
            return None
        return solve
    matrix = -np.asarray(jacobian, dtype=float)
    matrix.flat[:: len(matrix) + 1] += diagonal
    factors, pivots, info = dgetrf(matrix)
    return None if info else lambda side: dgetrs(factors, pivots, side)[0]


@lru_cache(maxsize=4)
def _identity(n: int) -> csc_array:
    """Return the sparse identity matrix."""
    return eye_array(n, format="csc")


def root_mean_square(v: Array) -> float:
    """Return the root mean square of the entries of a vector."""
    return math.sqrt(v @ v) / math.sqrt(v.size)


def checked_step(name: str, value: float, method: str) -> float:
    """Return an option that is the length of a step, or refuse it."""
    attempt, found = f"Cannot integrate with {method}", f"{name}={value!r}"
    require_that(value > 0.0, attempt, f"{name} positive, in seconds", found)
    return float(value)


def checked_tolerance(name: str, value: ArrayLike, n: int, least: float, method: str) -> Array:
    """Return a tolerance as an array, or refuse it."""
    found = np.asarray(value, dtype=float)
    fits = found.shape in ((), (n,)) and np.all(found >= least)
    expected = f"{name} of at least {least:.3g}, one number or {n}"
    require_that(fits, f"Cannot integrate with {method}", expected, f"{name}={value!r}")
    return found
