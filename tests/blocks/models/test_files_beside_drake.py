"""Files of models: masses, weights, poses and accelerations are those that Drake computes."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.blocks.math import quaternion_from_rotation, rotation_from_rpy
from tests.oracle.reading import read

pytest.importorskip("lxml", reason="URDF and SDF files are read with the package lxml")

MODELS = Path(__file__).parents[2] / "oracle" / "models"
DRAKES = (0.0, 0.0, -9.81)  # Drake reads the gravity of no SDF file


def loaded(file: str) -> fx.PlantBuilder:
    if file.endswith(".sdf"):
        return fx.load_sdf(MODELS / file, gravity=DRAKES)
    if file.endswith(".urdf"):
        return fx.load_urdf(MODELS / file)
    pytest.importorskip("mujoco", reason="MJCF files are read with the package mujoco")
    return fx.load_mjcf(MODELS / file)


def ours(name: str, plant: fx.Plant) -> str:
    """Return the name of a joint that Drake has under its own one."""
    own = {joint.name.rpartition("__")[2]: joint.name for joint in plant.joints}
    return own.get(name) or {"trunk": "float"}[name]


@pytest.mark.parametrize("file", ["crane.sdf", "ships.sdf", "gripper.urdf", "walker.xml"])
def test_a_file_is_the_plant_that_drake_reads(file: str) -> None:
    recorded = read("model_files.json")[file]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plant = loaded(file).build()
    joints = [plant.joint(ours(name, plant)) for name in recorded["joints"]]
    order = [n for each in joints for n in range(*plant.tree.velocities_of(each).indices(1000))]
    assert len(order) == plant.num_velocities
    if file == "walker.xml":
        assert np.array_equal(plant.gravity.default, [0.1, 0.0, -9.7])
    for number, state in enumerate(recorded["states"]):
        context = plant.create_default_context()
        for joint, q, v in zip(joints, state["q"], state["v"], strict=True):
            if not number:  # where a file lets its bodies start
                continue
            is_turned = isinstance(joint, fx.BallQuaternionJoint) and len(q) == 3
            joint.positions.set(context, quaternion(q) if is_turned else q)
            joint.velocities.set(context, v)
        near: Any = {"rtol": 1e-9, "atol": 1e-9}
        for name, pose in zip(recorded["bodies"], state["poses"], strict=True):
            model, _, body = name.partition("::")
            known = {each.name for each in plant.bodies}
            plain = body.replace("::", "__")
            own = plant.body(plain if plain in known else f"{model}__{plain}")
            np.testing.assert_allclose(np.column_stack(own.pose(context)), pose, **near)
        M = plant.calc_mass_matrix(context)[np.ix_(order, order)]
        np.testing.assert_allclose(M, state["M"], **near)
        weight = plant.calc_gravity_generalized_forces(context)[order]
        np.testing.assert_allclose(weight, state["gravity"], **near)
        np.testing.assert_allclose(plant.calc_vdot(context)[order], state["vdot"], **near)


def quaternion(rpy: list[float]) -> Any:
    return quaternion_from_rotation(rotation_from_rpy(np.array(rpy)))
