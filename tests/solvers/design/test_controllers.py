"""Controllers from linear models: gains against closed forms, and loops made of their blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from scipy.signal import StateSpace, TransferFunction

import flexure as fx
from flexure.diagrams.checks.errors import FlexureError, UnknownNameError, ValueRefusedError
from tests.support.tiers import for_each

MASS = ([[0.0, 1.0], [0.0, 0.0]], [0.0, 1.0], [1.0, 0.0])
RNG = np.random.default_rng(3)
#: Two inputs, three outputs, four states, of which some grow, and a direct way.
WIDE = (
    RNG.normal(size=(4, 4)),
    RNG.normal(size=(4, 2)),
    RNG.normal(size=(3, 4)),
    0.1 * RNG.normal(size=(3, 2)),
)
PERIODS = pytest.mark.parametrize("period", [None, 0.05])


def model_of(
    matrices: Any, period: float | None = None, f0: Any = None, y0: Any = None, x0: Any = None
) -> fx.LinearModel:
    A, B, C, *D = (np.asarray(each, dtype=float) for each in matrices)
    n, m, p = len(A), B.size // len(A), C.size // len(A)
    block = fx.AffineSystem(
        "plant",
        *(A, B.reshape(n, m)),
        np.zeros(n) if f0 is None else f0,
        C.reshape(p, n),
        D[0] if D else None,
        np.zeros(p) if y0 is None else y0,
        initial=x0,
    )
    context = block.create_default_context()
    context.set("u", np.zeros(m))
    return fx.linearize(block, context, period=period)


def close(found: Any, expected: Any, rtol: float, atol: float = 0.0) -> None:
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)


def alike(found: Any, expected: Any, rtol: float = 1e-8) -> None:
    """Compare poles in whatever order."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    distance = np.abs(np.subtract.outer(found, expected))
    assert distance.min(axis=1).max() < rtol * (1.0 + np.abs(expected).max())
    assert distance.min(axis=0).max() < rtol * (1.0 + np.abs(expected).max())


# Closed forms ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("q", "r"), [(1.0, 1.0), (100.0, 0.25)])
def test_the_regulator_of_a_mass_has_the_damping_of_a_butterworth_filter(
    q: float, r: float
) -> None:
    design = fx.lqr(model_of(MASS), {"x[0]": q}, r)
    k = np.sqrt(q / r)
    np.testing.assert_allclose(design.gain, [[k, np.sqrt(2.0 * k)]], rtol=1e-9)
    alike(design.poles, np.sqrt(k) * np.array([-1 + 1j, -1 - 1j]) / np.sqrt(2.0))


@PERIODS
def test_a_largest_value_is_the_weight_of_one_over_its_square(period: float | None) -> None:
    model = model_of(WIDE, period)
    states, inputs = model.state_names, model.input_names
    largest = {states[0]: 0.2, states[3]: 5.0, inputs[0]: 2.0, inputs[1]: 10.0}
    Q, R = {states[0]: 25.0, states[3]: 0.04}, [0.25, 0.01]
    expected = fx.lqr(model, Q, R)
    np.testing.assert_allclose(fx.lqr(model, largest=largest).gain, expected.gain, rtol=1e-12)
    name = model.output_names[0]
    both = fx.lqg(model, largest=largest, W=1.0, V=1e-2, integral={name: 3.0})
    alone = fx.lqg(model, Q, R, 1.0, 1e-2, integral={name: 3.0})
    np.testing.assert_allclose(both.feedback.gain, alone.feedback.gain, rtol=1e-12)
    np.testing.assert_array_equal(both.observer.gain, alone.observer.gain)


@pytest.mark.parametrize("a", [-2.0, 0.0, 3.0])
def test_one_state_has_the_root_of_a_quadratic_equation(a: float) -> None:
    b, q, r = 0.5, 4.0, 0.3
    model = model_of(([[a]], [b], [1.0]))
    P = (a + np.sqrt(a**2 + b**2 * q / r)) * r / b**2
    design = fx.lqr(model, q, r)
    close(design.cost, [[P]], rtol=1e-10)
    np.testing.assert_allclose(design.gain, [[b * P / r]], rtol=1e-10)
    observer = fx.lqe(model, q, r)
    P = r * (a + np.sqrt(a**2 + q / r))
    close(observer.covariance, [[P]], rtol=1e-10)
    np.testing.assert_allclose(observer.gain, [[P / r]], rtol=1e-10)


@PERIODS
def test_the_cost_is_what_a_motion_costs(period: float | None) -> None:
    model = model_of(WIDE, period)
    Q, R = np.diag([1.0, 2.0, 0.0, 0.5]), np.array([[2.0, 0.3], [0.3, 1.0]])
    design = fx.lqr(model, Q, R)
    closed, cost = model.A - model.B @ design.gain, Q + design.gain.T @ R @ design.gain
    P = (
        scipy.linalg.solve_continuous_lyapunov(closed.T, -cost)
        if period is None
        else scipy.linalg.solve_discrete_lyapunov(closed.T, cost)
    )
    close(design.cost, P, rtol=1e-7, atol=1e-9)


@PERIODS
def test_the_covariance_is_that_of_the_error(period: float | None) -> None:
    model = model_of(WIDE, period)
    W, V = np.diag([1.0, 2.0, 0.1, 0.5]), np.diag([2.0, 1.0, 0.5])
    design = fx.lqe(model, W, V)
    L, A, C = design.gain, model.A, model.C
    if period is None:
        P = scipy.linalg.solve_continuous_lyapunov(A - L @ C, -(W + L @ V @ L.T))
    else:
        kept = np.eye(4) - L @ C
        P = scipy.linalg.solve_discrete_lyapunov(kept @ A, kept @ W @ kept.T + L @ V @ L.T)
    close(design.covariance, P, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("integrals", [{}, {"y[0]": 3.0}])
def test_a_sampled_design_minimizes_the_integral_over_time(integrals: dict[str, float]) -> None:
    """The cost is that of a motion between the samples, and no other gain has a lower one."""
    model, period = model_of(WIDE), 0.3
    Q, R = np.diag([1.0, 2.0, 0.0, 0.5]), np.array([[2.0, 0.3], [0.3, 1.0]])
    design = fx.lqr(model, Q, R, integral=integrals, period=period)
    assert design.model.period == period
    n, m = model.B.shape
    steps = 200
    whole = np.vstack([np.hstack([model.A, model.B]), np.zeros((m, n + m))])
    short = scipy.linalg.expm(whole * period / steps)
    weights = scipy.linalg.block_diag(Q, R)
    simpson = np.array([1.0, *[4.0, 2.0] * (steps // 2 - 1), 4.0, 1.0]) * period / steps / 3.0

    def spent(gain: Any, x: Any) -> float:
        total, z = 0.0, np.zeros(len(integrals))
        for _ in range(150):
            u = design.integral_gain @ z - gain @ x
            points = [np.concatenate([x, u])]
            for _ in range(steps):
                points.append(short @ points[-1])
            rows = np.array(points)
            total += simpson @ np.einsum("ki,ij,kj->k", rows, weights, rows)
            total += period * sum(
                w * each**2 for w, each in zip(integrals.values(), z, strict=True)
            )
            x = points[-1][:n]
            z = z - period * (model.C @ x + model.D @ u)[: len(integrals)]
        return float(total)

    start = np.array([1.0, -0.5, 0.3, 0.2])
    assert design.cost is not None
    best = start @ design.cost[:n, :n] @ start
    assert spent(design.gain, start) == pytest.approx(best, rel=1e-6)
    for sign in (1.0, -1.0):
        assert spent(design.gain * (1.0 + sign * 0.02), start) > best


def test_a_sampled_design_with_a_short_period_is_that_in_continuous_time() -> None:
    model = model_of(WIDE)
    names = model.output_names[0]
    slow, fast = (
        fx.lqg(model, 2.0, 1.0, 0.5, 0.1, integral={names: 2.0}, period=period)
        for period in (None, 1e-4)
    )
    for name in ("gain", "integral_gain", "cost"):
        pair: Any = [getattr(each.feedback, name) for each in (fast, slow)]
        np.testing.assert_allclose(pair[0], pair[1], rtol=2e-3, atol=1e-3)
    np.testing.assert_allclose(fast.observer.gain / 1e-4, slow.observer.gain, rtol=2e-3, atol=1e-3)
    close(fast.observer.covariance, slow.observer.covariance, rtol=1e-3, atol=1e-4)
    # Fast modes that decay do not overflow.
    stiff = model_of(([[-1e6, 0.0], [1.0, -0.5]], [1.0, 0.0], [0.0, 1.0]))
    assert np.isfinite(fx.lqg(stiff, 1.0, 1.0, 1.0, 1.0, period=1.0).feedback.gain).all()
    with pytest.raises(ValueRefusedError, match=r"sampled every 0\.1 s.*sums over samples"):
        fx.lqr(model_of(WIDE, 0.1), 1.0, 1.0, period=0.1)


@PERIODS
def test_python_control_finds_the_same_gains(period: float | None) -> None:
    control = pytest.importorskip("control")
    model = model_of(WIDE, period)
    A, B, C = model.A, model.B, model.C
    Q, R, W, V = np.eye(4), np.eye(2), 2.0 * np.eye(4), np.eye(3)
    K = (control.lqr if period is None else control.dlqr)(A, B, Q, R)[0]
    np.testing.assert_allclose(fx.lqr(model, 1.0, 1.0).gain, K, rtol=1e-7, atol=1e-10)
    L = (control.lqe if period is None else control.dlqe)(A, np.eye(4), C, W, V)[0]
    gain = fx.lqe(model, 2.0, 1.0).gain
    np.testing.assert_allclose(gain if period is None else A @ gain, L, rtol=1e-7, atol=1e-10)
    poles = [-1.0, -2.0, -3.0 + 1j, -3.0 - 1j]
    mapped = poles if period is None else np.exp(np.multiply(poles, period))
    K = control.place(A, B, mapped)
    np.testing.assert_allclose(fx.place(model, mapped).gain, K, rtol=1e-7, atol=1e-10)


@PERIODS
def test_poles_come_where_they_are_placed(period: float | None) -> None:
    wanted = np.array([-1.0, -1.5, -2.0 + 1j, -2.0 - 1j])
    more = np.array([-0.7])
    if period is not None:
        wanted, more = np.exp(wanted * period), np.exp(more * period)
    model = model_of(WIDE, period)
    alike(fx.place(model, wanted).poles, wanted)
    alike(fx.place_observer(model, wanted).poles, wanted)
    design = fx.place(model, [*wanted, *more], integral="y[1]")
    alike(design.poles, [*wanted, *more])
    assert (design.integral_gain.shape, design.integral) == ((2, 1), ["y[1]"])


def test_sampled_poles_can_all_be_zero() -> None:
    """Deadbeat: ``A - B K`` has no other eigenvalue, but for rounding."""
    one = fx.LinearModel.from_scipy(TransferFunction([0.3], [1.0, -0.9], dt=0.1))
    np.testing.assert_allclose(fx.place(one, [0.0]).gain * one.B, one.A, rtol=1e-12)
    A = [[0.9, 0.4], [-0.2, 0.7]]
    steady = fx.LinearModel.from_scipy(StateSpace(A, *[np.eye(2)] * 3, dt=0.1))
    np.testing.assert_allclose(fx.place_observer(steady, [0.0, 0.0]).gain, np.eye(2), atol=1e-12)


# Loops made of blocks ----------------------------------------------------------------------------


@PERIODS
@pytest.mark.parametrize("integrals", [{}, {"y[0]": 3.0, "y[2]": 1.0}])
def test_the_loop_of_blocks_has_the_predicted_poles_and_rests_at_the_point(
    period: float | None, integrals: dict[str, float]
) -> None:
    """Feedback and observer keep the poles that each of them was designed with."""
    A, B, C, D = WIDE
    x0 = np.array([0.5, -1.0, 2.0, 0.3])
    f0, y0 = -A @ x0, np.array([0.2, 0.0, -0.4])
    model = model_of(WIDE, period, f0, y0, x0)
    design = fx.lqg(model, 1.0, 1.0, 1.0, 0.1, integral=integrals)
    builder = fx.DiagramBuilder("loop")
    builder.add(fx.AffineSystem("plant", A, B, f0, C, D, y0, initial=x0))
    builder.add(design.to_block("controller"))
    builder.connect_chain("plant", "controller.y")
    builder.connect("controller.u", "plant.u")
    if integrals:
        builder.add(fx.Constant("target", model.y0[[0, 2]]))
        builder.connect_chain("target", "controller.reference")
    diagram = builder.build()
    closed = fx.linearize(diagram, inputs=[], outputs=[], period=period)
    alike(closed.poles, [*design.feedback.poles, *design.observer.poles])
    alike(closed.poles, design.poles)
    result = fx.simulate(diagram, 0.5)
    np.testing.assert_allclose(result["plant.x"][-1], x0, rtol=1e-6)


@PERIODS
def test_feedback_of_the_state_alone_has_the_predicted_poles(period: float | None) -> None:
    A, B, *_ = WIDE
    model = model_of((A, B, np.eye(4)), period)
    for design in (fx.lqr(model, 1.0, 1.0), fx.lqr(model, 1.0, 1.0, integral={"y[3]": 2.0})):
        block = design.to_block("controller")
        builder = fx.DiagramBuilder("loop")
        builder.add_all(fx.StateSpace("plant", A, B, np.eye(4)), block)
        builder.connect("plant.y", "controller.state")
        builder.connect("controller.u", "plant.u")
        if design.integral:
            builder.add(fx.Constant("target", 1.0))
            builder.connect("plant.y", "controller.y")
            builder.connect("target.y", "controller.reference")
        diagram = builder.build()
        closed = fx.linearize(diagram, inputs=[], outputs=[], period=period).poles
        held = np.zeros(0 if period is None else 4)  # what is held does not matter
        alike(closed, [*design.poles, *held], rtol=1e-7)


@pytest.mark.parametrize("late", [None, "hold", "unit", "delay", "filter"])
def test_a_loop_has_the_poles_of_its_design_whatever_samples_the_input(late: str | None) -> None:
    """A block that samples the output of a sampled controller reads it an instant later."""
    period = 0.01
    samplers: dict[str, Callable[[], fx.System]] = {
        "hold": lambda: fx.ZeroOrderHold("late", period),
        "unit": lambda: fx.UnitDelay("late", period),
        "delay": lambda: fx.TimeDelay("late", 0.017, period),
        "filter": lambda: fx.TransferFunction("late", [1.0, 0.3], [1.0, -0.2], period=period),
    }

    def plant(builder: fx.DiagramBuilder) -> fx.diagrams.InputPort:
        lag = fx.TransferFunction("plant", [1.0], [1.0, 0.5, 4.0])
        blocks = [samplers[late](), lag] if late else [lag]
        builder.add_all(*blocks)
        if late:
            builder.connect_chain("late", "plant")
        port: fx.diagrams.InputPort = blocks[0].find("u")
        return port

    def model(**options: Any) -> fx.LinearModel:
        builder = fx.DiagramBuilder("open")
        builder.export_input(plant(builder), name="u")
        builder.export_output("plant.y", name="y")
        diagram = builder.build()
        context = diagram.create_default_context()
        context.set("u", 0.0)
        return fx.linearize(diagram, context, ["u"], ["y"], period=period, **options)

    def design(of: fx.LinearModel) -> Any:
        noise = {name: 1.0 for name in of.state_names if name.startswith("plant.")}
        return fx.lqg(of, Q={"plant.x[0]": 1e4}, R=1.0, W=noise, V=1e-4)

    found = design(model(inputs_after_updates=True))
    builder = fx.DiagramBuilder("closed")
    entry = plant(builder)
    builder.add(found.to_block("lqg"))
    builder.connect_chain("plant", "lqg.y")
    builder.connect("lqg.u", entry)
    closed = fx.linearize(builder.build(), None, [], [], period=period).poles
    poles = np.sort_complex(found.poles[np.abs(found.poles) > 1e-3])
    np.testing.assert_allclose(np.sort_complex(closed[np.abs(closed) > 1e-3]), poles, atol=1e-9)
    if late:
        with pytest.warns(UserWarning, match=r"one sample more.*'u'.*inputs_after_updates=True"):
            design(model())


def test_an_integral_reaches_the_reference_against_a_disturbance() -> None:
    model = model_of(MASS)
    controller = fx.lqg(model, [1.0, 0.0], 0.1, [0.0, 1.0], 1e-3, integral={"y": 1.0})
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.Constant("target", 2.0),
        fx.Constant("wind", 0.4),
        fx.Sum("force"),
        fx.StateSpace("mass", *MASS),
        controller.to_block("controller"),
    )
    builder.connect_chain("target", "controller.reference")
    builder.connect("controller.u", "force.u1")
    builder.connect("wind.y", "force.u2")
    builder.connect_chain("force", "mass", "controller.y")
    result = fx.simulate(builder.build(), 40.0)
    np.testing.assert_allclose(np.ravel(result["mass.y"])[-1], 2.0, rtol=1e-5)
    np.testing.assert_allclose(np.ravel(result["controller.u"])[-1], -0.4, rtol=1e-4)


def test_disturbances_are_neither_known_nor_controlled() -> None:
    A, B, C, *_ = WIDE
    model = model_of((A, B, C))
    design = fx.lqg(model, 1.0, 1.0, 2.0, 1.0, disturbances="u[1]")
    assert design.observer.model.input_names == design.feedback.model.input_names == ["u[0]"]
    W = 2.0 * np.outer(B[:, 1], B[:, 1])
    np.testing.assert_allclose(design.observer.gain, fx.lqe(model, W, 1.0).gain, rtol=1e-9)
    assert design.to_block("controller").find_output("u").size == 1


# A nonlinear plant -------------------------------------------------------------------------------


def cart_pole() -> fx.Plant:
    builder = fx.PlantBuilder("plant")
    cart = builder.add_body("cart", fx.SpatialInertia.solid_box(1.0, size=(0.2, 0.2, 0.1)))
    ball = fx.SpatialInertia.solid_sphere(0.2, radius=0.05)
    pole = builder.add_body("pole", ball, com=(0.0, 0.0, 0.5))
    track = builder.add_joint(fx.PrismaticJoint("track", builder.world, cart, axis=(1, 0, 0)))
    builder.add_joint(fx.RevoluteJoint("hinge", cart, pole, axis=(0, 1, 0)))
    builder.add_actuator("motor", track)
    plant = builder.build()
    assert isinstance(plant, fx.Plant)
    return plant


MEASURED = ["track.translation", "hinge.angle"]


@PERIODS
def test_a_pole_is_balanced_on_its_cart_around_a_place_that_is_not_zero(
    period: float | None,
) -> None:
    plant = cart_pole()
    context = plant.create_default_context()
    context.set("tree.x", [0.4, 0.0, 0.0, 0.0])
    model = fx.linearize(plant, context, ["motor"], MEASURED, period=period)
    design = fx.lqg(
        model,
        Q={"tree.x[track_x]": 4.0, "tree.x[hinge_q]": 100.0},
        R=0.1,
        W=[0.0, 0.0, 0.1, 0.1],
        V=1e-4,
    )
    builder = fx.DiagramBuilder("balance")
    builder.add_all(cart_pole(), design.to_block("controller"), fx.Multiplexer("sensors", [1, 1]))
    builder.connect("plant.track.translation", "sensors.u1")
    builder.connect("plant.hinge.angle", "sensors.u2")
    builder.connect_chain("sensors", "controller.y")
    builder.connect("controller.u", "plant.motor")
    diagram = builder.build()
    start = diagram.create_default_context()
    start.set("plant.tree.x", [0.4, 0.0, 0.0, 0.0])
    closed = fx.linearize(diagram, start, inputs=[], outputs=[], period=period)
    alike(closed.poles, design.poles, rtol=1e-7)
    start.set("plant.tree.x", [0.2, 0.25, 0.0, 0.0])
    result = fx.simulate(diagram, 8.0, context=start)
    assert np.ptp(result["plant.hinge.angle"]) > 0.25
    np.testing.assert_allclose(result["plant.tree.x"][-1], [0.4, 0.0, 0.0, 0.0], atol=2e-3)


# Refusals ----------------------------------------------------------------------------------------


def stuck() -> fx.LinearModel:
    """A swing that no input moves and no output shows, beside a lag with both."""
    A = [[0.0, 1.0, 0.0], [-4.0, 0.0, 0.0], [0.0, 0.0, -1.0]]
    return model_of((A, [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]))


SWING = r"the mode at 0±2j of 'x\[0\]', 'x\[1\]'\."


@for_each(
    ("design", "expected"),
    [
        (lambda: fx.lqr(stuck(), 1.0, 1.0), f"inputs that reach every mode .*{SWING}"),
        (lambda: fx.place(stuck(), [-1, -2, -3]), f"inputs that reach every mode; .*{SWING}"),
        (lambda: fx.lqe(stuck(), 1.0, 1.0), f"outputs that show every mode .*{SWING}"),
        (lambda: fx.place_observer(stuck(), [-1, -2, -3]), f"outputs .* every mode; .*{SWING}"),
    ],
)
def test_modes_out_of_reach_are_named(design: Any, expected: str) -> None:
    with pytest.raises(ValueRefusedError, match=expected):
        design()


def test_units_do_not_decide_what_is_reached() -> None:
    """A mass in other units: states and input scaled by many powers of ten."""
    scale = np.array([1e9, 1e-6])
    A = np.diag(scale) @ MASS[0] @ np.diag(1.0 / scale)
    model = model_of((A, scale * MASS[1] * 1e-7, MASS[2] / scale))
    design = fx.lqr(model, np.diag(1.0 / scale**2), 1.0e-14)
    np.testing.assert_allclose(design.gain * scale * 1e-7, [[1.0, np.sqrt(3.0)]], rtol=1e-6)


def test_a_mode_that_decays_need_not_be_reached() -> None:
    model = model_of(([[1.0, 0.0], [0.0, -2.0]], [1.0, 0.0], [1.0, 0.0]))
    alike(fx.lqr(model, {"x[0]": 1.0}, 1.0).poles, [-np.sqrt(2.0), -2.0])
    with pytest.raises(ValueRefusedError, match=r"the mode at -2 of 'x\[1\]'\. Leave out"):
        fx.place(model, [-1.0, -3.0])


def test_what_neither_decays_nor_grows_needs_a_weight_and_noise() -> None:
    with pytest.raises(ValueRefusedError, match=r"weights Q that see .* at 0 of 'x\[0\]'\. Give"):
        fx.lqr(model_of(MASS), {"x[1]": 1.0}, 1.0)
    with pytest.raises(ValueRefusedError, match=r"noise W that reaches .* at 0 of 'x\[1\]'\. Give"):
        fx.lqe(model_of(MASS), {"x[0]": 1.0}, 1.0)


@for_each(
    ("Q", "R", "expected"),
    [
        ([1.0, 2.0, 3.0], 1.0, r"2 numbers, a 2 x 2 matrix .* for Q; found shape \(3,\)"),
        (np.array([[1.0, 1.0], [0.0, 1.0]]), 1.0, "found a matrix that is not symmetric"),
        ([1.0, -1.0], 1.0, r"positive semidefinite Q .*; found the diagonal \[ 1\. -1\.\]"),
        ([[1.0, 2.0], [2.0, 1.0]], 1.0, r"found the eigenvalues \[-1\.  3\.\]"),
        ([1.0, np.nan], 1.0, "numbers that are not finite"),
        (1.0, 0.0, "positive definite R .* Every component needs a positive number"),
        (1.0, np.eye(2), "one number, 1 numbers, a 1 x 1 matrix"),
    ],
)
def test_weights_that_do_not_fit_are_refused(Q: Any, R: Any, expected: str) -> None:
    with pytest.raises(ValueRefusedError, match=expected):
        fx.lqr(model_of(MASS), Q, R)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, r"either weights Q and R, or largest .*; found neither\. Pass largest=\{'x\[0\]'"),
        ({"Q": 1.0}, "found Q"),
        ({"Q": 1.0, "R": 1.0, "largest": {"x[0]": 1.0, "u": 1.0}}, "found Q and R and largest"),
        ({"largest": {"x[0]": 1.0}}, "the largest value of every input; found none for 'u'"),
        ({"largest": {"x[0]": 0.0, "u": 1.0}}, r"largest x\[0\]: expected values in \(0, inf\)"),
        ({"largest": {"x[0]": np.inf, "u": 1.0}}, "expected finite numbers; found inf"),
        ({"largest": {"x[0]": 1e-200, "u": 1.0}}, "Q of finite numbers"),
        ({"largest": {"x[0]": "a", "u": 1.0}}, r"x\[0\]: expected a real number"),
        ({"largest": [1.0, 2.0]}, "names of states and inputs, and their largest values"),
        ({"largest": {"x[2]": 1.0, "u": 1.0}}, r"in largest; found 'x\[2\]'\. Did you mean"),
    ],
)
def test_largest_values_that_do_not_fit_are_refused(options: Any, expected: str) -> None:
    with pytest.raises(FlexureError, match=expected):
        fx.lqr(model_of(MASS), **options)
    with pytest.raises(FlexureError, match=expected):
        fx.lqg(model_of(MASS), **options, W=1.0, V=1.0)


def test_a_period_in_which_a_growing_mode_overflows_is_refused() -> None:
    """The weights contain the square of its growth, exp(2 · 2 · 300)."""
    model = model_of(([[2.0]], [1.0], [1.0]))
    for design in (fx.lqr, fx.lqe):
        with pytest.raises(ValueRefusedError, match="modes that grow stay finite; found 300 s"):
            design(model, 1.0, 1.0, period=300.0)


def test_intensities_of_noise_have_to_be_there() -> None:
    with pytest.raises(ValueRefusedError, match="intensities V of noise; found None"):
        fx.lqg(model_of(MASS), 1.0, 1.0, 1.0)


@for_each(
    ("poles", "expected"),
    [
        ([-1.0], "2 poles, one for each state"),
        ([-1.0 + 1j, -2.0], r"complex poles with their conjugates; found -1\+1j without it"),
        ([-1.0, -1.0], "each pole at most 1 time"),
        ([-1.0, np.inf], "finite poles"),
        (["a", "b"], "2 poles as complex numbers"),
    ],
)
def test_poles_that_cannot_be_placed_are_refused(poles: Any, expected: str) -> None:
    with pytest.raises(ValueRefusedError, match=expected):
        fx.place(model_of(MASS), poles)


@pytest.mark.parametrize(
    ("period", "poles", "expected"),
    [
        (
            0.01,
            [-5.0, -6.0],
            r"-6, -5\. Poles of a sampled model are in z = exp\(s T\), .* T = 0.01",
        ),
        (0.01, [0.9 + 0.5j, 0.9 - 0.5j], r": 0\.9-0\.5j, 0\.9\+0\.5j\. Poles of a sampled"),
        (
            None,
            [0.95, -0.9],
            r"do not decay: 0\.95\. Poles of a model in continuous time are in rad/s",
        ),
    ],
)
def test_poles_that_do_not_decay_warn(
    period: float | None, poles: list[complex], expected: str
) -> None:
    """As it happens to poles in rad/s for a sampled model."""
    with pytest.warns(UserWarning, match=f"^This closed loop has .*{expected}"):
        design = fx.place(model_of(MASS, period), poles)
    alike(design.poles, poles, rtol=1e-6)
    with pytest.warns(UserWarning, match=f"^The error of this observer has .*{expected}"):
        fx.place_observer(model_of(MASS, period), poles)


def test_names_that_do_not_exist_are_refused() -> None:
    model = model_of(MASS)
    with pytest.raises(UnknownNameError, match=r"names of Q; found 'x\[2\]'\. Did you mean"):
        fx.lqr(model, {"x[2]": 1.0}, 1.0)
    with pytest.raises(UnknownNameError, match=r"the name of an output; found 'z'"):
        fx.lqr(model, 1.0, 1.0, integral={"z": 1.0})
    with pytest.raises(UnknownNameError, match=r"the name of an input; found 'w'"):
        fx.lqe(model, 1.0, 1.0, disturbances="w")


def test_models_without_states_or_with_numbers_that_are_not_finite_are_refused() -> None:
    gain = fx.Gain("gain", 2.0)
    context = gain.create_default_context()
    context.set("u", 0.0)
    with pytest.raises(ValueRefusedError, match="a model with at least one state"):
        fx.lqr(fx.linearize(gain, context), 1.0, 1.0)
    model = replace(model_of(MASS), x0=np.full(2, np.nan))
    with pytest.raises(ValueRefusedError, match="a model of finite numbers; found x0 ="):
        fx.lqe(model, 1.0, 1.0)


def test_a_point_that_is_no_equilibrium_warns() -> None:
    model = model_of(MASS, f0=[0.0, -9.81])
    with pytest.warns(UserWarning, match=r"no equilibrium: 'x\[1\]' changes by -9.81 per s"):
        fx.lqr(model, 1.0, 1.0)


def test_feedback_and_observer_of_different_models_are_not_joined() -> None:
    feedback = fx.lqr(model_of(MASS), 1.0, 1.0)
    with pytest.raises(ValueRefusedError, match="designs for one model"):
        fx.results.OutputFeedbackDesign(feedback, fx.lqe(model_of(MASS, 0.1), 1.0, 1.0))
