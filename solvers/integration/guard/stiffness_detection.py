"""Chooses an explicit or a stiff method, before a run and during it.

An explicit Runge-Kutta method is stable as long as its step times the rate of every decaying mode
stays below a bound (3.3 for RK45). Where a mode is strongly damped and fast, that bound and not
the accuracy dictates the step, for as long as the run lasts. `assess` looks for such a mode in the
Jacobian; `StiffnessDetector` notices during a run that the bound is what limits the steps. Fast
oscillations are no reason to change: every method has to resolve them.

`STIFF_METHOD` is Rodas5P. Measured from rtol = 1e-3 to 1e-9 on Robertson's reactions, van der Pol's
oscillator, an overdamped oscillator and a door hinge, it takes a seventh to six tenths of the time
of Radau at equal rtol, and about half of it at equal error; under a controller of 100 Hz, half of
it either way. Its error stays below twice the tolerance. Radau is the better choice where to
evaluate and factorize the Jacobian at every step is most of the work: for a hundred states with a
sparse Jacobian and a small error, or with slow equations of many states that have no exact
Jacobian. BDF and LSODA miss the tolerance by a factor of 2 to 90, and after each interruption they
start anew with tiny steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from flexure.solvers.integration.methods.tableaus import DOP853, RK45
from flexure.solvers.tracing.differences import difference_jacobian

if TYPE_CHECKING:
    from flexure.solvers.integration.guard.integration import TakenStep


NONSTIFF_METHOD = "RK45"
STIFF_METHOD = "Rodas5P"

Array = NDArray[np.float64]

# Before a run.
_LARGEST = 300  # states; beyond, neither the Jacobian nor its eigenvalues are cheap any more
_STABILITY_BOUND = 3.3  # of RK45, for real modes
_STEPS_ANYWAY = 100.0  # of a run in which nothing oscillates
_STEPS_PER_RADIAN = 3.0  # to follow an oscillation
_GAIN = 5.0  # by which an implicit method must need fewer steps, since each costs more
#: By which a run must lead further than at the last verdict for another one.
JUDGED_ANEW = 10.0

# During a run, for the loops in Python and those of `flexure.solvers.native.kernels`.
#: Step times rate of the fastest mode beyond which stability seems to limit a step: 0.8 of the
#: bound of the methods with these tableaus. Those without are never found to be limited.
THRESHOLDS = {RK45.name: 2.6, DOP853.name: 5.1}
#: Of how many steps one is looked at, to save time, until one looks suspicious.
LOOKED_AT = 10
#: Suspicious steps in a row that are needed.
SUSPICIOUS = 25
#: Steps that must still be ahead; with fewer it does not pay to change the method.
WORTHWHILE = 1000.0


@dataclass(frozen=True, slots=True)
class Stiffness:
    """What `assess` found: whether a stiff method is likely to be cheaper.

    ``time_constant`` in seconds is that of the fastest strongly damped mode, infinite if there is
    none; ``state`` the index of the state that takes part most in it. ``ratio`` is the number of
    steps that stability demands of RK45 over the horizon, by that which following the solution
    demands. ``pays_from`` is the length of a run, in seconds, from which on a stiff method is
    likely to be cheaper.
    """

    stiff: bool
    time_constant: float = math.inf
    state: int | None = None
    ratio: float = 0.0
    pays_from: float = field(default=math.inf, repr=False)


def assess(
    rhs: Callable[[float, Array], Array],
    t: float,
    x: Array,
    horizon: float,
    *,
    jac: Callable[[float, Array], Any] | None = None,
) -> Stiffness:
    """Judge from the Jacobian at one state whether ``ẋ = f(t, x)`` is stiff.

    With the eigenvalues λ of the Jacobian, a mode counts as strongly damped if ``-Re λ > |Im λ|``.
    With the largest rate ``r = -Re λ`` of these, the largest ``ω = |λ|`` of the others, and the
    horizon H, the system counts as stiff if::

        r H / 3.3  >  5 (100 + 3 ω H)

    that is, if stability makes RK45 take five times more steps than following the solution does.

    The horizon is the length of the run in seconds. Without ``jac(t, x)``, n + 1 evaluations
    approximate the Jacobian. Above 300 states, and where the Jacobian is not finite, the answer is
    "not stiff". The verdict holds for the given state: friction that is steep at rest and flat in
    motion is stiff in the one and not in the other; that is what `StiffnessDetector` is for.

    Examples
    --------
    >>> import numpy as np
    >>> def slow_and_fast(t, x):
    ...     return np.array([-x[0], -1e4 * (x[1] - x[0])])
    >>> assess(slow_and_fast, 0.0, np.ones(2), 10.0)
    Stiffness(stiff=True, time_constant=0.0001, state=1, ratio=303.0)
    """
    if x.size > _LARGEST:
        return Stiffness(stiff=False)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        matrix = difference_jacobian(rhs, t, x, rhs(t, x)) if jac is None else jac(t, x)
    matrix = np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix, dtype=float)
    if not np.isfinite(matrix).all():
        return Stiffness(stiff=False)
    modes, vectors = np.linalg.eig(matrix)
    damped = -modes.real > np.abs(modes.imag)
    if not damped.any():
        return Stiffness(stiff=False)
    fastest = int(np.argmax(np.where(damped, -modes.real, 0.0)))
    rate = float(-modes.real[fastest])
    oscillation = float(np.max(np.where(damped, 0.0, np.abs(modes))))
    needed = _STEPS_ANYWAY + _STEPS_PER_RADIAN * oscillation * horizon
    ratio = rate * horizon / _STABILITY_BOUND / needed
    gained = rate / _STABILITY_BOUND - _GAIN * _STEPS_PER_RADIAN * oscillation  # per second
    return Stiffness(
        stiff=ratio > _GAIN,
        time_constant=1.0 / rate,
        state=_dominant_state(vectors, fastest),
        ratio=ratio,
        pays_from=_GAIN * _STEPS_ANYWAY / gained if gained > 0.0 else math.inf,
    )


def _dominant_state(vectors: NDArray[Any], mode: int) -> int:
    """Return the state with the largest participation in a mode, whatever the units of the states.

    The participation of state i is the product of its entries in the right and the left
    eigenvector; the left ones are the rows of the inverse of the matrix of the right ones.
    """
    unit = np.zeros(len(vectors))
    unit[mode] = 1.0
    try:
        left = np.linalg.solve(vectors.T, unit)
    except np.linalg.LinAlgError:  # modes that coincide; many times as much work
        left = np.linalg.lstsq(vectors.T, unit)[0]
    return int(np.argmax(np.abs(vectors[:, mode] * left)))


class StiffnessDetector:
    """Notices during a run with RK45 or DOP853 that stability limits the steps.

    The difference of the slopes at the last two points of a step, which belong to the same time,
    divided by the difference of these points, estimates the rate ρ of the fastest mode there.
    Where accuracy limits the step, h ρ is well below the stability bound; where stability does,
    h ρ stays close to it, step after step [1]_.

    ``run`` is the number of suspicious steps in a row that is needed, ``worthwhile`` the number of
    steps that must still be ahead at the present step size.

    References
    ----------
    .. [1] E. Hairer, G. Wanner, "Solving Ordinary Differential Equations II", section IV.2.
    """

    def __init__(
        self, t_end: float, *, run: int = SUSPICIOUS, worthwhile: float = WORTHWHILE
    ) -> None:
        import scipy.integrate

        self._methods: dict[Any, tuple[float, Array]] = {
            getattr(scipy.integrate, tableau.name): (
                THRESHOLDS[tableau.name],
                np.array(tableau.last_difference),
            )
            for tableau in (RK45, DOP853)
        }
        self._t_end = t_end
        self._run = run
        self._worthwhile = worthwhile
        self._suspicious = 0
        self._steps = 0

    def __call__(self, step: TakenStep) -> bool:
        """Look at a step, and tell whether it is time for a stiff method."""
        self._steps += 1
        if self._suspicious == 0 and self._steps % LOOKED_AT:
            return False
        self._suspicious = self._suspicious + 1 if self._is_limited(step) else 0
        ahead = (self._t_end - step.t) / (step.t - step.t_old)
        return self._suspicious >= self._run and ahead > self._worthwhile

    def _is_limited(self, step: TakenStep) -> bool:
        """Return whether the step was about as long as stability allows."""
        solver: Any = step.solver
        for method, (threshold, coefficients) in self._methods.items():
            if isinstance(solver, method):
                slopes = solver.K[: solver.n_stages + 1]
                weights = solver.atol + solver.rtol * np.abs(step.x)
                change = (slopes[-1] - slopes[-2]) / weights
                distance = coefficients @ slopes[:-1] / weights
                return bool(change @ change > threshold**2 * (distance @ distance))
        return False
