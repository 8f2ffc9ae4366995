"""Shares of energy are those of finite quadratic forms of the energies of elements themselves."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import flexure as fx
from tests.solvers.analysis.modes.test_modes import links, moved, oscillator


@pytest.fixture(scope="module")
def crane() -> tuple[fx.Plant, fx.Context]:
    """A body on a ball joint and one that hangs from it, under loads in all elements."""
    builder = fx.PlantBuilder("crane")
    boom_inertia = fx.SpatialInertia.solid_box(2.0, size=(0.8, 0.1, 0.2))
    boom = builder.add_body("boom", boom_inertia, com=(0.4, 0.0, 0.05))
    load = builder.add_body("load", fx.SpatialInertia.solid_sphere(1.0, radius=0.1))
    builder.add_joint(fx.BallQuaternionJoint("foot", builder.world, boom, damping=0.05))
    builder.add_joint(fx.QuaternionFloatingJoint("free", builder.world, load))
    tip = builder.add_frame("tip", boom, (np.eye(3), (0.8, 0.0, 0.0)))
    mast = builder.add_frame("mast", builder.world, (np.eye(3), (0.1, 0.0, 0.4)))
    stay = {"free_length": 0.2, "stiffness": 300.0, "damping": 2.0}
    builder.add_force_element(
        fx.LinearSpringDamper("stay", mast, (0.0, 0.0, 0.0), tip, (0.0, 0.0, 0.0), **stay)
    )
    hook = {"torque_stiffness": (3.0, 4.0, 5.0), "torque_damping": (0.02, 0.01, 0.03)}
    rope = {"force_stiffness": (100.0, 150.0, 400.0), "force_damping": (0.1, 0.2, 0.4)}
    builder.add_force_element(fx.LinearBushing("rope", tip, load, **hook, **rope))
    root = builder.add_frame("root", builder.world)
    base = {"torque_stiffness": (40.0, 60.0, 50.0), "torque_damping": (0.1, 0.2, 0.3)}
    none = {"force_stiffness": (0.0, 0.0, 0.0), "force_damping": (0.0, 0.0, 0.0)}
    builder.add_force_element(fx.LinearBushing("base", root, boom, **base, **none))
    plant = builder.build()
    context = plant.create_default_context()
    plant.joint("free").pose.set(context, (np.eye(3), np.array([0.8, 0.0, -0.1])))
    return plant, fx.equilibrium(plant, context).context


def shares(parts: dict[str, float]) -> dict[str, float]:
    total = sum(map(abs, parts.values()))
    return {name: part / total for name, part in parts.items() if abs(part) > 1e-6 * total}


@pytest.mark.full
def test_strain_energies_are_second_differences_of_stored_energies(
    crane: tuple[fx.Plant, fx.Context],
) -> None:
    plant, context = crane
    ports = {name: plant.output_port(f"{name}.stored_energy") for name in ("stay", "rope", "base")}
    ports["gravity"] = plant.tree.output_port("gravity_energy")
    step = 3e-5
    for mode in fx.modes(plant, context):
        parts = dict.fromkeys(ports, 0.0)
        shape = np.array(list(mode.shape.values()))
        for part in (shape.real, shape.imag):
            twins = [moved(plant, context, k * step * part) for k in (-1.0, 0.0, 1.0)]
            for name, port in ports.items():
                before, middle, after = (float(port.eval(twin)[0]) for twin in twins)
                parts[name] += (before - 2.0 * middle + after) / step**2
        expected = shares(parts)
        assert sum(map(abs, mode.strain_energy.values())) == pytest.approx(1.0, rel=1e-12)
        for name, share in mode.strain_energy.items():
            assert share == pytest.approx(expected.get(name, 0.0), abs=2e-4)
        assert "inputs" not in mode.strain_energy


@pytest.mark.full
def test_losses_are_the_powers_of_small_motions(crane: tuple[fx.Plant, fx.Context]) -> None:
    plant, context = crane
    tree = plant.tree
    ports = {
        name: plant.output_port(f"{name}.non_conservative_power")
        for name in ("stay", "rope", "base")
    }
    ports["foot.damping"] = tree.output_port("damping_power")
    for mode in fx.modes(plant, context):
        parts = dict.fromkeys(ports, 0.0)
        shape = np.array(list(mode.shape.values()))
        for part in (shape.real, shape.imag):
            twin = context.clone()
            plant.set_velocities(twin, 1e-6 * part)
            for name, port in ports.items():
                parts[name] -= float(port.eval(twin)[0])
        expected = shares(parts)
        for name, share in mode.dissipated_energy.items():
            assert share == pytest.approx(expected.get(name, 0.0), abs=1e-6)
        assert sum(mode.dissipated_energy.values()) == pytest.approx(1.0)


def test_shares_of_kinetic_energy_are_those_of_bodies_and_rotors() -> None:
    builder = fx.PlantBuilder("drive", gravity=(0.0, 0.0, 0.0))
    cart = builder.add_body("cart", fx.SpatialInertia.point_mass(3.0))
    load = builder.add_body("load", fx.SpatialInertia.point_mass(2.0))
    rail = builder.add_joint(fx.PrismaticJoint("rail", builder.world, cart, (1, 0, 0)))
    slide = builder.add_joint(fx.PrismaticJoint("slide", cart, load, (1, 0, 0)))
    builder.add_actuator("motor", rail, gear_ratio=10.0, rotor_inertia=0.05)
    builder.add_force_element(fx.JointSpring("spring", slide, stiffness=70.0))
    free, swing = fx.modes(builder.build())
    assert free.kind == "rigid"
    assert free.bodies == pytest.approx({"cart": 0.3, "load": 0.2, "rail.rotor": 0.5})
    expected = {"cart": 3.0 * 4.0, "load": 2.0 * 64.0, "rail.rotor": 5.0 * 4.0}
    assert swing.bodies == pytest.approx(shares(expected))
    assert swing.frequency == pytest.approx(np.sqrt(70.0 / (2.0 * 8.0 / 10.0)) / (2.0 * np.pi))


def test_a_controller_counts_as_the_spring_and_the_damper_that_it_is() -> None:
    builder = fx.PlantBuilder("cart", gravity=(0.0, 0.0, 0.0))
    body = builder.add_body("body", fx.SpatialInertia.point_mass(2.0))
    rail = builder.add_joint(fx.PrismaticJoint("rail", builder.world, body, (1, 0, 0), damping=0.5))
    builder.add_force_element(fx.JointSpring("spring", rail, stiffness=30.0, damping=0.1))
    builder.add_actuator("motor", rail)
    loop = fx.DiagramBuilder("loop")
    loop.add_all(
        builder.build(), fx.MatrixGain("law", [[-10.0, -0.4]]), fx.Multiplexer("both", [1, 1])
    )
    loop.connect("cart.rail.translation", "both.u1")
    loop.connect("cart.rail.rate", "both.u2")
    loop.connect("both.y", "law.u")
    loop.connect("law.y", "cart.motor")
    (mode,) = fx.modes(loop.build())
    assert mode.strain_energy == pytest.approx({"cart.spring": 0.75, "inputs": 0.25})
    assert mode.dissipated_energy == pytest.approx(
        {"cart.spring": 0.1, "cart.rail.damping": 0.5, "inputs": 0.4}
    )


def test_a_loop_turns_loads_into_stiffness() -> None:
    """A rod holds a mass that hangs beside a spring: gravity is a spring of m g/l."""
    builder = fx.PlantBuilder("swing", gravity=(0.0, -9.81, 0.0))
    mass = builder.add_body("mass", fx.SpatialInertia.solid_box(2.0, size=(0.1, 0.1, 0.1)))
    plane = builder.add_joint(fx.PlanarJoint("plane", builder.world, mass))
    plane.default_pose = np.eye(3), (0.0, -0.5, 0.0)
    origin = (0.0, 0.0, 0.0)
    rod = fx.constraints.DistanceConstraint("rod", builder.world, origin, mass, origin, 0.5)
    builder.add_constraint(rod)
    spring = fx.JointSpring("spring", plane, stiffness=(60.76, 0.0, 1.0))
    builder.add_force_element(spring)
    swing = fx.modes(builder.build())[0]
    assert swing.frequency == pytest.approx(5.0 * np.sqrt(2.0) / (2.0 * np.pi))
    assert swing.strain_energy == pytest.approx({"spring": 0.6076, "gravity": 0.3924})


def test_coriolis_forces_are_no_inputs() -> None:
    """In a world that spins by 2 rad/s, springs of 5 rad/s have 3 and 7 rad/s."""
    builder = fx.PlantBuilder("table", gravity=(0.0, 0.0, 0.0), spin=(0.0, 0.0, 2.0))
    puck = builder.add_body("puck", fx.SpatialInertia.solid_sphere(1.0, radius=0.1))
    plane = builder.add_joint(fx.PlanarJoint("plane", builder.world, puck))
    stiffness = (25.0, 25.0, 1.0)
    builder.add_force_element(fx.JointSpring("spring", plane, stiffness=stiffness))
    modes = fx.modes(builder.build())
    for mode in (modes[0], modes[1]):
        assert mode.strain_energy == pytest.approx({"spring": 25.0 / 29.0, "gravity": -4.0 / 29.0})
        assert mode.dissipated_energy == {}


def test_friction_counts_with_its_slope_at_rest() -> None:
    builder = fx.PlantBuilder("cart", gravity=(0.0, 0.0, 0.0))
    body = builder.add_body("body", fx.SpatialInertia.point_mass(2.0))
    rail = builder.add_joint(fx.PrismaticJoint("rail", builder.world, body, (1, 0, 0)))
    builder.add_force_element(fx.JointSpring("spring", rail, stiffness=1e4, damping=3.0))
    seal = fx.JointFriction("seal", rail, coulomb_friction=0.1, transition_velocity=0.05)
    builder.add_force_element(seal)
    (mode,) = fx.modes(builder.build())
    total = -2.0 * mode.poles[0].real * 2.0  # of the mass of 2 kg, in N s/m
    assert total > 3.5
    assert mode.dissipated_energy["spring"] == pytest.approx(3.0 / total, rel=1e-9)
    assert mode.dissipated_energy["seal"] == pytest.approx(1.0 - 3.0 / total, rel=1e-9)


def test_a_slow_chain_has_its_energies_where_it_bends() -> None:
    plant = links(3, gravity=0.0)
    first = fx.modes(plant)[0]
    springs = [first.strain_energy[f"spring{k}"] for k in range(3)]
    angles = np.abs(list(first.shape.values())) ** 2
    assert springs == pytest.approx(angles / np.sum(angles), rel=1e-9)


def test_modes_with_their_energies_are_pickled_as_a_whole() -> None:
    found = fx.modes(oscillator(damping=1.0))
    before = found[0].strain_energy
    twin = pickle.loads(pickle.dumps(found))
    assert (twin[0].strain_energy, twin[0].poles) == (before, found[0].poles)
    assert twin.energy_table() == found.energy_table()


def test_a_braked_free_motion_dissipates_while_it_comes_to_rest() -> None:
    builder = fx.PlantBuilder("sledge", gravity=(0.0, 0.0, 0.0))
    body = builder.add_body("body", fx.SpatialInertia.point_mass(2.0))
    rail = fx.PrismaticJoint("rail", builder.world, body, (1, 0, 0), damping=4.0)
    builder.add_joint(rail)
    still, braked = fx.modes(builder.build())
    assert (still.kind, still.dissipated_energy) == ("rigid", {})
    assert braked.time_constants == pytest.approx((0.5,))
    assert braked.dissipated_energy == {"rail.damping": pytest.approx(1.0)}


def test_energies_of_what_moves_no_mechanism_are_empty() -> None:
    builder = fx.DiagramBuilder("both")
    builder.add_all(oscillator(), fx.FirstOrderLag("lag", time_constant=1e-3))
    builder.connect("oscillator.rail.translation", "lag.u")
    decay = fx.modes(builder.build())[-1]
    assert (decay.kind, decay.bodies, decay.strain_energy, decay.dissipated_energy) == (
        "decay",
        {},
        {},
        {},
    )
