"""The pictures of a sweep, which its tables are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from flexure.diagrams.contexts.value_places import Way
from flexure.diagrams.interface.option_names import answers_other_words
from flexure.solvers.tracing.signals import Signal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from flexure.solvers.sweeps.sweep import Sweep


class SweepPictures:
    """Plot methods of a sweep: one per picture, with data from the tables of the sweep.

    Names are those of `Sweep.table`: paths of what was swept, such as ``"pid.kp"`` or
    ``"plant.A[1,0]"``, and metrics. Axes have units where they are declared. Runs without numbers,
    which failed or were interrupted, are marked or counted.
    """

    def plot(
        self,
        *signals: Signal,
        bands: tuple[float, ...] = (0.9, 0.5),
        nominal: bool = True,
        path: str | Path | None = None,
    ) -> Figure:
        """Plot sampled signals over time: the median of all runs, bands, and the nominal run.

        Parameters
        ----------
        *signals : Handle or str
            Sampled signals; all of them when omitted. Components are drawn in a panel each.
        bands : tuple of float
            The shares of the runs that are within the bands at each time: 0.9 from the 5 % to the
            95 % quantile.
        nominal : bool
            Whether to simulate what the runs have in common, without any of the values of the plan,
            and to draw it.
        path : str or Path, optional
            Where to save the figure.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        UnknownNameError
            When a signal was not sampled.
        ValueRefusedError
            When there is none, no run has numbers, or a share is not between 0 and 1.
        """
        from flexure.solvers.sweeps.pictures.quantile_bands import plot_responses

        return plot_responses(cast("Sweep", self), signals, bands=bands, nominal=nominal, path=path)

    def plot_histogram(
        self, *names: Way, bins: int | None = None, path: str | Path | None = None
    ) -> Figure:
        """Plot histograms of metrics or values, with mean, and the 5 %, 50 % and 95 % quantiles.

        Parameters
        ----------
        *names : str or Handle
            Metrics or paths; all metrics when omitted.
        bins : int, optional
            How many bars; by the number and spread of the runs when omitted.
        path : str or Path, optional
            Where to save the figure.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        UnknownNameError
            When there is no such metric or path.
        ValueRefusedError
            When there is nothing to plot.
        """
        from flexure.solvers.sweeps.pictures.distribution_plots import plot_histogram

        return plot_histogram(cast("Sweep", self), names, bins=bins, path=path)

    def plot_scatter(
        self, *names: Way, color: Way | None = None, path: str | Path | None = None
    ) -> Figure:
        """Plot a matrix of scatter plots: each of several columns over each other one.

        On its diagonal are histograms. Failed runs are red crosses, where their values are known.

        Parameters
        ----------
        *names : str or Handle
            Metrics or paths; all of them when omitted.
        color : str or Handle, optional
            A metric or path that gives the points their colors.
        path : str or Path, optional
            Where to save the figure.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        UnknownNameError
            When there is no such metric or path.
        ValueRefusedError
            When these are fewer than two, or more than ten.
        """
        from flexure.solvers.sweeps.pictures.distribution_plots import plot_scatter

        return plot_scatter(cast("Sweep", self), names, color=color, path=path)

    def plot_parallel(
        self,
        *names: Way,
        color: Way | None = None,
        ax: Axes | None = None,
        path: str | Path | None = None,
    ) -> Axes:
        """Plot parallel coordinates: each run is a line across an axis for each column.

        Failed runs are red and dashed, as far as their values are known.

        Parameters
        ----------
        *names : str or Handle
            Metrics or paths; all of them when omitted.
        color : str or Handle, optional
            The column that gives the lines their colors; the last one when omitted.
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
            When there is no such metric or path.
        ValueRefusedError
            When these are fewer than two.
        """
        from flexure.solvers.sweeps.pictures.parallel_coordinates import plot_parallel

        return plot_parallel(cast("Sweep", self), names, color=color, ax=ax, path=path)

    @answers_other_words
    def plot_map(
        self,
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
        from flexure.solvers.sweeps.pictures.grid_maps import plot_map

        return plot_map(
            cast("Sweep", self), metric, x, y, where=where, contours=contours, ax=ax, path=path
        )

    def plot_tornado(
        self,
        metric: str | None = None,
        *,
        ax: Axes | None = None,
        path: str | Path | None = None,
    ) -> Axes:
        """Plot how far each value moves a metric from its nominal one: a tornado chart.

        If the plan changes one value at a time, as `one_at_a_time` does, the bars end at the
        metrics of these runs. For other plans, they come from the linear `regression` over all
        runs, from the 5 % to the 95 % quantile of each value, with the share of the variance that
        it explains.

        Parameters
        ----------
        metric : str, optional
            The name of the metric; the only one when omitted.
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
            When there is no such metric.
        ValueRefusedError
            When nothing was varied, or too few runs have numbers.
        """
        from flexure.solvers.sweeps.pictures.tornado import plot_tornado

        return plot_tornado(cast("Sweep", self), metric, ax=ax, path=path)
