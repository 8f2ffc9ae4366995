"""Margins at several wires, synthesis, and an extended Kalman filter, with bars and beside others.

Times are medians of several calls, in CPU time. A comparison needs python-control (with slycot for
the synthesis) and filterpy (``pip install control slycot filterpy``); one that is missing is left
out, with a word.

    python benchmarks/control/control_engineering.py
    python benchmarks/control/control_engineering.py --quick
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy import signal

import flexure as fx

AXES = [(0, 0, 1), (0, 1, 0), (0, 1, 0), (1, 0, 0), (0, 1, 0), (1, 0, 0)]


def seconds(call: Callable[[], object], rounds: int) -> float:
    """Return the median of the CPU time of calls, after a first one."""
    call()
    times = []
    for _ in range(rounds):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return statistics.median(times)


def show(what: str, value: float, unit: str, bar: float, *, most: bool = True) -> None:
    """Print a figure beside its bar."""
    fits = value <= bar if most else value >= bar
    print(f"{what:52} {value:9.4g} {unit:12} bar {bar:g}: {'met' if fits else 'MISSED'}")


# Margins of an arm with six axes ------------------------------------------------------------------


def arm() -> fx.Plant:
    """Return an arm with six axes and a motor at each."""
    plant = fx.PlantBuilder("arm", gravity=(0.0, 0.0, 0.0))
    end: Any = plant.world
    for k, axis in enumerate(AXES, start=1):
        length = 0.45 / k**0.5
        rod = fx.SpatialInertia.solid_box(8.0 / k, size=(length, 0.08, 0.08))
        link = plant.add_body(f"link{k}", rod, com=(length / 2, 0.02, 0.01))
        joint = plant.add_joint(fx.RevoluteJoint(f"axis{k}", end, link, axis, damping=0.5 / k))
        plant.add_actuator(f"motor{k}", joint)
        end = plant.add_frame(f"end{k}", link, (length, 0.0, 0.0))
    return plant.build()


def axis_loops(bandwidth: float = 6.0) -> tuple[fx.Diagram, list[str]]:
    """Return a PID controller at each motor for the inertia that it sees, and the wires."""
    plant = arm()
    motors = [f"motor{k}" for k in range(1, 7)]
    model = fx.linearize(plant, inputs=motors, outputs=[])
    inertias = np.diag(np.linalg.inv(model.B[6:]))
    builder = fx.DiagramBuilder("loops")
    builder.add(plant)
    for k, inertia in enumerate(inertias, start=1):
        kp = inertia * bandwidth**2
        builder.add_all(
            fx.Constant(f"target{k}", 0.0),
            fx.PIDController(
                f"pid{k}", kp, 0.1 * kp * bandwidth, 2.0 * kp / bandwidth, derivative_filter=5e-4
            ),
            fx.FirstOrderLag(f"drive{k}", time_constant=5e-4),
        )
        builder.connect(f"target{k}.y", f"pid{k}.setpoint")
        builder.connect_chain(f"pid{k}", f"drive{k}", f"arm.motor{k}")
        builder.connect(f"arm.axis{k}.angle", f"pid{k}.measurement")
    return builder.build(), [f"drive{k}.y" for k in range(1, 7)]


def margins_of_an_arm(rounds: int) -> None:
    diagram, wires = axis_loops()
    start = time.process_time()
    loop = fx.loop_gain(diagram, wires)
    found = fx.margins(loop)
    first = time.process_time() - start
    assert found.is_stable
    show(
        f"margins at 6 wires, {len(loop.A)} states",
        1e3 * seconds(lambda: fx.margins(loop), rounds),
        "ms",
        50.0,
    )
    context = diagram.create_default_context()
    context.set("arm.axis2.angle", 0.3)
    again = seconds(lambda: fx.margins(fx.loop_gain(diagram, wires, context=context)), rounds)
    print(f"  with the linear model {1e3 * again:.0f} ms, and {first:.2f} s at first, with a trace")
    if find_spec("control") is None:
        print("python-control is missing: no comparison of disk margins")
        return
    import control

    theirs, grid = loop.to_control(), np.geomspace(1e-2, 1e4, 1000)
    try:
        disk = control.disk_margins(theirs, grid)[0]
    except Exception as error:  # it needs slycot for several wires
        print(f"python-control computes no disk margin: {error!r:.80}")
        return
    spent = seconds(lambda: control.disk_margins(theirs, grid), 1)
    print(f"  disk margin {found.disk_margin:.5g}, python-control on a grid {disk:.5g}")
    ratio = spent / seconds(lambda: fx.margins(loop), rounds)
    print(f"  python-control takes {ratio:.1f} times as long for the disk margin alone")


# An extended Kalman filter of twelve states at 1 kHz ----------------------------------------------


class Chain(fx.LeafSystem):
    """Six masses of 1 kg in a row, between springs that harden."""

    def __init__(self, name: str, stiffness: float = 100.0, hardening: float = 500.0) -> None:
        super().__init__(name)
        self.constants = stiffness, hardening
        self.x = self.declare_continuous_state(q=6, v=6)
        self.u = self.declare_vector_input("u", 1)
        self.y = self.declare_vector_output("y", 3, self.show, prerequisites=[self.x])

    def show(self, context: Any) -> Any:
        """Return every second position."""
        return self.x(context)[1:6:2]

    def calc_time_derivatives(self, context: Any) -> Any:
        """Return velocities and accelerations."""
        x, (k, h) = self.x(context), self.constants
        stretch = np.concatenate([x[:6], [0.0]]) - np.concatenate([[0.0], x[:6]])
        forces = k * stretch + h * stretch**3
        push = np.concatenate([self.u(context), np.zeros(5)])
        return np.concatenate([x[6:], forces[1:] - forces[:-1] - 0.2 * x[6:] + push])


def estimated_chain() -> fx.Diagram:
    builder = fx.DiagramBuilder("estimated")
    builder.add_all(
        fx.Sine("force", amplitude=5.0, frequency=3.0),
        fx.ZeroOrderHold("hold", 1e-3),
        Chain("chain"),
        fx.ExtendedKalmanFilter(
            "ekf", Chain("model"), period=1e-3, W=1e-2, V=1e-6, initial_covariance=1e-2
        ),
    )
    builder.connect_chain("force", "hold", "chain", "ekf.y")
    builder.connect("hold.y", "ekf.u")
    return builder.build()


def kalman_filter(rounds: int, end: float) -> None:
    diagram = estimated_chain()
    spent = seconds(lambda: fx.simulate(diagram, end), rounds)
    show(
        "filter of 12 states at 1 kHz, with its plant", end / spent, "x real time", 20.0, most=False
    )
    if find_spec("filterpy") is None:
        print("filterpy is missing: no comparison of filters")
        return
    by_hand = import_module("filterpy.kalman").ExtendedKalmanFilter(dim_x=12, dim_z=3, dim_u=1)
    by_hand.P, by_hand.Q, by_hand.R = 1e-2 * np.eye(12), 1e-5 * np.eye(12), 1e-6 * np.eye(3)
    row = np.zeros((3, 12))
    row[[0, 1, 2], [1, 3, 5]] = 1.0
    by_hand.F = np.eye(12)

    def steps() -> None:  # the filter alone: no model, no Jacobian, no plant
        for _ in range(200):
            by_hand.predict()
            by_hand.update(np.zeros((3, 1)), lambda x: row, lambda x: row @ x)

    ratio = seconds(steps, rounds) / 200.0 / (spent / (1e3 * end))
    print(f"  filterpy takes {ratio:.1f} times as long per sample, without plant and Jacobian")


# Synthesis ----------------------------------------------------------------------------------------


def synthesis(rounds: int, order: int) -> None:
    rng = np.random.default_rng(1)
    A = rng.normal(size=(order, order)) - 2.0 * np.eye(order)
    B, C = rng.normal(size=(order, 4)), rng.normal(size=(4, order))
    D = np.zeros((4, 4))
    D[:2, 2:] = D[2:, :2] = np.eye(2)
    model = fx.LinearModel.from_scipy(signal.StateSpace(A, B, C, D))
    names = model.input_names[2:], model.output_names[2:]
    ours = seconds(lambda: fx.hinf_synthesis(model, *names), rounds)
    print(f"H-infinity synthesis of {order} states: {1e3 * ours:.1f} ms")
    if find_spec("slycot") is None:
        print("slycot is missing: no comparison of the synthesis")
        return
    slycot = import_module("slycot")

    level = 10.0 * fx.hinf_synthesis(model, *names).norm
    theirs = seconds(
        lambda: slycot.sb10ad(order, 4, 4, 2, 2, level, A, B, C, D, job=1, gtol=1e-2), rounds
    )
    print(f"  slycot takes {theirs / ours:.2f} of it, by a bisection of the same tolerance")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds and shorter runs")
    quick = parser.parse_args().quick
    rounds = 3 if quick else 9
    margins_of_an_arm(rounds)
    kalman_filter(rounds, 2.0 if quick else 10.0)
    synthesis(rounds, 8 if quick else 20)


if __name__ == "__main__":
    main()
