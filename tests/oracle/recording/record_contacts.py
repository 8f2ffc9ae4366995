"""Record distances by MuJoCo and contact forces by Drake in data/contacts.json.

Run it with mujoco and pydrake installed: ``python tests/oracle/recording/record_contacts.py``.
"""

from __future__ import annotations

import importlib
import json
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import numpy as np

SHAPES: dict[str, list[float]] = {"sphere": [0.3], "capsule": [0.2, 0.7], "box": [0.5, 0.7, 0.9]}
DRAWS, STIFFNESS, DISSIPATION, FRICTION = 40, 2000.0, 0.3, 0.4


def pose(rng: np.random.Generator, reach: float) -> dict[str, list[float]]:
    """Draw a quaternion and a position."""
    q = rng.normal(size=4)
    return {
        "q": (q / np.linalg.norm(q)).tolist(),
        "p": rng.uniform(-reach, reach, size=3).tolist(),
    }


def distances(rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return random placements of two shapes with MuJoCo's signed distance."""
    mujoco = importlib.import_module("mujoco")
    found = []
    for a, b in combinations_with_replacement(SHAPES, 2):
        for _ in range(DRAWS):
            places = [pose(rng, 0.6), pose(rng, 0.6)]
            bodies = ""
            for kind, place in zip((a, b), places, strict=True):
                halves = SHAPES[kind] if kind == "sphere" else [0.5 * x for x in SHAPES[kind]]
                if kind == "capsule":
                    halves[0] = SHAPES[kind][0]
                size, q, p = (" ".join(map(repr, x)) for x in (halves, place["q"], place["p"]))
                bodies += f'<body pos="{p}" quat="{q}"><freejoint/>'
                bodies += f'<geom type="{kind}" size="{size}"/></body>'
            text = (
                f'<mujoco><option ccd_tolerance="1e-12" ccd_iterations="200"/><worldbody>{bodies}'
            )
            model = mujoco.MjModel.from_xml_string(f"{text}</worldbody></mujoco>")
            data = mujoco.MjData(model)
            mujoco.mj_forward(model, data)
            distance = mujoco.mj_geomDistance(model, data, 0, 1, 10.0, None)
            found.append({"shapes": [a, b], "poses": places, "distance": distance})
    return found


def forces(rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return random motions of two overlapping shapes with Drake's forces on the first one."""
    math, plants, trees, geometry = (
        importlib.import_module(f"pydrake.{name}")
        for name in ("math", "multibody.plant", "multibody.tree", "geometry")
    )
    common = importlib.import_module("pydrake.common.eigen_geometry")
    framework = importlib.import_module("pydrake.systems.framework")
    make = {
        "sphere": geometry.Sphere,
        "capsule": geometry.Capsule,
        "box": geometry.Box,
        "half_space": geometry.HalfSpace,
    }
    found: list[dict[str, Any]] = []
    pairs = [("sphere", other) for other in (*SHAPES, "half_space")]
    while len(found) < DRAWS:
        pair = pairs[len(found) % len(pairs)]
        builder = framework.DiagramBuilder()
        plant, _ = plants.AddMultibodyPlantSceneGraph(builder, 0.0)
        bodies = []
        for number, kind in enumerate(pair):
            body = plant.AddRigidBody(
                f"body{number}", trees.SpatialInertia.SolidSphereWithMass(1.0, 0.1)
            )
            properties = geometry.ProximityProperties()
            geometry.AddContactMaterial(
                dissipation=DISSIPATION,
                point_stiffness=2.0 * STIFFNESS,
                friction=plants.CoulombFriction(FRICTION, FRICTION),
                properties=properties,
            )
            shape = make[kind](*SHAPES.get(kind, []))
            plant.RegisterCollisionGeometry(body, math.RigidTransform(), shape, kind, properties)
            bodies.append(body)
        plant.set_stiction_tolerance(1e-9)
        plant.Finalize()
        diagram = builder.Build()
        root = diagram.CreateDefaultContext()
        context = plant.GetMyContextFromRoot(root)
        motions = []
        for body in bodies:
            place = pose(rng, 0.35)
            V = rng.normal(size=6)
            X = math.RigidTransform(common.Quaternion(np.array(place["q"])), np.array(place["p"]))
            plant.SetFreeBodyPose(context, body, X)
            plant.SetFreeBodySpatialVelocity(
                context, body, importlib.import_module("pydrake.multibody.math").SpatialVelocity(V)
            )
            motions.append({**place, "V": V.tolist()})
        results = plant.get_contact_results_output_port().Eval(context)
        if results.num_point_pair_contacts() != 1:
            continue
        info = results.point_pair_contact_info(0)
        second = info.bodyB_index() == bodies[1].index()
        f_A = (-1.0 if second else 1.0) * info.contact_force()
        found.append(
            {
                "shapes": list(pair),
                "motions": motions,
                "depth": info.point_pair().depth,
                "point": info.contact_point().tolist(),
                "force_on_A": f_A.tolist(),
            }
        )
    return found


def main() -> None:
    """Write the file."""
    rng = np.random.default_rng(5)
    content = {
        "sizes": SHAPES,
        "constants": {"stiffness": STIFFNESS, "damping": DISSIPATION, "friction": FRICTION},
        "distances": distances(rng),
        "forces": forces(rng),
    }
    path = Path(__file__).resolve().parents[1] / "data" / "contacts.json"
    path.write_text(json.dumps(content, separators=(",", ":")), encoding="utf-8")


if __name__ == "__main__":
    main()
