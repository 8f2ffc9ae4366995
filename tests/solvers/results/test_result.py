"""What a simulation leaves behind: its signals, its outcome, exports and plots."""

from __future__ import annotations

import csv
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import flexure as fx
from flexure.diagrams.checks.errors import (
    ContextError,
    EvaluationError,
    MissingExtraError,
    NonFiniteError,
    UnknownNameError,
    ValueRefusedError,
)
from tests.support.systems.blocks import Oscillator, diagram_of
from tests.support.systems.recorded_run import oscillation, recorded_run
from tests.support.systems.simulation import Clockwork, Flow, together
from tests.support.tiers import for_each


@pytest.fixture(scope="module")
def result() -> fx.results.SimulationResult:
    return recorded_run()


# Signals -----------------------------------------------------------------------------------------


def test_signals_are_all_vector_outputs_and_states(result: fx.results.SimulationResult) -> None:
    assert set(result.signals) == {
        "held",
        "sampled.ramp.y",
        "sampled.held",
        "sampled.hold.x",
        "sampled.integral.y",
        "sampled.integral.x",
        "oscillator.position",
        "oscillator.x",
        "step.y",
    }
    assert len(result.signals) == len(set(result.signals))


def test_signals_of_a_single_block_have_its_own_names() -> None:
    result = fx.simulate(Oscillator(), 0.1)
    assert result.signals == ("position", "x")


def test_a_signal_with_one_component_has_one_axis(result: fx.results.SimulationResult) -> None:
    assert result["oscillator.position"].shape == result.time.shape
    assert result["oscillator.x"].shape == (*result.time.shape, 3)


@for_each("signal", ["oscillator.x[1]", "oscillator.x[rate]"])
def test_a_component_by_number_or_name(result: fx.results.SimulationResult, signal: str) -> None:
    assert result[signal].tolist() == result["oscillator.x"][:, 1].tolist()


def test_handles_serve_as_signals() -> None:
    oscillator = Oscillator()
    result = fx.simulate(together(oscillator), 0.5)
    assert result[oscillator.position].tolist() == result["oscillator.position"].tolist()
    assert result[oscillator.x].shape == (len(result.time), 3)
    assert result.sample(oscillator.force, [0.0, 0.5]).tolist() == [0.0, 0.0]


def test_arrays_that_are_handed_out_cannot_be_used_to_change_the_result() -> None:
    result = fx.simulate(Oscillator(), 0.5)
    for array in (result.time, result["x"], result["position"]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7.0


@pytest.mark.parametrize(
    ("signal", "text"),
    [
        ("oscillator.poistion", "Did you mean 'position'"),
        ("oscillator.x[3]", r"component 0 to 2; found '3'.*'oscillator\.x\[position\]'"),
        ("oscillator.x[-1]", "component 0 to 2"),
        ("oscillator.x[speed]", "'speed'"),
        ("oscillator.x[", "'x\\['"),
        ("oscillator.k", "expected a vector port or a numeric state; found a parameter"),
        ("nothing.at.all", "nothing"),
        ("", "Cannot find"),
    ],
)
def test_what_is_no_signal_is_refused(
    result: fx.results.SimulationResult, signal: str, text: str
) -> None:
    with pytest.raises(UnknownNameError, match=text):
        result.sample(signal, [0.0])
    with pytest.raises(UnknownNameError, match=text):
        result[signal]


@for_each("times", [[-0.1], [1.1], [0.5, 0.4], [math.nan], [[0.1, 0.2]], [0.0, math.inf]])
def test_times_outside_of_the_run_or_out_of_order_are_refused(
    result: fx.results.SimulationResult, times: Any
) -> None:
    with pytest.raises(ValueRefusedError, match=r"expected ascending times in \[0\.0, 1\.0\] s"):
        result.sample("held", times)


# The run itself ----------------------------------------------------------------------------------


def test_simulate_leaves_the_given_context_as_it_was() -> None:
    builder = fx.DiagramBuilder("diagram")
    builder.add_all(
        fx.Ramp("ramp"), fx.ZeroOrderHold("hold", 0.25), fx.VectorLog("log", period=0.1)
    )
    builder.connect_chain("ramp", "hold", "log")
    diagram = builder.build()
    context = diagram.create_default_context()
    context.time = 1.0
    untouched = context.clone()
    log: Any = diagram.get_system("log")
    result = fx.simulate(diagram, 2.0, context=context)
    assert context == untouched
    assert len(log.find_log(context)) == 0
    assert len(log.find_log(result.context)) == 11
    assert result.context is not context
    assert result.context.time == 2.0
    assert result.time[0] == 1.0


def test_what_happens_to_the_final_context_afterwards_changes_no_signal() -> None:
    lag = fx.FirstOrderLag("lag", time_constant=1.0)
    builder = fx.DiagramBuilder("diagram")
    builder.add_all(fx.Constant("one", 1.0), lag, fx.Gain("gain", 2.0))
    builder.connect_chain("one", "lag", "gain")
    result = fx.simulate(builder.build(), 1.0)
    before = result.sample("gain.y", [0.5, 1.0])
    result.context.set("gain.gain", 5.0)
    result.context.set("lag.x", 9.0)
    result.context.time = 0.0
    assert result.sample("gain.y", [0.5, 1.0]).tolist() == before.tolist()


def test_a_run_of_zero_length_has_one_instant() -> None:
    result = fx.simulate(Oscillator(), 0.0)
    assert result.time.tolist() == [0.0]
    assert result["position"].tolist() == [1.0]
    assert result.outcome == "completed"


def test_outcome_and_message_of_a_completed_run() -> None:
    result = fx.simulate(Oscillator(), 1.0, method="RK45")
    assert result.outcome == "completed"
    assert result.message.startswith("reached t = 1 s\nfrom t = 0 s: RK45, as asked")
    assert repr(result) == (
        f"<SimulationResult of 'oscillator', t = 0 to 1 s, {result.statistics.steps} steps, "
        "completed>"
    )


def test_outcome_and_message_of_a_terminated_run() -> None:
    stop = Clockwork(
        fx.diagrams.Periodic(0.25),
        lambda context, count: fx.diagrams.Terminate("far enough") if context.time > 0.4 else None,
        name="stop",
    )
    result = fx.simulate(together(stop, Oscillator()), 1.0)
    assert result.outcome == "terminated"
    assert result.message.startswith("terminated by stop.run at t = 0.5 s: far enough\n")
    assert result.time[-1] == result.context.time == 0.5
    assert result["oscillator.position"][-1] == pytest.approx(oscillation(np.array(0.5)), abs=1e-5)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (KeyboardInterrupt(), "interrupted"),
        (RuntimeError("broken"), "failed"),
        (EvaluationError("Cannot go on"), "failed"),
    ],
)
def test_an_exception_carries_the_run_up_to_there(error: BaseException, outcome: str) -> None:
    def rate(t: Any, x: Any) -> Any:
        if t > 0.5:
            raise error
        return -x

    with pytest.raises(type(error)) as caught:
        fx.simulate(Flow(rate, [1.0]), 2.0, max_step=0.05)
    result: fx.results.SimulationResult = caught.value.result  # type: ignore[attr-defined]
    assert caught.value is error
    assert result.outcome == outcome
    assert 0.4 < result.time[-1] == result.context.time <= 0.5
    times = np.linspace(0.0, result.time[-1], 20)
    np.testing.assert_allclose(result.sample("x", times), np.exp(-times), rtol=1e-5)


def test_a_failed_simulation_carries_the_run_up_to_there() -> None:
    flow = Flow(lambda t, x: [np.where(t > 0.5, math.nan, 1.0)], [0.0])
    with pytest.raises(NonFiniteError) as caught:
        fx.simulate(flow, 2.0)
    result: fx.results.SimulationResult = caught.value.result  # type: ignore[attr-defined]
    assert result.outcome == "failed"
    assert result.message.startswith("Cannot integrate")
    assert result["x"] == pytest.approx(result.time)


def test_a_context_of_another_system_is_refused() -> None:
    with pytest.raises(ContextError, match="expected a root context of the same system"):
        fx.simulate(Oscillator(), 1.0, context=Oscillator().create_default_context())


class Sampled(fx.LeafSystem):
    """A sum over the samples of a state that grows: x' = 1, n⁺ = n + 1 + x."""

    def __init__(self) -> None:
        super().__init__("sampled")
        self.x = self.declare_continuous_state(z=1)
        self.n = self.declare_discrete_state("n", 0.0)
        self.declare_discrete_update(
            lambda context: {self.n: self.n(context) + 1.0 + self.x(context)},
            fx.diagrams.Periodic(0.25),
        )

    def calc_time_derivatives(self, context: Any) -> Any:
        return [1.0]


@for_each("time", [0.0, 0.25, 0.3, 0.75, 1.0])
def test_a_run_goes_on_from_any_of_its_times_with_every_update_once(time: float) -> None:
    block = Sampled()
    result = fx.simulate(block, 1.0)
    middle = result.context_at(time)
    assert middle.get("n") == result.sample("n", time)
    assert middle.time == pytest.approx(time, rel=1e-15)
    end = fx.simulate(block, 2.0, context=middle).context.get("n")
    assert end == pytest.approx(fx.simulate(block, 2.0).context.get("n"), rel=1e-12)


def test_a_page_of_a_run_begins_before_the_updates_at_its_start() -> None:
    block = Sampled()
    assert fx.simulate(block, 1.0)._begun() == block.create_default_context()


# Export ------------------------------------------------------------------------------------------


def test_to_dict_has_time_and_all_signals(result: fx.results.SimulationResult) -> None:
    table = result.to_dict()
    assert list(table) == ["time", *result.signals]
    for signal in result.signals:
        assert table[signal].tolist() == result[signal].tolist()


def test_to_dict_of_chosen_signals_at_chosen_times(result: fx.results.SimulationResult) -> None:
    table = result.to_dict(["step.y", "oscillator.x[rate]"], [0.0, 0.5, 1.0])
    assert list(table) == ["time", "step.y", "oscillator.x[rate]"]
    assert table["time"].tolist() == [0.0, 0.5, 1.0]
    assert table["step.y"].tolist() == [0.0, 0.0, 1.0]


@pytest.mark.parametrize("write", ["to_csv", "to_npz"])
def test_a_file_that_cannot_be_written_is_an_error_of_ours(
    write: str, result: fx.results.SimulationResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = tmp_path / "signals.npz"
    whole.write_bytes(b"as it was")
    for path in (tmp_path / "nowhere" / "signals.npz", tmp_path):
        with pytest.raises(fx.errors.RecordFileError, match="Cannot write signals to"):
            getattr(result, write)(path if write == "to_csv" else path / "no" / "signals")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(fx.errors.RecordFileError, match="No space left"):
        getattr(result, write)(whole)
    assert whole.read_bytes() == b"as it was"
    assert [each.name for each in tmp_path.iterdir()] == ["signals.npz"]


def test_to_csv_keeps_every_bit(result: fx.results.SimulationResult, tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    result.to_csv(path)
    with path.open(newline="", encoding="utf-8") as file:
        names, *rows = csv.reader(file)
    assert names == list(result.columns())
    assert {"oscillator.x[position]", "oscillator.x[rate]", "oscillator.x[work]"} < set(names)
    columns = np.array([[float(cell) for cell in row] for row in rows]).T
    for name, column in zip(names, columns, strict=True):
        assert column.tolist() == result.columns()[name].tolist()


def test_to_npz_keeps_every_bit(result: fx.results.SimulationResult, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    result.to_npz(path, ["oscillator.x", "held"])
    with np.load(path) as archive:
        assert set(archive) == {"time", "oscillator.x", "held"}
        assert archive["oscillator.x"].tolist() == result["oscillator.x"].tolist()
        assert archive["time"].tolist() == result.time.tolist()


def test_to_pandas(result: fx.results.SimulationResult) -> None:
    pytest.importorskip("pandas")
    frame = result.to_pandas()
    assert frame.index.name == "time"
    times = np.unique(result.time)
    assert len(times) < len(result.time)  # something jumps
    assert frame.index.to_numpy().tolist() == times.tolist()
    assert (
        frame["oscillator.x[rate]"].tolist() == result.sample("oscillator.x[rate]", times).tolist()
    )
    assert frame.loc[0.6, "step.y"] == 1.0
    assert result.to_pandas(jumps="before").loc[0.6, "step.y"] == 0.0
    assert result.to_pandas(jumps="both").index.to_numpy().tolist() == result.time.tolist()
    assert result.to_pandas(["step.y"], [0.5, 0.6]).to_numpy().tolist() == [[0.0], [1.0]]


@pytest.mark.full
def test_to_xarray(result: fx.results.SimulationResult) -> None:
    pytest.importorskip("xarray")
    data = result.to_xarray()
    assert data["oscillator.x"].dims[0] == "time"
    times = np.unique(result.time)
    assert data["time"].values.tolist() == times.tolist()
    assert data["oscillator.x"].values.tolist() == result.sample("oscillator.x", times).tolist()
    assert float(data["step.y"].sel(time=0.6001, method="nearest")) == 1.0
    rate = data["oscillator.x"].sel({"oscillator.x_component": "rate"})
    assert rate.values.tolist() == result.sample("oscillator.x[rate]", times).tolist()
    both = result.to_xarray(jumps="both")
    assert both["oscillator.x"].values.tolist() == result["oscillator.x"].tolist()


@pytest.mark.parametrize("times", [None, [0.5, 0.6, 0.7], [0.5, 0.6, 0.6, 0.7]])
def test_jumps_are_shown_before_after_or_both(
    result: fx.results.SimulationResult, times: list[float] | None
) -> None:
    def at_the_jump(jumps: Any) -> list[float]:
        table = result.to_dict(["step.y"], times, jumps)
        return table["step.y"][table["time"] == 0.6].tolist()  # type: ignore[no-any-return]

    assert at_the_jump("before") == [0.0]
    assert at_the_jump("after") == [1.0]
    assert at_the_jump("both") == ([1.0] if times and len(times) == 3 else [0.0, 1.0])
    with pytest.raises(ValueRefusedError, match="one of 'both', 'before', 'after'; found 'none'"):
        at_the_jump("none")


def swinging_door() -> tuple[fx.results.SimulationResult, fx.Diagram]:
    plant = fx.PlantBuilder("door")
    panel = plant.add_body("panel", fx.SpatialInertia.point_mass(1.0), com=(0, 1, 0))
    axis = plant.add_joint(fx.RevoluteJoint("axis", plant.world, panel, axis=(0, 0, 1)))
    plant.add_actuator("motor", axis)
    builder = fx.DiagramBuilder("room")
    builder.add_all(plant.build(), fx.Step("push", at=0.5))
    builder.connect("push.y", "door.motor")
    room = builder.build()
    return fx.simulate(room, 1.0), room


def test_exports_of_nested_diagrams_have_the_names_and_units_of_their_ports(
    tmp_path: Path,
) -> None:
    result, room = swinging_door()
    assert "door.axis.angle" in result.signals
    assert "door.tree.axis_q" not in result.signals
    shown = [result.resolve(name).handle for name in result.signals]
    origins = [getattr(handle, "origin", handle) for handle in shown]
    assert len(origins) == len(set(origins))
    every = [port for leaf in result.context.leaves() for port in leaf.system.output_ports]
    assert {port for port in every if port.size} <= set(origins)
    np.testing.assert_array_equal(result["door.axis.angle"], result["door.tree.axis_q"])

    result.to_csv(tmp_path / "plain.csv", ["door.axis.angle", "push.y"], [0.0, 1.0])
    result.to_csv(
        tmp_path / "units.csv", ["door.axis.angle", "push.y"], [0.0, 1.0], with_units=True
    )
    plain, units = (
        (tmp_path / f"{name}.csv").read_text().splitlines() for name in ("plain", "units")
    )
    assert plain[0] == "time,door.axis.angle,push.y"
    assert units[0] == "time [s],door.axis.angle [rad],push.y [N m]"
    assert plain[1:] == units[1:]
    if pytest.importorskip("pandas"):
        known = result.to_pandas().attrs["units"]
        assert (known["door.axis.angle"], known["door.axis.rate"]) == ("rad", "rad/s")
    if pytest.importorskip("xarray"):
        data = result.to_xarray()
        assert data["door.axis.angle"].attrs["units"] == "rad"
        assert data["time"].attrs["units"] == "s"
    door = room["door"]  # which can also be simulated alone
    assert "door.axis.angle" in fx.simulate(door, 0.1).columns()


@pytest.mark.parametrize("package", ["pandas", "xarray"])
def test_a_missing_package_is_named_with_its_installation(
    result: fx.results.SimulationResult, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"{package}.*pip install 'flexure\[data\]'"):
        getattr(result, f"to_{package}")()


def test_an_output_called_time_does_not_hide_the_time() -> None:
    class Clock(fx.LeafSystem):
        """time = twice the time."""

        def __init__(self) -> None:
            super().__init__("clock")
            self.declare_vector_output(
                "time", 1, lambda context: 2.0 * context.time, prerequisites=[fx.TIME]
            )

    result = fx.simulate(Clock(), 1.0)
    assert result["time"].tolist() == [0.0, 2.0]
    with pytest.raises(ValueRefusedError, match="'time'"):
        result.to_dict()


# Plots -------------------------------------------------------------------------------------------


def test_plot_has_a_panel_per_signal_with_its_values(
    result: fx.results.SimulationResult, tmp_path: Path
) -> None:
    path = tmp_path / "plot.png"
    figure = result.plot("oscillator.x", "step.y", path=path)
    assert isinstance(figure, Figure)
    assert path.stat().st_size > 1000
    vector, step = figure.axes
    assert [text.get_text() for text in vector.get_legend().get_texts()] == [  # type: ignore[union-attr]
        "position",
        "rate",
        "work",
    ]
    x, y = step.lines[0].get_data()
    assert np.asarray(x)[np.flatnonzero(np.diff(np.asarray(y)))].tolist() == [0.6]
    assert step.get_ylabel() == "step.y"


def test_plot_without_names_shows_the_outputs_of_the_system(
    result: fx.results.SimulationResult,
) -> None:
    assert [axes.get_ylabel() for axes in result.plot().axes] == ["held"]


def test_plot_without_names_or_outputs_shows_what_the_wires_carry() -> None:
    result, _ = swinging_door()
    assert [axes.get_ylabel() for axes in result.plot().axes] == ["push.y [N m]"]


def test_plot_without_names_outputs_or_wires_shows_the_states() -> None:
    class Decay(fx.LeafSystem):
        """ẋ = -x."""

        def __init__(self) -> None:
            super().__init__("decay")
            self.x = self.declare_continuous_state(z=1, default=[1.0])

        def calc_time_derivatives(self, context: Any) -> Any:
            return -self.x(context)

    result = fx.simulate(Decay(), 1.0)
    assert [axes.get_ylabel() for axes in result.plot().axes] == ["x"]
    with pytest.raises(ValueRefusedError, match="expected at least one signal; found none"):
        result.plot([])
    with pytest.raises(ValueRefusedError, match="at least one signal"):
        fx.simulate(diagram_of(fx.LeafSystem("nothing")), 1.0).plot()


def test_plot_of_a_large_diagram_shows_twelve_panels() -> None:
    builder = fx.DiagramBuilder("many")
    for k in range(15):
        builder.add_all(fx.Constant(f"c{k}", 1.0), fx.Gain(f"g{k}", 2.0))
        builder.connect(f"c{k}.y", f"g{k}.u")
    assert len(fx.simulate(builder.build(), 1.0).plot().axes) == 12


def test_plot_takes_lists_of_signals(result: fx.results.SimulationResult) -> None:
    for signals in (["step.y", "held"], ("step.y", "held")):
        labels = [axes.get_ylabel() for axes in result.plot(signals).axes]
        assert labels == ["step.y", "held"]
    labels = [axes.get_ylabel() for axes in result.plot(["step.y"], "held").axes]
    assert labels == ["step.y", "held"]
