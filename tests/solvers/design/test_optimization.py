"""Optimization: known optima, exact slopes, bad candidates, and answers that say what they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import solve_continuous_are
from scipy.optimize import minimize_scalar

import flexure as fx
from flexure.diagrams.checks.errors import (
    EvaluationError,
    FlexureError,
    UnknownNameError,
    ValueRefusedError,
)
from flexure.solvers.design.optimization.candidates import Study, run_candidates
from flexure.solvers.design.optimization.motion_slopes import MotionSlopes
from flexure.solvers.design.optimization.search_space import SearchSpace
from tests.support.mechanics.mechanics import Pendulum
from tests.support.tiers import for_each

m = fx.metrics
DAMPING = "A[1,1]"
WIDE = {DAMPING: (-4.0, -0.1)}


def second_order() -> tuple[fx.System, fx.Context]:
    """y'' + 2 ζ y' + y = 1 from rest, with -2 ζ as a parameter."""
    plant = fx.StateSpace("plant", [[0.0, 1.0], [-1.0, -2.0]], [0.0, 1.0], [1.0, 0.0])
    context = plant.create_default_context()
    context.set("u", 1.0)
    return plant, context


def optimized(objective: Any, constraints: Any = (), **options: Any) -> fx.results.Optimization:
    plant, context = second_order()
    bounds = options.pop("bounds", WIDE)
    options = {"t_final": 30.0, "context": context, **options}
    return fx.optimize(plant, bounds, objective, constraints, **options)


class Escape(fx.LeafSystem):
    """x' = p x² from 1 gets to infinity at t = 1/p."""

    def __init__(self) -> None:
        super().__init__("escape")
        self.p = self.declare_numeric_parameter("p", 0.5, lower=0.0, upper=2.0)
        self.x = self.declare_continuous_state(z=1, default=[1.0])
        self.y = self.declare_vector_output("y", 1, self.x)

    def calc_time_derivatives(self, context: Any) -> Any:
        return self.p(context) * self.x(context) ** 2


def sampled_loop(*others: fx.System) -> fx.Diagram:
    """A lag that a sampled controller moves, and blocks beside it."""
    builder = fx.DiagramBuilder("sampled")
    builder.add_all(
        fx.Constant("one", 1.0),
        fx.Gain("gain", 1.0),
        fx.ZeroOrderHold("hold", 0.1),
        fx.FirstOrderLag("lag", 1.0),
        *others,
    )
    builder.connect_chain("one", "gain", "hold", "lag", *(other.name for other in others))
    return builder.build()


def test_constraints_of_one_label_are_all_in_the_answer() -> None:
    plant, context = second_order()
    kept = [
        fx.metrics.maximum("y").named("top") <= 3.0,
        fx.metrics.at("y", 0.0).named("top") <= 3.0,
    ]
    found = fx.optimize(plant, WIDE, fx.metrics.rms("y"), kept, t_final=3.0, context=context)
    assert list(found.constraints) == ["top <= 3", "top <= 3 (2)"]
    assert found.constraints["top <= 3 (2)"] == 0.0 < found.constraints["top <= 3"]


def test_runs_that_end_early_say_so() -> None:
    builder = fx.DiagramBuilder("filling")
    builder.add_all(fx.Ramp("level", initial=-1.0), fx.StopWhen("full", "it is full"))
    builder.connect_chain("level", "full")
    with pytest.raises(EvaluationError, match=r"the first: terminated before t = 3 s"):
        fx.optimize(builder.build(), {"level.slope": (1.0, 2.0)}, m.peak("level.y"), t_final=3.0)


# Known optima -----------------------------------------------------------------------------------


@pytest.mark.full
def test_the_damping_with_the_least_squared_error_is_a_half() -> None:
    found = optimized(m.ise("y", target=1.0), rtol=1e-6)
    assert found[DAMPING] == pytest.approx(-1.0, abs=2e-3)  # J = ζ + 1/(4 ζ)
    assert found.objective == pytest.approx(1.0, abs=2e-4)
    assert "exact sensitivities" in found.how
    assert not found.active
    assert not found.at_bound
    assert found.feasible


def test_the_damping_with_the_least_itae_is_that_of_closed_form_responses() -> None:
    t = np.linspace(0.0, 30.0, 30001)

    def itae(zeta: float) -> float:
        w = np.sqrt(1.0 - zeta**2)
        error = np.exp(-zeta * t) * (np.cos(w * t) + zeta / w * np.sin(w * t))
        return float(np.trapezoid(t * np.abs(error), t))

    best = minimize_scalar(itae, bounds=(0.5, 0.95), method="bounded", options={"xatol": 1e-6})
    found = optimized(m.itae("y", target=1.0), rtol=1e-6)
    assert -found[DAMPING] / 2.0 == pytest.approx(best.x, abs=2e-3)
    assert found.objective == pytest.approx(best.fun, rel=1e-3)


def test_a_bound_on_the_overshoot_is_kept_and_used() -> None:
    """The overshoot of the damping 1/√2 is e^-π; less damping would have less squared error."""
    limit = 100.0 * float(np.exp(-np.pi))
    overshoot = m.step("overshoot", "y", target=1.0)
    found = optimized(m.ise("y", target=1.0), overshoot <= limit, rtol=1e-6)
    assert found.feasible
    assert found.active == (f"{overshoot.label} <= {limit!r}",)
    assert found.constraints[found.active[0]] <= limit
    assert found[DAMPING] == pytest.approx(-np.sqrt(2.0), abs=1e-3)


@pytest.mark.parametrize("limit", [50.0, 100.0 * float(np.exp(-np.pi))])
def test_a_search_says_how_precise_its_numbers_are(limit: float) -> None:
    """Another seed takes another way, and ends within the precision that both report."""
    overshoot = m.step("overshoot", "y", target=1.0)
    one, other = (
        optimized(m.itae("y", target=1.0), overshoot <= limit, seed=seed) for seed in (0, 1)
    )
    assert one.precision[DAMPING] + other.precision[DAMPING] < 1e-3
    apart = abs(one[DAMPING] - other[DAMPING])
    assert apart < 3.0 * (one.precision[DAMPING] + other.precision[DAMPING])
    assert f" ± {one.precision[DAMPING]:.1g}" in str(one)
    assert np.isnan(optimized(m.itae("y", target=1.0), polish=False).precision[DAMPING])


def test_the_best_feedback_is_that_of_riccati() -> None:
    A, B = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0.0], [1.0]])
    riccati = solve_continuous_are(A, B, np.diag([2.0, 1.0]), np.eye(1))
    builder = fx.DiagramBuilder("loop")
    builder.add(fx.StateSpace("plant", A, B, np.eye(2), initial=[1.0, -0.5]))
    builder.add(fx.MatrixGain("feedback", [[-1.0, -1.0]]))
    builder.connect_chain("plant", "feedback", "plant")
    cost = 2.0 * m.ise("plant.x[0]") + m.ise("plant.x[1]") + m.ise("feedback.y")
    found = fx.optimize(
        builder.build(), {"feedback.matrix": (-5.0, -0.2)}, cost, t_final=20.0, rtol=1e-6
    )
    gain = -np.ravel(found["feedback.matrix"])
    np.testing.assert_allclose(gain, (B.T @ riccati)[0], atol=5e-3)
    x = np.array([1.0, -0.5])
    assert found.objective == pytest.approx(x @ riccati @ x, rel=1e-3)


def test_many_coordinates_are_polished_by_adjoints() -> None:
    """With lags, 12 initial states and inputs reach the least squares of a closed form."""
    n, weight = 6, 0.01
    lags = fx.StateSpace("lags", -np.eye(n), np.eye(n), np.eye(n), initial=np.ones(n))
    context = lags.create_default_context()
    context.set("u", np.zeros(n))
    targets, goal = np.linspace(-1.0, 1.0, n), 0.0 * m.final("y[0]")
    for k, target in enumerate(targets.tolist()):
        miss, size = m.final(f"x[{k}]") - target, m.final(f"y[{k}]")
        goal = goal + miss * miss + weight * (size * size)
    bounds = {"x": (-12.0, 11.0), "u": (-2.0, 2.1)}
    found = fx.optimize(lags, bounds, goal, t_final=2.0, context=context, max_evaluations=200)
    assert "adjoints of" in found.how
    ends = found["x"] * np.exp(-2.0) + found["u"] * (1.0 - np.exp(-2.0))
    np.testing.assert_allclose(ends, targets / (1.0 + weight), rtol=0.0, atol=1e-6)
    least = weight / (1.0 + weight) * (targets @ targets)
    assert found.objective == pytest.approx(least, rel=1e-8)
    other = goal + 0.0 * m.step("overshoot", "y[0]", at=0.0, target=2.0)  # without a derivative
    again = fx.optimize(lags, bounds, other, t_final=2.0, context=context, max_evaluations=200)
    assert "adjoints" not in again.how


def test_initial_states_and_inputs_can_be_looked_for() -> None:
    """A lag from x0 with the input u ends at u + (x0 - u)/e."""
    lag = fx.FirstOrderLag("lag", 1.0)
    miss = abs(m.final("y") - 0.8) + abs(m.at("y", 0.5) - 0.6)
    found = fx.optimize(lag, {"x": (-1.0, 1.0), "u": (-2.0, 2.0)}, miss, t_final=1.0, rtol=1e-8)
    decay = np.exp(-np.array([[0.5], [1.0]]))
    x0, u = np.linalg.solve(np.hstack([decay, 1.0 - decay]), [0.6, 0.8])
    np.testing.assert_allclose([found["x"], found["u"]], [x0, u], atol=5e-3)


def test_decades_are_searched_on_a_logarithmic_scale() -> None:
    lag = fx.FirstOrderLag("lag", 1.0)
    context = lag.create_default_context()
    context.set("u", 1.0)
    target = 1.0 - np.exp(-100.0 / 4000.0)
    miss = abs(m.final("y") - target)
    options: dict[str, Any] = {"t_final": 100.0, "context": context, "max_evaluations": 320}
    bounds = {"time_constant": (1e-2, 1e5)}
    found = fx.optimize(lag, bounds, miss, **options)
    assert found["time_constant"] == pytest.approx(4000.0, rel=0.02)
    trials = np.array(found.table()["time_constant"][1:32])
    assert np.median(trials) < 1e3
    plain = fx.optimize(lag, bounds, miss, polish=False, logarithmic=(), **options)
    assert np.median(plain.table()["time_constant"][1:32]) > 1e4


def test_parameters_are_bounded_like_signals() -> None:
    plant, context = second_order()
    product = m.final(DAMPING) * m.final("A[1,0]")  # 2 ζ ω³
    found = fx.optimize(
        plant,
        {"A[1,0]": (-3.0, -0.5), DAMPING: (-3.0, -0.5)},
        m.final("A[1,0]") + m.final(DAMPING),
        [product <= 2.0],
        t_final=1.0,
        context=context,
    )
    assert found["A[1,0]"] * found[DAMPING] == pytest.approx(2.0, abs=1e-3)
    assert found.objective == pytest.approx(-3.0 - 2.0 / 3.0, abs=1e-3)
    assert len(found.at_bound) == 1


# Slopes -----------------------------------------------------------------------------------------


def test_slopes_of_extremes_at_a_limit_are_those_of_the_limit() -> None:
    builder = fx.DiagramBuilder("limited")
    sine, limit = fx.Sine("sine", 1.3, 2.0), fx.Saturation("limit", -0.7, 1.0)
    builder.add_all(sine, limit, fx.FirstOrderLag("lag", time_constant=0.3))
    builder.connect_chain("sine", "limit", "lag")
    limited, attempt = builder.build(), "Cannot search"
    base, kept = limited.create_default_context(), (m.minimum("limit.y") <= 0.0,)
    study = Study(limited, base, 5.9, m.maximum("limit.y"), kept, {}, None, None, attempt)
    bounds = {"limit.upper": (0.9, 1.1), "limit.lower": (-0.8, -0.6), "sine.amplitude": (1.2, 1.4)}
    _, found = MotionSlopes(study, SearchSpace(base, bounds, None, attempt))(np.full(3, 0.5))
    np.testing.assert_allclose(found, [[0.2, 0.0, 0.0], [0.0, 0.2, 0.0]], atol=1e-9)


def test_slopes_of_metrics_are_those_of_differences_of_whole_runs() -> None:
    pendulum = Pendulum()
    context = pendulum.create_default_context()
    context.set("x", [1.0, 0.0])
    context.set("torque", 0.2)
    context.set("length", 1.0)
    angle = "angle"
    metrics = [
        m.rms(angle),
        m.peak(angle, start=1.0),
        m.itae(angle, target=0.1),
        m.first_crossing(angle, 0.5),
        m.of(lambda t, y: float(np.sin(y[-1]) * y[0]), angle),
        m.mean("x[1]") / m.maximum(angle),
        m.final("length") * m.final(angle),
        m.total_variation(angle),
    ]
    constraints = tuple(metric <= 1.0 for metric in metrics[1:])
    options: dict[str, Any] = {"rtol": 1e-11, "atol": 1e-13}
    study = Study(
        pendulum,
        context,
        3.0,
        metrics[0],
        constraints,
        options,
        None,
        None,
        "No",
    )
    bounds = {"length": (0.5, 2.0), "x[0]": (-2.0, 2.0), "torque": (-1.0, 1.0)}
    space = SearchSpace(context, bounds, "length", "Cannot")
    point = space.position(context)
    assert point is not None
    values, found = MotionSlopes(study, space)(point)
    h = 1e-4
    moves = np.vstack([h * np.eye(3), -h * np.eye(3)])
    runs = run_candidates(study, space, np.vstack([point, point + moves])).numbers
    np.testing.assert_allclose(values, runs[0], rtol=1e-5)
    moved = runs[1:]
    np.testing.assert_allclose(found, (moved[:3] - moved[3:]).T / (2 * h), rtol=1e-4, atol=1e-5)


# Candidates that are none -----------------------------------------------------------------------


def test_failing_runs_are_bad_candidates_with_their_reasons() -> None:
    found = fx.optimize(
        Escape(), {"p": (0.0, 2.0)}, abs(m.final("y") - 4.0), t_final=1.0, max_evaluations=96
    )
    assert found["p"] == pytest.approx(0.75, abs=1e-3)  # 1/(1 - p) = 4
    table = found.table()
    failed = [row for row in table if row["p"] > 1.0]
    assert failed
    assert all("t = " in row["reason"] and not row["feasible"] for row in failed)
    assert all(np.isnan(row[found.goal]) for row in failed)


def test_sampled_loops_have_derivatives_and_other_events_take_the_polish_without() -> None:
    miss = abs(m.final("lag.y") - 2.0)
    steps = solve_ivp(lambda t, y: 1.0 - y, (0.0, 2.0), [0.0], rtol=1e-10).y[0, -1]
    relay = fx.Relay("relay", 0.2, -0.2)
    for loop, told in (
        (sampled_loop(), ["exact sensitivities"]),
        (sampled_loop(relay), ["without derivatives", "relay"]),
    ):
        bounds = {"gain.gain": (0.0, 10.0)}
        found = fx.optimize(loop, bounds, miss, t_final=2.0, max_evaluations=64)
        assert found["gain.gain"] == pytest.approx(2.0 / steps, abs=1e-3)
        assert all(text in found.how for text in told)


def test_a_function_of_a_result_can_be_the_objective() -> None:
    def squared(result: fx.results.SimulationResult) -> float:
        t = np.linspace(0.0, 30.0, 1001)
        return float(np.trapezoid((result.sample("y", t) - 1.0) ** 2, t))

    found = optimized(squared, max_evaluations=64)
    assert found[DAMPING] == pytest.approx(-1.0, abs=0.02)
    assert "whole result" in found.how
    assert found.goal == "of(squared)"


def test_the_name_of_a_figure_is_one_of_the_only_output() -> None:
    builder = fx.DiagramBuilder("loop")
    builder.add_all(fx.Step("step", at=1.0), second_order()[0])
    builder.connect_chain("step", "plant")
    builder.export_output("plant.y")
    bounds = {f"plant.{DAMPING}": (-4.0, -0.4)}
    loop = builder.build()
    found = fx.optimize(loop, bounds, "settling_time", t_final=30.0, max_evaluations=320)
    assert found[f"plant.{DAMPING}"] == pytest.approx(-1.56, abs=0.01)  # overshoot of 2 %
    again = found.simulate().step_info("plant.y").settling_time
    assert found.objective == pytest.approx(again, abs=0.02)


def test_nothing_feasible_is_an_error_that_carries_what_was_tried() -> None:
    speed = m.maximum("x[1]")
    with pytest.raises(EvaluationError, match=r"none of .* nearest one has") as caught:
        optimized(m.ise("y", target=1.0), [speed >= 5.0, speed <= 9.0], max_evaluations=64)
    result = caught.value.result  # type: ignore[attr-defined]
    assert not result.feasible
    assert result.active == (f"{speed.label} >= 5",)
    assert "NOT FEASIBLE" in str(result)
    assert "not feasible" in repr(result)
    assert result.at_bound == (DAMPING,)
    assert len(result.table()) == result.evaluations
    assert not any(result.table()["feasible"])


def test_an_objective_that_is_never_a_number_is_an_error_with_a_reason() -> None:
    with pytest.raises(EvaluationError, match=r"none among 32; the first: not finite: first"):
        optimized(m.first_crossing("y", 7.0))


@pytest.mark.parametrize("signals", [(), ("y",)])
def test_the_error_of_a_function_is_the_reason(signals: tuple[str, ...]) -> None:
    def broken(*arguments: Any) -> float:
        raise ValueError("it is broken")

    with pytest.raises(EvaluationError, match=r"none among 32; .*it is broken"):
        optimized(m.of(broken, *signals))


@pytest.mark.parametrize("whole", [True, False])
def test_an_interruption_carries_the_best_so_far(whole: bool) -> None:
    calls = []

    def squares(y: Any) -> float:
        calls.append(0)
        if len(calls) > 80:
            raise KeyboardInterrupt
        return float(np.sum((y - 1.0) ** 2))

    objective = m.of(lambda t, y: squares(y), "y")
    if whole:
        objective = m.of(lambda result: squares(result.sample("y", np.linspace(0.0, 30.0, 31))))
    with pytest.raises(KeyboardInterrupt) as caught:
        optimized(objective)
    found = caught.value.result  # type: ignore[attr-defined]
    assert 60 <= found.evaluations <= 80
    assert "interrupted" in found.how
    assert found.objective == min(found.table()[found.goal])


# Answers ----------------------------------------------------------------------------------------


@pytest.mark.full
def test_the_same_seed_gives_the_same_answer_whatever_the_threads() -> None:
    goal = m.ise("y", target=1.0)
    first, second = (optimized(goal, threads=n, max_evaluations=96, seed=5) for n in (1, 2))
    other = optimized(goal, max_evaluations=96, seed=6)
    assert first.table() == second.table() != other.table()
    assert first.values == second.values
    assert first.table()["stage"].count("population") <= 96  # none twice


def test_the_answer_can_be_applied_plotted_and_looked_through(tmp_path: Path) -> None:
    plant, context = second_order()
    before = context.to_dict()
    peak = m.maximum("y") <= 1.1
    options: dict[str, Any] = {"t_final": 30.0, "max_evaluations": 64, "context": context}
    found = fx.optimize(plant, WIDE, m.ise("y", target=1.0), peak, signals="x", **options)
    assert context.to_dict() == before
    assert found.context.get(DAMPING) == found[DAMPING]
    target = found.system.create_default_context()
    found.apply(target)
    assert target.get(DAMPING) == found[DAMPING]
    table = found.table()
    assert table.columns == (
        "evaluation", DAMPING, found.goal, peak.label, "feasible", "stage", "reason",
    )  # fmt: skip
    assert table[0][DAMPING] == pytest.approx(-2.0, rel=1e-15)  # the context is the first candidate
    kept = [row[found.goal] for row in table if row["feasible"]]
    assert found.objective == pytest.approx(min(kept), rel=1e-7)  # by what runs resolve
    assert len(table) == found.evaluations
    figure = found.plot(path=tmp_path / "found.png")
    assert len(figure.axes) == 3
    assert (tmp_path / "found.png").stat().st_size > 10_000
    assert f"{peak.label}  1.1, active" in str(found)
    error = m.ise("y", target=1.0)(found.simulate())
    assert error == pytest.approx(found.objective, rel=1e-6)
    with pytest.raises(UnknownNameError, match="was optimized"):
        found["B"]


@for_each(
    ("bounds", "text"),
    [
        ({}, "a mapping from paths to bounds"),
        ([("A", 1.0)], "a mapping from paths to bounds"),
        ({DAMPING: (-1.0, -2.0)}, "the lower below the upper"),
        ({DAMPING: (-1.0, -1.0)}, "the lower below the upper"),
        ({DAMPING: (np.nan, 1.0)}, "finite"),
        ({DAMPING: (-np.inf, 1.0)}, "finite"),
        ({DAMPING: 3.0}, r"bounds as \(low, high\)"),
        ({DAMPING: (1.0, 2.0, 3.0)}, "two"),
        ({"A[1,7]": (0.0, 1.0)}, "indices into an array"),
        ({"Q": (0.0, 1.0)}, "Valid names"),
        ({"y": (0.0, 1.0)}, "numbers of a parameter"),
        ({DAMPING: (-2.0, -1.0), "A": (-1.0, 1.0)}, "every number once"),
    ],
)
def test_bounds_that_make_no_sense_are_refused(bounds: Any, text: str) -> None:
    with pytest.raises(FlexureError, match=text):
        optimized(m.ise("y"), bounds=bounds)


@for_each(
    ("arguments", "text"),
    [
        ({"objective": "overshot"}, "Did you mean 'overshoot'"),
        ({"objective": m.rms("z")}, "Valid names"),
        ({"objective": 3.0}, "the objective as a metric"),
        ({"constraints": [m.rms("y")]}, "constraints such as"),
        ({"constraints": [m.rms("q") <= 1.0]}, "Valid names"),
        ({"logarithmic": DAMPING}, "bounds above 0"),
        ({"logarithmic": "B"}, "Valid names"),
        ({"population": 4}, "population to be an integer from 5"),
        ({"max_evaluations": 10}, "max_evaluations to be an integer from 32"),
        ({"seed": "a"}, "a seed"),
        ({"polish": "yes"}, "True or False"),
        ({"t_final": -1.0}, "a finite time"),
        ({"method": "RK9"}, "Valid names"),
        ({"threads": 0}, "positive integer"),
    ],
)
def test_other_arguments_that_make_no_sense_are_refused(arguments: Any, text: str) -> None:
    with pytest.raises(FlexureError, match=text):
        optimized(**{"objective": m.ise("y"), **arguments})


def test_bounds_of_the_declaration_hold() -> None:
    with pytest.raises(ValueRefusedError, match=r"bounds of 'p'.* may have.*found") as caught:
        fx.optimize(Escape(), {"p": (0.0, 3.0)}, m.final("y"), t_final=0.1)
    assert "3" in str(caught.value)
