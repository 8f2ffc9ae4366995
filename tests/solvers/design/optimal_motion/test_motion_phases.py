"""Optimal motions through state events, against closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize, minimize_scalar

import flexure as fx

pytest.importorskip("casadi", reason="optimal motions need the package casadi")

GRAVITY = 9.81


class Ball(fx.LeafSystem):
    """A ball that a force pushes sideways; it loses a fifth of its speed at each bounce."""

    def __init__(self, stored: float = 0.0) -> None:
        super().__init__("ball")
        self.x = self.declare_continuous_state(q=2, v=2, default=[0.0, 1.0, 0.0, 0.0])
        self.u = self.declare_vector_input("u", 1)
        self.drag = self.declare_discrete_state("drag", [0.0])
        self.declare_unrestricted_update(self.bounce, fx.diagrams.Witness(self.height, "falling"))
        self.stored = stored

    def height(self, context: Any) -> Any:
        return self.x(context)[1]

    def calc_time_derivatives(self, context: Any) -> Any:
        x = self.x(context)
        return [x[2], x[3], self.u(context)[0] - self.drag(context)[0] * x[2], -GRAVITY]

    def bounce(self, context: Any) -> Any:
        x = self.x(context)
        drag = self.drag(context) + 0.5 + self.stored * x[2]
        return {self.x: [x[0], 0.0, x[2], -0.8 * x[3]], self.drag: drag}


class Hopper(fx.LeafSystem):
    """A mass on a massless leg with a spring, along which a force acts while it stands."""

    def __init__(self) -> None:
        super().__init__("hopper")
        self.x = self.declare_continuous_state(q=1, v=1, default=[1.5, 0.0])
        self.u = self.declare_vector_input("u", 1)
        self.stance = self.declare_discrete_state("stance", [0.0])
        self.declare_unrestricted_update(self.land, fx.diagrams.Witness(self.length, "falling"))
        self.declare_discrete_update(self.lift, fx.diagrams.Witness(self.length, "rising"))

    def length(self, context: Any) -> Any:
        return self.x(context)[0] - 1.0

    def calc_time_derivatives(self, context: Any) -> Any:
        x, leg = self.x(context), 400.0 * (1.0 - self.x(context)[0]) + self.u(context)[0]
        return [x[1], self.stance(context)[0] * leg - GRAVITY]

    def land(self, context: Any) -> Any:
        x = self.x(context)
        return {self.x: [x[0], 0.9 * x[1]], self.stance: [1.0]}

    def lift(self, context: Any) -> Any:
        return {self.stance: [0.0]}


def test_a_hop_has_modes_in_flight_and_on_the_ground() -> None:
    """Against the least effort of a linear system, by its Gramian, over the time on the ground."""
    hopper = Hopper()
    context = hopper.create_default_context()
    hopper.u.fix(context, 0.0)
    hop = fx.optimal_motion(
        hopper,
        context,
        (0.5, 1.5),
        inputs={"u": (-200.0, 200.0)},
        end={"x[0]": 1.6, "x[1]": 0.0},
        cost={"u": 1.0},
        guess=fx.simulate(hopper, 0.8, context=context),
        intervals=15,
    )
    omega, sag = np.sqrt(400.0), GRAVITY / 400.0
    begin = np.array([sag, -0.9 * np.sqrt(GRAVITY)])  # about the equilibrium, y = 1 - sag
    leave = np.array([sag, np.sqrt(2.0 * 0.6 * GRAVITY)])

    def effort(time: float) -> float:
        def turned(t: float) -> Any:
            s, c = np.sin(omega * t), np.cos(omega * t)
            return np.array([[c, s / omega], [-omega * s, c]])

        pushed = lambda t, i, j: turned(t)[i, 1] * turned(t)[j, 1]  # noqa: E731
        gramian = [[quad(pushed, 0.0, time, (i, j))[0] for j in (0, 1)] for i in (0, 1)]
        miss = leave - turned(time) @ begin
        return float(miss @ np.linalg.solve(gramian, miss))

    least = minimize_scalar(effort, (0.15, 0.17, 0.2))
    land, lift = hop.event_times
    assert hop.cost == pytest.approx(least.fun, rel=1e-4)  # inputs are straight lines
    assert land == pytest.approx(np.sqrt(2.0 * 0.5 / GRAVITY), rel=1e-8)
    assert lift - land == pytest.approx(least.x, rel=1e-4)
    assert hop.replay_error <= 1e-4


def slider() -> fx.Plant:
    builder = fx.PlantBuilder("slider", gravity=(0, 0, 0))
    box = builder.add_body("box", fx.SpatialInertia.solid_box(1.0, size=(0.1, 0.1, 0.1)))
    track = builder.add_joint(fx.PrismaticJoint("track", builder.world, box, axis=(1, 0, 0)))
    builder.add_constraint(fx.RigidStop("stop", track, upper=0.5, restitution=0.5))
    builder.add_actuator("motor", track)
    return builder.build()


def test_motions_pass_through_the_events_of_their_guess() -> None:
    """Against closed forms: a throw that bounces, and two moves that an impact joins."""
    ball = Ball()
    context = ball.create_default_context()
    ball.u.fix(context, 0.5)
    run = fx.simulate(ball, 1.0, context=context)
    # With drag 1/2 behind the bounce, u = λ before it, and λ e^(-(1 - t)/2) behind.
    fall = np.sqrt(2.0 / GRAVITY)
    rest = 1.0 - fall
    end = {"x[0]": 1.0}
    thrown = fx.optimal_motion(ball, context, 1.0, inputs={"u": None}, end=end, guess=run)
    reach = 2.0 * (1.0 - np.exp(-0.5 * rest))
    gain = quad(lambda t: (fall - t + reach) ** 2, 0.0, fall)[0]
    gain += quad(lambda t: (2.0 * (1.0 - np.exp(-0.5 * (1.0 - t)))) ** 2, fall, 1.0)[0]
    assert thrown.cost == pytest.approx(1.0 / gain, rel=1e-6)
    assert thrown.event_times == pytest.approx([fall], rel=1e-9)
    # A throw upward that bounces and is at a height at the end.
    aim: dict[str, Any] = {"start": {"x[3]": None}, "end": {"x[0]": 1.0, "x[1]": 0.7}}
    high = fx.optimal_motion(ball, context, 1.0, inputs={"u": None}, guess=thrown, **aim)
    assert high.replay_error <= 1e-4
    up, (met,) = high.states[0, 3], high.event_times
    assert 1.0 + up * met - 0.5 * GRAVITY * met**2 == pytest.approx(0.0, abs=1e-6)
    bounced, later = 0.8 * (GRAVITY * met - up), 1.0 - met
    assert bounced * later - 0.5 * GRAVITY * later**2 == pytest.approx(0.7, abs=1e-6)

    plant = slider()
    context = plant.create_default_context()
    context.set("motor", 4.0)
    run = fx.simulate(plant, 0.6, context=context)
    end = {"track.translation": 0.2, "track.rate": 0.0}

    def effort(d: float, v: float, w: float, time: float) -> float:
        square = 4.0 * (v * v + v * w + w * w) / time
        return square - 12.0 * d * (v + w) / time**2 + 12.0 * d * d / time**3

    def whole(z: Any) -> float:
        return effort(0.5, 0.0, z[0], z[1]) + effort(-0.3, -0.5 * z[0], 0.0, 1.0 - z[1])

    least = minimize(whole, [1.0, 0.5], method="Nelder-Mead", options={"fatol": 1e-12})
    struck = fx.optimal_motion(plant, context, 1.0, inputs={"motor": None}, end=end, guess=run)
    assert struck.cost == pytest.approx(least.fun, rel=1e-6)
    assert struck.event_times == pytest.approx(least.x[1:], abs=1e-4)
    assert struck.replay_error <= 1e-4
    assert np.all(np.diff(struck.time) > 0.0)
    assert struck["track.rate"][-1] == pytest.approx(0.0, abs=1e-4)


def test_events_without_a_known_sequence_are_refused() -> None:
    reach: dict[str, Any] = {"inputs": {"u": (-4.0, 4.0)}, "end": {"x[0]": 1.0}}
    with pytest.raises(fx.errors.EvaluationError, match=r"'ball'.*update.*guess='simulated'"):
        fx.optimal_motion(Ball(), None, 1.0, **reach)
    with pytest.raises(fx.errors.EvaluationError, match=r"'ball.bounce', which stores.*rate is"):
        fx.optimal_motion(Ball(stored=1.0), None, 1.0, guess="simulated", **reach)
    # One bounce allows 1.17 s at most; to begin and end at rest takes longer.
    stop: dict[str, Any] = {"inputs": {"u": (-2.0, 2.0)}, "end": {"x[0]": 1.0, "x[2]": 0.0}}
    with pytest.raises(fx.errors.EvaluationError, match=r"at t = 1.17\d s 0.\d+ (above|below)"):
        fx.optimal_motion(Ball(), None, (0.5, 1.5), guess="simulated", **stop)
