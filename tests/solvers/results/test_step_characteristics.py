"""Step figures of records that still move, and of steps that are found through the wires."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import ValueRefusedError
from tests.support.systems.simulation import chain
from tests.support.systems.sweeps import servo

FloatArray = npt.NDArray[np.float64]
PLAIN = ("initial", "target", "band", "at", "steady_state_error")


def lag(t: FloatArray) -> FloatArray:
    return 1.0 - np.exp(-t)


def ringing(t: FloatArray) -> FloatArray:
    return 1.0 - np.exp(-0.3 * t) * np.cos(3.0 * t)


def growing(t: FloatArray) -> FloatArray:
    return 1.0 - np.exp(0.2 * t) * np.cos(3.0 * t)


# Records that still move -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("response", "end"), [(lag, 2.0), (lag, 3.0), (lag, 5.0), (ringing, 5.0), (ringing, 9.0)]
)
def test_a_record_that_is_as_much_longer_as_the_warning_says_has_all_figures(
    response: Any, end: float
) -> None:
    t = np.linspace(0.0, end, 4001)
    with pytest.warns(UserWarning, match="simulate about .* s longer") as caught:
        info = fx.step_info(t, response(t))
    for figure in ("final", "rise_time", "overshoot", "peak", "peak_time", "settling_time"):
        assert math.isnan(getattr(info, figure)), figure
    assert info.initial == response(0.0)
    longer = float(str(caught[0].message).split("about ")[1].split(" s")[0])
    t = np.linspace(0.0, end + 1.2 * longer, 40001)
    found, expected = fx.step_info(t, response(t)), fx.step_info(t, response(t), final=1.0)
    assert found.final == pytest.approx(1.0, abs=0.003)
    assert found.settling_time == pytest.approx(expected.settling_time, rel=0.05)
    assert longer < 60.0


def test_a_diverging_response_settles_nowhere_even_if_it_ends_at_its_target() -> None:
    end = 9.0 * math.pi / 6.0  # where the cosine is zero, growing from there on
    t = np.linspace(0.0, end, 5001)
    y = growing(t)
    assert abs(y[-1] - 1.0) < 0.02
    with pytest.warns(UserWarning, match="its settling time is NaN: no decay is in sight"):
        info = fx.step_info(t, y, final=1.0)
    assert math.isnan(info.settling_time)
    assert info.overshoot == pytest.approx(100.0 * (y.max() - 1.0))
    with pytest.warns(UserWarning, match="what needs its final value is NaN"):
        assert math.isnan(fx.step_info(t, y).overshoot)


def test_an_oscillation_that_crosses_the_target_at_the_end_has_not_settled() -> None:
    t = np.linspace(0.0, 3.5 * math.pi / 3.0, 2001)  # ends at a zero of the cosine
    with pytest.warns(UserWarning, match="s longer"):
        assert math.isnan(fx.step_info(t, ringing(t), final=1.0).settling_time)


@pytest.mark.parametrize("end", [4.0, 5.0, 8.0])
def test_a_record_that_ends_soon_after_it_settled_has_its_settling_time(end: float) -> None:
    t = np.linspace(0.0, end, 4001)
    assert fx.step_info(t, lag(t), final=1.0).settling_time == pytest.approx(math.log(50), abs=1e-3)


def test_a_response_at_rest_beside_its_target_is_no_reason_to_warn() -> None:
    t = np.linspace(0.0, 12.0, 2001)
    info = fx.step_info(t, 0.8 * lag(t), target=1.0)
    assert (info.final, info.target) == (1.0, 1.0)
    assert math.isnan(info.settling_time)
    assert math.isnan(info.rise_time)
    assert info.steady_state_error == pytest.approx(0.2, abs=1e-4)


def test_overshoot_is_measured_from_the_target() -> None:
    t = np.linspace(0.0, 30.0, 20001)
    y = 1.04 * ringing(t)
    info = fx.step_info(t, y, target=1.0)
    assert info.overshoot == pytest.approx(100.0 * (y.max() - 1.0))
    assert fx.step_info(t, y, target=1.0, final=1.04).overshoot < info.overshoot


# Steps found through the wires -------------------------------------------------------------------


@pytest.fixture(scope="module")
def result() -> fx.results.SimulationResult:
    return fx.simulate(servo(fx.Step("target", at=0.5, to=2.0)), 8.0)


def test_step_and_target_of_a_loop_are_found(result: fx.results.SimulationResult) -> None:
    found = result.step_info("arm.y")
    assert (found.at, found.target, found.final) == (0.5, 2.0, 2.0)
    assert found == result.step_info("arm.y", at=0.5, target=2.0)
    assert result.step_response("arm.y").at == 0.5
    by_hand = result.step_info("arm.y", at=0.25, final=1.9, target=1.0)
    assert (by_hand.at, by_hand.final, by_hand.target) == (0.25, 1.9, 1.0)


def test_what_is_no_measurement_has_no_target(result: fx.results.SimulationResult) -> None:
    found = result.step_info("pid.u")
    assert found.at == 0.5
    assert math.isnan(found.target)
    assert found.final == pytest.approx(8.0, rel=1e-3)  # 4 N/m times 2 m


def test_a_step_at_another_time_has_no_target(result: fx.results.SimulationResult) -> None:
    assert math.isnan(result.step_info("arm.y", at=0.25).target)


def test_a_plant_in_a_diagram_has_step_and_target() -> None:
    plant = fx.PlantBuilder("door")
    panel = plant.add_body("panel", fx.SpatialInertia.point_mass(1.0), com=(0, 1, 0))
    axis = plant.add_joint(fx.RevoluteJoint("axis", plant.world, panel, axis=(0, 0, 1)))
    plant.add_actuator("motor", axis)
    builder = fx.DiagramBuilder("servo")
    builder.add_all(
        plant.build(), fx.Step("target", at=0.5, to=0.3), fx.PIDController("pid", kp=9.0, kd=6.0)
    )
    builder.connect("target.y", "pid.setpoint")
    builder.connect("door.axis.angle", "pid.measurement")
    builder.connect("pid.u", "door.motor")
    info = fx.simulate(builder.build(), 5.0).step_info("door.axis.angle")
    assert (info.at, info.target) == (0.5, 0.3)


def with_disturbance(target: fx.System, at: float) -> fx.Diagram:
    """A loop with a step of force on the arm."""
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        target,
        fx.PIDController("pid", kp=20.0, ki=20.0, kd=6.0, derivative_filter=0.02),
        fx.Step("push", at=at),
        fx.Sum("force", "++"),
        fx.TransferFunction("arm", [1.0], [1.0, 0.4, 4.0]),
    )
    builder.connect(f"{target.name}.y", "pid.setpoint")
    builder.connect("pid.u", "force.u1")
    builder.connect("push.y", "force.u2")
    builder.connect_chain("force", "arm", "pid.measurement")
    return builder.build()


def test_sources_that_step_at_different_times_have_to_be_told_apart() -> None:
    loop = with_disturbance(fx.Step("target", at=0.5), 4.0)
    run = fx.simulate(loop, 8.0)
    with pytest.raises(ValueRefusedError, match=r"'target' at 0.5 s, 'push' at 4 s. Pass at="):
        run.step_info("arm.y")
    assert run.step_info("arm.y", at=0.5).target == 1.0
    assert math.isnan(run.step_info("arm.y", at=4.0, final=2.0).target)
    with pytest.raises(ValueRefusedError, match="Pass at="):
        fx.sweep(loop, {"pid.kp": [8.0]}, 8.0, signals="arm.y", metrics="overshoot")
    together = fx.simulate(with_disturbance(fx.Step("target", at=0.5), 0.5), 12.0)
    assert together.step_info("arm.y").at == 0.5


def test_a_constant_setpoint_is_the_target_unless_something_else_steps() -> None:
    quiet = fx.simulate(with_disturbance(fx.Constant("target", 1.0), 99.0), 8.0).step_info("arm.y")
    assert (quiet.at, quiet.target) == (0.0, 1.0)
    pushed = fx.simulate(with_disturbance(fx.Constant("target", 0.0), 2.0), 20.0)
    info = pushed.step_info("arm.y", final=0.1)
    assert info.at == 2.0
    assert math.isnan(info.target)


@pytest.mark.parametrize("target", [fx.Ramp("target"), fx.Sine("target", frequency=1.0)], ids=str)
def test_a_setpoint_that_moves_is_no_target(target: fx.System) -> None:
    run = fx.simulate(servo(target), 8.0)
    with pytest.warns(UserWarning, match="no decay is in sight"):
        assert math.isnan(run.step_info("arm.y").target)


def test_a_step_into_a_setpoint_has_its_height_as_target() -> None:
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.PIDController("pid", kp=20.0, ki=20.0, kd=6.0),
        fx.TransferFunction("arm", [1.0], [1.0, 0.4, 4.0]),
        fx.Sum("force", "++"),
    )
    builder.export_input("pid.setpoint")
    builder.export_input("force.u2", name="push")
    builder.connect("pid.u", "force.u1")
    builder.connect_chain("force", "arm", "pid.measurement")
    loop = builder.build()
    context = loop.create_default_context()
    context.set("push", 0.0)
    assert (
        fx.step_response(loop, "setpoint", "arm.y", 12.0, to=3.0, context=context).info.target == 3
    )
    context.set("setpoint", 0.0)
    pushed = fx.step_response(loop, "push", "arm.y", 12.0, context=context, final=0.2).info
    assert math.isnan(pushed.target)
    context.set("setpoint", 0.5)
    assert fx.simulate(loop, 12.0, context=context).step_info("arm.y").target == 0.5


def test_a_signal_that_no_source_moves_counts_from_the_beginning() -> None:
    run = fx.simulate(chain(fx.Sine("sine"), fx.FirstOrderLag("lag", 1.0)), 3.0)
    assert run.step_info("lag.y", final=9.0, band=9.0).at == 0.0


# Sweeps ------------------------------------------------------------------------------------------


def test_each_run_of_a_sweep_is_measured_from_its_own_step_to_its_own_target() -> None:
    values = {"target.at": [0.5, 1.0, 2.0], "target.to": [1.0, -1.0, 3.0]}
    sweep = fx.sweep(
        servo(),
        values,
        9.0,
        signals="arm.y",
        times=np.linspace(0.0, 9.0, 9001),
        metrics=["settling_time", "at", "target", "overshoot", "rise_time"],
    )
    assert sweep.metrics["at"].tolist() == values["target.at"]
    assert sweep.metrics["target"].tolist() == values["target.to"]
    for name in ("settling_time", "overshoot", "rise_time"):
        figures = sweep.metrics[name]
        assert figures == pytest.approx(figures[0], rel=2e-3)
        for k in range(3):
            run = fx.simulate(sweep.system, 9.0, context=sweep.context(k))
            single = getattr(run.step_info("arm.y"), name)
            assert figures[k] == pytest.approx(single, rel=2e-3)
    many = fx.simulate_many(
        sweep.system, [sweep.context(k) for k in range(3)], 9.0, signals="arm.y", metrics="at"
    )
    assert many.metrics["at"].tolist() == values["target.at"]


def test_a_sweep_warns_once_of_runs_that_still_move() -> None:
    plant = fx.TransferFunction("plant", [1.0], [1.0, 0.0, 1.0])
    loop = chain(fx.Step("step", at=0.5), plant, fx.FirstOrderLag("lag", 1.0))
    with pytest.warns(UserWarning, match="'lag.y' still moves at the end of 2 of 2 runs") as caught:
        sweep = fx.sweep(
            loop,
            {"lag.time_constant": [0.5, 1.0]},
            20.0,
            signals=["lag.y"],
            metrics=["settling_time", "initial"],
        )
    (warning,) = caught
    assert "so that 'settling_time' is NaN there: no decay" in str(warning.message)
    assert warning.filename == __file__
    assert np.isnan(sweep.metrics["settling_time"]).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        given = sweep.metric("overshoot", at=[0.5, 0.5], final=1.0)
    assert given.shape == (2,)
    with pytest.raises(ValueRefusedError, match="one for each of 2 runs"):
        sweep.metric("overshoot", at=[0.5, 0.5, 0.5])


def test_many_records_at_once_give_what_each_one_gives() -> None:
    from flexure.solvers.results.measures.curves import Curve, DenseOutput
    from flexure.solvers.results.measures.step_characteristics import StepFigures

    rng = np.random.default_rng(5)
    t = np.sort(np.concatenate([np.linspace(0.0, 20.0, 200), [3.0, 3.0]]))
    delay, rate, omega = (rng.uniform(a, b, 400) for a, b in ((0.0, 5.0), (0.3, 2.0), (0.0, 4.0)))
    passed = np.maximum(t - delay[:, None], 0.0)
    y = 1.0 - np.exp(-rate[:, None] * passed) * np.cos(omega[:, None] * passed)
    nothing = np.full(400, np.nan)
    curve = Curve.of(
        DenseOutput.of_samples(t, y[:, :, None]), y.repeat(2, 1)[:, 1:-1].reshape(-1, 2)
    )
    measured = StepFigures(curve, delay, nothing, nothing, nothing, 0.02)
    figures, longer = measured.all(), measured.longer
    for k in range(0, 400, 16):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            info = fx.step_info(t, y[k], at=delay[k])
        assert bool(caught) == (longer[k] > 0.0)
        for name, column in figures.items():
            np.testing.assert_equal(column[k], getattr(info, name), err_msg=name)


@pytest.mark.parametrize("band", [np.inf, np.nan, 0.0, -1.0])
def test_bands_that_are_no_positive_finite_numbers_are_refused(band: float) -> None:
    t = np.linspace(0.0, 10.0, 201)
    for measure in (fx.step_info, fx.disturbance_info):
        with pytest.raises(ValueRefusedError, match="with band: expected a positive number"):
            measure(t, 1.0 - np.exp(-t), band=band)
    for metric in (fx.metrics.step, fx.metrics.disturbance):
        with pytest.raises(ValueRefusedError, match="expected a positive number"):
            metric("at", "y", band=band)


@pytest.mark.full
def test_figures_of_a_run_do_not_depend_on_its_length() -> None:
    builder = fx.DiagramBuilder("servo")
    builder.add_all(
        fx.Step("target", at=0.5),
        fx.PIDController("pid", kp=16.0, ki=20.0, kd=6.0, derivative_filter=0.02),
        fx.TransferFunction("arm", [1.0], [1.0, 0.4, 4.0]),
    )
    builder.connect("target.y", "pid.setpoint")
    builder.connect_chain("pid", "arm", "pid.measurement")
    servo = builder.build()
    runs = [fx.simulate(servo, end, rtol=1e-9, atol=1e-12) for end in (10.0, 6000.0)]
    short, long = (run.step_info("arm.y", control="pid.u") for run in runs)
    for name in ("overshoot", "rise_time", "peak_time", "settling_time", "control_peak", "ise"):
        assert getattr(short, name) == pytest.approx(getattr(long, name), rel=1e-7), name
    fine = np.linspace(0.5, 3.0, 1_000_001)
    peak = float(runs[1].sample("arm.y", fine).max())
    assert long.peak == pytest.approx(peak, rel=1e-11)
    assert long.peak >= peak - 1e-12
