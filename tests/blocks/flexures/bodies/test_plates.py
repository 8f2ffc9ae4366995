"""Plates and what finite elements know beside matrices, against published and closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.linalg import eigh, eigvalsh

import flexure as fx
from flexure.blocks.flexures.bodies.plate_mesh import plate_matrices
from flexure.diagrams.values.arrays import FloatArray
from tests.support.tiers import by_tier, for_each

E, NU, RHO = 210e9, 0.3, 7800.0
STEEL = fx.Material(youngs_modulus=E, poissons_ratio=NU, density=RHO)
STRAIGHT = fx.Material(youngs_modulus=E, poissons_ratio=0.0, density=RHO)
ENDS = {"root": "left", "tip": "right"}


def floating(body: fx.FlexibleBody) -> tuple[fx.Plant, Any]:
    """A plant of a body alone, without gravity, and its context."""
    builder = fx.PlantBuilder("plant", gravity=(0.0, 0.0, 0.0))
    builder.add_assembly(body)
    plant = builder.build()
    return plant, plant.create_default_context()


def test_square_plates_have_the_frequencies_of_leissa() -> None:
    side, t = 1.0, 0.005
    mesh = fx.PlateMesh.rectangle(side, side, cells=(24, 24))
    scale = side**2 * np.sqrt(RHO * t * 12.0 * (1.0 - NU**2) / (E * t**3))
    clamped = fx.FlexibleBody.from_plate("plate", mesh, t, STEEL, {"root": "left"}, modes=8)
    found = clamped.reduced.modes()[0][:5] * scale
    assert found == pytest.approx([3.492, 8.525, 21.43, 27.33, 31.11], rel=0.01)
    free = fx.FlexibleBody.from_plate(
        *("plate", mesh, t, STEEL, {"all": lambda x: x[:, 0] > -1.0}),
        modes=12,
        coupling="averaged",
    )
    plant, context = floating(free)
    K = np.zeros((18, 18))
    K[6:, 6:] = free.reduced.stiffness
    squares = eigvalsh(K, plant.calc_mass_matrix(context))[6:9]
    assert np.sqrt(squares) * scale == pytest.approx([13.49, 19.79, 24.43], rel=0.01)
    assert free.reduced.mass == pytest.approx(RHO * t, rel=1e-12)


def test_a_clamped_disc_with_a_hub_bends_as_in_closed_form() -> None:
    a, b, t = 0.1, 0.01, 1e-3
    mesh = fx.PlateMesh.ring(b, a, cells=(24, 48))
    builder = fx.PlantBuilder("plant", gravity=(0.0, 0.0, 0.0))
    rim = {"rim": builder.world}
    body = fx.FlexibleBody.from_plate(
        *("disc", mesh, t, STEEL, {"rim": "outer", "hub": "inner"}), modes=0, frames=rim
    )
    # w = P (r² ln r)/(8 π D) + c₀ r² + c₁ ln r + c₂ has no slope at both edges
    D, P = E * t**3 / 12.0 / (1.0 - NU**2), 1.0
    p = P / (8.0 * np.pi * D)
    rows = [[2.0 * r, 1.0 / r, 0.0] for r in (a, b)] + [[a * a, np.log(a), 1.0]]
    right = [p * (2.0 * r * np.log(r) + r) for r in (a, b)] + [p * a * a * np.log(a)]
    c = -np.linalg.solve(rows, right)
    deflection = p * b * b * np.log(b) + c @ [b * b, np.log(b), 1.0]
    assert body.reduced.stiffness[5, 5] == pytest.approx(P / deflection, rel=2e-3)
    builder.add_assembly(body)
    plant = builder.build()
    context = plant.create_default_context()
    q = plant.joint("disc_hub").positions(context) + np.eye(7)[6] * deflection
    plant.joint("disc_hub").positions.set(context, q)
    points, stresses = body.reduced.stress_points, body.stresses(context)
    upper = points[:, 2] > 0.0
    x, y = points[upper, :2].T
    r = np.hypot(x, y)
    curved = p * (2.0 * np.log(r) + 3.0) + 2.0 * c[0] - c[1] / r**2
    slope = p * (2.0 * np.log(r) + 1.0) + 2.0 * c[0] + c[1] / r**2
    radial = -6.0 * D / t**2 * (curved + NU * slope)
    hoop = -6.0 * D / t**2 * (slope + NU * curved)
    sx, sy, txy = stresses[upper][:, [0, 1, 3]].T
    found = (sx * x**2 + sy * y**2 + 2.0 * txy * x * y) / r**2
    assert found == pytest.approx(radial, abs=0.01 * np.abs(radial).max())
    von_mises = np.sqrt(radial**2 - radial * hoop + hoop**2)
    again = body.equivalent_stress(context)[upper]
    assert again == pytest.approx(von_mises, abs=0.01 * von_mises.max())


def compliance(add: Any, shift: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> FloatArray:
    """The compliance of a body on a flexure that ``add`` puts between it and the world."""
    builder = fx.PlantBuilder("plant", gravity=(0.0, 0.0, 0.0))
    body = builder.add_body("body", fx.SpatialInertia.solid_sphere(1.0, radius=0.1))
    joint = builder.add_joint(fx.RpyFloatingJoint("body", builder.world, body))
    joint.default_pose = np.eye(3), shift
    add(builder, body)
    return np.asarray(fx.stiffness(builder.build(), "body").compliance)


def test_strips_and_arms_are_as_stiff_as_beams() -> None:
    w, t, length = 2e-3, 2e-4, 0.04
    material: dict[str, Any] = {"width": w, "thickness": t, "material": STRAIGHT}
    radii: dict[str, Any] = {"inner_radius": 0.01, "outer_radius": 0.03}

    def leaf(builder: Any, body: Any) -> None:
        frame = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
        ends = [
            builder.add_frame(f"end{k}", each, (frame, (0.0, 0.0, 0.0)))
            for k, each in enumerate((builder.world, body))
        ]
        builder.add_force_element(fx.LeafSpring("leaf", *ends, length=length, **material))

    def membrane(builder: Any, body: Any) -> None:
        builder.add_assembly(fx.MembraneFlexure("leaf", builder.world, body, **radii, **material))

    def spiral(builder: Any, body: Any) -> None:
        builder.add_assembly(
            fx.SpiralFlexure("leaf", builder.world, body, **radii, sweep=1.5, **material)
        )

    strip = fx.PlateMesh.rectangle(length, w, cells=(40, 24))  # twist needs cells below t
    arm = fx.PlateMesh.rectangle(0.02, w, cells=(24, 4))
    points, cells = [], []
    for k, turn in enumerate(np.exp(2j * np.pi * np.arange(3) / 3.0)):
        places = turn * (arm.points[:, 0] + 0.01 + 1j * arm.points[:, 1])
        points.append(np.stack([places.real, places.imag], axis=1))
        cells.append(arm.cells[:, ::-1] + k * len(arm.points))
    numbers = np.arange(3)[:, np.newaxis] * len(arm.points)
    ends = {"inner": numbers + arm.sets["left"], "outer": numbers + arm.sets["right"]}
    arms = fx.PlateMesh(np.concatenate(points), np.concatenate(cells), ends)
    coil = fx.PlateMesh.spiral(0.01, 0.03, 1.5, w, cells=(32, 4))
    cases: list[Any] = [
        (strip, ("left", "right"), leaf, (length, 0.0, 0.0)),
        (coil, ("outer", "inner"), spiral, (0.0, 0.0, 0.0)),
        (arms, ("outer", "inner"), membrane, (0.0, 0.0, 0.0)),
    ]
    for mesh, sets, add, shift in by_tier(fast=cases[:2], full=cases):
        interfaces = dict(zip(("a", "c"), sets, strict=True))
        body = fx.FlexibleBody.from_plate("plate", mesh, t, STRAIGHT, interfaces, modes=0)
        found, wanted = np.linalg.inv(body.reduced.stiffness), compliance(add, shift)
        scale = np.sqrt(np.diagonal(wanted))
        assert found / np.outer(scale, scale) == pytest.approx(
            wanted / np.outer(scale, scale), abs=0.03
        )


def test_thin_plates_neither_lock_nor_lose_digits() -> None:
    mesh = fx.PlateMesh.rectangle(0.1, 0.02, cells=(20, 4))
    for coupling in ("rigid", "averaged"):
        for t in (1e-6, 1e-5, 1e-4):
            body = fx.FlexibleBody.from_plate(
                "foil", mesh, t, STRAIGHT, ENDS, modes=2, coupling=coupling
            ).reduced
            C = np.linalg.inv(body.stiffness[:6, :6])
            assert C[5, 5] * E * 0.02 * t**3 / 12.0 == pytest.approx(0.1**3 / 3.0, rel=1e-2)
            beam = 1.8751**2 / 0.1**2 * np.sqrt(E * t**2 / 12.0 / RHO)
            assert body.modes()[0][0] == pytest.approx(beam, rel=1e-2)


@pytest.mark.full
def test_a_disc_without_a_hole_and_a_mesh_of_a_user_agree() -> None:
    t, scale = 1e-3, 0.1**2 * np.sqrt(RHO * 1e-3 * 12.0 * (1.0 - NU**2) / (E * 1e-9))
    disc = fx.PlateMesh.ring(0.0, 0.1, cells=(16, 48))
    again = fx.PlateMesh(disc.points, disc.cells[:, ::-1], disc.sets)
    for mesh in (disc, again):
        body = fx.FlexibleBody.from_plate("disc", mesh, t, STEEL, {"rim": "outer"}, modes=3)
        frequencies = body.reduced.modes()[0] * scale
        assert frequencies == pytest.approx([10.2158, 21.26, 21.26], rel=0.01)
        assert body.reduced.mass == pytest.approx(RHO * t * np.pi * 0.01, rel=5e-3)


@for_each(
    ("make", "message"),
    [
        (lambda: fx.PlateMesh.rectangle(-1.0, 1.0), "length"),
        (lambda: fx.PlateMesh.ring(0.2, 0.1), "outer_radius"),
        (lambda: fx.PlateMesh.ring(0.1, 0.2, cells=(4, 2)), ">= 3"),
        (lambda: fx.PlateMesh.spiral(0.1, 0.2, 4.0, 0.01), "sweep"),
        (lambda: fx.PlateMesh.rectangle(1.0, 1.0, cells=4), "two numbers"),  # type: ignore[arg-type]
        (lambda: fx.PlateMesh([[0, 0], [1, 0], [1, 1]], [[0, 1, 2, 3]]), "from 0 to 2"),
        (lambda: fx.PlateMesh([[0, 0], [1, 1], [1, 0], [0, 1]], [[0, 1, 2, 3]]), "convex"),
        (lambda: fx.PlateMesh([[0, 0]], [[0, 0]]), "shape"),
        (
            lambda: fx.PlateMesh(np.eye(3)[:, :2], [[0, 1, 2, 2], [2, 0, 0, 1]]),
            "several with the nodes of cell 0",
        ),
        (lambda: fx.PlateMesh(np.eye(4)[:, :2], [[0, 1, 2, 2.5]]), "whole numbers"),
        (lambda: fx.PlateMesh(np.eye(4)[:, :2], [[0, 1, 2, 1e30]]), "whole numbers"),
        (
            lambda: fx.PlateMesh([[0, 0], [1, 0], [0, 1]], [[0, 1, 2, 2]], {"a": [True, False]}),
            "np.flatnonzero",
        ),
    ],
)
def test_meshes_that_are_no_plates_are_refused(make: Any, message: str) -> None:
    with pytest.raises(fx.errors.FlexureError, match=message):
        make()


def test_plates_refuse_what_does_not_fit() -> None:
    mesh = fx.PlateMesh.rectangle(0.1, 0.02, cells=(8, 2))
    good: dict[str, Any] = {"mesh": mesh, "thickness": 1e-3, "material": STEEL, "interfaces": ENDS}
    apart = fx.PlateMesh.spiral(0.01, 0.03, 1.0, 2e-3)
    corners = [[x, y] for x in (0, 1, 1, 2) for y in (0, 1)]  # two nodes in each place at x = 1
    halves = fx.PlateMesh(corners, [[0, 2, 3, 1], [4, 6, 7, 5]], {"left": [0, 1], "right": [6, 7]})
    silicon = fx.Material.silicon((1, 1, 0), width=(0, 0, 1))
    for change, message in (
        ({"thickness": 0.0}, "thickness"),
        ({"mesh": "mesh"}, "a PlateMesh"),
        ({"material": "steel"}, "a Material"),
        ({"interfaces": {"root": "lefd"}}, "one of the sets"),
        ({"interfaces": {"root": lambda x: [0, 1, 2]}}, "of bool"),
        ({"material": silicon}, "isotropic"),
        ({"mesh": halves}, "one piece"),
        ({"mesh": apart, "interfaces": {"hub": lambda x: x[:, 0] > 0.025}}, "hold all of the body"),
    ):
        with pytest.raises(fx.errors.FlexureError, match=message):
            fx.FlexibleBody.from_plate("plate", **{**good, **change})
    rigid = fx.FlexibleBody.from_plate(
        "plate", mesh, 1e-3, STEEL, {"all": lambda x: x[:, 0] < 1.0}
    ).reduced
    assert rigid.stiffness.size == 0
    assert rigid.next_frequency == np.inf
    few = fx.PlateMesh.rectangle(0.1, 0.02, cells=(4, 2))
    every = fx.FlexibleBody.from_plate("plate", few, 1e-3, STEEL, ENDS, modes=1000).reduced
    n = every.num_modes
    assert every.mass_matrix[-n:, -n:] == pytest.approx(np.eye(n), abs=1e-9)
    assert every.error_bound(1e3) < 1e-9
    with pytest.raises(fx.errors.ValueRefusedError, match="rad/s"):
        every.error_bound(-1.0)
    large = fx.PlateMesh.rectangle(1000.0, 20.0, cells=(4, 2))
    with pytest.warns(UserWarning, match="mm"):
        fx.FlexibleBody.from_plate("plate", large, 1.0, STEEL, ENDS, modes=0)


def test_reduction_is_that_of_dense_matrices_and_its_error_is_bounded() -> None:
    mesh = fx.PlateMesh.rectangle(0.1, 0.03, cells=(12, 6))
    m, K, nodes, _, T = plate_matrices(mesh, 1e-3, STEEL)
    M, K = np.kron(m.toarray(), np.eye(3)), (T @ K @ T).toarray()
    sets = {
        name: np.flatnonzero(np.abs(nodes[:, 0] - x) < 1e-9)
        for name, x in (("left", 0.0), ("right", 0.1))
    }
    R = []
    for each in sets.values():
        r = nodes[each] - nodes[each].mean(axis=0)
        columns = np.zeros((len(nodes), 3, 6))
        columns[each, :, 3:] = np.eye(3)
        columns[each, :, :3] = np.stack([np.cross(axis, r) for axis in np.eye(3)], axis=-1)
        R.append(columns.reshape(-1, 6))
    motions = np.concatenate(R, axis=1)
    held = np.abs(motions).sum(axis=1) > 0.0
    inner = ~held

    def condensed(D: FloatArray) -> FloatArray:
        u = motions.copy()
        u[inner] = -np.linalg.solve(D[np.ix_(inner, inner)], (D @ motions)[inner])
        return np.asarray(u.T @ D @ u)

    body = fx.FlexibleBody.from_matrices("plate", M, K, nodes, sets, modes=5).reduced
    exact = condensed(K)
    assert body.stiffness[:6, :6] == pytest.approx(exact[6:, 6:], rel=1e-6, abs=1e-6 * exact.max())
    omitted = eigvalsh(K[np.ix_(inner, inner)], M[np.ix_(inner, inner)])[5]
    assert body.next_frequency == pytest.approx(np.sqrt(omitted), rel=1e-6)
    guyan = motions.copy()
    guyan[inner] = -np.linalg.solve(K[np.ix_(inner, inner)], (K @ motions)[inner])
    mass = (guyan.T @ M @ guyan)[6:, 6:]
    for ratio in (0.3, 0.8):
        square = (ratio * body.next_frequency) ** 2
        D = body.stiffness - square * body.mass_matrix
        reduced = D[:6, :6] - D[:6, 6:] @ np.linalg.solve(D[6:, 6:], D[6:, :6])
        added = (reduced - condensed(K - square * M)[6:, 6:]) / square
        greatest = eigvalsh(0.5 * (added + added.T), mass)[-1]
        bound = body.error_bound(ratio * body.next_frequency)
        assert 0.1 * bound < greatest < bound
    assert body.error_bound([0.0, 2.0 * body.next_frequency]).tolist() == [0.0, np.inf]
    averaged = fx.FlexibleBody.from_matrices(
        "plate", M, K, nodes, sets, modes=0, coupling="averaged"
    ).reduced
    C = np.concatenate([np.linalg.pinv(each) for each in R])
    scale = np.abs(K).max()
    saddle = np.block([[K / scale, C.T], [C, np.zeros((12, 12))]])
    inverse = np.linalg.inv(saddle)[-12:, -12:] * -scale
    assert averaged.stiffness == pytest.approx(
        inverse[6:, 6:], rel=1e-5, abs=1e-6 * np.abs(inverse).max()
    )


def test_recovery_of_matrices_is_applied_to_the_shapes() -> None:
    mesh = fx.PlateMesh.rectangle(0.1, 0.03, cells=(6, 2))
    m, K, nodes, known, T = plate_matrices(mesh, 1e-3, STEEL)
    M = np.kron(m.toarray(), np.eye(3))
    K = T @ K @ T
    matrix = known.stresses(np.eye(len(K.toarray()))).reshape(-1, len(K.toarray()))
    sets = {"root": np.flatnonzero(nodes[:, 0] < 1e-9), "tip": np.flatnonzero(nodes[:, 0] > 0.0999)}
    given = fx.FlexibleBody.from_matrices(
        "plate", M, K, nodes, sets, modes=2, recovery=(known.points, matrix)
    )
    plate = fx.FlexibleBody.from_plate("plate", mesh, 1e-3, STEEL, ENDS, modes=2)
    found, wanted = given.reduced.stress_shapes, plate.reduced.stress_shapes
    found = found * np.sign(np.sum(found * wanted, axis=(0, 1)))  # modes have any sign
    assert found == pytest.approx(wanted, abs=1e-6 * np.abs(wanted).max())
    for odd in ((known.points, matrix[1:]), matrix):
        with pytest.raises(fx.errors.ValueRefusedError, match="recovery"):
            fx.FlexibleBody.from_matrices("plate", M, K, nodes, sets, recovery=odd)  # type: ignore[arg-type]
    bare = fx.FlexibleBody.from_matrices("plate", M, K, nodes, sets, modes=0)
    with pytest.raises(fx.errors.DeclarationError, match="matrices with recovery"):
        bare.stresses(floating(bare)[1])


LENGTH, WIDTH, THICKNESS = 0.3, 0.02, 0.002


def blade(modes: int = 6, **options: Any) -> fx.FlexibleBody:
    """A slender strip."""
    mesh = fx.PlateMesh.rectangle(LENGTH, WIDTH, cells=(40, 2))
    return fx.FlexibleBody.from_plate(
        "blade", mesh, THICKNESS, STRAIGHT, ENDS, modes=modes, **options
    )


def test_a_spinning_blade_has_the_frequencies_of_wright() -> None:
    flapping = {1.0: 3.6816, 2.0: 4.1373, 4.0: 5.5850, 10.0: 11.2023}
    for axis in ((0, 0, 1), (0, 1, 0)):
        builder = fx.PlantBuilder("rotor", gravity=(0.0, 0.0, 0.0))
        body = blade()
        builder.add_assembly(body)
        hub = builder.add_joint(
            fx.RevoluteJoint("hub", builder.world, body.interfaces["root"], axis=axis)
        )
        builder.add_constraint(fx.constraints.PrescribedMotion("drive", hub))
        plant = builder.build()
        tip, modes = plant.joint("blade_tip"), plant.joint("blade_modes")
        scale = np.sqrt(E * THICKNESS**2 / 12.0 / RHO) / LENGTH**2
        M = body.reduced.mass_matrix
        for ratio, flap in flapping.items():
            context = plant.create_default_context()
            context.set("drive", [0.0, ratio * scale, 0.0])
            hub.angular_rate.set(context, ratio * scale)
            start = tip.positions(context)

            def force(x: FloatArray) -> FloatArray:
                turned = np.concatenate([[1.0], 0.5 * x[:3], x[3:6]])
                tip.positions.set(context, turned + start * [0, 0, 0, 0, 1, 1, 1])  # noqa: B023
                modes.positions.set(context, x[6:])  # noqa: B023
                return np.asarray(M @ plant.calc_vdot(context)[1:])  # noqa: B023

            x = np.zeros(12)
            for _ in range(4):
                x = x + np.linalg.solve(body.reduced.stiffness, force(x))
            h = 1e-6 / np.sqrt(np.diagonal(body.reduced.stiffness))
            K = np.stack([(force(x - d) - force(x + d)) / 2.0 for d in np.diag(h)], axis=1) / h
            lowest = np.sqrt(eigh(0.5 * (K + K.T), M, eigvals_only=True)[0]) / scale
            if axis[1]:  # lead and lag: the same stiffening, less the square of the spin
                lowest = np.sqrt(lowest**2 + ratio**2)
            assert lowest == pytest.approx(flap, rel=2e-3)


def test_a_strip_buckles_in_itself() -> None:
    builder = fx.PlantBuilder("column", gravity=(0.0, 0.0, 0.0))
    body = blade(modes=2, frames={"root": builder.world})
    builder.add_assembly(body)
    builder.add_external_force("push", body.interfaces["tip"])
    found = fx.buckling(builder.build(), {"push": [0.0, 0.0, 0.0, -1.0, 0.0, 0.0]}, num_factors=1)
    euler = np.pi**2 * E * WIDTH * THICKNESS**3 / 12.0 / (4.0 * LENGTH**2)
    assert found.factors[0] == pytest.approx(euler, rel=5e-3)
    for modes in (0, 4):  # between clamps: by modes only
        builder = fx.PlantBuilder("column", gravity=(0.0, 0.0, 0.0))
        body = blade(modes=modes, frames={"root": builder.world})
        builder.add_assembly(body)
        tip = body.interfaces["tip"]
        builder.add_loop_joint(fx.PrismaticJoint("guide", builder.world, tip, axis=(1.0, 0.0, 0.0)))
        builder.add_external_force("push", tip)
        plant, loads = builder.build(), {"push": [0.0, 0.0, 0.0, -1.0, 0.0, 0.0]}
        if modes:
            found = fx.buckling(plant, loads, num_factors=1)
            assert found.factors[0] == pytest.approx(16.0 * euler, rel=2e-2)
        else:
            with pytest.warns(UserWarning, match="no modes: 'blade'"):
                fx.buckling(plant, loads, num_factors=1)


def test_a_spinning_plate_in_flight_keeps_energy_and_momentum() -> None:
    plant, context = floating(blade(modes=2))
    plant.joint("blade_root").velocities.set(context, [3.0, 5.0, 60.0, 0.1, 0.2, 0.3])
    result = fx.simulate(plant, 0.02, context=context, rtol=1e-9, atol=1e-12)
    energy, momentum = result["mechanical_energy"], result["momentum"]
    assert np.ptp(energy) < 1e-7 * energy[0]
    assert np.ptp(momentum, axis=0).max() < 1e-8 * np.abs(momentum).max()
