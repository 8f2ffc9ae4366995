"""Motions of mechanisms as animations: shown in notebooks, and saved as films or pictures."""

from __future__ import annotations

import html
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.diagrams.checks.arguments import file_path
from flexure.diagrams.checks.errors import DeclarationError, MissingExtraError
from flexure.diagrams.drawing.formats.new_figures import forget, new_figure
from flexure.diagrams.files.atomic_files import replacing
from flexure.solvers.results.mechanisms.camera import View
from flexure.solvers.results.mechanisms.pictures import Motion, Picture
from flexure.solvers.results.mechanisms.view_data import player_page

if TYPE_CHECKING:
    from matplotlib.animation import FuncAnimation

_ENDINGS = (".gif", ".html", ".mp4")
_HEIGHT = 460  # of an animation in a notebook, in pixels


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
