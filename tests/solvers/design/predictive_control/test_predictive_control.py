"""Predictive control: LQR far from limits, the optimum of other solvers at them, and what happens
where there is no solution."""

import copy
import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import LinearConstraint, lsq_linear, minimize

import flexure as fx

pytest.importorskip("piqp", reason="needs the extra optimal")

Array = NDArray[np.float64]
PERIOD = 0.1


def plant(name: str = "mass", gain: float = 1.0) -> fx.StateSpace:
    """Return a mass on a weak spring with a force and a disturbing force."""
    return fx.StateSpace(
        name, [[0.0, 1.0], [-0.2, -0.1]], [[0.0, 0.0], [gain, 1.0]], np.eye(2), initial=[0.3, 0.0]
    )


def model() -> fx.LinearModel:
    """Return its sampled model at rest, by the force alone."""
    mass = plant()
    context = mass.create_default_context()
    context.set("x", [0.0, 0.0])
    assert mass.u is not None
    mass.u.fix(context, [0.0, 0.0])
    return fx.linearize(mass, context, inputs="u[0]", outputs="y", period=PERIOD)


def random_model(seed: int) -> fx.LinearModel:
    """Return a sampled model of three states, two inputs and two outputs."""
    rng = np.random.default_rng(seed)
    block = fx.StateSpace(
        "r", rng.normal(size=(3, 3)), rng.normal(size=(3, 2)), rng.normal(size=(2, 3))
    )
    context = block.create_default_context()
    assert block.u is not None
    block.u.fix(context, [0.0, 0.0])
    return fx.linearize(block, context, period=PERIOD)


def first_inputs(controller: fx.ModelPredictiveController, x: Any, r: Any = None) -> Array:
    """Return what the first sample applies."""
    builder = fx.DiagramBuilder("once")
    builder.add_all(fx.Constant("x", x), controller)
    builder.connect_chain("x", "mpc.state")
    if r is not None:
        builder.connect(builder.add(fx.Constant("r", r)).y, "mpc.reference")
    result = fx.simulate(builder.build(), 0.5 * PERIOD)
    return np.array(result["mpc.u"][-1])


def closed(
    controller: fx.System, t_final: float, load: float = 0.0, gain: float = 1.0
) -> fx.results.SimulationResult:
    """Return the loop around a plant of another gain, with a load and a reference of 1."""
    builder = fx.DiagramBuilder("loop")
    mass = plant(gain=gain)
    builder.add_all(controller, fx.Constant("load", load), fx.Multiplexer("both", [1, 1]), mass)
    builder.connect("mpc.u", "both.u1")
    builder.connect("load.y", "both.u2")
    builder.connect_chain("both", "mass")
    builder.connect("mass.y", "mpc.state")
    if isinstance(controller, fx.ModelPredictiveController) and controller.reference is not None:
        builder.connect(builder.add(fx.Constant("r", 1.0)).y, controller.reference)
    return fx.simulate(builder.build(), t_final)


def condensed(
    found: fx.LinearModel, Q: Array, R: Array, horizon: int, x: Array
) -> tuple[Array, Array, Array, Array]:
    """Return the states of a horizon, S x + T u, and the factors of cost ‖F u - g‖²."""
    A, B = found.A, found.B
    n, m = B.shape
    P = fx.lqr(found, Q, R).cost
    assert P is not None
    powers = [np.linalg.matrix_power(A, k) for k in range(horizon + 1)]
    S = np.vstack(powers[1:])
    T = np.zeros((n * horizon, m * horizon))
    for row in range(horizon):
        for column in range(row + 1):
            T[row * n : (row + 1) * n, column * m : (column + 1) * m] = powers[row - column] @ B
    root = np.kron(np.eye(horizon), np.linalg.cholesky(Q).T)
    root[-n:, -n:] = np.linalg.cholesky(P).T
    inputs = np.kron(np.eye(horizon), np.linalg.cholesky(R).T)
    F = np.vstack([root @ T, inputs])
    g = np.concatenate([-root @ S @ x, np.zeros(len(inputs))])
    return S, T, F, g


def within_rows(F: Array, g: Array, rows: Array, room: Array) -> Array | None:
    """Minimize ‖F u - g‖² with rows u <= room by SciPy's SLSQP."""

    def cost(u: Array) -> float:
        return float(np.sum((F @ u - g) ** 2))

    def slope(u: Array) -> Array:
        return 2.0 * F.T @ (F @ u - g)

    found = minimize(
        cost,
        np.zeros(F.shape[1]),
        jac=slope,
        constraints=LinearConstraint(rows, -np.inf, room),
        options={"maxiter": 500},
        tol=1e-14,
        method="SLSQP",
    )
    return np.asarray(found.x) if found.success else None


def test_far_from_limits_it_is_the_regulator() -> None:
    design = fx.lqr(model(), [1.0, 0.1], 0.5)
    controller = fx.ModelPredictiveController(
        "mpc", model(), [1.0, 0.1], 0.5, horizon=3, disturbance_gain=0.0
    )
    ours = closed(controller, 3.0)
    theirs = closed(design.to_block("mpc"), 3.0)
    times = np.linspace(0.0, 3.0, 50)
    assert ours.sample("mass.y", times) == pytest.approx(theirs.sample("mass.y", times), abs=1e-9)
    assert not ours["mpc.iterations"].any()


def test_with_limits_it_is_the_optimum_of_other_solvers() -> None:
    Q, R, N, searched = np.diag([1.0, 2.0, 0.5]), np.diag([0.1, 0.3]), 6, 0
    for seed in range(12):
        found = random_model(seed)
        x = np.random.default_rng(seed + 100).normal(size=3)
        S, T, F, g = condensed(found, Q, R, N, x)
        options: dict[str, Any] = {"horizon": N, "disturbance_gain": 0.0}
        limits: dict[str, Any] = {"input_limits": dict.fromkeys(found.input_names, (-0.4, 0.3))}
        bounded = lsq_linear(F, g, (-0.4, 0.3), method="bvls", tol=1e-14).x
        controller = fx.ModelPredictiveController("mpc", found, Q, R, **limits, **options)
        assert first_inputs(controller, x) == pytest.approx(bounded[:2], abs=1e-6)

        # Changes from zero on, and hard limits of outputs that the first input does not move.
        shown = np.kron(np.eye(N), found.C)
        highest = 1.05 * np.abs(found.C @ found.A @ x).max() + 0.05
        rows = np.vstack([shown @ T, -shown @ T])
        room = np.concatenate([highest - shown @ S @ x, highest + shown @ S @ x])
        change = np.eye(2 * N) - np.eye(2 * N, k=-2)
        rows = np.vstack([rows, change, -change])
        room = np.concatenate([room, np.full(4 * N, 0.5)])
        other = within_rows(F, g, rows, room)
        controller = fx.ModelPredictiveController(
            "mpc",
            found,
            Q,
            R,
            change_limits=dict.fromkeys(found.input_names, 0.5),
            output_limits=dict.fromkeys(found.output_names, (-highest, highest)),
            violation_weight=np.inf,
            **options,
        )
        if other is not None:
            searched += 1
            assert first_inputs(controller, x) == pytest.approx(other[:2], abs=1e-4)
    assert searched >= 6


def test_units_do_not_matter() -> None:
    for weight, start, expected in (
        (None, [0.3, -0.1], 0.5),  # the largest change
        (None, [1.3, 0.1], -0.5),  # beyond a limit, which cannot be kept
        (np.inf, [0.3, 0.25], None),
    ):
        found = []
        for size in (1.0, 1e-9, 1e-6, 1e9):
            controller = fx.ModelPredictiveController(
                "mpc",
                model(),
                [1.0, 0.1],
                0.01,
                horizon=10,
                tracked="y[0]",
                input_limits={"u[0]": (-size, size)},
                change_limits={"u[0]": 0.5 * size},
                output_limits={"y[0]": (-size, size), "y[1]": (-0.3 * size, 0.3 * size)},
                violation_weight=weight,
            )
            u = first_inputs(controller, size * np.array(start), 2.0 * size)
            found.append(float(u) / size)
        assert found == pytest.approx([found[0] if expected is None else expected] * 4, abs=1e-7)

    # A stiff stage with a short period: 100 g on 1e8 N/m, moved by 1 µm with at most 150 N.
    stage = fx.StateSpace("stage", [[0.0, 1.0], [-1e9, -1e3]], [[0.0], [10.0]], np.eye(2))
    context = stage.create_default_context()
    context.set("u", 0.0)
    controller = fx.ModelPredictiveController(
        "mpc",
        fx.linearize(stage, context, period=1e-5),
        largest={"x[0]": 1e-6, "x[1]": 1e-2, "u": 100.0},
        horizon=10,
        tracked="y[0]",
        input_limits={"u": (-150.0, 150.0)},
    )
    builder = fx.DiagramBuilder("loop")
    builder.add_all(fx.Constant("r", 1e-6), controller, stage)
    builder.connect_chain("r", "mpc.reference")
    builder.connect_chain("mpc.u", "stage", "mpc.state")
    result = fx.simulate(builder.build(), 0.01)
    assert result["stage.y"][-1, 0] == pytest.approx(1e-6, rel=1e-6)
    assert result["mpc.u"][-1] == pytest.approx(100.0, rel=1e-6)


def test_outputs_with_feedthrough_keep_limits_up_to_the_end_of_the_horizon() -> None:
    Q, R = np.diag([1.0, 2.0, 0.5]), np.diag([0.1, 0.3])
    searched = set()
    for seed in range(8):
        N = 1 + seed % 3
        rng = np.random.default_rng(seed)
        found = dataclasses.replace(random_model(seed), D=rng.normal(size=(2, 2)))
        x, K = rng.normal(size=3), fx.lqr(found, Q, R).gain
        S, T, F, g = condensed(found, Q, R, N, x)
        before = np.vstack([np.eye(3), S[: 3 * (N - 1)]])
        shown = np.kron(np.eye(N), found.C) @ before @ x
        moved = np.kron(np.eye(N), found.C) @ np.vstack([np.zeros((3, 2 * N)), T[: 3 * (N - 1)]])
        moved += np.kron(np.eye(N), found.D)
        end = found.C - found.D @ K  # with the feedback that follows
        shown = np.concatenate([shown, end @ S[-3:] @ x])
        moved = np.vstack([moved, end @ T[-3:]])
        free = np.linalg.lstsq(F, g, rcond=None)[0]
        highest = 0.9 * np.abs(shown + moved @ free).max()
        rows = np.vstack([moved, -moved])
        other = within_rows(F, g, rows, np.concatenate([highest - shown, highest + shown]))
        controller = fx.ModelPredictiveController(
            "mpc",
            found,
            Q,
            R,
            horizon=N,
            disturbance_gain=0.0,
            output_limits=dict.fromkeys(found.output_names, (-highest, highest)),
            violation_weight=np.inf,
        )
        if other is not None:
            searched.add(N)
            assert first_inputs(controller, x) == pytest.approx(other[:2], abs=1e-4)
    assert searched >= {1, 2}


def test_constant_disturbances_and_wrong_gains_leave_no_error() -> None:
    controller = fx.ModelPredictiveController(
        "mpc", model(), [1.0, 0.1], 0.01, horizon=15, tracked="y[0]", input_limits={"u[0]": (-3, 3)}
    )
    result = closed(controller, 30.0, load=0.7, gain=0.8)
    assert result["mass.y"][-1] == pytest.approx([1.0, 0.0], abs=1e-8)
    without = fx.ModelPredictiveController(
        "mpc", model(), [1.0, 0.1], 0.01, horizon=15, tracked="y[0]", disturbance_gain=0.0
    )
    assert abs(closed(without, 30.0, load=0.7, gain=0.8)["mass.y"][-1, 0] - 1.0) > 0.03


def test_a_reference_out_of_reach_is_approached_as_far_as_limits_allow() -> None:
    controller = fx.ModelPredictiveController(
        "mpc", model(), [1.0, 0.1], 0.01, horizon=15, tracked="y[0]",
        input_limits={"u[0]": (-0.1, 0.1)},
    )  # fmt: skip
    result = closed(controller, 20.0)
    assert result["mass.y"][-1, 0] == pytest.approx(0.1 / 0.2, abs=1e-4)
    assert float(result["mpc.u"][-1]) == pytest.approx(0.1, abs=1e-6)


def test_two_references_out_of_reach_are_approached_by_their_costs() -> None:
    A = np.array([[0, 1, 0, 0], [-2, -0.8, 0.5, 0], [0, 0, 0, 1], [0.4, 0, -3, -0.9]])
    B = np.array([[0, 0], [1, 0.2], [0, 0], [0.1, 2.0]])
    C = np.array([[1.0, 0, 0, 0], [0, 0, 1e3, 0]])  # in different units
    plant = fx.StateSpace("p", A, B, np.vstack([C, np.eye(4)]))
    context = plant.create_default_context()
    context.set("u", [0.0, 0.0])
    Q, R = np.diag([1.0, 0.1, 1.0, 0.1]), np.diag([0.1, 0.1])
    rest = -np.linalg.solve(A, B)
    root = np.linalg.cholesky(rest.T @ Q @ rest + R).T
    gains = C @ rest
    lengths = np.linalg.norm(np.linalg.solve(root.T, gains.T), axis=0)
    for r in ([3.0, 100.0], [-3.0, 2000.0]):
        rows = np.vstack([gains / lengths[:, np.newaxis], 1e-3 * root])
        best = lsq_linear(rows, np.append(r / lengths, [0.0, 0.0]), (-1.0, 1.0), tol=1e-12).x
        controller = fx.ModelPredictiveController(
            "mpc",
            fx.linearize(plant, context, period=0.2),
            Q,
            R,
            horizon=8,
            tracked=["y[0]", "y[1]"],
            input_limits={"u[0]": (-1.0, 1.0), "u[1]": (-1.0, 1.0)},
            change_limits={"u[0]": 0.2},
            delay=1,
        )
        builder = fx.DiagramBuilder("loop")
        builder.add_all(fx.Constant("r", r), controller, copy.deepcopy(plant))
        builder.add(fx.MatrixGain("sensors", np.eye(4, 6, k=2)))
        builder.connect_chain("r", "mpc.reference")
        builder.connect_chain("mpc.u", "p", "sensors", "mpc.state")
        result = fx.simulate(builder.build(), 25.0)
        assert result["mpc.u"][-1] == pytest.approx(best, abs=1e-5)
        assert result["p.y"][-1, :2] == pytest.approx(gains @ best, rel=1e-3)
        assert result["mpc.missed"][-1] == 0.0


def test_soft_limits_of_tracked_outputs_come_before_the_reference() -> None:
    controller = fx.ModelPredictiveController(
        "mpc", model(), [1.0, 0.1], 0.01, horizon=15, tracked="y[0]", violation_weight=1.0,
        output_limits={"y[0]": (-0.4, 0.4)},
    )  # fmt: skip
    result = closed(controller, 20.0)
    assert result["mass.y"][-1] == pytest.approx([0.4, 0.0], abs=1e-6)
    assert result["mpc.violation"][-1] == pytest.approx(0.0, abs=1e-6)


def test_soft_limits_give_way_and_hard_ones_keep_the_previous_plan() -> None:
    options: dict[str, Any] = {"horizon": 5, "disturbance_gain": 0.0}
    limits: dict[str, Any] = {
        "output_limits": {"y[0]": (-0.1, 0.1)},
        "input_limits": {"u[0]": (-1.0, 1.0)},
    }
    soft = fx.ModelPredictiveController("mpc", model(), [1.0, 0.1], 0.5, **limits, **options)
    result = closed(soft, 4.0)
    # The first sample that an input moves is one period later: 0.3 is left by at most 1 N.
    assert 0.19 < result["mpc.violation"].max() < 0.2
    assert result["mpc.missed"][-1] == 0.0
    assert abs(result["mass.y"][-1, 0]) < 0.1
    hard = fx.ModelPredictiveController(
        "mpc", model(), [1.0, 0.1], 0.5, violation_weight=np.inf, **limits, **options
    )
    result = closed(hard, 4.0)
    assert result["mpc.missed"][-1] > 1.0
    assert result["mpc.u"][5] == 0.0  # there is no plan yet but that of the model


def test_a_plan_found_too_late_is_not_used() -> None:
    controller = fx.ModelPredictiveController(
        "mpc", model(), [1.0, 0.1], 0.5, horizon=5, deadline=1e-9
    )
    result = closed(controller, 1.05)
    assert result["mpc.missed"][-1] == 11.0
    assert not result["mpc.u"].any()
    assert len(controller.solve_times) == 11
    assert min(controller.solve_times) > 1e-9


def test_a_delay_of_one_period_is_predicted() -> None:
    K, x = fx.lqr(model(), [1.0, 0.1], 0.5).gain, np.array([0.3, 0.0])
    controller = fx.ModelPredictiveController(
        "mpc", model(), [1.0, 0.1], 0.5, horizon=5, delay=1, disturbance_gain=0.0
    )
    result = closed(controller, 5.5 * PERIOD)
    A, B, u = model().A, model().B, np.zeros(1)
    for k in range(5):
        held = result.sample("mpc.u", [(k + 0.5) * PERIOD])[0]
        assert held == pytest.approx(u, abs=1e-9)
        x = A @ x + B @ u
        u = -K @ x


def test_copies_and_pickles_give_the_same_motion() -> None:
    controller = fx.ModelPredictiveController(
        "mpc", model(), [1.0, 0.1], 0.5, horizon=8, input_limits={"u[0]": (-0.05, 0.05)}
    )
    copies = [copy.deepcopy(controller), pickle.loads(pickle.dumps(controller))]
    expected = closed(controller, 2.0)["mass.y"]
    for each in copies:
        assert np.array_equal(closed(each, 2.0)["mass.y"], expected)


def test_what_needs_equations_names_the_block_that_has_none() -> None:
    controller = fx.ModelPredictiveController("mpc", model(), [1.0, 0.1], 0.5, horizon=5)
    diagram = fx.DiagramBuilder("loop")
    diagram.add_all(controller, fx.Gain("sensors", 1.0, size=2))
    diagram.connect_chain("sensors", "mpc.state")
    diagram.export_input("sensors.u", name="x")
    loop = diagram.build()
    context = loop.create_default_context()
    context.set("x", [0.0, 0.0])
    for attempt in (
        lambda: fx.linearize(loop, context, "x", "mpc.u", period=PERIOD),
        lambda: fx.to_c(loop, context),
        lambda: fx.page(loop, context=context),
    ):
        with pytest.raises(fx.errors.FlexureError, match="'mpc', which solves a quadratic"):
            attempt()


def test_what_cannot_be_controlled_is_refused() -> None:
    good: dict[str, Any] = {"model": model(), "Q": [1.0, 0.1], "R": 0.5, "horizon": 5}
    mass = plant()
    context = mass.create_default_context()
    assert mass.u is not None
    mass.u.fix(context, [0.0, 0.0])
    for changes, text in (
        ({"model": fx.linearize(mass, context)}, "sampled model"),
        ({"horizon": 0}, "horizon"),
        ({"tracked": ["y[0]", "y[1]"]}, "can hold"),
        ({"tracked": "y[1]"}, "can hold"),
        ({"tracked": "z"}, "'z'"),
        ({"input_limits": {"v": (0, 1)}}, "'v'"),
        ({"input_limits": {"u[0]": (1, -1)}}, "higher upper"),
        ({"input_limits": {"u[0]": (np.nan, 1)}}, "higher upper"),
        ({"input_limits": {"u[0]": (0.5, 1)}}, "point of the model"),
        ({"output_limits": {"y[0]": 3.0}}, "lower and"),
        ({"change_limits": {"u[0]": 0.0}}, "change of"),
        ({"violation_weight": -1.0}, "violation_weight"),
        ({"disturbance_gain": 1.5}, "disturbance_gain"),
        ({"delay": 2}, "delay"),
        ({"deadline": 0.0}, "deadline"),
        ({"R": 0.0}, "R"),
    ):
        with pytest.raises(fx.errors.FlexureError, match=r"mpc|regulator") as caught:
            fx.ModelPredictiveController("mpc", **(good | changes))
        assert text in str(caught.value), (changes, str(caught.value))
