"""Pictures and animations of plants as stick figures, with Matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from flexure.blocks import Plant
from flexure.blocks.forces.bushing_base import Bushing
from flexure.blocks.forces.point_to_point import PointToPointElement
from flexure.blocks.multibody import BodyForceElement, Frame
from flexure.diagrams.arguments import check_axes, file_path
from flexure.diagrams.drawing.canvas import forget, new_figure, save_figure
from flexure.diagrams.errors import DeclarationError, UnknownNameError, ValueRefusedError
from flexure.diagrams.system import System, way_to_a_system
from flexure.diagrams.values import FloatArray, as_number, check_bounds
from flexure.solvers.results.result import SimulationResult

if TYPE_CHECKING:
    from matplotlib.animation import FuncAnimation
    from matplotlib.axes import Axes

    from flexure.diagrams.context import Context

#: A side from which a plant is seen, or azimuth and elevation of the viewer in degrees.
View: TypeAlias = "str | tuple[float, float]"

_SIDES = {"xz": (-90.0, 0.0), "yz": (0.0, 0.0), "xy": (-90.0, 90.0)}
_BONES, _SPRING, _GROUND = "#1f5a99", "#c8641e", "#777777"
_AXES = ("#b22222", "#228b22", "#1f5a99")
_TRIAD = 0.06  # of the extent of the picture
_COILS = 7
_INCHES = 5.0  # the longer side of a new figure
_MARGIN = 0.08  # around the mechanism, as a part of its extent
_NARROWEST = 0.15  # half of the shorter side of a picture, as a part of that extent
_MOST_FRAMES = 100_000
_SLOWEST = 1e-3
_PACE = "Cannot animate at this pace"


@dataclass(frozen=True)
class Stroke:
    """A line through points that are fixed on bodies.

    Attributes
    ----------
    bodies : tuple of int
        Number of the body of each point.
    points : ndarray, shape (k, 3)
        Positions of the points in the frames of their bodies.
    kind : str
        ``"bone"``, ``"spring"``, ``"ground"``, or ``"x"``, ``"y"``, ``"z"`` for an axis of a frame,
        whose second point is a direction.
    """

    bodies: tuple[int, ...]
    points: FloatArray
    kind: str


def strokes(plant: Plant, context: Context) -> list[Stroke]:
    """Return the lines of the stick figure of a plant.

    A body is a star of bones from its inboard joint to its other joints, to its center of mass, to
    where elements are attached and to the frames that were added on it. Bushings are shown by the
    axes of their two frames, other elements between two places as springs.
    """
    hubs, ends = _landmarks(plant, context)
    found = [Stroke((0,), np.array([end]), "ground") for end in ends[0]]
    found += [
        Stroke((number, number), np.array([hub, end]), "bone")
        for number, hub in hubs.items()
        for end in ends[number]
        if np.linalg.norm(end - hub) > 0.0
    ]
    for element in plant.force_elements:
        if isinstance(element, Bushing):
            frames = (element.attachments[0].frame, element.attachments[1].frame)
            found += [stroke for frame in frames for stroke in _triad(frame)]
        elif isinstance(element, BodyForceElement) and len(element.attachments) == 2:
            found.append(_spring(element, context))
    return found


def _landmarks(
    plant: Plant, context: Context
) -> tuple[dict[int, FloatArray], dict[int, list[FloatArray]]]:
    """Return for each body but the world the point at its inboard joint, and the other points."""
    hubs: dict[int, FloatArray] = {}
    ends: dict[int, list[FloatArray]] = {number: [] for number in range(len(plant.bodies))}
    for mobilizer in plant.tree.topology.mobilizers:
        joint = mobilizer.joint
        frames = [joint.frame_on_parent, joint.frame_on_child]
        near, far = reversed(frames) if mobilizer.is_reversed else frames
        hubs[mobilizer.outboard] = far.X_BF.p
        if mobilizer.inboard or joint.TYPE_NAME not in ("quaternion_floating", "rpy_floating"):
            ends[mobilizer.inboard].append(near.X_BF.p)
    for number, body in enumerate(plant.bodies[1:], start=1):
        com = plant.tree.find_parameter(f"{body.name}_com").get(context)
        ends[number].append(com)
    for frame in plant.frames:
        if not frame.body.is_world:
            ends[frame.body.number or 0].append(frame.X_BF.p)
    for element in plant.force_elements:
        if isinstance(element, BodyForceElement):
            for each, point in zip(element.attachments, _points(element, context), strict=True):
                ends[each.body.number or 0].append(point)
    return hubs, ends


def _points(element: BodyForceElement, context: Context) -> list[FloatArray]:
    """Return where an element is attached, in the frames of its bodies."""
    frames = [each.frame.X_BF for each in element.attachments]
    if not isinstance(element, PointToPointElement):
        return [X_BF.p for X_BF in frames]
    points = element.p_AP.get(context), element.p_BQ.get(context)
    return [X_BF.p + X_BF.R @ point for X_BF, point in zip(frames, points, strict=True)]


def _spring(element: BodyForceElement, context: Context) -> Stroke:
    bodies = tuple(each.body.number or 0 for each in element.attachments)
    return Stroke(bodies, np.array(_points(element, context)), "spring")


def _triad(frame: Frame) -> list[Stroke]:
    """Return the three axes of a frame."""
    number = frame.body.number or 0
    R, p = frame.X_BF
    return [Stroke((number, number), np.array([p, R[:, k]]), axis) for k, axis in enumerate("xyz")]


class _Camera:
    """Projects points of the world on the plane of the picture."""

    def __init__(self, view: View) -> None:
        if isinstance(view, str):
            if view not in _SIDES:
                raise DeclarationError(
                    "Cannot draw a plant",
                    expected=f"a view among {', '.join(_SIDES)} or (azimuth, elevation)",
                    found=repr(view),
                )
            view = _SIDES[view]
        azimuth, elevation = np.deg2rad(as_number(view, (2,), "Cannot draw a plant in a view"))
        ca, sa, ce, se = np.cos(azimuth), np.sin(azimuth), np.cos(elevation), np.sin(elevation)
        self.axes = np.array([[-sa, ca, 0.0], [-ca * se, -sa * se, ce]])

    def __call__(self, points: FloatArray) -> FloatArray:
        picture: FloatArray = points @ self.axes.T
        return picture


class _Figure:
    """The lines of a stick figure in Matplotlib, to be moved from frame to frame."""

    def __init__(self, figure_strokes: Sequence[Stroke], camera: _Camera, ax: Axes) -> None:
        self.strokes, self.camera = figure_strokes, camera
        self.size = 1.0
        self.lines = [self._line(ax, stroke.kind) for stroke in self.strokes]

    @staticmethod
    def _line(ax: Axes, kind: str) -> Any:
        style: dict[str, Any]
        if kind == "bone":
            style = {"color": _BONES, "linewidth": 3.0, "solid_capstyle": "round"}
        elif kind == "spring":
            style = {"color": _SPRING, "linewidth": 1.3}
        elif kind == "ground":
            style = {"color": _GROUND, "marker": "^", "markersize": 9, "linestyle": "none"}
        else:
            style = {"color": _AXES["xyz".index(kind)], "linewidth": 1.8}
        order = {"ground": 1, "spring": 2, "bone": 3}.get(kind, 4)
        return ax.plot([], [], zorder=order, **style)[0]

    def corners(self, poses: FloatArray) -> FloatArray:
        """Return all points of the figure on the picture, axes of frames left out."""
        found = [
            self.camera(self._points(stroke, poses))
            for stroke in self.strokes
            if stroke.kind not in ("x", "y", "z")
        ]
        return np.concatenate(found) if found else self.camera(poses[:, 9:])

    def move(self, poses: FloatArray) -> None:
        """Draw the figure for the poses of all bodies, one row each."""
        for stroke, line in zip(self.strokes, self.lines, strict=True):
            points = self._points(stroke, poses)
            flat = self.camera(points)
            if stroke.kind == "spring":
                flat = _zigzag(flat, 0.25 * _TRIAD * self.size)
            line.set_data(flat[:, 0], flat[:, 1])

    def _points(self, stroke: Stroke, poses: FloatArray) -> FloatArray:
        """Return the points of a stroke in the world; an axis of a frame begins at its origin."""
        if stroke.kind not in ("x", "y", "z"):
            return _placed(stroke, poses)
        R, p = poses[stroke.bodies[0], :9].reshape(3, 3), poses[stroke.bodies[0], 9:]
        origin = p + R @ stroke.points[0]
        tip = origin + _TRIAD * self.size * (R @ stroke.points[1])
        return np.array([origin, tip])


def _placed(stroke: Stroke, poses: FloatArray) -> FloatArray:
    """Return points on bodies in the world."""
    R = poses[list(stroke.bodies), :9].reshape(-1, 3, 3)
    points: FloatArray = poses[list(stroke.bodies), 9:] + np.einsum("kij,kj->ki", R, stroke.points)
    return points


def _zigzag(ends: FloatArray, amplitude: float) -> FloatArray:
    """Return the corners of a spring between two points of the picture."""
    along = ends[1] - ends[0]
    length = np.linalg.norm(along)
    if length == 0.0:
        return ends
    across = amplitude * np.array([-along[1], along[0]]) / length
    steps = np.linspace(0.15, 0.85, 2 * _COILS + 1)
    sides = np.where(np.arange(steps.size) % 2, 1.0, -1.0)
    sides[[0, -1]] = 0.0
    coils = ends[0] + np.outer(steps, along) + np.outer(sides, across)
    return np.vstack([ends[0], coils, ends[1]])


def plot_mechanism(
    plant: Plant,
    context: Context,
    *,
    view: View = "xz",
    ax: Axes | None = None,
    path: str | Path | None = None,
) -> Axes:
    """Draw a plant as a stick figure.

    Parameters
    ----------
    plant : Plant
        The plant.
    context : Context
        Gives the positions: a context of the plant, or of a diagram around it.
    view : str or tuple of float
        A side, ``"xz"`` (seen against y, z upwards), ``"yz"`` or ``"xy"``, or azimuth and elevation
        of the viewer in degrees.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure when omitted.
    path : str or Path, optional
        Where to save the figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    DeclarationError
        When it is no plant, or there is no such side.
    """
    require_plant(plant)
    check_axes(ax, f"Cannot draw '{plant.label}'")
    own = ax is None
    if ax is None:
        ax = new_figure(layout="constrained").subplots()
    camera = _Camera(view)
    poses = _stack([[body.pose(context) for body in plant.bodies]])[0]
    figure = _Figure(strokes(plant, context), camera, ax)
    shape = _set_limits(ax, figure, poses[None])
    if own:
        ax.figure.figure.set_size_inches(*shape)
    figure.move(poses)
    if path is not None:
        save_figure(ax.figure.figure, path)
        if own:
            forget(ax.figure.figure)
    return ax


def animate(
    result: SimulationResult,
    plant: Plant | None = None,
    *,
    path: str | Path | None = None,
    view: View = "xz",
    fps: int = 25,
    speed: float = 1.0,
) -> FuncAnimation:
    """Animate the motion of a plant in a simulation as a stick figure.

    Parameters
    ----------
    result : SimulationResult
        The simulation.
    plant : Plant, optional
        The plant; it may be omitted when the simulated diagram is one or contains exactly one.
    path : str or Path, optional
        Where to save it: ``.gif``, or ``.html`` with controls to play it in a browser.
    view : str or tuple of float
        As in `plot_mechanism`.
    fps : int
        Pictures per second.
    speed : float
        Seconds of the simulation per second of the animation.

    Returns
    -------
    matplotlib.animation.FuncAnimation

    Raises
    ------
    UnknownNameError
        When there is no plant, or it is not clear which one is meant.
    DeclarationError
        When it is no result or no plant, there is no such side, or the file has another ending.
    ValueRefusedError
        When pictures or seconds per second are not positive.
    """
    if not isinstance(result, SimulationResult):
        raise DeclarationError(
            "Cannot animate",
            expected="the result of a simulation",
            found=f"{result!r} ({type(result).__name__})",
            remedy="Pass what simulate(plant, t_final) returns; plot_mechanism(plant, context) "
            "draws a single position",
        )
    plant = only_plant(result.system, "animate(result, plant)") if plant is None else plant
    require_plant(plant)
    for rate in (fps, speed):
        check_bounds(as_number(rate, (), _PACE), _PACE, lower=_SLOWEST)
    path = None if path is None else animation_path(path)
    span = result.time[-1] - result.time[0]
    if not span * fps <= _MOST_FRAMES * speed:
        raise ValueRefusedError(
            _PACE,
            expected=f"at most {_MOST_FRAMES} pictures",
            found=f"{span:g} s of motion at {fps:g} pictures per second at speed {speed:g}",
            remedy="Lower fps, or raise speed",
        )
    count = max(2, 1 + round(span * fps / speed))
    times = np.linspace(result.time[0], result.time[-1], count)
    signals = [plant.tree.find_output(f"{body.name}_pose") for body in plant.bodies[1:]]
    world = np.concatenate([np.eye(3).ravel(), np.zeros(3)])
    poses = np.stack([np.tile(world, (count, 1)), *result.sample_all(signals, times)], axis=1)
    captions = [f"t = {time:.2f} s" for time in times]
    return play(plant, result.context, poses, captions, path=path, view=view, fps=fps)


def play(
    plant: Plant,
    context: Context,
    poses: FloatArray,
    captions: Sequence[str],
    *,
    path: Path | None,
    view: View,
    fps: int,
) -> FuncAnimation:
    """Return an animation of a plant through poses of its bodies, and save it if it has a path.

    Parameters
    ----------
    plant : Plant
        The plant.
    context : Context
        Gives the places on the bodies that are shown.
    poses : ndarray, shape (count, bodies, 12)
        For each picture and body the rotation matrix row by row, then the position.
    captions : sequence of str
        What is written into each picture.
    path, view, fps
        As for `animate`.
    """
    from matplotlib.animation import FuncAnimation

    canvas = new_figure(layout="constrained")
    ax = canvas.subplots()
    figure = _Figure(strokes(plant, context), _Camera(view), ax)
    canvas.set_size_inches(*_set_limits(ax, figure, poses))
    caption = ax.set_title(captions[0], loc="left", fontsize="medium", color=_GROUND)

    def show(k: int) -> list[Any]:
        figure.move(poses[k])
        caption.set_text(captions[k])
        return [*figure.lines, caption]

    animation = FuncAnimation(canvas, show, frames=len(poses), interval=1e3 / fps, blit=False)
    if path is not None:
        if path.suffix == ".html":
            path.write_text(animation.to_jshtml(fps=fps), encoding="utf-8")
        else:
            animation.save(path, writer="pillow", fps=fps)
        forget(canvas)
    return animation


def poses_in(plant: Plant, contexts: Sequence[Context]) -> FloatArray:
    """Return the poses of all bodies in several contexts, as `play` takes them."""
    return _stack([[body.pose(context) for body in plant.bodies] for context in contexts])


def points_on(plant: Plant, context: Context, poses: FloatArray) -> FloatArray:
    """Return where the points of the stick figure of a plant are, for the poses of its bodies."""
    found = [stroke for stroke in strokes(plant, context) if stroke.kind not in ("x", "y", "z")]
    points = [_placed(stroke, poses) for stroke in found]
    return np.concatenate([poses[1:, 9:], *points])


def require_plant(plant: object) -> None:
    """Refuse what is no plant."""
    if not isinstance(plant, Plant):
        raise DeclarationError(
            "Cannot draw a stick figure",
            expected="a plant, as made by PlantBuilder.build()",
            found=repr(plant),
            remedy=way_to_a_system(plant)
            or "Name the plant inside of a diagram; the context may be that of the diagram",
        )


def animation_path(path: str | Path) -> Path:
    """Return the path of an animation, whose ending tells the format."""
    path = Path(file_path(path, "Cannot save an animation"))
    if path.suffix not in (".gif", ".html"):
        raise DeclarationError(
            f"Cannot save an animation as '{path}'",
            expected="a name that ends in .gif or .html",
            found=path.suffix or "no ending",
        )
    return path


def only_plant(system: System, call: str) -> Plant:
    """Return the plant in a diagram; ``call`` is how another one is named."""
    found = []
    pending = [system]
    while pending:
        child = pending.pop()
        if isinstance(child, Plant):
            found.append(child)
        else:
            pending.extend(child.children or ())
    if len(found) == 1:
        return found[0]
    raise UnknownNameError(
        f"Cannot find the plant in '{system.label}'",
        expected="exactly one",
        found=f"{len(found)}",
        remedy=f"Name it, as in {call}",
    )


def _stack(poses: Sequence[Sequence[Any]]) -> FloatArray:
    """Return poses (R, p) as rows of twelve numbers."""
    return np.array([[[*np.ravel(X.R), *X.p] for X in row] for row in poses])


def _set_limits(ax: Axes, figure: _Figure, poses: FloatArray) -> FloatArray:
    """Show all that the figure reaches, with equal scales; return inches that suit the picture."""
    corners = np.concatenate([figure.corners(each) for each in poses])
    low, high = corners.min(axis=0), corners.max(axis=0)
    extent = max(*(high - low), 1e-6)
    half: FloatArray = np.maximum(0.5 * (high - low) + _MARGIN * extent, _NARROWEST * extent)
    (left, bottom), (right, top) = 0.5 * (low + high) - half, 0.5 * (low + high) + half
    ax.set_xlim(left, right)
    ax.set_ylim(bottom, top)
    ax.set_aspect("equal")
    ax.set_axis_off()
    figure.size = float(2.0 * half.max())
    inches: FloatArray = _INCHES * half / half.max()
    return inches


__all__ = [
    "Stroke",
    "View",
    "animate",
    "animation_path",
    "only_plant",
    "play",
    "plot_mechanism",
    "points_on",
    "poses_in",
    "require_plant",
    "strokes",
]
