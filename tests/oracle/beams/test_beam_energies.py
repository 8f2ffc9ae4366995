"""Divided beams have forces of one energy that closes its ledger, and no axes of the world."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import flexure as fx
from flexure.solvers.analysis.forces_at_rest.static_equations import StaticEquations
from tests.support.mechanics.beams import NO_GRAVITY, UNIT, place, stiffness_section
from tests.support.native.native import needs_llvmlite


def loose_pair(segments: int) -> fx.Plant:
    """Return two free bodies, joined by a beam."""
    builder = fx.PlantBuilder("pair", gravity=NO_GRAVITY)
    ends = [
        builder.add_body(name, fx.SpatialInertia.solid_box(1.0, size=(0.1, 0.2, 0.3)))
        for name in ("first", "second")
    ]
    for x, end in zip((0.0, 1.0), ends, strict=True):
        joint = builder.add_joint(
            fx.QuaternionFloatingJoint(f"joint_of_{end.name}", builder.world, end)
        )
        place(joint, x)
    section = stiffness_section(100.0, (1.0, 3.0), 0.7)
    builder.add_force_element(
        fx.Beam("beam", *ends, section=section, material=UNIT, length=1.0, segments=segments)
    )
    return builder.build()


def bent_pair(seed: int) -> tuple[fx.Plant, StaticEquations]:
    """Return a pair that is bent at random."""
    plant, rng = loose_pair(2), np.random.default_rng(seed)
    equations = StaticEquations(plant.create_default_context(), attempt="Cannot bend")
    increments = 0.1 * rng.normal(size=len(equations.coordinates))
    equations.move_to(equations.coordinates.moved(equations.states, increments))
    return plant, equations


@pytest.mark.full
@pytest.mark.parametrize("seed", range(2))
def test_forces_are_the_slopes_of_the_energy(seed: int) -> None:
    plant, equations = bent_pair(seed)
    energy, x = plant.output_port("potential_energy"), equations.states.copy()
    found = []
    for increment in np.eye(len(equations.coordinates)) * 1e-5:
        values = []
        for sign in (1.0, -1.0):
            equations.move_to(equations.coordinates.moved(x, sign * increment))
            values.append(float(energy.eval(equations.context)[0]))
        found.append((values[1] - values[0]) / 2e-5)
    equations.move_to(x)
    forces = equations.forces()
    assert forces == pytest.approx(found, abs=1e-8 * np.abs(forces).max())
    point = equations.point()
    assert np.abs(forces).max() > 0.1
    assert np.abs(point.stiffness).max() > 1.0


def test_rigid_motions_change_no_energy_and_no_force_between_the_ends() -> None:
    plant, equations = bent_pair(4)
    context = equations.context
    before = plant.output_port("potential_energy").eval(context)[0]
    on_ends = np.array([port.eval(context) for port in ends_of(plant)])
    turn, shift = Rotation.from_rotvec([1.0, -2.0, 0.5]), np.array([10.0, -20.0, 30.0])
    q = equations.states.copy()
    for k in range(0, 7 * (len(q) // 13), 7):
        w, x, y, z = q[k : k + 4]
        x, y, z, w = (turn * Rotation.from_quat([x, y, z, w])).as_quat()
        q[k : k + 7] = [w, x, y, z, *(turn.apply(q[k + 4 : k + 7]) + shift)]
    equations.move_to(q)
    after = plant.output_port("potential_energy").eval(context)[0]
    assert after == pytest.approx(before, rel=1e-11)
    moved = np.array([port.eval(context) for port in ends_of(plant)])
    assert moved == pytest.approx(on_ends, abs=1e-10 * np.abs(on_ends).max())


def ends_of(plant: fx.Plant) -> list[Any]:
    """Return the outputs with the forces on the ends of the beam, in the frames of the ends."""
    return [plant.find(f"beam.force_on_frame_{end}") for end in "AC"]


@needs_llvmlite
def test_the_ledger_of_a_leaf_closes_over_ten_thousand_periods() -> None:
    builder = fx.PlantBuilder("leaf", gravity=NO_GRAVITY)
    table = builder.add_body("table", fx.SpatialInertia.point_mass(1.0))
    slide = fx.PrismaticJoint("across", builder.world, table, (0.0, 1.0, 0.0))
    builder.add_joint(slide)
    end = builder.add_frame("end", table, (1.0, 0.0, 0.0))
    leaf = fx.Beam(
        "beam", builder.world, end, section=stiffness_section(1e3), material=UNIT, length=1.0
    )
    builder.add_force_element(leaf)
    builder.add_energy_ledger()
    plant = builder.build()
    context = plant.create_default_context()
    slide.translation.set(context, 0.05)
    period = 2.0 * np.pi / np.sqrt(12.0)  # at small amplitudes; tension makes it shorter
    simulator = fx.Simulator(plant, context, method="DOP853", rtol=1e-10, atol=1e-12)
    numbers = []
    for time in np.linspace(0.0, 1e4 * period, 6):
        simulator.advance_to(time)
        ports = [plant.find(name) for name in ("totals.mechanical_energy", "ledger.balance")]
        numbers.append([float(port.eval(simulator.context)[0]) for port in ports])
    energy, balance = np.array(numbers).T
    assert simulator.statistics.native_steps > 1e4
    assert np.ptp(balance) < 1e-6 * energy[0]
    assert np.ptp(energy) < 1e-6 * energy[0]
