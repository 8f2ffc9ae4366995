"""Loop gain and sensitivities of a feedback loop at one of its wires.

A disturbance d is added to the signal m that comes to a port, and v = m + d goes on. Around the
loop, v comes back as m = -L v, in the convention of negative feedback, so that

    v = S d,    S = (I + L)⁻¹,    the sensitivity,
    m = -T d,   T = L (I + L)⁻¹ = I - S,    the complementary sensitivity.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import partial

import networkx as nx
import numpy as np

from flexure.blocks.linear_systems.delays import PadeDelay
from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.value_places import Place, Way
from flexure.diagrams.interface.option_names import answers_other_words
from flexure.diagrams.systems.ports import InputPort, Port
from flexure.diagrams.systems.system import System, require_system
from flexure.diagrams.values.handles import require_root
from flexure.solvers.analysis.equations.equations import carries_vector, slot_of
from flexure.solvers.analysis.equations.linear_notes import BLOCKS, linear_notes
from flexure.solvers.analysis.linear_models.linear_inputs import is_fed, wire_place
from flexure.solvers.analysis.linear_models.linear_model import LinearModel
from flexure.solvers.analysis.linear_models.linearization import linearize, linearized
from flexure.solvers.analysis.linear_models.realizations import HIDDEN, reduction

_CIRCLE = 1.5 * np.exp(1j * np.pi * np.arange(0.5, 8.0) / 8.0)  # beyond poles, where to compare
_SAME = 1e-6
_SINGULAR = 1e-9
_FAR, _PLACES = 1e4, 400  # how far, and where, to look above the range of an approximation


@answers_other_words
def loop_gain(
    system: System, location: Way, *, context: Context | None = None, period: float | None = None
) -> LinearModel:
    """Return the loop gain L at a wire, with the loop opened there.

    The loop is broken at the wire. L is the (negative-feedback) transfer function from the signal
    injected after the break to the signal returning before it.

    Parameters
    ----------
    system : System
        A diagram.
    location : Handle or str
        A port on a wire between blocks, or a component of one: an output port for all that read
        it, an input port for its block alone. Other loops stay closed.
    context : Context, optional
        Operating point, a root context; it is not changed. A default context when omitted.
    period : float, optional
        Sampling period in s, for a discrete-time model, as for `linearize`.

    Returns
    -------
    LinearModel
        L, in the convention of negative feedback: the closed loop has the sensitivity 1/(1 + L).

    Raises
    ------
    UnknownNameError
        When there is no such wire.
    EvaluationError
        As for `linearize`, and if the signal at the wire moves between the instants of a sampled
        model, which would hold it.

    See Also
    --------
    margins : Stability margins of the loop gain.
    bode : Plot it.
    sensitivity_function : Closed-loop sensitivity.
    complementary_sensitivity : Closed-loop response.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.DiagramBuilder("loop")
    >>> builder.add_all(
    ...     fx.Constant("target", 1.0),
    ...     fx.PIDController("pid", kp=3.0),
    ...     fx.Integrator("plant"),
    ... )
    >>> builder.connect_chain("target", "pid.setpoint")
    >>> builder.connect_chain("pid", "plant", "pid.measurement")
    >>> model = fx.loop_gain(builder.build(), "plant.y")
    >>> model.frequency_response(1.0).round(6)  # 3 / s at s = j
    array([[0.-3.j]])
    """
    return _negative(_from_wire(system, location, context, period, opened=True))


@answers_other_words
def sensitivity_function(
    system: System, location: Way, *, context: Context | None = None, period: float | None = None
) -> LinearModel:
    """Return the sensitivity S = (I + L)⁻¹ at a wire.

    S is the transfer function from a signal added at the wire to the signal that leaves it.

    Parameters
    ----------
    system, location, context, period
        As for `loop_gain`.

    Returns
    -------
    LinearModel

    See Also
    --------
    loop_gain : The gain of the opened loop.
    complementary_sensitivity : T = I - S.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.DiagramBuilder("loop")
    >>> builder.add_all(fx.Gain("controller", -3.0), fx.Integrator("plant"))
    >>> builder.connect_chain("controller", "plant", "controller")
    >>> model = fx.sensitivity_function(builder.build(), "plant.u")
    >>> model.frequency_response(1.0).round(6)  # s / (s + 3) at s = j
    array([[0.1+0.3j]])
    """
    model = _from_wire(system, location, context, period)
    return replace(model, D=model.D + np.eye(len(model.D)))


@answers_other_words
def complementary_sensitivity(
    system: System, location: Way, *, context: Context | None = None, period: float | None = None
) -> LinearModel:
    """Return the complementary sensitivity T = L (I + L)⁻¹ at a wire.

    T is the negative of the transfer function from a signal added at the wire to the signal that
    returns to it.

    Parameters
    ----------
    system, location, context, period
        As for `loop_gain`.

    Returns
    -------
    LinearModel

    See Also
    --------
    loop_gain : The gain of the opened loop.
    sensitivity_function : S = I - T.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.DiagramBuilder("loop")
    >>> builder.add_all(fx.Gain("controller", -3.0), fx.Integrator("plant"))
    >>> builder.connect_chain("controller", "plant", "controller")
    >>> model = fx.complementary_sensitivity(builder.build(), "plant.u")
    >>> model.frequency_response(0.0)
    array([[1.+0.j]])
    """
    return _negative(_from_wire(system, location, context, period))


def _from_wire(
    system: System,
    location: Way,
    context: Context | None,
    period: float | None,
    *,
    opened: bool = False,
) -> LinearModel:
    """Return the way from what is added to a wire to what comes to that place."""
    require_system(system, "Cannot linearize")
    attempt = f"Cannot analyze a loop of '{system.label}'"
    if context is None:
        context = system.create_default_context()
    require_root(context, system, attempt)
    place = wire_place(context, location, attempt)
    openings = [location] if opened else []
    find = partial(
        linearize, system, context, [location], [_before(place)], openings=openings, period=period
    )
    model = find()
    if opened and period is not None:
        whole = linearize(system, context, [], [], period=period)
        if not _closes(model, whole):
            # A block behind the wire samples it at the instants at which it changes.
            model = find(inputs_after_updates=True)
            if not _closes(model, whole):
                raise EvaluationError(
                    attempt,
                    expected="a wire at which the loop, opened and closed again, has the poles of "
                    "the diagram",
                    found=f"other poles at '{place.names[0]}', since the signal there moves "
                    "between the instants, and a model from sample to sample holds it",
                    remedy="Open the loop at the output of a block that samples",
                )
    around = _around(context, place)
    notes = linear_notes(leaf for leaf in context.leaves() if leaf.position in around)
    is_zero = not model.D.any() and not len(reduction(model.A, model.B, model.C, HIDDEN).A)
    if is_zero and not any(BLOCKS in each for each in notes):
        notes = (*notes, *_blocking(context, around, period))
    if opened:
        notes = (*notes, *_beyond_delays(model, context, around))
    return replace(model, notes=notes)


def _beyond_delays(model: LinearModel, context: Context, around: Collection[int]) -> Iterator[str]:
    """Name approximated delays of a loop that has a gain above 1 where their phase is wrong."""
    for leaf in context.leaves():
        block = leaf.system
        if not isinstance(block, PadeDelay) or leaf.position not in around:
            continue
        highest = block.highest_frequency(leaf)
        above = highest * np.geomspace(1.0, _FAR, _PLACES)
        if model.period is not None:
            above = above[above < np.pi / model.period]
        gains = np.abs(model.frequency_response(above)).ravel()
        if (gains > 1.0).any():
            yield (
                f"'{block.label}' approximates its delay up to {highest:.3g} rad/s, and the loop "
                f"has a gain of {gains.max():.3g} above: raise its order, or take a TimeDelay"
            )


def _closes(model: LinearModel, whole: LinearModel) -> bool:
    """Return whether a sampled model whose output is its input has the poles of the diagram."""
    back = np.eye(len(model.D)) - model.D
    if abs(np.linalg.det(back)) < _SINGULAR:
        return True
    closed = model.A + model.B @ np.linalg.solve(back, model.C)
    # Poles at zero, as of delays, change neither side.
    found, wanted = (
        np.array([np.linalg.det(np.eye(len(A)) - A / z) for z in _CIRCLE])
        for A in (closed, whole.A)
    )
    return bool(np.allclose(found, wanted, rtol=_SAME, atol=_SAME))


def _around(context: Context, place: Place) -> set[int]:
    """Return the positions of the blocks from a wire all the way around to it again."""
    layout, port = context.store.layout, place.handle
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(layout.leaves)))
    for reader, slots in enumerate(layout.sources):
        graph.add_edges_from((layout.slot_leaf[slot], reader) for slot in slots)
    slot = slot_of(context, port)
    source = layout.slot_leaf[slot]
    first = {k for k, slots in enumerate(layout.sources) if slot in slots}
    behind = first.union(*(nx.descendants(graph, k) for k in first))
    return behind & {source, *nx.ancestors(graph, source)}


def _blocking(context: Context, around: set[int], period: float | None) -> Iterator[str]:
    """Name the blocks of a loop whose outputs and rates have the slope zero by all inputs."""
    for leaf in context.leaves():
        block = leaf.system
        wires = [p for p in block.input_ports if carries_vector(p) and is_fed(context, p)]
        if leaf.position in around and wires:
            shown = [port for port in block.output_ports if carries_vector(port)]
            attempt = f"Cannot look for what '{block.label}' passes"
            system = context.system
            own = linearized(system, context, wires, shown, attempt, openings=wires, period=period)
            if not (own.B.any() or own.D.any()):
                yield f"'{block.label}' {BLOCKS}: all its slopes are zero here"


def _before(place: Place) -> Way:
    """Return where to look for what comes to a port, whatever is added there."""
    port: Port = place.handle
    feed: Port | None = None
    if isinstance(port, InputPort) and port.system.parent is not None:
        feed = port.system.parent.feed_of(port)
    shown = place if feed is None else replace(place, handle=feed)
    return shown.handle if place.part is None else shown.names[0]


def _negative(model: LinearModel) -> LinearModel:
    """Return a model with the opposite outputs."""
    return replace(model, C=-model.C, D=-model.D, y0=-model.y0)
