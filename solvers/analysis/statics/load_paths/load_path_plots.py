"""Plots of load paths, and drawings of the mechanism along them, still or animated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.blocks import Plant
from flexure.blocks.multibody.trees.component_names import mixed_unit
from flexure.diagrams.checks.arguments import require
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.contexts.value_places import Place, Way, find_place, is_signal
from flexure.diagrams.drawing.formats.new_figures import axes_or_new, saved
from flexure.diagrams.drawing.formats.style import COLORS, GREY, check_target, name_axis, tidy
from flexure.diagrams.interface.option_names import answers_other_words
from flexure.diagrams.values.arrays import FloatArray, as_number, bounded
from flexure.solvers.analysis.equations.equations import can_vary
from flexure.solvers.analysis.forces_at_rest.static_coordinates import plants_in
from flexure.solvers.results.mechanisms.camera import View
from flexure.solvers.results.mechanisms.films import play, target_of
from flexure.solvers.results.mechanisms.pictures import (
    Motion,
    checked_options,
    chosen_plant,
    drawn,
    poses_in,
    stresses_in,
)
from flexure.solvers.results.pictures.free_labels import Label, place_labels

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from matplotlib.animation import FuncAnimation
    from matplotlib.axes import Axes

    from flexure.solvers.analysis.statics.load_paths.load_path import LoadPath

_FORCES = {"rad": "N m", "m": "N"}  # units of what holds a coordinate
_NAMED = {"limit": "limit point", "branch": "branch point"}
_CURVES = ("load path", "unstable part")  # what Matplotlib knows the lines by
_LABEL = "label of a special point"
_MOST_LABELS = 12
_SAME = 2e-3  # parts of the picture, within which points have one label
_FINE = 8  # parts of a curve between two points
_CORNER = 0.2  # cosine of the angle between chords from which on there is a corner
_SECONDS = 4.0  # of an animation
_MOST = 100  # states in one picture


def plot_load_path(
    found: LoadPath,
    x: Way | None = None,
    y: Way | None = None,
    *,
    ax: Axes | None = None,
    path: str | Path | None = None,
) -> Axes:
    """Plot one quantity over another: full where stable, dashed where unstable.

    Parameters
    ----------
    x, y : Handle or str, optional
        What is drawn along the axes: anything that ``path[...]`` gives with one component. By
        default, of a path along a stroke the force over the stroke; of any other path the load
        over the coordinate that changes most.
    ax : matplotlib.axes.Axes, optional
        Where to plot; a new figure when omitted.
    path : str or Path, optional
        Where to save the figure.

    Returns
    -------
    matplotlib.axes.Axes
    """
    attempt = f"Cannot plot a load path of '{found.system.label}'"
    check_target(ax, path, attempt)
    sides = [_chosen(found, x, attempt, across=True), _chosen(found, y, attempt, across=False)]
    is_new = ax is None
    ax = axes_or_new(ax, figsize=(6.8, 5.0))
    number = sum(line.get_gid() == "load path" for line in ax.lines)
    color = COLORS[number % len(COLORS)]
    (_, _, along), (_, _, up) = sides
    curve = _smooth(along, up)
    lines = [
        *_parts(ax, curve, found, stable=True, color=color),
        *_parts(ax, curve, found, stable=False, color=color),
    ]
    for line, name in zip(lines, _CURVES, strict=True):
        line.set_gid(name)
    ax.plot(along[0], up[0], "o", color=color, markersize=5, markerfacecolor="white", zorder=4)
    labels = []
    others: list[Any] = [line for line in ax.lines if line.get_gid() == "special point"]
    here: dict[tuple[str, tuple[float, float]], list[tuple[float, float]]] = {}
    spans = np.ptp(along) or 1.0, np.ptp(up) or 1.0
    marked = [np.ravel(line.get_xydata()) for line in others]
    for point in found.special:
        at = float(along[point.index]), float(up[point.index])
        marker = "D" if point in found.branch_points else "o"
        ax.plot(*at, marker, color=color, markersize=6, zorder=5, gid="special point")
        if not any(np.allclose(at, other) for other in marked):  # by another path
            here.setdefault(_group(point.kind, at, spans, here), []).append(at)
    for (kind, _), places in here.items():
        name = _NAMED.get(kind, kind)
        words = name if len(places) == 1 else f"{len(places)} {name}s"
        labels.append(Label(f"{words} {places[0][1]:.4g}", places[0], color))
    if is_new:
        ax.set_title(found.system.label)
    for axis, (name, unit, _) in zip((ax.xaxis, ax.yaxis), sides, strict=True):
        name_axis(axis, name, unit, 44)
    tidy(ax)
    for draw, rows in ((ax.axhline, up), (ax.axvline, along)):
        if np.min(rows) < 0.0 < np.max(rows):
            draw(0.0, color=GREY, linewidth=0.6, zorder=0.5)
    labels = [*_taken_down(ax), *labels]  # those of other paths may be where this one goes
    if len(labels) <= _MOST_LABELS:
        for text in place_labels(ax, labels, [e for e in ax.lines if e.get_gid() in _CURVES]):
            text.set_gid(_LABEL)
    return saved(ax, path)


def _taken_down(ax: Axes) -> list[Label]:
    """Remove the labels of special points, with the lines to them, and return what they said."""
    texts: list[Any] = [each for each in ax.texts if each.get_gid() == _LABEL]
    places = [text.xy for text in texts]
    leaders: list[Any] = [each for each in ax.texts if not each.get_text()]
    for each in (*texts, *(leader for leader in leaders if leader.xyann in places)):
        each.remove()
    return [Label(text.get_text(), text.xy, text.get_color()) for text in texts]


def _group(
    kind: str,
    at: tuple[float, float],
    spans: tuple[float, float],
    known: Iterable[tuple[str, tuple[float, float]]],
) -> tuple[str, tuple[float, float]]:
    """Return kind and place of the first point of this kind that is seen at the same place."""
    for other, place in known:
        apart = (abs(a - b) / span for a, b, span in zip(at, place, spans, strict=True))
        if other == kind and max(apart) < _SAME:
            return other, place
    return kind, at


def _parts(ax: Axes, curve: FloatArray, found: LoadPath, *, stable: bool, color: str) -> list[Any]:
    """Draw the parts that are stable, or those that are not, as one line with gaps."""
    special = np.zeros(len(found), dtype=bool)
    special[[point.index for point in found.special]] = True
    # A special point belongs to both sides, so the other end of a segment says what it is.
    sides = np.where(special[:-1], found.stable[1:], found.stable[:-1])
    chosen = np.repeat(sides == stable, _FINE)
    shown = np.append(chosen, False) | np.append(False, chosen)
    style: dict[str, Any] = {"linewidth": 1.9} if stable else {"linewidth": 1.5, "linestyle": "--"}
    # Matplotlib begins dashes anew behind each gap, so there are gaps only where sides change.
    drawn = np.where(shown, curve, np.nan)
    return list(ax.plot(*drawn, color=color, **style))


def _smooth(along: FloatArray, up: FloatArray) -> FloatArray:
    """Return a curve through points, with a number of parts between each and the next."""
    # It is a cubic spline over the lengths of chords, but for corners, as where a branch departs.
    from scipy.interpolate import CubicSpline

    points = np.stack([along, up])
    spans = np.ptp(points, axis=1, keepdims=True)
    chords = np.diff(points / np.where(spans > 0.0, spans, 1.0), axis=1)
    lengths = np.linalg.norm(chords, axis=0)
    turns = np.sum(chords[:, 1:] * chords[:, :-1], axis=0)
    corners = 1 + np.flatnonzero(turns <= _CORNER * lengths[1:] * lengths[:-1])
    ends = [0, *corners.tolist(), len(along) - 1]
    at = np.append(0.0, np.cumsum(lengths))
    pieces = [points[:, :1]]
    for first, last in pairwise(ends):
        part, parts = slice(first, last + 1), np.arange(1, _FINE * (last - first) + 1) / _FINE
        knots = at[part]
        if last - first > 1 and np.all(np.diff(knots) > 0.0):
            grid = np.interp(parts, np.arange(last - first + 1), knots)
            pieces.append(CubicSpline(knots, points[:, part], axis=1)(grid))
        else:
            rows = [np.interp(parts, np.arange(last - first + 1), row[part]) for row in points]
            pieces.append(np.stack(rows))
    return np.hstack(pieces)


def _chosen(
    found: LoadPath, way: Way | None, attempt: str, *, across: bool
) -> tuple[str, str, FloatArray]:
    """Return name, unit and values of what is drawn along one side."""
    if way is not None:
        place = find_place(found.system, way, lambda handle: is_signal(handle) or can_vary(handle))
        values = found[way]
        _require_single(values, len(found), place, attempt)
        return place.path, _unit_of(place), values
    if found.required:
        name = next(iter(found.required))
        place = find_place(found.system, name)
        if across:
            return _chosen(found, name, attempt, across=True)
        force = found.required[name]
        _require_single(force, len(found), place, attempt)
        unit = _unit_of(place)
        return f"required force along {name}", _FORCES.get(unit, ""), force
    if not across:
        return _chosen(found, next(iter(found.values)), attempt, across=False)
    moved = max(_coordinates(found), key=lambda each: float(np.ptp(each[2])), default=None)
    if moved is None:
        raise ValueRefusedError(
            attempt, expected="x=, the quantity of the horizontal axis", found="no plant"
        )
    return moved


def _coordinates(found: LoadPath) -> Iterator[tuple[str, str, FloatArray]]:
    """Yield name, unit and values of all joint coordinates."""
    for plant in plants_in(found.system):
        for joint in plant.joints:
            if joint.num_velocities:
                place = joint.positions.place
                rows = found[joint.positions].reshape(len(found), -1)
                for k, (name, column) in enumerate(zip(place.names, rows.T, strict=True)):
                    one = replace(place, part=np.array([k]))
                    yield (place.path if rows.shape[1] == 1 else name), _unit_of(one), column


def _unit_of(place: Place) -> str:
    """Return the unit of all components, or of the one that is meant where they have several."""
    names = getattr(place.handle, "element_names", None) or ()
    unit = getattr(place.handle, "unit", None) or ""
    return unit or (mixed_unit(names, names[place.components[0]]) if names else "")


def _require_single(values: FloatArray, count: int, place: Place, attempt: str) -> None:
    """Refuse what has several components."""
    if values.shape != (count,):
        raise ValueRefusedError(
            attempt,
            expected="one number at each point",
            found=f"{values[0].size} of '{place.path}'",
            remedy=f"Name one of its components, such as {place.names[0]!r}",
        )


@answers_other_words
def plot_mechanism(
    found: LoadPath,
    plant: Plant | None = None,
    *,
    num_equilibria: int = 5,
    view: View = "auto",
    stress: bool = False,
    ground: float | None = None,
    title: str | None = None,
    ax: Axes | None = None,
    path: str | Path | None = None,
) -> Axes:
    """Draw a plant at several equilibria in one picture, the last one in front.

    Parameters
    ----------
    plant : Plant, optional
        The plant; it may be omitted when the system is one or contains exactly one.
    num_equilibria : int
        How many equilibria: the first one, the last one, and others between which bodies move
        by about as much.
    view, stress, ground, title, ax, path
        As for `flexure.plot_mechanism`. All states share one scale of stresses. The title
        tells what was varied when omitted.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    UnknownNameError
        When there is no plant, or it is not clear which one is meant.
    DeclarationError
        When there is no flexure that could be colored.

    Notes
    -----
    Bodies are pale but in the last state, flexures are not. Where parameters are varied,
    shapes have the dimensions with which the path begins.
    """
    attempt = f"Cannot draw '{found.system.label}' along its load path"
    plant = chosen_plant(plant, found.system, "plot_mechanism(plant)")
    check_target(ax, path, attempt)
    number = as_number(num_equilibria, (), f"{attempt} with num_equilibria={num_equilibria!r}")
    wanted = f"a whole number of states from 2 to {_MOST}"
    require(2 <= number <= _MOST and number == int(number), num_equilibria, attempt, wanted)
    _, height, caption = checked_options(plant, False, ground, title)
    numbers = _spread(found, plant, int(number))
    names = ", ".join(
        f"{name} from {_word(rows[0])} to {_word(rows[-1])}" for name, rows in found.values.items()
    )
    motion = _motion(found, plant, numbers, [caption or names] * len(numbers), stress)
    return drawn(motion, ax, path, view=view, ground=height)


def animate_path(
    found: LoadPath,
    plant: Plant | None = None,
    *,
    path: str | Path | None = None,
    view: View = "auto",
    fps: int = 25,
    stress: bool = False,
) -> FuncAnimation:
    """Animate a plant along the path, from equilibrium to equilibrium.

    Parameters
    ----------
    plant : Plant, optional
        The plant; it may be omitted when the system is one or contains exactly one.
    path : str or Path, optional
        Where to save it, as for `animate`.
    view, stress
        As for `flexure.plot_mechanism`.
    fps : int
        Pictures per second.

    Returns
    -------
    matplotlib.animation.FuncAnimation

    Raises
    ------
    UnknownNameError
        When there is no plant, or it is not clear which one is meant.
    DeclarationError
        When there is no flexure that could be colored.

    Notes
    -----
    It takes four seconds, in which bodies move evenly, as far as there are points: this is no
    motion in time. The title states the varied value, and whether the equilibrium is unstable.
    """
    attempt = f"Cannot animate a load path of '{found.system.label}'"
    plant = chosen_plant(plant, found.system, "animate(plant)")
    bounded(fps, attempt, lower=1.0, upper=1000.0)
    target = None if path is None else target_of(path)
    numbers = _spread(found, plant, round(_SECONDS * fps))
    captions = [_caption(found, number) for number in numbers]
    motion = _motion(found, plant, numbers, captions, stress)
    return play(motion, target=target, view=view, fps=fps)


def _motion(
    found: LoadPath, plant: Plant, numbers: Sequence[int], captions: Sequence[str], stress: bool
) -> Motion:
    """Return the states of some points."""
    contexts = [found.state_at(number) for number in numbers]
    stresses = stresses_in(plant, contexts, stress)
    return Motion(plant, contexts[0], poses_in(plant, contexts), captions, stresses=stresses)


def _spread(found: LoadPath, plant: Plant, count: int) -> list[int]:
    """Return the numbers of points between which bodies move by about as much, in their order."""
    # The first and the last one are among them. Where the path has fewer points, some come twice.
    poses = poses_in(plant, [found.state_at(number) for number in range(len(found))])
    size = float(np.max(np.ptp(poses[..., 9:].reshape(-1, 3), axis=0))) or 1.0
    scaled = np.concatenate([size * poses[..., :9] / np.sqrt(2.0), poses[..., 9:]], axis=-1)
    steps: FloatArray = np.sqrt(np.sum(np.diff(scaled, axis=0) ** 2, axis=(1, 2)))
    along = np.append(0.0, np.cumsum(steps))
    wanted = np.linspace(0.0, along[-1], count)
    return [int(np.argmin(np.abs(along - each))) for each in wanted[:-1]] + [len(found) - 1]


def _caption(found: LoadPath, number: int) -> str:
    values = ", ".join(f"{name} = {_word(rows[number])}" for name, rows in found.values.items())
    return values if found.stable[number] else f"{values}, unstable"


def _word(value: Any) -> str:
    return f"{value:.4g}" if np.ndim(value) == 0 else np.array2string(value, precision=4)
