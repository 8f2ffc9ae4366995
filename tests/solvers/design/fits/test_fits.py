"""Fits find what made the data, and say how well the data determine it."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

import flexure as fx
from flexure.blocks.forces.fits.least_squares import Loss
from tests.support.mechanics.mechanics import Pendulum
from tests.support.systems.random_loops import draw_loop

TIMES = np.linspace(0.0, 4.0, 41)


def swing(
    angle: float = 0.8, torque: float = 0.5, noise: float = 0.0, seed: int = 0, **changes: float
) -> tuple[Pendulum, fx.Context, dict[str, Any]]:
    """A pendulum, a context with the truth, and what would be measured of the angle."""
    pendulum = Pendulum(angle=angle)
    context = pendulum.create_default_context()
    pendulum.torque.fix(context, torque)
    run = fx.simulate(pendulum, TIMES[-1], context=context, method="DOP853", rtol=1e-11, atol=1e-13)
    errors = noise * np.random.default_rng(seed).standard_normal(TIMES.size)
    start = context.clone()
    for name, value in changes.items():
        start.set(name, value)
    return pendulum, start, {"time": TIMES, "angle": run.sample("angle", TIMES) + errors}


def driven_lag(values: Any, **columns: Any) -> tuple[fx.System, dict[str, Any]]:
    return fx.FirstOrderLag("lag", 1.0), {"time": TIMES, "y": values, **columns}


# What is found -----------------------------------------------------------------------------------


def test_exact_data_give_the_truth_back() -> None:
    pendulum, start, record = swing(mass=2.5, length=0.45, damping=0.1)
    found = fx.fit(pendulum, record, ["mass", pendulum.length, "damping"], context=start)
    truth = {"mass": 2.0, "length": 0.5, "damping": 0.3}
    assert found.constants == pytest.approx(truth, rel=1e-5)
    assert start.get("mass") == 2.5
    assert found.cost == pytest.approx(0.5 * np.sum(found.residuals**2))
    fresh = pendulum.create_default_context()
    found.apply(fresh)
    assert fresh.get("mass") == found["mass"] == found[pendulum.mass]


def test_sampled_controllers_are_fitted() -> None:
    def loop(*source: fx.System) -> fx.Diagram:
        builder = fx.DiagramBuilder("loop")
        builder.add_all(
            fx.PIDController("pid", kp=2.0, ki=1.5, period=0.1),
            fx.TransferFunction("plant", [2.0], [1.0, 0.8, 1.0]),
            *source,
        )
        builder.connect_chain("pid", "plant", "pid.measurement")
        if source:
            builder.connect("source.y", "pid.setpoint")
        else:
            builder.export_input("pid.setpoint", name="r")
        return builder.build()

    r = np.cos(TIMES)
    driven = loop(fx.Trajectory("source", TIMES, r, kind="linear"))
    run = fx.simulate(driven, TIMES[-1], method="DOP853", rtol=1e-11, atol=1e-13)
    context = loop().create_default_context()
    context.set("pid.kp", 1.0)
    context.set("pid.ki", 1.0)
    record = {"time": TIMES, "r": r, "plant.y": run.sample("plant.y", TIMES)}
    found = fx.fit(context.system, record, ["pid.kp", "pid.ki"], context=context)
    assert found.constants == pytest.approx({"pid.kp": 2.0, "pid.ki": 1.5}, rel=1e-5)


def test_a_linear_fit_is_that_of_linear_algebra() -> None:
    rng = np.random.default_rng(3)
    u = np.sin(2.0 * TIMES) + 1.0
    y = 3.0 * u + 0.7 + 0.05 * rng.standard_normal(TIMES.size)
    gain = fx.Gain("gain", 1.0)
    found = fx.fit(gain, {"time": TIMES, "u": u, "y": y}, ["gain"], offsets=["y"])
    A = np.stack([u, np.ones_like(u)], axis=1)
    solution, squares, *_ = np.linalg.lstsq(A, y)
    covariance = squares[0] / (len(u) - 2) * np.linalg.inv(A.T @ A)
    assert list(found.constants) == ["gain", "offset of y"]
    np.testing.assert_allclose(list(found.constants.values()), solution, rtol=1e-7)
    np.testing.assert_allclose(found.covariance, covariance, rtol=1e-6)
    np.testing.assert_allclose(
        found.correlation[0, 1], covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
    )
    known = fx.fit(
        gain, {"time": TIMES, "u": u, "y": y}, ["gain"], offsets=["y"], deviations={"y": 0.05}
    )
    np.testing.assert_allclose(known.covariance, 0.05**2 * np.linalg.inv(A.T @ A), rtol=1e-6)
    low, high = known.confidence_intervals(0.95)["gain"]
    assert (high - low) / 2.0 == pytest.approx(1.959964 * known.standard_errors["gain"])


def test_a_measured_input_drives_the_port_on_straight_lines() -> None:
    u = np.interp(TIMES, [0.0, 1.0, 2.0, 4.0], [0.0, 1.0, -1.0, 0.5])
    builder = fx.DiagramBuilder("made")
    builder.add_all(
        fx.Trajectory("source", [0.0, 1.0, 2.0, 4.0], [0.0, 1.0, -1.0, 0.5]),
        fx.FirstOrderLag("lag", 0.6, gain=2.0),
    )
    builder.connect_chain("source", "lag")
    run = fx.simulate(builder.build(), 4.0, method="DOP853", rtol=1e-11, atol=1e-13)
    lag, record = driven_lag(run.sample("lag.y", TIMES), u=u)
    found = fx.fit(lag, record, {"time_constant": (0.1, 5.0), "gain": None})
    assert found.constants == pytest.approx({"time_constant": 0.6, "gain": 2.0}, rel=1e-6)


def test_records_share_parameters_and_have_initial_states_and_offsets_of_their_own() -> None:
    _, _, high = swing(angle=1.2)
    pendulum, start, low = swing(angle=0.4, length=0.47)
    low["angle"] = low["angle"] + 0.05
    other = start.clone()
    other.set("x", [1.0, 0.0])
    found = fx.fit(
        pendulum, [low, high], ["length", "x[angle]"], context=[start, other], offsets=["angle"]
    )
    assert found.constants == pytest.approx(
        {
            "length": 0.5,
            "x[angle] of record 0": 0.4,
            "x[angle] of record 1": 1.2,
            "offset of angle of record 0": 0.05,
            "offset of angle of record 1": 0.0,
        },
        abs=1e-5,
    )
    found.apply(start, record=1)
    assert start.get("x")[0] == found["x[angle] of record 1"]
    assert [context.get("x")[0] for context in found.contexts] == [
        found["x[angle] of record 0"],
        found["x[angle] of record 1"],
    ]


def test_logarithmic_parameters_stay_positive_and_have_intervals_of_factors() -> None:
    pendulum, start, record = swing(noise=0.02, damping=30.0)
    found = fx.fit(pendulum, record, "damping", context=start, logarithmic="damping")
    start.set("damping", 0.5)
    plain = fx.fit(pendulum, record, "damping", context=start)
    assert found["damping"] == pytest.approx(plain["damping"], rel=1e-5)
    assert found.standard_errors == pytest.approx(plain.standard_errors, rel=1e-3)
    low, high = found.confidence_intervals(0.99)["damping"]
    assert low * high == pytest.approx(found["damping"] ** 2)


def test_outliers_move_a_robust_fit_less() -> None:
    pendulum, start, record = swing(noise=0.01, length=0.48)
    late = np.array([12, 21, 28, 35])
    record["angle"][late] = record["angle"][late - 3]
    errors = {}
    for loss in get_args(Loss):
        found = fx.fit(pendulum, record, "length", context=start, deviations=0.01, loss=loss)
        errors[loss] = abs(found["length"] - 0.5)
        assert np.isfinite(found.standard_errors["length"])
    assert all(errors[loss] < 0.3 * errors["linear"] for loss in errors if loss != "linear")


def test_signals_are_weighted_by_what_their_residuals_turn_out_to_be() -> None:
    pendulum, start, record = swing(length=0.47)
    rng = np.random.default_rng(2)
    truth = record["angle"]
    record["position"] = 0.5 * np.sin(truth) + 0.2 * rng.standard_normal(TIMES.size)
    record["angle"] = truth + 0.001 * rng.standard_normal(TIMES.size)
    found = fx.fit(pendulum, record, "length", context=start)
    assert found.deviations == pytest.approx({"angle": 0.001, "position": 0.2}, rel=0.3)
    told = fx.fit(
        pendulum, record, "length", context=start, deviations={"angle": 0.001, "position": 0.2}
    )
    assert found["length"] == pytest.approx(
        told["length"], abs=0.3 * told.standard_errors["length"]
    )


def test_exact_data_of_several_signals_give_the_truth_back() -> None:
    pendulum, start, record = swing(mass=2.4, length=0.47)
    record["position"] = 0.5 * np.sin(record["angle"])
    found = fx.fit(pendulum, record, ["mass", "length"], context=start)
    assert found.constants == pytest.approx({"mass": 2.0, "length": 0.5}, rel=1e-5)


def test_a_trial_whose_motion_escapes_is_a_bad_one_and_not_the_end() -> None:
    class Escape(fx.LeafSystem):
        """ẋ = k x², which is 1/(1 - k t)."""

        def __init__(self) -> None:
            super().__init__("escape")
            self.k = self.declare_numeric_parameter("k", 0.05)
            self.x = self.declare_continuous_state(z=1, default=[1.0])
            self.y = self.declare_vector_output("y", 1, self.x.z)

        def calc_time_derivatives(self, context: Any) -> Any:
            return self.k(context) * self.x.z(context) ** 2

    times = np.linspace(0.0, 1.0, 11)
    record = {"time": times, "y": 1.0 / (1.0 - 0.8 * times)}
    assert fx.fit(Escape(), record, "k")["k"] == pytest.approx(0.8, rel=1e-6)
    start = Escape()
    context = start.create_default_context()
    context.set("k", 1.2)
    with pytest.raises(fx.errors.SimulationError):
        fx.fit(start, record, "k", context=context)


def test_bounds_are_kept_and_named() -> None:
    pendulum, start, record = swing(length=0.46)
    found = fx.fit(pendulum, record, {"length": (0.4, 0.48)}, context=start)
    assert found["length"] == pytest.approx(0.48, rel=1e-3)
    assert found.at_bound == ("length",)


def test_what_cannot_be_told_apart_is_named() -> None:
    pendulum, start, record = swing(torque=0.0, noise=0.01)
    with pytest.warns(UserWarning, match="cannot tell 'mass', 'damping' apart"):
        found = fx.fit(pendulum, record, ["mass", "damping", "length"], context=start)
    assert found.unidentified == ("mass", "damping")
    assert found.standard_errors["mass"] == np.inf
    assert found["length"] == pytest.approx(0.5, rel=0.01)
    assert "not determined" in str(found)
    assert "not determined: mass, damping" in repr(found)


# Statistics --------------------------------------------------------------------------------------


@pytest.mark.full
def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """Of 200 experiments with the same truth 190 should have it in their intervals of 95 %.

    All are fitted, and agree with what linear algebra says at the truth: with little noise the
    curvature of the model does not matter.
    """
    times, truth = np.linspace(0.0, 3.0, 12), np.array([0.8, 2.0])
    lag = fx.FirstOrderLag("lag", 0.8, gain=2.0)
    context = lag.create_default_context()
    lag.u.fix(context, 1.0)
    decay = np.exp(-times / 0.8)
    slopes = np.stack([-2.0 * decay * times / 0.8**2, 1.0 - decay], axis=1)
    inverse = np.linalg.inv(slopes.T @ slopes)
    rng = np.random.default_rng(12)
    inside, fitted = np.zeros(2), np.zeros(2)
    for _ in range(200):
        noise = 0.005 * rng.standard_normal(times.size)
        errors = inverse @ slopes.T @ noise
        variance = np.sum((noise - slopes @ errors) ** 2) / 10
        widths = 2.228139 * np.sqrt(variance * np.diag(inverse))  # Student's t of 10 degrees, 95 %
        inside += np.abs(errors) <= widths
        record = {"time": times, "y": 2.0 * (1.0 - decay) + noise}
        found = fx.fit(
            lag, record, ["time_constant", "gain"], context=context, method="DOP853", rtol=1e-6
        )
        low, high = np.transpose(list(found.confidence_intervals(0.95).values()))
        np.testing.assert_allclose((high - low) / 2.0, widths, rtol=0.03)
        np.testing.assert_allclose((high + low) / 2.0 - truth, errors, atol=0.05 * widths.min())
        fitted += (low <= truth) & (truth <= high)
    spread = np.sqrt(0.95 * 0.05)
    assert np.all(np.abs(inside - 190.0) <= 3.0 * spread * np.sqrt(200.0))
    assert np.all(np.abs(fitted - 190.0) <= 3.0 * spread * np.sqrt(200.0))


# Forms of records --------------------------------------------------------------------------------


def test_arrays_frames_and_files_give_the_same_fit(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pendulum, start, record = swing(noise=0.01, length=0.47)
    file = tmp_path / "swing.csv"
    rows = zip(record["time"].tolist(), record["angle"].tolist(), strict=True)
    file.write_text("time,angle\n" + "\n".join(f"{t!r},{a!r}" for t, a in rows))
    forms: list[Any] = [
        {"time": TIMES.tolist(), pendulum.angle.path: record["angle"][:, np.newaxis]},
        {**record, "note": ["unused"] * TIMES.size},
        pandas.DataFrame(record),
        pandas.DataFrame({"angle": record["angle"]}, index=TIMES),
        str(file),
    ]
    found = [
        fx.fit(pendulum, each, "length", context=start, signals="angle")["length"] for each in forms
    ]
    assert len(set(found)) == 1


def test_the_table_of_a_simulation_is_a_record(tmp_path: Path) -> None:
    pendulum, start, _ = swing()
    run = fx.simulate(pendulum, 4.0, context=start, rtol=1e-10, atol=1e-12)
    run.to_csv(tmp_path / "run.csv", ["angle"], times=TIMES, with_units=True)
    start.set("length", 0.47)
    assert fx.fit(pendulum, tmp_path / "run.csv", "length", context=start)[
        "length"
    ] == pytest.approx(0.5)


def test_the_result_of_a_simulation_is_a_record_of_the_signals_that_are_named() -> None:
    pendulum, start, _ = swing()
    run = fx.simulate(pendulum, 4.0, context=start, rtol=1e-10, atol=1e-12)
    start.set("length", 0.47)
    found = fx.fit(pendulum, run, "length", context=start, signals=["angle"])
    assert found["length"] == pytest.approx(0.5)
    assert len(found.times[0]) == len(np.unique(run.time))
    both = fx.fit(pendulum, [run, run], "length", context=start, signals=["angle", "x[rate]"])
    assert both["length"] == pytest.approx(0.5)
    with pytest.raises(fx.errors.ValueRefusedError, match=r"signals=\['angle'\]"):
        fx.fit(pendulum, run, "length", context=start)


def test_bare_states_and_their_components_are_measured_signals() -> None:
    pendulum, start, record = swing(noise=0.01, length=0.47)
    shown = fx.fit(pendulum, record, "length", context=start)
    samples = record.pop("angle")
    for name in ("x[angle]", "x[0]"):
        found = fx.fit(pendulum, {**record, name: samples}, "length", context=start)
        assert found.constants == pytest.approx(shown.constants, rel=1e-9)
    run = fx.simulate(
        pendulum, 4.0, context=found.contexts[0], method="DOP853", rtol=1e-11, atol=1e-13
    )
    whole = fx.fit(pendulum, {**record, "x": run.sample("x", TIMES)}, "length", context=start)
    assert whole["length"] == pytest.approx(found["length"], rel=1e-6)
    assert "x[rate]" in [axes.get_ylabel() for axes in whole.plot().axes]


# What is shown, kept and copied ------------------------------------------------------------------


def test_a_fit_prints_plots_and_is_copied(tmp_path: Path) -> None:
    pendulum, start, record = swing(noise=0.01, length=0.47)
    found = fx.fit(pendulum, [record, record], ["length", "x"], context=start)
    text = str(found)
    assert "length" in text
    assert "95 % confidence" in text
    assert "angle: residuals of 0.0" in text
    assert repr(found).startswith("<Fit of 'pendulum': length=0.")
    assert repr(found).endswith("; 82 samples in 2 records>")
    figure = found.plot(tmp_path / "fit.png")
    assert (tmp_path / "fit.png").stat().st_size > 1000
    assert [axes.get_ylabel() for axes in figure.axes] == ["angle", "residual"]
    for twin in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert twin.constants == found.constants
        assert twin.confidence_intervals() == found.confidence_intervals()


def test_a_fit_whose_motions_jump_names_local_minima() -> None:
    """Anti-windup that holds the integral switches behind a unit delay, from sample to sample."""
    loop = draw_loop(np.random.default_rng(129))
    assert loop.kinds == ("conditional", "dead zone", "second order", "unit delay")
    run = fx.simulate(loop.diagram, 0.8, rtol=1e-8, atol=1e-10)
    times = np.linspace(0.0, 0.8, 33)
    record = {"time": times, loop.output: np.ravel(run.sample(loop.output, times))}
    context = loop.diagram.create_default_context()
    context.set(loop.gain, 1.05 * run.context.get(loop.gain))
    with pytest.warns(UserWarning, match="may have ended at a local minimum.*smallest residuals"):
        fx.fit(loop.diagram, record, [loop.gain], context=context)
