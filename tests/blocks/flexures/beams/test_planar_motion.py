"""Beams that are known to stay in a plane: the numbers of others, and who knows it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.blocks.flexures.beams.beam_law import BeamLaw
from flexure.blocks.math import rotation_from_rotation_vector

LAW = BeamLaw(0.3, 4e6, 2.0, 30.0, 5.0, 1e-5, 0.02, 0.01, 1e-4)
LAWS = {"straight": LAW, "curved": replace(LAW, rest=np.array([0, 0, 0.2, 0.03, 0, 0.29]))}


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("seed", range(4))
def test_a_beam_in_a_plane_gives_the_numbers_of_one_in_space(name: str, seed: int) -> None:
    rng, law = np.random.default_rng(seed), LAWS[name]
    turn = rng.uniform(-2.5, 2.5) if seed else 0.0
    X_AC = rotation_from_rotation_vector([0.0, 0.0, turn]), np.array([0.3, *rng.normal(0, 0.1, 2)])
    X_AC[1][2] = 0.0
    V_AC = np.array([0.0, 0.0, *rng.normal(size=3), 0.0])
    found: list[list[Any]] = []
    for each in (law, replace(law, planar=True)):
        now = each.in_range(each.deformation(X_AC))
        rates = each.rates(now, V_AC)
        forces = each.spatial_forces(now, rates)
        energy = [each.stored_energy(now), each.conservative_power(now, rates)]
        found.append([*forces, *energy, each.section_forces(now, *forces)])
    for expected, planar in zip(*found, strict=True):
        scale = np.abs(expected).max(initial=1e-300)
        np.testing.assert_allclose(planar, expected, rtol=0.0, atol=1e-11 * scale)


def joined(kind: str) -> fx.Beam:
    """Return a planar beam in four segments from the world to a body on a joint."""
    builder = fx.PlantBuilder("bench")
    tip = builder.add_body("tip", fx.SpatialInertia(1.0, np.zeros(3), np.ones(3)))
    joint: Any
    if kind == "revolute across":
        joint = fx.RevoluteJoint("joint", builder.world, tip, axis=(0.0, 0.0, 1.0))
    elif kind == "revolute along":
        joint = fx.RevoluteJoint("joint", builder.world, tip, axis=(1.0, 0.0, 0.0))
    elif kind == "planar":
        joint = fx.PlanarJoint("joint", builder.world, tip)
    else:
        joint = fx.QuaternionFloatingJoint("joint", builder.world, tip)
    builder.add_joint(joint)
    beam = fx.Beam(
        "leaf",
        builder.world,
        builder.add_frame("end", tip, (0.2, 0.0, 0.0)),
        section=fx.sections.RectangleSection(width=0.02, thickness=0.001),
        material=fx.Material.common("structural steel S235"),
        length=0.2,
        segments=4,
        planar=True,
    )
    builder.add_force_element(beam)
    builder.build()
    return beam


@pytest.mark.parametrize(
    ("kind", "stays"),
    [
        ("planar", True),
        ("revolute across", True),
        ("revolute along", False),
        ("floating", False),
    ],
)
def test_the_last_segment_stays_in_the_plane_if_joints_say_so(kind: str, stays: bool) -> None:
    segments = joined(kind).inside.segments
    assert [segment.planar for segment in segments] == [True, True, True, stays]


def test_an_end_that_leaves_the_plane_is_pushed_back() -> None:
    beam = joined("floating")
    plant: Any = beam.parent_plant
    context = plant.create_default_context()
    plant.joint("joint").positions.set(context, np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1e-4]))
    force = beam.force_on_frame_C.eval(context)[3:]
    assert force[2] < -1e-3


def rotor(
    axis: tuple[float, float, float], inertia: float, segments: int, mass: float = 1e-9
) -> tuple[Any, Any, Any]:
    """Return a planar leaf on a hub that turns about an axis, with the hub's joint and the tip's.

    Across the axis z of the hub, the plane in which the leaf moves turns with the hub.
    """
    builder = fx.PlantBuilder("rotor", gravity=(0.0, 0.0, 0.0))
    hub = builder.add_body("hub", fx.SpatialInertia(1.0, np.zeros(3), inertia * np.ones(3)))
    turn = builder.add_joint(fx.RevoluteJoint("hub", builder.world, hub, axis=axis))
    tip = builder.add_body("tip", fx.SpatialInertia.solid_sphere(mass, radius=1e-3))
    at_tip = builder.add_joint(fx.PlanarJoint("tip", hub, tip))
    at_tip.default_pose = np.eye(3), (0.5, 0.0, 0.0)
    leaf = fx.LeafSpring(
        "leaf",
        hub,
        tip,
        length=0.5,
        width=0.02,
        thickness=2e-3,
        material=fx.Material(200e9, poissons_ratio=0.3, density=8000.0),
        segments=segments,
        planar=True,
        shear=False,
    )
    builder.add_force_element(leaf)
    return builder.build(), turn, at_tip


@pytest.mark.full
def test_the_plane_of_a_planar_leaf_turns_with_the_hub_that_carries_it() -> None:
    plant, hub, _ = rotor((0.6, 0.8, 0.0), 1.0, 4)
    path = fx.load_path(plant, {hub.angle: np.deg2rad(20.0)})
    assert np.abs(path.required["hub.angle"]).max() < 1e-9  # nothing holds the hub
    frequencies = [mode.frequency for mode in list(fx.modes(plant, path.context(-1)))[1:4]]
    expected = [mode.frequency for mode in list(fx.modes(plant))[1:4]]
    np.testing.assert_allclose(frequencies, expected, rtol=1e-9)


@pytest.mark.full
def test_a_spinning_planar_leaf_stiffens_as_in_tables() -> None:
    # A. D. Wright and others, Vibration modes of centrifugally stiffened beams, Journal of Applied
    # Mechanics 49 (1982) 197-202: flapping of a cantilever; frequencies over √(EI/(ρ A L⁴)).
    unit = np.sqrt(200e9 * 0.002**2 / 12.0 / 8000.0) / 0.5**2
    plant, hub, _ = rotor((0.0, 1.0, 0.0), 1e6, 4)
    context = plant.create_default_context()
    n, found = plant.num_positions, []
    for spin in (0.0, 2.0, 8.0):
        hub.angular_rate.set(context, spin * unit)
        for _ in range(2):  # to where the leaf, stretched by its spin, is at rest in the hub
            A = fx.linearize(plant, context).A[n + 1 :, 1:n]
            x = context.continuous_state.copy()
            x[1:n] -= np.linalg.solve(A, plant.output_port("accelerations").eval(context)[1:])
            context.continuous_state = x
        values = np.linalg.eigvals(fx.linearize(plant, context).A[1:, 1:]).imag
        found.append(np.min(values[values > 0.01 * unit]) / unit)
    np.testing.assert_allclose(found, [3.5160, 4.1373, 9.2568], rtol=3e-3)


@pytest.mark.parametrize("seed", range(3))
def test_a_planar_leaf_on_a_free_hub_keeps_energy_and_angular_momentum(seed: int) -> None:
    rng, axis = np.random.default_rng(seed), np.array([0.48, 0.6, 0.64])
    plant, _, _ = rotor(tuple(axis), 1e-3, 3, mass=0.02)
    context = plant.create_default_context()
    n = plant.num_positions
    start = context.continuous_state + rng.normal(0.0, [1e-3] * n + [3.0] * n)
    context.continuous_state = start
    slope = plant.eval_time_derivatives(context)

    def rates(slope: Any) -> Any:
        """Return the rates of energy and angular momentum while states change at some rates."""
        ends = []
        for step in (1e-8, -1e-8):
            context.continuous_state = start + step * slope
            energy = plant.output_port("mechanical_energy").eval(context)
            momentum = plant.output_port("momentum").eval(context)[:3] @ axis
            ends.append(np.array([float(energy[0]), momentum]))
        return (ends[0] - ends[1]) / 2e-8

    parts = [np.where(np.arange(2 * n) < n, slope, 0.0), np.where(np.arange(2 * n) < n, 0.0, slope)]
    scale = np.abs(rates(parts[0])) + np.abs(rates(parts[1]))
    np.testing.assert_array_less(np.abs(rates(slope)), 1e-5 * scale)
