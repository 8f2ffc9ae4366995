"""Animations of plants, which show themselves in notebooks, and as files."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.blocks import Plant
from flexure.blocks.multibody.bodies.bodies import FrameLike
from flexure.diagrams.checks.arguments import file_path
from flexure.diagrams.checks.errors import DeclarationError, MissingExtraError, ValueRefusedError
from flexure.diagrams.drawing.formats.new_figures import forget, new_figure
from flexure.diagrams.files.atomic_files import replacing
from flexure.diagrams.values.arrays import bounded
from flexure.solvers.results.mechanisms.camera import View
from flexure.solvers.results.mechanisms.pictures import (
    Motion,
    Picture,
    checked_options,
    chosen_plant,
    stressed,
    traced_frames,
)
from flexure.solvers.results.mechanisms.scene import force_arrows
from flexure.solvers.results.mechanisms.view_data import player_page
from flexure.solvers.results.records.result import SimulationResult

if TYPE_CHECKING:
    from matplotlib.animation import FuncAnimation

_MOST_FRAMES = 100_000
_SLOWEST = 1e-3
_PACE = "Cannot animate at this pace"
_ENDINGS = (".gif", ".html", ".mp4")
_HEIGHT = 460  # of an animation in a notebook, in pixels


def animate(
    result: SimulationResult,
    plant: Plant | None = None,
    *,
    path: str | Path | None = None,
    view: View = "auto",
    fps: int = 25,
    speed: float = 1.0,
    forces: bool = False,
    stress: bool = False,
    trace: Sequence[FrameLike] | FrameLike = (),
    ground: float | None = None,
    title: str | None = None,
) -> FuncAnimation:
    """Animate the motion of a plant in a simulation.

    Parameters
    ----------
    result : SimulationResult
        The simulation.
    plant : Plant, optional
        The plant; it may be omitted when the simulated diagram is one or contains exactly one.
    path : str or Path, optional
        Where to save it: ``.gif``; ``.mp4``, which needs the program ffmpeg; ``.html`` for a page
        in which it plays and can be turned; a folder that exists, for a picture ``0000.png`` of
        each frame; or such names with a field for the number, as in ``"door_{:03d}.png"``.
    view : str or tuple of float
        As in `plot_mechanism`. The picture covers the whole motion.
    fps : int
        Pictures per second.
    speed : float
        Seconds of the simulation per second of the animation.
    forces, stress, ground, title
        As in `plot_mechanism`.
    trace : Frame, Body or sequence of them
        Frames whose origins leave a trace.

    Returns
    -------
    matplotlib.animation.FuncAnimation
        In a notebook it shows itself as on the page.

    Raises
    ------
    UnknownNameError
        When there is no plant, or it is not clear which one is meant.
    DeclarationError
        When it is no result or no plant, there is no such side, or the file has another ending.
    ValueRefusedError
        When pictures or seconds per second are not positive.
    MissingExtraError
        When ffmpeg is needed and not installed.

    See Also
    --------
    plot_mechanism : One position.
    page : An interactive page.

    Examples
    --------
    >>> import tempfile
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("door", gravity=(0.0, 0.0, 0.0))
    >>> panel = builder.add_body("panel", fx.SpatialInertia.point_mass(2.0), com=(0.5, 0.0, 0.0))
    >>> axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, panel, axis=(0, 0, 1)))
    >>> spring = fx.JointSpring("spring", axis, stiffness=50.0, damping=0.5)
    >>> _ = builder.add_force_element(spring)
    >>> door = builder.build()
    >>> context = door.create_default_context()
    >>> axis.angle.set(context, 0.5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     film = fx.animate(fx.simulate(door, 0.04, context=context), path=folder)
    """
    if not isinstance(result, SimulationResult):
        raise DeclarationError(
            "Cannot animate",
            expected="the result of a simulation",
            found=f"{result!r} ({type(result).__name__})",
            remedy="Pass what simulate(plant, t_final) returns; plot_mechanism(plant, context) "
            "draws a single position",
        )
    plant = chosen_plant(plant, result.system, "animate(result, plant)")
    for rate in (fps, speed):
        bounded(rate, _PACE, lower=_SLOWEST)
    with_forces, height, caption = checked_options(plant, forces, ground, title)
    (traced,) = traced_frames(trace, [plant], plant.label)
    target = None if path is None else target_of(path)
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
    digits = 2 if span == 0.0 else max(2, 1 - math.floor(math.log10(span)))
    signals = [plant.tree.find_output(f"{body.name}_pose") for body in plant.bodies[1:]]
    arrows = force_arrows(plant, result.context) if with_forces else []
    ports = [each.element.force_ports[each.attachment] for each in arrows]
    colored = stressed(plant, result.context, stress)
    stress_ports = [each.stress_port for each in colored or ()]
    values = result.sample_all([*signals, *ports, *stress_ports], times)
    world = np.concatenate([np.eye(3).ravel(), np.zeros(3)])
    poses = np.stack([np.tile(world, (count, 1)), *values[: len(signals)]], axis=1)
    count_of_ports = len(signals) + len(ports)
    acting = [each[:, 3:] for each in values[len(signals) : count_of_ports]]
    motion = Motion(
        plant,
        result.context,
        poses,
        [f"{caption}{', ' if caption else ''}t = {time:.{digits}f} s" for time in times],
        np.stack(acting, axis=1) if acting else None,
        traced,
        values[count_of_ports:] if colored else None,
    )
    return play(motion, target=target, view=view, fps=fps, ground=height)


def play(
    motion: Motion, *, target: Target | None, view: View, fps: float, ground: float | None = None
) -> FuncAnimation:
    """Return an animation of a motion, and save it if it has a target."""
    canvas = new_figure(moving=True, layout="constrained")
    picture = Picture(motion, canvas.subplots(), view=view, ground=ground)
    canvas.set_size_inches(*picture.inches)
    picture.show(0)
    animation = mechanism_animation(picture, canvas, fps, view)
    if target is not None:
        save(animation, target, picture, fps)
    return animation


@dataclass(frozen=True)
class Target:
    """Where an animation goes."""

    path: str  # name of a file, or of many with a field for the number
    kind: str  # ``"gif"``, ``"html"``, ``"mp4"`` or ``"png"``, which are pictures


def target_of(path: str | Path) -> Target:
    """Return where an animation goes, by the ending of a name; refuse others."""
    attempt = "Cannot save an animation"
    name = file_path(path, attempt)
    ending = Path(name).suffix.lower()
    if ending == ".mp4":
        from matplotlib.animation import FFMpegWriter

        if not FFMpegWriter.isAvailable():
            raise MissingExtraError(
                f"{attempt} as '{name}'",
                expected="the program ffmpeg",
                found="none on the PATH",
                remedy="Install ffmpeg with the packages of your system, or save as .gif or .html",
            )
    elif ending == ".png" or (ending not in _ENDINGS and Path(name).is_dir()):
        return Target(_numbered(name, attempt), "png")
    elif ending not in _ENDINGS:
        raise DeclarationError(
            f"{attempt} as '{name}'",
            expected="a name that ends in .gif or .html, in .mp4, or a folder that exists",
            found=ending or "no ending",
        )
    return Target(name, ending[1:])


def _numbered(name: str, attempt: str) -> str:
    """Return the name of pictures with a field for their number."""
    pattern = name if name.lower().endswith(".png") else str(Path(name) / "{:04d}.png")
    folder, last = Path(pattern).parent, Path(pattern).name
    try:
        first, second = (last.format(number) for number in (0, 1))
        is_fine = first != second and Path(first).name == first
    except (IndexError, KeyError, ValueError, AttributeError):
        is_fine = False
    if not is_fine or not folder.is_dir():
        raise DeclarationError(
            f"{attempt} as pictures '{name}'",
            expected="a name in a folder that exists, with a field for the number",
            found="another one",
            remedy="Write it as in 'door_{:03d}.png', or name a folder",
        )
    return pattern


def mechanism_animation(picture: Picture, canvas: Any, fps: float, view: View) -> FuncAnimation:
    """Return an animation of a picture, which shows itself in notebooks as on a page."""
    from matplotlib.animation import FuncAnimation

    class MechanismAnimation(FuncAnimation):
        """An animation of a mechanism."""

        def page(self) -> str:
            """Return a page that plays the motion."""
            self._draw_was_started = True  # what is shown need not be drawn by Matplotlib, too
            return player_page(picture.motion, view=view, fps=fps, ground=picture.ground)

        def _repr_html_(self) -> str:
            frame = html.escape(self.page(), quote=True)
            style = f"width:100%;max-width:820px;height:{_HEIGHT}px;border:0"
            name = html.escape(picture.motion.plant.name)
            return f'<iframe title="{name}" style="{style}" srcdoc="{frame}"></iframe>'

    count = len(picture.motion.poses)
    return MechanismAnimation(canvas, picture.show, frames=count, interval=1e3 / fps, blit=False)


def save(animation: Any, target: Target, picture: Picture, fps: float) -> None:
    """Write an animation, and let pyplot forget its figure."""
    canvas = picture.ax.figure.figure
    if target.kind != "html":  # all pictures have the layout of the first one, found once
        canvas.draw_without_rendering()
        canvas.set_layout_engine("none")
    if target.kind == "html":
        with replacing(target.path) as file:
            file.write(animation.page())
    elif target.kind == "png":
        folder, name = Path(target.path).parent, Path(target.path).name
        for number in range(len(picture.motion.poses)):
            picture.show(number)
            canvas.savefig(folder / name.format(number), dpi=100)
        animation._draw_was_started = True
    elif target.kind == "gif":
        _save_gif(target.path, picture, fps)
        animation._draw_was_started = True
    else:
        animation.save(target.path, writer="ffmpeg", fps=fps)
    forget(canvas)


def _save_gif(path: str, picture: Picture, fps: float) -> None:
    """Draw each picture once, where Matplotlib would draw it three times."""
    from matplotlib.backends.backend_agg import RendererAgg
    from PIL import Image

    canvas = picture.ax.figure.figure
    width, height = canvas.bbox.size
    kind: Any = RendererAgg  # which Matplotlib does not type
    renderer = kind(int(width), int(height), canvas.dpi)
    pictures = []
    for number in range(len(picture.motion.poses)):
        picture.show(number)
        renderer.clear()
        canvas.draw(renderer)
        pictures.append(Image.fromarray(np.array(renderer.buffer_rgba())).convert("RGB"))
    pictures[0].save(
        path, save_all=True, append_images=pictures[1:], duration=int(1e3 / fps), loop=0
    )
