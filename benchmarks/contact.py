"""Balls in a box: time of a run beside MuJoCo's at an equal error of energy.

Balls of rubber fall in a box for a second, and each ball may touch each other and five walls.
Energy that a run without losses makes or loses is its error; MuJoCo takes steps so short that it
errs no more. Times are CPU times of a second run. Without MuJoCo only our figures are printed.

    python benchmarks/contact.py
    python benchmarks/contact.py --balls 18
"""

from __future__ import annotations

import argparse
import time
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

import flexure as fx
from flexure.blocks.math import rotation_from_rpy

RADIUS, MASS, STIFFNESS, LAST = 0.05, 0.1, 1e4, 1.0
#: Roll, pitch and yaw of each wall, its normal and a point on it.
WALLS = [
    ((0.0, 0.0, 0.0), (0, 0, 1), (0.0, 0.0, 0.0)),
    ((0.0, np.pi / 2, 0.0), (1, 0, 0), (-0.25, 0.0, 0.0)),
    ((0.0, -np.pi / 2, 0.0), (-1, 0, 0), (0.25, 0.0, 0.0)),
    ((-np.pi / 2, 0.0, 0.0), (0, 1, 0), (0.0, -0.25, 0.0)),
    ((np.pi / 2, 0.0, 0.0), (0, -1, 0), (0.0, 0.25, 0.0)),
]


def places(count: int) -> NDArray[np.float64]:
    """Return where the balls start."""
    cells = product(range(count), (-0.15, 0.0, 0.15), (-0.15, 0.0, 0.15))
    grid = np.array([(x, y, 0.1 + 0.15 * z) for z, x, y in cells][:count])
    return grid + np.random.default_rng(0).uniform(-0.02, 0.02, grid.shape)


def ours(count: int, rtol: float) -> tuple[float, float, float]:
    """Return CPU time of a run and of its preparation in s, and the relative error of energy."""
    began = time.process_time()
    builder, ball = fx.PlantBuilder("box"), fx.BodyShape.sphere(radius=RADIUS)
    inertia = fx.SpatialInertia.solid_sphere(MASS, radius=RADIUS)
    bodies = [builder.add_body(f"b{k}", inertia) for k in range(count)]
    joints = [
        builder.add_joint(fx.QuaternionFloatingJoint(f"j{k}", builder.world, body))
        for k, body in enumerate(bodies)
    ]
    walls = [
        builder.add_frame(f"wall{k}", builder.world, (rotation_from_rpy(rpy), point))
        for k, (rpy, _, point) in enumerate(WALLS)
    ]
    shapes: list[Any] = [
        *((body, ball) for body in bodies),
        *((wall, "half_space") for wall in walls),
    ]
    builder.add_assembly(fx.ContactGroup("touch", shapes, stiffness=STIFFNESS))
    builder.add_energy_ledger()
    plant = builder.build()
    context = plant.create_default_context()
    for joint, place in zip(joints, places(count), strict=True):
        joint.pose.set(context, (np.eye(3), place))
    fx.simulate(plant, 1e-3, context=context, rtol=rtol, compiled="native")
    prepared = time.process_time()
    result = fx.simulate(plant, LAST, context=context, rtol=rtol, compiled="native")
    spent = time.process_time() - prepared
    error = np.ptp(result["ledger.balance"]) / result["potential_energy"][0]
    return spent, prepared - began, float(error)


def theirs(count: int, step: float) -> tuple[float, float]:
    """Return CPU time of a run of MuJoCo in s, and its relative error of energy at the end."""
    mujoco = import_module("mujoco")
    spring = f'solref="{-STIFFNESS / MASS:g} 0" solimp="0.9999 0.9999 0.001" friction="0 0 0"'
    spring += ' condim="1"'
    geoms = "".join(
        f'<geom type="plane" size="1 1 1" {spring} pos="{p[0]} {p[1]} {p[2]}" '
        f'zaxis="{n[0]} {n[1]} {n[2]}"/>'
        for _, n, p in WALLS
    )
    balls = "".join(
        f'<body pos="{x} {y} {z}"><freejoint/><geom type="sphere" size="{RADIUS}" mass="{MASS}" '
        f"{spring}/></body>"
        for x, y, z in places(count)
    )
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="{step}"><flag energy="enable"/></option>'
        f"<worldbody>{geoms}{balls}</worldbody></mujoco>"
    )
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    before, began = data.energy.sum(), time.process_time()
    while data.time < LAST:
        mujoco.mj_step(model, data)
    spent = time.process_time() - began
    # Its springs act on accelerations: their energy is that of the reduced mass of the pair.
    mujoco.mj_forward(model, data)
    masses = [MASS / (1 + (min(each.geom) >= len(WALLS))) for each in data.contact]
    depths = np.array([each.dist for each in data.contact])
    stored = 0.5 * STIFFNESS / MASS * np.sum(np.array(masses) * np.minimum(depths, 0.0) ** 2)
    return spent, abs(float((data.energy.sum() + stored) / before - 1.0))


def main() -> None:
    """Print times and errors."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--balls", type=int, default=100, help="how many balls")
    count = parser.parse_args().balls
    spent, prepared, error = ours(count, 1e-3)
    print(f"{count} balls, {count * (count + 9) // 2} contacts")
    print(f"flexure: {spent:.3f} s, prepared in {prepared:.1f} s, energy to {error:.1e}")
    if find_spec("mujoco") is None:
        print("MuJoCo is not installed")
        return
    for step in (2e-3, 1e-3, 5e-4, 2e-4, 1e-4, 5e-5):
        their_time, their_error = theirs(count, step)
        print(f"MuJoCo, {step:g} s: {their_time:.3f} s, energy to {their_error:.1e}")
        if their_error <= error:
            print(f"at an equal error: {spent / their_time:.2f} times MuJoCo's time")
            return
    print(f"MuJoCo errs more at the shortest step; {spent / their_time:.2f} times its time there")


if __name__ == "__main__":
    main()
