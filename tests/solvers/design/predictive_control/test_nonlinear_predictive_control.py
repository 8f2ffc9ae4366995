"""Nonlinear predictive control: the optimum of other solvers, limits, disturbances and refusals."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import expm
from scipy.optimize import lsq_linear, minimize

import flexure as fx

for package in ("casadi", "piqp"):
    pytest.importorskip(package, reason="needs the extra optimal")

Array = NDArray[np.float64]


def pendulum(name: str, mass: float = 1.0) -> fx.Plant:
    """Return a hanging rod of 0.4 m with a motor."""
    plant = fx.PlantBuilder(name, gravity=(0.0, 0.0, -9.81))
    rod = fx.SpatialInertia.solid_box(mass, size=(0.02, 0.02, 0.4))
    link = plant.add_body("link", rod, com=(0.0, 0.0, -0.2))
    pin = fx.RevoluteJoint("pin", plant.world, link, axis=(0, 1, 0), damping=0.05)
    plant.add_actuator("motor", plant.add_joint(pin))
    return plant.build()


def controller(**changes: Any) -> fx.NonlinearPredictiveController:
    """Return a controller of the angle."""
    options: dict[str, Any] = {
        "period": 0.05,
        "horizon": 15,
        "inputs": {"motor": (-3.0, 3.0)},
        "cost": {"pin.angle": 1.0, "motor": 0.01},
        "targets": {"pin.angle": 1.0},
        "disturbance_gain": 0.0,
    }
    return fx.NonlinearPredictiveController(
        "mpc", **({"model": pendulum("model")} | options | changes)
    )


def closed(
    block: fx.NonlinearPredictiveController, t_final: float, mass: float = 1.0
) -> fx.results.SimulationResult:
    """Return the loop around a pendulum of another mass, with the reference 1 if there is one."""
    builder = fx.DiagramBuilder("loop")
    builder.add_all(block, pendulum("arm", mass), fx.Multiplexer("x", [1, 1]))
    builder.connect_chain("mpc.u", "arm.motor")
    builder.connect("arm.pin.angle", "x.u1")
    builder.connect("arm.pin.rate", "x.u2")
    builder.connect("x.y", "mpc.state")
    if block.reference is not None:
        builder.connect(builder.add(fx.Constant("r", 1.0)).y, block.reference)
    return fx.simulate(builder.build(), t_final)


def first_plan(block: fx.NonlinearPredictiveController, x: Array) -> Array:
    """Return the inputs that the first sample plans, shape (N, m)."""
    builder = fx.DiagramBuilder("once")
    builder.add_all(fx.Constant("x", x), block)
    builder.connect_chain("x", "mpc.state")
    end = fx.simulate(builder.build(), 0.01).context
    plan = np.array(end.get("mpc.plan"))
    m = len(block.input_names)
    return plan[: (len(plan) - len(x)) // (m + len(x)) * m].reshape(-1, m)


def test_the_plan_of_a_linear_plant_is_that_of_a_bounded_least_squares_problem() -> None:
    rng = np.random.default_rng(3)
    for _ in range(5):
        A, B = rng.normal(size=(3, 3)), rng.normal(size=(3, 2))
        x, N, T = rng.normal(size=3), 6, 0.1
        block = fx.NonlinearPredictiveController(
            "mpc",
            fx.StateSpace("model", A, B, np.eye(3)),
            period=T,
            horizon=N,
            inputs={"u": (-0.5, 0.5)},
            cost={"y": 2.0},
            change_cost={"u": 0.1},
            final_weight=0.3,
            substeps=8,
        )
        both = expm(T * np.block([[A, B], [np.zeros((2, 5))]]))
        F, G = both[:3, :3], both[:3, 3:]
        rows, known, state, effect = [], [], x, np.zeros((3, 2 * N))
        for k in range(N + 1):
            weight = np.sqrt(2.0 * (T if k < N else 0.3))
            rows.append(weight * effect)
            known.append(-weight * state)
            if k < N:
                effect, state = F @ effect, F @ state
                effect[:, 2 * k : 2 * k + 2] += G
        rows.append(np.sqrt(0.1) * (np.eye(2 * N) - np.eye(2 * N, k=-2)))
        known.append(np.zeros(2 * N))
        expected = lsq_linear(np.vstack(rows), np.concatenate(known), (-0.5, 0.5), method="bvls").x
        assert first_plan(block, x).ravel() == pytest.approx(expected, abs=1e-6)


def test_the_plan_of_a_pendulum_is_that_of_equations_by_hand() -> None:
    N, T, steps = 15, 0.05, 4
    inertia, moment = 0.4**2 / 12 + 0.02**2 / 12 + 0.2**2, 9.81 * 0.2

    def rates(x: Array, u: float) -> Array:
        return np.array([x[1], (u - moment * np.sin(x[0]) - 0.05 * x[1]) / inertia])

    def cost(inputs: Array) -> float:
        x, total = np.array([0.4, -1.0]), 0.0
        for u in inputs:
            total += T * ((x[0] - 1.0) ** 2 + 0.01 * u**2)
            for _ in range(steps):
                h = T / steps
                a = rates(x, u)
                b = rates(x + 0.5 * h * a, u)
                c = rates(x + 0.5 * h * b, u)
                d = rates(x + h * c, u)
                x = x + h / 6.0 * (a + 2.0 * b + 2.0 * c + d)
        return float(total + 0.5 * ((x[0] - 1.0) ** 2 + 0.01 * inputs[-1] ** 2))

    found = first_plan(controller(substeps=steps, final_weight=0.5), np.array([0.4, -1.0])).ravel()
    assert np.max(np.abs(found)) == pytest.approx(3.0)
    best = minimize(cost, found, bounds=[(-3.0, 3.0)] * N, tol=1e-14)
    assert cost(found) <= cost(best.x) * (1.0 + 1e-7)
    assert found == pytest.approx(best.x, abs=2e-3)


def test_a_light_pendulum_has_the_plan_of_a_heavy_one() -> None:
    plans = []
    for size in (1.0, 1e-9):
        plant = fx.PlantBuilder("model", gravity=(0.0, 0.0, -9.81))
        rod = fx.SpatialInertia.solid_box(size, size=(0.02, 0.02, 0.4))
        link = plant.add_body("link", rod, com=(0.0, 0.0, -0.2))
        pin = fx.RevoluteJoint("pin", plant.world, link, axis=(0, 1, 0), damping=0.05 * size)
        plant.add_actuator("motor", plant.add_joint(pin))
        block = controller(
            model=plant.build(),
            horizon=5,
            inputs={"motor": (-3.0 * size, 3.0 * size)},
            cost={"pin.angle": 1.0, "motor": 0.01 / size**2},
        )
        plans.append(first_plan(block, np.array([0.4, -1.0])) / size)
    assert plans[1] == pytest.approx(plans[0], abs=1e-5)


def test_the_plan_follows_a_disturbance_of_the_model_in_time() -> None:
    builder = fx.DiagramBuilder("model")
    builder.add_all(
        fx.Sine("load", amplitude=1.0, frequency=3.0),
        fx.Sum("sum"),
        fx.StateSpace("mass", [[0.0, 1.0], [-1.0, -0.1]], [[0.0], [1.0]], np.eye(2)),
        fx.Gain("motor", 1.0),
    )
    builder.connect("motor.y", "sum.u1")
    builder.connect("load.y", "sum.u2")
    builder.connect_chain("sum", "mass")
    builder.export_input("motor.u", name="f")
    builder.export_output("mass.y", name="y")
    model, N, T, begin = builder.build(), 5, 0.1, 0.7
    context = model.create_default_context()
    context.set("load.amplitude", 2.0)
    block = fx.NonlinearPredictiveController(
        "mpc",
        model,
        period=T,
        horizon=N,
        inputs={"f": (-1.0, 5.0)},
        cost={"y": 1.0, "f": 0.01},
        context=context,
        substeps=8,
        offset=begin,
    )
    x = np.array([0.3, 0.0])
    loop = fx.DiagramBuilder("once")
    loop.add_all(fx.Constant("x", x), block)
    loop.connect_chain("x", "mpc.state")
    found = fx.simulate(loop.build(), begin + 0.01).context.get("mpc.plan")[:N]

    # By the response to each input, and to sin = Im exp as states of the model.
    A = np.zeros((5, 5))
    A[:2] = [[0.0, 1.0, 0.0, 0.0, 0.0], [-1.0, -0.1, 1.0, 2.0, 0.0]]
    A[3:] = [[0.0, 0.0, 0.0, 0.0, 3.0], [0.0, 0.0, 0.0, -3.0, 0.0]]
    F, rows, known = expm(T * A), [], []
    state = np.array([*x, 0.0, np.sin(3.0 * begin), np.cos(3.0 * begin)])
    effect = np.zeros((5, N))
    for k in range(N):
        rows.append(effect[:2].copy())
        known.append(-state[:2])
        effect[2] = np.eye(N)[k]
        effect, state = F @ effect, F @ state
    rows.append(0.1 * np.eye(N))
    known.append(np.zeros(N))
    best = lsq_linear(np.vstack(rows), np.concatenate(known), (-1.0, 5.0), method="bvls").x
    assert found == pytest.approx(best, abs=1e-4)


def test_signals_keep_their_limits() -> None:
    limited = closed(controller(path={"pin.rate": (-2.0, 2.0)}, change_limits={"motor": 0.7}), 1.0)
    free = closed(controller(), 1.0)
    assert np.max(free["arm.pin.rate"]) > 3.0
    assert np.max(limited["arm.pin.rate"]) < 2.02
    held = limited.sample("mpc.u", np.arange(20) * 0.05 + 0.025)
    assert np.max(np.abs(np.diff(held, axis=0))) < 0.7 + 1e-6
    assert limited["mpc.missed"][-1] == 0.0


def test_a_heavier_arm_reaches_the_reference() -> None:
    block = controller(
        cost={"pin.angle": 1.0},
        targets=None,
        tracked="pin.angle",
        change_cost={"motor": 1e-3},
        disturbance_gain=0.3,
    )
    assert closed(block, 6.0, mass=1.2)["arm.pin.angle"][-1] == pytest.approx(1.0, abs=1e-6)


def test_copies_and_pickles_give_the_same_motion() -> None:
    block = controller()
    copies = [copy.deepcopy(block), pickle.loads(pickle.dumps(block))]
    expected = closed(block, 0.5)["arm.pin.angle"]
    for each in copies:
        assert np.array_equal(closed(each, 0.5)["arm.pin.angle"], expected)


def test_a_delay_waits_one_sample_and_late_plans_are_not_used() -> None:
    delayed = closed(controller(delay=1), 0.5)
    assert delayed.sample("mpc.u", [0.02])[0] == 0.0
    assert delayed.sample("mpc.u", [0.07])[0] != 0.0
    late = closed(controller(deadline=1e-9), 0.52)
    assert late["mpc.missed"][-1] == 11.0
    assert not late["mpc.u"].any()
    late = closed(controller(path={"motor": (1.0, 2.0)}, deadline=1e-9), 0.02)
    assert late["mpc.u"][-1] == 1.0


def test_what_cannot_be_planned_is_refused() -> None:
    ball = fx.PlantBuilder("ball")
    body = ball.add_body("body", fx.SpatialInertia.solid_sphere(1.0, radius=0.1))
    ball.add_joint(fx.QuaternionFloatingJoint("free", ball.world, body))
    relay = fx.Relay("relay", 0.1, -0.1)
    sampled = fx.ZeroOrderHold("hold", 0.1)
    for changes, text in (
        ({"horizon": 0}, "horizon"),
        ({"period": 0.0}, "period"),
        ({"steps": 0}, "steps"),
        ({"inputs": {}}, "input"),
        ({"inputs": {"engine": None}}, "engine"),
        ({"cost": {"pin.angles": 1.0}}, "pin.angles"),
        ({"cost": {"pin.angle": -1.0}}, "weights >= 0"),
        ({"tracked": "pin.rate"}, "pin.rate"),
        ({"change_cost": {"engine": 1.0}}, "engine"),
        ({"change_limits": {"motor": np.nan}}, "change_limits"),
        ({"final_weight": -1.0}, "final_weight"),
        ({"violation_weight": np.nan}, "violation_weight"),
        ({"model": relay, "inputs": {"u": None}, "cost": {"y": 1.0}}, "relay"),
        ({"model": sampled, "inputs": {"u": None}, "cost": {"y": 1.0}}, "hold"),
        ({"model": ball.build(), "inputs": {}, "cost": {}}, "input"),
    ):
        with pytest.raises(fx.errors.FlexureError, match=r"^Cannot ") as caught:
            controller(**({"targets": None} | changes))
        assert text in str(caught.value), (changes, str(caught.value))
