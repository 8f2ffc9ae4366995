"""Sweeps as tables: labels, units, dimensions of a grid, failures and runs that are repeated."""

from __future__ import annotations

import csv
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io

import flexure as fx
from flexure.errors import RecordFileError
from tests.support.systems.sweeps import Pendulum, UntilEdge, driven_pendulum, in_lanes, servo

EDGES = [100.0, 0.5, 100.0, 0.25]


class Tank(fx.LeafSystem):
    """h′ = (u - k √h) / A, with units."""

    def __init__(self, name: str = "tank") -> None:
        super().__init__(name)
        self.area = self.declare_numeric_parameter("area", 2.0, unit="m²", doc="of the surface")
        self.k = self.declare_numeric_parameter("k", [0.1, 0.2], unit="m²·⁵/s")
        self.x = self.declare_continuous_state(z=1, default=[1.0], element_names=["level"])
        self.level = self.declare_vector_output(
            "level", 1, self.x, prerequisites=[self.x], unit="m", doc="above the bottom"
        )
        self.both = self.declare_vector_output(
            "both", 2, lambda c: [self.x(c)[0], 2.0], prerequisites=[self.x], unit="m"
        )

    def calc_time_derivatives(self, context: Any) -> Any:
        return [-np.sum(self.k(context)) * np.sqrt(self.x(context)[0]) / self.area(context)]


def tanks(**options: Any) -> fx.results.Sweep:
    fm = fx.metrics
    metrics = {"rms": fm.rms("level"), "iae": fm.iae("level"), "share": fm.rms("level") / 2.0}
    plan = fx.plans.grid({"area": [1.0, 2.0, 4.0], "x[level]": [0.5, 1.0]})
    given: dict[str, Any] = {"signals": ["level", "both", "x[level]"], "times": [0.0, 0.5, 1.0]}
    return fx.sweep(Tank(), plan, 1.0, metrics=metrics, **{**given, **options})


def failing() -> fx.results.Sweep:
    final = {"final": fx.metrics.final("y")}
    return fx.sweep(UntilEdge(), {"edge": EDGES}, 1.0, signals="y", metrics=final, times=[0.0, 1.0])


# Labels and units ------------------------------------------------------------------------------


def test_units_are_those_of_parameters_ports_and_what_metrics_make_of_them() -> None:
    units = tanks().units
    assert (units["area"], units["level"], units["rms"]) == ("m²", "m", "m")
    assert (units["iae"], units["share"]) == ("m s", "m")
    assert fx.sweep(Tank(), {"k": [[0.1, 0.2]]}, 1.0).units == {"k": "m²·⁵/s"}


@pytest.mark.parametrize(
    ("metric", "unit"),
    [
        (fx.metrics.ise("y"), "rad² s"),
        (fx.metrics.itae("y"), "rad s²"),
        (fx.metrics.step("overshoot", "y"), "%"),
        (fx.metrics.step("settling_time", "y"), "s"),
        (fx.metrics.step("peak", "y").named("top"), "rad"),
        (fx.metrics.disturbance("recovery_time", "y"), "s"),
        (fx.metrics.first_crossing("y", 1.0), "s"),
        (2.0 * fx.metrics.rms("y") - fx.metrics.mean("y"), "rad"),
        (fx.metrics.rms("y") + fx.metrics.mean("u"), ""),
        (fx.metrics.rms("y") * fx.metrics.rms("y"), ""),
        (1.0 / fx.metrics.rms("y"), ""),
        (fx.metrics.iae("unknown"), ""),
        (fx.metrics.step("control_peak", "y", control="u"), ""),
    ],
    ids=lambda item: getattr(item, "label", None),
)
def test_metrics_have_units_where_these_are_known(metric: Any, unit: str) -> None:
    assert metric.unit_among({"y": "rad", "u": "V"}) == unit


def test_a_table_has_a_row_for_each_run_and_reasons_where_some_failed() -> None:
    table = tanks().table()
    assert table.columns == ("run", "area", "x[level]", "rms", "iae", "share", "outcome")
    assert table["area"] == [1.0, 1.0, 2.0, 2.0, 4.0, 4.0]
    table = failing().table()
    assert table.columns == ("run", "edge", "final", "outcome", "reason")
    assert [bool(text) for text in table["reason"]] == [False, True, False, True]


def test_a_data_frame_knows_units() -> None:
    pytest.importorskip("pandas")
    frame = tanks().to_pandas()
    assert frame.attrs["units"]["area"] == "m²"
    assert frame.attrs["units"]["iae"] == "m s"
    assert failing().to_pandas()["reason"][1].startswith("Cannot integrate past t = 0.")


def test_csv_files_hold_the_columns(tmp_path: Path) -> None:
    sweep, path = failing(), tmp_path / "study.csv"
    sweep.to_csv(path)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["run"] for row in rows] == ["0", "1", "2", "3"]
    assert [float(row["edge"]) for row in rows] == EDGES
    assert [row["outcome"] for row in rows] == sweep.outcomes.tolist()
    assert [row["reason"] for row in rows] == [sweep.failures.get(k, "") for k in range(4)]


def test_mat_and_parquet_files_hold_the_columns_and_units(tmp_path: Path) -> None:
    sweep, path = tanks(), tmp_path / "study.mat"
    sweep.to_mat(path)
    content = scipy.io.loadmat(path, simplify_cells=True)
    for name in ("area", "x[level]", "iae"):
        plain = name.replace("[", "_").rstrip("]")
        np.testing.assert_array_equal(content[plain], sweep.table()[name])
        assert "".join(content["units"][plain]) == sweep.units[name]
    failing().to_mat(path)
    reasons = scipy.io.loadmat(path, simplify_cells=True)["reason"]
    assert reasons[1].startswith("Cannot integrate past t = 0.")
    with pytest.raises(RecordFileError, match=r"Cannot write .*nowhere"):
        sweep.to_mat(tmp_path / "nowhere" / "study.mat")
    alike = {name: fx.metrics.final("y") for name in ("a b", "a-b")}
    with pytest.raises(RecordFileError, match=r"'a-b' and another one.*Give metrics other names"):
        fx.sweep(fx.FirstOrderLag("lag", 1.0), {"u": [1.0]}, 0.1, metrics=alike).to_mat(path)
    parquet = pytest.importorskip("pyarrow.parquet")
    failing().to_parquet(tmp_path / "study.parquet")
    read = parquet.read_table(tmp_path / "study.parquet")
    assert read.column("edge").to_pylist() == EDGES
    assert read.column("reason").to_pylist()[1] == reasons[1]
    assert read.schema.field("edge").metadata[b"unit"].decode() == failing().units["edge"]


def test_a_data_set_has_the_dimensions_of_the_grid() -> None:
    pytest.importorskip("xarray")
    sweep = tanks()
    data = sweep.to_xarray()
    assert dict(data.sizes) == {
        "area": 3,
        "x[level]": 2,
        "time": 3,
        "both_component": 2,
        "state": 1,
    }
    assert data["rms"].dims == ("area", "x[level]")
    row = data.sel(area=2.0, **{"x[level]": 0.5})
    assert int(row["run"]) == 2
    assert float(row["rms"]) == sweep.metrics["rms"][2]
    np.testing.assert_array_equal(row["both"], sweep["both"][2])
    np.testing.assert_array_equal(row["x[level] over time"], sweep["x[level]"][2])
    assert data["level"].attrs == {"units": "m", "long_name": "above the bottom"}
    assert data["area"].attrs == {"units": "m²", "long_name": "of the surface"}
    assert data["iae"].attrs == {"units": "m s"}


def test_a_data_set_of_samples_has_the_values_as_coordinates() -> None:
    pytest.importorskip("xarray")
    data = fx.sweep(Tank(), {"k": [[0.1, 0.2], [0.3, 0.4]]}, 1.0).to_xarray()
    assert data["k[1]"].dims == ("sample",)
    assert data["k[1]"].values.tolist() == [0.2, 0.4]
    given = fx.simulate_many(Tank(), [Tank().create_default_context()][:0], 1.0)
    assert given.plan is None
    assert given.to_xarray()["final_states"].shape == (0, 1)


def test_failed_runs_are_nan_in_a_data_set_with_reasons() -> None:
    pytest.importorskip("xarray")
    data = failing().to_xarray()
    assert np.isnan(data["final"].values).tolist() == [False, True, False, True]
    assert data["outcome"].values.tolist() == ["completed", "failed"] * 2
    assert str(data["reason"].values[1]).startswith("Cannot integrate past t = 0.5 s: ")


# Failures and repetitions ----------------------------------------------------------------------


def test_failures_are_grouped_by_reasons_without_their_numbers() -> None:
    table = failing().failure_table()
    assert table["count"] == [2]
    assert table["runs"] == ["1, 3"]
    assert table["reason"][0].startswith("Cannot integrate past t = # s: ")
    assert len(fx.sweep(Tank(), {"area": [1.0]}, 1.0).failure_table()) == 0


@pytest.mark.parametrize("system", [driven_pendulum(), servo()], ids=["driven", "servo"])
def test_a_run_comes_again_bit_for_bit_whatever_is_looked_at(system: fx.Diagram) -> None:
    path = "pendulum.stiffness" if system.name == "driven" else "pid.kp"
    signal = "pendulum.angle" if system.name == "driven" else "arm.y"
    values = np.random.default_rng(4).uniform(2.0, 20.0, 37)
    metrics = {"top": fx.metrics.maximum(signal), "rms": fx.metrics.rms(signal)}
    sweep = fx.sweep(system, {path: values}, 3.0, signals=signal, metrics=metrics)
    state = "pendulum.x[angle]" if system.name == "driven" else "arm.x[0]"
    for index in (0, 20, -1):
        again = sweep.rerun(index, signals=state if index else ())
        assert in_lanes(again) == in_lanes(sweep)
        assert again.values[path].tolist() == [values[index]]
        np.testing.assert_array_equal(again[signal][0], sweep[signal][index])
        np.testing.assert_array_equal(again.final_states[0], sweep.final_states[index])
        for name in metrics:
            assert again.metrics[name][0] == sweep.metrics[name][index]
    alone = sweep.simulate(20)
    np.testing.assert_allclose(alone.sample(signal, sweep.times), sweep[signal][20], atol=1e-11)


def test_single_simulations_come_again_bit_for_bit_with_their_history() -> None:
    metrics = {"steps": lambda result: result.statistics.steps}
    sweep = fx.sweep(Pendulum(), {"stiffness": [1.0, 2.0]}, 1.0, signals="angle", metrics=metrics)
    assert not in_lanes(sweep)
    again, alone = sweep.rerun(1), sweep.simulate(1)
    np.testing.assert_array_equal(again["angle"][0], sweep["angle"][1])
    np.testing.assert_array_equal(alone.sample("angle", sweep.times), sweep["angle"][1])
    assert again.metrics["steps"][0] == sweep.metrics["steps"][1] == alone.statistics.steps


def test_runs_from_given_contexts_come_again() -> None:
    pendulum = Pendulum()
    contexts = [pendulum.create_default_context() for _ in range(3)]
    for context, angle in zip(contexts, (0.1, 1.0, 2.0), strict=True):
        context.set("x", [angle, 0.0])
    sweep = fx.simulate_many(pendulum, contexts, 1.0, signals="angle")
    np.testing.assert_array_equal(sweep.rerun(2)["angle"][0], sweep["angle"][2])


def test_a_failed_run_fails_again_and_tells_why() -> None:
    sweep = failing()
    again = sweep.rerun(1)
    assert again.failures == {0: sweep.failures[1]}
    assert np.isnan(again.metrics["final"]).all()
    with pytest.raises(fx.errors.SimulationError):
        sweep.simulate(1)


def test_a_sweep_with_local_functions_as_metrics_can_be_pickled_and_says_what_is_lost() -> None:
    sweep = fx.sweep(Pendulum(), {"stiffness": [1.0]}, 0.1, metrics={"one": lambda result: 1.0})
    copied = pickle.loads(pickle.dumps(sweep))
    assert copied.metrics["one"].tolist() == [1.0]
    with pytest.raises(fx.errors.ValueRefusedError, match=r"from a pickle"):
        copied.rerun(0)
    metrics = {"end": fx.metrics.final("angle")}
    whole = fx.sweep(Pendulum(), {"stiffness": [1.0, 2.0]}, 0.1, metrics=metrics)
    again = pickle.loads(pickle.dumps(whole)).rerun(1)
    assert again.metrics["end"] == whole.metrics["end"][1]


# Planes through metrics ------------------------------------------------------------------------


def test_a_regression_is_that_of_numpy() -> None:
    rng = np.random.default_rng(3)
    values = {"area": rng.uniform(1.0, 2.0, 50), "x[level]": rng.uniform(0.5, 2.0, 50)}
    sweep = fx.sweep(Tank(), values, 1.0, metrics={"end": fx.metrics.final("level")})
    found, y = sweep.regression("end"), sweep.metrics["end"]
    matrix = np.column_stack([np.ones(50), *values.values()])
    expected, *_ = np.linalg.lstsq(matrix, y)
    np.testing.assert_allclose(found.slopes, expected[1:], rtol=1e-9)
    share = 1.0 - np.var(y - matrix @ expected) / np.var(y)
    assert found.r_squared == pytest.approx(share, rel=1e-9)
    assert found.table()["path"][0] == "x[level]"


def test_a_regression_needs_a_metric_that_is_there_and_runs_that_differ() -> None:
    with pytest.raises(fx.errors.UnknownNameError, match="there is no metric 'rmz'"):
        tanks().regression("rmz")
    with pytest.raises(fx.errors.ValueRefusedError, match="values that differ between runs"):
        fx.sweep(Tank(), {"area": [1.0] * 4}, 1.0, metrics=fx.metrics.rms("level")).regression(
            "rms(level)"
        )


# One at a time ---------------------------------------------------------------------------------


def test_one_value_is_moved_at_a_time_each_component_by_itself() -> None:
    from scipy.stats import norm

    plan = fx.plans.one_at_a_time({"area": norm(2.0, 0.1), "k": "10 %"}, context=Tank())
    assert len(plan) == 1 + 2 * 3
    nominal = {"area": 2.0, "k": [0.1, 0.2]}
    moved = np.column_stack([plan["area"] != nominal["area"], plan["k"] != nominal["k"]])
    assert moved.sum(axis=1).tolist() == [0, 1, 1, 1, 1, 1, 1]
    np.testing.assert_allclose(plan["area"][1:3], norm(2.0, 0.1).ppf([0.05, 0.95]))
    np.testing.assert_allclose(plan["k"][3:5, 0], [0.09, 0.11])
    with pytest.raises(fx.errors.ValueRefusedError, match="shape"):
        fx.plans.one_at_a_time({"k": (0.0, 1.0)}, context=Tank())
