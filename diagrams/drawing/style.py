"""The house style of pictures with Matplotlib: colors, light grids, and labels with units."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from flexure.diagrams.arguments import can_be_written, file_path, require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

BLUE, ORANGE, GREEN, PURPLE = "#1f5a99", "#c8641e", "#2e7d4f", "#7b4fa3"
RED, DARK, GREY, PALE, LIGHT = "#b22222", "#4d4d4d", "#777777", "#bbbbbb", "#dddddd"
#: Of curves, in their order.
COLORS = (BLUE, ORANGE, GREEN, PURPLE, RED, DARK)
#: Behind a text that lies on something.
PAPER = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1.5}
_DASHES = ("-", "--", ":", "-.")


def style_of(number: int) -> dict[str, Any]:
    """Return color and dashes of a curve."""
    dashes = _DASHES[number // len(COLORS) % len(_DASHES)]
    return {"color": COLORS[number % len(COLORS)], "linestyle": dashes, "linewidth": 1.7}


def labelled(name: str, unit: str) -> str:
    """Return a name with its unit, if it has one."""
    return f"{name} [{unit}]" if unit else name


def name_axis(axis: Axis, name: str, unit: str, most: int = 24) -> None:
    """Write a name and a unit beside an axis, a long path in several lines."""
    lines = [labelled(name, unit)]
    if len(lines[0]) > most:
        lines = [""]
        for part in [*re.split(r"(?<=\.)", name), *([f" [{unit}]"] if unit else [])]:
            if lines[-1] and len(lines[-1] + part) > most:
                lines.append(part.strip())
            else:
                lines[-1] += part
    axis.set_label_text("\n".join(lines).strip())


def tidy(ax: Axes) -> None:
    """Draw a light grid below everything, and no frame where there are no numbers."""
    ax.grid(True, color=LIGHT, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def write_legend(ax: Axes, named: Sequence[Any]) -> int:
    """Write the labels of several curves above the axes, where they cover nothing.

    Returns
    -------
    int
        The number of rows.
    """
    if len(named) < 2:
        return 0
    widest = max(len(text) for text in ax.get_legend_handles_labels()[1])
    columns = min(len(named), max(1, 90 // (widest + 8)))
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0)}
    ax.legend(**place, ncols=columns, frameon=False, fontsize=9)
    return -(-len(named) // columns)


def check_title(title: object, attempt: str) -> None:
    """Refuse a title that cannot be drawn; None stands for the usual one."""
    fits = title is None or (isinstance(title, str) and can_be_written(title))
    require(fits, title, attempt, "title to be a text, or None")


def check_file(path: object, attempt: str) -> None:
    """Refuse what is no name of a file before anything is drawn."""
    if path is not None:
        file_path(path, attempt)


__all__ = [
    "BLUE",
    "COLORS",
    "DARK",
    "GREEN",
    "GREY",
    "LIGHT",
    "ORANGE",
    "PALE",
    "PAPER",
    "PURPLE",
    "RED",
    "check_file",
    "check_title",
    "labelled",
    "name_axis",
    "style_of",
    "tidy",
    "write_legend",
]
