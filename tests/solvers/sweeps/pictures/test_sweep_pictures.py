"""Pictures of sweeps: what they show, how they are labelled, and what becomes of failed runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_rgba

import flexure as fx

RED = to_rgba("#b22222")


class Fuse(fx.LeafSystem):
    """h′ = i² (1 + h²) − g h, which runs away where the current is large."""

    def __init__(self, name: str = "fuse") -> None:
        super().__init__(name)
        self.current = self.declare_numeric_parameter("current", 0.4, unit="A")
        self.loss = self.declare_numeric_parameter("loss", 1.0, unit="1/s")
        self.x = self.declare_continuous_state(z=1)
        self.heat = self.declare_vector_output("heat", 1, self.x, prerequisites=[self.x], unit="K")

    def calc_time_derivatives(self, context: Any) -> Any:
        heat = self.x(context)
        return self.current(context) ** 2 * (1.0 + heat**2) - self.loss(context) * heat


METRICS = {"end": fx.metrics.final("heat"), "rms": fx.metrics.rms("heat")}
GRID = fx.plans.grid({"current": [0.2, 0.4, 1.2], "loss": [0.8, 1.0, 1.2, 1.4]})
TIMES = np.linspace(0.0, 8.0, 21)


def run(plan: Any = GRID, **options: Any) -> fx.results.Sweep:
    given: dict[str, Any] = {"signals": "heat", "metrics": METRICS, "times": TIMES, **options}
    return fx.sweep(Fuse(), plan, 8.0, **given)


@pytest.fixture(scope="module")
def sweep() -> fx.results.Sweep:
    """A grid of which a column fails."""
    found = run()
    assert len(found.failures) == 4
    return found


@pytest.fixture(scope="module")
def samples() -> fx.results.Sweep:
    return run(fx.plans.latin_hypercube({"current": (0.2, 0.5), "loss": (0.8, 1.2)}, 100))


@pytest.mark.full
def test_responses_have_bands_of_quantiles_and_the_nominal_run(samples: fx.results.Sweep) -> None:
    figure: Any = samples.plot(bands=(0.8,))
    (ax,) = figure.axes
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("time [s]", "heat [K]")
    lines = {str(line.get_label()): line for line in ax.lines}
    np.testing.assert_allclose(
        lines["median"].get_ydata(), np.median(samples["heat"], axis=0), rtol=1e-12
    )
    alone = fx.simulate(Fuse(), 8.0)
    np.testing.assert_allclose(lines["nominal"].get_ydata(), alone.sample("heat", TIMES))
    (band,) = ax.collections
    low, high = np.quantile(samples["heat"][:, -1], [0.1, 0.9])
    ends = band.get_paths()[0].vertices[:, 1][band.get_paths()[0].vertices[:, 0] == 8.0]
    assert (ends.min(), ends.max()) == pytest.approx((low, high))


def test_failed_runs_are_counted_in_titles_and_few_runs_are_lines(sweep: fx.results.Sweep) -> None:
    figure = sweep.plot(nominal=False)
    assert figure.get_suptitle() == "fuse: 12 runs, 4 failed"
    assert len(figure.axes[0].lines) == 12 + 1


def test_histograms_have_labels_with_units_and_quantiles(samples: fx.results.Sweep) -> None:
    figure: Any = samples.plot_histogram()
    first = figure.axes[0]
    assert first.get_xlabel().startswith("end [K]\nmean ")
    drawn = sorted(float(line.get_xdata()[0]) for line in first.lines)
    np.testing.assert_allclose(drawn, np.quantile(samples.metrics["end"], [0.05, 0.5, 0.95]))
    assert sum(bar.get_height() for bar in first.patches) == 100
    with pytest.raises(fx.errors.UnknownNameError, match="no metric and no path 'ent'"):
        samples.plot_histogram("ent")


def test_a_scatter_matrix_crosses_failed_runs_out_where_their_values_are_known(
    sweep: fx.results.Sweep,
) -> None:
    figure: Any = sweep.plot_scatter("current", "loss", "end", color="rms")
    panel = figure.axes[3]  # loss over current
    crosses = next(each for each in panel.collections if np.allclose(each.get_edgecolor()[:1], RED))
    assert np.ma.getdata(crosses.get_offsets())[:, 0].tolist() == [1.2] * 4
    assert figure.axes[6].get_xlabel() == "current\n[A]"
    assert figure.axes[-1].get_ylabel() == "rms [K]"


def test_parallel_coordinates_have_an_axis_for_each_column(sweep: fx.results.Sweep) -> None:
    ax: Any = sweep.plot_parallel()
    names = [text.get_text() for text in ax.get_xticklabels()]
    assert names == ["current\n[A]", "loss\n[1/s]", "end\n[K]", "rms\n[K]"]
    assert len(ax.collections[0].get_segments()) == 8
    failed = [line for line in ax.lines if line.get_linestyle() == "--"]
    assert [len(line.get_xdata()) for line in failed] == [2] * 4


@pytest.mark.parametrize("turned", [False, True], ids=["in order", "turned"])
def test_a_heat_map_has_the_numbers_where_they_belong(
    sweep: fx.results.Sweep, turned: bool
) -> None:
    ax: Any = sweep.plot_map("end", *(("loss", "current") if turned else ()))
    drawn = np.ma.filled(ax.collections[0].get_array(), np.nan)
    table = sweep.metrics["end"].reshape(GRID.shape)
    np.testing.assert_array_equal(drawn, table if turned else table.T)
    labels = ["current [A]", "loss [1/s]"]
    assert [ax.get_xlabel(), ax.get_ylabel()] == (labels[::-1] if turned else labels)
    crosses = np.column_stack(ax.lines[0].get_data())
    assert set(crosses[:, 1 if turned else 0]) == {1.2}
    assert ax.figure.axes[-1].get_ylabel() == "end [K]"


def test_a_map_is_a_cut_through_a_larger_grid() -> None:
    plan = fx.plans.grid({"x[0]": [0.0, 0.3], "loss": [0.8, 1.0], "current": [0.2, 0.3, 0.4]})
    cube = run(plan)
    ax: Any = cube.plot_map("end", "loss", "current", where={"x[0]": 0.31})
    drawn = np.ma.filled(ax.collections[0].get_array(), np.nan)
    np.testing.assert_array_equal(drawn, cube.metrics["end"].reshape(plan.shape)[1].T)
    assert "x[0] = 0.3" in ax.get_title()
    with pytest.raises(fx.errors.UnknownNameError, match="the grid has no 'los'"):
        cube.plot_map("end", "los")


def test_contours_fill_the_same_map(sweep: fx.results.Sweep) -> None:
    ax = sweep.plot_map("end", contours=True)
    assert ax.figure.axes[-1].get_ylabel() == "end [K]"
    assert ax.texts  # the numbers of the lines


def test_a_map_of_samples_is_refused_with_what_to_do(samples: fx.results.Sweep) -> None:
    with pytest.raises(
        fx.errors.ValueRefusedError, match=r"Make it by fx\.plans\.grid, or draw samples"
    ):
        samples.plot_map("end")


def test_a_tornado_has_the_runs_that_moved_one_value(samples: fx.results.Sweep) -> None:
    plan = fx.plans.one_at_a_time({"loss": (0.9, 1.2), "current": (0.3, 0.5)}, context=Fuse())
    sweep = run(plan)
    ax: Any = sweep.plot_tornado("end")
    assert [text.get_text() for text in ax.get_yticklabels()] == ["current [A]", "loss [1/s]"]
    end = sweep.metrics["end"]
    ends = sorted(bar.get_x() + bar.get_width() for bar in ax.patches[:2])
    np.testing.assert_allclose(ends, sorted([end[3], end[4]]), rtol=1e-12)
    fitted: Any = samples.plot_tornado("end")
    plane = samples.regression("end")
    assert f"R² = {plane.r_squared:.3g}" in fitted.get_title()
    widths = [abs(bar.get_width()) for bar in fitted.patches[:2]]
    assert sum(widths) == pytest.approx(np.abs(plane.effects).max(), rel=1e-9)


@pytest.mark.full
@pytest.mark.parametrize(
    "draw",
    [
        lambda sweep, path: sweep.plot("heat", path=path),
        lambda sweep, path: sweep.plot_histogram("end", path=path),
        lambda sweep, path: sweep.plot_map("end", path=path),
    ],
    ids=["responses", "histogram", "map"],
)
def test_pictures_are_saved(sweep: fx.results.Sweep, draw: Any, tmp_path: Path) -> None:
    draw(sweep, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 5000


def test_what_cannot_be_drawn_is_refused(sweep: fx.results.Sweep) -> None:
    refused = fx.errors.ValueRefusedError
    with pytest.raises(refused, match=r"shares of the runs in \(0, 1\]"):
        sweep.plot(bands=(90.0,))
    with pytest.raises(refused, match="at least one run with a number"):
        run({"current": [1.2, 1.3]}).plot_histogram()
    with pytest.raises(refused, match="the name of a metric"):
        sweep.plot_tornado()
    with pytest.raises(fx.errors.UnknownNameError, match="Cannot find the signal 'cold'"):
        sweep.plot("cold")
    with pytest.raises(refused, match="2 to 10"):
        sweep.plot_scatter("end")
