"""Optimal motions beside CasADi with equations by hand, and beside Drake's direct collocation.

A cart swings up its pole in 5 s on 125 intervals: all three with Hermite-Simpson collocation, the
same bounds, the same guess and IPOPT. Times are CPU times of the whole call, with tracing, set-up
and, in Flexure, the replay; imports are left out. Below, compliant arms move from rest to
rest; their replays must end within 1e-4.

    python benchmarks/control/optimal.py
    python benchmarks/control/optimal.py --quick
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

import flexure as fx

INTERVALS, END, FORCE, GRAVITY = 125, 5.0, 10.0, 9.81
UPRIGHT = [0.0, np.pi, 0.0, 0.0]


class CartPole(fx.LeafSystem):
    """A pole of 0.2 kg and 0.5 m on a cart of 1 kg."""

    def __init__(self) -> None:
        super().__init__("cart_pole")
        self.state = self.declare_continuous_state(q=2, v=2)
        self.force = self.declare_vector_input("force", 1, unit="N")

    def calc_time_derivatives(self, context: Any) -> Any:
        """Return the rates of position, angle, speed and angular speed."""
        _, angle, speed, rate = self.state(context)
        s, c = np.sin(angle), np.cos(angle)
        inertia = fx.array([[1.2, 0.1 * c], [0.1 * c, 0.05]])
        force = self.force(context)[0] + 0.1 * rate**2 * s
        acceleration = np.linalg.solve(inertia, fx.array([force, -0.1 * GRAVITY * s]))
        return [speed, rate, *acceleration]


def swing_up(**options: Any) -> fx.results.OptimalMotion:
    """Return the motion that Flexure finds."""
    return fx.optimal_motion(
        CartPole(),
        None,
        END,
        inputs={"force": (-FORCE, FORCE)},
        end={"x": UPRIGHT},
        cost={"force": 1.0},
        intervals=INTERVALS,
        **options,
    )


def by_hand() -> float:
    """Return the cost that CasADi finds with equations and collocation by hand."""
    ca: Any = import_module("casadi")
    x, u = ca.SX.sym("x", 4), ca.SX.sym("u")
    s, c = ca.sin(x[1]), ca.cos(x[1])
    inertia = ca.vertcat(ca.horzcat(1.2, 0.1 * c), ca.horzcat(0.1 * c, 0.05))
    forces = ca.vertcat(u + 0.1 * x[3] ** 2 * s, -0.1 * GRAVITY * s)
    f = ca.Function("f", [x, u], [ca.vertcat(x[2], x[3], ca.solve(inertia, forces))])
    points, h = 2 * INTERVALS + 1, END / INTERVALS
    z = ca.MX.sym("z", 5, points)
    states, force = z[:4, :], z[4, :]
    rates = f.map(points)(states, force)
    a, m, b = (states[:, k : points - 2 + k : 2] for k in range(3))
    fa, fm, fb = (rates[:, k : points - 2 + k : 2] for k in range(3))
    middle = m - (a + b) / 2 - h / 8 * (fa - fb)
    defects = ca.vertcat(ca.vec(middle), ca.vec(b - a - h / 6 * (fa + 4 * fm + fb)))
    weights = np.full(points, h / 3)
    weights[1::2], weights[[0, -1]] = 4 * h / 6, h / 6
    cost = ca.mtimes(force**2, ca.DM(weights))
    silent = {"ipopt": {"print_level": 0, "sb": "yes", "tol": 1e-8}, "print_time": False}
    solver = ca.nlpsol("hand", "ipopt", {"x": ca.vec(z), "f": cost, "g": defects}, silent)
    upper = np.full((5, points), np.inf)
    upper[4] = FORCE
    lower = -upper
    lower[:4, 0] = upper[:4, 0] = 0.0
    lower[:4, -1] = upper[:4, -1] = UPRIGHT
    guess = np.zeros((5, points))
    guess[:4] = np.linspace(0.0, 1.0, points) * np.array(UPRIGHT)[:, np.newaxis]
    sides = {"lbx": lower.T.ravel(), "ubx": upper.T.ravel(), "lbg": 0.0, "ubg": 0.0}
    return float(solver(x0=guess.T.ravel(), **sides)["f"])


def by_drake() -> float:
    """Return the cost that Drake finds."""
    drake: Any = import_module("pydrake.all")
    plant = drake.MultibodyPlant(0.0)
    drake.Parser(plant).AddModelsFromString(_URDF, "urdf")
    plant.Finalize()
    program = drake.DirectCollocation(
        plant,
        plant.CreateDefaultContext(),
        num_time_samples=INTERVALS + 1,
        minimum_time_step=END / INTERVALS,
        maximum_time_step=END / INTERVALS,
        input_port_index=plant.get_actuation_input_port().get_index(),
    )
    force, goal = program.input()[0], np.array(UPRIGHT)
    program.AddConstraintToAllKnotPoints(force <= FORCE)
    program.AddConstraintToAllKnotPoints(force >= -FORCE)
    inside = program.prog()
    inside.AddBoundingBoxConstraint(np.zeros(4), np.zeros(4), program.initial_state())
    inside.AddBoundingBoxConstraint(goal, goal, program.final_state())
    program.AddRunningCost(force**2)
    ends = np.column_stack([np.zeros(4), goal])
    line = drake.PiecewisePolynomial.FirstOrderHold([0.0, END], ends)
    program.SetInitialTrajectory(drake.PiecewisePolynomial(), line)
    return float(drake.IpoptSolver().Solve(inside).get_optimal_cost())


_BODY = """<link name="{0}"><inertial><origin xyz="0 0 {1}"/><mass value="{2}"/><inertia ixx="1e-9"
 ixy="0" ixz="0" iyy="1e-9" iyz="0" izz="1e-9"/></inertial></link>"""
_URDF = f"""<robot name="cart_pole">{_BODY.format("cart", 0, 1.0)}{_BODY.format("pole", -0.5, 0.2)}
<joint name="track" type="prismatic"><parent link="world"/><child link="cart"/>
<axis xyz="1 0 0"/></joint><joint name="hinge" type="continuous"><parent link="cart"/>
<child link="pole"/><axis xyz="0 -1 0"/></joint><transmission type="SimpleTransmission" name="t">
<actuator name="f"><mechanicalReduction>1</mechanicalReduction></actuator><joint name="track">
<hardwareInterface>EffortJointInterface</hardwareInterface></joint></transmission></robot>"""


def arm(links: int) -> fx.Plant:
    """Return an arm with a motor at each joint, and with an elastic tip."""
    builder = fx.PlantBuilder("arm", gravity=(0.0, 0.0, 0.0))
    last: Any = builder.world
    box = fx.SpatialInertia.solid_box(1.0, size=(0.05, 0.05, 0.4))
    for k in range(links):
        link = builder.add_body(f"link{k}", box, com=(0.0, 0.0, 0.2))
        on = last if k == 0 else builder.add_frame(f"end{k}", last, (0.0, 0.0, 0.4))
        axis = (1, 0, 0) if k % 2 else (0, 1, 0)
        joint = builder.add_joint(fx.RevoluteJoint(f"joint{k}", on, link, axis=axis))
        builder.add_actuator(f"motor{k}", joint)
        last = link
    tip = builder.add_body("tip", fx.SpatialInertia.solid_sphere(0.2, radius=0.05), com=(0, 0, 0.2))
    end = builder.add_frame("end", last, (0.0, 0.0, 0.4))
    flexure = builder.add_joint(fx.RevoluteJoint("flexure", end, tip, axis=(0, 1, 0)))
    builder.add_force_element(fx.JointSpring("spring", flexure, stiffness=4.0, damping=0.01))
    return builder.build()


def arm_motion(links: int) -> fx.results.OptimalMotion:
    """Return the motion of an arm from rest to rest."""
    joints = [f"joint{k}" for k in range(links)]
    angles = {f"{name}.angle": 0.6 * np.cos(k) for k, name in enumerate(joints)}
    rest = {f"{name}.rate": 0.0 for name in [*joints, "flexure"]}
    return fx.optimal_motion(
        arm(links),
        None,
        1.0,
        inputs={f"motor{k}": (-20.0, 20.0) for k in range(links)},
        end={**angles, **rest, "flexure.angle": 0.0},
        intervals=30,
    )


def timed(call: Callable[[], Any], rounds: int) -> tuple[Any, float]:
    """Return an answer, and the shortest CPU time of several rounds in seconds."""
    best, answer = np.inf, None
    for _ in range(rounds):
        start = time.process_time()
        answer = call()
        best = min(best, time.process_time() - start)
    return answer, best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds, no arm of six joints")
    quick = parser.parse_args().quick
    rounds = 1 if quick else 3
    by_hand()  # loads IPOPT
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the replay, whose mesh is not refined here
        swing_up(max_refinements=0)  # compiles
        motion, ours = timed(lambda: swing_up(max_refinements=0), rounds)
    cost, hand = timed(by_hand, rounds)
    print(f"swing-up, 125 intervals   {ours:7.2f} s  cost {motion.cost:.4f}")
    print(f"CasADi by hand            {hand:7.2f} s  cost {cost:.4f}, ratio {ours / hand:.2f}")
    refined, whole = timed(swing_up, rounds)
    print(f"refined, replay {refined.replay_error:.0e}    {whole:7.2f} s  {refined.how}")
    if find_spec("pydrake") is None:
        print("pydrake is not installed (pip install drake): no comparison with Drake")
    else:
        cost, drake = timed(by_drake, 1)
        print(
            f"Drake                     {drake:7.2f} s  cost {cost:.4f}, {drake / ours:.0f} times"
        )
    for links in (3,) if quick else (3, 6):
        found, taken = timed(lambda n=links: arm_motion(n), 1)  # type: ignore[misc]
        print(f"{links} links, replay {found.replay_error:.0e}    {taken:7.2f} s  {found.how}")
        assert found.replay_error <= 1e-4


if __name__ == "__main__":
    main()
