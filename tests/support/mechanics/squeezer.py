"""Andrews' squeezing mechanism: seven bodies, three loops at one point, and a stiff spring.

Data, initial values and the state at t = 0.03 s are those of the Test Set for IVP Solvers (Bari),
problem "Andrews' squeezing mechanism", after W. Schiehlen (editor), Multibody Systems Handbook,
1990, and E. Hairer and G. Wanner, Solving Ordinary Differential Equations II, section VII.7.
"""

from __future__ import annotations

import numpy as np

import flexure as fx

#: Mass in kg, moment of inertia in kg m² and center of mass in m of each body.
BODIES = {
    "K1": (0.04325, 2.194e-6, (0.00092, 0.0)),
    "K2": (0.00365, 4.410e-7, (-0.0115, 0.0)),
    "K3": (0.02373, 5.255e-6, (0.01043, -0.01874)),
    "K4": (0.00706, 5.667e-7, (0.0, -(0.02 - 0.01421))),
    "K5": (0.07050, 1.169e-5, (0.02308, 0.00916)),
    "K6": (0.00706, 5.667e-7, (0.02 - 0.01421, 0.0)),
    "K7": (0.05498, 1.912e-5, (-0.00449, -0.01228)),
}
_O, _A, _B = (0.0, 0.0), (-0.06934, -0.00227), (-0.03635, 0.03273)
#: The body that each joint is on, where on it, and the body that it turns.
JOINTS = {
    "beta": (None, _O, "K1"),
    "theta": ("K1", (0.007, 0.0), "K2"),
    "gamma": (None, _B, "K3"),
    "delta": (None, _A, "K5"),
    "phi": ("K5", (0.04, 0.0), "K4"),
    "epsilon": (None, _A, "K7"),
    "omega": ("K7", (0.0, -0.04), "K6"),
}
#: Where bodies meet the tip of K2, which is at (-0.028, 0) of it.
TIPS = {"K3": (0.0, -0.035), "K4": (0.0, -0.02), "K6": (0.02, 0.0)}
INITIAL = {
    "beta": -0.0617138900142764496,
    "theta": 0.0,
    "gamma": 0.455279819163070380,
    "phi": 0.222668390165885885,
    "delta": 0.487364979543842550,
    "omega": -0.222668390165885885,
    "epsilon": 1.23054744454982120,
}
FINAL = {
    "beta": 15.81077119629904,
    "theta": -15.75637105984298,
    "gamma": 0.04082224013073101,
    "phi": -0.5347301163226948,
    "delta": 0.5244099658805304,
    "omega": 0.5347301163226948,
    "epsilon": 1.048080741042263,
}


def squeezer(kind: str = "revolute") -> tuple[fx.Plant, fx.Context]:
    """Build the mechanism, driven by a constant torque on K1, as it is at t = 0."""
    builder = fx.PlantBuilder("squeezer", gravity=(0.0, 0.0, 0.0))
    bodies = {
        name: builder.add_body(name, fx.SpatialInertia(mass, (*com, 0.0), np.eye(3) * moment))
        for name, (mass, moment, com) in BODIES.items()
    }
    joints = {}
    for name, (parent, place, child) in JOINTS.items():
        on = bodies[parent] if parent else builder.world
        frame = builder.add_frame(f"on_{child}", on, (*place, 0.0))
        joint = fx.RevoluteJoint(name, frame, bodies[child], axis=(0, 0, 1))
        joints[name] = builder.add_joint(joint)
    tip = builder.add_frame("tip", bodies["K2"], (-0.028, 0.0, 0.0))
    for name, place in TIPS.items():
        frame = builder.add_frame(f"tip_{name}", bodies[name], (*place, 0.0))
        loop = (
            fx.RevoluteJoint(f"loop_{name}", tip, frame, axis=(0, 0, 1))
            if kind == "revolute"
            else fx.BallQuaternionJoint(f"loop_{name}", tip, frame)
        )
        builder.add_loop_joint(loop)
    spring = fx.LinearSpringDamper(
        "spring",
        builder.world,
        (0.014, 0.072, 0.0),
        bodies["K3"],
        (0.02, -0.018, 0.0),
        free_length=0.07785,
        stiffness=4530.0,
        damping=0.0,
    )
    builder.add_force_element(spring)
    builder.add_actuator("motor", joints["beta"])
    plant = builder.build()
    context = plant.create_default_context()
    plant.input_port("motor").fix(context, 0.033)
    for name, angle in INITIAL.items():
        joints[name].angle.set(context, angle)
    return plant, context
