"""Record what Drake makes of the files in models/, in data/model_files.json.

Run it with pydrake installed: ``python tests/oracle/recording/record_models.py``. Drake fixes the
poses of models; states are random around them.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parents[1]
FILES = ("crane.sdf", "ships.sdf", "gripper.urdf", "walker.xml")
STATES = 3


def recorded(file: str) -> dict[str, Any]:
    """Return masses and gravity forces along joints, and poses and accelerations of bodies."""
    tree = importlib.import_module("pydrake.multibody.tree")
    plant = importlib.import_module("pydrake.multibody.plant").MultibodyPlant(0.0)
    parsing = importlib.import_module("pydrake.multibody.parsing")
    parsing.Parser(plant).AddModels(str(HERE / "models" / file))
    plant.Finalize()
    joints = [plant.get_joint(k) for k in plant.GetJointIndices()]
    joints = [joint for joint in joints if joint.num_velocities()]
    bodies = [plant.get_body(k) for k in (tree.BodyIndex(n) for n in range(1, plant.num_bodies()))]
    rng = np.random.default_rng(7)
    states = []
    for number in range(STATES):
        context = plant.CreateDefaultContext()
        q = plant.GetPositions(context)
        v = np.zeros(plant.num_velocities())
        if number:
            for joint in joints:
                part = slice(joint.position_start(), joint.position_start() + joint.num_positions())
                drawn = rng.uniform(-0.6, 0.6, joint.num_positions())
                if joint.type_name() == "quaternion_floating":
                    drawn[:4] = rng.normal(size=4)
                    drawn[:4] /= np.linalg.norm(drawn[:4])
                q[part] = drawn
            v = rng.uniform(-1.0, 1.0, plant.num_velocities())
        plant.SetPositions(context, q)
        plant.SetVelocities(context, v)
        order = [
            n
            for j in joints
            for n in range(j.velocity_start(), j.velocity_start() + j.num_velocities())
        ]
        M = plant.CalcMassMatrix(context)[np.ix_(order, order)]
        states.append(
            {
                "q": [
                    q[j.position_start() : j.position_start() + j.num_positions()].tolist()
                    for j in joints
                ],
                "v": [
                    v[j.velocity_start() : j.velocity_start() + j.num_velocities()].tolist()
                    for j in joints
                ],
                "M": M.tolist(),
                "gravity": plant.CalcGravityGeneralizedForces(context)[order].tolist(),
                "poses": [
                    plant.EvalBodyPoseInWorld(context, b).GetAsMatrix34().tolist() for b in bodies
                ],
                "vdot": plant.get_generalized_acceleration_output_port()
                .Eval(context)[order]
                .tolist(),
            }
        )
    names = [joint.name() for joint in joints]
    return {
        "joints": names,
        "bodies": [body.scoped_name().get_full() for body in bodies],
        "states": states,
    }


if __name__ == "__main__":
    text = json.dumps({file: recorded(file) for file in FILES})
    (HERE / "data" / "model_files.json").write_text(text + "\n", encoding="utf-8")
