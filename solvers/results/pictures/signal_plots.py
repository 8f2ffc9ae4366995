"""Pictures of signals over time, of one run or of several, and over each other."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.diagrams.checks.arguments import (
    are_axes,
    can_be_written,
    items_of,
    mapping,
    require,
)
from flexure.diagrams.checks.errors import ValueRefusedError, quoted
from flexure.diagrams.contexts.value_places import path_of
from flexure.diagrams.drawing.formats.new_figures import new_figure, saved
from flexure.diagrams.drawing.formats.style import (
    COLORS,
    DARK,
    GREY,
    PALE,
    RED,
    check_file,
    check_target,
    check_title,
    labelled,
    name_axis,
    style_of,
    tidy,
    write_legend,
)
from flexure.diagrams.systems.leaf import LeafSystem
from flexure.diagrams.systems.system import System, each_system
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.events import Periodic
from flexure.solvers.results.measures.step_responses import require_single
from flexure.solvers.results.pictures.free_labels import Label, place_labels
from flexure.solvers.results.pictures.panels import Curve, Panel, Scales, arrange
from flexure.solvers.tracing.signals import Signal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from flexure.solvers.results.records.result import SimulationResult

_MOST_PANELS = 12  # where nobody named signals
_MOST_ASKED = 100  # panels, more of which would make a picture too tall for its file
_LISTS = "Each list of signals is a panel, as in plot([['a.y', 'b.y'], 'c.y'])"
_MOST_NAMED = 24  # curves in a legend
_MOST_EVENTS = 24  # that are marked
_DASHES = ("-", "--", ":", "-.")
_ROUGHLY = 1e-6  # of a period, within which an instant is that of a periodic event
_ARROWS = (0.15, 0.45, 0.75)  # along the way
_POINTS = 8000


def plot_signals(
    runs: Mapping[str, SimulationResult],
    signals: Sequence[Any],
    attempt: str,
    *,
    units: Mapping[str, str] | None,
    title: str | None,
    ax: Axes | Sequence[Axes] | None,
    path: str | Path | None,
) -> Figure:
    """Plot signals of one run or of several ones; see `SimulationResult.plot` and `compare`.

    With several runs, each has a color, and each signal of a panel its dashes.
    """
    check_file(path, attempt)
    check_title(title, attempt)
    first = next(iter(runs.values()))
    scales = Scales(units, attempt)
    given = given_axes(ax, attempt)
    together = given is not None and are_axes(ax)
    chosen = signals or [first.foremost]
    panels = arrange(first.system, chosen, scales, attempt, together)
    if len(runs) > 1:
        _require_the_same(runs, panels, scales, attempt)
    found = len(panels)
    if given is None and not signals:
        panels = panels[:_MOST_ASKED]
    if given is None and len(panels) > _MOST_ASKED:
        raise ValueRefusedError(
            attempt, expected=f"at most {_MOST_ASKED} panels", found=f"{len(panels)}", remedy=_LISTS
        )
    if given is not None and len(given) != len(panels):
        raise ValueRefusedError(
            attempt,
            expected=f"ax to be {len(panels)} Axes, one for each panel",
            found=f"{len(given)}",
            remedy=_LISTS,
        )
    sampled = {name: _sampled(result, panels, first.system) for name, result in runs.items()}
    still: list[Curve] = []
    if given is None and not signals:
        panels, still = _folded(panels, [*sampled.values()])
        found = len(panels)
        panels = panels[:_MOST_PANELS]
    if given is None:
        height = sum(_height(panel) for panel in panels)
        figure = new_figure(figsize=(8.0, 0.9 + height), layout="constrained")
        axes = [*figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]]
    else:
        axes = given
        figure = axes[0].figure.figure
    unit, scale = scales("s")
    rows = [
        _draw(each, panel, sampled, scale, names_runs=each is axes[0] or given is not None)
        for each, panel in zip(axes, panels, strict=True)
    ]
    for each in axes if given is not None else axes[-1:]:
        each.set_xlabel(f"time [{unit}]")
    if given is None:
        said = f"{first.system.label}{_left_out(len(panels), found, still)}"
        figure.suptitle(said if title is None else title)
    elif title is not None:
        axes[0].set_title(title, pad=6.0 + 15.0 * rows[0])
    for name, result in runs.items():
        color = RED if len(runs) == 1 else COLORS[list(runs).index(name) % len(COLORS)]
        _mark_end(axes, result, name if len(runs) > 1 else "", scale, color)
    if len(runs) == 1:
        _mark_events(axes, first, scale)
    return saved(figure, path)


def given_axes(ax: Any, attempt: str) -> list[Axes] | None:
    """Return the axes passed as an argument."""
    if ax is None:
        return None
    wanted = "ax to be Axes of Matplotlib, a sequence of them, or None"
    if are_axes(ax):
        return [ax]
    axes = [*items_of(ax.ravel() if isinstance(ax, np.ndarray) else ax, wanted, attempt)]
    require(axes and all(map(are_axes, axes)), ax, attempt, wanted)
    return axes


def _folded(
    panels: Sequence[Panel], sampled: Sequence[Mapping[Curve | None, FloatArray]]
) -> tuple[list[Panel], list[Curve]]:
    """Return panels without what stays constant, and the curves that were left out."""
    # Panels in which all curves are constant are left out, and zero components elsewhere; but
    # nothing where everything is constant.

    def span(curve: Curve) -> float:
        return max(float(np.ptp(values[curve])) for values in sampled)

    moving = [panel for panel in panels if not all(span(each) == 0.0 for each in panel.curves)]
    if not moving:
        return [*panels], []
    kept = [
        Panel([c for c in panel.curves if not c.short or any(v[c].any() for v in sampled)])
        for panel in moving
    ]
    shown = {curve for panel in kept for curve in panel.curves}
    return kept, [c for panel in panels for c in panel.curves if c not in shown]


def _left_out(shown: int, found: int, still: Sequence[Curve]) -> str:
    """Return what a title says about panels and curves that are not shown."""
    some = f", {shown} of {found} panels" if shown < found else ""
    if still:
        count = f"{len(still)} constant curve{'s' * (len(still) > 1)}"
        some += f"\n{count} left out: shown by name, as in plot('{path_of(still[0].signal)}')"
    return some


def _height(panel: Panel) -> float:
    """Return the height of a panel in inches, with room for its legend."""
    named = len(panel.curves) if 1 < len(panel.curves) <= _MOST_NAMED else 0
    return 1.9 + 0.1 * named


def _require_the_same(
    runs: Mapping[str, SimulationResult], panels: Sequence[Panel], scales: Scales, attempt: str
) -> None:
    """Refuse runs in which the signals of the first one have other components or units."""
    first = next(iter(runs.values())).system
    told: dict[System, list[tuple[str, str]]] = {}
    for run, result in runs.items():
        if result.system not in told:
            asked = [*_asked(panels, same_system=result.system is first).values()]
            (whole,) = arrange(result.system, [asked], scales, attempt, together=True)
            told[result.system] = [(curve.name, curve.unit) for curve in whole.curves]
        wanted, found = (
            {labelled(*each) for each in told[system]}
            for system in (next(iter(told)), result.system)
        )
        if wanted != found:
            raise ValueRefusedError(
                attempt,
                expected=f"the same signals in the same units, {quoted(sorted(wanted - found))}",
                found=f"{quoted(sorted(found - wanted))} in '{run}'",
            )


def _asked(panels: Sequence[Panel], *, same_system: bool) -> dict[str, Signal]:
    """Return the signals of panels by their paths, which also say what another system is asked."""
    signals = [curve.signal for panel in panels for curve in panel.curves]
    return {path_of(each): each if same_system else path_of(each) for each in signals}


def _sampled(
    result: SimulationResult, panels: Sequence[Panel], system: System
) -> dict[Curve | None, FloatArray]:
    """Return the numbers of all curves, and under None the times."""
    signals = _asked(panels, same_system=result.system is system)
    grid = result.fine_time()
    data = dict(zip(signals, result.sample_all([*signals.values()], grid), strict=True))
    found: dict[Curve | None, FloatArray] = {None: grid}
    for curve in (curve for panel in panels for curve in panel.curves):
        found[curve] = curve.drawn(data[path_of(curve.signal)])
    return found


def _draw(
    ax: Axes,
    panel: Panel,
    sampled: Mapping[str, Mapping[Curve | None, FloatArray]],
    scale: float,
    *,
    names_runs: bool,
) -> int:
    """Draw the curves of a panel; return the number of rows of its legend."""
    # The legend of the first of several panels names the runs. Signals that jump have two values at
    # one time, so that held samples are drawn as steps. If a signal is the same in several runs,
    # such as a setpoint, it is drawn once.
    names = dict(zip(panel.curves, panel.labels, strict=True))
    several = len(sampled) > 1
    common = [curve for curve in panel.curves if several and _is_common(curve, sampled)]
    others = [curve for curve in panel.curves if curve not in common]
    for number, (run, values) in enumerate(sampled.items()):
        time = scale * values[None]
        dot: dict[str, Any] = {} if time[-1] > time[0] else {"marker": "o"}
        for k, curve in enumerate(others):
            style = style_of(number if several else k) | dot
            if several:
                style["linestyle"] = _DASHES[k % len(_DASHES)]
            ax.plot(
                time,
                values[curve],
                **style,
                label=names[curve] if not several else run if k == 0 and names_runs else None,
            )
    if several:
        longest = max(sampled.values(), key=lambda values: float(values[None][-1]))
        for k, curve in enumerate(common):
            style = {"color": DARK, "linestyle": _DASHES[(k + 1) % len(_DASHES)]}
            ax.plot(
                scale * longest[None], longest[curve], **style, label=names[curve], linewidth=1.3
            )
        if len(others) > 1:
            for k, curve in enumerate(others):
                dashes = _DASHES[k % len(_DASHES)]
                ax.plot([], [], color=GREY, linestyle=dashes, label=names[curve])
    single = others[0].name if several and len(others) == 1 else panel.name
    name_axis(ax.yaxis, single, panel.unit)
    tidy(ax)
    named = ax.get_legend_handles_labels()[1]
    return write_legend(ax, named) if len(named) <= _MOST_NAMED else 0


def _is_common(curve: Curve, sampled: Mapping[str, Mapping[Curve | None, FloatArray]]) -> bool:
    """Return whether all runs have the same curve, as far as they go."""
    (time, first), *others = ((values[None], values[curve]) for values in sampled.values())
    last = len(time) - 1
    room = 1e-9 * float(np.ptp(first))
    for grid, numbers in others:
        inside = (grid >= time[0]) & (grid <= time[-1])
        left, right = (np.searchsorted(time, grid[inside], side) for side in ("left", "right"))
        near = np.array([first[k.clip(0, last)] for k in (left - 1, left, right - 1, right)])
        low, high = near.min(axis=0) - room, near.max(axis=0) + room
        if not np.all((numbers[inside] >= low) & (numbers[inside] <= high)):
            return False
    return True


def _mark_end(
    axes: Sequence[Axes], result: SimulationResult, run: str, scale: float, color: str
) -> None:
    """Mark where and why a run ended that did not reach its end."""
    if result.outcome == "completed":
        return
    end = scale * float(result.time[-1])
    for ax in axes:
        ax.axvline(end, color=color, linewidth=1.1, linestyle="-.", zorder=1.5)
    reason = " ".join(result.message.partition("\n")[0].split())
    text = textwrap.fill(f"{run}: {reason}" if run else reason, 44, max_lines=3, placeholder=" …")
    low, high = axes[0].get_ylim()
    places = [(end, float(y)) for y in np.linspace(low, high, 7)]
    label = Label(text, places[3], color, along=[*places[:3], *places[4:]])
    place_labels(axes[0], [label], axes[0].lines, outside=True)


def _mark_events(axes: Sequence[Axes], result: SimulationResult, scale: float) -> None:
    """Mark instants at which something jumps beside periodic samples, unless there are many."""
    times = result.time
    jumps = np.unique(times[1:][times[1:] == times[:-1]])
    for ticks in _clocks(result.system):
        late = (jumps - ticks.offset) / ticks.period
        jumps = jumps[np.abs(late - np.round(late)) > _ROUGHLY]
    if len(jumps) <= _MOST_EVENTS:
        for ax in axes:
            for time in jumps:
                ax.axvline(scale * time, color=PALE, linewidth=0.9, linestyle=":", zorder=0.8)


def _clocks(system: System) -> set[Periodic]:
    """Return the periods and offsets of all periodic events below a system."""
    leaves = (each for each in each_system(system) if isinstance(each, LeafSystem))
    triggers = (event.trigger for leaf in leaves for event in leaf.events)
    return {trigger for trigger in triggers if isinstance(trigger, Periodic)}


def compare(
    runs: Mapping[str, SimulationResult],
    *signals: Signal | Iterable[Signal | Iterable[Signal]],
    units: Mapping[str, str] | None = None,
    title: str | None = None,
    ax: Axes | Sequence[Axes] | None = None,
    path: str | Path | None = None,
) -> Figure:
    """Plot the same signals of several runs over time, in the same axes.

    Each run has a color, and where a panel has several signals, each of these its dashes.

    Parameters
    ----------
    runs : dict of str to SimulationResult
        The runs to compare, by their labels. They may be of different systems if the signals have
        the same paths and units.
    *signals, units, title, ax, path
        As for `SimulationResult.plot`.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueRefusedError
        As for `SimulationResult.plot`, and when units of a signal differ among the runs.
    UnknownNameError
        When a run has no such signal.

    See Also
    --------
    sweep : Many runs, with their own plots.

    Examples
    --------
    >>> import flexure as fx
    >>> lag = fx.FirstOrderLag("lag", 1.0)
    >>> runs = {}
    >>> for level in (1.0, 2.0):
    ...     context = lag.create_default_context()
    ...     lag.u.fix(context, level)
    ...     runs[f"u = {level:g}"] = fx.simulate(lag, 5.0, context=context)
    >>> figure = fx.compare(runs, "y")
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['u = 1', 'u = 2']
    """
    from flexure.solvers.results.records.result import SimulationResult

    attempt = "Cannot compare simulations"
    wanted = "results of simulations by their labels, such as {'kp = 30': result}"
    chosen = mapping(runs, wanted, attempt)
    fits = all(isinstance(run, SimulationResult) for run in chosen.values())
    require(chosen and fits and all(map(can_be_written, chosen)), runs, attempt, wanted)
    return plot_signals(chosen, signals, attempt, units=units, title=title, ax=ax, path=path)


def plot_phase(
    result: SimulationResult,
    x: Signal,
    y: Signal,
    *,
    units: Mapping[str, str] | None = None,
    title: str | None = None,
    ax: Axes | None = None,
    path: str | Path | None = None,
) -> Axes:
    """Plot one signal over another one: a phase portrait, from an open dot to a filled one.

    Parameters
    ----------
    x, y : Handle or str
        Signals with one component.
    units, title, path
        As for `plot`.
    ax : matplotlib.axes.Axes, optional
        Where to plot, beside the portraits that are there; a new figure when omitted.

    Returns
    -------
    matplotlib.axes.Axes
    """
    attempt = f"Cannot plot a phase portrait of '{result.system.label}'"
    check_target(ax, path, attempt)
    check_title(title, attempt)
    scales = Scales(units, attempt)
    grid = result.fine_time(_POINTS)
    data = result.sample_all([x, y], grid)
    for way, values in zip((x, y), data, strict=True):
        name = path_of(way)
        require_single(values, 1, f"{attempt} of '{name}'", f"Name one, as in '{name}[0]'")
    (first,), (second,) = (p.curves for p in arrange(result.system, [[x], [y]], scales, attempt))
    if ax is None:
        ax = new_figure(figsize=(6.4, 4.8), layout="constrained").subplots()
        ax.set_title(result.system.label if title is None else title)
    elif title is not None:
        ax.set_title(title)
    number = sum(line.get_gid() == "phase" for line in ax.lines)
    color = COLORS[number % len(COLORS)]
    points = np.column_stack([first.drawn(data[0]), second.drawn(data[1])])
    (line,) = ax.plot(*points.T, color=color, linewidth=1.7)
    line.set_gid("phase")
    ax.plot(*points[0], "o", color=color, markersize=6, markerfacecolor="white", zorder=4)
    ax.plot(*points[-1], "o", color=color, markersize=6, zorder=4)
    name_axis(ax.xaxis, first.name, first.unit, most=60)
    name_axis(ax.yaxis, second.name, second.unit, most=40)
    tidy(ax)
    _draw_arrows(ax, points[np.isfinite(points).all(axis=1)], color)
    return saved(ax, path)


def _draw_arrows(ax: Axes, points: FloatArray, color: str) -> None:
    """Draw the direction of time at some places of the way, as far as there is one."""
    if len(points) < 2:
        return
    size = np.ptp(points, axis=0)
    size[size == 0.0] = 1.0
    steps = np.diff(points, axis=0) / size
    way = np.cumsum(np.hypot(*steps.T))
    if not way[-1] > 0.0:
        return
    style: dict[str, Any] = {"arrowstyle": "-|>,head_width=0.3,head_length=0.6", "color": color}
    for share in _ARROWS:
        k = int(np.searchsorted(way, share * way[-1]))
        length = np.hypot(*steps[k])
        tail = points[k + 1] - 1e-3 * size * steps[k] / length
        arrow = ax.annotate("", tuple(points[k + 1]), xytext=tuple(tail), arrowprops=style)
        arrow.set_in_layout(False)
