"""Random closed trees: minimal coordinates against constraints, and Jacobians by complex steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flexure as fx
from flexure.blocks.multibody.closing import calc_equations
from flexure.diagrams import scalars
from flexure.diagrams.scalars.vocabulary import OPERATIONS
from flexure.solvers.tracing.exact_jacobian import numbers_behind, state_keys
from flexure.solvers.tracing.trace import trace
from tests.support.draws import draws
from tests.support.mechanisms import MECHANISMS, random_context
from tests.support.multibody import KINDS, random_inertia, random_pose

#: Joints that can close a loop.
CLOSING = [kind for kind in KINDS if "floating" not in kind]


def random_tree(seed: int, count: int, cut: int | None) -> fx.Plant:
    """Build a random tree, of which one joint may be a constraint in place of coordinates."""
    rng = np.random.default_rng(seed)
    builder = fx.PlantBuilder("tree", gravity=rng.normal(size=3))
    for k in range(count):
        inner = builder.bodies[int(rng.integers(len(builder.bodies)))]
        body = builder.add_body(f"body{k}", random_inertia(rng))
        F, M = (
            builder.add_frame(f"{name}{k}", end, random_pose(rng))
            for name, end in (("F", inner), ("M", body))
        )
        joint = KINDS[str(rng.choice(CLOSING))](f"joint{k}", F, M, rng)
        if k == cut:
            builder.add_loop_joint(joint)
        else:
            builder.add_joint(joint)
    builder.add_external_force("push", builder.bodies[-1])
    return builder.build()


@settings(max_examples=draws(8, of=24))
@given(seed=st.integers(0, 10_000), count=st.integers(1, 5), which=st.integers(0, 4))
def test_a_random_tree_moves_alike_with_a_joint_and_with_its_constraint(
    seed: int, count: int, which: int
) -> None:
    cut = which % count
    plain, closed = random_tree(seed, count, None), random_tree(seed, count, cut)
    rng = np.random.default_rng(seed + 1)
    there, here = (plant.create_default_context() for plant in (plain, closed))
    for joint in plain.joints:
        joint.positions.set(there, joint.nearest_positions(random_pose(rng)))
        joint.velocities.set(there, rng.normal(size=joint.num_velocities))
    force = rng.normal(size=6)
    for plant, context in ((plain, there), (closed, here)):
        plant.input_port("push").fix(context, force)
    for joint in closed.joints:
        if joint.name == f"body{cut}":
            body = plain.body(joint.name)
            joint.pose.set(here, body.pose(there))
            joint.spatial_velocity.set(here, body.spatial_velocity(there))
        else:
            twin = plain.joint(joint.name)
            joint.positions.set(here, twin.positions.get(there))
            joint.velocities.set(here, twin.velocities.get(there))
    found = calc_equations(closed.tree, here)
    assert np.max(np.abs([*found.errors, *found.rates])) < 1e-10
    expected = [body.spatial_acceleration(there) for body in plain.bodies[1:]]
    scale = 1.0 + np.max(np.abs(expected))
    accelerations = [body.spatial_acceleration(here) for body in closed.bodies[1:]]
    np.testing.assert_allclose(np.array(accelerations) / scale, expected / scale, atol=1e-6)
    assert closed.calc_kinetic_energy(here) == pytest.approx(plain.calc_kinetic_energy(there))


def complex_value(expression: Any, numbers: dict[Any, Any], known: dict[Any, Any]) -> Any:
    """Compute an expression by NumPy, in which numbers may be complex."""
    if not isinstance(expression, scalars.Symbol):
        return expression
    if expression.index not in known:
        if expression.op == "input":
            value = numbers[expression.key]
        elif expression.op == "constant":
            value = expression.value
        else:
            operands = [complex_value(each, numbers, known) for each in expression.args]
            value = OPERATIONS[expression.op](*operands)
        known[expression.index] = value
    return known[expression.index]


def test_jacobians_of_constraints_are_those_of_a_complex_step() -> None:
    """The other route: the errors themselves at positions with a small imaginary part."""
    plant = MECHANISMS["loops and couplings"]()
    context = random_context(plant, np.random.default_rng(2))
    tree, store = plant.tree, context.store
    leaf = next(k for k, system in enumerate(store.layout.leaves) if system is tree)

    def read(symbols: Any) -> Any:
        conditions = tree.conditions(symbols.leaves[leaf])
        return [error for each in conditions for error in each.errors]

    errors = trace(store.layout, read)
    q, start = tree.q(context.find(tree, tree.positions)), store.leaves[leaf].x_slice.start
    columns, h = [], 1e-30
    for v in np.eye(tree.topology.num_velocities):
        x = store.x.astype(complex)
        for each in tree.topology.mobilizers:
            rates = each.joint.calc_position_rates(q[each.q], v[each.v])
            x[start + each.q.start : start + each.q.stop] += 1j * h * rates
        numbers: dict[Any, Any] = dict(numbers_behind(store, errors, store.time, store.x))
        states = dict(zip(state_keys(store), x, strict=True))
        numbers |= {key: states[key] for key in numbers.keys() & states.keys()}
        known: dict[Any, Any] = {}
        columns.append([np.imag(complex_value(each, numbers, known)) / h for each in errors])
    found = calc_equations(tree, context.find(tree, tree.positions))
    np.testing.assert_allclose(found.J[found.of_positions].T, columns, rtol=1e-12, atol=1e-12)
