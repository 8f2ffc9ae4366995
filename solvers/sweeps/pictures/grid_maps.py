"""Pictures of a metric over two dimensions of a grid: heat maps and contours."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.diagrams.checks.arguments import flag, require_known, require_that, shown
from flexure.diagrams.checks.errors import UnknownNameError, ValueRefusedError, quoted
from flexure.diagrams.contexts.value_places import Way, path_of
from flexure.diagrams.drawing.formats.new_figures import axes_or_new, saved
from flexure.diagrams.drawing.formats.style import COLOR_MAP, GREY, RED, check_target, labelled
from flexure.diagrams.interface.option_names import answers_other_words
from flexure.diagrams.values.arrays import FloatArray, as_number
from flexure.solvers.sweeps.pictures.plot_columns import (
    Column,
    add_color_bar,
    color_norm,
    lacking,
    lost_runs,
    require_columns,
    title_of,
)
from flexure.solvers.sweeps.tables.regression import metric_of, only_metric

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from flexure.solvers.sweeps.sweep import Sweep

_LEVELS = 12  # of contours
_WIDE = 30.0  # quotient of values in equal proportions, from which on their axis is logarithmic
_DECADES = 1e3  # within which ticks of such an axis are written out


@answers_other_words
def plot_map(
    sweep: Sweep,
    metric: str | None = None,
    x: Way | None = None,
    y: Way | None = None,
    *,
    where: Mapping[Way, float] | None = None,
    contours: bool = False,
    ax: Axes | None = None,
    path: str | Path | None = None,
) -> Axes:
    """Plot a metric over two dimensions of a grid, as a heat map or with contours.

    Failed runs are crossed out.

    Parameters
    ----------
    metric : str, optional
        The name of the metric; the only one when omitted.
    x, y : str or Handle, optional
        The paths along the axes; the first two of the grid when omitted.
    where : mapping, optional
        Values of the other paths of the grid, which are those of the nearest points; the first
        ones when omitted.
    contours : bool
        Whether to fill between contours and number them, rather than a cell for each run.
    ax : matplotlib.axes.Axes, optional
        Where to plot; a new figure when omitted.
    path : str or Path, optional
        Where to save the figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    UnknownNameError
        When there is no such metric, or no such path in the grid.
    ValueRefusedError
        When the plan is no grid of at least two paths with a number each.
    """
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    attempt = f"Cannot plot a map of the sweep of '{sweep.system.label}'"
    check_target(ax, path, attempt)
    filled = flag(contours, "contours", attempt)
    name = only_metric(sweep.metrics, attempt) if metric is None else metric
    column = Column(name, "", metric_of(sweep.metrics, name, attempt))
    column = Column(name, sweep.units[name], column.numbers)
    require_columns([column], 1, 1, attempt)
    axes = _grid_axes(sweep, attempt)
    along = _two_of(list(axes), x, y, attempt)
    place = _place(axes, along, {} if where is None else where, attempt)
    order = [list(axes).index(path) for path in along]
    assert sweep.plan is not None
    table, lost = (
        np.moveaxis(array.reshape(sweep.plan.shape)[place], 0, 0 if order[0] > order[1] else 1)
        for array in (column.numbers, lost_runs(sweep))
    )  # rows are along y
    ax = axes_or_new(ax, figsize=(7.2, 5.2))
    grids = [axes[path] for path in along]
    sort = [np.argsort(grid, kind="stable") for grid in grids]
    across, up = (grid[ranks] for grid, ranks in zip(grids, sort, strict=True))
    table, lost = (array[np.ix_(sort[1], sort[0])] for array in (table, lost))
    _draw(ax, across, up, table, filled, column)
    rows, columns = np.nonzero(lost)
    ax.plot(across[columns], up[rows], "x", color=RED, markersize=7, mew=1.4, clip_on=False)
    for axis, of, grid in ((ax.xaxis, along[0], across), (ax.yaxis, along[1], up)):
        axis.set_label_text(labelled(of, sweep.units[of]))
        if _is_geometric(grid):
            (ax.set_xscale if axis is ax.xaxis else ax.set_yscale)("log")
            if grid[-1] < _DECADES * grid[0]:
                axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
                axis.set_major_formatter(StrMethodFormatter("{x:g}"))
                axis.set_minor_formatter(NullFormatter())
    _write_title(ax, sweep, column, axes, along, place)
    return saved(ax, path)


def _draw(
    ax: Axes, x: FloatArray, y: FloatArray, table: FloatArray, filled: bool, column: Column
) -> None:
    """Draw the cells, or what is between contours."""
    from matplotlib.ticker import MaxNLocator

    norm, extend = color_norm(table)
    ax.set_facecolor("#eeeeee")  # where there are no numbers
    known = np.isfinite(table)
    if filled and min(table.shape) > 1 and known.any() and np.ptp(table[known]) > 0.0:
        levels = MaxNLocator(_LEVELS).tick_values(norm.vmin or 0.0, norm.vmax or 0.0)
        style: dict[str, Any] = {"levels": levels, "extend": extend}
        masked = np.ma.masked_invalid(table)
        drawn: Any = ax.contourf(x, y, masked, cmap=COLOR_MAP, **style)
        lines = ax.contour(x, y, masked, colors="white", linewidths=0.7, **style)
        ax.clabel(lines, levels=levels[1:-1:2], fontsize=8, fmt="%.4g")
        add_color_bar(ax, drawn, column)
    else:
        drawn = ax.pcolormesh(x, y, table, shading="nearest", cmap=COLOR_MAP, norm=norm)
        add_color_bar(ax, drawn, column, extend)
    ax.tick_params(color=GREY)


def _write_title(
    ax: Axes,
    sweep: Sweep,
    column: Column,
    axes: Mapping[str, FloatArray],
    along: tuple[str, str],
    place: tuple[Any, ...],
) -> None:
    """Say what was run, and where the other values of the grid are."""
    others = [
        f"{path} = {grid[index]:.4g} {sweep.units[path]}".rstrip()
        for (path, grid), index in zip(axes.items(), place, strict=True)
        if path not in along
    ]
    lines = [title_of(sweep, lacking(sweep, column)), *([", ".join(others)] if others else [])]
    ax.set_title("\n".join(lines), fontsize=11)


def _is_geometric(grid: FloatArray) -> bool:
    """Return whether ascending values are far apart, in equal proportions."""
    if len(grid) < 3 or grid[0] <= 0.0 or grid[-1] < _WIDE * grid[0]:
        return False
    ways = np.diff(np.log(grid))
    return bool(np.allclose(ways, ways[0], rtol=1e-3))


def _grid_axes(sweep: Sweep, attempt: str) -> dict[str, FloatArray]:
    """Return the values along each dimension of a grid."""
    axes = {} if sweep.plan is None else sweep.plan.axes
    single = {each.name: each.columns.get(each.name) for each in axes}
    if len(single) < 2 or any(column is None or column.ndim != 1 for column in single.values()):
        raise ValueRefusedError(
            attempt,
            expected="the plan of a grid, in which at least two paths have a number each",
            found="runs from given contexts" if sweep.plan is None else repr(sweep.plan),
            remedy="Make it by fx.plans.grid, or draw samples with plot_scatter(..., color=...)",
        )
    return {name: column for name, column in single.items() if column is not None}


def _two_of(names: list[str], x: Way | None, y: Way | None, attempt: str) -> tuple[str, str]:
    """Return the dimensions along the axes."""
    wanted = [None if way is None else path_of(way) for way in (x, y)]
    for name in wanted:
        if name is not None:
            require_known(name, names, f"{attempt}: the grid has no '{name}'")
    free = (name for name in names if name not in wanted)
    first, second = (next(free) if name is None else name for name in wanted)
    require_that(first != second, attempt, "two different paths for x and y", f"'{first}' twice")
    return first, second


def _place(
    axes: Mapping[str, FloatArray], along: tuple[str, str], where: Any, attempt: str
) -> tuple[Any, ...]:
    """Return where in the grid the two dimensions are."""
    others = [name for name in axes if name not in along]
    if not isinstance(where, Mapping):
        raise ValueRefusedError(
            attempt, expected="where= to be a mapping such as {'pid.kd': 2.0}", found=shown(where)
        )
    given = {path_of(way): as_number(value, (), attempt)[()] for way, value in where.items()}
    strange = [name for name in given if name not in others]
    if strange:
        raise UnknownNameError(
            f"{attempt} at values of {quoted(strange)}",
            expected=f"the other paths of the grid: {quoted(others)}",
        )
    return tuple(
        slice(None)
        if name in along
        else int(np.argmin(np.abs(grid - given[name])))
        if name in given
        else 0
        for name, grid in axes.items()
    )
