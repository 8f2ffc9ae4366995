"""Derivatives of motions that rest, or that tiny numbers cause, where step control sees nothing."""

from __future__ import annotations

import numpy as np

import flexure as fx
from tests.support.tiers import for_each


@for_each("command", [1.0, 1e-7, 1e-12, 1e-30, 0.0])
def test_derivatives_by_tiny_numbers_are_as_accurate(command: float) -> None:
    builder = fx.DiagramBuilder("two")
    slow, fast = (fx.FirstOrderLag(n, time_constant=t) for n, t in (("slow", 1e3), ("fast", 1.0)))
    builder.add_all(fx.Constant("one", 1.0), slow, fast)
    builder.connect_chain("one", "slow")
    builder.export_input(fast.u, name="u")
    two = builder.build()
    context = two.create_default_context()
    two.input_port("u").fix(context, command)
    found = fx.parameter_sensitivity(two, "u", 5.0, context=context)["u"]
    np.testing.assert_allclose(found.ravel(), [0.0, -np.expm1(-5.0)], rtol=3e-6)


@for_each("force", [0.0, 1e-12, 1e-6, 1.0])
def test_gradients_of_motions_that_rest_are_those_of_others(force: float) -> None:
    """A step of any length is right for a mass at rest, not for what a force would do to it."""
    builder = fx.PlantBuilder("stage")
    table = builder.add_body("table", fx.SpatialInertia.point_mass(1.0))
    guide = builder.add_joint(fx.PrismaticJoint("guide", builder.world, table, axis=(1, 0, 0)))
    builder.add_force_element(fx.JointSpring("leaf", guide, stiffness=100.0, damping=1.0))
    builder.add_actuator("motor", guide)
    stage = builder.build()
    context = stage.create_default_context()
    stage.input_port("motor").fix(context, force)
    final = fx.metrics.final("guide.translation")
    found = fx.gradient(stage, final, "motor", 1.0, context=context)["motor"]
    damped = np.sqrt(100.0 - 0.25)
    swing = np.cos(damped) + 0.5 * np.sin(damped) / damped
    np.testing.assert_allclose(found, (1.0 - np.exp(-0.5) * swing) / 100.0, rtol=3e-6)
