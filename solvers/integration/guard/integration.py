"""One run of a solver over one interval: everything between ``f(t, x)`` and `solve_ivp`.

`integrate` calls `scipy.integrate.solve_ivp` once, with a guarded subclass of the solver class of
the method. The numbers are SciPy's, bit by bit; what is added:

* every step is shown to a callback, which may look inside of it and end the run there;
* a run that cannot go on raises one of our errors, whatever the method (see `guard`);
* the next run may start with the step size with which this one ended.

The state is never empty here; a diagram without continuous state has nothing to integrate.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import BDF, DOP853, LSODA, RK23, RK45, DenseOutput, OdeSolver, Radau, solve_ivp

from flexure.diagrams.checks.errors import (
    EvaluationError,
    UnknownNameError,
    ValueRefusedError,
    suggestion,
)
from flexure.diagrams.concurrency.warnings_and_garbage import Silence
from flexure.solvers.integration.guard.failures import jump_of_derivative
from flexure.solvers.integration.guard.guard import Blame, Guard, GuardedSolver, NameJump, guarded
from flexure.solvers.integration.guard.progress_limits import Limits, Pace, carried_step
from flexure.solvers.integration.methods.fixed_step import FixedStep
from flexure.solvers.integration.methods.methods import method_name, option_names, resolve
from flexure.solvers.integration.methods.projecting import Bent, Project
from flexure.solvers.integration.methods.rosenbrock import TryingSolver

Array = NDArray[np.float64]
RightHandSide = Callable[[float, Array], Array]

# SciPy's solvers raise a smaller rtol to this by themselves; with an atol of zero no state could
# pass through zero.
_SMALLEST_RTOL = float(100 * np.finfo(float).eps)
_SMALLEST_ATOL = float(np.finfo(float).tiny)
_ARGUMENTS = {"rtol", "atol", "max_step", "first_step", "jac"}
_SINGLE_RTOL = Radau, BDF
_EMBEDDED: Any = RK23, RK45, DOP853
_ONE_STEP: Any = *_EMBEDDED, Radau, TryingSolver
_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Stop:
    """The value that a callback returns to end the run inside of a step, or at its end."""

    t: float  # where the run ends, within the step, in seconds
    x: Array  # the state there, shape (n,)


class TakenStep:
    """One good step, as the callback sees it."""

    __slots__ = ("_interpolant", "_over", "is_last", "solver", "t", "t_old", "x", "x_old")

    def __init__(self, solver: GuardedSolver, t_old: float, x_old: Array) -> None:
        self.solver = solver  # the solver, for callers that read its stages
        # t_old, t: begin and end, in seconds.
        self.t_old = t_old
        self.t = solver.t
        # x_old, x: the states there; not to be changed, shape (n,).
        self.x_old = x_old
        self.x = solver.y
        # Whether the run ends with it in any case, since the end was moved, and the method cannot
        # go on from there.
        self.is_last = False
        self._interpolant: DenseOutput | Bent | None = None
        self._over = False

    def move(self, x: Array) -> None:
        """Let the step end, and the solver go on, with another state."""
        self._interpolant = Bent(self.dense(), self.t_old, self.t, x - self.x)
        self.x = x
        self.is_last = not self.solver.move_to(x)

    def dense(self) -> DenseOutput | Bent:
        """Return the interpolant of the step, made when it is first asked for.

        It gives the state of shape (n,) at a time, or (n, k) at k times.
        """
        if self._interpolant is None:
            if self._over:
                raise EvaluationError(
                    f"Cannot interpolate the step from {self.t_old!r} s to {self.t!r} s",
                    expected="a call while the callback runs",
                    found="a solver that has moved on",
                    remedy="Call dense() inside of the callback and keep what it returns",
                )
            self._interpolant = self.solver.dense_output()
        return self._interpolant

    def end(self) -> None:
        """Note that the solver moves on."""
        self._over = True


OnStep = Callable[[TakenStep], Stop | None]


@dataclass(slots=True)
class Segment:
    """The result of a run."""

    t: Array  # initial time and the end of every step, in seconds, shape (k,)
    x: Array  # the states at these times, one per row, shape (k, n)
    # One per step if they were kept, valid between the times of the step; else empty.
    interpolants: list[DenseOutput | Bent]
    stop: Stop | None  # what ended the run before its bound
    steps: int  # number of good steps
    # Number of steps tried in vain; known for ``RK45``, ``RK23``, ``DOP853``, ``Rodas5P`` and
    # ``ESDIRK4``, and zero for fixed steps.
    rejected: int | None
    nfev: int  # evaluations of the right-hand side, those for Jacobians by differences included
    # njev, nlu: evaluations and factorizations of the Jacobian; of LSODA, since it last had to
    # begin anew.
    njev: int
    nlu: int
    # With what ``first_step`` a following run may start, in seconds. None if the method chooses
    # that better by itself (multistep methods begin anew) or has a fixed step.
    next_step: float | None


def integrate(
    rhs: RightHandSide,
    t0: float,
    x0: ArrayLike,
    t_bound: float,
    *,
    method: str | type[OdeSolver] = "RK45",
    rtol: ArrayLike = 1e-6,
    atol: ArrayLike = 1e-9,
    max_step: float = math.inf,
    first_step: float | None = None,
    options: Mapping[str, Any] | None = None,
    jac: Callable[[float, Array], Any] | None = None,
    on_step: OnStep | None = None,
    keep_dense: bool = False,
    blame: Blame | None = None,
    name_jump: NameJump = jump_of_derivative,
    t_clip: float = math.inf,
    limits: Limits = _LIMITS,
    pace: Pace | None = None,
    project: Project | None = None,
) -> Segment:
    """Integrate ``ẋ = f(t, x)`` from ``t0`` to ``t_bound`` with `scipy.integrate.solve_ivp`.

    Times and steps are in seconds. ``rhs(t, x)`` returns a new array of shape (n,) at each call and
    leaves ``x`` as it is; its exceptions pass unchanged. NumPy's floating-point warnings are off
    meanwhile: trial points where the equations overflow are part of the search of a solver, and
    what does not recover is an error.

    ``method`` is one of `flexure.solvers.integration.methods.methods.METHOD_NAMES` or a subclass of
    `OdeSolver`, with its further ``options``. The error of a step is kept below
    ``atol + rtol |x|``, except for fixed steps; Radau and BDF use the smallest entry of an array
    ``rtol``. ``first_step`` is cut to the interval and to ``max_step``; without it, the method
    estimates one by up to two evaluations. ``jac(t, x)``, dense or sparse, is for implicit methods.

    ``on_step`` is called with a `TakenStep` after each step, and returns None or a `Stop`.
    ``keep_dense`` keeps the interpolant of every step. ``blame(t, x, xdot)`` may return an error
    that names the culprit of a derivative, or, with ``xdot`` None, of a state, that is not finite;
    ``name_jump(jump)`` says what jumps where the motion chatters. ``f`` is evaluated at
    ``min(t, t_clip)``: a run that ends where the equations jump in time then sees only what they
    are before. ``limits`` say when the run is given up; ``pace`` may judge over several runs.
    ``project(t, x)`` returns the state with which to go on after a step, the same object where it
    is fine; a method that cannot go on from another state ends the run there.

    Raises `NonFiniteError` if no smaller step avoids what is not finite, `StepSizeError` if the
    step becomes too small or the equations of an implicit step cannot be solved, `NoProgressError`
    if a step does not end or steps lead nowhere, `EvaluationError` if ``rhs`` returns something
    else than n real numbers; before any evaluation, `ValueRefusedError` or `UnknownNameError` for
    an argument.

    Examples
    --------
    >>> segment = integrate(lambda t, x: -x, 0.0, [1.0], 1.0, rtol=1e-8)
    >>> print(segment.t[-1], segment.x[-1])
    1.0 [0.3678794]
    """
    solver_class = resolve(method)
    known = option_names(solver_class)
    state = _checked_state(x0)
    _check_times(t0, t_bound, max_step, first_step)
    given = _checked_options(method, known, options, max_step)
    for name, value in (
        ("rtol", _checked_rtol(rtol, state.size, solver_class)),
        ("atol", _checked_tolerance("atol", atol, state.size, _SMALLEST_ATOL)),
        ("max_step", max_step),
        ("first_step", first_step and min(first_step, max_step, t_bound - t0)),
    ):
        if name in known:
            given[name] = value
    if t_bound == t0:
        return Segment(np.array([float(t0)]), state[None], [], None, 0, 0, 0, 0, 0, first_step)

    run = _Integration(on_step, keep_dense, project)
    guard = Guard(
        rhs,
        state.size,
        method,
        accepted=run.accepted,
        pace=pace or Pace(t0, t_bound, limits, deliberate=given.get("step") or max_step),
        limits=limits,
        blame=blame,
        name_jump=name_jump,
        tolerances=(given.get("rtol", 1e-6), given.get("atol", 1e-9)),
        t_clip=t_clip,
    )
    if jac is not None and "jac" in known:
        given["jac"] = guard.jacobian(jac, dense=issubclass(solver_class, LSODA))
    solve: Any = solve_ivp  # its stub knows the options of SciPy's own methods only
    with _quiet(solver_class):
        solution = solve(
            guard.rhs, (t0, t_bound), state, method=guarded(solver_class), guard=guard, **given
        )
    return Segment(
        t=solution["t"],
        x=solution["y"].T,
        interpolants=run.interpolants,
        stop=run.stop,
        steps=run.steps,
        rejected=run.rejected,
        nfev=guard.count,
        njev=solution["njev"],
        nlu=solution["nlu"],
        next_step=run.next_step(t_bound, first_step),
    )


class _Integration:
    """What is gathered while the solver goes on."""

    def __init__(self, on_step: OnStep | None, keep_dense: bool, project: Project | None) -> None:
        self.steps = 0
        self.rejected: int | None = 0
        self.stop: Stop | None = None
        self.interpolants: list[DenseOutput | Bent] = []
        self._on_step = on_step
        self._keep_dense = keep_dense
        self._project = project
        self._solver: Any = None
        self._t = math.nan

    def accepted(self, solver: GuardedSolver, t_old: float, x_old: Array) -> None:
        """Count a good step, show it to the callback, and end the run if that says so."""
        self._solver, self._t = solver, solver.t
        self.steps += 1
        self._count_rejections(solver)
        if self._on_step is None and not self._keep_dense and self._project is None:
            return
        step = TakenStep(solver, t_old, x_old)
        if self._project is not None:
            x = self._project(step.t, step.x)
            if x is not step.x:
                step.move(x)
        if self._keep_dense:
            self.interpolants.append(step.dense())
        stop = self._on_step(step) if self._on_step is not None else None
        step.end()
        if stop is None and step.is_last:
            stop = Stop(step.t, step.x)
        if stop is not None:
            _check_stop(stop, step)
            self.stop = stop
            solver.t, solver.y = float(stop.t), np.array(stop.x, dtype=float)
            solver.status = "finished"

    def _count_rejections(self, solver: Any) -> None:
        if isinstance(solver, _EMBEDDED) and self.rejected is not None:
            tries = (solver.nfev - solver.evaluations_before) // solver.n_stages
            self.rejected += tries - 1
        elif isinstance(solver, TryingSolver):
            self.rejected = solver.rejected
        elif not isinstance(solver, FixedStep):
            self.rejected = None

    def next_step(self, t_bound: float, first_step: float | None) -> float | None:
        """Return with which step a following run may start, None where the method knows better."""
        solver = self._solver
        if not isinstance(solver, _ONE_STEP):
            return None
        return float(
            carried_step(
                solver.h_abs,
                solver.h_wanted,
                first_step or 0.0,
                self.steps,
                begin=solver.t_old,
                end=self._t,
                stop=t_bound,
            )
        )


_lsoda = Silence("lsoda")  # which announces a failure by a warning


def _quiet(solver: type[OdeSolver]) -> AbstractContextManager[Any]:
    """Silence the warnings that come before what is an error anyway."""
    numbers = np.errstate(over="ignore", divide="ignore", invalid="ignore")
    return _quiet_lsoda(numbers) if issubclass(solver, LSODA) else numbers


@contextmanager
def _quiet_lsoda(numbers: AbstractContextManager[Any]) -> Iterator[None]:
    """Silence LSODA too."""
    with numbers, _lsoda:
        yield


def _check_stop(stop: Stop, step: TakenStep) -> None:
    """Refuse an end that is not inside of the step."""
    if not (step.t_old < stop.t <= step.t and np.shape(stop.x) == step.x.shape):
        raise ValueRefusedError(
            "Cannot end a run inside of a step",
            expected=f"a time in ({step.t_old!r}, {step.t!r}] and {step.x.size} states",
            found=f"t = {stop.t!r} and a state of shape {np.shape(stop.x)}",
        )


def _checked_state(x0: ArrayLike) -> Array:
    """Copy the initial state, or refuse it."""
    state = _real_numbers(x0)
    if state.ndim != 1 or state.size == 0 or not np.isfinite(state).all():
        raise ValueRefusedError(
            "Cannot start an integration",
            expected="an initial state of one or more finite numbers",
            found=reprlib.repr(x0),
        )
    return state


def _check_times(t0: float, t_bound: float, max_step: float, first_step: float | None) -> None:
    """Refuse an interval or a step that makes no sense."""
    if not (math.isfinite(t0) and math.isfinite(t_bound) and t_bound >= t0):
        raise ValueRefusedError(
            "Cannot integrate over this interval",
            expected="finite times, the later one last",
            found=f"{t0!r} to {t_bound!r}",
        )
    for name, value in (("max_step", max_step), ("first_step", first_step)):
        if value is not None and not value > 0.0:
            raise ValueRefusedError(
                f"Cannot use {name}", expected="a positive number of seconds", found=repr(value)
            )


def _checked_options(
    method: str | type[OdeSolver],
    known: frozenset[str],
    options: Mapping[str, Any] | None,
    max_step: float,
) -> dict[str, Any]:
    """Copy the options of a method; refuse those that it would ignore."""
    given = dict(options or {})
    for name in given:
        if name not in known - _ARGUMENTS:
            raise UnknownNameError(
                f"Cannot pass the option {name!r} to {method_name(method)}",
                remedy=suggestion(name, sorted(known - _ARGUMENTS)),
            )
    step = given.get("step")
    if isinstance(step, float | int) and step > max_step:
        raise ValueRefusedError(
            f"Cannot integrate with {method_name(method)}",
            expected=f"a fixed step of at most max_step={max_step!r} s",
            found=f"step={step!r}",
            remedy="Change one of the two",
        )
    return given


def _checked_rtol(rtol: ArrayLike, n: int, solver: type[OdeSolver]) -> float | Array:
    """Convert the relative tolerance; Radau and BDF know only one for all states."""
    checked = _checked_tolerance("rtol", rtol, n, _SMALLEST_RTOL)
    if isinstance(checked, np.ndarray) and issubclass(solver, _SINGLE_RTOL):
        return float(checked.min())
    return checked


def _checked_tolerance(name: str, value: ArrayLike, n: int, least: float) -> float | Array:
    """Convert a tolerance to a number or an array, or refuse it."""
    if type(value) is float and least <= value < math.inf:
        return value
    found = _real_numbers(value)
    if found.shape not in ((), (n,)) or not np.all((found >= least) & np.isfinite(found)):
        raise ValueRefusedError(
            f"Cannot integrate {n} states with this {name}",
            expected=f"a number of at least {least:.3g}, or one for each state",
            found=reprlib.repr(value),
        )
    return found if found.shape else float(found)


def _real_numbers(value: ArrayLike) -> Array:
    """Convert real numbers to an array, and anything else to an array of a shape never accepted."""
    try:
        found = np.asarray(value)
    except ValueError:  # rows of different lengths
        found = np.asarray(None)
    return found.astype(float) if found.dtype.kind in "iuf" else np.empty((0, 0))
