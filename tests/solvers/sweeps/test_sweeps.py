"""The runs of a sweep are those of single simulations, whichever way they are run."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.integrate

import flexure as fx
from flexure.diagrams.checks.errors import (
    NativeCodeError,
    UnknownNameError,
    ValueRefusedError,
)
from flexure.solvers.native.llvm import library
from tests.support.native.native import needs_llvmlite
from tests.support.systems.simulation import ball, together
from tests.support.systems.sweeps import (
    Pendulum,
    UntilEdge,
    assert_like_singles,
    driven_pendulum,
    in_lanes,
    servo,
    single,
)
from tests.support.tiers import thinned

FloatArray = npt.NDArray[np.float64]

METHODS = ["RK23", "RK45", "DOP853", "DormandPrince", "Rodas5P"]


# Like single simulations --------------------------------------------------------------------------

#: Makers of blocks, and whether their equations are smooth.
Makers = list[tuple[Callable[[], fx.System], bool]]

SOURCES: Makers = [
    (lambda: fx.Sine("source", amplitude=1.2, frequency=2.3, phase=0.4), True),
    (lambda: fx.Step("source", at=0.7, to=1.5), True),
    (lambda: fx.Ramp("source", slope=0.8, start=0.3, stop=1.4), True),
    (lambda: fx.Chirp("source", 0.2, 1.5, 3.0), True),
    (lambda: fx.Square("source", amplitude=0.7, period=1.1), True),
    (lambda: fx.Trajectory("source", [0.0, 1.0, 2.5], [0.0, 1.0, 0.5], kind="cubic"), True),
]
CONTROLLERS: Makers = [
    (lambda: fx.Gain("controller", 3.0), True),
    (lambda: fx.FilteredDerivative("controller", 0.2), True),
    (lambda: fx.PadeDelay("controller", 0.15, order=2), True),
    (lambda: fx.Saturation("controller", -0.8, 0.9), False),
    (lambda: fx.DeadZone("controller", -0.1, 0.2), False),
    (lambda: fx.LookupTable("controller", [-2.0, 0.0, 2.0], [-3.0, 0.0, 5.0]), False),
    (lambda: fx.RateLimiter("controller", 2.0, 1.5, 0.1), False),
]
PLANTS: Makers = [
    (lambda: fx.TransferFunction("plant", [2.0, 1.0], [1.0, 0.7, 5.0]), True),
    (lambda: fx.FirstOrderLag("plant", 0.6), True),
    (lambda: fx.StateSpace("plant", [[0.0, 1.0], [-4.0, -0.5]], [0.0, 1.0], [1.0, 0.0]), True),
]


def random_loop(rng: np.random.Generator) -> tuple[fx.Diagram, bool]:
    """Make a loop of random blocks; tell whether it is smooth."""
    chosen = [makers[rng.integers(len(makers))] for makers in (SOURCES, CONTROLLERS, PLANTS)]
    builder = fx.DiagramBuilder("loop")
    builder.add_all(fx.Sum("error", "+-"), *(make() for make, _ in chosen))
    builder.connect("source.y", "error.u1")
    builder.connect_chain("error", "controller", "plant", "error.u2")
    return builder.build(), all(smooth for _, smooth in chosen)


def random_values(
    system: fx.Diagram, count: int, rng: np.random.Generator
) -> dict[str | Any, FloatArray]:
    """Vary some parameters within their bounds, and the initial state of the plant."""
    values: dict[str | Any, FloatArray] = {}
    context = system.create_default_context()
    for leaf in context.leaves():
        for parameter in leaf.system.numeric_parameters:
            if rng.random() < 0.5 and leaf.system.name != "source":
                value = np.asarray(parameter(context))
                values[parameter.path] = value * rng.uniform(0.8, 1.2, (count, *np.shape(value)))
    size = system.find("plant.x").size
    values[system.find("plant.x")] = rng.normal(0.0, 1.0, (count, size))
    return values


@needs_llvmlite
@pytest.mark.parametrize("seed", thinned(range(12), fast=4))
def test_random_loops_in_lanes_are_like_single_simulations(seed: int) -> None:
    rng = np.random.default_rng(seed)
    loop, smooth = random_loop(rng)
    values = random_values(loop, 5, rng)
    times = np.linspace(0.0, 3.0, 37)
    sweep = fx.sweep(loop, values, 3.0, signals=["plant.y", "plant.x"], times=times)
    assert in_lanes(sweep)
    tolerance = 1e-12 if smooth else 1e-6
    assert_like_singles(sweep, tolerance=tolerance, compiled="native", method="RK45")


@needs_llvmlite
@pytest.mark.parametrize("method", METHODS)
def test_every_native_method_runs_in_lanes(method: str) -> None:
    values = {
        "pendulum.stiffness": np.linspace(1.0, 9.0, 5),
        "drive.frequency": np.linspace(1, 2, 5),
    }
    options: dict[str, Any] = {"method": method, "rtol": 1e-8, "atol": 1e-10, "max_step": 0.3}
    sweep = fx.sweep(
        driven_pendulum(),
        values,
        4.0,
        signals=["pendulum.angle", "pendulum.x", "drive.y"],
        times=np.linspace(0.0, 4.0, 101),
        **options,
    )
    assert in_lanes(sweep)
    assert sweep["pendulum.x"].shape == (5, 101, 2)
    tolerance = 1e-11 if method == "DOP853" else 1e-12  # of its interpolants
    assert_like_singles(sweep, tolerance=tolerance, compiled="native", **options)


@pytest.mark.parametrize("compiled", [True, False])
def test_a_controller_that_sets_its_filter_at_the_start_is_started(compiled: bool) -> None:
    values = {
        "pid.kp": [10.0, 16.0, 25.0],
        "target.initial": [0.0, 0.3, -0.4],
        "target.at": [0.1, 0.5, 0.9],
    }
    sweep = fx.sweep(
        servo(),
        values,
        2.0,
        signals=["arm.y", "pid.u"],
        times=[0.0, 0.05, 0.5, 2.0],
        compiled=compiled,
    )
    assert_like_singles(sweep, method="RK45", compiled=compiled)


@needs_llvmlite
def test_logs_and_initialization_do_not_keep_runs_out_of_lanes() -> None:
    assert in_lanes(fx.sweep(servo(), {"pid.ki": [1.0, 20.0]}, 1.0))


def test_values_can_be_swept_by_handle() -> None:
    pendulum = Pendulum()
    by_path = fx.sweep(pendulum, {"stiffness": [1.0, 2.0]}, 1.0)
    by_handle = fx.sweep(pendulum, {pendulum.stiffness: [1.0, 2.0]}, 1.0)
    np.testing.assert_array_equal(by_handle.final_states, by_path.final_states)
    assert list(by_handle.values) == ["stiffness"]


def test_a_sweep_of_a_lag_ends_where_the_formula_says() -> None:
    lag = fx.FirstOrderLag("lag", 1.0)
    constants, inputs = np.linspace(0.5, 2.0, 40), np.linspace(-1.0, 1.0, 40)
    sweep = fx.sweep(
        lag,
        {"time_constant": constants, "u": inputs},
        1.5,
        rtol=1e-10,
        signals="y",
        times=[0.5, 1.5],
    )
    expected = inputs * (1.0 - np.exp(-1.5 / constants))
    np.testing.assert_allclose(sweep.final_states[:, 0], expected, rtol=1e-8, atol=1e-10)
    np.testing.assert_array_equal(sweep["y"][:, 1], sweep.final_states[:, 0])


# Numbers of runs, threads, neighbors --------------------------------------------------------------


@needs_llvmlite
def test_the_number_of_runs_does_not_change_them() -> None:
    pendulum = Pendulum()
    stiffness = np.linspace(0.5, 20.0, 1000)
    options: dict[str, Any] = {"signals": ["angle"], "times": [0.0, 0.7, 2.0]}
    everything = fx.sweep(pendulum, {"stiffness": stiffness}, 2.0, **options)
    lanes = library.lane_count(2)
    for count in (0, 1, lanes - 1, lanes, lanes + 1):
        part = fx.sweep(pendulum, {"stiffness": stiffness[:count]}, 2.0, **options)
        assert len(part) == count
        np.testing.assert_array_equal(part.final_states, everything.final_states[:count])
        np.testing.assert_array_equal(part["angle"], everything["angle"][:count])
    assert_like_singles(everything, [0, 499, 999], compiled="native", method="RK45")


@pytest.mark.full
@pytest.mark.parametrize("system", [driven_pendulum, servo, lambda: together(ball(), Pendulum())])
def test_the_number_of_threads_does_not_change_a_bit(system: Callable[[], fx.Diagram]) -> None:
    diagram = system()
    path = "pid.kp" if "servo" in diagram.name else "pendulum.stiffness"
    signals = ["arm.x"] if "servo" in diagram.name else ["pendulum.x"]
    runs = [
        fx.sweep(
            diagram,
            {path: np.linspace(1, 9, 40)},
            1.0,
            signals=signals,
            times=[0.3, 1.0],
            threads=n,
        )
        for n in (1, 2, 3, 7)
    ]
    for run in runs[1:]:
        np.testing.assert_array_equal(run.final_states, runs[0].final_states)
        np.testing.assert_array_equal(run[signals[0]], runs[0][signals[0]])


@pytest.mark.full
@needs_llvmlite
@pytest.mark.parametrize("method", METHODS)
def test_runs_that_become_undefined_spoil_no_others(method: str) -> None:
    good = np.linspace(2.0, 9.0, 50)
    edges = np.insert(good, [0, 0, 3, 7, 20, 50], [-1.0, 0.5, 0.25, 1.0, -5.0, 0.75])
    bad = np.isin(edges, good, invert=True)
    options: dict[str, Any] = {"method": method, "signals": ["y"], "times": np.linspace(0, 1.5, 31)}
    alone = fx.sweep(UntilEdge(), {"edge": good}, 1.5, **options)
    mixed = fx.sweep(UntilEdge(), {"edge": edges}, 1.5, **options)
    np.testing.assert_array_equal(mixed.final_states[~bad], alone.final_states)
    np.testing.assert_array_equal(mixed["y"][~bad], alone["y"])
    assert np.isnan(mixed.final_states[bad]).all()
    assert np.isnan(mixed["y"][bad]).all()
    assert list(mixed.failures) == np.flatnonzero(bad).tolist()
    assert set(mixed.outcomes[bad]) == {"failed"}
    assert set(mixed.outcomes[~bad]) == {"completed"}


@needs_llvmlite
def test_the_failure_of_a_run_says_when_and_how_to_get_the_whole_error() -> None:
    sweep = fx.sweep(UntilEdge(), {"edge": [9.0, -1.0, 0.5]}, 1.5)
    assert sweep.failures[1] == (
        "Cannot integrate past t = 0 s: the equations are not finite there. The whole error comes "
        "with fx.simulate(sweep.system, sweep.t_final, context=sweep.context(1))."
    )
    assert re.match(r"Cannot integrate past t = 0\.(5|49\d*) s: the eq", sweep.failures[2])
    with pytest.raises(fx.errors.NonFiniteError, match=r"flow\.x\[0\]"):
        fx.simulate(sweep.system, sweep.t_final, context=sweep.context(1))


@needs_llvmlite
def test_runs_that_hardly_advance_are_given_up() -> None:
    class Sliding(fx.LeafSystem):
        """ẋ = −strength sign(x) reaches zero and cannot leave it."""

        def __init__(self) -> None:
            super().__init__("sliding")
            self.strength = self.declare_numeric_parameter("strength", 0.1)
            self.x = self.declare_continuous_state(z=1, default=[1.0])

        def calc_time_derivatives(self, context: Any) -> Any:
            return -self.strength(context) * np.sign(self.x(context))

    sweep = fx.sweep(Sliding(), {"strength": [0.1, 1.0, 0.2]}, 3.0, method="RK45", rtol=1e-9)
    assert list(sweep.failures) == [1]
    assert "the steps hardly advance time" in sweep.failures[1]
    np.testing.assert_allclose(sweep.final_states[[0, 2], 0], [0.7, 0.4])


# Times --------------------------------------------------------------------------------------------


def test_samples_at_the_beginning_the_end_and_the_ends_of_steps_are_exact() -> None:
    diagram = driven_pendulum()
    result = fx.simulate(diagram, 3.0, method="RK45")
    sweep = fx.sweep(
        diagram, {"pendulum.stiffness": [4.0, 5.0]}, 3.0, signals=["pendulum.x"], times=result.time
    )
    np.testing.assert_allclose(sweep["pendulum.x"][0], result["pendulum.x"], rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(sweep["pendulum.x"][0, 0], [1.0, 0.0])
    np.testing.assert_array_equal(sweep["pendulum.x"][:, -1], sweep.final_states)


def test_a_sample_at_a_jump_is_the_value_after_it() -> None:
    for compiled in (True, False):
        sweep = fx.sweep(
            servo(),
            {"target.at": [0.5, 1.0]},
            1.0,
            signals=["target.y"],
            times=[0.25, 0.5, 0.75, 1.0],
            compiled=compiled,
        )
        np.testing.assert_array_equal(sweep["target.y"], [[0, 1, 1, 1], [0, 0, 0, 1]])


def test_signals_without_times_are_sampled_a_thousand_times() -> None:
    sweep = fx.sweep(Pendulum(), {"stiffness": [1.0, 2.0]}, 2.0, signals=["angle"])
    np.testing.assert_array_equal(sweep.times, np.linspace(0.0, 2.0, 1001))
    assert sweep["angle"].shape == (2, 1001)


def test_nothing_is_sampled_unasked() -> None:
    sweep = fx.sweep(Pendulum(), {"stiffness": [1.0]}, 1.0, times=[0.5])
    assert sweep.signals == ()
    assert sweep.times.size == 0
    with pytest.raises(UnknownNameError, match="Name it in signals="):
        sweep["angle"]


def test_a_sweep_without_duration_gives_the_beginning() -> None:
    for compiled in (True, False):
        sweep = fx.sweep(
            Pendulum(),
            {"x[angle]": [0.5, -0.5]},
            0.0,
            signals=["angle"],
            times=[0.0],
            compiled=compiled,
            method="RK45",
        )
        np.testing.assert_array_equal(sweep.final_states, [[0.5, 0.0], [-0.5, 0.0]])
        np.testing.assert_array_equal(sweep["angle"], [[0.5], [-0.5]])


def test_a_sweep_begins_at_the_time_of_the_context() -> None:
    diagram = driven_pendulum()
    context = diagram.create_default_context()
    context.time = 1.25
    sweep = fx.sweep(
        diagram, {"drive.amplitude": [0.5, 1.0]}, 2.0, context=context, signals=["drive.y"]
    )
    assert sweep.times[0] == 1.25
    assert_like_singles(sweep, method="RK45")


# One after the other ------------------------------------------------------------------------------


def foreign_loop() -> fx.Diagram:
    builder = fx.DiagramBuilder("foreign")
    builder.add_all(
        fx.FunctionBlock("feedback", lambda u: -math.tanh(u[0])),
        fx.Integrator("plant", initial=1.0),
    )
    builder.connect_chain("feedback", "plant", "feedback")
    return builder.build()


Case = tuple[Callable[[], fx.Diagram], str, str, dict[str, Any], str]
_PENDULUM = ("pendulum.stiffness", "pendulum.x")
ONE_BY_ONE: dict[str, Case] = {
    "a bouncing ball": (lambda: together(ball(), Pendulum()), *_PENDULUM, {}, "is an event"),
    "a foreign function": (foreign_loop, "plant.x", "plant.y", {}, "cannot"),
    "a stiff method": (driven_pendulum, *_PENDULUM, {"method": "Radau"}, "Radau does not"),
    "a class": (driven_pendulum, *_PENDULUM, {"method": scipy.integrate.RK45}, "RK45 does not"),
    "fixed steps": (driven_pendulum, *_PENDULUM, {"method": "rk4", "step": 0.05}, "rk4 does not"),
    "no wish for native code": (
        driven_pendulum,
        *_PENDULUM,
        {"compiled": "python", "method": "RK45"},
        "native code is switched off",
    ),
}


@needs_llvmlite
@pytest.mark.parametrize("case", ONE_BY_ONE)
def test_what_does_not_run_in_lanes_is_simulated_one_by_one(case: str) -> None:
    make, path, signal, options, reason = ONE_BY_ONE[case]
    times = np.linspace(0.0, 1.0, 30)
    sweep = fx.sweep(make(), {path: [1.0, 1.5, 2.0]}, 1.0, signals=signal, times=times, **options)
    assert re.search(f"^one .*, because .*{reason}", sweep.how), sweep.how
    for index in range(3):
        result = single(sweep, index, **options)
        np.testing.assert_array_equal(sweep.final_states[index], result.context.continuous_state)
        np.testing.assert_array_equal(sweep[signal][index], result.sample(signal, times))


def test_without_llvmlite_the_results_are_the_same(monkeypatch: Any) -> None:
    values = {"pid.kp": [10.0, 16.0, 25.0], "target.at": [0.2, 0.5, 0.8]}
    options: dict[str, Any] = {"signals": ["arm.y"], "times": np.linspace(0.0, 2.0, 50)}
    sweep = fx.sweep(servo(), values, 2.0, **options)
    monkeypatch.setattr("flexure.solvers.native.programs.programs.available", lambda: False)
    plain = fx.sweep(servo(), values, 2.0, **options)
    assert plain.how == "one after the other, because the extra flexure[fast] is not installed"
    np.testing.assert_allclose(plain.final_states, sweep.final_states, rtol=1e-12, atol=1e-11)
    np.testing.assert_allclose(plain["arm.y"], sweep["arm.y"], rtol=1e-12, atol=1e-12)


def test_diagrams_without_continuous_state_are_simulated_one_by_one() -> None:
    clock = fx.Sine("clock")
    sweep = fx.sweep(clock, {"frequency": [1.0, 2.0]}, 1.0, signals="y", times=[0.5, 1.0])
    np.testing.assert_allclose(sweep["y"], np.sin([[0.5, 1.0], [1.0, 2.0]]))
    assert sweep.final_states.shape == (2, 0)


class Counting:
    """A function that gives another number at every call."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, u: Any) -> Any:
        self.calls += 1
        return u + self.calls


@needs_llvmlite
def test_equations_with_a_hidden_state_are_not_run_in_lanes() -> None:
    builder = fx.DiagramBuilder("hidden")
    builder.add_all(fx.FunctionBlock("count", Counting()), fx.FirstOrderLag("lag", 1.0))
    builder.connect_chain("lag", "count", "lag")
    sweep = fx.sweep(builder.build(), {"lag.x": [0.0, 1.0]}, 0.1, method="RK45")
    assert sweep.how.endswith("because tracing the equations gave other numbers")


def test_runs_that_end_before_their_time_have_no_samples_after_it() -> None:
    builder = fx.DiagramBuilder("ramp")
    builder.add_all(fx.Constant("rate", 1.0), fx.Integrator("level"), fx.StopWhen("stop", "full"))
    builder.connect_chain("rate", "level", "stop")
    values = {"rate.value": [-1.0, 1.0], "level.x": [-0.5, -0.5]}
    sweep = fx.sweep(builder.build(), values, 2.0, signals=["level.y"], times=[0.25, 1.0])
    assert sweep.outcomes.tolist() == ["completed", "terminated"]
    np.testing.assert_allclose(sweep["level.y"], [[-0.75, -1.5], [-0.25, np.nan]])
    np.testing.assert_allclose(sweep.final_states[:, 0], [-2.5, 0.0], atol=1e-9)
    assert sweep.failures == {}


def test_a_run_that_fails_alone_leaves_the_others_alone() -> None:
    diagram = together(ball(restitution=0.9, name="ball"), UntilEdge())
    sweep = fx.sweep(diagram, {"flow.edge": [9.0, 0.3, 5.0]}, 1.0, signals=["flow.y"], times=[0.1])
    assert list(sweep.failures) == [1]
    assert sweep.failures[1].startswith("Cannot ")
    assert np.isnan(sweep["flow.y"][:, 0]).tolist() == [False, True, False]
    assert np.isnan(sweep.final_states).any(axis=1).tolist() == [False, True, False]


@pytest.mark.parametrize("usual", [1.0, 0.0])
@pytest.mark.parametrize("bad", [0, 1, 2])
def test_a_run_whose_values_are_refused_fails_alone(bad: int, usual: float) -> None:
    """The first run is special, since equations for lanes are tried with its values."""
    builder = fx.PlantBuilder("pendulum")
    bob = builder.add_body("bob", fx.SpatialInertia.point_mass(usual), com=(0.0, 0.0, -1.0))
    builder.add_joint(fx.RevoluteJoint("pivot", builder.world, bob, axis=(0, 1, 0)))
    masses = np.array([1.0, 2.0, 3.0])
    masses[bad] = 0.0
    sweep = fx.sweep(builder.build(), {"bob.mass": masses}, 0.5)
    assert list(sweep.failures) == [bad]
    assert np.isnan(sweep.final_states).any(axis=1).tolist() == [k == bad for k in range(3)]


@needs_llvmlite
def test_who_insists_on_native_code_gets_it_or_an_error() -> None:
    assert in_lanes(fx.sweep(Pendulum(), {"stiffness": [1.0]}, 1.0, compiled="native"))
    with pytest.raises(NativeCodeError):
        fx.sweep(foreign_loop(), {"plant.x": [1.0]}, 1.0, compiled="native")


# What a sweep tells -------------------------------------------------------------------------------


def test_metrics_are_those_of_single_step_responses() -> None:
    kp = [8.0, 16.0, 32.0]
    sweep = fx.sweep(servo(), {"pid.kp": kp}, 8.0, signals="arm.y", metrics=["overshoot", "peak"])
    for index in range(3):
        info = single(sweep, index).step_info("arm.y", at=0.5, target=1.0)
        assert sweep.metrics["overshoot"][index] == pytest.approx(info.overshoot, abs=0.02)
        assert sweep.metrics["peak"][index] == pytest.approx(info.peak, rel=1e-4)
        rise = sweep.metric("rise_time", at=0.5, target=1.0)[index]
        assert rise == pytest.approx(info.rise_time, rel=0.01)
    assert sweep.metrics["overshoot"][0] > sweep.metrics["overshoot"][2]


def test_metrics_of_several_signals_are_told_apart() -> None:
    sweep = fx.sweep(
        servo(), {"pid.kp": [8.0, 16.0]}, 4.0, signals=["arm.y", "pid.u", "arm.x"], metrics="at"
    )
    assert list(sweep.metrics) == ["at of arm.y", "at of pid.u"]
    with pytest.raises(ValueRefusedError, match="3 sampled signals"):
        sweep.metric("overshoot")
    with pytest.raises(ValueRefusedError, match="found 2 components"):
        sweep.metric("overshoot", "arm.x")


def test_metrics_without_signals_are_those_of_the_only_output() -> None:
    lag = fx.FirstOrderLag("lag", 1.0)
    sweep = fx.sweep(lag, {"u": [1.0, 2.0], "time_constant": [0.1, 0.2]}, 3.0, metrics="rise_time")
    np.testing.assert_allclose(
        sweep.metrics["rise_time"], np.log(9.0) * np.array([0.1, 0.2]), rtol=1e-3
    )
    with pytest.raises(ValueRefusedError, match="Name what to measure in signals="):
        fx.sweep(servo(), {"pid.kp": [8.0]}, 1.0, metrics="overshoot")


def test_what_cannot_be_measured_is_nan() -> None:
    sweep = fx.sweep(
        UntilEdge(), {"edge": [9.0, 0.3], "x": [0.5, 0.5]}, 1.0, signals="y", metrics="initial"
    )
    peak = sweep.metric("peak", final=2.0 * sweep["y"][0, -1])
    assert np.isnan(peak).tolist() == [False, True]
    still = fx.sweep(fx.FirstOrderLag("lag", 1.0), {"u": [0.0, 1.0]}, 10.0, metrics="peak")
    assert np.isnan(still.metrics["peak"]).tolist() == [True, False]


def test_a_sweep_becomes_a_table() -> None:
    pytest.importorskip("pandas")
    sweep = fx.sweep(
        Pendulum(),
        {"stiffness": [1.0, 2.0], "damping": [[0.1, 0.2], [0.3, 0.4]]},
        1.0,
        signals=["angle"],
        metrics=["initial"],
    )
    table = sweep.to_pandas()
    names = ["stiffness", "damping[0]", "damping[1]", "initial", "outcome", "reason"]
    assert list(table) == names
    assert table.index.name == "run"
    assert table["damping[1]"].tolist() == [0.2, 0.4]
    np.testing.assert_array_equal(table["initial"], sweep["angle"][:, 0])


def test_the_representation_counts_runs_and_failures_and_names_what_there_is() -> None:
    values: dict[str, Any] = {
        "stiffness": [1.0, 2.5, 2.0],
        "damping": [[0.1, 0.2]] * 3,
        "x": [[1.0, 1.0]] * 3,
    }
    fine = fx.sweep(Pendulum(), values, 1.5, signals="angle", metrics=["initial", "at"])
    assert repr(fine) == (
        "<Sweep of 'pendulum', 3 runs to 1.5 s; "
        "stiffness from 1 to 2.5, damping from 0.1 to 0.2, x = 1; "
        "signals 'angle' at 1001 times; metrics 'initial', 'at'>"
    )
    failed = fx.sweep(UntilEdge(), {"edge": [-1.0, 9.0]}, 1.0)
    assert repr(failed) == "<Sweep of 'flow', 2 runs to 1 s, 1 failed; edge from -1 to 9>"
    assert repr(fx.simulate_many(Pendulum(), [], 1.0)) == "<Sweep of 'pendulum', 0 runs to 1 s>"


def test_results_cannot_be_changed_by_accident() -> None:
    sweep = fx.sweep(Pendulum(), {"stiffness": [1.0]}, 1.0, signals=["angle"])
    for array in (sweep.times, sweep.final_states, sweep["angle"], sweep.values["stiffness"]):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0.0


@pytest.mark.parametrize("index", [2, -3])
def test_the_context_of_a_run_that_is_not_there_is_refused(index: int) -> None:
    sweep = fx.sweep(Pendulum(), {"stiffness": [1.0, 2.0]}, 0.1)
    assert sweep.context(-1).get("stiffness") == 2.0
    with pytest.raises(ValueRefusedError, match="the index of one of 2 runs"):
        sweep.context(index)
