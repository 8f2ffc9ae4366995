"""Filters are those that are written by hand, whatever runs them; their verdicts can be false."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import (
    EvaluationError,
    FlexureError,
    TraceError,
    UnknownNameError,
    ValueRefusedError,
)
from tests.support.mechanics.mechanics import GRAVITY, ForeignPendulum, Pendulum

T = 0.05
W = np.diag([0.01, 0.3, 0.02])
V = np.array([[4e-4, 1e-4], [1e-4, 9e-4]])
P0 = np.diag([0.2, 0.5, 0.1])
X0 = np.array([0.4, -0.2, 0.25])
#: Of the pendulum: angle and position as outputs, and its damping as a third state.
OPTIONS: dict[str, Any] = {
    "W": W,
    "V": V,
    "period": T,
    "initial": X0,
    "initial_covariance": P0,
    "inputs": ["torque"],
    "outputs": ["angle", "position"],
    "parameters": ["damping"],
}


def rates(x: Any, u: float) -> Any:
    """m l² = 0.5 of the pendulum of the tests, with the damping as x[2]."""
    return np.array([x[1], (u - x[2] * x[1]) / 0.5 - GRAVITY / 0.5 * np.sin(x[0]), 0.0])


def slopes(x: Any) -> Any:
    return np.array(
        [[0.0, 1.0, 0.0], [-GRAVITY / 0.5 * np.cos(x[0]), -x[2] / 0.5, -x[1] / 0.5], [0.0] * 3]
    )


def shown(x: Any) -> Any:
    return np.array([x[0], 0.5 * np.sin(x[0])])


def moved(x: Any, u: float, steps: int) -> Any:
    """The classical Runge-Kutta method."""
    h = T / steps
    for _ in range(steps):
        a = rates(x, u)
        b = rates(x + h / 2 * a, u)
        c = rates(x + h / 2 * b, u)
        d = rates(x + h * c, u)
        x = x + h / 6 * (a + 2 * b + 2 * c + d)
    return x


def moved_slopes(x: Any, u: float, steps: int) -> Any:
    """Its derivative, by the chain rule in each stage."""
    h, one, whole = T / steps, np.eye(3), np.eye(3)
    for _ in range(steps):
        a = rates(x, u)
        A = slopes(x)
        b = rates(x + h / 2 * a, u)
        B = slopes(x + h / 2 * a) @ (one + h / 2 * A)
        c = rates(x + h / 2 * b, u)
        C = slopes(x + h / 2 * b) @ (one + h / 2 * B)
        d = rates(x + h * c, u)
        D = slopes(x + h * c) @ (one + h * C)
        whole = (one + h / 6 * (A + 2 * B + 2 * C + D)) @ whole
        x = x + h / 6 * (a + 2 * b + 2 * c + d)
    return whole


def extended(x: Any, P: Any, u: float, y: Any, use: Any, steps: int, first: bool) -> Any:
    """One sample of the extended filter, with the rows of missing components left out."""
    if not first:
        F = moved_slopes(x, u, steps)
        x, P = moved(x, u, steps), F @ (P + W * T / 2) @ F.T + W * T / 2
    H = np.array([[1.0, 0.0, 0.0], [0.5 * np.cos(x[0]), 0.0, 0.0]])[use]
    S = H @ P @ H.T + V[np.ix_(use, use)]
    nu = (y - shown(x))[use]
    K = P @ H.T @ np.linalg.inv(S)
    return x + K @ nu, (np.eye(3) - K @ H) @ P, nu @ np.linalg.inv(S) @ nu


def unscented(x: Any, P: Any, u: float, y: Any, use: Any, steps: int, first: bool) -> Any:
    """One sample of the unscented filter with α = 0.8, β = 2 and κ = 0.5."""
    n, spread = 3, 0.8**2 * 3.5
    weights = np.full(7, 0.5 / spread)
    weights[0] = 1.0 - n / spread
    squares = weights.copy()
    squares[0] += 1.0 - 0.8**2 + 2.0

    def points(mean: Any, cov: Any) -> Any:
        L = np.linalg.cholesky(cov) * np.sqrt(spread)
        return np.vstack(
            [mean, *(mean + L[:, k] for k in range(n)), *(mean - L[:, k] for k in range(n))]
        )

    if not first:
        later = np.array([moved(each, u, steps) for each in points(x, P + W * T / 2)])
        x = weights @ later
        P = (later - x).T @ np.diag(squares) @ (later - x) + W * T / 2
    sigma = points(x, P)
    seen = np.array([shown(each) for each in sigma])[:, use]
    mean = weights @ seen
    S = (seen - mean).T @ np.diag(squares) @ (seen - mean) + V[np.ix_(use, use)]
    K = (sigma - x).T @ np.diag(squares) @ (seen - mean) @ np.linalg.inv(S)
    nu = y[use] - mean
    return x + K @ nu, P - K @ S @ K.T, nu @ np.linalg.inv(S) @ nu


@pytest.mark.parametrize("kind", ["extended", "unscented"])
def test_a_filter_gives_the_numbers_of_one_that_is_written_by_hand(kind: str) -> None:
    """With a correlated V, missing samples, a slow sensor, and a parameter as a state."""
    more: dict[str, Any] = {} if kind == "extended" else {"alpha": 0.8, "beta": 2.0, "kappa": 0.5}
    made: Any = fx.ExtendedKalmanFilter if kind == "extended" else fx.UnscentedKalmanFilter
    block = made("filter", Pendulum(), every=[1, 3], substeps=2, **OPTIONS, **more)
    assert block.state_names[2] == "damping"
    again = pickle.loads(pickle.dumps(block))
    context, rng = again.create_default_context(), np.random.default_rng(4)
    by_hand, x, P = extended if kind == "extended" else unscented, X0, P0
    for k in range(12):
        u, y, here = rng.normal(), shown(x) + 0.05 * rng.normal(size=2), rng.uniform(size=2) > 0.3
        again.u.fix(context, u)
        again.y.fix(context, y)
        again.available.fix(context, here.astype(float))
        for handle, value in again.update(context).items():
            handle.set(context, value)
        use = np.flatnonzero(here & np.array([True, k % 3 == 0]))
        x, P, nis = by_hand(x, P, u, y, use, 2, k == 0)
        np.testing.assert_allclose(again.estimate.eval(context), x, rtol=1e-11, atol=1e-12)
        found = again.covariance.eval(context).reshape(3, 3)
        np.testing.assert_allclose(found, P, rtol=1e-9, atol=1e-13)
        np.testing.assert_allclose(again.deviation.eval(context) ** 2, np.diag(P), rtol=1e-9)
        assert again.nis.eval(context) == pytest.approx(nis, rel=1e-9, abs=1e-13)
        assert again.num_used.eval(context) == len(use)


@pytest.mark.parametrize("kind", ["extended", "unscented"])
def test_filterpy_gives_the_same_numbers(kind: str) -> None:
    """With half of the noise before and half of it after each period, and points drawn anew."""
    kalman: Any = pytest.importorskip("filterpy.kalman", reason="filterpy is missing")
    half, steps = W * T / 2, 2
    if kind == "extended":
        block: Any = fx.ExtendedKalmanFilter("filter", Pendulum(), substeps=steps, **OPTIONS)
        theirs = kalman.ExtendedKalmanFilter(3, 2)
    else:
        parts: dict[str, Any] = {"alpha": 0.8, "beta": 2.0, "kappa": 0.5}
        block = fx.UnscentedKalmanFilter("filter", Pendulum(), substeps=steps, **OPTIONS, **parts)
        points = kalman.MerweScaledSigmaPoints(3, **parts)
        theirs = kalman.UnscentedKalmanFilter(3, 2, T, shown, None, points)
        theirs.Q = half
    theirs.x, theirs.P, theirs.R = X0.copy(), P0.copy(), V
    context, rng = block.create_default_context(), np.random.default_rng(8)
    for k in range(20):
        u, y = rng.normal(), shown(theirs.x) + 0.05 * rng.normal(size=2)
        block.u.fix(context, u)
        block.y.fix(context, y)
        for handle, value in block.update(context).items():
            handle.set(context, value)
        if k and kind == "extended":
            F = moved_slopes(theirs.x, u, steps)
            theirs.x, theirs.P = moved(theirs.x, u, steps), F @ (theirs.P + half) @ F.T + half
        elif k:
            theirs.P = theirs.P + half
            theirs.predict(fx=lambda x, dt, u=u: moved(x, u, steps))
        if kind == "extended":
            theirs.update(y, lambda x: np.outer([1.0, 0.5 * np.cos(x[0])], [1.0, 0.0, 0.0]), shown)
        else:
            theirs.sigmas_f = points.sigma_points(theirs.x, theirs.P)
            theirs.update(y)
        np.testing.assert_allclose(block.estimate.eval(context), theirs.x, rtol=1e-8, atol=1e-10)
        covariance = block.covariance.eval(context).reshape(3, 3)
        np.testing.assert_allclose(covariance, theirs.P, rtol=1e-7, atol=1e-12)


def oscillator(x: Any = (1.0, 0.0)) -> fx.StateSpace:
    return fx.StateSpace("plant", [[0.0, 1.0], [-9.0, -0.3]], [0.0, 1.0], [1.0, 0.0], initial=x)


def test_the_time_varying_filter_converges_to_the_steady_one_and_waits_for_samples() -> None:
    rest = fx.DiagramBuilder("rest")
    rest.add_all(fx.Constant("force", 0.0), oscillator())
    rest.connect_chain("force", "plant")
    model = fx.linearize(rest.build(), inputs=["force.value"], outputs=["plant.y"], period=T)
    noise = np.array([[1e-4, 0.0], [0.0, 3e-3]])
    design = fx.lqe(model, noise, 0.01)
    block: Any = fx.KalmanFilter(
        "kalman", model, W=noise, V=0.01, initial_covariance=5.0, initial=[1, 0]
    )
    context = block.create_default_context()
    block.u.fix(context, 0.5)
    block.y.fix(context, 0.8)
    x, P = np.array([1.0, 0.0]), 5.0 * np.eye(2)
    for k in range(300):
        block.available.fix(context, float(k % 4 != 3 or k > 100))
        for handle, value in block.update(context).items():
            handle.set(context, value)
        if k:
            x = model.A @ x + model.B[:, 0] * 0.5
            P = model.A @ P @ model.A.T + noise
        if k % 4 != 3 or k > 100:
            K = P @ model.C.T / (model.C @ P @ model.C.T + 0.01)
            x, P = x + K[:, 0] * (0.8 - model.C[0] @ x), P - K @ model.C @ P
        np.testing.assert_allclose(block.estimate.eval(context), x, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(block.covariance.eval(context), P.ravel(), rtol=1e-9, atol=1e-14)
    assert design.covariance is not None
    np.testing.assert_allclose(P, design.covariance, rtol=1e-9)
    np.testing.assert_allclose(K, design.gain, rtol=1e-9)


def measured(block: Any, seed: int, seconds: float, **options: Any) -> fx.results.SimulationResult:
    """A run of the oscillator with white noise on its rate, measured with noise, and a filter."""
    builder = fx.DiagramBuilder("test")
    deviation = np.sqrt(0.3 / T)  # of a force that is held, of the intensity 0.3
    builder.add_all(
        fx.Noise("push", seed=seed, period=T, standard_deviation=deviation),
        fx.Noise("error", seed=seed + 1, period=T, standard_deviation=0.05),
        oscillator(),
        fx.Sum("sensor", "++"),
        fx.Constant("force", 0.0),
        block,
    )
    builder.connect_chain("push", "plant", "sensor.u1")
    builder.connect("error.y", "sensor.u2")
    builder.connect("sensor.y", f"{block.name}.y")
    builder.connect("force.y", f"{block.name}.u")
    return fx.simulate(builder.build(), seconds, **options)


def of_oscillator(kind: Any = None, **changes: Any) -> Any:
    options = {"W": {"x[1]": 0.3}, "V": 0.05**2, "initial_covariance": 1e-6, "period": T}
    kind = fx.ExtendedKalmanFilter if kind is None else kind
    return kind("filter", changes.pop("model", oscillator()), **(options | changes))


def test_native_code_lanes_and_interpretation_give_the_same_numbers() -> None:
    kinds: Any = (fx.ExtendedKalmanFilter, fx.UnscentedKalmanFilter)
    ends = []
    for kind in kinds:
        runs = [measured(of_oscillator(kind), 3, 2.0, compiled=how) for how in ("native", False)]
        assert runs[0].statistics.native_steps > 0
        for signal in ("filter.estimate", "filter.covariance", "filter.nis"):
            times = np.arange(0.5 * T, 2.0, T)
            values = [run.sample(signal, times) for run in runs]
            np.testing.assert_allclose(values[0], values[1], rtol=1e-8, atol=1e-12)
        ends.append(runs[0].sample("filter.estimate", times))
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-8, atol=1e-10)  # a linear model
    table = fx.sweep(
        _diagram(),
        {"filter.V": [0.002, 0.02]},
        t_final=1.0,
        metrics={"end": fx.metrics.final("filter.deviation[0]")},
    )
    assert table.metrics["end"][0] < table.metrics["end"][1]


def _diagram() -> fx.System:
    return measured(of_oscillator(), 3, 0.1).system


def test_the_test_of_consistency_passes_what_is_right_and_finds_what_is_wrong() -> None:
    right = fx.filter_consistency(measured(of_oscillator(), 11, 100.0), "filter", start=2.0)
    assert right.is_consistent
    assert right.bounds[0] < 1.0 < right.bounds[1]
    sure = fx.filter_consistency(measured(of_oscillator(V=0.02**2), 11, 100.0), "filter")
    assert not sure.is_consistent
    assert sure.mean_nis > sure.bounds[1]
    shy = fx.filter_consistency(measured(of_oscillator(V=0.2**2, W=1.0), 11, 100.0), "filter")
    assert not shy.is_consistent
    assert shy.mean_nis < shy.bounds[0]
    other = fx.StateSpace("plant", [[0.0, 1.0], [-4.0, -0.3]], [0.0, 1.0], [1.0, 0.0])
    wrong = fx.filter_consistency(measured(of_oscillator(model=other), 11, 100.0), "filter")
    assert not wrong.is_consistent
    assert np.abs(wrong.correlation).max() > wrong.correlation_bound
    assert "consistent   no" in str(wrong)
    assert len(right.plot().lines) == 3


@pytest.mark.full
def test_random_filters_pass_the_test_about_as_often_as_promised() -> None:
    passed = []
    for seed in range(20):
        result = measured(of_oscillator(), 100 + 2 * seed, 30.0)
        passed.append(fx.filter_consistency(result, "filter", confidence=0.9).is_consistent)
    assert 14 <= sum(passed) <= 20
    # A slow sensor has few samples, whose correlation scatters more.
    constant = fx.StateSpace("constant", [[0.0]], np.zeros((1, 0)), [[1.0], [1.0]])
    model = fx.linearize(constant, inputs=[], outputs=["y"], period=T)
    known: Any = {"W": 0.0, "V": 0.25, "initial_covariance": 1.0, "every": [1, 20]}
    passed = []
    for seed in range(20):
        builder = fx.DiagramBuilder("sensors")
        noise = fx.Noise("noise", size=2, seed=seed, period=T, standard_deviation=0.5)
        builder.add_all(noise, fx.KalmanFilter("filter", model, **known))
        builder.connect_chain("noise", "filter.y")
        found = fx.filter_consistency(fx.simulate(builder.build(), 600 * T), "filter")
        passed.append(found.is_consistent)
    assert found.correlation_bound[1] == pytest.approx(found.correlation_bound[0] * 20**0.5)
    assert sum(passed) >= 17


def test_a_parameter_is_found_from_noisy_samples_of_the_motion() -> None:
    builder = fx.DiagramBuilder("swing")
    pendulum = Pendulum(angle=1.2)
    builder.add_all(
        fx.Sine("drive", amplitude=2.0, frequency=5.0),
        fx.ZeroOrderHold("hold", T),
        pendulum,
        fx.Noise("error", seed=2, period=T, standard_deviation=0.01),
        fx.Sum("sensor", "++"),
        fx.ExtendedKalmanFilter(
            "filter",
            Pendulum(),
            period=T,
            inputs=["torque"],
            outputs=["angle"],
            parameters=["damping", "length"],
            initial=[1.0, 0.0, 0.1, 0.6],
            initial_covariance=[0.1, 0.1, 0.1, 0.02],
            W=1e-8,
            V=1e-4,
            substeps=2,
        ),
    )
    builder.connect_chain("drive", "hold", "pendulum.torque")
    builder.connect("hold.y", "filter.u")
    builder.connect("pendulum.angle", "sensor.u1")
    builder.connect("error.y", "sensor.u2")
    builder.connect_chain("sensor", "filter.y")
    result = fx.simulate(builder.build(), 20.0)
    found, sigma = result["filter.estimate"][-1], result["filter.deviation"][-1]
    np.testing.assert_array_less(np.abs(found[2:] - [0.3, 0.5]), 4.0 * sigma[2:])
    np.testing.assert_array_less(sigma[2:], [0.02, 0.002])


def test_time_in_the_model_is_that_of_the_run() -> None:
    """x is the integral of a sine that the model has inside; it is known without samples."""
    inner = fx.DiagramBuilder("inner")
    inner.add_all(fx.Sine("wave", amplitude=2.0, frequency=3.0), fx.Integrator("x"))
    inner.connect_chain("wave", "x")
    builder = fx.DiagramBuilder("outer")
    builder.add_all(
        fx.Constant("never", 0.0),
        fx.Constant("sensor", 9.0),
        fx.ExtendedKalmanFilter(
            "filter",
            inner.build(),
            period=T,
            outputs=["x.y"],
            W=0.0,
            V=1.0,
            initial_covariance=0.0,
            substeps=4,
        ),
    )
    builder.connect("never.y", "filter.available")
    builder.connect_chain("sensor", "filter.y")
    result = fx.simulate(builder.build(), 1.0 + 0.5 * T)
    assert result["filter.estimate"][-1] == pytest.approx(2.0 / 3.0 * (1.0 - np.cos(3.0)), rel=1e-6)
    assert result["filter.nis"][-1] == result["filter.num_used"][-1] == 0.0
    with pytest.raises(EvaluationError, match="at least 10 samples"):
        fx.filter_consistency(result, "filter")


def test_what_cannot_be_a_filter_is_refused() -> None:
    hold = fx.StateSpace("hold", [[0.0]], np.zeros((1, 0)), [[1.0]])
    linear = fx.linearize(hold, period=T, inputs=[], outputs=[])
    free = fx.PlantBuilder("space")
    free.add_body("hull", fx.SpatialInertia.solid_sphere(1.0, radius=0.1))
    sampled = fx.StateSpace("s", [[0.5]], [1.0], [[1.0]], period=0.1)
    for error, text, call in (
        (ValueRefusedError, "W", lambda: of_oscillator(W=-1.0)),
        (ValueRefusedError, "definite", lambda: of_oscillator(V=0.0)),
        (ValueRefusedError, "semidefinite", lambda: of_oscillator(initial_covariance=[1.0, -1.0])),
        (UnknownNameError, "x\\[0\\]", lambda: of_oscillator(W={"speed": 1.0})),
        (FlexureError, "period", lambda: of_oscillator(period=0.0)),
        (ValueRefusedError, "every", lambda: of_oscillator(every=[1, 2])),
        (ValueRefusedError, "every", lambda: of_oscillator(every=0)),
        (ValueRefusedError, "substeps", lambda: of_oscillator(substeps=0)),
        (FlexureError, "initial", lambda: of_oscillator(initial=[1.0])),
        (FlexureError, "alpha", lambda: of_oscillator(fx.UnscentedKalmanFilter, alpha=0.0)),
        (UnknownNameError, "numeric parameter", lambda: of_oscillator(parameters=["u"], inputs=[])),
        (UnknownNameError, "find", lambda: of_oscillator(outputs=["z"])),
        (EvaluationError, "0 outputs", lambda: of_oscillator(outputs=[])),
        (EvaluationError, "quaternions", lambda: of_oscillator(model=free.build())),
        (EvaluationError, "sampled", lambda: of_oscillator(model=sampled, W=1.0)),
        (TraceError, "pendulum", lambda: of_oscillator(model=ForeignPendulum(), W=1.0)),
        (FlexureError, "block or a diagram", lambda: of_oscillator(model="plant")),
        (
            ValueRefusedError,
            "outp",
            lambda: fx.KalmanFilter("k", linear, W=1.0, V=1.0, initial_covariance=1.0),
        ),
    ):
        with pytest.raises(error, match=text):
            call()
    continuous = fx.linearize(hold, inputs=[], outputs=["y"])
    with pytest.raises(ValueRefusedError, match="sampled model"):
        fx.KalmanFilter("k", continuous, W=1.0, V=1.0, initial_covariance=1.0)
    result = measured(of_oscillator(), 1, 1.0)
    for name in ("plant", "nothing"):
        with pytest.raises(FlexureError):
            fx.filter_consistency(result, name)
    with pytest.raises(FlexureError, match="confidence"):
        fx.filter_consistency(result, "filter", confidence=1.0)
    with pytest.raises(FlexureError, match="result of a simulation"):
        fx.filter_consistency(linear, "filter")  # type: ignore[arg-type]
