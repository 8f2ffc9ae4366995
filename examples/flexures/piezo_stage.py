"""A stage on two leaves that a piezo drives: stroke, straightness, modes, control and tolerances.

The piezo is a spring that a voltage lengthens, in parallel with a guide of two leaves. Its stroke,
the shortening of the guide along the leaves and the first mode have closed forms. An integrating
controller, tuned to a bound of the sensitivity, brings the stage to its place. Then the thickness
of each leaf varies by its tolerance, as does what follows from it.

Run it with ``python examples/flexures/piezo_stage.py``. It saves ``piezo_stage.png``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import flexure as fx

STEEL = fx.Material.common("stainless steel 301")
LENGTH, WIDTH, THICKNESS, DISTANCE = 0.05, 0.02, 0.0008, 0.06  # of the leaves, in m
MASS = 0.3  # of the platform in kg
FREE, PIEZO, DAMPING = 1e-6, 4e5, 60.0  # of the piezo, in m/V, N/m and N s/m
VOLTAGE, TARGET = 100.0, 50e-6  # the greatest in V, and where the stage is to go, in m
TOLERANCE, RUNS = "5 %", 100  # of the thickness of each leaf, and how many stages are made
END, PLACE = 0.25, "stage.platform.q[y]"


def build_stage() -> fx.Plant:
    """Put a platform on a guide; the piezo's force is proportional to an input in V."""
    builder = fx.PlantBuilder("stage", gravity=(0.0, 0.0, 0.0))
    size = (0.02, 0.08, 0.02)
    platform = builder.add_body(
        "platform", fx.SpatialInertia.solid_box(MASS, size=size), com=(0.5 * size[0], 0.0, 0.0)
    )
    joint = builder.add_joint(fx.RpyFloatingJoint("platform", builder.world, platform))
    joint.default_pose = np.eye(3), (LENGTH, 0.0, 0.0)
    guide = fx.ParallelGuide(
        "guide",
        builder.world,
        platform,
        distance=DISTANCE,
        length=LENGTH,
        width=WIDTH,
        thickness=THICKNESS,
        material=STEEL,
    )
    builder.add_assembly(guide)
    piezo = fx.LinearSpringDamper(
        "piezo",
        builder.world,
        (0.5 * LENGTH, -0.06, 0.0),
        platform,
        (-0.5 * LENGTH, 0.0, 0.0),
        free_length=0.06,
        stiffness=PIEZO,
        damping=DAMPING,
    )
    builder.add_force_element(piezo)
    builder.add_actuator("drive", joint)
    return builder.build()


def build() -> fx.Diagram:
    """Wire the stage with an amplifier and a controller of its place."""
    builder = fx.DiagramBuilder("servo")
    arm = PIEZO * FREE  # force in N per V
    amplifier = fx.MatrixGain("amplifier", arm * np.eye(6)[:, 4:5])  # y, of angles and x, y, z
    builder.add_all(
        build_stage(),
        fx.Step("target", at=0.002, to=TARGET),
        fx.PIDController("pid", kp=0.0, ki=1e7, lower=-VOLTAGE, upper=VOLTAGE),
        amplifier,
        fx.MatrixGain("sensor", np.eye(6)[4:5]),
    )
    builder.connect("target.y", "pid.setpoint")
    builder.connect_chain("pid", "amplifier", "stage.drive")
    builder.connect_chain("stage.platform.q", "sensor", "pid.measurement")
    return builder.build()


def main() -> None:
    """Look at stroke and modes, tune, run, vary the thickness, and save the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(), help="where to save the picture")
    folder = parser.parse_args().folder
    stage, servo = build_stage(), build()

    EI = STEEL.youngs_modulus * WIDTH * THICKNESS**3 / 12.0
    guide, per_volt = 24.0 * EI / LENGTH**3, PIEZO * FREE
    path = fx.load_path(stage, {"drive[fy]": VOLTAGE * per_volt}, signals="platform.q")
    x, y = (path["platform.q"][-1] - path["platform.q"][0])[3:5]
    stroke, shorter = VOLTAGE * per_volt / (PIEZO + guide), -0.6 * y**2 / LENGTH
    print(f"at {VOLTAGE:.0f} V: {1e6 * y:.3f} um, closed form {1e6 * stroke:.3f} um")
    print(f"beside it {1e9 * x:.1f} nm, closed form {1e9 * shorter:.1f} nm")

    leaves = STEEL.density * LENGTH * WIDTH * THICKNESS  # half of both
    by_hand = np.sqrt((PIEZO + guide) / (MASS + leaves)) / (2.0 * np.pi)
    modes = fx.modes(stage)
    first = modes[0].frequency
    print(f"modes at {', '.join(f'{mode.frequency:.0f}' for mode in modes)} Hz,")
    print(f"the first at {first:.2f} Hz, closed form {by_hand:.2f} Hz")

    tuning = fx.tune_pid(servo, "pid", parts="PI", max_sensitivity=1.4)
    context = servo.create_default_context()
    tuning.apply(context)
    result = fx.simulate(servo, END, context=context)
    info = result.step_info(PLACE)
    print(f"settles within {1e3 * info.settling_time:.1f} ms, overshoot {info.overshoot:.2f} %")

    handles = [f"stage.guide_leaf{k}.thickness" for k in (1, 2)]
    plan = fx.plans.latin_hypercube(dict.fromkeys(handles, TOLERANCE), RUNS, context=servo, seed=1)
    metrics = {
        "settling time": fx.metrics.step("settling_time", PLACE),
        "voltage": fx.metrics.final("pid.u"),
    }
    made = fx.sweep(servo, plan, END, context=context, metrics=metrics)
    cubes = sum((plan[handle] / THICKNESS) ** 3 for handle in handles)
    expected = TARGET * (PIEZO + 0.5 * guide * cubes) / per_volt
    volts = made.metrics["voltage"]
    print(f"{RUNS} stages need {volts.min():.2f} to {volts.max():.2f} V")
    draw(stage, path, result, made, folder / "piezo_stage.png")

    assert abs(y / stroke - 1.0) < 5e-3, "the stroke is not that of the closed form"
    assert abs(x / shorter - 1.0) < 0.02, "the guide gets shorter by another length"
    assert abs(first / by_hand - 1.0) < 5e-3, "the first mode has another frequency"
    assert abs(result[PLACE][-1] / TARGET - 1.0) < 1e-4, "the stage does not reach its place"
    assert info.overshoot < 5.0, f"unexpected overshoot {info.overshoot:.3g} %"
    assert np.max(np.abs(volts / expected - 1.0)) < 4e-3, "the tolerances act otherwise"


def draw(
    stage: fx.Plant,
    path: fx.results.LoadPath,
    result: fx.results.SimulationResult,
    made: fx.results.Sweep,
    file: Path,
) -> None:
    """Save the stage, its path, its step and what tolerances do."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(11.0, 8.0), layout="constrained")
    bent = path.context(-1)
    fx.plot_mechanism(stage, bent, view=(-60, 40), stress=True, ax=axes[0, 0])
    moved = 1e6 * (path["platform.q"] - path["platform.q"][0])[:, 3:]
    axes[0, 1].plot(moved[:, 1], 1e3 * moved[:, 0])
    axes[0, 1].set(xlabel="stroke in um", ylabel="motion beside it in nm")
    axes[1, 0].plot(1e3 * result.time, 1e6 * result[PLACE])
    axes[1, 0].set(xlabel="time in ms", ylabel="place in um")
    axes[1, 1].hist(made.metrics["voltage"], bins=15, edgecolor="white")
    axes[1, 1].set(xlabel="voltage that holds the place in V", ylabel="stages")
    for ax in axes.flat[1:]:
        ax.grid(True, color="#dddddd")
        ax.set_axisbelow(True)
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=120)


if __name__ == "__main__":
    main()
