"""Optimal motions: against published optima, second routes, and problems without a solution."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad, solve_bvp
from scipy.optimize import brentq

import flexure as fx
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
        (mass(), 1.0, reach | {"targets": {"u": 1.0}}, errors.UnknownNameError, "targets"),
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
    with pytest.warns(UserWarning, match="more than the tolerance 0.0001 on 5 intervals"):
        motion = fx.optimal_motion(
            **{**KNOWN["cart and pole"][1], "intervals": 5}, max_refinements=0
        )
    assert motion.replay_error > 1e-4
    assert f"{motion.replay_error:.2g}" in repr(motion)
