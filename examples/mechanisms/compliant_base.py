"""A cart that is controlled on a compliant base: the base sets the limit for the gains.

A motor moves a cart along a beam that stands on springs. A controller that is tuned for a rigid
base makes the whole shake when the base is soft. The stiffness of the base is swept, a thousand
runs at once, and the overshoot is compared with that of the rigid base.

Run it with ``python examples/mechanisms/compliant_base.py``. It saves ``compliant_base_step.png``
and ``compliant_base_sweep.png``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import flexure as fx

BEAM, CART = 20.0, 5.0  # kg


def build() -> fx.Diagram:
    """Wire the cart on its base with a controller that sees only the place on the beam."""
    builder = fx.PlantBuilder("machine")
    beam = builder.add_body("beam", fx.SpatialInertia.solid_box(BEAM, size=(1.0, 0.2, 0.1)))
    cart = builder.add_body("cart", fx.SpatialInertia.solid_box(CART, size=(0.1, 0.1, 0.1)))
    base = fx.PrismaticJoint("base", builder.world, beam, axis=(1, 0, 0))
    rail = fx.PrismaticJoint("rail", beam, cart, axis=(1, 0, 0), damping=1.0)
    builder.add_joint(base)
    builder.add_joint(rail)
    builder.add_force_element(fx.JointSpring("feet", base, stiffness=2e4, damping=40.0))
    builder.add_actuator("motor", rail)

    outer = fx.DiagramBuilder("servo")
    outer.add_all(
        builder.build(),
        fx.Step("target", at=0.1, to=0.3),
        fx.PIDController("pid", kp=800.0, ki=400.0, kd=90.0, derivative_filter=0.005),
    )
    outer.connect("target.y", "pid.setpoint")
    outer.connect("machine.rail.translation", "pid.measurement")
    outer.connect("pid.u", "machine.motor")
    return outer.build()


def main() -> None:
    """Simulate, sweep the stiffness of the base, check, and save the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(), help="where to save the pictures")
    folder = parser.parse_args().folder
    servo = build()
    result = fx.simulate(servo, 4.0, rtol=1e-6)
    response = result.step_response("machine.rail.translation")
    print(response.info)
    response.plot(path=folder / "compliant_base_step.png")

    stiffness = np.geomspace(2e2, 2e6, 1000)
    times = np.linspace(0.0, 4.0, 801)
    sweep = fx.sweep(
        servo,
        {"machine.feet.stiffness": stiffness},
        4.0,
        signals=["machine.base.translation", "machine.cart.position"],
        times=times,
        rtol=1e-6,
    )
    shake = np.max(np.abs(sweep["machine.base.translation"]), axis=1)
    error = np.max(np.abs(sweep["machine.cart.position"][:, times > 2.0, 0] - 0.3), axis=1)
    print(f"the base moves by {1e3 * shake[-1]:.3f} mm at {stiffness[-1]:.0e} N/m")
    print(f"and by {1e3 * shake[0]:.0f} mm at {stiffness[0]:.0e} N/m")

    with plt.style.context("flexure.pictures"):
        figure, (upper, lower) = plt.subplots(2, 1, sharex=True)
        upper.loglog(stiffness, 1e3 * shake)
        upper.set_ylabel("base moves by [mm]")
        lower.loglog(stiffness, 1e3 * error)
        lower.set_ylabel("cart is off after 2 s [mm]")
        lower.set_xlabel("stiffness of the base [N/m]")
        figure.savefig(folder / "compliant_base_sweep.png")
    assert abs(response.info.steady_state_error) < 0.01, "the cart misses its target"
    assert shake[0] > 50.0 * shake[-1], "a soft base does not move more than a stiff one"
    assert error[-1] < 0.01, "the cart does not settle on a stiff base"


if __name__ == "__main__":
    main()
