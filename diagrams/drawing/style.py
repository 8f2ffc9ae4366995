"""The house style of pictures with Matplotlib: colors, light grids, and labels with units."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flexure.diagrams.arguments import file_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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


def tidy(ax: Axes) -> None:
    """Draw a light grid below everything, and no frame where there are no numbers."""
    ax.grid(True, color=LIGHT, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


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
    "labelled",
    "style_of",
    "tidy",
]
