"""Controllers of generalized plants reach the norms of closed forms and of python-control."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from scipy import linalg, optimize, signal

import flexure as fx
from flexure.diagrams.checks.errors import FlexureError
from tests.support.calls.control_calls import weighted_mass
from tests.support.tiers import by_tier, for_each

PERIOD = 0.1


def problem(seed: int, period: float | None = None) -> tuple[fx.LinearModel, list[str], list[str]]:
    """A random generalized plant with direct gains, its controls and its measurements."""
    rng = np.random.default_rng(seed)
    n, m, p = (int(rng.integers(1, top)) for top in (7, 3, 3))
    w, z = max(int(rng.integers(1, 4)), p), max(int(rng.integers(1, 4)), m)
    A, B, C, D = (
        rng.normal(size=shape) for shape in ((n, n), (n, w + m), (z + p, n), (z + p, w + m))
    )
    D[z:, w:] = 0.0 if seed % 2 else D[z:, w:]
    options = {} if period is None else {"dt": period}
    model = fx.LinearModel.from_scipy(signal.StateSpace(0.6 * A, B, C, D, **options))
    return model, model.input_names[w:], model.output_names[z:]


def without_direct_gain(model: fx.LinearModel, controls: Any, measured: Any) -> fx.LinearModel:
    D = model.D.copy()
    D[: len(D) - len(measured), : D.shape[1] - len(controls)] = 0.0
    return dataclasses.replace(model, D=D)


def closed(model: fx.LinearModel, design: Any) -> fx.LinearModel:
    """The closed loop of matrices, by elimination of all signals at once."""
    K = design.controller
    u = [model.input_names.index(name) for name in K.output_names]
    y = [model.output_names.index(name) for name in K.input_names]
    w = [k for k in range(len(model.u0)) if k not in u]
    z = [k for k in range(len(model.y0)) if k not in y]
    n, k = len(model.A), len(K.A)
    # What x, ξ and w make of (u, y).
    left = np.block([[np.eye(len(u)), -K.D], [-model.D[np.ix_(y, u)], np.eye(len(y))]])
    right = np.block(
        [
            [np.zeros((len(u), n)), K.C, np.zeros((len(u), len(w)))],
            [model.C[y], np.zeros((len(y), k)), model.D[np.ix_(y, w)]],
        ]
    )
    signals = np.linalg.solve(left, right)
    inner, outer = signals[: len(u)], signals[len(u) :]
    rates = np.vstack([model.B[:, u] @ inner, K.B @ outer])
    rates[:n, :n] += model.A
    rates[n:, n : n + k] += K.A
    rates[:n, n + k :] += model.B[:, w]
    shown = model.D[np.ix_(z, u)] @ inner
    shown[:, :n] += model.C[z]
    shown[:, n + k :] += model.D[np.ix_(z, w)]
    direct = np.where(np.abs(shown[:, n + k :]) < 1e-13, 0.0, shown[:, n + k :])
    parts = rates[:, : n + k], rates[:, n + k :], shown[:, : n + k], direct
    options = {} if model.period is None else {"dt": model.period}
    return fx.LinearModel.from_scipy(signal.StateSpace(*parts, **options))


# Closed forms ------------------------------------------------------------------------------------


def test_the_h2_controller_of_a_mass_is_that_of_lqg_and_has_its_cost() -> None:
    design = fx.h2_synthesis(weighted_mass(), "force", "position")
    # X = [[√2, 1], [1, √2]], and with noise of 0.1 the covariance Y is that of a fourth of a pole
    # pair at ω = √10: tr(B₁ᵀ X B₁) + tr(F Y Fᵀ).
    Y = 0.01 * np.array([[math.sqrt(20.0), 10.0], [10.0, 10.0 * math.sqrt(20.0)]])
    F = np.array([[1.0, math.sqrt(2.0)]])
    expected = math.sqrt(math.sqrt(2.0) + (F @ Y @ F.T).item())
    assert design.norm == pytest.approx(expected, rel=1e-9)
    assert design.least_norm == design.norm
    pair = np.array([-1.0 - 1.0j, -1.0 + 1.0j]) / math.sqrt(2.0)
    np.testing.assert_allclose(design.poles, [*pair, *(math.sqrt(10.0) * pair)], rtol=1e-9)


@for_each("a", [-2.0, 0.0, 3.0])
def test_the_least_level_of_one_state_is_that_of_two_quadratic_equations(a: float) -> None:
    """ẋ = a x + w₁ + u, z = (x, u), y = x + w₂: X = Y, and the least γ has X Y = γ²."""
    D = [[0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    plant = signal.StateSpace([[a]], [[1.0, 0.0, 1.0]], [[1.0], [0.0], [1.0]], D)
    design = fx.hinf_synthesis(fx.LinearModel.from_scipy(plant), "u[2]", "y[2]", rtol=1e-6)

    def excess(gamma: float) -> float:
        b = 1.0 - gamma**-2
        return (a + math.sqrt(a**2 + b)) / b - gamma

    low, high = (1.0 / math.hypot(1.0, a) + 1e-9, 0.999) if a < 0.0 else (1.0 + 1e-9, 100.0)
    least = optimize.brentq(excess, low, high, xtol=1e-13)
    assert design.norm == pytest.approx(least, rel=2e-6)
    assert design.least_norm == pytest.approx(least, rel=2e-6)
    assert design.least_norm <= least


def test_a_full_information_gain_at_infinity_bounds_the_level() -> None:
    """A disturbance that reaches an error directly, past the controls, cannot be less."""
    model, controls, measured = problem(14)
    D = model.D.copy()
    D[0, 0] = 100.0
    design = fx.hinf_synthesis(dataclasses.replace(model, D=D), controls, measured)
    assert design.norm >= design.least_norm > 1.0


# Fifty random plants -----------------------------------------------------------------------------


@for_each("seed", range(by_tier(fast=8, full=50)))
def test_the_loop_of_matrices_has_the_norm_and_no_lower_level_has_a_controller(
    seed: int,
) -> None:
    period = PERIOD if seed % 4 > 1 else None
    model, controls, measured = problem(seed, period)
    design = fx.hinf_synthesis(model, controls, measured, rtol=1e-3)
    loop = closed(model, design)
    found = fx.norms(loop)
    assert found.is_stable
    assert found.h_infinity == pytest.approx(design.norm, rel=1e-5, abs=1e-8)
    assert design.least_norm <= design.norm
    assert design.norm <= 1.01 * design.least_norm or design.norm < 1e-6
    if design.norm > 1e-6 and seed % 3 == 0:
        loose = fx.hinf_synthesis(model, controls, measured, gamma=3.0 * design.norm)
        assert loose.norm <= 3.0 * design.norm
        with pytest.raises(FlexureError, match="a gamma that a controller reaches"):
            fx.hinf_synthesis(model, controls, measured, gamma=0.99 * design.least_norm)


@for_each("seed", range(by_tier(fast=8, full=50)))
def test_no_controller_beside_that_of_h2_has_a_lower_h2_norm(
    seed: int,
) -> None:
    period = PERIOD if seed % 4 > 1 else None
    model, controls, measured = problem(seed, period)
    if period is None:
        model = without_direct_gain(model, controls, measured)
    design = fx.h2_synthesis(model, controls, measured)
    best = fx.norms(closed(model, design)).h2
    assert best == pytest.approx(design.norm, rel=1e-6)
    rng, K = np.random.default_rng(seed), design.controller
    for name in "ABC" if period is None else "ABCD":
        other = getattr(K, name)
        step = 1e-3 * (np.abs(other).max() + 1e-3) * rng.normal(size=other.shape)
        for sign in (1.0, -1.0):
            changed = dataclasses.replace(
                design, controller=dataclasses.replace(K, **{name: other + sign * step})
            )
            assert fx.norms(closed(model, changed)).h2 >= best * (1.0 - 1e-9)


@pytest.mark.full
def test_slicot_reaches_the_same_levels_and_python_control_has_the_same_controllers() -> None:
    slycot = pytest.importorskip("slycot", reason="slycot, which synthesizes, is missing")
    control = pytest.importorskip("control")
    reached = 0
    for seed in range(51):
        model, controls, measured = problem(seed)
        (p, m), sizes = model.D.shape, (len(controls), len(measured))
        parts = model.A, model.B, model.C, model.D
        design = fx.hinf_synthesis(model, controls, measured, rtol=1e-3)
        if design.norm < 1e-6:
            continue
        for share in (0.5, 0.9, 0.99, 1.002, 1.1):  # its controllers below the least level miss it
            level = share * design.norm
            try:
                found = slycot.sb10fd(len(model.A), m, p, *sizes, level, *parts)
            except slycot.exceptions.SlycotArithmeticError:
                continue
            K = fx.LinearModel.from_scipy(signal.StateSpace(*found[:4]))
            names: Any = {"input_names": measured, "output_names": controls}
            K = dataclasses.replace(K, **names)
            norm = fx.norms(closed(model, dataclasses.replace(design, controller=K))).h_infinity
            assert norm >= design.least_norm * (1.0 - 1e-6)
            reached += share > 1.0 and norm <= level * (1.0 + 1e-6)
        if seed % 2 == 0:
            continue  # python-control leaves D₂₂ out
        plain = without_direct_gain(model, controls, measured)
        state_space = control.ss(plain.A, plain.B, plain.C, plain.D)
        K = control.h2syn(state_space, sizes[1], sizes[0])
        K = fx.LinearModel.from_control(K)
        ours = fx.h2_synthesis(plain, controls, measured).controller
        places = np.array([0.0, 0.3, 3.0])
        found, expected = (each.frequency_response(places) for each in (ours, K))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)
    assert reached >= 97  # of 100


# Loops of blocks ---------------------------------------------------------------------------------


def mixed(period: float | None = None) -> fx.Diagram:
    """A heavy stage with an elastic load, held at 2 N, with weights, and a gain as controller."""
    builder = fx.DiagramBuilder("mixed")
    builder.add_all(
        fx.Constant("target", 0.5),
        fx.Constant("noise", 0.0),
        fx.Sum("measured", "++"),
        fx.Sum("error", "+-"),
        fx.Gain("controller", 0.0),
        fx.Constant("load", -1.0),
        fx.Sum("force", "++"),
        fx.StateSpace("plant", [[0.0, 1.0], [-2.0, -0.3]], [0.0, 1.0], [1.0, 0.0]),
        fx.TransferFunction("W_S", [0.5, 2.0], [1.0, 0.01]),
        fx.TransferFunction("W_u", [0.3, 0.1], [0.01, 1.0]),
        fx.Gain("W_n", 0.01),
    )
    builder.connect("target.y", "error.u1")
    builder.connect_chain("plant", "measured.u1")
    builder.connect_chain("noise", "W_n", "measured.u2")
    builder.connect("measured.y", "error.u2")
    builder.connect_chain("error", "controller", "force.u1")
    builder.connect("load.y", "force.u2")
    builder.connect_chain("force", "plant")
    builder.connect_chain("error", "W_S")
    builder.connect_chain("controller", "W_u")
    return builder.build()


@for_each("period", [None, 0.02])
def test_the_controller_wires_back_into_the_diagram_of_its_weights(period: float | None) -> None:
    diagram = mixed()
    context = diagram.create_default_context()
    context.set("plant.x", [-0.5, 0.0])
    context.set("W_S.x", [100.0])
    model = fx.linearize(
        diagram,
        context,
        inputs=["target.y", "noise.y", "controller.y"],
        outputs=["W_S.y", "W_u.y", "error.y"],
        openings="controller.y",
        period=period,
    )
    design = fx.hinf_synthesis(model, "controller.y", "error.y")
    assert design.norm < 2.5
    block = design.to_block("controller")
    assert isinstance(block, fx.AffineSystem)  # the measured error is 1 at this point
    loop = fx.DiagramBuilder("loop")
    loop.add_all(
        fx.Constant("target", 0.5),
        fx.Sum("error", "+-"),
        block,
        fx.Constant("load", -1.0),
        fx.Sum("force", "++"),
        fx.StateSpace("plant", [[0.0, 1.0], [-2.0, -0.3]], [0.0, 1.0], [1.0, 0.0]),
    )
    loop.connect("target.y", "error.u1")
    loop.connect_chain("plant", "error.u2")
    loop.connect_chain("error", "controller", "force.u1")
    loop.connect("load.y", "force.u2")
    loop.connect_chain("force", "plant")
    whole = fx.linearize(loop.build(), inputs="target.y", outputs="plant.y", period=period)
    # Weights add their own poles to the design, and a sampled block the one of its hold.
    weights = np.array([-0.01, -100.0])
    weights = weights if period is None else np.exp(weights * period)
    left = list(design.poles)
    for pole in [*whole.poles, *weights]:
        near = int(np.abs(np.array(left) - pole).argmin()) if left else -1
        if period is not None and abs(pole) < 1e-6:
            continue
        assert abs(left.pop(near) - pole) < 1e-6 * max(1.0, abs(pole))
    assert np.abs(left).max(initial=0.0) < 1e-6
    assert whole.is_stable
    assert whole.static_gain.item() == pytest.approx(1.0, abs=0.02)


# Problems without a solution ---------------------------------------------------------------------


def changed(**parts: Any) -> fx.LinearModel:
    return dataclasses.replace(weighted_mass(), **parts)


def with_entry(name: str, value: Any, *places: Any) -> fx.LinearModel:
    matrix = getattr(weighted_mass(), name).copy()
    for place in places:
        matrix[place] = value
    return changed(**{name: matrix})


@for_each(
    "model, expected",
    [
        (with_entry("B", 0.0, (slice(None), 2)), "controls that reach every mode.*'x"),
        (with_entry("C", 0.0, (2, slice(None))), "measurements that show every mode.*Add a sensor"),
        (with_entry("D", 0.0, (1, 2)), "D12 of full column rank.*none of 'force'"),
        (with_entry("D", 0.0, (2, 1)), "D21 of full row rank.*none of 'position'"),
        (
            changed(A=np.diag([-1.0, 0.0]), B=np.ones((2, 3)), C=np.eye(3, 2, -1)[::-1]),
            "measurements that show every mode.*the mode at 0 of 'x",
        ),
        (with_entry("C", 0.0, (0, slice(None))), "no zero on the imaginary axis from controls"),
        (with_entry("B", 0.0, (slice(None), 0)), "no zero on the imaginary axis from dist"),
        (with_entry("D", 1.0, (0, 0)), "no direct gain.*from 'push' to 'z'"),
    ],
)
def test_a_problem_without_a_solution_names_what_is_missing(
    model: fx.LinearModel, expected: str
) -> None:
    with pytest.raises(FlexureError, match=expected):
        fx.h2_synthesis(model, "force", "position")


def test_arguments_that_are_none_are_refused() -> None:
    model = weighted_mass()
    calls: list[Any] = [
        lambda: fx.hinf_synthesis(model, "motor", "position"),
        lambda: fx.hinf_synthesis(model, "force", []),
        lambda: fx.hinf_synthesis(model, model.input_names, "position"),
        lambda: fx.hinf_synthesis(model, "force", model.output_names),
        lambda: fx.hinf_synthesis(model, ["force", "force"], "position"),
        lambda: fx.hinf_synthesis(model, "force", "position", gamma=math.nan),
        lambda: fx.hinf_synthesis(model, "force", "position", gamma=-1.0),
        lambda: fx.hinf_synthesis(model, "force", "position", rtol=0.0),
        lambda: fx.h2_synthesis(fx.Integrator("plant"), "u", "y"),  # type: ignore[arg-type]
        lambda: fx.h2_synthesis(dataclasses.replace(model, u0=np.full(3, math.nan)), "force", "y"),
    ]
    for call in calls:
        with pytest.raises(FlexureError, match="Cannot design an H"):
            call()


def test_a_level_at_the_boundary_is_refused_below_and_reached_above() -> None:
    model = weighted_mass()
    best = fx.hinf_synthesis(model, "force", "position", rtol=1e-4)
    above = fx.hinf_synthesis(model, "force", "position", gamma=1.001 * best.norm)
    assert above.norm <= 1.001 * best.norm
    assert linalg.norm(above.controller.C) < 1e6
    with pytest.raises(FlexureError, match=r"here above 1\.28"):
        fx.hinf_synthesis(model, "force", "position", gamma=best.least_norm * (1.0 - 1e-9))


def test_a_sampled_plant_with_a_pole_at_minus_one_is_refused() -> None:
    A, B = np.array([[-1.0, 0.1], [0.0, 0.5]]), weighted_mass().B
    model = dataclasses.replace(weighted_mass(), A=A, B=B, period=0.1)
    with pytest.raises(FlexureError, match="pole at z = -1"):
        fx.hinf_synthesis(model, "force", "position")
    assert fx.h2_synthesis(model, "force", "position").closed_loop.is_stable
