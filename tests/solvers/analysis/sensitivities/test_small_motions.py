"""Derivatives of motions that rest, or that tiny numbers cause, where step control sees nothing."""

from __future__ import annotations

import numpy as np

import flexure as fx
from flexure.solvers.design.optimization.candidates import Study
from flexure.solvers.design.optimization.motion_slopes import slopes_of
from flexure.solvers.design.optimization.search_space import SearchSpace
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


def test_a_search_by_many_coordinates_knows_the_slopes_of_a_motion_that_rests() -> None:
    builder = fx.DiagramBuilder("pushed")
    forces = [fx.Constant(f"f{k}", 0.0) for k in range(6)]
    sum_of, mass = fx.Sum("sum", "+" * 6), fx.TransferFunction("mass", [1.0], [1.0, 1.0, 100.0])
    builder.add_all(sum_of, mass, *forces)
    for k, force in enumerate(forces):
        builder.connect(force.y, sum_of.input_ports[k])
    builder.connect_chain(sum_of, mass)
    pushed = builder.build()
    base = pushed.create_default_context()
    space = SearchSpace(base, {f"f{k}.value": (-1.0, 1.0) for k in range(6)}, None, "Cannot search")
    study = Study(
        pushed, base, 2.0, fx.metrics.final("mass.y"), (), {}, None, None, "Cannot search"
    )
    by_force = slopes_of(study, space)
    _, found = by_force(np.full(6, 0.5))
    assert by_force.kind.startswith("adjoints")
    swing = np.sqrt(99.75)
    rest = np.exp(-1.0) * (np.cos(2.0 * swing) + 0.5 * np.sin(2.0 * swing) / swing)
    np.testing.assert_allclose(found, np.full((1, 6), 2.0 * (1.0 - rest) / 100.0), rtol=1e-4)
