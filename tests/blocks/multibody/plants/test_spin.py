"""Mechanisms in a world that spins: accelerations, reactions, energy, modes and blades."""

from __future__ import annotations

import numpy as np
import pytest

import flexure as fx

SPIN = 7.0


def arm(spun: bool, looped: bool = False) -> fx.Plant:
    """A twin pendulum in space, in a world that spins about z, or on a hub that turns about z."""
    builder = fx.PlantBuilder("arm", spin=(0.0, 0.0, 0.0) if spun else None)
    base = builder.world
    if not spun:
        base = builder.add_body("hub", fx.SpatialInertia.solid_box(1.0, size=(0.1, 0.2, 0.3)))
        builder.add_joint(fx.RevoluteJoint("axis", builder.world, base, axis=(0, 0, 1)))
    upper, lower = (
        builder.add_body(name, fx.SpatialInertia.solid_box(1.0, size=(0.1, 0.3, 0.5)), com=com)
        for name, com in (("upper", (0.1, 0.0, -0.3)), ("lower", (0.0, 0.1, -0.2)))
    )
    shoulder = builder.add_frame("shoulder_at", base, (0.2, 0.1, 0.0))
    builder.add_joint(fx.BallRpyJoint("shoulder", shoulder, upper))
    elbow = builder.add_frame("elbow_at", upper, (0.0, 0.05, -0.6))
    builder.add_joint(fx.RevoluteJoint("elbow", elbow, lower, axis=(1, 0, 0)))
    if looped:
        rod = fx.constraints.DistanceConstraint(
            "rod", base, (0.3, 0.2, 0.0), lower, (0.0, 0.1, 0.1), 0.5
        )
        builder.add_constraint(rod)
    builder.add_energy_ledger()
    return builder.build()


@pytest.mark.parametrize("looped", [False, True])
def test_motions_are_those_on_a_hub_that_turns_steadily(looped: bool) -> None:
    spun, hub, rng = arm(True, looped), arm(False, looped), np.random.default_rng(5)
    relative, absolute = spun.create_default_context(), hub.create_default_context()
    assert spun.spin is not None
    spun.spin.set(relative, [0.0, 0.0, SPIN])

    def driven(torque: float) -> fx.Context:
        context = absolute.clone()
        context.set("generalized_force", [torque, 0.0, 0.0, 0.0, 0.0])
        return context

    for _ in range(5):
        spun.set_positions(relative, 0.2 * rng.normal(size=4))
        spun.set_velocities(relative, rng.normal(size=4))
        if looped:
            spun.assemble(relative)
        q, v = (spun.output_port(name).eval(relative) for name in ("positions", "velocities"))
        hub.set_positions(absolute, [0.0, *q])
        hub.set_velocities(absolute, [SPIN, *v])
        first, second = (hub.calc_vdot(driven(torque))[0] for torque in (0.0, 1.0))
        steady = driven(-first / (second - first))
        np.testing.assert_allclose(
            [0.0, *spun.calc_vdot(relative)], hub.calc_vdot(steady), rtol=1e-9, atol=1e-9
        )
        for joint in ("shoulder", "elbow"):
            found, wanted = (
                plant.output_port(f"{joint}.reaction").eval(context)
                for plant, context in ((spun, relative), (hub, steady))
            )
            np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-8)
        if not looped:
            forces = spun.calc_force_elements_contribution(relative)
            left = spun.calc_inverse_dynamics(relative, spun.calc_vdot(relative), forces)
            np.testing.assert_allclose(left, 0.0, atol=1e-10)
    if not looped:
        result = fx.simulate(spun, 1.0, context=relative, method="DOP853", rtol=1e-10, atol=1e-12)
        assert np.ptp(result["ledger.balance"]) < 1e-6
        assert np.ptp(result["kinetic_energy"]) > 1.0


def test_models_of_plants_spin_as_well() -> None:
    plant, rng = arm(True), np.random.default_rng(3)
    context, speed = plant.create_default_context(), (1.0, 2.0, SPIN)
    plant.set_positions(context, 0.2 * rng.normal(size=4))
    plant.set_velocities(context, rng.normal(size=4))
    context.set("tree.spin", speed)
    for block, wanted in (
        (fx.InverseDynamics("model", plant), rng.normal(size=4)),
        (fx.GravityCompensation("model", plant), np.zeros(4)),
    ):
        own = block.create_default_context()
        own.set("spin", speed)
        if not wanted.any():
            plant.set_velocities(context, np.zeros(4))
        for port in block.input_ports:
            port.fix(own, wanted if port.name == "accelerations" else context.get(port.name))
        context.set("generalized_force", block.generalized_force.eval(own))
        np.testing.assert_allclose(plant.calc_vdot(context), wanted, atol=1e-9)


def test_a_governor_rises_where_gravity_gives_way() -> None:
    length, spin = 0.5, 6.0
    builder = fx.PlantBuilder("governor", spin=(0.0, 0.0, 0.0))
    bob = builder.add_body("bob", fx.SpatialInertia.point_mass(2.0), com=(0.0, 0.0, -length))
    arm = builder.add_joint(fx.RevoluteJoint("arm", builder.world, bob, axis=(0, 1, 0)))
    plant = builder.build()
    context = plant.create_default_context()
    arm.angle.set(context, 1.0)
    found = fx.equilibrium(plant, context, spin=(0.0, 0.0, spin)).context
    angle = float(arm.angle.get(found))
    assert np.cos(angle) == pytest.approx(9.81 / (spin**2 * length), rel=1e-8)
    (mode,) = fx.modes(plant, found)
    assert 2.0 * np.pi * mode.frequency == pytest.approx(spin * np.sin(angle), rel=1e-6)
    path = fx.load_path(plant, {"tree.spin[2]": spin})
    (point,) = path.branch_points
    assert point.values["tree.spin[2]"] == pytest.approx(np.sqrt(9.81 / length), rel=1e-6)


@pytest.mark.parametrize("spin", [30.0, 70.0])
def test_a_shaft_whirls_at_its_frequency_plus_and_minus_its_speed(spin: float) -> None:
    builder = fx.PlantBuilder("shaft", gravity=(0.0, 0.0, 0.0), spin=(0.0, 0.0, 0.0))
    disc, cross = (
        builder.add_body(name, fx.SpatialInertia.point_mass(mass))
        for name, mass in (("disc", 2.0), ("cross", 0.0))
    )
    for name, ends, axis in (
        ("x", (builder.world, cross), (1, 0, 0)),
        ("y", (cross, disc), (0, 1, 0)),
    ):
        joint = builder.add_joint(fx.PrismaticJoint(name, *ends, axis=axis))
        builder.add_force_element(fx.JointSpring(f"spring_{name}", joint, stiffness=5000.0))
    plant = builder.build()
    context = fx.equilibrium(plant, spin=(0.0, 0.0, spin)).context
    found = sorted(2.0 * np.pi * fx.modes(plant, context).frequencies)
    np.testing.assert_allclose(found, [abs(50.0 - spin), 50.0 + spin], rtol=1e-8)
    # Beyond the critical speed both stiffnesses are negative, and Coriolis forces hold the disc.
    path = fx.load_path(plant, {"tree.spin[2]": [spin, 1.01 * spin]})
    assert np.all(path.stable)


@pytest.mark.parametrize("speed", [2.0, 10.0])
def test_a_blade_stiffens_as_southwell_found(speed: float) -> None:
    """Frequencies of A. D. Wright and others, J. Appl. Mech. 49 (1982) 197-202, hub of radius 0."""
    length, thickness = 1.0, 0.002
    material = fx.Material(70e9, poissons_ratio=0.3, density=2700.0)
    builder = fx.PlantBuilder("rotor", gravity=(0.0, 0.0, 0.0), spin=(0.0, 0.0, 0.0))
    tip = builder.add_body("tip", fx.SpatialInertia.point_mass(0.0))
    joint = builder.add_joint(fx.PlanarJoint("at_tip", builder.world, tip))
    joint.default_pose = np.eye(3), (length, 0.0, 0.0)
    blade = fx.LeafSpring(
        "blade",
        builder.world,
        tip,
        length=length,
        width=0.02,
        thickness=thickness,
        material=material,
        segments=12,
        planar=True,
        shear=False,
    )
    builder.add_force_element(blade)
    plant = builder.build()
    unit = np.sqrt(70e9 * thickness**2 / 12.0 / 2700.0) / length**2
    wright = {2.0: (4.1373, 22.6149), 10.0: (11.2023, 33.6404)}[speed]
    for axis, less in (((0.0, 1.0, 0.0), 0.0), ((0.0, 0.0, 1.0), speed**2)):
        spin = speed * unit * np.array(axis)
        context = fx.equilibrium(plant, spin=spin).context
        found = 2.0 * np.pi * fx.modes(plant, context).frequencies[:2] / unit
        np.testing.assert_allclose(found, np.sqrt(np.square(wright) - less), rtol=3e-4)


def test_a_plant_that_cannot_spin_is_named() -> None:
    plant = arm(False)
    with pytest.raises(fx.errors.DeclarationError, match=r"found 'arm'. Build .* spin=\(0, 0, 0\)"):
        fx.equilibrium(plant, spin=(0.0, 0.0, 1.0))
    with pytest.raises(fx.errors.ValueRefusedError, match="spin"):
        fx.PlantBuilder("arm", spin=(0.0, np.nan, 0.0))
