"""A pole balanced on a cart: from bodies to a sampled controller with noise on its sensors.

The plant is built of two bodies. Its equilibrium, modes and linear model lead to a regulator with a
Kalman filter that runs at 100 Hz, on measurements with noise. The sampled loop has the margins that
its exact discrete-time model says, and the nonlinear plant scatters as much as that model predicts.

Run it with ``python examples/mechanisms/cart_and_pole.py``. It saves ``cart_and_pole.png`` and
``cart_and_pole.gif``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from scipy.linalg import solve_discrete_lyapunov

import flexure as fx

PERIOD = 0.01  # s
NOISE = np.array([1e-3, 2e-3])  # standard deviations of position (m) and angle (rad)
MEASURED = ["track.translation", "hinge.angle"]


def build() -> fx.Plant:
    """Put a pole on a cart that a motor moves along a track."""
    builder = fx.PlantBuilder("plant")
    cart = builder.add_body("cart", fx.SpatialInertia.solid_box(1.0, size=(0.2, 0.2, 0.1)))
    ball = fx.SpatialInertia.solid_sphere(0.2, radius=0.05)
    pole = builder.add_body("pole", ball, com=(0.0, 0.0, 0.5))
    track = builder.add_joint(fx.PrismaticJoint("track", builder.world, cart, axis=(1, 0, 0)))
    builder.add_joint(fx.RevoluteJoint("hinge", cart, pole, axis=(0, 1, 0)))
    builder.add_actuator("motor", track)
    return builder.build()


def design() -> fx.results.OutputFeedbackDesign:
    """Find where the pole stands, look at its modes, and design a sampled controller."""
    plant = build()
    start = plant.create_default_context()
    start.set("tree.x", [0.0, 0.02, 0.0, 0.0])
    upright = fx.equilibrium(plant, start, fixed=["tree.x[track_x]"]).context
    assert abs(upright.get("tree.x")).max() < 1e-9
    print(fx.modes(plant, upright).table())
    model = fx.linearize(plant, upright, ["motor"], MEASURED, period=PERIOD)
    return fx.lqg(
        model,
        largest={"tree.x[track_x]": 0.3, "tree.x[hinge_q]": 0.1, "motor": 5.0},
        W=[0.0, 0.0, 1e-5, 1e-4],
        V=NOISE**2,
    )


def build_loop(controller: fx.results.OutputFeedbackDesign) -> fx.Diagram:
    """Wire plant, noisy sensors and controller."""
    builder = fx.DiagramBuilder("balance")
    builder.add_all(
        build(),
        fx.Multiplexer("sensors", [1, 1]),
        fx.Noise("noise", seed=1, period=PERIOD, standard_deviation=NOISE),
        fx.Sum("measured", "++", 2),
        controller.to_block("controller"),
    )
    builder.connect("plant.track.translation", "sensors.u1")
    builder.connect("plant.hinge.angle", "sensors.u2")
    builder.connect("sensors.y", "measured.u1")
    builder.connect("noise.y", "measured.u2")
    builder.connect("measured.y", "controller.y")
    builder.connect("controller.u", "plant.motor")
    return builder.build()


def predicted_scatter(loop: fx.Diagram, start: fx.Context) -> np.ndarray:
    """Return the standard deviations of position and angle that noise alone causes."""
    shown = [f"plant.{port}" for port in MEASURED]
    model = fx.linearize(loop, start, ["noise.y"], shown, period=PERIOD)
    entering = model.B * NOISE
    P = solve_discrete_lyapunov(model.A, entering @ entering.T)
    return np.sqrt(np.diag(model.C @ P @ model.C.T))


def main() -> None:
    """Design, ask the loop for its margins, let the pole go, and save the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(), help="where to save the pictures")
    folder = parser.parse_args().folder
    controller = design()
    loop = build_loop(controller)
    start = loop.create_default_context()
    margins = fx.margins(fx.loop_gain(loop, "plant.motor", context=start, period=PERIOD))
    print(margins)

    start.set("plant.tree.x", [0.0, 0.15, 0.0, 0.0])
    result = fx.simulate(loop, 60.0, context=start, rtol=1e-8)
    times = np.arange(10.0, 60.0, PERIOD)  # when what it was released with is over
    paths = [f"plant.{port}" for port in MEASURED]
    found = np.array([np.std(result.sample(path, times)) for path in paths])
    expected = predicted_scatter(loop, loop.create_default_context())
    for path, scatter, predicted in zip(paths, found, expected, strict=True):
        print(f"{path}: scatters by {scatter:.2e}, predicted {predicted:.2e}")

    first = fx.simulate(loop, 5.0, context=start)
    figure = first.plot(*paths, "controller.u")
    figure.savefig(folder / "cart_and_pole.png", dpi=150)
    fx.animate(first, path=folder / "cart_and_pole.gif", fps=10)
    assert margins.is_stable, "the linear model of the sampled loop is not stable"
    assert margins.phase_margin > np.deg2rad(15.0), "the phase margin is too small"
    assert abs(result.sample("plant.hinge.angle", [60.0])) < 6.0 * expected[1], "the pole fell"
    assert np.allclose(found, expected, rtol=0.1), "it scatters as the model does not predict"


if __name__ == "__main__":
    main()
