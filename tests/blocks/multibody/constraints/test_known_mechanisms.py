"""Mechanisms with loops for which numbers are known."""

from __future__ import annotations

import numpy as np
import pytest

import flexure as fx
from tests.support.mechanics.squeezer import FINAL, squeezer


@pytest.mark.full
def test_andrews_squeezer_ends_where_the_test_set_says() -> None:
    plant, context = squeezer()
    assembly = plant.assemble(context)
    assert (assembly.iterations, assembly.mobility, assembly.num_redundant) == (0, 1, 9)
    result = fx.simulate(plant, 0.03, context=context, method="DOP853", rtol=1e-9, atol=1e-11)
    found = [plant.joint(name).positions.get(result.context)[0] for name in FINAL]
    assert found == pytest.approx(list(FINAL.values()), abs=1e-8)
    assert np.max(np.abs(result["loop_K3.error"])) < 1e-10


def test_andrews_squeezer_starts_with_the_accelerations_and_force_of_the_test_set() -> None:
    plant, context = squeezer()
    rates = dict(zip([j.name for j in plant.joints], plant.calc_vdot(context), strict=True))
    assert rates["beta"] == pytest.approx(14222.4439199541, rel=1e-9)
    assert rates["theta"] == pytest.approx(-10666.8329399656, rel=1e-9)
    force = plant.output_port("loop_K3.reaction").eval(context)[3:]
    expected = np.hypot(98.5668703962410896, 6.12268834425566265)
    assert np.linalg.norm(force) == pytest.approx(expected, rel=1e-9)


def bennett(twist: float = 0.8, length: float = 1.0) -> tuple[fx.Plant, fx.Context]:
    """Build Bennett's linkage: four bars in space that move only for their special lengths."""
    a, b = length, 0.6 * length
    other = np.arcsin(b / a * np.sin(twist))  # sin α / a = sin β / b
    builder = fx.PlantBuilder("bennett", gravity=(0.0, 0.0, 0.0))
    rod = fx.SpatialInertia.solid_box(mass=1.0, size=(0.3, 0.2, 0.1))
    bars = [builder.world, *(builder.add_body(f"bar{k}", rod) for k in range(1, 4))]
    frames = []
    for k, (bar, size, angle) in enumerate(
        zip(bars, (a, b, a, b), (twist, other, twist, other), strict=True)
    ):
        c, s = np.cos(angle), np.sin(angle)
        R = np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])
        frames.append(builder.add_frame(f"end{k}", bar, (R, (size, 0.0, 0.0))))
    for k in range(3):
        builder.add_joint(fx.RevoluteJoint(f"hinge{k}", frames[k], bars[k + 1], axis=(0, 0, 1)))
    builder.add_loop_joint(fx.RevoluteJoint("closure", frames[3], builder.world, axis=(0, 0, 1)))
    plant = builder.build()
    return plant, plant.create_default_context()


def test_bennetts_overconstrained_linkage_moves_with_its_closed_form() -> None:
    """tan(θ₁/2) tan(θ₂/2) = sin((β + α)/2)/sin((β - α)/2), and opposite angles are equal."""
    plant, context = bennett()
    plant.set_positions(context, [1.0, 2.0, -1.0])
    plant.assemble(context, fixed="hinge0")
    assembly = plant.assemble(context)
    assert (assembly.mobility, assembly.num_redundant) == (1, 3)
    plant.joint("hinge0").velocities.set(context, [1.0])
    plant.assemble(context, fixed="hinge0")
    result = fx.simulate(plant, 3.0, context=context, rtol=1e-9, atol=1e-11)
    times = np.linspace(0.0, 3.0, 50)
    q = np.transpose([result.sample(f"hinge{k}.angle", times) for k in range(3)])
    assert np.ptp(q[:, 0]) > 1.0
    product = np.tan(0.5 * q[:, 0]) * np.tan(0.5 * q[:, 1])
    assert product == pytest.approx(np.full(50, product[0]), rel=1e-6)
    other = np.arcsin(0.6 * np.sin(0.8))
    sum_, difference = np.sin(0.5 * (0.8 + other)), np.sin(0.5 * (0.8 - other))
    assert abs(product[0]) == pytest.approx(sum_ / difference, rel=1e-6) or abs(
        product[0]
    ) == pytest.approx(difference / sum_, rel=1e-6)
    energy = result.sample("kinetic_energy", times)
    assert energy == pytest.approx(np.full(50, energy[0]), rel=1e-7)


def bricard() -> fx.Plant:
    """Build Bricard's mechanism of the IFToMM library: five rods of 1 m along edges of a cube.

    Six revolute joints at their ends, each at right angles to both rods; gravity along -y.
    """
    corners = np.cumsum(
        [(0, 0, 0), (-1, 0, 0), (0, -1, 0), (0, 0, 1), (1, 0, 0), (0, 1, 0)], axis=0
    )
    axes = [(0, 1, 0), (0, 0, 1), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 0)]
    builder = fx.PlantBuilder("bricard")
    inner, ends = builder.world, [np.zeros(3)]
    turn = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])  # z upwards
    for k in range(5):
        rod = turn @ (corners[k + 1] - corners[k])
        across = 1.0 / 12.0 * (np.eye(3) - np.outer(rod, rod)) + 1e-4 * np.outer(rod, rod)
        body = builder.add_body(f"rod{k}", fx.SpatialInertia(1.0, 0.5 * rod, across))
        end = builder.add_frame(f"end{k}", inner, ends[-1])
        builder.add_joint(fx.RevoluteJoint(f"hinge{k}", end, body, axis=turn @ axes[k]))
        inner, ends = body, [*ends, rod]
    last = builder.add_frame("last", inner, ends[-1])
    foot = builder.add_frame("foot", builder.world, turn @ corners[5])
    builder.add_loop_joint(fx.RevoluteJoint("closure", foot, last, axis=turn @ axes[5]))
    builder.add_energy_ledger()
    return builder.build()


@pytest.mark.full
def test_bricards_mechanism_keeps_its_closed_form_and_its_energy_over_ten_seconds() -> None:
    """Between neighbors sin θ + sin φ = sin θ sin φ, and every second angle is the same.

    With the angles between rods, a quarter turn at the start, these are the cosines of Bricard's
    trihedral linkage with three planes of symmetry.
    """
    plant = bricard()
    context = plant.create_default_context()
    assembly = plant.assemble(context)
    assert (assembly.iterations, assembly.mobility, assembly.num_redundant) == (0, 1, 1)
    result = fx.simulate(plant, 10.0, context=context, method="DOP853", rtol=1e-10, atol=1e-12)
    times = np.linspace(0.0, 10.0, 200)
    q = np.transpose([result.sample(f"hinge{k}.angle", times) for k in range(5)])
    assert np.ptp(q[:, 0]) > 3.0
    first, second = np.sin(q[:, 0]), np.sin(q[:, 1])
    assert first + second == pytest.approx(first * second, abs=1e-8)
    assert q[:, 2:] == pytest.approx(q[:, [0, 1, 0]] * [-1.0, 1.0, 1.0], abs=1e-8)
    energy = result.sample("mechanical_energy", times)
    assert energy == pytest.approx(np.full(200, energy[0]), abs=1e-6)
    assert np.max(np.abs(result["closure.error"])) < 1e-8
