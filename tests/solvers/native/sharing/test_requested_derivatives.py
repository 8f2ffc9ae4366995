"""What analyses ask of shared code: outputs, and derivatives by inputs and parameters."""

from __future__ import annotations

import numpy as np

import flexure as fx
from flexure.solvers.analysis.forces_at_rest.exact_forces import AtRest, read_forces
from tests.solvers.native.sharing.test_alike_parts import moved
from tests.support.native.native import needs_llvmlite
from tests.support.native.shared_code import answers
from tests.support.systems.many_blocks import Holder, Literal, rail

pytestmark = needs_llvmlite


def open_rail() -> fx.Diagram:
    """Masses on a rail that is pushed at one end, and values of other sorts beside them."""
    builder = rail(12)
    for k in range(12):
        builder.add_all(Literal(f"v{k}", 0.5 * k), Holder(f"h{k}"))
        builder.export_input(f"h{k}.u", name=f"u{k}")
    builder.connect("v7.y", "m11.f1")
    return builder.build()


def test_outputs_and_derivatives_are_those_that_are_written_out() -> None:
    context = open_rail().create_default_context()
    for port in context.system.input_ports:
        port.fix(context, [2.0])
    context.continuous_state = np.sin(np.arange(24.0))
    outputs = ["m2.x", "m5.power", "v7.y", "h3.y", "h5.w", "m11.q", "s4.f"]
    shared, written = answers(context, ["u5", "s7.d", "m5.m", "u4"], outputs)
    for found, expected in zip(shared, written, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    read = [np.ravel(context.get(name)) for name in outputs]
    expected = np.concatenate([context.store.time_derivatives(), *read])
    np.testing.assert_allclose(shared[0], expected, rtol=1e-12, atol=1e-14)


def dampers(count: int) -> fx.Plant:
    """Sliders side by side, each with a damped spring to the ground."""
    builder = fx.PlantBuilder("dampers")
    for k in range(count):
        body = builder.add_body(f"b{k}", fx.SpatialInertia.point_mass(1.0 + k))
        builder.add_joint(fx.PrismaticJoint(f"j{k}", builder.world, body, axis=(0.0, 0.0, 1.0)))
        ends = builder.world, (0.1, 0.0, 0.0), body, (0.0, 0.0, 0.0)
        builder.add_force_element(
            fx.LinearSpringDamper(f"s{k}", *ends, free_length=0.1, stiffness=9.0, damping=2.0)
        )
    return builder.build()


def test_forces_at_rest_do_not_depend_on_velocities() -> None:
    context = moved(dampers(9).create_default_context())
    forces, slopes = next(answers(context, [], [], AtRest()))
    assert np.all(context.v)
    assert not np.any(slopes[:, 9:])
    context.continuous_state = [*context.q, *np.zeros(9)]
    expected = np.array(read_forces(context.store))
    np.testing.assert_allclose(forces[:9], expected, rtol=1e-12, atol=1e-14)
