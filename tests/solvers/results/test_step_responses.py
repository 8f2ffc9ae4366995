"""Step responses: their figures against closed forms and dense records, and their plots."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import (
    ContextError,
    UnknownNameError,
    ValueRefusedError,
)
from tests.support.systems.blocks import Oscillator
from tests.support.systems.simulation import chain
from tests.support.tiers import for_each

FloatArray = npt.NDArray[np.float64]

OMEGA = 3.0
DAMPING = [0.1, 0.3, 0.5, 0.7, 0.9, 1.0, 1.5]
END = 30.0


def second_order(zeta: float, name: str = "plant") -> fx.TransferFunction:
    """ω² / (s² + 2 ζ ω s + ω²)."""
    return fx.TransferFunction(name, [OMEGA**2], [1.0, 2.0 * zeta * OMEGA, OMEGA**2])


def closed_form(zeta: float, t: FloatArray) -> FloatArray:
    """Its unit step response."""
    if zeta == 1.0:
        return np.asarray(1.0 - np.exp(-OMEGA * t) * (1.0 + OMEGA * t))
    root = np.sqrt(complex(1.0 - zeta**2))
    phase = OMEGA * root * t
    envelope = np.exp(-zeta * OMEGA * t)
    return np.asarray((1.0 - envelope * (np.cos(phase) + zeta / root * np.sin(phase))).real)


def first_time(t: FloatArray, condition: npt.NDArray[np.bool_]) -> float:
    return float(t[int(np.argmax(condition))])


@pytest.fixture(scope="module")
def dense_time() -> FloatArray:
    return np.linspace(0.0, END, 300_001)


# Closed forms ------------------------------------------------------------------------------------


@pytest.mark.parametrize("zeta", [z for z in DAMPING if z < 1.0])
def test_overshoot_and_peak_time_of_a_second_order_system(zeta: float) -> None:
    info = fx.step_response(second_order(zeta), "u", "y", END, rtol=1e-8).info
    root = math.sqrt(1.0 - zeta**2)
    assert info.overshoot == pytest.approx(100.0 * math.exp(-math.pi * zeta / root), abs=0.01)
    assert info.peak == pytest.approx(1.0 + math.exp(-math.pi * zeta / root), abs=1e-4)
    assert info.peak_time == pytest.approx(math.pi / (OMEGA * root), abs=END / 2000)
    assert info.undershoot == 0.0


@pytest.mark.parametrize("zeta", DAMPING)
@pytest.mark.parametrize("band", [0.02, 0.05])
def test_rise_and_settling_times_agree_with_a_dense_record(
    zeta: float, band: float, dense_time: FloatArray
) -> None:
    info = fx.step_response(second_order(zeta), "u", "y", END, final=1.0, band=band).info
    y = closed_form(zeta, dense_time)
    rise = first_time(dense_time, y >= 0.9) - first_time(dense_time, y >= 0.1)
    outside = np.flatnonzero(np.abs(y - 1.0) > band)
    assert info.rise_time == pytest.approx(rise, abs=1e-3)
    assert info.settling_time == pytest.approx(float(dense_time[outside[-1]]), abs=2e-3)
    assert info.band == band


def test_without_overshoot_the_figures_say_so() -> None:
    info = fx.step_response(second_order(1.5), "u", "y", END, final=1.0).info
    assert info.overshoot < 1e-4
    assert info.peak == pytest.approx(1.0)


def test_undershoot_of_a_non_minimum_phase_system(dense_time: FloatArray) -> None:
    # (1 - s) / (1 + s)²: y = 1 - exp(-t) - 2 t exp(-t), lowest at t = 1/2... from its derivative.
    plant = fx.TransferFunction("plant", [-1.0, 1.0], [1.0, 2.0, 1.0])
    info = fx.step_response(plant, "u", "y", END, final=1.0, rtol=1e-8).info
    lowest = np.min(1.0 - np.exp(-dense_time) * (1.0 + 2.0 * dense_time))
    assert lowest == pytest.approx(1.0 - 2.0 * math.exp(-0.5))
    assert info.undershoot == pytest.approx(-100.0 * lowest, abs=0.01)
    assert info.overshoot == 0.0


def test_a_downward_step_is_measured_in_its_own_direction() -> None:
    up = fx.step_response(second_order(0.3), "u", "y", END).info
    down = fx.step_response(second_order(0.3), "u", "y", END, to=-2.0).info
    assert down.overshoot == pytest.approx(up.overshoot, rel=1e-3)
    assert down.rise_time == pytest.approx(up.rise_time, rel=1e-3)
    assert down.settling_time == pytest.approx(up.settling_time, rel=1e-3)
    assert down.peak == pytest.approx(-2.0 * up.peak, rel=1e-3)


def test_steady_state_error_is_target_minus_last_value() -> None:
    plant = fx.FirstOrderLag("lag", time_constant=1.0)
    info = fx.step_response(plant, "u", "y", 20.0, to=0.75, target=1.0).info
    assert info.target == 1.0
    assert info.steady_state_error == pytest.approx(0.25)
    assert math.isnan(fx.step_response(plant, "u", "y", 20.0).info.steady_state_error)


def test_a_later_start_changes_nothing() -> None:
    plant = second_order(0.4)
    context = plant.create_default_context()
    context.time = 100.0
    late = fx.step_response(plant, "u", "y", 100.0 + END, context=context)
    early = fx.step_response(plant, "u", "y", END)
    assert late.at == 100.0
    assert late.time[0] == 100.0
    for figure in ("rise_time", "overshoot", "settling_time"):
        assert getattr(late.info, figure) == pytest.approx(getattr(early.info, figure), rel=1e-3)
    assert context.time == 100.0


def test_the_response_starts_from_the_states_of_the_context() -> None:
    lag = fx.FirstOrderLag("lag", time_constant=1.0)
    context = lag.create_default_context()
    lag.x.set(context, 3.0)
    info = fx.step_response(lag, lag.u, lag.y, 40.0, to=1.0, context=context).info
    assert info.initial == 3.0
    assert info.rise_time == pytest.approx(math.log(9.0), abs=1e-3)


def test_a_response_that_jumps_with_its_input_is_measured_from_a_given_value() -> None:
    # (2 s + 1) / (s + 1) jumps to 2 and falls to 1.
    lead = fx.TransferFunction("lead", [2.0, 1.0], [1.0, 1.0])
    info = fx.step_response(lead, "u", "y", 30.0, initial=0.0).info
    assert info.rise_time == 0.0
    assert info.overshoot == pytest.approx(100.0, rel=1e-6)
    assert info.peak_time == 0.0


# Records -----------------------------------------------------------------------------------------


def test_figures_of_a_straight_record_are_exact() -> None:
    info = fx.step_info([0.0, 10.0, 20.0], [0.0, 1.0, 1.0])
    assert info.rise_start == pytest.approx(1.0)
    assert info.rise_end == pytest.approx(9.0)
    assert info.rise_time == pytest.approx(8.0)
    assert info.settling_time == pytest.approx(9.8)


def test_settling_across_the_final_value_is_interpolated_along_the_line() -> None:
    # From 1.5 down to 0.99 in one stretch: the band of 2 % is entered at 1.02.
    info = fx.step_info([0.0, 1.0, 2.0, 3.0], [0.0, 1.5, 0.99, 1.0])
    assert info.settling_time == pytest.approx(1.0 + 0.48 / 0.51)


def test_a_step_in_the_middle_of_a_record() -> None:
    t = np.linspace(0.0, 10.0, 1001)
    y = np.where(t < 4.0, 0.5, 0.5 + 2.0 * (1.0 - np.exp(-(t - 4.0))))
    info = fx.step_info(t, y, at=4.0, final=2.5)
    assert info.initial == 0.5
    assert info.rise_time == pytest.approx(math.log(9.0), abs=1e-3)
    assert info.settling_time == pytest.approx(math.log(50.0), abs=1e-3)


def test_a_jump_at_the_step_itself_counts_from_the_value_before() -> None:
    info = fx.step_info([0.0, 1.0, 1.0, 5.0], [0.2, 0.2, 1.2, 1.2], at=1.0)
    assert info.initial == 0.2
    assert info.final == 1.2
    assert info.rise_time == 0.0
    assert info.settling_time == 0.0


def test_a_step_source_measured_by_itself_rises_at_once() -> None:
    result = fx.simulate(chain(fx.Step("step", at=0.5), fx.FirstOrderLag("lag", 1.0)), 3.0)
    info = result.step_info("step.y", at=0.5)
    assert (info.initial, info.final, info.rise_time) == (0.0, 1.0, 0.0)


def test_what_the_record_does_not_contain_is_nan() -> None:
    t = np.linspace(0.0, 1.0, 101)
    with pytest.warns(UserWarning, match="its settling time is NaN: no decay is in sight"):
        info = fx.step_info(t, 0.5 * t, final=1.0)
    assert math.isnan(info.rise_time)
    assert info.rise_start == pytest.approx(0.2)
    assert math.isnan(info.rise_end)
    assert math.isnan(info.settling_time)
    assert info.overshoot == 0.0


@for_each(
    ("time", "values", "options", "text"),
    [
        ([0.0, 1.0], [0.0, 1.0, 2.0], {}, r"times of shape \(2,\) and values of shape \(3,\)"),
        ([0.0], [1.0], {}, "at least two ascending times"),
        ([[0.0, 1.0]], [[0.0, 1.0]], {}, "shape"),
        ([0.0, 1.0], [0.0, math.nan], {}, "values that are not finite"),
        ([1.0, 0.0], [0.0, 1.0], {}, "times that do not ascend"),
        ([0.0, 1.0], [2.0, 2.0], {}, "2 at first and 2 at last. Simulate longer, or pass final="),
        ([0.0, 1.0], [0.0, 1.0], {"final": math.inf}, "a finite final value"),
        ([0.0, 1.0], [0.0, 1.0], {"initial": math.nan}, "a finite final value"),
        ([0.0, 1.0], [0.0, 1.0], {"at": 1.5}, "within the record, from 0 to 1 s"),
        ([0.0, 1.0], [0.0, 1.0], {"at": -0.5}, "a step at -0.5 s"),
        ([0.0, 1.0], [0.0, 1.0], {"at": math.nan}, "a step at nan s"),
    ],
)
def test_records_that_cannot_be_measured_are_refused(
    time: Any, values: Any, options: dict[str, float], text: str
) -> None:
    with pytest.raises(ValueRefusedError, match=text):
        fx.step_info(time, values, **options)


# Results -----------------------------------------------------------------------------------------


def test_the_result_of_a_simulation_measures_its_signals() -> None:
    result = fx.simulate(chain(fx.Step("step", at=0.5), second_order(0.3)), END)
    info = result.step_info("plant.y", at=0.5)
    alone = fx.step_response(second_order(0.3), "u", "y", END - 0.5).info
    for figure in ("rise_time", "overshoot", "settling_time", "peak_time"):
        assert getattr(info, figure) == pytest.approx(getattr(alone, figure), rel=1e-2)
    response = result.step_response("plant.y", at=0.5)
    assert str(response.info) == str(info)
    assert response.at == 0.5
    assert response.name == "plant.y"


def test_figures_as_text() -> None:
    text = str(fx.step_info([0.0, 10.0, 20.0], [0.0, 1.5, 1.5], target=1.5))
    assert text.splitlines() == [
        "rise time           8 s",
        "overshoot           0 %",
        "peak                1.5 at 10 s",
        "settling time       9.8 s (band 2%)",
        "final value         1.5 (the target)",
        "steady-state error  0",
        "IAE, ISE, ITAE      7.5, 7.5, 25",
    ]


def test_options_go_to_the_simulation() -> None:
    response = fx.step_response(second_order(0.5), "u", "y", 6.0, method="rk4", step=0.125)
    assert set(np.arange(49) * 0.125) <= set(response.time)


@for_each(
    ("entry", "signal", "error", "text"),
    [
        ("v", "y", UnknownNameError, "Cannot find input port 'v' of 'plant'"),
        ("u", "z", UnknownNameError, "Cannot find 'z' in 'plant'"),
        ("u", "x", ValueRefusedError, r"'x': expected a signal with one component.*'x\[0\]'"),
    ],
)
def test_ports_and_signals_that_do_not_fit_are_refused(
    entry: str, signal: str, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        fx.step_response(second_order(0.5), entry, signal, 1.0)


def test_a_connected_input_is_refused() -> None:
    plant = second_order(0.5)
    diagram = chain(fx.Constant("one", 1.0), plant)
    with pytest.raises(ContextError, match=r"'plant\.u'.*a connection from 'one\.y'"):
        fx.step_response(diagram, plant.u, "plant.y", 1.0)


# Plots -------------------------------------------------------------------------------------------


def texts(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.texts]


def test_the_plot_marks_rise_error_peak_settling_and_final_value(tmp_path: Path) -> None:
    path = tmp_path / "step.png"
    response = fx.step_response(second_order(0.3), "u", "y", 6.0, final=1.0, target=1.1)
    axes = response.plot(path=path)
    info = response.info
    assert path.stat().st_size > 10_000
    assert [text for text in texts(axes) if text] == [
        "final value 1",
        "target 1.1",
        f"rise time {info.rise_time:.3g} s",
        f"steady-state error {info.steady_state_error:.3g}",
        f"overshoot {info.overshoot:.3g} %",
        f"settled after {info.settling_time:.3g} s (±2%)",
    ]
    (bar,) = [line for line in axes.lines if line.get_linewidth() == 2.5]
    assert np.ravel(bar.get_ydata()) == pytest.approx((response.values[-1], 1.1))
    points = [tuple(np.ravel(line.get_xydata())) for line in axes.lines if line.get_marker() == "o"]
    assert points[0] == pytest.approx((info.rise_start, 0.1, info.rise_end, 0.9))
    assert points[1] == pytest.approx((info.peak_time, info.peak))
    assert axes.get_legend() is None
    assert axes.get_xlabel() == "time [s]"
    assert axes.get_ylabel() == "y"


def test_marks_are_shifted_to_the_instant_of_the_step() -> None:
    result = fx.simulate(chain(fx.Step("step", at=2.0), second_order(0.3)), 10.0)
    response = result.step_response("plant.y", at=2.0)
    (peak,) = [
        line
        for line in response.plot().lines
        if line.get_marker() == "o" and len(np.ravel(line.get_xdata())) == 1
    ]
    assert float(np.ravel(peak.get_xdata())[0]) == pytest.approx(2.0 + response.info.peak_time)


def test_what_is_not_reached_is_not_marked() -> None:
    lag = fx.FirstOrderLag("lag", 1.0)
    for final in (1.0, None):
        with pytest.warns(UserWarning, match="'y' still moves at t = 0.5 s"):
            response = fx.step_response(lag, "u", "y", 0.5, final=final)
        axes = response.plot()
        assert texts(axes) == ([] if final is None else ["final value 1"])
        assert len(axes.patches) == (final is not None)  # the band around the final value


def test_a_plot_goes_onto_given_axes() -> None:
    figure, axes = plt.subplots()
    response = fx.step_response(second_order(0.3), "u", "y", 6.0, final=1.0)
    assert response.plot(axes) is axes
    assert len(figure.axes) == 1


def test_a_plot_inside_of_a_subfigure_is_saved_whole(tmp_path: Path) -> None:
    figure = plt.figure()
    parts: Any = figure.subfigures(1, 2)
    axes = parts[0].subplots()
    path = tmp_path / "half.png"
    fx.step_response(second_order(0.3), "u", "y", 6.0, final=1.0).plot(axes, path)
    assert path.stat().st_size > 1000
    assert figure.get_axes() == [axes]


def test_the_unit_of_the_port_is_on_the_axis() -> None:
    class Meter(fx.LeafSystem):
        """y = x in mm."""

        def __init__(self) -> None:
            super().__init__("meter")
            self.u = self.declare_vector_input("u", 1)
            self.x = self.declare_continuous_state(z=1)
            self.declare_vector_output("y", 1, self.x, prerequisites=[self.x], unit="mm")

        def calc_time_derivatives(self, context: Any) -> Any:
            return self.u(context) - self.x(context)

    assert fx.step_response(Meter(), "u", "y", 8.0).plot().get_ylabel() == "y [mm]"


def test_a_component_of_a_vector_is_a_signal() -> None:
    with pytest.warns(UserWarning, match=r"'x\[position\]' still moves"):
        response = fx.step_response(Oscillator(), "force", "x[position]", 1.0, final=2.0)
    assert response.name == "x[position]"
    assert response.values[0] == 1.0
