"""Sensitivities: the derivatives of a motion and of its signals by parameters."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.errors import EvaluationError, FlexureError, ValueRefusedError, quoted
from flexure.diagrams.contexts.by_path import ByPath
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import start_context
from flexure.diagrams.contexts.value_places import Way, path_of
from flexure.diagrams.interface.option_names import answers_other_words
from flexure.diagrams.interface.result_classes import Answer
from flexure.diagrams.systems.system import System, require_system
from flexure.diagrams.values.arrays import FloatArray, as_number, as_numbers
from flexure.solvers.analysis.equations.equations import (
    Variable,
    find_ports,
    find_variables,
    state_names,
)
from flexure.solvers.analysis.sensitivities.motion_derivatives import (
    MotionDerivatives,
    refuse_events,
)
from flexure.solvers.analysis.sensitivities.recorded_events import (
    EXPECTED,
    TRIGGERS,
    EventMotion,
    has_state_events,
)
from flexure.solvers.simulation.run_control.method_selection import Method
from flexure.solvers.simulation.run_control.options import (
    checked_tolerances,
    warn_of_small_states,
)

_STEPS = 1e-5, 4e-5  # of the parameters: differences of such motions show jumps
DIFFERENCE_RTOL = 1e-9  # of these motions
_STEADY = 0.2  # of what they are off: differences that disagree by more show nothing
_TOLERATED = 0.005  # of a derivative: by how much differences may be off
_LOOKS = 200  # instants at which a motion is looked at that may be tiny


@dataclass(frozen=True, eq=False, repr=False)
class ParameterSensitivity(Answer):
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

    See Also
    --------
    parameter_sensitivity : Compute it.

    Examples
    --------
    >>> import flexure as fx
    >>> lag = fx.FirstOrderLag("lag", time_constant=2.0, initial=1.0)
    >>> context = lag.create_default_context()
    >>> lag.u.fix(context, 0.0)
    >>> result = fx.parameter_sensitivity(lag, ["time_constant"], 3.0, context=context)
    >>> result["time_constant"].round(6)
    array([0.167348])
    """

    time: FloatArray
    states: FloatArray
    derivatives: dict[str, FloatArray]
    state_names: list[str]
    context: Context
    outputs: dict[str, FloatArray]
    output_derivatives: dict[str, dict[str, FloatArray]]

    def __getitem__(self, parameter: Way) -> FloatArray:
        final: FloatArray = self.derivatives[path_of(parameter)][-1]
        return final

    def _ipython_key_completions_(self) -> list[str]:
        return [*self.derivatives]

    def _pieces(self) -> Iterator[str]:
        from flexure.solvers.analysis.linear_models.linear_model_tables import sensitivity_pieces

        return sensitivity_pieces(self)

    def __repr__(self) -> str:
        count, states = self.states.shape
        when = f"t = {self.time[-1]:g} s"
        if count > 1:
            when = f"{count} times from {self.time[0]:g} to {self.time[-1]:g} s"
        what = f"{states} states of '{self.context.system.label}'"
        return f"<ParameterSensitivity of {what} to {quoted(self.derivatives)}, {when}>"


@answers_other_words
def parameter_sensitivity(
    system: System,
    parameters: Way | Iterable[Way],
    t_final: float,
    *,
    context: Context | None = None,
    outputs: Way | Iterable[Way] = (),
    times: npt.ArrayLike | None = None,
    method: Method = "auto",
    rtol: float | None = 1e-8,
    atol: float | None = None,
) -> ParameterSensitivity:
    """Simulate a system and the derivatives of states and outputs by parameters.

    Parameters
    ----------
    system : System
        A block or diagram. Updates may take place at ticks, at crossings and at the beginning.
    parameters : Handle, str or iterable of them
        Parameters, fixed input ports and initial states, or components of them, by handle or path:
        ``"plant.x[angle]"`` is where that state starts.
    t_final : float
        End time in seconds.
    context : Context, optional
        Initial values, a root context; it is not changed. A default context when omitted.
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
    ParameterSensitivity

    Raises
    ------
    TraceError
        When a block cannot be traced; the text names it.
    EvaluationError
        When a state event grazes its surface, several take place at once whose order matters, a
        sample or an end of the run is at the time of a state event or of a jump that a parameter
        moves, such a jump is at an update that sees it, updates take place at every step, or a
        block such as a `Quantizer` has an output that jumps.
    SimulationError
        When the integration cannot go on.

    Warns
    -----
    UserWarning
        When the motion will take more than a minute in Python; the text says why, and what to do.
        When the motion crosses a jump of the equations, which the derivatives leave out: two
        motions along one random direction of the parameters show it. When all states are so small
        that the default of ``atol`` leaves their error without control.

    See Also
    --------
    gradient : Derivatives of one number of a run by many parameters.
    sobol_indices : Global sensitivities over ranges of values.
    fit : Fit parameters to measurements.

    Notes
    -----
    At a periodic update, the sensitivities jump by the derivatives of what it computes, as its
    instants do not depend on parameters; at a state event, such as that of a `Relay`, they are
    multiplied by the saltation matrix, so that the change of the instant counts; where a parameter
    moves the time at which a source jumps, they jump by the difference of the rates before and
    behind it. With state events, a simulation comes first, along which the derivatives follow. The
    initial state counts as independent of the parameters, except where a block sets its own state
    at the beginning. Where it does so whatever the state was, the sensitivity to an initial state
    is zero. Publishes, such as those of logs, are left out. The derivatives must be continuous
    where the motion crosses a border of the equations: at a jump of ``np.sign`` or ``np.floor`` the
    sensitivities would jump as well, which these equations do not know.

    Examples
    --------
    A lag that discharges, x = e^(-t/τ), has ∂x/∂τ = t/τ² e^(-t/τ), here 0.75 e^(-1.5):

    >>> import flexure as fx
    >>> lag = fx.FirstOrderLag("lag", time_constant=2.0, initial=1.0)
    >>> context = lag.create_default_context()
    >>> lag.u.fix(context, 0.0)
    >>> result = fx.parameter_sensitivity(lag, ["time_constant"], 3.0, context=context)
    >>> result["time_constant"].round(6)
    array([0.167348])
    """
    call = "Cannot call parameter_sensitivity(system, parameters, t_final)"
    require_system(system, call)
    t_final = float(as_number(t_final, (), call))
    attempt = f"Cannot take the sensitivity of '{system.label}'"
    start = start_context(system, context, attempt)
    variables = find_variables(start, parameters, attempt, states=True)
    places = find_ports(system, outputs, "an output")
    refuse_events(start, attempt, TRIGGERS, EXPECTED)
    grid = _checked_times(start.time, t_final, times, attempt)
    tolerances = checked_tolerances(rtol, atol, 1e-8, attempt)
    kind = EventMotion if has_state_events(start) else MotionDerivatives
    run = kind(start, variables, places, attempt)
    beginning = start.clone()
    samples = run.run(t_final, grid, method, *tolerances)
    if atol is None:

        def seen() -> Iterator[FloatArray]:
            """Yield states at the ends and at the samples, then along a second motion."""
            ends = [context.continuous_state for context in (beginning, start)]
            yield np.vstack([*ends, samples.states])
            end, between = start.clone(), np.linspace(beginning.time, t_final, _LOOKS)
            start.copy_from(beginning)
            with suppress(EvaluationError):  # of times beside an event
                yield run.run(t_final, between, method, *tolerances).states
            start.copy_from(end)

        atols = np.full(samples.states.shape[1], tolerances[1])
        warn_of_small_states(seen(), atols, beginning)
    if run.may_jump and len(grid) and variables:
        end, plain = start.clone(), kind(start, (), (), attempt)

        def moved(step: FloatArray) -> FloatArray:
            """Return the states at the end of a motion whose numbers are others."""
            start.copy_from(beginning)
            move(start, variables, step)
            tight = DIFFERENCE_RTOL, 1e-3 * DIFFERENCE_RTOL
            return np.asarray(plain.run(float(grid[-1]), grid[-1:], method, *tight).states[-1])

        largest = np.max(np.abs(samples.states), axis=0)
        slopes = samples.state_slopes[-1]
        warn_of_differences(largest, slopes, moved, run.sizes, state_names(start), attempt)
        start.copy_from(end)

    ends = np.cumsum([len(v.keys) for v in variables])[:-1]
    rows = np.cumsum([place.components.size for place in places])[:-1]

    def by_variable(slopes: FloatArray, shape: tuple[int, ...]) -> dict[str, FloatArray]:
        parts = np.split(slopes, ends, axis=2) if variables else []
        entries = {
            v.place.path: part.reshape(len(grid), *shape, *v.shape)
            for v, part in zip(variables, parts, strict=True)
        }
        return ByPath(system, entries, "what the motion was differentiated by")

    values = np.split(samples.outputs, rows, axis=1)
    slopes = np.split(samples.output_slopes, rows, axis=1)
    shapes = [place.shape or () for place in places]
    paths = [place.path for place in places]
    found = {
        path: value.reshape(len(grid), *shape)
        for path, value, shape in zip(paths, values, shapes, strict=False)
    }
    by_output = {
        path: by_variable(slope, shape)
        for path, slope, shape in zip(paths, slopes, shapes, strict=False)
    }
    return ParameterSensitivity(
        time=grid,
        states=samples.states,
        derivatives=by_variable(samples.state_slopes, (samples.states.shape[1],)),
        state_names=state_names(start),
        context=start,
        outputs=ByPath(system, found, "the outputs"),
        output_derivatives=ByPath(system, by_output, "the outputs"),
    )


def move(context: Context, variables: Sequence[Variable], step: FloatArray) -> None:
    """Add a step to the numbers of variables in a context, with all checks."""
    numbers = np.concatenate([variable.read(context.store) for variable in variables])
    parts = np.split(numbers + step, np.cumsum([len(v.keys) for v in variables])[:-1])
    for variable, part in zip(variables, parts, strict=True):
        variable.set(context, part)


def warn_of_differences(
    values: FloatArray,
    slopes: FloatArray,
    moved: Callable[[FloatArray], FloatArray],
    scale: FloatArray,
    names: list[str],
    attempt: str,
) -> None:
    """Warn where differences along one random direction agree with each other, not with slopes.

    Equations that jump where the motion crosses a border let the sensitivities jump, too, which
    their differential equation does not know. A first difference that is off is compared with a
    second one; two that disagree show nothing. The tolerance of these motions does not follow that
    of the run: looser ones miss every fourth jump at a hundred times, and bends seem to jump.

    ``moved(step)`` computes what was differentiated from numbers of sizes ``scale`` that are others
    by a step, shape (m,), at the tolerance `DIFFERENCE_RTOL`; ``values``, shape (k,), are its
    largest magnitudes, and ``slopes`` have the shape (k, m).
    """
    direction = np.random.default_rng(0).choice((-1.0, 1.0), len(scale)) * scale
    expected = slopes @ direction
    try:
        end = moved(0.0 * direction)
        near = (moved(_STEPS[0] * direction) - end) / _STEPS[0]
        errors = DIFFERENCE_RTOL * values + 1e-3 * DIFFERENCE_RTOL  # of such a motion
        off = np.abs(near - expected)
        size = np.maximum(np.maximum(np.abs(near), np.abs(expected)), 100.0 * errors / _STEPS[0])
        wrong = off > _TOLERATED * size
        if wrong.any():
            far = (moved(_STEPS[1] * direction) - end) / _STEPS[1]
            wrong &= np.abs(near - far) < _STEADY * off
    except FlexureError:  # such as a number that may not be moved
        return
    if not wrong.any():
        return
    k = int(np.argmax(np.where(wrong, off / size, 0.0)))
    warnings.warn(
        f"{attempt} without a difference to two simulations: expected that '{names[k]}' changes at"
        f" the end by {expected[k]:.4g} along a random direction of the parameters; found"
        f" {near[k]:.4g}. The motion crosses a jump of the equations (np.sign, np.floor,"
        " np.where), which the sensitivities leave out, or a bend, which gradients need a smaller"
        " rtol for. Make the equations continuous, or take differences of two simulations",
        stacklevel=3,
    )


def _checked_times(
    start: float, t_final: float, times: npt.ArrayLike | None, attempt: str
) -> FloatArray:
    grid = as_numbers([t_final] if times is None else times, attempt)
    fine = grid.ndim == 1 and grid.size and np.isfinite(grid).all() and np.all(np.diff(grid) > 0.0)
    if not (fine and math.isfinite(t_final) and start <= grid[0] and grid[-1] <= t_final):
        raise ValueRefusedError(
            attempt,
            expected=f"ascending times from {start:g} s to t_final={t_final!r} s",
            found=repr(grid.tolist()),
        )
    return grid
