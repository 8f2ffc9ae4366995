"""Loop gain and sensitivities of feedback loops at one or several of their wires.

A disturbance d is added to the signal m that comes to a port, and v = m + d goes on. Around the
loop, v comes back as m = -L v, in the convention of negative feedback, so that, with vectors for
several wires,

    v = S d,    S = (I + L)⁻¹,    the sensitivity,
    m = -T d,   T = L (I + L)⁻¹ = I - S,    the complementary sensitivity.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import networkx as nx
import numpy as np

from flexure.blocks.linear_systems.delays import PadeDelay
from flexure.diagrams.checks.arguments import require
from flexure.diagrams.checks.errors import EvaluationError, quoted
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import require_root
from flexure.diagrams.contexts.value_places import Place, Way, several
from flexure.diagrams.interface.option_names import answers_other_words
from flexure.diagrams.systems.ports import InputPort, Port
from flexure.diagrams.systems.system import System, require_system
from flexure.solvers.analysis.equations.equations import carries_vector, slot_of
from flexure.solvers.analysis.equations.tangents import BLOCKS, linear_notes
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
    system: System,
    location: Way | Iterable[Way],
    *,
    openings: Way | Iterable[Way] = (),
    context: Context | None = None,
    period: float | None = None,
) -> LinearModel:
    """Return the loop gain L at one or several wires, with the loops opened there.

    The loops are broken at the wires. L is the (negative-feedback) transfer function, or matrix of
    them, from the signals injected after the breaks to the signals returning before them.

    Parameters
    ----------
    system : System
        A diagram.
    location : Handle, str or iterable of them
        A port on a wire between blocks, or a component of one: an output port for all that read
        it, an input port for its block alone. Other loops stay closed. Several wires, and all
        components of a vector, are opened at once.
    openings : Handle, str or iterable of them, optional
        Further wires that are opened, such as that of an outer loop. The block behind such an
        opening reads a constant, the present value.
    context : Context, optional
        Operating point, a root context; it is not changed. A default context when omitted.
    period : float, optional
        Sampling period in s, for a discrete-time model, as for `linearize`.

    Returns
    -------
    LinearModel
        L, in the convention of negative feedback: the closed loop has the sensitivity (I + L)⁻¹.

    Raises
    ------
    UnknownNameError
        When there is no such wire.
    EvaluationError
        As for `linearize`, and if the signal at the wire moves between the instants of a sampled
        model, which would hold it.

    See Also
    --------
    margins : Stability margins of the loop gain, also of several wires at once.
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

    Both outputs of a block of two integrators, which feed each other, at once:

    >>> builder = fx.DiagramBuilder("loops")
    >>> builder.add_all(fx.MatrixGain("mix", [[-3.0, -1.0], [1.0, -2.0]]), fx.Integrator("x", 2))
    >>> builder.connect_chain("mix", "x", "mix")
    >>> fx.loop_gain(builder.build(), "x.y").frequency_response(1.0).imag
    array([[-3., -1.],
           [ 1., -2.]])
    """
    return _negative(_from_wires(system, location, openings, context, period, opened=True))


@answers_other_words
def sensitivity_function(
    system: System,
    location: Way | Iterable[Way],
    *,
    openings: Way | Iterable[Way] = (),
    context: Context | None = None,
    period: float | None = None,
) -> LinearModel:
    """Return the sensitivity S = (I + L)⁻¹ at a wire.

    S is the transfer function from a signal added at the wire to the signal that leaves it.

    Parameters
    ----------
    system, location, openings, context, period
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
    model = _from_wires(system, location, openings, context, period)
    return replace(model, D=model.D + np.eye(len(model.D)))


@answers_other_words
def complementary_sensitivity(
    system: System,
    location: Way | Iterable[Way],
    *,
    openings: Way | Iterable[Way] = (),
    context: Context | None = None,
    period: float | None = None,
) -> LinearModel:
    """Return the complementary sensitivity T = L (I + L)⁻¹ at a wire.

    T is the negative of the transfer function from a signal added at the wire to the signal that
    returns to it.

    Parameters
    ----------
    system, location, openings, context, period
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
    return _negative(_from_wires(system, location, openings, context, period))


def _from_wires(
    system: System,
    location: Way | Iterable[Way],
    openings: Way | Iterable[Way],
    context: Context | None,
    period: float | None,
    *,
    opened: bool = False,
) -> LinearModel:
    """Return the way from what is added to wires to what comes to these places."""
    require_system(system, "Cannot linearize")
    attempt = f"Cannot analyze a loop of '{system.label}'"
    if context is None:
        context = system.create_default_context()
    require_root(context, system, attempt)
    wires, open_ways = several(location), several(openings)
    require(len(wires) > 0, location, attempt, "a port on a wire between blocks, or several")
    places = [wire_place(context, wire, attempt) for wire in wires]
    ends = [before(place) for place in places]
    find = partial(linearize, system, context, wires, ends, period=period)
    cuts, late = [*wires, *open_ways], False
    model = find(openings=cuts if opened or period is not None else open_ways)
    if period is not None:
        whole = linearize(system, context, [], [], openings=open_ways, period=period)
        if not _closes(model, whole):
            # A block behind the wire samples it at the instants at which it changes.
            model = find(openings=cuts, inputs_after_updates=True)
            late = _closes(model, whole)
            if opened and not late:
                raise EvaluationError(
                    attempt,
                    expected="a wire at which the loop, opened and closed again, has the poles of "
                    "the diagram",
                    found=f"other poles at {quoted(place.names[0] for place in places)}, since the "
                    "signal there moves between the instants, and a model from sample to sample "
                    "holds it",
                    remedy="Open the loop at the output of a block that samples",
                )
        if not opened:
            model = find(openings=open_ways, inputs_after_updates=late)
    around = around_wires(context, places)
    notes = linear_notes(leaf for leaf in context.leaves() if leaf.position in around)
    is_zero = not model.D.any() and not len(reduction(model.A, model.B, model.C, HIDDEN).A)
    if is_zero and not any(BLOCKS in each for each in notes):
        notes = (*notes, *_blocking(context, around, period))
    if opened:
        notes = (*notes, *_beyond_delays(model, context, around))
    return replace(model, notes=notes)


def approximated_delays(context: Context, around: Collection[int]) -> Iterator[tuple[str, float]]:
    """Yield what approximates a delay, and up to which frequency, in words and in rad/s."""
    for leaf in context.leaves():
        if isinstance(leaf.system, PadeDelay) and leaf.position in around:
            highest = leaf.system.highest_frequency(leaf)
            text = f"'{leaf.system.label}' approximates its delay up to {highest:.3g} rad/s"
            yield text, highest


def _beyond_delays(model: LinearModel, context: Context, around: Collection[int]) -> Iterator[str]:
    """Name approximated delays of a loop that has a gain above 1 where their phase is wrong."""
    for text, highest in approximated_delays(context, around):
        above = highest * np.geomspace(1.0, _FAR, _PLACES)
        if model.period is not None:
            above = above[above < np.pi / model.period]
        gains = np.abs(model.frequency_response(above)).ravel()
        if (gains > 1.0).any():
            yield (
                f"{text}, and the loop has a gain of {gains.max():.3g} above: raise its order, or "
                "take a TimeDelay"
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


def around_wires(context: Context, places: Sequence[Place]) -> set[int]:
    """Return the positions of the blocks from wires all the way around to one of them again."""
    layout, graph = context.store.layout, wiring(context)
    cut = {slot_of(context, place.handle) for place in places}
    sources = {layout.slot_leaf[slot] for slot in cut}
    first = {k for k, read in enumerate(layout.sources) if not cut.isdisjoint(read)}
    behind = first.union(*(nx.descendants(graph, k) for k in first))
    return behind & sources.union(*(nx.ancestors(graph, k) for k in sources))


def wiring(context: Context) -> nx.DiGraph:
    """Return the graph of blocks by position, from each to those that read it."""
    layout = context.store.layout
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(layout.leaves)))
    for reader, slots in enumerate(layout.sources):
        graph.add_edges_from((layout.slot_leaf[slot], reader) for slot in slots)
    return graph


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


def before(place: Place) -> Way:
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
