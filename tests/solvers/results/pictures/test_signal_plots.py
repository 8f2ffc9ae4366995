"""Signals over time: panels, legends, units, marks, and several runs in the same axes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes

import flexure as fx
from flexure.diagrams.checks.errors import SimulationError, UnknownNameError, ValueRefusedError
from tests.support.mechanics.mechanics import Pendulum
from tests.support.systems.recorded_run import recorded_run
from tests.support.tiers import for_each


def legend(ax: Axes) -> list[str]:
    found = ax.get_legend()
    return [] if found is None else [text.get_text() for text in found.get_texts()]


def numbers(line: Any) -> tuple[Any, Any]:
    x, y = line.get_data()
    return np.ravel(x), np.ravel(y)


def servo() -> fx.Diagram:
    """A PID controller that turns a pendulum, whose ports alone have units."""
    pendulum = Pendulum()
    pendulum.angle.unit, pendulum.torque.unit = "rad", "N m"
    builder = fx.DiagramBuilder("servo")
    builder.add_all(fx.Constant("target", 0.8), fx.PIDController("pid", 60.0, 20.0, 12.0), pendulum)
    builder.connect_chain("target", "pid.setpoint")
    builder.connect("pid.u", "pendulum.torque")
    builder.connect("pendulum.angle", "pid.measurement")
    return builder.build()


@pytest.fixture(scope="module")
def run() -> fx.results.SimulationResult:
    return fx.simulate(servo(), 2.0)


def test_signals_of_one_unit_share_a_panel_and_setpoints_get_theirs_along_the_wires(
    run: fx.results.SimulationResult,
) -> None:
    figure = run.plot("target.y", "pid.u", "pendulum.angle")
    angle, torque = figure.axes
    assert (angle.get_ylabel(), torque.get_ylabel()) == ("[rad]", "pid.u [N m]")
    assert legend(angle) == ["target.y", "pendulum.angle"]
    assert legend(torque) == []
    assert run.plot(["target.y", "pid.u", "pendulum.angle"]).axes[0].get_ylabel() == "[rad]"
    assert run.unit_of("target.y") == "rad"


def test_lists_of_signals_are_panels(run: fx.results.SimulationResult) -> None:
    both = [["pid.u", "target.y"], "pendulum.angle"]
    for figure in (run.plot(*both), run.plot(both)):
        upper, lower = figure.axes
        assert legend(upper) == ["pid.u [N m]", "target.y [rad]"]
        assert (upper.get_ylabel(), lower.get_ylabel()) == ("", "pendulum.angle [rad]")


def test_signals_that_must_have_one_unit_share_a_panel_though_it_is_unknown() -> None:
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.Step("target"), fx.PIDController("pid", kp=1.0, ki=1.0, kd=0.0), fx.Integrator("x")
    )
    builder.connect("target.y", "pid.setpoint")
    builder.connect_chain("pid", "x", "pid.measurement")
    result = fx.simulate(builder.build(), 1.0)
    assert [legend(ax) for ax in result.plot("target.y", "x.y", "pid.u").axes] == [
        ["target.y", "x.y"],
        [],
    ]


def test_units_are_those_that_are_wanted(run: fx.results.SimulationResult) -> None:
    figure = run.plot("pendulum.angle", "pid.u", units={"rad": "deg", "s": "ms"})
    angle, torque = figure.axes
    time, values = numbers(angle.lines[0])
    grid = run.fine_time()
    np.testing.assert_allclose(time, 1e3 * grid)
    np.testing.assert_allclose(values, np.rad2deg(run.sample("pendulum.angle", grid)))
    assert [angle.get_ylabel(), torque.get_ylabel()] == ["pendulum.angle [deg]", "pid.u [N m]"]
    assert torque.get_xlabel() == "time [ms]"


def test_other_units_are_refused_by_name(run: fx.results.SimulationResult) -> None:
    with pytest.raises(
        ValueRefusedError, match=r"with 'rad' as 'mm'.*quantity as 'rad'; found 'mm'"
    ):
        run.plot("pid.u", units={"rad": "mm"})
    with pytest.raises(ValueRefusedError, match="units= to be texts"):
        run.plot("pid.u", units={"rad": 3})  # type: ignore[dict-item]


@pytest.mark.full
def test_samples_that_are_held_are_steps_and_jumps_are_marked_once() -> None:
    figure = recorded_run().plot([["held", "sampled.ramp.y"]])
    (ax,) = figure.axes
    time, held = numbers(ax.lines[0])
    inside = (time > 0.5) & (time < 0.75)
    assert set(held[inside]) == {0.5}
    assert held[time == 0.5].tolist() == [0.25, 0.5]
    marks = [numbers(line)[0][0] for line in ax.lines if line.get_linestyle() == ":"]
    assert marks == [0.6]  # where the step is, but not where samples are taken


def test_components_of_a_vector_are_called_by_their_names_or_their_sources() -> None:
    builder = fx.DiagramBuilder("joined")
    builder.add_all(fx.Step("one", at=0.5), fx.Gain("g", 1.0), fx.Multiplexer("join", [1, 1]))
    builder.connect("one.y", "g.u")
    builder.connect("one.y", "join.u1")
    builder.connect("g.y", "join.u2")
    result = fx.simulate(builder.build(), 1.0)
    assert legend(result.plot("join.y").axes[0]) == ["one.y", "g.y"]


def test_components_of_different_units_have_panels_of_their_own() -> None:
    plant = fx.PlantBuilder("plant")
    bob = plant.add_body("bob", fx.SpatialInertia.point_mass(2.0), com=(0.0, 0.0, -1.0))
    plant.add_joint(fx.RevoluteJoint("axis", plant.world, bob, (0, 1, 0)))
    result = fx.simulate(plant.build(), 0.1)
    labels = [ax.get_ylabel() for ax in result.plot("tree.x").axes]
    assert labels == ["tree.x[axis_q] [rad]", "tree.x[axis_w] [rad/s]"]
    (both,) = result.plot([["tree.x"]]).axes
    assert (both.get_ylabel(), legend(both)) == ("tree.x", ["axis_q [rad]", "axis_w [rad/s]"])


def test_the_reason_is_where_a_run_ended() -> None:
    builder = fx.DiagramBuilder("bad")
    builder.add_all(fx.Integrator("x", initial=1.0), fx.Product("square", "**"))
    builder.connect("x.y", "square.u1")
    builder.connect("x.y", "square.u2")
    builder.connect("square.y", "x.u")
    with pytest.raises(SimulationError) as caught:
        fx.simulate(builder.build(), 5.0)
    result: Any = caught.value.result  # type: ignore[attr-defined]
    (ax,) = result.plot("x.y").axes
    ends = [numbers(line)[0][0] for line in ax.lines if line.get_linestyle() == "-."]
    assert ends == [pytest.approx(1.0, abs=1e-3)]
    told = [text.get_text() for text in ax.texts] + legend(ax)
    assert any("Cannot integrate past t = " in " ".join(text.split()) for text in told)


def test_a_run_without_duration_is_a_dot() -> None:
    line = fx.simulate(servo(), 0.0).plot("pid.u").axes[0].lines[0]
    assert line.get_marker() == "o"
    assert len(np.ravel(line.get_xdata())) == 1


def test_pictures_go_onto_given_axes(run: fx.results.SimulationResult, tmp_path: Path) -> None:
    figure, axes = plt.subplots(2, 1)
    path = tmp_path / "given.png"
    signals = ("pid.u", "pendulum.angle")
    assert run.plot(*signals, ax=axes, title="given", path=path) is figure
    assert path.stat().st_size > 1000
    assert [ax.get_ylabel() for ax in axes] == ["pid.u [N m]", "pendulum.angle [rad]"]
    assert axes[0].get_title() == "given"
    _, single = plt.subplots()
    run.plot(*signals, ax=single)
    assert legend(single) == ["pid.u [N m]", "pendulum.angle [rad]"]
    for wrong in (axes[:1].tolist(), [*axes, single], []):
        with pytest.raises(ValueRefusedError, match="ax to be"):
            run.plot(*signals, ax=wrong)
    assert run.plot("pid.u", title="mine").get_suptitle() == "mine"


def test_large_plants_show_some_panels_and_say_so() -> None:
    builder = fx.DiagramBuilder("many")
    for k in range(15):
        builder.add(fx.Constant(f"c{k}", 1.0))
        builder.export_output(f"c{k}.y", f"y{k}")
    figure = fx.simulate(builder.build(), 1.0).plot()
    assert len(figure.axes) == 12
    assert figure.get_suptitle() == "many, 12 of 15 panels"


# Several runs ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runs() -> dict[str, fx.results.SimulationResult]:
    found = {}
    for kp in (10.0, 30.0):
        system = servo()  # another one for each run
        context = system.create_default_context()
        context.set("pid.kp", kp)
        found[f"kp = {kp:g}"] = fx.simulate(system, 1.0 + kp / 30.0, context=context)
    return found


def test_runs_are_compared_in_the_same_axes(runs: dict[str, fx.results.SimulationResult]) -> None:
    figure = fx.compare(runs, "target.y", "pendulum.angle", "pid.u", units={"rad": "deg"})
    angle, torque = figure.axes
    assert torque.get_legend() is None  # the first panel names the runs
    assert legend(angle) == ["kp = 10", "kp = 30", "target.y"]  # which is the same in both
    assert angle.get_ylabel() == "pendulum.angle [deg]"
    for line, result in zip(angle.lines, runs.values(), strict=False):
        time, values = numbers(line)
        grid = result.fine_time()
        np.testing.assert_array_equal(time, grid)
        expected = np.rad2deg(result.sample("pendulum.angle", grid))
        np.testing.assert_allclose(values, expected, rtol=1e-12)


def test_several_signals_of_several_runs_have_dashes(
    runs: dict[str, fx.results.SimulationResult],
) -> None:
    (ax,) = fx.compare(runs, [["pid.u", "pendulum.angle"]]).axes
    assert legend(ax) == ["kp = 10", "kp = 30", "pid.u [N m]", "pendulum.angle [rad]"]
    shown = [line for line in ax.lines if np.size(line.get_xdata())]
    assert len({(line.get_color(), line.get_linestyle()) for line in shown}) == 4


@for_each(
    ("change", "error", "text"),
    [
        (lambda runs: {}, ValueRefusedError, "expected results of simulations"),
        (lambda runs: {"a": 3}, ValueRefusedError, "expected results of simulations"),
        (lambda runs: {**runs, "b": recorded_run()}, UnknownNameError, "pendulum"),
    ],
)
def test_runs_that_cannot_be_compared_are_refused(
    runs: dict[str, fx.results.SimulationResult],
    change: Callable[[Any], Any],
    error: type[Exception],
    text: str,
) -> None:
    with pytest.raises(error, match=text):
        fx.compare(change(runs), "pendulum.angle")


def test_runs_with_other_units_are_refused() -> None:
    found = {}
    for unit in ("m", "mm"):
        builder = fx.DiagramBuilder("scaled")
        builder.add_all(fx.Sine("way"), fx.Gain("g", 1.0, unit="1"), Sensor(unit))
        builder.connect_chain("way", "g", "sensor")
        found[unit] = fx.simulate(builder.build(), 1.0)
    with pytest.raises(ValueRefusedError, match=r"'g.y \[m\]'; found 'g.y \[mm\]' in 'mm'"):
        fx.compare(found, "g.y")


class Sensor(fx.LeafSystem):
    """An input with a unit."""

    def __init__(self, unit: str) -> None:
        super().__init__("sensor")
        self.u = self.declare_vector_input("u", 1, unit=unit)


def test_a_bare_mechanism_shows_coordinates_by_unit_and_energies_and_folds_constants() -> None:
    builder = fx.PlantBuilder("stone", gravity=(0.0, 0.0, -9.81))
    inertia = fx.SpatialInertia.solid_box(1.0, size=(0.1, 0.2, 0.3))
    stone = builder.add_body("stone", inertia)
    builder.add_joint(fx.QuaternionFloatingJoint("free", builder.world, stone))
    system = builder.build()
    context = system.create_default_context()
    context.set("free.v", [0.0, 0.0, 0.0, 1.0, 0.0, 0.0])
    result = fx.simulate(system, 0.5, context=context)
    figure = result.plot()
    shown = {ax.get_ylabel(): {line.get_label() for line in ax.lines} for ax in figure.axes}
    energies = {"kinetic_energy", "potential_energy", "mechanical_energy"}
    moving = {"free.q [m]": {"x", "z"}, "free.v [m/s]": {"vx", "vz"}, "[J]": energies}
    assert shown == moving
    title = figure.get_suptitle()
    assert "9 constant curves left out" in title
    assert "plot('free.q')" in title
    page = str(fx.page(system, 0.5, context=context).html)
    assert '["free.q[x]", "free.q[y]", "free.q[z]"]' in page.replace('","', '", "')
    (named,) = result.plot("free.q[y]").axes  # what is asked for is shown
    assert not np.any(named.lines[0].get_ydata())


def test_a_comparison_names_its_runs_once() -> None:
    lag = fx.FirstOrderLag("lag", 1.0)
    runs = {}
    for level in (1.0, 2.0, 3.0):
        context = lag.create_default_context()
        lag.u.fix(context, level)
        runs[f"u = {level:g}"] = fx.simulate(lag, 1.0, context=context)
    upper, lower = fx.compare(runs, ["y"], ["x"]).axes
    legend = upper.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == [*runs]
    assert lower.get_legend() is None
