"""Messages of a failed integration: the method, the time, the cause, and a way out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import OdeSolver

from flexure.diagrams.checks.errors import (
    NonFiniteError,
    NoProgressError,
    SimulationError,
    StepSizeError,
)
from flexure.diagrams.systems.system import System
from flexure.solvers.integration.guard.chattering import Jump
from flexure.solvers.integration.guard.stiffness_detection import STIFF_METHOD
from flexure.solvers.integration.methods.methods import is_fixed_step, is_implicit, method_name

Array = NDArray[np.float64]
Method = str | type[OdeSolver]


def derivative_not_finite(method: Method, t: float, x: Array, xdot: Array) -> SimulationError:
    """Name the first derivative that is NaN or infinite at a finite state."""
    i = int(np.flatnonzero(~np.isfinite(xdot))[0])
    return _failure(
        NonFiniteError,
        method,
        t,
        expected="finite derivatives",
        found=f"xdot[{i}] = {xdot[i]} where x[{i}] = {x[i]:.9g}",
        remedy="Check the equations of this state and the range in which they hold",
    )


def state_not_finite(method: Method, t: float, x: Array) -> SimulationError:
    """Name the first state that is NaN or infinite."""
    i = int(np.flatnonzero(~np.isfinite(x))[0])
    remedy = "Check whether the motion can grow without bound"
    if is_fixed_step(method):
        remedy += ", or take a smaller step"
    return _failure(
        NonFiniteError,
        method,
        t,
        expected="a finite state",
        found=f"x[{i}] = {x[i]}",
        remedy=remedy,
    )


def jacobian_not_finite(method: Method, t: float) -> SimulationError:
    """Refuse a Jacobian that is not finite although the derivatives are."""
    return _failure(
        NonFiniteError,
        method,
        t,
        expected="a finite Jacobian",
        found="NaN or infinity in it",
        remedy="Check the function jac, or use an explicit method",
    )


def step_failed(
    method: Method, solver: OdeSolver, message: str, rounding: str = ""
) -> SimulationError:
    """Say why the solver gave up a step, which state is the largest, and what rounding does."""
    too_small = message == solver.TOO_SMALL_STEP
    if is_fixed_step(method):
        expected = "a step that advances time" if too_small else "to solve the equations of a step"
        remedy = (
            "Take a larger step"
            if too_small
            else "Take a smaller step, or make steep functions in the equations smoother"
        )
    else:
        expected = "to meet rtol and atol with a step that still advances time"
        remedy = "Check the equations for a singularity near this time, or loosen rtol and atol"
        if not is_implicit(method):
            remedy += f", or use method='{STIFF_METHOD}' if they are stiff, or 'ESDIRK4' of beams"
    reason = "a step below the spacing of floating-point numbers" if too_small else message
    if rounding:
        reason, remedy = f"{reason}: {rounding}", _loosen(method)
    i = int(np.argmax(np.abs(solver.y)))
    return _failure(
        StepSizeError,
        method,
        solver.t,
        expected=expected,
        found=f"{reason}; largest is x[{i}] = {solver.y[i]:.3g}",
        remedy=remedy,
    )


def no_progress(
    method: Method, t: float, expected: str, found: str, rounding: str = ""
) -> SimulationError:
    """Say what goes on without leading anywhere, and whether that comes from rounding."""
    way_out = "loosen rtol and atol"
    if not is_implicit(method):
        way_out = f"use method='{STIFF_METHOD}', or 'ESDIRK4' of beams"
    remedy = (
        "Check the fastest state for the cause of short steps. Equations that jump need a "
        f"continuous transition or a fixed-step method. If they are stiff, {way_out}. If so many "
        "steps are meant, raise max_steps"
    )
    if rounding:
        found, remedy = f"{found}: {rounding}", _loosen(method)
    return _failure(NoProgressError, method, t, expected=expected, found=found, remedy=remedy)


def _loosen(method: Method) -> str:
    """Return what to do about rounding errors."""
    other = "" if method == STIFF_METHOD else f" use method='{STIFF_METHOD}',"
    return f"Loosen rtol and atol,{other} or write the equations with less cancellation"


def too_long_record(system: System, t: float, size: float, limit: float) -> SimulationError:
    """Say that the motion that is kept would fill the memory."""
    error = SimulationError(
        f"Cannot simulate '{system.label}' beyond t = {t:.9g} s",
        expected=f"a record of the motion of at most {limit:.3g} bytes",
        found=f"about {size:.3g}",
        remedy="Use a Simulator, which keeps no motion, and a VectorLog with a period for the "
        "signals that you need; take longer steps; or give the record more room with max_record=",
    )
    error.time = t
    return error


def chattering(method: Method, jump: Jump, what: str) -> SimulationError:
    """Say where the equations jump so that a motion cannot leave the place."""
    return _failure(
        NoProgressError,
        method,
        jump.before[0],
        expected="equations by which the motion goes on",
        found=f"chattering: {what}, and leads back to there from both sides",
        remedy="Make the transition continuous, as JointFriction does, let a witness event change "
        "to equations for sliding or sticking, or use a fixed-step method",
    )


def jump_of_derivative(jump: Jump) -> str:
    """Name the derivative that jumps."""
    (_, x, before), (_, _, after), i = jump.before, jump.after, jump.state
    return f"xdot[{i}] jumps from {before[i]:.6g} to {after[i]:.6g} where x[{i}] = {x[i]:.9g}"


def solver_broke(method: Method, t: float, error: Exception) -> SimulationError:
    """Wrap an exception out of the solver itself."""
    return _failure(
        SimulationError,
        method,
        t,
        expected=None,
        found=f"{type(error).__name__}, {error}",
        remedy="Check the equations near this time",
    )


def _failure(
    kind: type[SimulationError],
    method: Method,
    t: float,
    *,
    expected: str | None,
    found: str,
    remedy: str,
) -> SimulationError:
    """Make an error with the opening that all share."""
    error = kind(
        f"Cannot integrate past t = {t:.9g} s with {method_name(method)}",
        expected=expected,
        found=found,
        remedy=remedy,
    )
    error.time = float(t)
    return error
