"""The desk: charts and sliders for a diagram that runs in Python, on pages and in notebooks."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Any

import numpy as np

from flexure.diagrams.checks.arguments import require
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.value_places import Way, can_be_set, find_place, path_of, several
from flexure.diagrams.systems.system import System
from flexure.diagrams.values.parameters import NumericParameter
from flexure.solvers.pages.document import asset, joined_style
from flexure.solvers.pages.page_content import foremost_parameters

_SCRIPTS = ("page/elements.js", "charts/scales.js", "charts/axes.js", "charts/chart.js")
_STYLES = ("page/colors.css", "charts/charts.css", "page/page.css")


def own_asset(name: str) -> str:
    """Return the text of an asset of this room."""
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


@functools.cache
def script() -> str:
    """Return the scripts of a desk; ``mountDesk(place, link)`` begins it."""
    return "\n".join([*map(asset, _SCRIPTS), own_asset("desk.js")])


@functools.cache
def style() -> str:
    """Return the style of a desk."""
    return f"{joined_style(_STYLES)}\n{own_asset('desk.css')}"


def sliders(
    system: System, context: Context, parameters: Way | Sequence[Way] | None, attempt: str
) -> Iterator[dict[str, Any]]:
    """Go through the numbers that get a slider: those that are wanted, or a few of each block."""
    chosen = foremost_parameters(system, context, None, ()) if parameters is None else parameters
    for way in several(chosen):
        place = find_place(system, way, can_be_set)
        size = 1 if place.shape is None else math.prod(place.shape)
        require(size == 1, path_of(way), attempt, "sliders of single numbers, as of 'plant.x[0]'")
        handle, number = place.handle, float(np.reshape(place.settable.read(context), -1)[0])
        if parameters is None and not math.isfinite(number):
            continue
        about = f"{attempt} with a slider of '{path_of(way)}'"
        require(math.isfinite(number), number, about, "a finite number")
        bounds: dict[str, float | None] = {"lower": None, "upper": None}
        if isinstance(handle, NumericParameter):
            for name in bounds:
                every = np.ravel(np.broadcast_to(getattr(handle, name), handle.shape or (1,)))
                bound = float(every[place.components[0] if handle.shape else 0])
                bounds[name] = bound if math.isfinite(bound) else None
        yield {
            "path": path_of(way),
            "value": number,
            "unit": getattr(handle, "unit", "") or "",
            "doc": getattr(handle, "doc", "") or "",
            **bounds,
        }


def columns(names: Sequence[tuple[str, int]], units: Sequence[str]) -> list[dict[str, str]]:
    """Return names and units of the columns of a recording."""
    return [
        {"name": name if size == 1 else f"{name}[{k}]", "unit": unit}
        for (name, size), unit in zip(names, units, strict=True)
        for k in range(size)
    ]


def plain(rows: Any) -> list[list[float | None]]:
    """Return numbers as JSON knows them, in which others than finite ones are null."""
    return [
        [value if math.isfinite(value) else None for value in row]
        for row in np.asarray(rows, dtype=float).tolist()
    ]
