"""Sensitivities: the derivatives of a motion and of its signals by parameters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flexure.diagrams.common.answers import Answer
from flexure.diagrams.common.errors import UnknownNameError, ValueRefusedError, quoted, suggestion
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.places import Way, find_place, path_of
from flexure.diagrams.systems.system import System, require_system
from flexure.diagrams.values.handles import start_context
from flexure.diagrams.values.values import FloatArray, as_number, as_numbers
from flexure.solvers.analysis.equations.equations import find_ports, find_variables, state_names
from flexure.solvers.analysis.sensitivities.motion_derivatives import (
    MotionDerivatives,
    refuse_events,
)
from flexure.solvers.simulation.state.method_selection import Method
from flexure.solvers.simulation.state.tolerances import checked_tolerances


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivity(Answer):
    """A motion and its derivatives by parameters.

    ``sensitivity["spring.stiffness"]`` is the derivative of the final state by a parameter, of
    shape (n, ...) with the shape of the parameter behind.

    Attributes
    ----------
    time : ndarray, shape (k,)
        Times in seconds.
    states : ndarray, shape (k, n)
        The states at these times.
    derivatives : dict
        By path of the parameter, the derivatives of the states, of shape (k, n, ...).
    state_names : list of str
        What the states are.
    context : Context
        A root context with the values at the end.
    outputs : dict
        By path, the outputs at these times, of shape (k, ...) with the shape of the output behind.
    output_derivatives : dict of dict
        By path of the output, then of the parameter, ``∂y/∂x S + ∂y/∂p`` with S = ∂x/∂p: of shape
        (k, ...) with the shape of the output, then that of the parameter behind.
    """

    time: FloatArray
    states: FloatArray
    derivatives: dict[str, FloatArray]
    state_names: list[str]
    context: Context
    outputs: dict[str, FloatArray]
    output_derivatives: dict[str, dict[str, FloatArray]]

    def __getitem__(self, parameter: Way) -> FloatArray:
        path = path_of(parameter)
        if path not in self.derivatives:
            with suppress(UnknownNameError):  # a parameter can have several names
                path = find_place(self.context.system, path).path
        if path not in self.derivatives:
            raise UnknownNameError(
                f"Cannot find the sensitivity to '{path}'",
                remedy=suggestion(path, self.derivatives),
            )
        final: FloatArray = self.derivatives[path][-1]
        return final

    def _ipython_key_completions_(self) -> list[str]:
        return [*self.derivatives]

    def _pieces(self) -> Iterator[str]:
        from flexure.solvers.analysis.linear_models.overview import sensitivity_pieces

        return sensitivity_pieces(self)

    def __repr__(self) -> str:
        count, states = self.states.shape
        when = f"t = {self.time[-1]:g} s"
        if count > 1:
            when = f"{count} times from {self.time[0]:g} to {self.time[-1]:g} s"
        what = f"{states} states of '{self.context.system.label}'"
        return f"<Sensitivity of {what} to {quoted(self.derivatives)}, {when}>"


def sensitivity(
    system: System,
    t_final: float,
    parameters: Way | Iterable[Way],
    context: Context | None = None,
    *,
    outputs: Way | Iterable[Way] = (),
    times: npt.ArrayLike | None = None,
    method: Method = "auto",
    rtol: float | None = 1e-8,
    atol: float | None = None,
) -> Sensitivity:
    """Simulate a system together with the derivatives of states and outputs by parameters.

    Parameters
    ----------
    system : System
        A block or diagram without events that change states, other than at the beginning.
    t_final : float
        End time in seconds.
    parameters : Handle, str or iterable of them
        Parameters, fixed input ports and initial states, or components of them, by handle or path:
        ``"plant.x[angle]"`` is where that state starts.
    context : Context, optional
        Where to start, a root context; it is not changed. A default context when omitted.
    outputs : Handle, str or iterable of them, optional
        Ports, or components of them, whose values and derivatives are wanted as well.
    times : array_like, shape (k,), optional
        Ascending times in seconds for the result; the end alone when omitted.
    method : str or OdeSolver class
        As for `Simulator`, but without fixed steps. Explicit methods and ``"ESDIRK4"`` run in
        compiled loops, of which "auto" takes RK45 or, for stiff systems, ESDIRK4. Without native
        code that is Radau in Python.
    rtol, atol : float
        Tolerances of states and, in proportion to the parameters, of sensitivities; ``rtol``
        defaults to 1e-8, and ``atol`` to a thousandth of ``rtol``.

    Returns
    -------
    Sensitivity

    Raises
    ------
    TraceError
        When a block cannot be traced; the text names it.
    EvaluationError
        When an event changes a state, or a parameter moves the time of a jump.
    SimulationError
        When the integration cannot go on.

    Warns
    -----
    UserWarning
        When the motion will take more than a minute in Python; the text says why, and what to do.

    Notes
    -----
    The initial state counts as independent of the parameters, except where a block sets its own
    state at the beginning. Where it does so whatever the state was, the sensitivity to an initial
    state is zero. Publishes, such as those of logs, are left out. The derivatives must be
    continuous where the motion crosses a border of the equations: at a jump of ``np.sign`` or the
    like, the sensitivities would jump as well, which these equations do not know.

    Examples
    --------
    A lag that discharges, x = e^(-t/τ), has ∂x/∂τ = t/τ² e^(-t/τ), here 0.75 e^(-1.5):

    >>> import flexure as fx
    >>> lag = fx.FirstOrderLag("lag", time_constant=2.0, initial=1.0)
    >>> context = lag.create_default_context()
    >>> lag.u.fix(context, 0.0)
    >>> result = fx.sensitivity(lag, 3.0, ["time_constant"], context)
    >>> result["time_constant"].round(6)
    array([0.167348])
    """
    require_system(system, "Cannot take a sensitivity")
    attempt = f"Cannot take the sensitivity of '{system.label}'"
    start = start_context(system, context, attempt)
    variables = find_variables(start, parameters, attempt, states=True)
    places = find_ports(system, outputs, "an output")
    refuse_events(start, attempt)
    grid = _checked_times(start.time, t_final, times, attempt)
    tolerances = checked_tolerances(rtol, atol, 1e-8, attempt)
    run = MotionDerivatives(start, variables, places, attempt)
    samples = run.run(float(t_final), grid, method, *tolerances)

    ends = np.cumsum([len(v.keys) for v in variables])[:-1]
    rows = np.cumsum([place.components.size for place in places])[:-1]

    def by_variable(slopes: FloatArray, shape: tuple[int, ...]) -> dict[str, FloatArray]:
        parts = np.split(slopes, ends, axis=2) if variables else []
        return {
            v.place.path: part.reshape(len(grid), *shape, *v.shape)
            for v, part in zip(variables, parts, strict=True)
        }

    values = np.split(samples.outputs, rows, axis=1)
    slopes = np.split(samples.output_slopes, rows, axis=1)
    shapes = [place.shape or () for place in places]
    paths = [place.path for place in places]
    return Sensitivity(
        time=grid,
        states=samples.states,
        derivatives=by_variable(samples.state_slopes, (samples.states.shape[1],)),
        state_names=state_names(start),
        context=start,
        outputs={
            path: value.reshape(len(grid), *shape)
            for path, value, shape in zip(paths, values, shapes, strict=False)
        },
        output_derivatives={
            path: by_variable(slope, shape)
            for path, slope, shape in zip(paths, slopes, shapes, strict=False)
        },
    )


def _checked_times(
    start: float, t_final: float, times: npt.ArrayLike | None, attempt: str
) -> FloatArray:
    t_final = float(as_number(t_final, (), attempt))
    grid = as_numbers([t_final] if times is None else times, attempt)
    fine = grid.ndim == 1 and grid.size and np.isfinite(grid).all() and np.all(np.diff(grid) > 0.0)
    if not (fine and math.isfinite(t_final) and start <= grid[0] and grid[-1] <= t_final):
        raise ValueRefusedError(
            attempt,
            expected=f"ascending times from {start:g} s to t_final={t_final!r} s",
            found=repr(grid.tolist()),
        )
    return grid
