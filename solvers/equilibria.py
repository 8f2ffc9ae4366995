"""Equilibria: states at which nothing moves, found by Newton's method."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flexure.diagrams.context import Context
from flexure.diagrams.errors import EvaluationError, UnknownNameError, suggestion
from flexure.diagrams.system import System
from flexure.diagrams.values import FloatArray
from flexure.solvers.equations import (
    Choice,
    Equations,
    find_variables,
    refuse_sampled,
    start_context,
    state_names,
)

_STANDSTILL = 1e-12  # relative length of a step that changes nothing any more
_SHORTEST = 1e-4  # fraction of a Newton step that is tried at last


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """A context in which nothing moves, and how it was found.

    Attributes
    ----------
    context : Context
        A new root context with the states, inputs and parameters that were found.
    residual : float
        Largest absolute time derivative of a state that is left.
    iterations : int
        Number of Newton steps.
    how : str
        Whether their Jacobian was exact or made of central differences, and why.
    """

    context: Context
    residual: float
    iterations: int
    how: str


def equilibrium(
    system: System,
    context: Context | None = None,
    *,
    free: Iterable[Choice] = (),
    fixed: Iterable[str] = (),
    tolerance: float = 1e-9,
    max_iterations: int = 100,
) -> Equilibrium:
    """Find states at which all time derivatives are zero.

    Parameters
    ----------
    system : System
        A block or diagram.
    context : Context, optional
        Where to start, a root context; it is not changed. Its time, discrete states, inputs and
        parameters stay. A default context when omitted.
    free : iterable of InputPort, NumericParameter or str, optional
        Free input ports and parameters that are to be found as well, by handle or path.
    fixed : iterable of str, optional
        States that keep their value: a path such as ``"door.x"`` for all components, or
        ``"door.x[angle]"`` and ``"arm.x[0]"`` for one.
    tolerance : float
        A derivative counts as zero below ``tolerance (1 + sum of |∂ẋ/∂x x|)``, which are the terms
        that balance in it.
    max_iterations : int
        Largest number of Newton steps.

    Returns
    -------
    Equilibrium

    Raises
    ------
    EvaluationError
        When no equilibrium is found near the start, the derivatives there are not finite, or a
        sampled block follows the motion, so that the diagram has no continuous equations.
    UnknownNameError
        When something is not there, or an input is not free.
    ValueRefusedError
        When a parameter would have to leave its bounds.

    Notes
    -----
    Damped Newton steps with the exact Jacobian, or with central differences where a block cannot
    be traced. A step is the shortest one that solves the linear equations, each component measured
    by its starting value or 1, whichever is larger: with more unknowns than equations, or in a
    continuum of equilibria, one near the start is found. The states of a context found may still
    be unstable; `linearize` tells.

    Examples
    --------
    The torque that holds a pendulum at 30 degrees:

    >>> import flexure as fx
    >>> class Pendulum(fx.LeafSystem):
    ...     def __init__(self):
    ...         super().__init__("pendulum")
    ...         self.state = self.declare_continuous_state(
    ...             q=1, v=1, default=[np.pi / 6, 0.0], element_names=["angle", "rate"]
    ...         )
    ...         self.torque = self.declare_vector_input("torque", 1, default=0.0)
    ...
    ...     def calc_time_derivatives(self, context):
    ...         angle, rate = self.state(context)
    ...         return [rate, self.torque(context) - 9.81 * np.sin(angle)]
    >>> pendulum = Pendulum()
    >>> found = fx.equilibrium(pendulum, free=["torque"], fixed=["x[angle]"])
    >>> pendulum.torque.eval(found.context)
    array([4.905])
    """
    attempt = f"Cannot find an equilibrium of '{system.label}'"
    start = start_context(system, context, attempt)
    refuse_sampled(start, attempt)
    variables = find_variables(start, free, attempt)
    names = state_names(start)
    unknown = _unknown(attempt, names, list(fixed), sum(len(v.keys) for v in variables))
    equations = Equations(start, variables)
    point, values, iterations = _newton(equations, unknown, max_iterations)
    _refuse_motion(attempt, equations, point, values, tolerance, names, iterations)

    result = start_context(system, context, attempt)
    result.continuous_state = point[: len(names)]
    position = len(names)
    for variable in variables:
        numbers = point[position : position + len(variable.keys)].reshape(variable.shape)
        variable.set(result, numbers)
        position += len(variable.keys)
    residual = float(np.max(np.abs(values), initial=0.0))
    return Equilibrium(result, residual, iterations, equations.how)


def _unknown(
    attempt: str, names: list[str], fixed: list[str], num_free: int
) -> npt.NDArray[np.bool_]:
    """Return which components of states and free variables are to be found."""
    unknown = np.ones(len(names) + num_free, dtype=bool)
    for wish in fixed:
        kept = [k for k, name in enumerate(names) if name == wish or name.startswith(f"{wish}[")]
        if not kept:
            raise UnknownNameError(
                f"{attempt} with '{wish}' fixed",
                expected="a continuous state or one of its components",
                remedy=suggestion(wish, names),
            )
        unknown[kept] = False
    return unknown


def _newton(
    equations: Equations, unknown: npt.NDArray[np.bool_], max_iterations: int
) -> tuple[FloatArray, FloatArray, int]:
    """Take damped Newton steps until nothing improves; return point, derivatives and their number.

    A step is good when the remaining correction, with the same Jacobian, is shorter than the step
    itself. This test does not depend on the units of the equations.
    """
    point = equations.point()
    values = equations.values(point)
    scale = np.maximum(np.abs(point[unknown]), 1.0)
    iterations = 0
    while iterations < max_iterations and np.isfinite(values).all():
        matrix = equations.jacobian(point)[:, unknown] * scale
        if not np.isfinite(matrix).all():
            break
        step = _correction(matrix, values)
        length = np.linalg.norm(step)
        fraction = 1.0 if length > _STANDSTILL else 0.0
        while fraction >= _SHORTEST:
            trial = point.copy()
            trial[unknown] += fraction * scale * step
            found = equations.values(trial)
            if np.isfinite(found).all():
                rest = np.linalg.norm(_correction(matrix, found))
                if rest <= (1.0 - 0.25 * fraction) * length:
                    break
            fraction *= 0.5
        if fraction < _SHORTEST:
            break
        point, values = trial, found
        iterations += 1
    return point, values, iterations


def _correction(matrix: FloatArray, values: FloatArray) -> FloatArray:
    """Return the shortest solution of the linear equations, with rows of equal weight."""
    weights = np.max(np.abs(matrix), axis=1, initial=0.0)
    weights[weights == 0.0] = 1.0
    correction: FloatArray = np.linalg.lstsq(matrix / weights[:, None], -values / weights)[0]
    return correction


def _refuse_motion(
    attempt: str,
    equations: Equations,
    point: FloatArray,
    values: FloatArray,
    tolerance: float,
    names: list[str],
    iterations: int,
) -> None:
    """Raise unless all derivatives are zero, and name the worst one."""
    with np.errstate(all="ignore"):
        terms = 1.0 + np.abs(equations.jacobian(point)) @ np.abs(point)
        terms[~np.isfinite(terms)] = 1.0
        excess = np.nan_to_num(np.abs(values) / terms, nan=np.inf)
    if np.any(excess > tolerance):
        worst = int(np.argmax(excess))
        raise EvaluationError(
            attempt,
            expected="derivatives that become zero",
            found=f"a rate of {names[worst]} of {values[worst]:.6g} where it is "
            f"{point[worst]:.6g}, after {iterations} steps",
            remedy="Start nearer to an equilibrium, or name free= inputs that can hold it",
        )
