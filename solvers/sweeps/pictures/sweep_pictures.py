"""The pictures of a sweep, which its tables are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexure.diagrams.interface.lazy_names import Deferred

if TYPE_CHECKING:
    from flexure.solvers.sweeps.pictures import (
        distribution_plots,
        grid_maps,
        parallel_coordinates,
        quantile_bands,
        tornado,
    )
else:
    distribution_plots = Deferred("flexure.solvers.sweeps.pictures.distribution_plots")
    grid_maps = Deferred("flexure.solvers.sweeps.pictures.grid_maps")
    parallel_coordinates = Deferred("flexure.solvers.sweeps.pictures.parallel_coordinates")
    quantile_bands = Deferred("flexure.solvers.sweeps.pictures.quantile_bands")
    tornado = Deferred("flexure.solvers.sweeps.pictures.tornado")


class SweepPictures:
    """Plot methods of a sweep: one per picture, with data from the tables of the sweep.

    Names are those of `Sweep.table`: paths of what was swept, such as ``"pid.kp"`` or
    ``"plant.A[1,0]"``, and metrics. Axes have units where they are declared. Runs without numbers,
    which failed or were interrupted, are marked or counted.
    """

    plot = quantile_bands.plot_responses
    plot_histogram = distribution_plots.plot_histogram
    plot_scatter = distribution_plots.plot_scatter
    plot_parallel = parallel_coordinates.plot_parallel
    plot_map = grid_maps.plot_map
    plot_tornado = tornado.plot_tornado
