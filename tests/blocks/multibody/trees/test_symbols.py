"""The algorithms run on symbols as on numbers, and record few operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from flexure.blocks.math import MassProperties, mirrored
from flexure.blocks.multibody.bodies.bodies import Body, Frame
from flexure.blocks.multibody.bodies.inertia import SpatialInertia
from flexure.blocks.multibody.joints.revolute import RevoluteJoint
from flexure.blocks.multibody.trees import energy
from flexure.blocks.multibody.trees.kinematics import (
    calc_accelerations,
    jacobian_bias,
    spatial_jacobian,
)
from flexure.diagrams import scalars
from flexure.diagrams.scalars.derivatives.simplification import simplify
from flexure.diagrams.scalars.expressions.expression import reachable
from tests.support.mechanics.multibody import Tree, make_tree, random_tree, scale_of
from tests.support.tiers import for_each

#: What a tree computes from: positions, velocities, forces along joints and on bodies, what is
#: mobile, gravity, and the mass properties of all bodies.
INPUTS = ("q", "v", "tau", "forces", "mobile", "gravity", "mass", "com", "inertia")


def numbers_for(tree: Tree, seed: int) -> dict[str, Any]:
    """Draw numbers for everything that a tree computes from."""
    rng = np.random.default_rng(seed)
    nv, count = tree.topology.num_velocities, len(tree.topology.bodies)
    return {
        "q": tree.random_positions(rng),
        "v": rng.normal(size=nv),
        "tau": rng.normal(size=nv),
        "forces": rng.normal(size=(count, 6)),
        "mobile": rng.choice([0.0, 1.0, 1.0], size=count - 1),
        "gravity": rng.normal(size=3),
        "mass": np.array([M.mass for M in tree.mass_properties]),
        "com": np.array([M.com for M in tree.mass_properties]),
        "inertia": np.array([M.inertia for M in tree.mass_properties]),
    }


def results(tree: Tree, numbers: dict[str, Any]) -> dict[str, Any]:
    """Run all algorithms once."""
    masses = zip(numbers["mass"], numbers["com"], numbers["inertia"], strict=True)
    properties = [MassProperties(mass, com, mirrored(I)) for mass, com, I in masses]
    topology = tree.topology
    state = Tree(topology, properties).at(numbers["q"], numbers["v"])
    last, point = len(topology.bodies) - 1, np.array([0.1, 0.2, 0.3])
    weights = energy.gravity_forces(state.inertias, numbers["gravity"])
    forces = [F + weight for F, weight in zip(numbers["forces"], weights, strict=True)]
    vdot = state.forward_dynamics(
        numbers["tau"], numbers["forces"], numbers["mobile"], gravity=numbers["gravity"]
    )
    return {
        "vdot": vdot,
        "tau": state.inverse_dynamics(numbers["tau"], forces),
        "M": state.mass_matrix(),
        "accelerations": np.concatenate(
            calc_accelerations(topology, state.placements, state.motions, numbers["tau"])
        ),
        "J": spatial_jacobian(topology, state.placements, last, point),
        "bias": jacobian_bias(topology, state.placements, state.motions, last, point),
        "kinetic energy": energy.kinetic_energy(state.motions, state.inertias),
        "gravity energy": energy.gravity_energy(
            state.placements, state.inertias, numbers["gravity"]
        ),
        "momentum": energy.momentum(state.placements, state.motions, state.inertias),
        "center": energy.center_of_mass(state.placements, state.inertias),
        "velocity of the center": energy.center_of_mass_velocity(state.motions, state.inertias),
    }


def symbols_for(
    numbers: dict[str, Any], names: Sequence[str] = INPUTS
) -> tuple[dict[str, Any], dict[Any, float]]:
    """Put symbols in place of some numbers, and return the values of the symbols as well."""
    graph = scalars.Graph()
    symbols = {name: scalars.symbols(graph, name, numbers[name].shape) for name in names}
    values = {
        (name, k): float(value) for name in names for k, value in enumerate(numbers[name].flat)
    }
    return {**numbers, **symbols}, values


def check_symbols(tree: Tree, seed: int, names: Sequence[str] = INPUTS) -> None:
    """Compare what all algorithms give for symbols with what they give for numbers."""
    numbers = numbers_for(tree, seed)
    mixed, values = symbols_for(numbers, names)
    found = results(tree, mixed)
    for name, expected in results(tree, numbers).items():
        evaluated = scalars.evaluate(found[name], values)
        assert np.shape(evaluated) == np.shape(expected)
        assert evaluated == pytest.approx(expected, rel=1e-8, abs=1e-10 * scale_of(expected)), name


@pytest.mark.full
@pytest.mark.parametrize("random_frames", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_symbols_give_what_numbers_give(seed: int, random_frames: bool) -> None:
    tree = random_tree(np.random.default_rng(seed), 5, random_frames=random_frames)
    check_symbols(tree, seed)


@pytest.mark.parametrize("name", INPUTS)
def test_numbers_and_symbols_may_be_mixed(name: str) -> None:
    tree = random_tree(np.random.default_rng(4), 5)
    check_symbols(tree, 4, [name])


@for_each("count", [1, 3])
def test_a_tree_of_welds_of_symbols(count: int) -> None:
    check_symbols(random_tree(np.random.default_rng(0), count, kinds=["weld"]), 0)


def test_mirrored_entries_of_the_mass_matrix_are_one_symbol() -> None:
    tree = random_tree(np.random.default_rng(6), 4, kinds=["universal", "ball_rpy", "planar"])
    M = results(tree, symbols_for(numbers_for(tree, 6))[0])["M"]
    assert all(
        entry is mirror or entry == mirror == 0.0
        for entry, mirror in zip(M.flat, M.T.flat, strict=True)
    )


def test_a_joint_that_moves_no_inertia_has_no_accelerations() -> None:
    world, tip = Body("world"), Body("tip", SpatialInertia(0.0))
    tree = make_tree([world, tip], [RevoluteJoint("wrist", world, tip, (0, 1, 0))])
    x = scalars.symbols(scalars.Graph(), "x", 4)
    bodies = [MassProperties(x[3], np.zeros(3), x[3] * np.eye(3))]
    vdot = Tree(tree.topology, bodies).at(x[:1], x[1:2]).forward_dynamics(x[2:3])
    assert np.isnan(scalars.evaluate(vdot, {("x", k): 0.0 for k in range(4)})).all()


def test_slopes_of_accelerations_are_exact() -> None:
    tree = random_tree(np.random.default_rng(8), 4, kinds=["revolute", "screw", "ball_rpy"])
    numbers = numbers_for(tree, 8)
    mixed, values = symbols_for(numbers, ["q"])
    slopes = scalars.jacobian(results(tree, mixed)["vdot"], list(values)).to_array()
    found = scalars.evaluate(slopes, values)
    for k, column in enumerate(found.T):
        step = 1e-6 * np.eye(len(numbers["q"]))[k]
        ahead, behind = (
            results(tree, {**numbers, "q": numbers["q"] + move})["vdot"] for move in (step, -step)
        )
        assert column == pytest.approx((ahead - behind) / 2e-6, abs=1e-6 * scale_of(found))


# How much is recorded ------------------------------------------------------------------------


def operations_of_a_chain(length: int, axis: Sequence[float]) -> int:
    """Count what the forward dynamics of a chain of revolute joints needs, without zeros."""
    bodies = [Body("world"), *(Body(f"link{k}", SpatialInertia(1.0)) for k in range(length))]
    joints = []
    for k in range(length):
        F = Frame(f"F{k}", bodies[k], (np.eye(3), [0.0, 0.0, -0.5]))
        joints.append(RevoluteJoint(f"joint{k}", F, bodies[k + 1], axis))
    tree = make_tree(bodies, joints)
    symbols, _ = symbols_for(numbers_for(tree, 0))
    masses = zip(symbols["mass"], symbols["com"], symbols["inertia"], strict=True)
    properties = [MassProperties(mass, com, mirrored(I)) for mass, com, I in masses]
    state = Tree(tree.topology, properties).at(symbols["q"], symbols["v"])
    vdot = state.forward_dynamics(
        symbols["tau"], mobile=symbols["mobile"], gravity=symbols["gravity"]
    )
    nodes = reachable(simplify(vdot))
    return sum(bool(node.args) for node in nodes)


@pytest.mark.parametrize(("axis", "most"), [((0, 1, 0), 150), ((1, 2, 3), 680)])
def test_a_revolute_joint_takes_a_few_hundred_operations(axis: Sequence[float], most: int) -> None:
    counts = [operations_of_a_chain(length, axis) for length in (5, 10, 15)]
    assert counts[0] <= 5 * most
    # The effort is proportional to the number of bodies.
    assert counts[1] - counts[0] == counts[2] - counts[1]
