"""Common style of the plots of linear models: legends, ticks, axes through zero."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from flexure.diagrams.drawing.formats.style import GREY
from flexure.solvers.analysis.frequency.frequency_curves import UNITS
from flexure.solvers.results.pictures.free_labels import Label

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def unit_name(unit: float) -> str:
    """Return the name of a unit of frequency by its size in rad/s."""
    return next(name for name, size in UNITS.items() if size == unit)


def widen(ax: Axes, least: float) -> None:
    """Widen a vertical axis that would show nothing but rounding, to at least some height."""
    low, high = ax.get_ylim()
    if high - low < least:
        middle = 0.5 * (low + high)
        ax.set_ylim(middle - 0.5 * least, middle + 0.5 * least)


def turn_ticks(axis: Any, ax: Axes) -> None:
    """Let an axis of degrees have ticks at parts of a turn."""
    from matplotlib.ticker import MultipleLocator

    low, high = ax.get_xlim() if axis is ax.xaxis else ax.get_ylim()
    steps = (5.0, 15.0, 30.0, 45.0, 90.0, 180.0, 360.0)
    step = next((step for step in steps if high - low <= 7.0 * step), None)
    if step is not None:
        axis.set_major_locator(MultipleLocator(step))


def frequency_ticks(ax: Axes, low: float, high: float) -> None:
    """Let an axis of frequencies be logarithmic, with labels that do not run into each other."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    ax.set_xscale("log")
    ax.set_xlim(low, high)
    if low * 2.0 < high < low * 1e3:  # otherwise Matplotlib's own are the right ones
        ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        ax.xaxis.set_minor_formatter(NullFormatter())


def cross_zero(ax: Axes) -> None:
    """Draw the real and the imaginary axis, below everything."""
    for line in (ax.axhline(0.0), ax.axvline(0.0)):
        line.set(color=GREY, linewidth=0.6, zorder=0.5)


def with_figures(label: str, said: Sequence[Label]) -> str:
    """Return the label of a curve with the numbers of its notes."""
    figures = [re.split(r"\sat\s", each.text)[0] for each in said]
    return f"{label} ({', '.join(figures)})" if figures else label
