"""Force elements on joints in every variety, as a part of the catalog."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import flexure as fx
from tests.contracts import parts

#: Makes a fresh block, by its label.
ON_JOINTS: dict[str, partial[Any]] = {
    "DoorHinge": partial(fx.DoorHinge, "block", parts.HINGED),
    "DoorHinge with a wide catch": partial(
        fx.DoorHinge,
        "block",
        parts.SCREWED,
        fx.DoorHingeConfig(catch_width=0.5),
        motion_threshold=0.1,
    ),
    "JointSpring": partial(fx.JointSpring, "block", parts.HINGED, stiffness=20.0),
    "JointSpring per coordinate": partial(
        fx.JointSpring,
        "block",
        parts.PLANAR,
        stiffness=[20.0, 10.0, 5.0],
        nominal_position=[0.1, 0.2, 0.3],
        preload=[1.0, 0.0, -1.0],
        damping=[0.1, 0.2, 0.3],
    ),
    "JointStop": partial(fx.JointStop, "block", parts.HINGED, stiffness=100.0, damping=0.5),
    "JointStop per coordinate": partial(
        fx.JointStop,
        "block",
        parts.UNIVERSAL,
        stiffness=[100.0, 50.0],
        damping=[0.5, 0.0],
        lower=[-0.5, -np.inf],
        upper=1.0,
    ),
    "JointFriction": partial(
        fx.JointFriction, "block", parts.SLIDING, coulomb_friction=3.0, transition_velocity=0.1
    ),
    "JointFriction per velocity": partial(
        fx.JointFriction,
        "block",
        parts.BALL,
        coulomb_friction=[3.0, 2.0, 1.0],
        transition_velocity=0.1,
        static_friction=[5.0, 2.5, 1.0],
        stribeck_velocity=0.5,
        viscous_friction=[0.1, 0.2, 0.3],
    ),
    "TabulatedSpring": partial(
        fx.TabulatedSpring,
        "block",
        parts.SLIDING,
        deflections=[-1.0, 0.0, 2.0],
        forces=[-5.0, 1.0, 3.0],
    ),
    "TabulatedSpring with stops": partial(
        fx.TabulatedSpring,
        "block",
        parts.SCREWED,
        deflections=[-1.0, 1.0],
        forces=[-1.0, 1.0],
        nominal_position=0.5,
        preload=2.0,
        damping=0.3,
        end_stiffness=50.0,
    ),
    "CompliantCoupling": partial(
        fx.CompliantCoupling, "block", parts.GEARS, stiffness=50.0, damping=0.5
    ),
    "CompliantCoupling with losses": partial(
        fx.CompliantCoupling,
        "block",
        parts.MIXER,
        stiffness=50.0,
        efficiency=0.8,
        power_threshold=2.0,
    ),
}
