"""A locked joint stands still, whichever way it was locked, and whatever its state says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import ContextError
from tests.support.mechanics.mechanisms import MOVING, arm, chain
from tests.support.native.native import needs_llvmlite

START = 0.4
every_reading = pytest.mark.parametrize(
    "compiled", [False, "python", pytest.param("native", marks=needs_llvmlite)]
)


def moving_arm() -> tuple[fx.Plant, fx.RevoluteJoint, fx.Context]:
    """An arm that swings."""
    builder, _, axis = arm()
    builder.add_energy_ledger()
    plant = builder.build()
    context = plant.create_default_context()
    axis.angle.set(context, START)
    axis.angular_rate.set(context, 3.0)
    return plant, axis, context


def reloaded(context: fx.Context, axis: fx.RevoluteJoint, folder: Path) -> fx.Context:
    """Return a context from a file in which somebody has set the flag."""
    context.save(folder / "context.json")
    text = (folder / "context.json").read_text()
    flagged = text.replace('"axis_locked": 0.0', '"axis_locked": 1.0')
    assert flagged != text
    (folder / "context.json").write_text(flagged)
    return axis.parent_plant.load_context(folder / "context.json")


def by_handle(context: fx.Context, axis: fx.RevoluteJoint, _: Path) -> fx.Context:
    axis.tree.find_parameter("axis_locked").set(context, 1.0)
    return context


def by_path(path: str) -> Callable[[fx.Context, fx.RevoluteJoint, Path], fx.Context]:
    def lock(context: fx.Context, axis: fx.RevoluteJoint, _: Path) -> fx.Context:
        context.set(path, 1.0)
        return context

    return lock


def before_its_velocity(context: fx.Context, axis: fx.RevoluteJoint, _: Path) -> fx.Context:
    axis.lock(context)
    context.set("axis.rate", 3.0)
    return context


def by_lock(context: fx.Context, axis: fx.RevoluteJoint, _: Path) -> fx.Context:
    axis.lock(context)
    return context


WAYS: dict[str, Callable[[fx.Context, fx.RevoluteJoint, Path], fx.Context]] = {
    "lock": by_lock,
    "handle": by_handle,
    "path": by_path("axis.locked"),
    "path of the tree": by_path("tree.axis_locked"),
    "before a velocity is set by path": before_its_velocity,
    "file": reloaded,
}


@pytest.mark.full
@every_reading
@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_locking_stops_the_joint(way: str, compiled: Any, tmp_path: Path) -> None:
    plant, axis, context = moving_arm()
    context = WAYS[way](context, axis, tmp_path)
    assert axis.is_locked(context)
    assert axis.angular_rate.get(context) == 0.0
    assert plant.get_velocities(context).tolist() == [0.0]
    assert context.get("axis.rate").tolist() == [0.0]
    assert plant.calc_kinetic_energy(context) == 0.0
    result = fx.simulate(plant, 1.0, context=context, compiled=compiled)
    assert np.all(result["axis.angle"] == START)
    assert np.all(result["axis.rate"] == 0.0)
    assert np.ptp(result["ledger.balance"]) == 0.0


@pytest.mark.full
@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=needs_llvmlite)])
def test_runs_of_a_sweep_are_locked_one_by_one(compiled: bool) -> None:
    plant, axis, context = moving_arm()
    grid = {"axis.locked": [0.0, 1.0, 0.0], "axis.rate": [3.0, 3.0, 0.0]}
    table = fx.sweep(
        plant,
        grid,
        1.0,
        context=context,
        signals=["axis.angle", "axis.rate"],
        times=[0.0, 1.0],
        compiled=compiled,
    )
    assert np.all(table["axis.angle"][1] == START)
    assert np.all(table["axis.rate"][1] == 0.0)
    for free in (0, 2):
        assert table["axis.angle"][free][-1] != START
        alone = fx.simulate(plant, 1.0, context=table.context(free), compiled=compiled)
        found = axis.angle.get(alone.context)
        assert table["axis.angle"][free][-1] == pytest.approx(found, abs=1e-9)


@pytest.mark.parametrize("kind", MOVING)
def test_a_joint_that_is_locked_in_motion_is_one_that_rests(kind: str) -> None:
    plant = chain("revolute", kind, "prismatic").build()
    middle = plant.joints[1]
    context = plant.create_default_context()
    plant.set_velocities(context, np.linspace(0.5, 1.5, plant.num_velocities))
    resting = context.clone()
    middle.velocities.set(resting, np.zeros(middle.num_velocities))
    for each in (context, resting):
        plant.find(f"{middle.name}.locked").set(each, 1.0)
    for port in plant.output_ports:
        np.testing.assert_array_equal(port.eval(context), port.eval(resting), port.name)
    np.testing.assert_array_equal(
        plant.eval_time_derivatives(context), plant.eval_time_derivatives(resting)
    )
    M, v = plant.calc_mass_matrix(context), plant.get_velocities(context)
    assert not v[plant.tree.velocities_of(middle)].any()
    assert plant.calc_kinetic_energy(context) == pytest.approx(0.5 * v @ M @ v, rel=1e-12)


def test_a_joint_that_is_unlocked_starts_from_rest() -> None:
    _, axis, context = moving_arm()
    context.set("axis.locked", 1.0)
    axis.unlock(context)
    assert not axis.is_locked(context)
    assert axis.angular_rate.get(context) == 0.0
    axis.angular_rate.set(context, 2.0)
    axis.unlock(context)  # it is free already
    assert axis.angular_rate.get(context) == 2.0


def test_a_flag_alone_leaves_the_velocity_in_the_state() -> None:
    _, axis, context = moving_arm()
    context.set("axis.locked", 1.0)
    context.set("axis.locked", 0.0)
    assert axis.angular_rate.get(context) == 3.0


@every_reading
def test_a_joint_can_be_locked_in_the_middle_of_a_run(compiled: Any) -> None:
    plant, axis, context = moving_arm()
    simulator = fx.Simulator(plant, context, compiled=compiled)
    simulator.advance_to(0.3)
    simulator.context.set("axis.locked", 1.0)
    caught = axis.angle.get(simulator.context)
    simulator.advance_to(0.6)
    assert axis.angle.get(simulator.context) == caught != START
    axis.unlock(simulator.context)
    simulator.advance_to(0.7)
    assert axis.angle.get(simulator.context) != caught


def test_a_locked_joint_refuses_velocities() -> None:
    _, axis, context = moving_arm()
    context.set("axis.locked", 1.0)
    before = context.clone()
    with pytest.raises(ContextError, match=r"zeros while the joint is locked.*unlock"):
        axis.angular_rate.set(context, 1.0)
    assert context == before
