"""Pictures of plants: camera, limits, background and drawing, for one pose or many."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.blocks import Plant
from flexure.blocks.multibody import Body
from flexure.blocks.multibody.bodies.bodies import Frame, FrameLike, as_frame
from flexure.diagrams.checks.arguments import flag, items_of
from flexure.diagrams.checks.errors import DeclarationError, UnknownNameError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.drawing.arrangement.geometry import text_width
from flexure.diagrams.drawing.formats.new_figures import axes_or_new, saved
from flexure.diagrams.drawing.formats.style import check_target, check_title
from flexure.diagrams.systems.system import System, way_to_a_system
from flexure.diagrams.values.arrays import FloatArray, bounded, check_bounds
from flexure.solvers.results.mechanisms.background import (
    Floor,
    draw_axes,
    draw_floor,
    draw_force_scale,
    set_limits,
)
from flexure.solvers.results.mechanisms.camera import Camera, View, chosen_view, framed
from flexure.solvers.results.mechanisms.drawing import ARROW, METAL, Drawing
from flexure.solvers.results.mechanisms.flexure_shapes import Ribbon, StressColors, ribbons
from flexure.solvers.results.mechanisms.mechanism_lines import carried
from flexure.solvers.results.mechanisms.scene import Scene, force_arrows, make_scene

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INCHES = 5.0  # the longer side of what is shown in a new figure
_ROOM = 0.75  # for numbers and titles
_TITLE = 10.0  # points
_FARTHEST = 1e100  # place whose squared distances are numbers, in m
_LETTERS = 60  # of a title, in one line


@dataclass(frozen=True)
class Motion:
    """The content of a picture, or a row of pictures, of a plant."""

    plant: Plant
    context: Context  # gives the places on the bodies that are shown
    # For each picture and body the rotation matrix row by row, then the position,
    # shape (count, bodies, 12).
    poses: FloatArray
    captions: Sequence[str]  # what is written above each picture
    # Forces in the world at the arrows of the scene; none are drawn when omitted,
    # shape (count, arrows, 3), optional.
    forces: FloatArray | None = None
    traced: Sequence[Frame] = ()  # frames whose paths are drawn
    # Stresses of each of the `ribbons` of the plant; no colors are made of them when omitted,
    # shape (count, ...), optional.
    stresses: Sequence[FloatArray] | None = None

    def __post_init__(self) -> None:
        attempt = f"Cannot draw '{self.plant.label}'"
        check_bounds(self.poses[..., 9:], attempt, lower=-_FARTHEST, upper=_FARTHEST, unit="m")

    def traces(self) -> FloatArray:
        """Return the paths of the traced frames, of shape (frames, count, 3)."""
        paths = [carried(frame.body.number or 0, frame.X_BF.p, self.poses) for frame in self.traced]
        return np.array(paths).reshape(len(paths), len(self.poses), 3)


class Picture:
    """The artists of a motion in axes; `show` draws one of its moments."""

    def __init__(
        self, motion: Motion, ax: Axes, *, view: View, ground: float | None = None
    ) -> None:
        self.motion, self.ax, self.ground = motion, ax, ground
        self.camera = Camera(chosen_view(view, motion.plant, motion.context))
        scene = make_scene(motion.plant, motion.context, motion.poses)
        traces = motion.traces()
        largest = 0.0
        if motion.forces is not None:
            largest = float(np.max(np.linalg.norm(motion.forces, axis=-1), initial=0.0))
        points = [scene.points(motion.poses), traces.reshape(-1, 3)]
        if largest:
            points.append(_tips(motion, scene, ARROW * scene.size / largest))
        reach = np.concatenate(points)
        floor = None if self.camera.side else Floor(reach, ground)
        if floor:
            reach = np.concatenate([reach, *(edge for _, edge in floor.edges(self.camera))])
            reach = np.concatenate([reach, floor.corners()])
        frame = framed(self.camera(reach)[:, :2])
        size = 2.0 * float(frame.half.max())
        set_limits(ax, frame)
        if floor:
            draw_floor(ax, floor, self.camera, size)
            ax.set_axis_off()
        elif self.camera.side:
            draw_axes(ax, self.camera.side, ground)
        if largest:
            draw_force_scale(ax, largest, size)
        # A size that suits a figure of it alone, shape (2,).
        self.inches: FloatArray = _INCHES * frame.half / frame.half.max() + _ROOM
        colors = None
        if motion.stresses is not None:
            colors = StressColors(scene.ribbons, motion.context, motion.stresses)
            colors.draw_bar(ax)
            self.inches[0] += _ROOM
        lines = [line for each in motion.captions for line in _folded(each).splitlines()]
        widest = max((text_width(line, _TITLE) for line in lines), default=0.0)
        self.inches[0] = max(self.inches[0], _ROOM + widest / 72.0)
        self._new_drawing = partial(
            Drawing,
            scene,
            self.camera,
            ax,
            size=size,
            largest=largest,
            traces=traces,
            colors=colors,
        )
        self.drawing = self._new_drawing()
        self._caption = ax.set_title("", loc="left", fontsize=_TITLE, color=METAL)

    def show(self, moment: int) -> list[Any]:
        """Draw a moment, and return nothing that could be drawn by itself."""
        self._move(self.drawing, moment)
        self._caption.set_text(_folded(self.motion.captions[moment]))
        return []

    def show_all(self) -> None:
        """Draw all moments over each other, the last one in front."""
        count = len(self.motion.poses)
        for moment in range(count - 1):
            drawing = self._new_drawing()
            self._move(drawing, moment)
            drawing.put_behind((moment + 1) / count)
        self.show(count - 1)

    def _move(self, drawing: Drawing, moment: int) -> None:
        forces, stresses = self.motion.forces, self.motion.stresses
        drawing.move(
            self.motion.poses[moment],
            None if forces is None else forces[moment],
            moment,
            None if stresses is None else [each[moment] for each in stresses],
        )


def _folded(caption: str) -> str:
    """Return a caption in lines that are not too long."""
    return textwrap.fill(caption, _LETTERS, max_lines=3)


def _tips(motion: Motion, scene: Scene, scale: float) -> FloatArray:
    """Return where the arrows of all forces end."""
    assert motion.forces is not None
    found = [
        carried(arrow.body, arrow.point, motion.poses) + scale * force
        for arrow, force in zip(scene.arrows, np.moveaxis(motion.forces, 1, 0), strict=True)
    ]
    return np.concatenate(found) if found else np.empty((0, 3))


def stacked(poses: Sequence[Sequence[Any]]) -> FloatArray:
    """Return poses (R, p) as rows of twelve numbers."""
    return np.array([[[*np.ravel(X.R), *X.p] for X in row] for row in poses])


def poses_in(plant: Plant, contexts: Sequence[Context]) -> FloatArray:
    """Return the poses of all bodies in several contexts, of shape (contexts, bodies, 12)."""
    return stacked([[body.pose(context) for body in plant.bodies] for context in contexts])


# Checks ------------------------------------------------------------------------------------------


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


def chosen_plant(plant: Plant | None, system: System, call: str) -> Plant:
    """Return a plant, or the only one in a diagram when there is none."""
    plant = only_plant(system, call) if plant is None else plant
    require_plant(plant)
    return plant


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


def checked_options(
    plant: Plant, forces: bool, ground: float | None, title: str | None
) -> tuple[bool, float | None, str]:
    """Return the options that all pictures of a plant have."""
    attempt = f"Cannot draw '{plant.label}'"
    if ground is not None:
        ground = bounded(ground, attempt)
    check_title(title, attempt)
    return flag(forces, "forces", attempt), ground, title or ""


def stressed(plant: Plant, context: Context, stress: bool) -> list[Ribbon] | None:
    """Return what is to be colored by its stress, if that is asked for."""
    if not flag(stress, "stress", f"Cannot color '{plant.label}' by stress"):
        return None
    found = ribbons(plant, context)
    if not found:
        raise nothing_to_color(plant.label)
    return found


def stresses_in(plant: Plant, contexts: Sequence[Context], stress: bool) -> list[FloatArray] | None:
    """Return the stresses of all flexures in several contexts, if they are asked for."""
    found = stressed(plant, contexts[0], stress)
    if found is None:
        return None
    return [np.array([each.stress_port.eval(context) for context in contexts]) for each in found]


def nothing_to_color(label: str) -> DeclarationError:
    """Return the error about stresses of a system without flexures."""
    return DeclarationError(
        f"Cannot color '{label}' by stress", expected="a Beam or a NotchHinge in it", found="none"
    )


def traced_frames(
    trace: Sequence[FrameLike] | FrameLike, plants: Sequence[Plant], label: str
) -> list[list[Frame]]:
    """Return for each of some plants its frames among those whose paths are asked for."""
    attempt = f"Cannot trace points of '{label}'"
    wanted = "frames or bodies"
    one = isinstance(trace, (Body, Frame))
    places = (trace,) if one else items_of(trace, wanted, attempt)
    frames = [as_frame(place, attempt) for place in places]
    for frame in frames:
        if not any(frame.body in plant.bodies for plant in plants):
            owner = "this plant" if len(plants) == 1 else "its plants"
            raise UnknownNameError(attempt, expected=f"{wanted} of {owner}", found=repr(frame))
    return [[each for each in frames if each.body in plant.bodies] for plant in plants]


def plot_mechanism(
    plant: Plant,
    context: Context | None = None,
    *,
    view: View = "auto",
    forces: bool = False,
    stress: bool = False,
    ground: float | None = None,
    title: str | None = None,
    ax: Axes | None = None,
    path: str | Path | None = None,
) -> Axes:
    """Draw a plant: its bodies, joints and force elements.

    Parameters
    ----------
    plant : Plant
        The plant.
    context : Context, optional
        Gives the positions: a context of the plant, or of a diagram around it; a default one when
        omitted.
    view : str or tuple of float
        A side, ``"xz"`` (seen against y, z upwards), ``"yz"`` or ``"xy"``; ``"corner"`` for a view
        from above and aside; or azimuth and elevation of the viewer in degrees. ``"auto"`` is the
        side ``"xz"`` or ``"yz"`` for a mechanism that moves in this plane, else a corner.
    forces : bool
        Whether the forces of elements on bodies are drawn as arrows, with a scale; moments are not.
    stress : bool
        Whether flexures are colored by the equivalent stress along them, with a scale. It ends at
        the least yield strength, beyond which they are red, where all materials have one, and at
        the greatest stress otherwise.
    ground : float, optional
        Height of the ground in m. From a side none is drawn when omitted, and from a corner there
        is a floor below everything.
    title : str, optional
        Title of the picture.
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
        When it is no plant, there is no such side, or no flexure that could be colored.

    See Also
    --------
    animate : The motion in a simulation.
    page : An interactive page.

    Notes
    -----
    Beams and notch hinges are drawn with their thickness and width, bent as cubic curves
    between their ends, and between the nodes of divided beams. Springs are coils, dampers are
    cylinders with a piston, and the frames of bushings their axes. The axes of joints are chain
    lines, and a `DoorHinge` has a knuckle at each end of its own. See `BodyShape` for shapes.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("door", gravity=(0.0, 0.0, 0.0))
    >>> panel = builder.add_body("panel", fx.SpatialInertia.point_mass(2.0), com=(0.5, 0.0, 0.0))
    >>> axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, panel, axis=(0, 0, 1)))
    >>> spring = fx.JointSpring("spring", axis, stiffness=50.0, damping=0.5)
    >>> _ = builder.add_force_element(spring)
    >>> door = builder.build()
    >>> axes = fx.plot_mechanism(door, view="xy")
    >>> axes.get_xlabel()
    'x in m'
    """
    require_plant(plant)
    context = plant.create_default_context() if context is None else context
    check_target(ax, path, f"Cannot draw '{plant.label}'")
    with_forces, height, caption = checked_options(plant, forces, ground, title)
    poses = poses_in(plant, [context])
    acting = _forces_in(plant, context) if with_forces else None
    stresses = stresses_in(plant, [context], stress)
    motion = Motion(plant, context, poses, [caption], acting, stresses=stresses)
    return drawn(motion, ax, path, view=view, ground=height)


def drawn(
    motion: Motion,
    ax: Axes | None,
    path: str | Path | None,
    *,
    view: View,
    ground: float | None = None,
) -> Axes:
    """Draw all moments of a motion over each other, the last one in front, and save the figure."""
    own = ax is None
    ax = axes_or_new(ax)
    picture = Picture(motion, ax, view=view, ground=ground)
    if own:
        ax.figure.figure.set_size_inches(*picture.inches)
    picture.show_all()
    return saved(ax, path)


def _forces_in(plant: Plant, context: Context) -> FloatArray:
    """Return the forces at all arrows of a scene, of shape (1, arrows, 3)."""
    ports = [each.element.force_ports[each.attachment] for each in force_arrows(plant, context)]
    return np.asarray(np.array([port.eval(context)[3:] for port in ports]).reshape(1, -1, 3))
