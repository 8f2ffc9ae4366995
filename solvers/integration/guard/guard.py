"""The guard around a solver: every run ends, with finite numbers or with an error.

SciPy's solvers trust the right-hand side. Handed a NaN they return it as a success, spin for ever,
or raise from inside LAPACK, depending on the method. `guarded` derives, from any solver class, one
that a `Guard` watches:

* An adaptive method may try a point outside of the domain of the equations, where they give NaN or
  raise an `EvaluationError`, and come back with a smaller step. Only a step that fails for it, or a
  state that is not finite, is an error.
* The evaluations within one step are bounded, and the progress of time is judged.
* Other exceptions of the right-hand side pass unchanged; those of the solver are turned into ours.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import BDF, DOP853, LSODA, RK23, RK45, OdeSolver, Radau

from flexure.diagrams.checks.errors import (
    EvaluationError,
    FlexureError,
    SimulationError,
    ValueRefusedError,
)
from flexure.solvers.integration.guard import failures
from flexure.solvers.integration.guard.failures import Jump, find_jump
from flexure.solvers.integration.guard.progress_limits import Limits, Pace
from flexure.solvers.integration.methods.methods import method_name
from flexure.solvers.integration.methods.rounding import rounding_errors, shortened_by_rounding
from flexure.solvers.tracing.differences import without_jumps

Array = NDArray[np.float64]
RightHandSide = Callable[[float, Array], Array]
Blame = Callable[[float, Array, Array | None], Exception | None]
NameJump = Callable[[Jump], str]
Accepted = Callable[["GuardedSolver", float, Array], None]

_FLOAT = np.dtype(float)
_EVALUATIONS_PER_STATE = 200
_CREEPING = 1e-9  # of the longest step with a refusal, of one before what is refused for good
_RECENT = 60  # steps before one that fails
_LOST = 1e-6  # rounding errors of rates, relative to them, from which on they may be the cause
_SELDOM = 10  # steps without a refusal, after which the next one has nothing to do with it
_SOLVING: Any = Radau, BDF  # of SciPy, by factors that it computes only of finite numbers
_WITH_SLOPE: Any = RK23, RK45, DOP853, Radau
_HISTORY = 20  # where LSODA keeps the last state, and behind it its differences
_TINY = 1e-140  # seconds, whose square is zero


class Guard:
    """Watches one run of one solver.

    After every good step it calls ``accepted(solver, t_old, x_old)``. ``blame(t, x, xdot)`` may
    return a better error for a derivative that is not finite, or, with ``xdot`` None, for a state
    that is not finite; ``name_jump(jump)`` says in errors what jumps. ``tolerances`` are the
    relative and absolute ones. The right-hand side is evaluated no later than at ``t_clip``, in
    seconds.
    """

    def __init__(
        self,
        rhs: RightHandSide,
        n: int,
        method: str | type[OdeSolver],
        *,
        accepted: Accepted,
        pace: Pace,
        limits: Limits,
        blame: Blame | None,
        name_jump: NameJump,
        tolerances: tuple[Any, Any],
        t_clip: float,
    ) -> None:
        self.count = 0  # evaluations so far, those for Jacobians by differences included
        # Whether the solver wants to see a trial that is not finite as a `TrialFailed`.
        self.retries = False
        self.accepted = accepted
        self._rhs = rhs
        self._t_clip = t_clip
        self._shape = (n,)
        self._zeros = np.zeros(n)
        self._method = method
        self._pace = pace
        self._blame = blame
        self._name_jump = name_jump
        self._rtol, self._atol = tolerances
        self._allowance = limits.evaluations_per_step + _EVALUATIONS_PER_STATE * n
        self._ceiling = self._allowance
        self._foreign: BaseException | None = None
        self._refusal: EvaluationError | None = None  # that the equations raise within the step
        self._recent: deque[float] = deque(maxlen=_RECENT)  # lengths of steps, in s
        self._steps_since, self._widest = 0, 0.0  # since then, and the longest of such steps, in s
        self._trial: tuple[float, Array, Array] | None = None  # t, x, xdot with xdot not finite
        self._refused: tuple[float, Array, Array] | None = None  # the last one of any step

    def rhs(self, t: float, x: Array) -> Array:
        """Evaluate the right-hand side: what the solver sees."""
        self.count += 1
        if self.count > self._ceiling:
            self._give_up_step(t, x)
        if t > self._t_clip:
            t = self._t_clip
        try:
            xdot = self._rhs(t, x)
        except EvaluationError as error:  # as compiled equations give NaN there
            self._refusal = error
            xdot = self._zeros * np.nan
        except BaseException as error:
            self._foreign = error
            raise
        if type(xdot) is not np.ndarray or xdot.dtype is not _FLOAT or xdot.shape != self._shape:
            xdot = self._converted(t, xdot)
        # Zero times NaN or infinity is NaN: the cheapest test that all entries are finite.
        if xdot.dot(self._zeros) != 0.0:
            self._note(t, x, xdot)
            return self._zeros * np.nan  # solvers cope with NaN better than with infinity
        return xdot

    def jacobian(self, jac: Callable[[float, Array], Any], *, dense: bool) -> Callable[..., Any]:
        """Wrap a Jacobian function in the same way."""

        def watched(t: float, x: Array) -> Any:
            try:
                matrix = jac(min(t, self._t_clip), x)
            except BaseException as error:
                self._foreign = error
                raise
            return matrix.toarray() if dense and hasattr(matrix, "toarray") else matrix

        return watched

    def without_jumps(self, jacobian: Array, t: float, x: Array) -> Array:
        """Replace what jumps of the equations have made of a Jacobian by differences."""
        return without_jumps(self.rhs, jacobian, t, x, self._atol + self._rtol * np.abs(x))

    def begin_step(self) -> None:
        """Allow the next step its number of evaluations."""
        self._ceiling = self.count + self._allowance
        self._trial = self._refusal = None

    def end_step(self, solver: OdeSolver, t_old: float, message: str | None) -> None:
        """Raise unless the step succeeded, is finite, and advances the run."""
        if solver.status == "failed":
            if self._trial is not None:
                raise self._not_finite(solver.t, solver.y)
            rounding = self._rounding_of_lost_digits(solver)
            reason = message or "no reason given"
            raise failures.step_failed(self._method, solver, reason, rounding)
        if solver.y.dot(self._zeros) != 0.0:
            raise self._not_finite(solver.t, solver.y)
        if self._trial is not None and not _is_finite(getattr(solver, "f", None)):
            raise self._not_finite(solver.t, solver.y)
        self._recent.append(float(solver.t - t_old))
        self._look_for_creeping(solver, float(solver.t - t_old))
        lack = self._pace.count(solver.t)
        if self._pace.looks or lack is not None:
            self._look_for_chattering(float(solver.t), solver.y, float(solver.t - t_old))
        if lack is not None:
            if self._refused is not None and self._refused[0] >= solver.t:
                self._trial = self._refused  # what lies ahead is refused, and steps creep up to it
            if self._trial is not None:
                raise self._not_finite(solver.t, solver.y)
            rounding = self._rounding(solver, float(solver.t - t_old))
            raise failures.no_progress(self._method, solver.t, "to reach the end", lack, rounding)

    def _rounding(self, solver: OdeSolver, h: float) -> str:
        """Say whether rounding errors shorten steps of some length, or those that are needed."""
        t, x = float(solver.t), solver.y
        h = max(h, self._pace.needed(t))
        return shortened_by_rounding(self._clipped, t, x, h, self._tolerated(x), solver)

    def _rounding_of_lost_digits(self, solver: OdeSolver) -> str:
        """Say by how much rounding errors shorten steps as they were, if few digits are left."""
        t, x, tolerated = float(solver.t), solver.y, self._tolerated(solver.y)
        try:
            with np.errstate(all="ignore"):
                errors = rounding_errors(self._clipped, t, x, tolerated) / tolerated
                rates = self._clipped(t, x.copy()) / tolerated
                lost = bool(np.linalg.norm(errors) > _LOST * np.linalg.norm(rates))
        except Exception:
            return ""
        return self._rounding(solver, max(self._recent, default=0.0)) if lost else ""

    def _look_for_creeping(self, solver: OdeSolver, h: float) -> None:
        """Raise where steps become shorter and shorter since the equations refuse what is ahead."""
        self._steps_since = 0 if self._refusal is not None else self._steps_since + 1
        if self._steps_since > _SELDOM:
            self._widest = 0.0
        if self._refusal is None:
            return
        self._widest = max(self._widest, h)
        if h < _CREEPING * self._widest:
            raise self._not_finite(solver.t, solver.y)

    def _look_for_chattering(self, t: float, x: Array, h: float) -> None:
        """Raise where the motion goes to and fro at a jump of the equations."""
        self._pace.note_look()
        jump = find_jump(self._clipped, t, x, h, self._tolerated(x))
        if jump is not None:
            raise failures.chattering(self._method, jump, self._name_jump(jump))

    def _clipped(self, t: float, x: Array) -> Array:
        """Evaluate the equations, of before the end where that is beyond it."""
        return self._rhs(min(t, self._t_clip), x)

    def _tolerated(self, x: Array) -> Array:
        """Return the errors of a state that are tolerated."""
        tolerated: Array = self._atol + self._rtol * np.abs(x)
        return tolerated

    def begin_aside(self) -> None:
        """Forget the trials of the step: from here on, only those beside its stages count."""
        self._trial = None

    def end_aside(self, solver: OdeSolver) -> None:
        """Raise if an evaluation beside the stages of the step was not finite."""
        if self._trial is not None:
            raise self._not_finite(solver.t, solver.y)

    def refuse_jacobian(self, solver: OdeSolver) -> None:
        """Raise for a first Jacobian that is not finite."""
        if self._trial is not None:
            raise self._not_finite(solver.t, solver.y)
        raise failures.jacobian_not_finite(self._method, solver.t)

    def explain(self, error: Exception, solver: OdeSolver, t: float | None) -> None:
        """Turn an exception of the solver into one of ours; return if it is not the solver's.

        The time is None while the solver is being set up.
        """
        if error is self._foreign or isinstance(error, FlexureError):
            return
        if self._trial is not None:
            cause = None if isinstance(error, TrialFailed) else error
            raise self._not_finite(*self._trial[:2]) from cause
        if t is None:
            raise ValueRefusedError(
                f"Cannot set up the integration method {method_name(self._method)}",
                found=f"{type(error).__name__}, {error}",
                remedy="Check the options of the method, and whether the state and its "
                "derivatives are of a sensible size",
            ) from error
        if isinstance(solver, _SOLVING) and isinstance(error, ValueError | np.linalg.LinAlgError):
            message = "numbers too large for the linear equations of a step"
            raise failures.step_failed(self._method, solver, message) from error
        raise failures.solver_broke(self._method, t, error) from error

    def _give_up_step(self, t: float, x: Array) -> NoReturn:
        """Raise for a step that takes too many evaluations."""
        if self._trial is not None:
            raise self._not_finite(t, x)
        found = f"{self._allowance} evaluations of the right-hand side within it"
        raise failures.no_progress(self._method, t, "to end a step", found)

    def _note(self, t: float, x: Array, xdot: Array) -> None:
        """Remember a trial that is not finite; the sequels of one at a finite state tell less."""
        if self._trial is None or _is_finite(x):
            self._trial = self._refused = float(t), x.copy(), xdot.copy()
        if self.count == 1:  # at the initial state, which no smaller step can avoid
            raise self._not_finite(t, x)
        if self.retries:
            raise TrialFailed(t)

    def _converted(self, t: float, xdot: object) -> Array:
        """Convert what the right-hand side returned, or refuse it."""
        try:
            found = np.asarray(xdot)
        except ValueError:  # rows of different lengths
            found = np.asarray(None)
        if found.dtype.kind not in "iuf" or found.shape != self._shape:
            raise EvaluationError(
                f"Cannot use what the right-hand side returned at t = {t:.9g} s",
                expected=f"real numbers of shape {self._shape}, one per state",
                found=f"shape {found.shape} of {found.dtype}",
                remedy="Return a one-dimensional array with the derivative of every state",
            )
        return found.astype(float)

    def _not_finite(self, t: float, x: Array) -> Exception:
        """Make the error for the last trial that was not finite, else for this state."""
        xdot: Array | None = None
        if self._trial is not None:
            t, x, xdot = self._trial
        blamed = self._blame(t, x, xdot) if self._blame is not None else None
        if blamed is not None:
            if isinstance(blamed, SimulationError) and blamed.time is None:
                blamed.time = t
            return blamed
        if self._refusal is not None:
            return self._refusal
        if xdot is None or not _is_finite(x):
            return failures.state_not_finite(self._method, t, x)
        return failures.derivative_not_finite(self._method, t, x, xdot)


class TrialFailed(Exception):  # noqa: N818, a signal and not an error
    """A trial was not finite; only a solver that asked for it sees this."""

    def __init__(self, t: float) -> None:
        super().__init__("a derivative is not finite")
        self.t = t


class GuardedSolver(OdeSolver):
    """The part that `guarded` adds to a solver class.

    ``h_wanted`` is the step that the solver meant to try before the last one, None if it does not
    tell; ``evaluations_before`` is SciPy's count before the last step.
    """

    def __init__(
        self,
        fun: RightHandSide,
        t0: float,
        y0: Array,
        t_bound: float,
        *,
        guard: Guard,
        **options: Any,
    ) -> None:
        self._guard = guard
        try:
            super().__init__(fun, t0, y0, t_bound, **options)
        except Exception as error:
            guard.explain(error, self, None)
            raise
        self._watch_jacobian(differences=options.get("jac") is None)

    def _watch_jacobian(self, *, differences: bool) -> None:
        """Replace a later Jacobian that leaves the domain by the last one that did not."""
        # Radau, BDF, Rodas5P and ESDIRK4 renew their Jacobian by calling their attribute ``jac``.
        # The first two have one from the beginning, in the attribute ``J``; if it comes from
        # differences, it is checked for errors at jumps.
        solver: Any = self
        renew = getattr(solver, "jac", None)
        if not callable(renew):
            return
        last: Any = getattr(solver, "J", None)
        if not _is_finite(last):
            self._guard.refuse_jacobian(self)
        differences = differences and isinstance(last, np.ndarray)
        if differences:
            last = solver.J = self._guard.without_jumps(last, solver.t, solver.y)

        def finite(*arguments: Any) -> Any:
            nonlocal last
            jacobian = renew(*arguments)
            if _is_finite(jacobian):
                if differences:
                    jacobian = self._guard.without_jumps(jacobian, *arguments[:2])
                last = jacobian
            elif getattr(solver, "JACOBIANS_OF_TRIALS", False):
                return jacobian
            elif last is None:
                self._guard.refuse_jacobian(self)
            return last

        solver.jac = finite

    def step(self) -> str | None:
        """Take one step, and raise one of our errors unless it is a good one."""
        guard = self._guard
        guard.begin_step()
        self.h_wanted = getattr(self, "h_abs", None)
        self.evaluations_before = self.nfev
        t_old, y_old = self.t, self.y
        try:
            message = super().step()
        except Exception as error:
            guard.explain(error, self, t_old)
            raise
        guard.end_step(self, t_old, message)
        guard.accepted(self, t_old, y_old)
        return message

    def move_to(self, x: Array) -> bool:
        """Go on from another state than the last step has led to; tell whether the method can.

        SciPy's methods of one step need the slope there. What BDF and LSODA know are differences of
        earlier states, which so are displaced by as much as the last one. Our own classes have a
        method ``go_on_from``. Classes of others have to begin anew.
        """
        solver: Any = self
        go_on_from = getattr(super(), "go_on_from", None)
        self._guard.begin_aside()
        if go_on_from is not None:
            go_on_from(x)
        elif isinstance(self, _WITH_SLOPE):
            solver.f = self.fun(self.t, x)
        elif isinstance(self, BDF):
            solver.D[0] = x
        elif isinstance(self, LSODA):
            solver._lsoda_solver._y[:] = x
            solver._lsoda_solver._integrator.rwork[_HISTORY : _HISTORY + self.n] = x
        else:
            return False
        self._guard.end_aside(self)
        self.y = x
        return True

    def dense_output(self) -> Any:
        """Interpolate the last step; evaluations made for it must be finite."""
        self._guard.begin_aside()
        interpolant = super().dense_output()
        self._guard.end_aside(self)
        return interpolant


class _GuardedLSODA(GuardedSolver):
    """LSODA accepts what is not finite, so that a trial of this kind ends in a restart before it.

    The restart begins with a tenth of the step that led out of the domain.
    """

    def __init__(
        self,
        fun: RightHandSide,
        t0: float,
        y0: Array,
        t_bound: float,
        *,
        guard: Guard,
        **options: Any,
    ) -> None:
        guard.retries = True
        self._options = options
        if t_bound - t0 < _TINY and options.get("first_step") is None:
            # Its own estimate squares times, and gets zero.
            options["first_step"] = min(t_bound - t0, options.get("max_step", t_bound - t0))
        super().__init__(fun, t0, y0, t_bound, guard=guard, **options)

    def _step_impl(self) -> tuple[bool, str | None]:
        t, y = self.t, self.y
        while True:
            try:
                success, _ = super()._step_impl()  # type: ignore[misc]
            except TrialFailed as trial:
                first_step = 0.1 * (trial.t - t)
                if t + 0.1 * first_step <= t:
                    raise
                self._restart(t, y, first_step)
                continue
            return success, "that the error test or the corrector failed again and again"

    def _restart(self, t: float, y: Array, first_step: float) -> None:
        """Begin anew at the last good state."""
        options = self._options | {"first_step": first_step}
        super(GuardedSolver, self).__init__(self._guard.rhs, t, y.copy(), self.t_bound, **options)


_GUARDED: dict[type[OdeSolver], type[GuardedSolver]] = {}


def guarded(solver: type[OdeSolver]) -> type[GuardedSolver]:
    """Return the subclass of a solver class that takes an option ``guard``; made once per class."""
    if solver not in _GUARDED:
        mixin = _GuardedLSODA if issubclass(solver, LSODA) else GuardedSolver
        _GUARDED[solver] = type(f"Guarded{solver.__name__}", (mixin, solver), {})
    return _GUARDED[solver]


def _is_finite(values: Any) -> bool:
    """Return whether an array or a sparse matrix is finite; None is."""
    if values is None:
        return True
    return bool(np.isfinite(values.data if hasattr(values, "toarray") else values).all())
