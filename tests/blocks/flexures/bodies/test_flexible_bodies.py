"""Flexible bodies, against particles, beams, published numbers and other programs."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import flexure as fx
from flexure.blocks.flexures.bodies.dissection import Cholesky
from flexure.diagrams.values.arrays import FloatArray
from tests.support.tiers import for_each

E, NU, RHO = 210e9, 0.3, 7800.0
LENGTH, WIDTH, THICKNESS = 0.1, 0.004, 0.002


def lattice(stiffness: float = 1e5) -> dict[str, Any]:
    """A bar of particles of 1 kg with springs between all of them."""
    nodes = np.array([[x, y, z] for x in (0, 1, 2) for y in (0, 1) for z in (0, 1.5)], float)
    K = np.zeros((36, 36))
    for i in range(12):
        for j in range(i):
            e = (nodes[i] - nodes[j]) / np.linalg.norm(nodes[i] - nodes[j])
            row = np.zeros((12, 3))
            row[i], row[j] = e, -e
            K += stiffness * np.outer(row, row)
    ends = {"left": [0, 1, 2, 3], "right": [8, 9, 10, 11]}
    return {"M": np.eye(36), "K": K, "nodes": nodes, "interfaces": ends}


def free_body(gravity: float = 0.0, **options: Any) -> tuple[Any, fx.Plant, Any]:
    """A bar of particles in flight, deformed and spinning."""
    body = fx.FlexibleBody.from_matrices("bar", **lattice(), modes=3, **options)
    builder = fx.PlantBuilder("plant", gravity=(0.0, 0.0, -gravity))
    builder.add_assembly(body)
    plant = builder.build()
    context = plant.create_default_context()
    plant.joint("bar_left").velocities.set(context, [1.0, -2.0, 3.0, 0.1, 0.2, 0.3])
    right, modes = plant.joint("bar_right"), plant.joint("bar_modes")
    q = right.positions(context) + np.array([0.0, 0.01, -0.02, 0.015, 0.02, 0.01, -0.03])
    right.positions.set(context, q)
    right.velocities.set(context, [0.2, 0.1, -0.3, 0.2, 0.3, -0.2])
    modes.positions.set(context, [0.1, -0.05, 0.08])
    modes.velocities.set(context, [0.5, 0.3, -0.4])
    return body, plant, context


def particles(body: Any, plant: fx.Plant, context: Any) -> FloatArray:
    """Where the particles of a free body are."""
    X = plant.bodies[1].pose(context)
    eta = body.element.deformation.eval(context)
    reduced = body.reduced
    return np.asarray((reduced.nodes - reduced.points[0] + reduced.shapes @ eta) @ X.R.T + X.p)


def test_energies_and_momentum_are_those_of_all_particles() -> None:
    body, plant, context = free_body(gravity=9.81)
    r = particles(body, plant, context)
    state = plant.tree.state
    x, rates = state.get(context).copy(), plant.tree.calc_time_derivatives(context.find(plant.tree))
    x_rate, h = np.concatenate(rates), 1e-5
    velocities = []
    for sign in (1.0, -1.0):
        state.set(context, x + sign * h * x_rate)
        velocities.append(sign * particles(body, plant, context) / (2.0 * h))
    state.set(context, x)
    v = velocities[0] + velocities[1]
    assert context.get("kinetic_energy") == pytest.approx(0.5 * np.sum(v**2), rel=1e-7)
    momentum = np.concatenate([np.cross(r, v).sum(axis=0), v.sum(axis=0)])
    assert context.get("momentum") == pytest.approx(momentum, rel=1e-6)
    assert context.get("center_of_mass") == pytest.approx(r.mean(axis=0), rel=1e-12)
    assert context.get("center_of_mass_velocity") == pytest.approx(v.mean(axis=0), rel=1e-7)
    held = plant.calc_inverse_dynamics(
        context, plant.calc_vdot(context), plant.calc_force_elements_contribution(context)
    )
    assert np.abs(held).max() < 1e-9 * np.abs(plant.calc_bias_term(context)).max()


def test_free_flight_keeps_energy_and_momentum() -> None:
    _, plant, context = free_body()
    result = fx.simulate(plant, 0.2, context=context, rtol=1e-10, atol=1e-12)
    energy, momentum = result["mechanical_energy"], result["momentum"]
    assert np.ptp(energy) < 1e-8 * energy[0]
    assert np.ptp(momentum, axis=0).max() < 1e-9 * np.abs(momentum).max()


def test_damping_takes_energy_from_the_deformation_alone() -> None:
    _, plant, context = free_body(damping_ratio=0.05)
    result = fx.simulate(plant, 0.2, context=context, rtol=1e-9)
    energy, momentum = result["mechanical_energy"], result["momentum"]
    assert np.diff(energy).max() < 1e-9 * energy[0]
    assert energy[-1] < 0.99 * energy[0]
    assert np.ptp(momentum, axis=0).max() < 1e-10 * np.abs(momentum).max()


STEEL = fx.Material(youngs_modulus=E, poissons_ratio=NU, density=RHO)
PLANES: dict[str, Any] = {"root": ((0, 0, 0), (1, 0, 0)), "tip": lambda x: x[:, 0] > LENGTH - 1e-9}


def block(count: int = 10, *, tetrahedra: bool = False, scale: float = 1.0) -> Any:
    """A leaf of hexahedra, or of five tetrahedra in place of each."""
    meshio = pytest.importorskip("meshio", reason="needs the extra mesh")
    pytest.importorskip("skfem", reason="needs the extra mesh")
    numbers = np.arange((count + 1) * 6).reshape(count + 1, 2, 3)
    sizes = (0, LENGTH), (-THICKNESS / 2, THICKNESS / 2), (-WIDTH / 2, WIDTH / 2)
    axes = [np.linspace(*ends, n) for ends, n in zip(sizes, numbers.shape, strict=True)]
    points = scale * np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    corners = [(0, 0), (1, 0), (1, 1), (0, 1)]
    cells = np.stack(
        [numbers[i : count + i, j : j + 1, k : 2 + k].ravel() for k in (0, 1) for i, j in corners],
        axis=1,
    )
    sets = {"end": np.flatnonzero(points[:, 0] > scale * (LENGTH - 1e-9))}
    if tetrahedra:
        parts = [0, 1, 3, 4], [1, 2, 3, 6], [1, 3, 4, 6], [3, 4, 6, 7], [1, 4, 5, 6]
        cells = np.concatenate([cells[:, part] for part in parts])
    kind = "tetra" if tetrahedra else "hexahedron"
    return meshio.Mesh(points, [(kind, cells)], point_sets=sets)


def leaf(coupling: Any = "rigid", frames: Any = None, mesh: Any = None) -> Any:
    """A leaf of quadratic elements."""
    mesh = block() if mesh is None else mesh
    return fx.FlexibleBody.from_mesh(
        "leaf", mesh, STEEL, PLANES, modes=3, coupling=coupling, frames=frames
    )


def test_a_leaf_of_solid_elements_is_a_beam() -> None:
    second_moment, area = WIDTH * THICKNESS**3 / 12.0, WIDTH * THICKNESS
    for coupling, tolerance in (("rigid", 0.03), ("averaged", 0.015)):
        builder = fx.PlantBuilder("bench", gravity=(0.0, -9.81, 0.0))
        body = leaf(coupling, frames={"root": builder.world})
        builder.add_assembly(body)
        plant = builder.build()
        context = fx.equilibrium(plant).context
        sag = -context.get("leaf.deformation")[4]
        assert sag == pytest.approx(
            RHO * area * 9.81 * LENGTH**4 / (8.0 * E * second_moment), rel=tolerance
        )
        assert context.get("center_of_mass")[0] == pytest.approx(LENGTH / 2.0, rel=1e-6)
        bending = [1.8751041**2, 4.6940911**2]
        scale = np.sqrt(E * second_moment / (RHO * area * LENGTH**4)) / (2.0 * np.pi)
        modes = fx.modes(plant, context=context)
        found = np.unique(np.round(np.abs(modes.frequencies), 6))
        assert found[0] == pytest.approx(bending[0] * scale, rel=tolerance)
        assert np.min(np.abs(found / (bending[1] * scale) - 1.0)) < tolerance
        tension = np.linalg.inv(body.reduced.stiffness)[3, 3]
        assert 1.0 / tension == pytest.approx(E * area / LENGTH, rel=tolerance)


def test_a_leaf_of_solid_elements_has_the_stress_of_a_beam() -> None:
    builder = fx.PlantBuilder("bench", gravity=(0.0, 0.0, 0.0))
    body = leaf(frames={"root": builder.world})
    builder.add_assembly(body)
    builder.add_external_force("load", body.interfaces["tip"])
    plant = builder.build()
    context = plant.create_default_context()
    context.set("load", [0.0, 0.0, 0.0, 0.0, 1.0, 0.0])
    found = fx.equilibrium(plant, context=context).context
    points, stresses = body.reduced.stress_points, body.stresses(found)
    middle = (np.abs(points[:, 0] - 0.5 * LENGTH) < 1e-9) & (points[:, 1] > 0.0)
    bending = 6.0 * 0.5 * LENGTH / (WIDTH * THICKNESS**2)
    assert stresses[middle, 0] == pytest.approx(np.full(3, -bending), rel=0.02)
    assert body.equivalent_stress(found)[middle] == pytest.approx(np.full(3, bending), rel=0.02)


@for_each(
    ("change", "message"),
    [
        ({"K": np.eye(36)}, "free body"),
        ({"M": np.diag(np.arange(36.0))}, "the same along x, y and z"),
        ({"nodes": np.zeros((11, 3))}, "shape"),
        ({"interfaces": {"left": [0, 1]}}, "three nodes"),
        ({"interfaces": {"left": [0, 1, 2], "right": [2, 3, 4]}}, "no other one has"),
        ({"K": np.zeros((36, 36))}, "hold all of the body"),
        ({"coupling": "welded"}, "rigid"),
        ({"frames": {"middle": fx.Body("a")}}, "left"),
        ({"damping_ratio": [0.1, 0.2]}, "damping ratio"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(fx.errors.FlexureError, match=message):
        fx.FlexibleBody.from_matrices("bar", **{**lattice(), "modes": 2, **change})


def test_frames_off_the_interfaces_are_refused() -> None:
    builder = fx.PlantBuilder("bench")
    post = builder.add_body("post", fx.SpatialInertia.point_mass(1.0))
    builder.add_joint(fx.WeldJoint("foot", builder.world, post, (1.9, 0.0, 0.0)))
    frames = {"left": builder.world, "right": post}
    body = fx.FlexibleBody.from_matrices("bar", **lattice(), frames=frames)
    builder.add_assembly(body)
    with pytest.raises(fx.errors.DeclarationError, match="interface 'right'"):
        builder.build()


def test_files_and_sets_give_the_same_body_as_planes(tmp_path: Path) -> None:
    mesh = block()
    wanted = leaf(mesh=mesh).reduced
    sets = {**PLANES, "tip": "end"}
    again = fx.FlexibleBody.from_mesh("leaf", mesh, STEEL, sets, modes=3).reduced
    assert again.stiffness == pytest.approx(wanted.stiffness, rel=1e-9, abs=1e-3)
    assert wanted.mass == pytest.approx(RHO * LENGTH * WIDTH * THICKNESS, rel=1e-12)
    for name in ("leaf.msh", "leaf.bdf"):
        path = tmp_path / name
        mesh.write(path, **({"file_format": "gmsh"} if name.endswith("msh") else {}))
        read = leaf(mesh=path).reduced
        assert read.modes()[0] == pytest.approx(wanted.modes()[0], rel=1e-6)
    tetrahedra = leaf(mesh=block(tetrahedra=True)).reduced
    assert tetrahedra.modes()[0][:3] == pytest.approx(wanted.modes()[0][:3], rel=0.02)


def test_meshes_that_mislead_are_refused() -> None:
    meshio = pytest.importorskip("meshio", reason="needs the extra mesh")
    mesh = block(2)
    twice = np.concatenate([mesh.points, mesh.points + 1.0])
    cells = mesh.cells[0].data
    apart = meshio.Mesh(twice, [("hexahedron", np.concatenate([cells, cells + len(mesh.points)]))])
    flat = meshio.Mesh(mesh.points * [1.0, 0.0, 1.0], [("hexahedron", cells)])
    faces = meshio.Mesh(mesh.points, [("quad", cells[:, :4])])
    for odd, message in (
        (apart, "one piece"),
        (flat, "a volume"),
        (faces, "tetrahedra or of hexahedra"),
        ("absent.msh", "meshio reads"),
    ):
        with pytest.raises(fx.errors.ValueRefusedError, match=message):
            leaf(mesh=odd)
    with pytest.raises(fx.errors.ValueRefusedError, match="one of the sets 'end'"):
        fx.FlexibleBody.from_mesh("leaf", mesh, STEEL, {"root": "ende"})
    ends = {"root": ((0, 0, 0), (1, 0, 0))}
    with pytest.warns(UserWarning, match="in mm"):
        fx.FlexibleBody.from_mesh("leaf", block(2, scale=1e4), STEEL, ends, modes=0)


def test_a_fast_spin_is_refused() -> None:
    _, plant, context = free_body()
    plant.joint("bar_left").velocities.set(context, [200.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    with pytest.raises(fx.errors.EvaluationError, match="stiffening by spin"):
        plant.calc_vdot(context)


def test_one_interface_without_modes_is_a_rigid_body() -> None:
    parts = {**lattice(), "interfaces": {"left": [0, 1, 2, 3]}}
    body = fx.FlexibleBody.from_matrices("bar", **parts, modes=0)
    builder = fx.PlantBuilder("plant")
    builder.add_assembly(body)
    plant = builder.build()
    context = plant.create_default_context()
    context_v = [1.0, -2.0, 3.0, 0.1, 0.2, 0.3]
    plant.joint("bar_left").velocities.set(context, context_v)
    r = parts["nodes"] - parts["nodes"][:4].mean(axis=0)
    v = np.cross(context_v[:3], r) + context_v[3:]
    assert context.get("kinetic_energy") == pytest.approx(0.5 * np.sum(v**2), rel=1e-12)
    center = r.mean(axis=0)
    inertia = np.sum(r**2) * np.eye(3) - r.T @ r
    M = plant.calc_mass_matrix(context)
    assert M[:3, :3] == pytest.approx(inertia, abs=1e-9)
    assert M[3:, 3:] == pytest.approx(12.0 * np.eye(3), abs=1e-9)
    assert context.get("center_of_mass") == pytest.approx(center, abs=1e-12)


def test_models_of_rigid_plants_refuse_flexible_bodies(tmp_path: Path) -> None:
    _, plant, _ = free_body()
    for save in (fx.save_urdf, fx.save_sdf, fx.save_mjcf):
        with pytest.raises(fx.errors.DeclarationError, match="mass is lost: 'bar'"):
            save(plant, tmp_path / "model.xml")
        assert not any(tmp_path.iterdir())
    builder = fx.PlantBuilder("plant", spin=(0.0, 0.0, 0.0))
    builder.add_assembly(fx.FlexibleBody.from_matrices("bar", **lattice(), modes=0))
    with pytest.raises(fx.errors.DeclarationError, match="does not feel the spin: 'bar_coupling'"):
        builder.build()
    for kind in (fx.InverseDynamics, fx.GravityCompensation):
        with pytest.raises(fx.errors.FlexureError, match="a flexible body in 'plant'"):
            kind("model", plant)


def swing(flexible: bool) -> fx.results.Modes:
    """A bar of particles, as a flexible body without freedoms or a rigid one, with a bob."""
    builder = fx.PlantBuilder("plant", gravity=(0.0, 0.0, 0.0))
    parts = {**lattice(), "interfaces": {"left": [0, 1, 2, 3]}}
    r = parts["nodes"] - parts["nodes"][:4].mean(axis=0)
    if flexible:
        body = fx.FlexibleBody.from_matrices("bar", **parts, modes=0)
        builder.add_assembly(body)
        arm = body.interfaces["left"]
    else:
        far = r - r.mean(axis=0)
        J = np.sum(far**2) * np.eye(3) - far.T @ far
        inertia = fx.SpatialInertia(12.0, r.mean(axis=0), J)
        arm = builder.add_body("bar", inertia)
    bob = builder.add_body("bob", fx.SpatialInertia.point_mass(3.0), com=(0.5, 0.0, 0.0))
    hinge = fx.RevoluteJoint("hinge", builder.world, arm, axis=(0, 1, 0))
    elbow = fx.RevoluteJoint(
        "elbow", builder.add_frame("end", arm, (2.0, 0, 0)), bob, axis=(0, 1, 0)
    )
    for joint in (hinge, elbow):
        builder.add_joint(joint)
        builder.add_force_element(fx.JointSpring(f"spring_{joint.name}", joint, stiffness=1e4))
    return fx.modes(builder.build())


def test_modal_energies_contain_flexible_bodies() -> None:
    for mode, wanted in zip(swing(True), swing(False), strict=True):
        assert mode.frequency == pytest.approx(wanted.frequency, rel=1e-9)
        assert mode.bodies == pytest.approx(wanted.bodies, rel=1e-6)
        assert min(mode.bodies.values()) > 0.01
    builder = fx.PlantBuilder("plant", gravity=(0.0, 0.0, 0.0))
    options: dict[str, Any] = {"frames": {"left": builder.world}, "damping_ratio": 0.05}
    bar = fx.FlexibleBody.from_matrices("bar", **lattice(), modes=3, **options)
    builder.add_assembly(bar)
    plant = pickle.loads(pickle.dumps(builder.build()))
    for mode in fx.modes(plant):
        for shares in (mode.bodies, mode.strain_energy, mode.dissipated_energy):
            assert shares == pytest.approx({"bar": 1.0}, rel=1e-6)


def test_buckling_warns_of_bodies_that_do_not_buckle_in_themselves() -> None:
    builder = fx.PlantBuilder("column", gravity=(0.0, 0.0, 0.0))
    body = fx.FlexibleBody.from_matrices("bar", **lattice(1e7), modes=0)
    builder.add_assembly(body)
    near, far = body.interfaces["left"], body.interfaces["right"]
    foot = builder.add_joint(fx.RevoluteJoint("foot", builder.world, near, axis=(0, 1, 0)))
    builder.add_force_element(fx.JointSpring("spring", foot, stiffness=30.0))
    builder.add_external_force("push", far)
    plant = builder.build()
    with pytest.warns(UserWarning, match="does not buckle in itself: 'bar'"):
        found = fx.buckling(plant, {"push": [0.0, 0.0, 0.0, -1.0, 0.0, 0.0]}, num_factors=1)
    assert found.factors[0] == pytest.approx(30.0 / 2.0, rel=1e-4)


def test_factors_by_dissection_solve_equations_of_parts_that_are_not_connected() -> None:
    rng = np.random.default_rng(1)
    grid = np.stack(np.meshgrid(range(9), range(5), range(4), indexing="ij"), axis=-1)
    points = np.concatenate([grid.reshape(-1, 3), grid.reshape(-1, 3) + np.array([20.0, 0.0, 0.0])])
    near = np.linalg.norm(points[:, np.newaxis] - points, axis=2) < 1.8
    root = np.kron(near, np.ones((3, 3))) * rng.normal(size=(3 * len(points), 3 * len(points)))
    matrix = root @ root.T + np.eye(len(root))
    matrix[np.abs(matrix) < 1e-12] = 0.0
    nodes = np.flatnonzero(points[:, 1] > 0.0)
    free = (3 * nodes[:, np.newaxis] + np.arange(3)).ravel()
    loads = rng.normal(size=(len(free), 2))
    factors = Cholesky(sparse.bsr_array(matrix, blocksize=(3, 3)), points, nodes)
    expected = np.linalg.solve(matrix[np.ix_(free, free)], loads)
    none = Cholesky(sparse.bsr_array(matrix, blocksize=(3, 3)), points, nodes[:0])
    assert none.solve(loads[:0]).shape == (0, 2)
    assert factors.solve(loads) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    matrix[free[:3], :] = matrix[:, free[:3]] = 0.0
    with pytest.raises(np.linalg.LinAlgError):
        Cholesky(sparse.bsr_array(matrix, blocksize=(3, 3)), points, nodes)
