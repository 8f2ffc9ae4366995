"""Components of forces, stresses and limits have names wherever people meet them."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import flexure as fx
from flexure.blocks.multibody.trees.component_names import along_joint, along_joints

SPATIAL = ["tx", "ty", "tz", "fx", "fy", "fz"]


def stage(segments: int = 1) -> fx.Plant:
    """Return a table on a leaf, which a force and a motor move, and a wheel on the table."""
    builder = fx.PlantBuilder("stage", gravity=(0.0, 0.0, 0.0))
    tip = builder.add_body("tip", fx.SpatialInertia.solid_box(0.02, size=(0.004, 0.012, 0.024)))
    planar = builder.add_joint(fx.PlanarJoint("tip", builder.world, tip))
    planar.default_pose = np.eye(3), (0.1, 0.0, 0.0)
    wheel = builder.add_body("wheel", fx.SpatialInertia.solid_box(0.01, size=(0.01, 0.01, 0.01)))
    axle = builder.add_joint(fx.RevoluteJoint("axle", tip, wheel, axis=(0, 0, 1)))
    builder.add_force_element(fx.JointSpring("spring", axle, stiffness=1.0))
    steel = fx.Material.common("stainless steel 301")
    size = {"length": 0.1, "width": 0.02, "thickness": 5e-4}
    leaf = fx.LeafSpring(
        "leaf", builder.world, tip, material=steel, segments=segments, planar=True, **size
    )
    builder.add_force_element(leaf)
    builder.add_external_force("push", tip)
    builder.add_actuator("drive", planar)
    return builder.build()


def test_names_and_numbers_lead_to_the_same_component() -> None:
    plant = stage()
    context = plant.create_default_context()
    context.set("push[fy]", 0.5)
    context.set("generalized_force[tip_fx]", 20.0)
    np.testing.assert_array_equal(context.get("push"), [0, 0, 0, 0, 0.5, 0])
    np.testing.assert_array_equal(context.get("generalized_force"), [20.0, 0.0, 0.0, 0.0])
    context = fx.load_path(plant, {"push[fy]": 0.5}).context(-1)
    for output, number, name in (
        ("leaf.section_forces", 2, "Mz_A"),
        ("leaf.section_forces", 9, "N_middle"),
        ("leaf.stress", 2, "C"),
        ("leaf.force_on_frame_A", 4, "fy"),
        ("leaf.utilization", 0, "stress_over_yield_strength"),
    ):
        whole, part = context.get(output), context.get(f"{output}[{name}]")
        assert part == whole[number] == context.get(f"{output}[{number}]")
        assert part != 0.0 or name in ("N_middle", "C")
    # the moment at the clamped end holds the force at the free one
    assert context.get("leaf.section_forces[Mz_A]") == pytest.approx(0.05, rel=1e-2)


def test_divided_beams_name_segment_and_place() -> None:
    names = {port.name: port.element_names or () for port in stage(segments=2).output_ports}
    assert names["leaf.stress"] == (*("1_A", "1_middle", "1_C", "2_A", "2_middle", "2_C"),)
    assert names["leaf.section_forces"][:6] == (
        *("T_1_A", "My_1_A", "Mz_1_A", "N_1_A", "Vy_1_A", "Vz_1_A"),
    )
    assert names["leaf.section_forces"][-1] == "Vz_2_C"


def test_files_and_linear_models_have_the_names(tmp_path: Path) -> None:
    plant = stage()
    model = fx.linearize(plant, inputs=["push", "drive"], outputs=["leaf.force_on_C"])
    assert model.input_names == [f"push[{each}]" for each in SPATIAL] + [
        f"drive[{each}]" for each in ("fx", "fy", "tz")
    ]
    assert model.output_names == [f"leaf.force_on_C[{each}]" for each in SPATIAL]
    file = tmp_path / "run.csv"
    fx.simulate(plant, 1e-3).to_csv(file, signals=["leaf.stress", "leaf.utilization"])
    with file.open() as lines:
        header = next(csv.reader(lines))
    assert header[:4] == ["time", *(f"leaf.stress[{each}]" for each in ("A", "middle", "C"))]
    assert all(" " not in each and "," not in each for each in header)


def test_a_wrong_name_is_answered_by_the_right_ones() -> None:
    context = stage().create_default_context()
    with pytest.raises(fx.errors.UnknownNameError, match=r"'push\[tx\]', .*'push\[fz\]'"):
        context.set("push[z]", 1.0)
    with pytest.raises(fx.errors.UnknownNameError, match=r"Did you mean 'leaf.stress\[middle\]'"):
        context.get("leaf.stress[midle]")


def test_forces_along_joints_are_named_after_the_velocities() -> None:
    builder = fx.PlantBuilder("plant")
    bodies = [
        builder.add_body(f"b{k}", fx.SpatialInertia.solid_box(1.0, size=(1, 1, 1))) for k in (0, 1)
    ]
    free = builder.add_joint(fx.RpyFloatingJoint("free", builder.world, bodies[0]))
    cross = builder.add_joint(fx.UniversalJoint("cross", bodies[0], bodies[1]))
    assert along_joint(free) == {"unit": "", "element_names": SPATIAL}
    assert along_joint(cross) == {"unit": "N m", "element_names": ["tx", "ty"]}
    names = along_joints([free, cross])["element_names"]
    assert names == [*(f"free_{each}" for each in SPATIAL), "cross_tx", "cross_ty"]
    assert along_joints([cross])["element_names"] == ["cross_tx", "cross_ty"]


def test_a_single_force_has_the_name_of_its_port() -> None:
    builder = fx.PlantBuilder("plant")
    mass = builder.add_body("mass", fx.SpatialInertia.point_mass(1.0))
    slide = builder.add_joint(fx.PrismaticJoint("slide", builder.world, mass, axis=(1, 0, 0)))
    builder.add_actuator("drive", slide)
    plant = builder.build()
    model = fx.linearize(plant, inputs=["drive", "generalized_force"], outputs=["slide.rate"])
    assert model.input_names == ["drive", "generalized_force"]
