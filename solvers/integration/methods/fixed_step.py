"""Fixed-step solvers as subclasses of `scipy.integrate.OdeSolver`.

``solve_ivp(f, (t0, t1), x0, method=RungeKutta4, step=1e-3)`` runs them like SciPy's own. They
control no error: the step is the user's choice, and halving it is the only check of accuracy.

Every solver here takes the same grid. A step from ``t`` ends at ``t + h``, computed by that one
addition, and is as long as the floating-point numbers are apart. The last one ends at ``t_bound``
exactly. For that it may be shorter, or longer by the fraction ``stretch`` of ``h``, so that
rounding errors leave no sliver of a step behind.

====================  =====  =======================  ==========================================
solver                order  evaluations per step     interpolant inside a step
====================  =====  =======================  ==========================================
`ExplicitEuler`       1      1                        straight line, the method's own
`SemiExplicitEuler`   1      2                        cubic through states and slopes
`RungeKutta2`         2      2                        cubic through states and slopes
`RungeKutta4`         4      4                        cubic through states and slopes
`ImplicitEuler`       1      1 per Newton iteration,  straight line, which cannot overshoot where
                             n per Jacobian           the slopes at the ends are steep
`GeneralizedAlpha`    2      the same                 cubic through states and its own slopes
====================  =====  =======================  ==========================================
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import DenseOutput, OdeSolver

from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.solvers.tracing.differences import difference_jacobian

Array = NDArray[np.float64]
RightHandSide = Callable[[float, Array], Array]


class FixedStep(OdeSolver):
    """Base of the fixed-step solvers: the grid, the slope at the start of a step, interpolation.

    A subclass implements `_advance`.

    A subclass implements `_advance`. Times are in seconds; ``t_bound < t0`` integrates backwards.
    In order to end at ``t_bound``, the last step may be longer by the fraction ``stretch`` of
    ``step``.
    """

    def __init__(
        self,
        fun: RightHandSide,
        t0: float,
        y0: ArrayLike,
        t_bound: float,
        step: float | None = None,
        stretch: float = 0.01,
        vectorized: bool = False,
        **extraneous: object,
    ) -> None:
        if extraneous:
            names = ", ".join(sorted(extraneous))
            warnings.warn(f"{type(self).__name__} ignores the options {names}", stacklevel=3)
        if step is None or not (math.isfinite(step) and step > 0.0):
            raise ValueRefusedError(
                f"Cannot integrate with {type(self).__name__}",
                expected="a positive step in seconds",
                found=f"step={step!r}",
                remedy="Pass the option step, e.g. 1e-3",
            )
        if not (math.isfinite(stretch) and stretch >= 0.0):
            raise ValueRefusedError(
                f"Cannot integrate with {type(self).__name__}",
                expected="a stretch of 0 or more",
                found=f"stretch={stretch!r}",
            )
        super().__init__(fun, t0, np.asarray(y0, dtype=float), t_bound, vectorized)
        self._h = float(self.direction * step)
        self._longest = self._h * (1.0 + stretch)
        self._y_old = self.y
        self._slope: Array | None = None
        self._slope_old: Array | None = None

    def _slope_here(self) -> Array:
        """Return the slope at the present time, evaluated when it is first needed."""
        if self._slope is None:
            self._slope = self.fun(self.t, self.y)
        return self._slope

    def _step_impl(self) -> tuple[bool, str | None]:
        """Advance by one step of the grid, and report success."""
        t, t_new = self.t, self.t + self._h
        if self.direction * (t + self._longest - self.t_bound) >= 0.0:
            t_new = self.t_bound
        if t_new == t:
            return False, self.TOO_SMALL_STEP
        h = t_new - t  # what time advances by; far from zero that is not quite the step
        y_new = self._advance(t_new, h)
        if y_new is None:
            return False, f"no convergence of Newton's iteration with a step of {abs(h):.3g} s"
        self._y_old, self._slope_old, self._slope = self.y, self._slope, None
        self.t, self.y = t_new, y_new
        return True, None

    def _advance(self, t_new: float, h: float) -> Array | None:
        """Return the state at ``t_new``, a step h ahead, or None if it cannot be found."""
        raise NotImplementedError

    def go_on_from(self, y: Array) -> None:
        """Go on from another state than the last step has led to."""
        self.y, self._slope = y, None

    def _dense_output_impl(self) -> DenseOutput:
        """Interpolate the last step."""
        if self._slope_old is None:
            return _Line(self)
        return _Cubic(self, self._slope_old, self._slope_here())


class ExplicitEuler(FixedStep):
    """Explicit Euler, ``y⁺ = y + h f(t, y)``, of order 1.

    Parameters are those of `FixedStep`.
    """

    def _advance(self, t_new: float, h: float) -> Array:
        return self.y + h * self._slope_here()

    def _dense_output_impl(self) -> DenseOutput:
        return _Line(self)


class SemiExplicitEuler(FixedStep):
    """Semi-explicit (symplectic) Euler, of order 1.

    Velocities v and the other states z move first, positions q follow with what they became::

        v⁺ = v + h v̇(t, q, v, z)        z⁺ = z + h ż(t, q, v, z)
        q⁺ = q + h q̇(t, q, v⁺, z⁺)

    The energy of a conservative mechanical system then oscillates instead of drifting, as long as
    the step resolves every oscillation (``h ω < 2``).

    ``positions`` are the indices of the states that are positions q. There may be none.
    """

    def __init__(
        self,
        fun: RightHandSide,
        t0: float,
        y0: ArrayLike,
        t_bound: float,
        positions: ArrayLike | None = None,
        **options: Any,
    ) -> None:
        super().__init__(fun, t0, y0, t_bound, **options)
        self._positions = _checked_positions(positions, self.n)

    def _advance(self, t_new: float, h: float) -> Array:
        q = self._positions
        y_new = self.y + h * self._slope_here()
        y_new[q] = self.y[q]
        y_new[q] += h * self.fun(self.t, y_new.copy())[q]
        return y_new


class RungeKutta2(FixedStep):
    """Heun's method (explicit trapezoid), of order 2.

    ``y⁺ = y + h/2 (k1 + k2)`` with ``k1 = f(t, y)`` and ``k2 = f(t + h, y + h k1)``.

    Parameters are those of `FixedStep`.
    """

    def _advance(self, t_new: float, h: float) -> Array:
        k1 = self._slope_here()
        k2 = self.fun(t_new, self.y + h * k1)
        return self.y + 0.5 * h * (k1 + k2)


class RungeKutta4(FixedStep):
    """The classical Runge-Kutta method, of order 4.

    ``y⁺ = y + h/6 (k1 + 2 k2 + 2 k3 + k4)`` with two slopes at the middle of the step.

    Parameters are those of `FixedStep`.
    """

    def _advance(self, t_new: float, h: float) -> Array:
        y, middle = self.y, self.t + 0.5 * h
        k1 = self._slope_here()
        k2 = self.fun(middle, y + 0.5 * h * k1)
        k3 = self.fun(middle, y + 0.5 * h * k2)
        k4 = self.fun(t_new, y + h * k3)
        return y + h / 6.0 * (k1 + 2.0 * (k2 + k3) + k4)


class ImplicitEuler(FixedStep):
    """Implicit Euler, ``y⁺ = y + h f(t + h, y⁺)``, of order 1; damps every fast mode.

    Newton's iteration starts from ``y``. It keeps a Jacobian, even from step to step, as long as
    every update is ten times smaller than the one before. With a new Jacobian, an update after
    which the next one would not be smaller is halved until it is; steep friction makes that
    necessary. The step fails when 30 halvings do not suffice, or after 50 updates.

    ``jac(t, y)`` may be dense or sparse; differences replace it. The iteration ends with an update
    of at most ``newton_atol + newton_rtol |y|`` in every state.
    """

    def __init__(
        self,
        fun: RightHandSide,
        t0: float,
        y0: ArrayLike,
        t_bound: float,
        jac: Callable[[float, Array], Any] | None = None,
        newton_rtol: float = 1e-10,
        newton_atol: float = 1e-12,
        **options: Any,
    ) -> None:
        super().__init__(fun, t0, y0, t_bound, **options)
        self._jac = jac
        self._rtol, self._atol = newton_rtol, newton_atol
        self._jacobian: Array | None = None

    def _advance(self, t_new: float, h: float) -> Array | None:
        return self._solution(t_new, h, self.y)

    def _solution(self, t_new: float, h: float, start: Array) -> Array | None:
        """Return the solution of y⁺ = start + h f(t_new, y⁺) by iterations from ``self.y``."""
        y, slope = self.y, self.fun(t_new, self.y)
        residual = y - start - h * slope
        for _ in range(_MAX_UPDATES):
            renewed = self._jacobian is None
            if self._jacobian is None:
                self._jacobian = self._new_jacobian(t_new, y, slope)
            update = self._newton_update(self._jacobian, h, residual)
            if update is None:
                return None
            weights = self._atol + self._rtol * np.abs(y)
            if np.all(np.abs(update) <= weights):
                return y + update
            for fraction in _FRACTIONS if renewed else _WHOLE:
                trial = y + fraction * update
                trial_slope = self.fun(t_new, trial)
                trial_residual = trial - start - h * trial_slope
                following = self._newton_update(self._jacobian, h, trial_residual)
                ratio = _norm(following, weights) / _norm(update, weights)
                if ratio < (1.0 if renewed else _GOOD_RATIO):
                    y, slope, residual = trial, trial_slope, trial_residual
                    break
            else:
                if renewed:
                    return None
            if not ratio < _GOOD_RATIO:
                self._jacobian = None
        return None

    def _new_jacobian(self, t: float, y: Array, slope: Array) -> Array:
        """Evaluate the Jacobian as a dense matrix."""
        self.njev += 1
        if self._jac is None:
            return difference_jacobian(self.fun_single, t, y, slope)
        jacobian = self._jac(t, y)
        dense = jacobian.toarray() if hasattr(jacobian, "toarray") else jacobian
        return np.asarray(dense, dtype=float)

    def _newton_update(self, jacobian: Array, h: float, residual: Array) -> Array | None:
        """Solve for the change of ``y⁺`` that would make the residual vanish, if there is one."""
        self.nlu += 1
        try:
            update = np.linalg.solve(np.eye(self.n) - h * jacobian, -residual).astype(float)
        except np.linalg.LinAlgError:
            return None
        return update if np.isfinite(update).all() else None


class GeneralizedAlpha(ImplicitEuler):
    """The generalized-α method, of order 2, with the damping of fast modes as an option.

    Beside the state y it carries a slope ẏ, which is f(t, y) at the start. A step solves ::

        ẏ + α_m (ẏ⁺ - ẏ) = f(t + α_f h, y + α_f (y⁺ - y)),  y⁺ = y + h (ẏ + γ (ẏ⁺ - ẏ))
        α_m = (3 - ρ)/(2 (1 + ρ)),  α_f = 1/(1 + ρ),  γ = 1/2 + α_m - α_f

    Modes that are much slower than a step keep their amplitude to order 2, and of those that are
    much faster each step leaves the part ρ: all of it for ρ = 1, where the method is the midpoint
    rule, and nothing for ρ = 0, where it is BDF2. It is stable for any step in between. Newton's
    iteration is that of `ImplicitEuler`.

    ``rho_inf`` is the factor ρ, from 0 to 1.

    References
    ----------
    J. Chung, G. M. Hulbert, "A time integration algorithm for structural dynamics with improved
    numerical dissipation: the generalized-α method", J. Appl. Mech. 60, 371-375 (1993);
    K. E. Jansen, C. H. Whiting, G. M. Hulbert, "A generalized-α method for integrating the filtered
    Navier-Stokes equations with a stabilized finite element method", Comput. Methods Appl. Mech.
    Eng. 190, 305-319 (2000), which has the form for equations of first order.
    """

    def __init__(
        self,
        fun: RightHandSide,
        t0: float,
        y0: ArrayLike,
        t_bound: float,
        rho_inf: float = 0.8,
        **options: Any,
    ) -> None:
        super().__init__(fun, t0, y0, t_bound, **options)
        if not 0.0 <= rho_inf <= 1.0:
            raise ValueRefusedError(
                "Cannot integrate with GeneralizedAlpha",
                expected="a factor rho_inf from 0 to 1",
                found=f"rho_inf={rho_inf!r}",
                remedy="Pass 1.0 for no damping of fast modes, and 0.0 for all",
            )
        self._alpha_m = 0.5 * (3.0 - rho_inf) / (1.0 + rho_inf)
        self._alpha_f = 1.0 / (1.0 + rho_inf)
        self._gamma = 0.5 + self._alpha_m - self._alpha_f
        self._carried: Array | None = None
        self._carried_old: Array | None = None

    def _advance(self, t_new: float, h: float) -> Array | None:
        carried = self._slope_here() if self._carried is None else self._carried
        y, share = self.y, self._gamma / self._alpha_m
        # Of the state in between, s = y + α_f (y⁺ - y), which is a step of implicit Euler.
        start = y + self._alpha_f * h * (1.0 - share) * carried
        found = self._solution(self.t + self._alpha_f * h, self._alpha_f * share * h, start)
        if found is None:
            return None
        change = (found - y) / self._alpha_f
        self._carried_old = carried
        self._carried = carried + (change / h - carried) / self._gamma
        return np.asarray(y + change)

    def _dense_output_impl(self) -> DenseOutput:
        assert self._carried_old is not None  # a step has been taken
        assert self._carried is not None
        return _Cubic(self, self._carried_old, self._carried)


_MAX_UPDATES = 50
_GOOD_RATIO = 0.1
_WHOLE = (1.0,)
_FRACTIONS = tuple(0.5**halvings for halvings in range(31))


def _norm(update: Array | None, weights: Array) -> float:
    """Length of an update in units of what is small; infinite if there is none."""
    if update is None:
        return np.inf
    weighted = update / weights
    return float(np.sqrt(weighted @ weighted))


def _checked_positions(positions: ArrayLike | None, n: int) -> NDArray[np.intp]:
    """Convert the option ``positions``, or refuse it."""
    found = np.asarray([-1] if positions is None else positions)
    if found.size == 0:
        return np.empty(0, dtype=np.intp)
    proper = found.ndim == 1 and np.issubdtype(found.dtype, np.integer)
    if not (proper and set(found) <= set(range(n)) and len(set(found)) == found.size):
        raise ValueRefusedError(
            "Cannot integrate with SemiExplicitEuler",
            expected=f"different indices from 0 to {n - 1} of the states that are positions",
            found=f"positions={positions!r}",
            remedy="Pass the option positions, e.g. [0, 1]",
        )
    return found.astype(np.intp)


class _Line(DenseOutput):
    """The straight line through the states at both ends of a step."""

    def __init__(self, solver: FixedStep) -> None:
        super().__init__(solver.t_old, solver.t)
        self._y_old = solver._y_old
        self._change = solver.y - solver._y_old

    def _call_impl(self, t: Array) -> Array:
        s = (t - self.t_old) / (self.t - self.t_old)
        return (self._y_old + np.multiply.outer(s, self._change)).T


class _Cubic(DenseOutput):
    """The cubic through the states at both ends of a step, with given slopes there."""

    def __init__(self, solver: FixedStep, slope_old: Array, slope: Array) -> None:
        super().__init__(solver.t_old, solver.t)
        h = self.t - self.t_old
        change = solver.y - solver._y_old
        # Coefficients of s, s², s³ in powers of the fraction s of the step.
        linear = h * slope_old
        cubic = h * (slope_old + slope) - 2.0 * change
        self._y_old = solver._y_old
        self._coefficients = np.stack([linear, change - linear - cubic, cubic])

    def _call_impl(self, t: Array) -> Array:
        s = (t - self.t_old) / (self.t - self.t_old)
        powers = np.stack([s, s**2, s**3], axis=-1)
        return (self._y_old + powers @ self._coefficients).T
