"""Optimal motions: against published optima, second routes, and problems without a solution."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad, solve_bvp
from scipy.optimize import brentq

import flexure as fx
from flexure.diagrams.scalars import Graph
from flexure.diagrams.scalars.expressions.vocabulary import OPERATIONS
from flexure.solvers.design.optimal_motion.casadi_form import casadi_expressions
from flexure.solvers.design.optimal_motion.collocation import Collocation

pytest.importorskip("casadi", reason="optimal motions need the package casadi")

GRAVITY = 9.81


class Equations(fx.LeafSystem):
    """States x with the rates of a function of x and u."""

    def __init__(self, num_states: int, num_inputs: int, rates: Callable[..., Any]) -> None:
        super().__init__("plant")
        self.x = self.declare_continuous_state(z=num_states)
        self.u = self.declare_vector_input("u", num_inputs)
        self.declare_vector_output("speed", 1, lambda context: self.x(context)[1:2] * 1.0)
        self.rates = rates

    def calc_time_derivatives(self, context: Any) -> Any:
        return self.rates(self.x(context), self.u(context))


def from_state(system: fx.System, *state: float) -> dict[str, Any]:
    context = system.create_default_context()
    context.continuous_state = state
    return {"system": system, "context": context}


def mass(scale: float = 1.0) -> Equations:
    return Equations(2, 1, lambda x, u: [x[1], u[0] / scale])


def cart_pole(x: Any, u: Any) -> list[Any]:
    s, c = np.sin(x[1]), np.cos(x[1])
    inertia = fx.array([[1.2, 0.1 * c], [0.1 * c, 0.05]])
    return [
        *x[2:],
        *np.linalg.solve(inertia, fx.array([u[0] + 0.1 * x[3] ** 2 * s, -0.1 * GRAVITY * s])),
    ]


def rocket(x: Any, u: Any) -> list[Any]:
    drag = 310.0 * x[1] ** 2 * np.exp(-500.0 * (x[0] - 1.0))
    return [x[1], (u[0] - drag) / x[2] - 1.0 / x[0] ** 2, -2.0 * u[0]]


def brachistochrone_time() -> float:
    """Time along the cycloid from (0, 0) to (2, 2)."""
    angle = brentq(lambda t: (t - np.sin(t)) / (1.0 - np.cos(t)) - 1.0, 0.1, 6.0)
    return float(angle * np.sqrt(2.0 / (1.0 - np.cos(angle)) / GRAVITY))


def oscillator_cost() -> float:
    """Cost of the oscillator of Van der Pol by the maximum principle, as a boundary problem."""

    def rates(t: Any, y: Any) -> Any:
        a, b, p, q = y
        u = -p / 2.0
        return np.array(
            [
                (1.0 - b**2) * a - b + u,
                a,
                -(2.0 * a + p * (1.0 - b**2) + q),
                -(2.0 * b - p * (2.0 * a * b + 1.0)),
            ]
        )

    def ends(first: Any, last: Any) -> Any:
        return np.array([first[0], first[1] - 1.0, last[2], last[3]])

    t = np.linspace(0.0, 10.0, 200)
    found = solve_bvp(rates, ends, t, np.zeros((4, 200)), tol=1e-8, max_nodes=50_000)
    assert found.success
    density = lambda at: float(np.sum(found.sol(at)[:2] ** 2) + found.sol(at)[2] ** 2 / 4.0)  # noqa: E731
    return float(quad(density, 0.0, 10.0, epsabs=1e-9, limit=500)[0])


def oscillator(x: Any, u: Any) -> list[Any]:
    return [(1.0 - x[1] ** 2) * x[0] - x[1] + u[0], x[0]]


#: By name: the optimum, what is asked for, and what is compared (the cost, unless it says so).
KNOWN: Mapping[str, tuple[float, dict[str, Any]]] = {
    "bang-bang": (  # 2 sqrt(d / a)
        2.0,
        {
            **from_state(mass(), 0.0, 0.0),
            "t_final": (0.5, 6.0),
            "inputs": {"u": (-1.0, 1.0)},
            "end": {"x": [1.0, 0.0]},
            "kind": "hold",
        },
    ),
    "Bryson and Denham": (  # 8 / (9 l), l = 1 / 9
        8.0,
        {
            **from_state(mass(), 0.0, 1.0),
            "t_final": 1.0,
            "inputs": {"u": None},
            "end": {"x": [0.0, -1.0]},
            "path": {"x[0]": (None, 1.0 / 9.0)},
            "cost": {"u": 1.0},
        },
    ),
    "brachistochrone": (
        brachistochrone_time(),
        {
            **from_state(
                Equations(
                    3,
                    1,
                    lambda x, u: [
                        x[2] * np.sin(u[0]),
                        x[2] * np.cos(u[0]),
                        GRAVITY * np.cos(u[0]),
                    ],
                ),
                *(0.0, 0.0, 0.0),
            ),
            "t_final": (0.1, 5.0),
            "inputs": {"u": (0.0, np.pi)},
            "end": {"x[0]": 2.0, "x[1]": 2.0},
        },
    ),
    "Goddard": (  # Dolan, More and Munson: Benchmarking optimization software with COPS
        -1.01283,
        {
            **from_state(Equations(3, 1, rocket), 1.0, 0.0, 1.0),
            "t_final": (0.05, 0.5),
            "inputs": {"u": (0.0, 3.5)},
            "path": {"x[2]": (0.6, 1.0), "x[0]": (1.0, None), "speed": (0.0, None)},
            "end": {"x[2]": 0.6},
            "final_cost": {"x[0]": -1.0},
            "intervals": 80,
        },
    ),
    "Van der Pol": (
        oscillator_cost(),
        {
            **from_state(Equations(2, 1, oscillator), 0.0, 1.0),
            "t_final": 10.0,
            "inputs": {"u": None},
            "cost": {"x": 1.0, "u": 1.0},
            "intervals": 80,
            "method": "radau",
        },
    ),
    "cart and pole": (  # equations and collocation by hand in CasADi, 1000 intervals
        25.136300,
        {
            **from_state(Equations(4, 1, cart_pole), 0.0, 0.0, 0.0, 0.0),
            "t_final": 5.0,
            "inputs": {"u": (-10.0, 10.0)},
            "end": {"x": [0.0, np.pi, 0.0, 0.0]},
            "cost": {"u": 1.0},
            "intervals": 80,
        },
    ),
}


def test_published_problems_have_their_optima_and_replays() -> None:
    for name, (optimum, problem) in KNOWN.items():
        motion = fx.optimal_motion(**problem)
        assert motion.cost == pytest.approx(optimum, rel=1e-4), name
        assert motion.replay_error <= 1e-4, name
        at_end = motion.sample("x", [motion.t_final])[0]
        assert at_end == pytest.approx(motion.states[-1], abs=3e-4), name
        assert motion.outcome == "solved"


def test_scales_are_found_from_micrometers_to_megameters() -> None:
    for length, scale in ((1e-6, 1e-9), (1e6, 1e7)):
        motion = fx.optimal_motion(
            mass(scale),
            None,
            2.0,
            inputs={"u": None},
            end={"x": [length, 0.0]},
            cost={"u": 1.0},
        )
        assert motion.cost == pytest.approx(12.0 * (scale * length) ** 2 / 2.0**3, rel=1e-6)
        assert motion["x"][-1, 0] == pytest.approx(length, rel=1e-4)


def with_source() -> fx.Diagram:
    builder = fx.DiagramBuilder("loop")
    builder.add_all(fx.Step("push", at=1.1, to=0.3), fx.Sum("sum", "++"), fx.Integrator("position"))
    builder.connect("push.y", "sum.u1")
    builder.connect("sum.y", "position.u")
    builder.export_input("sum.u2", name="u")
    return builder.build()


class Prepared(fx.LeafSystem):
    """ẋ = u, where x becomes p at the beginning."""

    def __init__(self) -> None:
        super().__init__("prepared")
        self.p = self.declare_numeric_parameter("p", 0.3)
        self.x = self.declare_continuous_state(z=1)
        self.u = self.declare_vector_input("u", 1)
        self.declare_unrestricted_update(self.begin, fx.diagrams.Initialization())

    def begin(self, context: Any) -> Any:
        return {self.x: [self.p(context)]}

    def calc_time_derivatives(self, context: Any) -> Any:
        return self.u(context)


def test_initialization_updates_set_the_start() -> None:
    motion = fx.optimal_motion(
        Prepared(), None, 1.0, inputs={"u": None}, end={"x": 1.0}, max_refinements=0
    )
    assert motion.states[0] == 0.3
    assert motion.cost == pytest.approx(0.7**2)
    assert motion.replay_error < 1e-9


def test_equations_that_a_copy_does_not_have_are_refused_before_the_search() -> None:
    class Closed(Prepared):
        """Prepared, with a lambda that holds on to the block."""

        def __init__(self) -> None:
            super().__init__()
            self.rate: Any = lambda context: 1.0 * self.u(context)

        def calc_time_derivatives(self, context: Any) -> Any:
            return self.rate(context)

    with pytest.raises(fx.errors.EvaluationError, match=r"reads the original.*Use methods"):
        fx.optimal_motion(Closed(), None, 1.0, inputs={"u": None}, end={"x": 1.0})


def behind(block: fx.System) -> fx.Diagram:
    builder = fx.DiagramBuilder("loop")
    builder.add_all(block, fx.Integrator("position"))
    builder.connect(f"{block.name}.y", "position.u")
    builder.export_input(f"{block.name}.u", name="u")
    return builder.build()


def test_sources_that_jump_are_met_by_the_mesh() -> None:
    end, inputs = {"position.y": 1.0}, {"u": (-1.0, 1.0)}
    motion = fx.optimal_motion(with_source(), None, 3.0, inputs=inputs, end=end)
    assert motion.cost == pytest.approx((1.0 - 0.3 * 1.9) ** 2 / 3.0)
    assert 1.1 in motion.time


def test_problems_without_solution_say_why_and_what_to_do() -> None:
    errors = fx.errors
    reach: dict[str, Any] = {"inputs": {"u": (-1.0, 1.0)}, "end": {"x": [1.0, 0.0]}}
    end = {"inputs": {"u": (-1.0, 1.0)}, "end": {"position.y": 1.0}}
    kink = Equations(2, 1, lambda x, u: [x[1], np.where(u[0] > 0.0, u[0], 2.0 * u[0])])
    relay = Equations(2, 1, lambda x, u: [x[1], np.sign(u[0])])
    cases: list[tuple[Any, Any, dict[str, Any], type[Exception], str]] = [
        (mass(), 1.0, reach, errors.EvaluationError, r"'x\[0\]' at t = 1 s 0.74\d below its bound"),
        (mass(), 3.0, reach | {"path": {"speed": (-0.1, 0.2)}}, errors.EvaluationError, "below"),
        (mass(), 3.0, reach | {"path": {"x[0]": (None, 0.5)}}, errors.EvaluationError, "the end"),
        (mass(), 3.0, reach | {"path": {"x[0]": (0.2, None)}}, errors.EvaluationError, "beginning"),
        (
            mass(),
            1.0,
            {"inputs": {"u": None}, "final_cost": {"x[0]": -1.0}},
            errors.EvaluationError,
            "without bound.*Bound 'u'",
        ),
        (
            arm()[0],
            0.05,
            {"inputs": {"motor": (-1.0, 1.0)}, "end": REST},
            errors.EvaluationError,
            r"'shoulder.angle' at t = 0.05 s",
        ),
        (relay, 3.0, reach, errors.EvaluationError, r"rate of 'x\[1\]', which jumps.*tanh"),
        (behind(fx.Quantizer("q", 0.25)), 3.0, end, errors.EvaluationError, "'q'.*jumps"),
        (behind(fx.ZeroOrderHold("hold", 0.1)), 3.0, end, errors.EvaluationError, "'hold'.*update"),
        (with_source(), (1.0, 3.0), end, errors.ValueRefusedError, "'push'.*1.1 s.*Fix t_final"),
        (mass(), -1.0, reach, errors.ValueRefusedError, "a finite end after 0 s"),
        (mass(), 1.0, reach | {"inputs": {"u": (1.0, -1.0)}}, errors.ValueRefusedError, "low <="),
        (mass(), 1.0, reach | {"inputs": {}}, errors.ValueRefusedError, "at least one"),
        (mass(), 1.0, reach | {"inputs": {"x": None}}, errors.UnknownNameError, "free input"),
        (mass(), 1.0, reach | {"start": {"speed": 1.0}}, errors.ContextError, "speed"),
        (mass(), 1.0, reach | {"cost": {"t_final": 1.0}}, errors.ValueRefusedError, "final_cost"),
        (mass(), 1.0, reach | {"cost": {"u": -1.0}}, errors.ValueRefusedError, "weights >= 0"),
        (mass(), 1.0, reach | {"targets": {"speed": 1.0}}, errors.UnknownNameError, "targets"),
        (mass(), 1.0, reach | {"method": "euler"}, errors.ValueRefusedError, "'radau'"),
        (mass(), 1.0, reach | {"guess": "mine"}, errors.ValueRefusedError, "'simulated'"),
    ]
    for system, t_final, options, kind, text in cases:
        context = system.create_default_context()
        before = context.to_dict()
        with pytest.raises(kind, match=text):
            fx.optimal_motion(system, context, t_final, **options)
        assert context.to_dict() == before
    assert fx.optimal_motion(kink, None, 3.0, **reach).replay_error < 1e-3  # bends are accepted


def test_an_infeasible_motion_comes_with_the_nearest_one() -> None:
    with pytest.raises(fx.errors.EvaluationError) as refusal:
        fx.optimal_motion(mass(), None, 1.0, inputs={"u": (-1.0, 1.0)}, end={"x": [1.0, 0.0]})
    nearest: Any = refusal.value.result  # type: ignore[attr-defined]
    assert nearest.outcome == "failed"
    assert "failed" in repr(nearest)
    assert "NOT SOLVED" in str(nearest)
    with pytest.raises(fx.errors.EvaluationError, match="those of the plan"):
        nearest["x"]


def test_a_replay_that_leaves_the_plan_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="more than the tolerance 0.0001, on 5 intervals"):
        motion = fx.optimal_motion(
            **{**KNOWN["cart and pole"][1], "intervals": 5}, max_refinements=0
        )
    assert motion.replay_error > 1e-4
    assert f"{motion.replay_error:.2g}" in repr(motion)


def arm() -> tuple[fx.Plant, fx.Context]:
    """A horizontal arm with an elastic hinge in its middle."""
    builder = fx.PlantBuilder("arm")
    rod = fx.SpatialInertia.thin_rod(0.5, length=0.4, axis="x")
    inner = builder.add_body("inner", rod, com=(0.2, 0, 0))
    outer = builder.add_body("outer", rod, com=(0.2, 0, 0))
    up = (0, 0, 1)
    shoulder = builder.add_joint(fx.RevoluteJoint("shoulder", builder.world, inner, axis=up))
    middle = builder.add_frame("middle", inner, (0.4, 0, 0))
    flexure = builder.add_joint(fx.RevoluteJoint("flexure", middle, outer, axis=up))
    builder.add_force_element(fx.JointSpring("spring", flexure, stiffness=6.0, damping=0.01))
    builder.add_actuator("motor", shoulder)
    plant = builder.build()
    return plant, plant.create_default_context()


REST = {"shoulder.angle": 1.0, "shoulder.rate": 0.0, "flexure.angle": 0.0, "flexure.rate": 0.0}


@pytest.mark.full
def test_a_compliant_plant_comes_to_rest_when_a_block_plays_its_inputs() -> None:
    plant, context = arm()
    problem: dict[str, Any] = {"inputs": {"motor": (-3.0, 3.0)}, "end": REST, "intervals": 20}
    variants: list[dict[str, Any]] = [{}, {"kind": "hold"}, {"method": "radau", "kind": "hold"}]
    for more in variants:
        motion = fx.optimal_motion(plant, context, 0.8, **problem, **more)
        twin, _ = arm()
        builder = fx.DiagramBuilder("bench")
        builder.add_all(twin, motion.to_block("plan", signals="shoulder.angle"))
        builder.connect("plan.motor", "arm.motor")
        run = fx.simulate(builder.build(), 1.2, rtol=1e-10, atol=1e-12)
        for path, value in REST.items():
            assert run.sample(f"arm.{path}", [0.8])[0] == pytest.approx(value, abs=1e-4), more
        energy = run.sample("arm.spring.stored_energy", [0.4, 0.8])
        assert energy[1] < 1e-6 * energy[0]
        assert run.sample("plan.angle", motion.time)[::5] == pytest.approx(
            motion["shoulder.angle"][::5], abs=1e-6
        )


@pytest.mark.full
def test_guesses_of_all_kinds_lead_to_the_same_motion() -> None:
    plant, context = arm()
    context.set("motor", 0.5)
    problem: dict[str, Any] = {"inputs": {"motor": (-3.0, 3.0)}, "end": REST, "intervals": 20}
    first = fx.optimal_motion(plant, context, 0.8, **problem)
    for guess in ("simulated", first, fx.simulate(plant, 0.8, context=context)):
        again = fx.optimal_motion(plant, context, 0.8, guess=guess, **problem)
        assert again.cost == pytest.approx(first.cost, rel=1e-6)
    assert first.inputs["motor"].shape == first.time.shape
    pair = Equations(2, 2, lambda x, u: [x[1], u[0]])
    both = fx.optimal_motion(pair, None, 1.0, inputs={"u": None}, end={"x": [1.0, 0.0]})
    one: dict[str, Any] = {"inputs": {"u[0]": None}, "end": {"x": [1.0, 0.0]}, "guess": both}
    with pytest.raises(fx.errors.ValueRefusedError, match=r"the same inputs, 'u\[0\]'"):
        fx.optimal_motion(pair, None, 1.0, **one)


def test_costs_follow_targets_and_ends() -> None:
    """Against the equation of Riccati for a mass, and the closed form of a kick."""
    problem = from_state(mass(), 1.0, 0.0) | {"inputs": {"u": None}, "intervals": 60}
    weights = {"x[0]": 1.0, "u": 1.0}
    regulated = fx.optimal_motion(**problem, t_final=15.0, cost=weights)
    assert regulated.cost == pytest.approx(np.sqrt(2.0), rel=1e-4)  # P[0, 0], T to infinity
    moved = from_state(mass(), 0.0, 0.0) | {"inputs": {"u": None}, "intervals": 60}
    tracked = fx.optimal_motion(**moved, t_final=15.0, cost=weights, targets={"x[0]": -1.0})
    assert tracked.cost == pytest.approx(regulated.cost, rel=1e-4)
    # min u^2 over 1 s less 3 v(1): u = 3/2, cost 9/4 - 9/2.
    kicked = fx.optimal_motion(
        **moved, t_final=1.0, cost={"u": 1.0}, final_cost={"speed": -3.0}, start={"x[0]": None}
    )
    assert kicked.cost == pytest.approx(-2.25, rel=1e-6)
    system = moved["system"]
    force, speed = system.input_port("u"), system.output_port("speed")
    by_handle = moved | {"inputs": {force: None}}
    same = fx.optimal_motion(**by_handle, t_final=1.0, cost={force: 1.0}, final_cost={speed: -3.0})
    assert same.cost == pytest.approx(-2.25, rel=1e-6)


def test_a_rotation_of_a_free_body_is_planned_on_quaternions() -> None:
    builder = fx.PlantBuilder("craft", gravity=(0, 0, 0))
    hub = builder.add_body("hub", fx.SpatialInertia.solid_sphere(10.0, radius=0.5))
    builder.add_joint(fx.QuaternionFloatingJoint("free", builder.world, hub))
    builder.add_external_force("jets", hub)
    plant, half = builder.build(), 0.75
    end = {
        f"tree.x[free_{name}]": value
        for name, value in {
            **dict.fromkeys(("qx", "qy", "x", "y", "z", "wx", "wy", "wz", "vx", "vy", "vz"), 0.0),
            "qw": np.cos(half),
            "qz": np.sin(half),
        }.items()
    }
    motion = fx.optimal_motion(plant, None, 2.0, inputs={"jets": (-50.0, 50.0)}, end=end)
    inertia = 0.4 * 10.0 * 0.5**2
    assert motion.cost == pytest.approx(12.0 * (2.0 * half * inertia) ** 2 / 2.0**3, rel=1e-4)
    assert motion.replay_error <= 1e-4


@pytest.mark.full
def test_loops_are_projected_at_the_ends_of_intervals() -> None:
    builder = fx.PlantBuilder("linkage", gravity=(0, 0, 0))
    bars = {}
    for name in ("crank", "coupler", "rocker"):
        rod = fx.SpatialInertia.thin_rod(1.0, length=0.5, axis="x")
        bars[name] = builder.add_body(name, rod, com=(0.25, 0, 0))
    axis: Any = {"axis": (0, 0, 1)}
    foot = builder.add_frame("foot", builder.world, (0.5, 0, 0))
    tips = {name: builder.add_frame(f"tip_{name}", bar, (0.5, 0, 0)) for name, bar in bars.items()}
    shaft = builder.add_joint(fx.RevoluteJoint("shaft", builder.world, bars["crank"], **axis))
    builder.add_joint(fx.RevoluteJoint("knee", tips["crank"], bars["coupler"], **axis))
    builder.add_joint(fx.RevoluteJoint("pivot", foot, bars["rocker"], **axis))
    pin = fx.RevoluteJoint("pin", tips["coupler"], tips["rocker"], **axis)
    builder.add_loop_joint(pin)
    builder.add_actuator("motor", shaft)
    plant = builder.build()
    context = plant.create_default_context()
    context.set("shaft.angle", 1.5)
    context.set("knee.angle", -1.5)
    context.set("pivot.angle", 1.5)
    motion = fx.optimal_motion(
        plant,
        context,
        1.0,
        inputs={"motor": (-50.0, 50.0)},
        end={"shaft.angle": 2.0, "shaft.rate": 0.0},
        intervals=10,
    )
    assert motion.replay_error <= 1e-4
    assert motion["pivot.angle"] == pytest.approx(motion["shaft.angle"], abs=1e-4)


@pytest.mark.full
def test_an_interruption_keeps_the_best_motion_so_far() -> None:
    """In a process of its own, which interrupts itself after some iterations."""
    script = """
    import os, signal, sys, threading
    sys.path.insert(0, {folder!r})
    from test_optimal_motion import KNOWN, fx
    from flexure.solvers.simulation.run_control import progress_bar

    calls = []
    def update(self, now, failed=0):
        calls.append(now)
        if len(calls) == 8:
            os.kill(os.getpid(), signal.SIGINT)
    progress_bar.ProgressBar.update = update
    problem = KNOWN["cart and pole"][1]
    try:
        fx.optimal_motion(**problem)
    except KeyboardInterrupt as stop:
        print(stop.result.outcome, stop.result.iterations < 20, stop.result.states.shape)
    """
    folder = str(Path(__file__).parent)
    code = textwrap.dedent(script).format(folder=folder)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=100
    )
    assert done.stdout.split("\n")[0] == "interrupted True (81, 4)"


def test_the_points_of_a_method_integrate_polynomials_exactly() -> None:
    for method, count, degree in (
        ("hermite_simpson", 3, 3),
        ("hermite_simpson", 5, 7),
        ("radau", 3, 4),
        ("radau", 5, 8),
    ):
        made = Collocation(method, count, "linear", np.array([0.0, 1.0]))
        for power in range(degree + 1):
            exact = 1.0 / (power + 1.0)
            assert made.weights[-1] @ made.stages**power == pytest.approx(exact), (method, power)
    simpson = Collocation("hermite_simpson", 3, "linear", np.array([0.0, 1.0]))
    assert simpson.weights[-1] == pytest.approx([1 / 6, 4 / 6, 1 / 6])


def test_operations_have_the_numbers_of_numpy_in_casadi() -> None:
    ca: Any = pytest.importorskip("casadi")
    rng, wrong = np.random.default_rng(1), []
    for name, operation in OPERATIONS.items():
        graph = Graph()
        symbols = [graph.input(k) for k in range(operation.nin)]
        truths = name.startswith("logical")
        traced = graph.record(name, *[each > 0.5 for each in symbols] if truths else symbols)
        scalars = [ca.SX.sym(f"x{k}") for k in range(operation.nin)]
        found = ca.Function(
            "f", scalars, [casadi_expressions(ca, [traced], dict(enumerate(scalars)))]
        )
        for _ in range(20):
            values = rng.uniform(0.05, 0.95, operation.nin)
            values = values + 1.0 if name == "arccosh" else values
            given = values > 0.5 if truths else values
            if float(found(*values)) != pytest.approx(float(operation(*given)), rel=1e-12):
                wrong.append(name)
    assert wrong == []


def test_without_casadi_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "casadi", None)
    with pytest.raises(fx.errors.MissingExtraError, match=r"flexure\[optimal\]"):
        fx.optimal_motion(mass(), None, 1.0, inputs={"u": None})


@pytest.mark.full
def test_bounds_of_ports_hold_in_the_replay_of_a_fastest_motion() -> None:
    plant, context = arm()
    limit = 0.02
    problem: dict[str, Any] = {"inputs": {"motor": (-3.0, 3.0)}, "end": REST, "intervals": 30}
    fast = fx.optimal_motion(plant, context, (0.2, 2.0), **problem)
    gentle = fx.optimal_motion(
        plant, context, (0.2, 2.0), path={"spring.stored_energy": (None, limit)}, **problem
    )
    assert np.max(fast["spring.stored_energy"]) > limit
    assert np.max(gentle["spring.stored_energy"]) == pytest.approx(limit, rel=1e-2)
    assert fast.t_final < gentle.t_final < 2.0
    assert np.max(np.abs(fast.inputs["motor"])) <= 3.0 + 1e-6
