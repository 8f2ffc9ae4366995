"""Columns of numbers for pictures of sweeps, with labels and the number of runs without values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from flexure.diagrams.checks.arguments import require_known
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.contexts.value_places import Way, path_of
from flexure.diagrams.drawing.formats.style import labelled
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.sweeps.tables import sweep_tables

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize

    from flexure.solvers.sweeps.sweep import Sweep

_OUTSIDE = 0.02  # share of numbers at each end that may lie beyond the colors
_FAR = 3.0  # times the range of the others, from which on they do
#: At which ends of a color bar numbers lie beyond it.
Extend: TypeAlias = Literal["neither", "both", "min", "max"]


@dataclass(frozen=True)
class Column:
    """One number for each run."""

    name: str  # name of a metric, or path of what was swept
    unit: str  # its unit, if it is known
    numbers: FloatArray  # the numbers; NaN where there is none, shape (N,)

    @property
    def label(self) -> str:
        """The label of an axis."""
        return labelled(self.name, self.unit)

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which runs have a number."""
        return np.isfinite(self.numbers)


def columns_of(sweep: Sweep, names: Iterable[Way], attempt: str) -> list[Column]:
    """Return columns by name; all of them when there is no name."""
    numbers, units = sweep_tables.numbers(sweep), sweep_tables.units(sweep)
    wanted = [path_of(name) for name in names] or list(numbers)
    for name in wanted:
        require_known(name, numbers, f"{attempt}: there is no metric and no path '{name}'")
    return [Column(name, units[name], numbers[name]) for name in wanted]


def require_columns(columns: Sequence[Column], least: int, most: int, attempt: str) -> None:
    """Refuse too few columns or too many, and those without numbers."""
    if not least <= len(columns) <= most:
        raise ValueRefusedError(
            attempt,
            expected=f"{least} to {most} metrics and paths",
            found=f"{len(columns)}",
            remedy="Name those that are to be shown",
        )
    for column in columns:
        if not column.known.any():
            raise ValueRefusedError(
                f"{attempt} of '{column.name}'",
                expected="at least one run with a number",
                found=f"{len(column.numbers)} runs without one",
            )


def title_of(sweep: Sweep, lacking: int = 0) -> str:
    """Return the title of a picture: what was run, how often, and how many runs have no numbers."""
    counts = {outcome: int(np.sum(sweep.outcomes == outcome)) for outcome in _LOST}
    counts["without a number"] = lacking
    lost = "".join(f", {count} {what}" for what, count in counts.items() if count)
    return f"{sweep.system.label}: {len(sweep)} runs{lost}"


_LOST = ("failed", "interrupted")


def lost_runs(sweep: Sweep) -> NDArray[np.bool_]:
    """Return which runs failed or were interrupted."""
    return np.isin(sweep.outcomes, _LOST)


def lacking(sweep: Sweep, column: Column) -> int:
    """Return how many runs lack a number though they came to an end."""
    return int(np.sum(~column.known & ~lost_runs(sweep)))


def color_norm(numbers: FloatArray) -> tuple[Normalize, Extend]:
    """Return what makes colors of numbers, and at which ends some lie beyond the colors.

    A few numbers far away from all others would leave these one color.
    """
    from matplotlib.colors import Normalize

    known = numbers[np.isfinite(numbers)]
    least, most = float(np.min(known)), float(np.max(known))
    low, high = np.quantile(known, [_OUTSIDE, 1.0 - _OUTSIDE]).tolist()
    if not 0.0 < _FAR * (high - low) < most - least:
        return Normalize(least, most), "neither"
    ends: Extend = "both" if least < low else "max"
    return Normalize(low, high), ends if high < most else "min"


def add_color_bar(ax: Axes | Any, shown: Any, column: Column, extend: Extend | None = None) -> None:
    """Say beside axes what their colors mean."""
    first = ax if hasattr(ax, "figure") else np.ravel(np.asarray(ax, dtype=object))[0]
    told: dict[str, Any] = {} if extend is None else {"extend": extend}
    bar = first.figure.colorbar(shown, ax=ax, pad=0.02, **told)
    bar.set_label(column.label)
    bar.outline.set_visible(False)


def few_ticks(ax: Axes, most: int) -> None:
    """Let small axes have few ticks, whose labels do not run into each other."""
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(most))
    ax.yaxis.set_major_locator(MaxNLocator(most))
