"""Random closed trees: minimal coordinates against constraints, and Jacobians by complex steps."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import flexure as fx
from flexure.blocks.multibody.loop_closure.closing import calc_equations
from flexure.diagrams import scalars
from flexure.diagrams.scalars.expressions.vocabulary import OPERATIONS
from flexure.solvers.tracing.exact_jacobian import numbers_behind, state_keys
from flexure.solvers.tracing.trace import trace
from tests.support.mechanics.mechanisms import CLOSING, MECHANISMS, closed_by, random_context
from tests.support.mechanics.multibody import KINDS, random_inertia, random_pose
from tests.support.tiers import by_tier, thinned


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


@settings(max_examples=by_tier(fast=4, full=16))
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
            value = complex_operation(expression.op, operands)
        known[expression.index] = value
    return known[expression.index]


def complex_operation(op: str, operands: list[Any]) -> Any:
    """Compute an operation on numbers with small imaginary parts."""
    if op == "arctan2":  # which NumPy has for real numbers alone
        y, x = operands
        slope = (np.real(x) * np.imag(y) - np.real(y) * np.imag(x)) / (np.abs(x) ** 2 + abs(y) ** 2)
        return np.arctan2(np.real(y), np.real(x)) + 1j * slope
    if op == "where":
        return operands[1] if operands[0] else operands[2]
    if op in ("rint", "floor", "less", "less_equal", "greater", "greater_equal"):
        operands = [np.real(each) for each in operands]
    return OPERATIONS[op](*operands)


LARGE = {name: MECHANISMS[name] for name in ("loops and couplings", "wheels and skates")}
LOOPS: dict[str, Callable[[], fx.Plant]] = {
    **LARGE,
    **{f"loop of a {kind}": partial(closed_by, kind) for kind in CLOSING},
}


def assembled(name: str) -> tuple[fx.Plant, fx.Context]:
    """Make a plant that moves as its constraints allow."""
    plant = LOOPS[name]()
    context = random_context(plant, np.random.default_rng(2))
    for port in plant.input_ports:
        port.fix(context, np.zeros(port.size or 0))
    plant.assemble(context)
    return plant, context


def complex_slopes(store: Any, values: Any, direction: Any) -> list[Any]:
    """Return the derivatives of traced values along a direction of the state."""
    numbers: dict[Any, Any] = dict(numbers_behind(store, values, store.time, store.x))
    states = dict(zip(state_keys(store), store.x + 1e-30j * direction, strict=True))
    numbers |= {key: states[key] for key in numbers.keys() & states.keys()}
    known: dict[Any, Any] = {}
    return [np.imag(complex_value(each, numbers, known)) / 1e-30 for each in values]


@pytest.mark.parametrize("name", thinned(LOOPS, fast=4))
def test_jacobians_of_constraints_are_those_of_a_complex_step(name: str) -> None:
    """The other route: errors and slips themselves at a state with a small imaginary part."""
    plant, context = assembled(name)
    tree, store = plant.tree, context.store
    leaf = next(k for k, system in enumerate(store.layout.leaves) if system is tree)

    def read(symbols: Any, *, slips: bool) -> Any:
        conditions = tree.conditions(symbols.leaves[leaf])
        parts = [each.rates[len(each.errors) :] if slips else each.errors for each in conditions]
        return [value for part in parts for value in part]

    errors, slips = (trace(store.layout, partial(read, slips=slips)) for slips in (False, True))
    own = context.find(tree, tree.positions)
    q, found, columns = tree.q(own), calc_equations(tree, own), []
    start, nq = store.leaves[leaf].x_slice.start, tree.topology.num_positions
    for v in np.eye(tree.topology.num_velocities):
        moving, speeding = np.zeros((2, len(store.x)))
        speeding[start + nq : start + nq + len(v)] = v
        for each in tree.topology.mobilizers:
            rates = each.joint.calc_position_rates(q[each.q], v[each.v])
            moving[start + each.q.start : start + each.q.stop] = rates
        column = np.zeros(len(found.J))
        column[found.of_positions] = complex_slopes(store, errors, moving)
        column[~found.of_positions] = complex_slopes(store, slips, speeding)
        columns.append(column)
    np.testing.assert_allclose(found.J.T, columns, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", thinned(LOOPS, fast=4))
def test_forces_of_constraints_do_no_work(name: str) -> None:
    """The other route: energies and works a moment before and after."""
    plant, context = assembled(name)
    start, rates = context.continuous_state, plant.eval_time_derivatives(context)
    books = [plant.find_output(path) for path in ("ledger.balance", "kinetic_energy")]
    found = []
    for moment in (-1e-5, 1e-5):
        context.continuous_state = start + moment * rates
        found.append([float(each.eval(context)[0]) for each in books])
    balance, kinetic = np.diff(found, axis=0)[0] / 2e-5
    assert abs(kinetic) > 0.1
    assert abs(balance) < 1e-6 * (1.0 + abs(kinetic))
