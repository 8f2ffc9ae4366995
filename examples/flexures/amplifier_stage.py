"""A stage that a piezo stack moves through a bridge amplifier: stroke, load, modes, hysteresis.

The stack pushes the sides of the bridge apart, and the bridge pulls the table down, eight times as
far. The stroke follows from an own computation by the direct stiffness method, with leaves as beams
of Euler and Bernoulli between rigid bodies, which shares no code with the model; the ratio also
from the formula of Ma et al. (Sensors and Actuators A 132 (2006) 730-736). A cycle of the voltage
then shows the hysteresis of the stack against the stiffness of the bridge.

Run it with ``python examples/flexures/amplifier_stage.py``. It saves ``amplifier_stage.png``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import numpy.typing as npt

import flexure as fx

STEEL = fx.Material.common("stainless steel 301")
LENGTH, TILT, HINGE, WIDTH, THICKNESS = 0.02, 0.12, 0.004, 0.01, 0.0005  # of arms and leaves
ROOT, SIDE = 0.01, 0.012  # distances of the arms on the blocks and on the sides, in m
BLOCKED, FREE, VOLTAGE = 850.0, 20e-6, 100.0  # of the stack, in N, m and V
HYSTERESIS, LOAD, END = 120.0, 5.0, 0.04  # in N, in N on the table, and in s
REACH, HEIGHT = 0.5 * ROOT + LENGTH * np.cos(TILT), 2.0 * LENGTH * np.sin(TILT) + SIDE
STACK = {
    "free_length": 2.0 * REACH,
    "blocking_force": BLOCKED,
    "free_stroke": FREE,
    "full_drive": VOLTAGE,
}

FloatArray = npt.NDArray[np.float64]


def build() -> fx.Plant:
    """Put a table on a bridge, and a stack between its sides."""
    builder = fx.PlantBuilder("stage", gravity=(0.0, 0.0, 0.0))
    table = builder.add_body("table", fx.SpatialInertia.solid_box(0.05, size=(0.03, 0.01, 0.03)))
    joint = builder.add_joint(fx.RpyFloatingJoint("table", builder.world, table))
    joint.default_pose = np.eye(3), (0.0, HEIGHT, 0.0)
    bridge = fx.BridgeAmplifier(
        "bridge",
        builder.world,
        table,
        length=LENGTH,
        angle=TILT,
        root_distance=ROOT,
        side_height=SIDE,
        sides=fx.SpatialInertia.solid_box(0.01, size=(0.005, SIDE, WIDTH)),
        hinge_length=HINGE,
        link=fx.SpatialInertia.solid_box(0.003, size=(LENGTH - 2.0 * HINGE, 0.003, WIDTH)),
        width=WIDTH,
        thickness=THICKNESS,
        material=STEEL,
        shear=False,
    )
    builder.add_assembly(bridge)
    stack = fx.PiezoStack(
        "stack",
        *(bridge.left, (0.0, 0.0, 0.0), bridge.right, (0.0, 0.0, 0.0)),
        **STACK,
    )
    builder.add_force_element(stack)
    builder.add_external_force("load", table)
    return builder.build()


def by_hand(voltage: float, load: float) -> FloatArray:
    """Return how far left side, right side and table move, x and y, by direct stiffness.

    Leaves are beams between rigid bodies: left, right, table, and four links, x, y and angle each.
    """
    E, area, I = STEEL.youngs_modulus, WIDTH * THICKNESS, WIDTH * THICKNESS**3 / 12.0
    l, middle = HINGE, 0.5 * HEIGHT
    axial, shear, turn, both = E * area / l, 12 * E * I / l**3, 4 * E * I / l, 6 * E * I / l**2
    beam = np.zeros((6, 6))
    beam[np.ix_([0, 3], [0, 3])] = axial * np.array([[1, -1], [-1, 1]])
    beam[np.ix_([1, 2, 4, 5], [1, 2, 4, 5])] = [
        [shear, both, -shear, both],
        [both, turn, -both, 0.5 * turn],
        [-shear, -both, shear, -both],
        [both, 0.5 * turn, -both, turn],
    ]
    points = np.array([[-REACH, middle], [REACH, middle], [0.0, HEIGHT]] + [[0.0, 0.0]] * 4)
    K = np.zeros((21, 21))

    def moved(body: int, place: FloatArray, R: FloatArray) -> FloatArray:
        """Return what a point of a body does, along and across a leaf, by all coordinates."""
        row = np.zeros((3, 21))
        if body >= 0:
            x, y = place - points[body]
            row[:, 3 * body : 3 * body + 3] = R @ np.array([[1, 0, -y], [0, 1, x], [0, 0, 1]])
        return row

    for arm in range(4):
        side, block = arm % 2, -1 if arm < 2 else 2
        sign, y = 2.0 * side - 1.0, 0.0 if arm < 2 else HEIGHT
        start = np.array([0.5 * sign * ROOT, y])
        end = np.array([sign * REACH, y + np.copysign(LENGTH * np.sin(TILT), middle - y)])
        u = (end - start) / LENGTH
        R = np.array([[u[0], u[1], 0.0], [-u[1], u[0], 0.0], [0.0, 0.0, 1.0]])
        for a, c, first in ((block, 3 + arm, start), (3 + arm, side, end - l * u)):
            ends = np.vstack([moved(a, first, R), moved(c, first + l * u, R)])
            K += ends.T @ beam @ ends
    spread = np.zeros(21)
    spread[[0, 3]] = -1.0, 1.0
    K += BLOCKED / FREE * np.outer(spread, spread)
    force = BLOCKED * voltage / VOLTAGE * spread
    force[7] += load
    found = np.linalg.solve(K, force)
    return np.array(found[:9].reshape(3, 3)[:, :2])


def cycle(stiffness: float) -> tuple[FloatArray, FloatArray]:
    """Return the voltage and the elongation of the stack with hysteresis against the bridge."""
    builder = fx.PlantBuilder("drive", gravity=(0.0, 0.0, 0.0))
    side = builder.add_body("side", fx.SpatialInertia.point_mass(0.02))
    slide = builder.add_joint(fx.PrismaticJoint("slide", builder.world, side, axis=(1, 0, 0)))
    builder.add_force_element(fx.JointSpring("bridge", slide, stiffness=stiffness))
    ends = builder.world, (-2.0 * REACH, 0.0, 0.0), side, (0.0, 0.0, 0.0)
    builder.add_force_element(
        fx.PiezoStack("stack", *ends, **STACK, damping=2000.0, hysteresis_force=HYSTERESIS)
    )
    slow = fx.DiagramBuilder("cycle")
    voltage = fx.Sine("voltage", amplitude=VOLTAGE, frequency=2.0 * np.pi * 50.0)
    slow.add_all(builder.build(), voltage)
    slow.connect("voltage.y", "drive.stack.drive")
    result = fx.simulate(slow.build(), END)
    times = np.linspace(0.5 * END, END, 401)
    u, x = (
        np.interp(times, result.time, np.ravel(result[each]))
        for each in ("voltage.y", "drive.stack.elongation")
    )
    return u, x


def main() -> None:
    """Compare stroke and ratio, load the table, cycle the voltage, and save the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(), help="where to save the picture")
    folder = parser.parse_args().folder
    stage = build()

    path = fx.load_path(stage, {"stack.drive": [0.0, 1.0, VOLTAGE]})
    stroke, apart = path["table.q[y]"][-1] - HEIGHT, path["stack.elongation"][-1]
    left, right, table = by_hand(VOLTAGE, 0.0)
    print(f"stroke {1e6 * stroke:.2f} um, by hand {1e6 * table[1]:.2f} um")
    print(f"sides {1e6 * apart:.3f} um, by hand {1e6 * (right - left)[0]:.3f} um")

    E, area, I = STEEL.youngs_modulus, WIDTH * THICKNESS, WIDTH * THICKNESS**3 / 12.0
    along = E * area / (2.0 * HINGE)
    across = 12.0 * E * I / (LENGTH**3 - (LENGTH - 2.0 * HINGE) ** 3)
    s, c = np.sin(TILT), np.cos(TILT)
    ratio = (along - across) * s * c / (along * s**2 + across * c**2)
    print(f"ratio {-stroke / apart:.3f}, formula {ratio:.3f}, rigid arms {1.0 / np.tan(TILT):.3f}")

    loaded = fx.load_path(stage, {"load": [0.0, 0.0, 0.0, 0.0, LOAD, 0.0]})
    lift = loaded["table.q[y]"][-1] - HEIGHT
    lifted = by_hand(0.0, LOAD)[2, 1]
    print(f"{LOAD:.0f} N lift it by {1e6 * lift:.3f} um, by hand {1e6 * lifted:.3f} um")
    print(f"first modes at {', '.join(f'{f:.0f}' for f in fx.modes(stage).frequencies[:3])} Hz")

    volts, moved = cycle(along * across / (along * s**2 + across * c**2))
    moved = -ratio * moved
    width = np.ptp(moved[np.abs(volts) < 2.0]) / np.ptp(moved)
    print(f"the loop is {100.0 * width:.1f} % of the stroke wide")
    draw(stage, path, volts, moved, folder / "amplifier_stage.png")

    small = path["table.q[y]"][path.stations][1] - HEIGHT
    assert abs(small / by_hand(1.0, 0.0)[2, 1] - 1.0) < 1e-3, "1 V moves the table otherwise"
    assert abs(stroke / table[1] - 1.0) < 2e-2, "the stroke is not that of direct stiffness"
    assert abs(apart / (right - left)[0] - 1.0) < 1e-2, "the sides move otherwise"
    assert abs(-stroke / apart / ratio - 1.0) < 2e-2, "the ratio is not that of the formula"
    assert abs(lift / lifted - 1.0) < 1e-2, "a load lifts the table otherwise"
    assert 0.02 < width < 0.2, "unexpected hysteresis"


def draw(
    stage: fx.Plant, path: fx.results.LoadPath, volts: FloatArray, moved: FloatArray, file: Path
) -> None:
    """Save the bent stage and its hysteresis."""
    import matplotlib.pyplot as plt

    figure, (picture, loop) = plt.subplots(1, 2, figsize=(10.0, 4.5), layout="constrained")
    fx.plot_mechanism(stage, path.context(-1), view="xy", stress=True, ax=picture)
    loop.plot(volts, 1e6 * moved)
    loop.set(xlabel="voltage in V", ylabel="motion of the table in um")
    loop.grid(True, color="#dddddd")
    loop.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=120)


if __name__ == "__main__":
    main()
