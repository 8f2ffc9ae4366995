"""Messages of a failed integration: the method, the time, the cause, and a way out.

One cause, a jump of the equations at which a motion chatters, is looked for here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from flexure.diagrams.checks.errors import (
    NonFiniteError,
    NoProgressError,
    SimulationError,
    StepSizeError,
)
from flexure.diagrams.systems.system import System
from flexure.solvers.integration.guard.stiffness_detection import STIFF_METHOD
from flexure.solvers.integration.methods.methods import is_fixed_step, is_implicit, method_name
from flexure.solvers.integration.methods.rounding import rounding_errors

if TYPE_CHECKING:
    from scipy.integrate import OdeSolver

Array = NDArray[np.float64]
Point = tuple[float, Array, Array]  # time, state, derivatives

LOOKS = 16  # steps in a row ahead of which a jump is looked for
_REACH = 10.0  # steps that are looked ahead, as much as a step may grow
_HALVINGS = 40
_FIRST_GLANCE = 10  # halvings after which smooth equations are given up
_STEEPENING = 4.0  # which they then do not exceed
_STEEPER = 100.0  # by which the equations are to be steeper at the jump than on the whole line
_ROUNDING = 10.0  # times the rounding errors, up to which a jump is one of them
_LEAST_INFLUENCE = 1e-8  # of the jump on a step, in units of the tolerance


@dataclass(frozen=True, slots=True)
class Jump:
    """A jump at which a motion chatters."""

    # before, after: time, state and derivatives on both sides.
    before: Point
    after: Point
    state: int  # index of the derivative that jumps most, in units of the tolerance


def find_jump(
    rhs: Callable[[float, Array], Array], t: float, x: Array, h: float, tolerated: Array
) -> Jump | None:
    """Find a jump of ``rhs`` straight ahead that leads back to itself from both sides.

    A motion cannot leave it: an integrator goes to and fro with tiny steps. The line on which the
    motion would go on is halved where the derivatives change most. A jump stays as large as it is
    when the line gets shorter and shorter; what stiff equations do on a line, which need tiny steps
    as well, is in proportion to its length. Rounding turns smooth equations into stairs of equal
    heights; these are no jumps.

    ``t`` in seconds and ``x`` are the end of a step of length ``h``, and ``tolerated`` are the
    errors of the state. None, too, where equations refuse to be evaluated ahead of the motion.
    """
    try:
        with np.errstate(all="ignore"):
            return _jump_ahead(rhs, t, x, h, tolerated)
    except Exception:
        return None


def _jump_ahead(
    rhs: Callable[[float, Array], Array], t: float, x: Array, h: float, tolerated: Array
) -> Jump | None:

    def change(a: Point, b: Point) -> float:
        return float(np.linalg.norm((b[2] - a[2]) / tolerated))

    def ahead(point: Point, lapse: float) -> Point:
        later = point[0] + lapse
        there = point[1] + lapse * point[2]
        return later, there, np.array(rhs(later, there.copy()), dtype=float)

    here = (t, x, np.array(rhs(t, x.copy()), dtype=float))
    before, after = here, ahead(here, _REACH * h)
    whole = change(before, after)
    if not _LEAST_INFLUENCE <= _REACH * h * whole < np.inf:
        return None
    low, high, steeper = 0.0, 1.0, 1.0
    for halvings in range(1, _HALVINGS + 1):
        middle = 0.5 * (low + high)
        point = ahead(here, middle * _REACH * h)
        if change(before, point) > change(point, after):
            after, high = point, middle
        else:
            before, low = point, middle
        steeper = change(before, after) / whole / (high - low)
        if halvings == _FIRST_GLANCE and not steeper > _STEEPENING:
            return None
    beyond, back = ahead(before, h), ahead(after, h)
    leads_on = change(beyond, after) < change(beyond, before)
    leads_back = change(back, before) < change(back, after)
    if not (steeper > _STEEPER and leads_on and leads_back):
        return None
    jumps = np.abs(after[2] - before[2])
    state = int(np.argmax(jumps / tolerated))
    if jumps[state] <= _ROUNDING * rounding_errors(rhs, *before[:2], tolerated)[state]:
        return None
    return Jump(before, after, state)


Method: TypeAlias = "str | type[OdeSolver]"


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
