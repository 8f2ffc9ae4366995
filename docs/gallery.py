"""The gallery of the site: every example with its pictures, its source, and some that run live."""

from __future__ import annotations

import contextlib
import importlib
import io
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from PIL import Image, ImageOps, ImageSequence

import flexure as fx

ROOT = Path(__file__).parents[1]
#: The scripts of the examples, by name, in whatever folder they are.
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"), key=lambda script: script.stem)
#: What examples are told beside where to save.
_OPTIONS = {
    "ball_chain": ["--fps", "8"],
    "dishwasher_door": ["--fps", "8"],
    "door_tolerances": ["--samples", "1000"],
    "four_bar_linkage": ["--fps", "10"],
}


@dataclass(frozen=True)
class Live:
    """The page of an example that writes none itself.

    Attributes
    ----------
    end : float
        When its run ends.
    values : dict
        What is set, so that there is something to see.
    options : dict
        As for `flexure.page`.
    """

    end: float
    values: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)


_DEGREES: dict[str, Any] = {"units": {"rad": "deg", "rad/s": "deg/s"}}
_STRESS: dict[str, Any] = {"stress": True, "view": "xy"}
_ENERGIES = ["kinetic_energy", "potential_energy"]
_LIVE = {
    "ball_chain": Live(5.0),
    "bicycle": Live(6.0, {"free.v": [0.5, 0.0, 0.0, 5.0, 0.0, 0.0]}, _DEGREES),
    "bistable_switch": Live(
        0.1,
        {"finger": -0.6},
        {
            "parameters": ["finger", "left.thickness", "right.thickness"],
            "signals": ["slide.translation", _ENERGIES, "left.greatest_stress"],
            **_STRESS,
        },
    ),
    "body_on_mounts": Live(2.0, {"float.v": [0.02, 0.01, 0.0, 0.0, 0.0, 0.01]}),
    "cart_and_pole": Live(5.0, {"hinge.angle": 0.1}, _DEGREES),
    "compliant_base": Live(4.0),
    "compliant_door": Live(10.0, options=_DEGREES),
    "constant_force": Live(
        0.1,
        {"finger": 0.44},
        {
            "parameters": ["finger", "left.thickness", "guide_leaf1.thickness"],
            "signals": ["slide.translation", "slide.rate", _ENERGIES],
            "method": "ESDIRK4",
            **_STRESS,
        },
    ),
    "cross_pivot_pendulum": Live(
        0.5,
        {"swing.v": [0.0, 0.0, 6.0]},
        {
            "signals": ["swing.q[qz]", "pivot_leaf1.greatest_stress", _ENERGIES],
            "method": "ESDIRK4",
            "stress": True,
        },
    ),
    "dishwasher_door": Live(3.0, options=_DEGREES),
    "door_tolerances": Live(10.0, options=_DEGREES),
    "four_bar_linkage": Live(3.0, options=_DEGREES),
    "identified_hinge": Live(8.0, options=_DEGREES),
    "piezo_stage": Live(0.25),
    "snap_through": Live(60.0),
    "stick_slip": Live(4.0),
    "vibration_isolation": Live(
        2.0,
        {"source.frequency": 50.0, "source.amplitude": 2.5e4, "skyhook.gain": -2000.0},
        {"signals": [["plant.floor.position[2]", "plant.machine.position[2]"], "skyhook.y"]},
    ),
}
#: What stands for an example that saves no picture.
_INSTEAD = {
    "door_page": "compliant_door/compliant_door.gif",
    "hinge_inspector": "compliant_door/compliant_door_diagram.png",
}
_COVER = (640, 480)
_HEAVIEST = 600_000  # bytes of a picture
_PICTURES = (".gif", ".png")


def make_gallery(folder: Path) -> None:
    """Run the examples, and write their pages and an overview.

    Below `folder`, ``examples`` gets what Sphinx reads, and ``live/live`` the pages that run by
    themselves, which it copies. What is younger than its example stays.
    """
    target = folder / "examples"
    target.mkdir(parents=True, exist_ok=True)
    (folder / "live" / "live").mkdir(parents=True, exist_ok=True)
    cards = []
    for script in EXAMPLES:
        renew(target / script.stem, script, partial(make_example, script))
        live = sorted(page.name for page in (target / script.stem).glob("*.html"))
        title = _title(script)
        summary, text = _docstring(script)
        for page in live:
            shutil.copy2(target / script.stem / page, folder / "live" / "live")
        pictures = list(_pictures(target / script.stem))
        lines = [title, "=" * len(title), "", f"{summary}\n\n{text}", ""]
        for page in live:
            lines += [f"* `Open {page} in the browser <../../live/{page}>`__"]
        lines += [""]
        for picture in pictures:
            lines += [f".. image:: {script.stem}/{picture}", f"   :alt: {title}", ""]
        lines += ["Source", "------", ""]
        source = script.relative_to(ROOT).as_posix()
        lines += [f".. literalinclude:: ../../../{source}", "   :language: python"]
        _write(target / f"{script.stem}.rst", lines)
        cards += [f"   .. grid-item-card:: {title}", f"      :link: {script.stem}"]
        cards += ["      :link-type: doc"]
        _draw_cover(script.stem, pictures, target)
        cards += [f"      :img-top: covers/{script.stem}.png"]
        cards += ["", f"      {summary}", ""]
    head = ["Examples", "========", ""]
    head += ["Each is one script below the folder ``examples``, and saves what is shown here.", ""]
    head += [".. grid:: 1 2 2 3", "   :gutter: 3", ""]
    names = [f"   {script.stem}" for script in EXAMPLES]
    _write(target / "index.rst", [*head, *cards, ".. toctree::", "   :hidden:", "", *names])


def lighten(picture: Path) -> None:
    """Reduce the size or the colors of a picture whose file is too heavy for a page."""
    if picture.suffix not in _PICTURES or picture.stat().st_size < _HEAVIEST:
        return
    with Image.open(picture) as image:
        if picture.suffix == ".png":
            small = image.convert("RGB")
            small.thumbnail((1400, 1400))
            small.quantize(256).save(picture, optimize=True)
            return
        scale = (_HEAVIEST / picture.stat().st_size) ** 0.5
        size = (int(scale * image.width), int(scale * image.height))
        frames = [frame.convert("RGB").resize(size) for frame in ImageSequence.Iterator(image)]
        duration = image.info["duration"]
    first = frames[0].quantize(64)
    film = [frame.quantize(palette=first, dither=Image.Dither.NONE) for frame in frames]
    film[0].save(picture, save_all=True, append_images=film[1:], duration=duration, loop=0)


def _draw_cover(name: str, pictures: list[str], folder: Path) -> None:
    """Draw the cover of an example: its first picture, or the middle of its film, in one size."""
    source = folder / (f"{name}/{pictures[0]}" if pictures else _INSTEAD[name])
    (folder / "covers").mkdir(exist_ok=True)
    with Image.open(source) as image:
        image.seek(getattr(image, "n_frames", 1) // 2)
        cover = ImageOps.pad(image.convert("RGB"), _COVER, color="white")
    cover.quantize(128).save(folder / "covers" / f"{name}.png", optimize=True)


def module_of(script: Path) -> Any:
    """Import an example."""
    return importlib.import_module(".".join(script.relative_to(ROOT).with_suffix("").parts))


def _title(script: Path) -> str:
    """Return what an example is called."""
    return script.stem.replace("_", " ").capitalize()


def _docstring(script: Path) -> tuple[str, str]:
    """Return the first sentence of an example, and what follows it up to how to run it."""
    summary, _, text = (module_of(script).__doc__ or "").strip().partition("\n\n")
    return " ".join(summary.split()), text.replace("`fx.", "`flexure.")


def renew(folder: Path, source: Path, make: Callable[[Path], None]) -> None:
    """Fill a folder with pictures, unless it is younger than what they are made from.

    It is replaced as a whole, once all pictures are made.
    """
    if folder.exists() and folder.stat().st_mtime > source.stat().st_mtime:
        return
    unfinished = folder.with_suffix(".new")
    for each in (folder, unfinished):
        shutil.rmtree(each, ignore_errors=True)
    unfinished.mkdir(parents=True)
    make(unfinished)
    for file in unfinished.iterdir():
        lighten(file)
    unfinished.rename(folder)


def run_here(words: list[str]) -> None:
    """Run an example in this process, where everything is imported already."""
    with patch.object(sys, "argv", words), contextlib.redirect_stdout(io.StringIO()):
        module_of(Path(words[0])).main()


def make_example(script: Path, folder: Path) -> None:
    """Run an example as if it were a command that saves its pictures in a folder; make its page."""
    run_here([str(script), "--folder", str(folder), *_OPTIONS.get(script.stem, [])])
    if script.stem in _LIVE:
        live_page(script).save(folder / f"{script.stem}.html")
    for file in folder.iterdir():
        if file.suffix not in (*_PICTURES, ".html"):
            file.unlink()


def live_page(script: Path) -> fx.results.Page:
    """Make the page of an example that writes none itself."""
    live = _LIVE[script.stem]
    built = module_of(script).build()
    system, *given = built if isinstance(built, tuple) else (built,)
    context = given[0].clone() if given else system.create_default_context()
    for path, value in live.values.items():
        context.set(path, value)
    return fx.page(system, live.end, context=context, title=_title(script), **live.options)


def _pictures(folder: Path) -> Iterator[str]:
    """Go through the names of the pictures of an example, those that move first."""
    for suffix in _PICTURES:
        yield from sorted(file.name for file in folder.glob(f"*{suffix}"))


def _write(file: Path, lines: list[str]) -> None:
    """Write a page, unless it is there as it should be, so that Sphinx need not read it again."""
    text = "\n".join(lines) + "\n"
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        file.write_text(text, encoding="utf-8")
