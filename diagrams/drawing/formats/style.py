"""The house style of pictures with Matplotlib: colors, light grids, and labels with units."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from flexure.diagrams.checks.arguments import can_be_written, check_axes, file_path, require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

BLUE, ORANGE, GREEN, PURPLE = "#1f5a99", "#c8641e", "#2e7d4f", "#7b4fa3"
RED, DARK, GREY, PALE, LIGHT = "#b22222", "#4d4d4d", "#777777", "#bbbbbb", "#dddddd"
#: Of curves, in their order.
COLORS = (BLUE, ORANGE, GREEN, PURPLE, RED, DARK)
#: Of numbers.
COLOR_MAP = "viridis"
#: Behind a text that lies on something.
PAPER = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1.5}
_WIDEST = 90  # letters beside each other
_DASHES = ("-", "--", ":", "-.")


def style_of(number: int) -> dict[str, Any]:
    """Return color and dashes of a curve."""
    dashes = _DASHES[number // len(COLORS) % len(_DASHES)]
    return {"color": COLORS[number % len(COLORS)], "linestyle": dashes, "linewidth": 1.7}


def readable(text: str) -> str:
    """Return a text with literal dollars, unless they are around mathematics."""
    from matplotlib.cbook import is_math_text
    from matplotlib.mathtext import MathTextParser

    if "$" in text and is_math_text(text):
        try:
            MathTextParser("path").parse(text)
        except ValueError:
            return text.replace("$", r"\$")
    return text


def labelled(name: str, unit: str) -> str:
    """Return a name with its unit, if it has one."""
    return readable(f"{name} [{unit}]" if unit else name)


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
    axis.set_label_text(readable("\n".join(lines).strip()))


def tidy(ax: Axes) -> None:
    """Draw a light grid below everything, and no frame where there are no numbers."""
    ax.grid(True, color=LIGHT, linewidth=0.6)
    ax.set_axisbelow(True)
    for side in {"top", "right"}.intersection(ax.spines):  # polar axes have others
        ax.spines[side].set_visible(False)


def write_legend(ax: Axes, named: Sequence[Any]) -> int:
    """Write the labels of curves above the axes, where they cover nothing; return their rows."""
    if len(named) < 2:
        return 0
    handles, texts = ax.get_legend_handles_labels()
    texts = [readable(_shortened(text)) for text in texts]
    columns = min(len(named), max(1, _WIDEST // (max(map(len, texts)) + 8)))
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0)}
    ax.legend(handles, texts, **place, ncols=columns, frameon=False, fontsize=9)
    return -(-len(named) // columns)


def _shortened(text: str) -> str:
    """Return a text without its middle, if it is wider than a picture."""
    half = _WIDEST // 2
    return text if len(text) <= _WIDEST else f"{text[:half]} … {text[-half:]}"


def check_title(title: object, attempt: str) -> None:
    """Refuse a title that cannot be drawn; None means the default one."""
    fits = title is None or (isinstance(title, str) and can_be_written(title))
    require(fits, title, attempt, "title to be a text, or None")
    drawn = not isinstance(title, str) or readable(title) == title
    wanted = "title to be a text with whole mathematics between dollars"
    require(drawn, title, attempt, wanted, remedy=r"Write \$ for a dollar")


def check_file(path: object, attempt: str) -> None:
    """Refuse what is no name of a file before anything is drawn."""
    if path is not None:
        file_path(path, attempt)


def check_target(ax: object, path: object, attempt: str) -> None:
    """Refuse axes that cannot be drawn into, and what is no name of a file."""
    check_axes(ax, attempt)
    check_file(path, attempt)
