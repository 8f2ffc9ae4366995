"""Linearization: from a diagram at a context to the matrices A, B, C, D."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import compress

import numpy as np
import numpy.typing as npt

from flexure.blocks.multibody import MultibodyTree
from flexure.diagrams.checks.errors import EvaluationError, TraceError, quoted, warn
from flexure.diagrams.concurrency.one_thread import in_one_thread
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import start_context
from flexure.diagrams.contexts.updates import require_start
from flexure.diagrams.contexts.value_places import Place, Way
from flexure.diagrams.systems.system import System, require_system
from flexure.diagrams.values.arrays import FloatArray, bounded
from flexure.solvers.analysis.equations.equations import (
    Equations,
    find_ports,
    refuse_sampled,
    state_names,
    vector_ports,
)
from flexure.solvers.analysis.equations.tangents import (
    constraint_ports,
    gains,
    linear_notes,
    quaternions_and_locked,
    require_holding,
)
from flexure.solvers.analysis.linear_models.linear_inputs import LinearInputs
from flexure.solvers.analysis.linear_models.linear_model import LinearModel

_MOST_NAMES = 5  # of outputs that are left out
_AT_REST = 1e-6  # of the terms that balance in a rate


@in_one_thread
def linearize(
    system: System,
    context: Context | None = None,
    inputs: Way | Iterable[Way] | None = None,
    outputs: Way | Iterable[Way] | None = None,
    *,
    openings: Way | Iterable[Way] = (),
    period: float | None = None,
    inputs_after_updates: bool = False,
) -> LinearModel:
    """Linearize a block or diagram around the values of a context.

    Parameters
    ----------
    system : System
        A block or diagram.
    context : Context, optional
        Operating point, a root context; it is not changed. A default context when omitted.
    inputs : Handle, str or iterable of them, optional
        Inputs of the model, by handle or path: free input ports, parameters such as the value of a
        `Constant`, and ports on the wires between blocks, or components of them. An input at a wire
        is added to the signal there: behind an output port, for all that read it; in front of an
        input port, for its block alone. By default all vector inputs of the system.
    outputs : Handle, str or iterable of them, optional
        Outputs of the model: ports of the system or of blocks inside, or components of them. An
        output port shows the output of its block, before inputs at wires are added; an input port
        shows the signal that its block reads. By default all vector outputs of the system, but for
        infinite ones, such as the safety of a flexure without stress, which a warning names.
    openings : Handle, str or iterable of them, optional
        Ports on wires between blocks, or components of them, at which the wires are opened. The
        block behind an opening reads a constant, the present value, or an input of the model if the
        port is one of ``inputs`` as well.
    period : float, optional
        Sampling period in s, for a discrete-time model: a whole multiple of the periods of all
        updates. See the notes.
    inputs_after_updates : bool
        With ``period``: whether inputs change just after the updates of an instant, as outputs of
        sampled controllers do, and not just before them. See the notes.

    Returns
    -------
    LinearModel

    Warns
    -----
    UserWarning
        When infinite outputs are left out, since none is named; or when a mechanism with
        constraints is not at rest, see the notes.

    Raises
    ------
    DeclarationError
        When it is no system, such as a builder whose ``build()`` is still to be called.
    UnknownNameError
        When an input is not free, or a path or name does not exist.
    EvaluationError
        When something is not finite, an input port is not fixed, or a sampled block follows the
        motion, so that the diagram has no continuous equations; with ``period``, when it does not
        fit, has more than 100 000 instants, or the model of the next period is another one.

    See Also
    --------
    equilibrium : Find an operating point first.
    modes : Natural frequencies and mode shapes.
    loop_gain : Linear model of an opened loop.

    Notes
    -----
    The matrices are exact derivatives of the traced equations. Where a block cannot be traced, its
    own derivatives are used if it has some, see `LeafSystem.calc_slopes`; otherwise they are
    central differences, with about eight digits. ``how`` says so. At a kink, one of several slopes
    is used: at the limit of a saturation the slope inside, at the tip of ``abs`` zero. Discrete
    states, such as the mode of a `Relay`, stay what they are.

    Blocks with ``linearize_as="gain"``, a `Quantizer` by default, pass changes with gain 1. The
    ``notes`` of the model name them, and blocks that pass no small changes, such as a `Saturation`
    beyond its limits.

    Constraints of a mechanism leave states a curved surface. Where it is at rest, or goes on
    steadily, the poles of small motions on it do not depend on coordinates. Where it accelerates
    they do: ``poles``, the eigenvalues of A and `modes` differ there, and a warning says so.

    With ``period``, the model is ``x[k+1] = A x[k] + B u[k], y[k] = C x[k] + D u[k]``, with the
    discrete values of sampled blocks among the states. x[k] are the states just before an instant,
    when the updates are due, and y[k] the outputs just after it, so that a controller responds to
    its latest measurement. Inputs hold for a whole period. The instants are those of the slowest
    update. Between them, the motion is exact (a matrix exponential), also with several commensurate
    periods and with delays. Discrete values that follow time alone, such as the sign of a gain that
    toggles, go on with each update; they are no states, and the model has to be the same one a
    period later.

    At a point that moves, a model with ``period`` has the derivatives of the whole period, along
    the run from this point, and ``xdot0`` is what the run adds; events at zero crossings do not act
    there.

    With ``inputs_after_updates``, blocks that sample an input at an instant, such as a `UnitDelay`
    or a `ZeroOrderHold`, read what it was in the period before. That is one more state for each
    such input, "previous ..." with its name. A controller that is designed with this model is wired
    to the inputs of the model.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.DiagramBuilder("loop")
    >>> builder.add_all(
    ...     fx.Constant("target", 1.0),
    ...     fx.PIDController("pid", kp=3.0, ki=2.0),
    ...     fx.Integrator("plant"),
    ... )
    >>> builder.connect_chain("target", "pid.setpoint")
    >>> builder.connect_chain("pid", "plant", "pid.measurement")
    >>> model = fx.linearize(builder.build(), inputs=["target.value"], outputs=["plant.y"])
    >>> model.poles.real
    array([-1., -2.])
    >>> model.frequency_response(0.0).real
    array([[1.]])
    """
    require_system(system, "Cannot linearize")
    attempt = f"Cannot linearize '{system.label}'"
    start = start_context(system, context, attempt)
    model = linearized(
        system,
        start,
        inputs,
        outputs,
        attempt,
        openings=openings,
        period=period,
        inputs_after_updates=inputs_after_updates,
    )
    fastest = accelerated(start, model)
    if fastest is not None:
        warn(
            f"'{system.label}' has constraints, and is linearized where it is not at rest:"
            f" {fastest}. Its poles depend on coordinates there. Start from"
            " equilibrium(...).context"
        )
    return model


def accelerated(context: Context, model: LinearModel) -> str | None:
    """Return which state of a mechanism with constraints accelerates most; None if none does."""
    if model.normals is None:
        return None
    rows: list[int] = []
    for leaf in context.leaves():
        if isinstance(leaf.system, MultibodyTree) and leaf.system.constraints:
            first = leaf.x_slice.start + leaf.system.topology.num_positions
            rows += range(first, leaf.x_slice.stop)
    change = model.xdot0 if model.period is None else model.xdot0 - model.x0
    terms = 1.0 + np.abs(model.A) @ np.abs(model.x0)
    worst = max(rows, key=lambda k: abs(change[k]) / terms[k])
    if abs(change[worst]) <= _AT_REST * terms[worst]:
        return None
    what = "rate" if model.period is None else "change in a period"
    return f"{model.state_names[worst]} has a {what} of {change[worst]:.6g}"


def linearized(
    system: System,
    context: Context | None,
    inputs: Way | Iterable[Way] | None,
    outputs: Way | Iterable[Way] | None,
    attempt: str,
    *,
    openings: Way | Iterable[Way] = (),
    period: float | None = None,
    inputs_after_updates: bool = False,
    as_gain: bool = True,
    frozen: bool = False,
) -> LinearModel:
    """Return what `linearize` does, for what is attempted with it.

    Without ``as_gain``, all slopes are exact. With ``frozen``, those of a sampled model are those
    at the point, also where it moves.
    """
    start = start_context(system, context, attempt)
    require_start(start)
    require_holding(start, attempt)
    if period is None:
        remedy = "Pass period= for the model from sample to sample, or use the plant only"
        refuse_sampled(start, attempt, remedy)
    chosen = outputs is not None
    entries = LinearInputs(start, vector_ports(inputs, system.input_ports), openings, attempt)
    places = find_ports(system, vector_ports(outputs, system.output_ports), "an output")
    if period is not None:
        return _sampled(
            entries,
            places,
            period,
            attempt,
            chosen=chosen,
            as_gain=as_gain,
            frozen=frozen,
            inputs_after_updates=inputs_after_updates,
        )
    constrained = [Place.of(port) for port in constraint_ports(start)]
    equations = Equations(
        entries.context,
        entries.variables,
        [*constrained, *places],
        entries.slots,
        shares=True,
        as_gain=as_gain,
    )
    if as_gain and equations.obstacle is not None:
        _refuse_gains(start, equations.obstacle, attempt)
    point = equations.point()
    values, matrix = equations.present, equations.jacobian(point)
    states = state_names(start)
    n, r = len(states), sum(place.components.size for place in constrained)
    errors, shown = _names(constrained), _names(places)
    if not chosen:
        rows = slice(n + r, n + r + len(shown))
        fits = _not_infinite(system, values[rows], shown)
        gone, shown = n + r + np.flatnonzero(~fits), [*compress(shown, fits)]
        values, matrix = np.delete(values, gone), np.delete(matrix, gone, axis=0)
    p = len(shown)
    _refuse_not_finite(attempt, values, matrix, entries, states, [*errors, *shown])
    normals = matrix[n : n + r, :n] if r else None
    values, matrix = np.delete(values, slice(n, n + r)), np.delete(matrix, slice(n, n + r), axis=0)
    quaternions, locked = quaternions_and_locked(start)
    matrix = entries.closed(matrix, n)
    return LinearModel(
        A=matrix[:n, :n],
        B=matrix[:n, n:],
        C=matrix[n:, :n],
        D=matrix[n:, n:],
        x0=point[:n],
        u0=entries.values(point[n:]),
        y0=values[n : n + p],
        xdot0=values[:n],
        time=start.time,
        state_names=states,
        input_names=entries.names,
        output_names=shown,
        how=equations.how,
        quaternions=quaternions,
        locked=locked,
        normals=normals,
        notes=linear_notes(start.leaves(), as_gain=as_gain),
    )


def _refuse_gains(context: Context, obstacle: TraceError, attempt: str) -> None:
    """Refuse blocks that are to pass as gains where there are differences in place of slopes."""
    for leaf in gains(context):
        raise EvaluationError(
            f"{attempt} with '{leaf.system.label}' as a gain",
            expected="equations that can be traced, which have slopes to be replaced",
            found=f"{obstacle.attempt[0].lower()}{obstacle.attempt[1:]}",
            remedy="Make that block traceable, or pass linearize_as='exact' to "
            f"'{leaf.system.label}'",
        )


def _names(places: list[Place]) -> list[str]:
    """Return the names of all components."""
    return [name for place in places for name in place.names]


def _not_infinite(system: System, values: FloatArray, shown: list[str]) -> npt.NDArray[np.bool_]:
    """Return which outputs are kept if none is named, and say which are not."""
    fits = ~np.isinf(values)
    if not fits.any():  # which is refused
        fits[:] = True
    left_out = [shown[k] for k in np.flatnonzero(~fits)]
    if left_out:
        rest = len(left_out) - _MOST_NAMES
        warn(
            f"The linear model of '{system.label}' leaves out {quoted(left_out[:_MOST_NAMES])}"
            + (f" and {rest} more outputs" if rest > 0 else "")
            + ", infinite there. Name outputs=[...]"
        )
    return np.asarray(fits)


def _sampled(
    entries: LinearInputs,
    places: list[Place],
    period: float,
    attempt: str,
    *,
    chosen: bool,
    as_gain: bool,
    frozen: bool,
    inputs_after_updates: bool,
) -> LinearModel:
    """Return the model from one sample instant to the next."""
    from flexure.solvers.analysis.sampled.sampling import SampledEquations  # which seldom is needed

    length = float(
        bounded(period, f"{attempt} with this period", lower=0.0, exclusive=True, unit="s")
    )
    as_gain = as_gain and any(gains(entries.context))
    sampled = SampledEquations(entries, places, length, attempt, as_gain=as_gain, frozen=frozen)
    first, shown = len(state_names(entries.context)), _names(places)
    states = [*state_names(entries.context), *sampled.names]
    values, slopes, fits = sampled.values, sampled.slopes, np.ones(len(shown), dtype=bool)
    if not chosen:
        rows = slice(first, first + len(shown))
        fits = _not_infinite(entries.context.system, values[rows], shown)
        gone, shown = first + np.flatnonzero(~fits), [*compress(shown, fits)]
        values, slopes = np.delete(values, gone), np.delete(slopes, gone, axis=0)
    _refuse_not_finite(attempt, values, slopes, entries, states, shown)
    with np.errstate(over="ignore", invalid="ignore"):
        moved, outputs = sampled.matrices()
        outputs = outputs[fits]
    if not (np.isfinite(moved).all() and np.isfinite(outputs).all()):
        raise EvaluationError(
            attempt,
            expected=f"motions that stay finite over a period of {length:g} s",
            found="growth beyond all numbers",
            remedy="Start nearer to an equilibrium, or take a shorter period",
        )
    n = len(states)
    quaternions, locked = quaternions_and_locked(entries.context)
    read = np.vstack([sampled.sampled[0], sampled.sampled[1][fits]])
    late = np.flatnonzero(np.any(read, axis=0))
    model = LinearModel(
        A=moved[:, :n],
        B=moved[:, n:-1],
        C=outputs[:, :n],
        D=outputs[:, n:-1],
        x0=np.concatenate([sampled.x, sampled.held]),
        u0=entries.values(sampled.inputs),
        y0=outputs[:, -1],
        xdot0=moved[:, -1],
        time=entries.context.time,
        state_names=states,
        input_names=entries.names,
        output_names=shown,
        how="exact derivatives",
        period=length,
        quaternions=quaternions,
        locked=locked,
        normals=_normals(entries.context, n),
        sampled_inputs=tuple(entries.names[k] for k in late),
        notes=linear_notes(entries.context.leaves(), as_gain=as_gain),
    )
    return _with_previous_inputs(model, read, late) if inputs_after_updates else model


def _with_previous_inputs(
    model: LinearModel, read: FloatArray, late: npt.NDArray[np.intp]
) -> LinearModel:
    """Return a sampled model with inputs that change just after the updates of an instant."""
    # The inputs ``late``, which updates read, become states: what they were before the instant.
    # ``read`` is what they do by these updates, a part of B above one of D.
    n, count = len(model.A), len(late)
    by_updates, shown = read[:n], read[n:]
    change = np.zeros((count, n))
    return replace(
        model,
        A=np.block([[model.A, by_updates[:, late]], [change, np.zeros((count, count))]]),
        B=np.vstack([model.B - by_updates, np.eye(model.B.shape[1])[late]]),
        C=np.hstack([model.C, shown[:, late]]),
        D=model.D - shown,
        x0=np.concatenate([model.x0, model.u0[late]]),
        xdot0=np.concatenate([model.xdot0, np.zeros(count)]),
        state_names=[*model.state_names, *(f"previous {model.input_names[k]}" for k in late)],
        normals=None if model.normals is None else np.pad(model.normals, ((0, 0), (0, count))),
        sampled_inputs=(),
    )


def _normals(context: Context, size: int) -> FloatArray | None:
    """Return the slopes of constraints by the states, with zeros for those of samples."""
    constrained = [Place.of(port) for port in constraint_ports(context)]
    if not constrained:
        return None
    equations = Equations(context, (), constrained)
    slopes = equations.jacobian(equations.point())
    count = slopes.shape[1]
    return np.pad(slopes[count:], ((0, 0), (0, size - count)))


def _refuse_not_finite(
    attempt: str,
    values: FloatArray,
    matrix: FloatArray,
    entries: LinearInputs,
    states: list[str],
    shown: list[str],
) -> None:
    """Raise when a value or a derivative is not finite, and name the first one."""
    bad = np.flatnonzero(~np.isfinite(values))
    slopes = np.argwhere(~np.isfinite(matrix))
    if not (bad.size or slopes.size):
        return
    rates = [f"the rate of {name}" for name in state_names(entries.context)]
    inner = ["an update, or what comes to a wire"] * (len(matrix) - len(rates) - len(shown))
    results = [*rates, *shown, *inner]
    row, column = (bad[0], 0) if bad.size else slopes[0]
    remedy = "Linearize at another point"
    if 0 <= row - len(rates) < len(shown):
        remedy += ", or name other outputs, as in outputs=[...]"
    names = [*states, *(name for v in entries.variables for name in v.place.names)]
    if bad.size:
        found = f"{results[row]} = {values[row]}"
    else:
        found = f"{matrix[row, column]} as the derivative of {results[row]} by {names[column]}"
    raise EvaluationError(attempt, expected="finite values and slopes", found=found, remedy=remedy)
