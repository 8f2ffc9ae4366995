"""Clocks of tests, and a servo for live runs."""

from __future__ import annotations

import time as wall

import flexure as fx


class OwnClock:
    """A clock that moves when somebody sleeps, or by `pass_by`."""

    def __init__(self) -> None:
        self.time = 100.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds
        wall.sleep(1e-5)  # lets other threads run, as a real clock does

    def pass_by(self, seconds: float) -> None:
        self.time += seconds


def servo(period: float = 0.01) -> fx.Diagram:
    """A sampled controller and its motor, with a step as setpoint."""
    builder = fx.DiagramBuilder("servo")
    builder.add_all(
        fx.Step("target", at=0.05),
        fx.PIDController("pid", period=period, kp=16.0, ki=40.0, kd=1.2),
        fx.TransferFunction("motor", [1.0], [0.1, 1.0, 5.0]),
    )
    builder.connect("target.y", "pid.setpoint")
    builder.connect("pid.u", "motor.u")
    builder.connect("motor.y", "pid.measurement")
    return builder.build()


def lag() -> fx.FirstOrderLag:
    return fx.FirstOrderLag("lag", time_constant=1.0)
