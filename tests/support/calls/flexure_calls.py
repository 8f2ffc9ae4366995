"""A working call of what flexures are made of."""

from __future__ import annotations

from typing import Any

import numpy as np

import flexure as fx
from tests.support.calls.odd_arguments import Call
from tests.support.calls.public_calls import Make, lag, whole


def limits_of_lag() -> Call:
    """A check of limits, which is the same in a diagram that has none."""
    diagram, context = lag()
    return Call(fx.check_limits, {"of": diagram, "context": context}, context.to_dict)


def drawn() -> Call:
    """A drawing of a leaf."""
    builder = fx.PlantBuilder("hinge")
    arm = builder.add_body("arm", fx.SpatialInertia.point_mass(0.1))
    joint = builder.add_joint(fx.RpyFloatingJoint("pose", builder.world, arm))
    joint.default_pose = np.eye(3), (0.05, 0.0, 0.0)
    steel = fx.Material.common("structural steel S235")
    size = {"length": 0.05, "width": 0.01, "thickness": 4e-4}
    leaf = fx.LeafSpring("leaf", builder.world, arm, material=steel, **size)
    builder.add_force_element(leaf)
    plant = builder.build()
    context = plant.create_default_context()
    return Call(fx.part_drawing, {"plant": plant, "context": context}, context.to_dict)


def of_drawing(verb: str, **arguments: str) -> Make:
    """Return what calls a method of that drawing."""
    return lambda: Call(getattr(fx.part_drawing(**drawn().arguments), verb), arguments)


def lattice_arguments() -> dict[str, Any]:
    """A cube of particles with springs between them."""
    nodes = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
    K = np.zeros((24, 24))
    for i in range(8):
        for j in range(i):
            row = np.zeros((8, 3))
            row[i], row[j] = nodes[i] - nodes[j], nodes[j] - nodes[i]
            K += np.outer(row, row)
    ends = {"left": [0, 1, 2, 3]}
    return {"name": "bar", "M": np.eye(24), "K": K, "nodes": nodes, "interfaces": ends}


def flexure_calls() -> dict[str, Make]:
    """Constructors of materials, contacts, sections and assemblies."""
    world = fx.PlantBuilder("plant").world
    leaves = {
        "name": "stage",
        "frame_a": world,
        "frame_c": fx.Body("table"),
        "length": 0.1,
        "width": 0.02,
        "thickness": 5e-4,
        "material": fx.Material.common("structural steel S235"),
    }
    ball = fx.BodyShape.sphere(radius=0.1)
    flat = {name: each for name, each in leaves.items() if name != "length"}
    wire = {name: each for name, each in flat.items() if name not in ("width", "thickness")}
    wire |= {"diameter": 1e-3, "height": 0.05}
    mass = fx.SpatialInertia.point_mass(0.02)
    folded = {"outer_distance": 0.06, "inner_distance": 0.02, "shuttle": mass}
    return {
        "part_drawing": drawn,
        "PartDrawing.area": of_drawing("area", name="leaf"),
        "PartDrawing.save": of_drawing("save", path="leaf.svg"),
        "Contact.damping_for": whole(fx.Contact.damping_for, restitution=0.5, speed=1.0),
        "Contact.hertz": whole(
            fx.Contact.hertz,
            name="touch",
            body_a=world,
            shape_a="half_space",
            body_b=leaves["frame_c"],
            shape_b=ball,
            materials=(leaves["material"], leaves["material"]),
        ),
        "ContactGroup": whole(
            fx.ContactGroup,
            name="touch",
            shapes=[(leaves["frame_c"], ball)],
            others=[(world, "half_space")],
            watched=True,
            stiffness=1e5,
            exponent=1.5,
            damping=0.1,
            friction=0.2,
            transition_velocity=1e-3,
        ),
        "RigidContact": whole(
            fx.RigidContact,
            name="touch",
            body_a=leaves["frame_c"],
            shape_a=fx.BodyShape.point(),
            body_b=world,
            shape_b=ball,
            inside=True,
            restitution=0.5,
            rest_velocity=1e-3,
            friction=0.2,
            transition_velocity=1e-3,
        ),
        "BridgeAmplifier": whole(
            fx.BridgeAmplifier,
            **leaves,
            angle=0.1,
            root_distance=0.01,
            side_height=0.01,
            sides=mass,
            hinge_length=0.01,
            link=mass,
        ),
        "LeverAmplifier": whole(
            fx.LeverAmplifier,
            **leaves,
            frame_b=fx.Body("input"),
            input_arm=0.01,
            output_arm=0.05,
            lever=mass,
        ),
        "Bipod": whole(fx.Bipod, **wire, base_distance=0.03, platform_distance=0.005),
        "Hexapod": whole(
            fx.Hexapod,
            **wire,
            base_radius=0.06,
            platform_radius=0.05,
            base_angle=0.3,
            platform_angle=0.4,
        ),
        "MembraneFlexure": whole(
            fx.MembraneFlexure, **flat, inner_radius=0.01, outer_radius=0.03, arms=3, angle=0.1
        ),
        "SpiralFlexure": whole(
            fx.SpiralFlexure,
            **flat,
            inner_radius=0.01,
            outer_radius=0.03,
            sweep=1.0,
            arms=3,
            segments=2,
        ),
        "RemoteCenterHinge": whole(fx.RemoteCenterHinge, **leaves, distance=0.01, angle=1.5),
        "ButterflyPivot": whole(
            fx.ButterflyPivot, **leaves, distance=0.01, shuttle=mass, angle=1.5
        ),
        "RobertsGuide": whole(fx.RobertsGuide, **leaves, base_distance=0.06, coupler_distance=0.02),
        "CompoundGuide": whole(fx.CompoundGuide, **leaves, **folded, root_distance=0.02),
        "CircleSection": whole(fx.sections.CircleSection, diameter=0.001),
        "CircularNotch": whole(fx.sections.CircularNotch, thickness=5e-4, radius=5e-3, width=1e-2),
        "EllipticNotch": whole(
            fx.sections.EllipticNotch, thickness=5e-4, half_length=5e-3, depth=3e-3, width=1e-2
        ),
        "FilletedNotch": whole(
            fx.sections.FilletedNotch,
            thickness=5e-4,
            neck_length=5e-3,
            fillet_radius=1e-3,
            width=1e-2,
        ),
        "CrossPivot": whole(fx.CrossPivot, **leaves, angle=1.5, crossing=0.5, gap=0.01),
        "FlexibleBody": whole(
            fx.FlexibleBody,
            name="bar",
            reduced=fx.FlexibleBody.from_matrices(**lattice_arguments()).reduced,
        ),
        "FlexibleBody.from_matrices": whole(fx.FlexibleBody.from_matrices, **lattice_arguments()),
        "FlexibleBody.from_plate": whole(
            fx.FlexibleBody.from_plate,
            name="plate",
            mesh=fx.PlateMesh.rectangle(0.1, 0.02, cells=(4, 1)),
            thickness=1e-3,
            material=leaves["material"],
            interfaces={"root": "left", "tip": "right"},
            modes=1,
        ),
        "PlateMesh": whole(
            fx.PlateMesh,
            points=[[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]],
            cells=[[0, 1, 2, 3]],
            sets={"left": [0, 3]},
        ),
        "PlateMesh.rectangle": whole(fx.PlateMesh.rectangle, length=0.1, width=0.02, cells=(2, 2)),
        "PlateMesh.ring": whole(
            fx.PlateMesh.ring, inner_radius=0.01, outer_radius=0.1, cells=(2, 6)
        ),
        "PlateMesh.spiral": whole(
            fx.PlateMesh.spiral,
            inner_radius=0.01,
            outer_radius=0.03,
            sweep=1.0,
            width=0.002,
            arms=2,
            cells=(4, 1),
        ),
        "FoldedGuide": whole(
            fx.FoldedGuide,
            **leaves,
            outer_distance=0.06,
            inner_distance=0.02,
            shuttle=fx.SpatialInertia.point_mass(0.02),
        ),
        "GeneralSection": whole(
            fx.sections.GeneralSection,
            area=2e-6,
            second_moment_y=1e-13,
            second_moment_z=4e-13,
            torsion_constant=3e-13,
            extent_y=1e-3,
            extent_z=5e-4,
            torsion_modulus=4e-10,
            shear_factor_y=0.8,
            shear_factor_z=0.9,
        ),
        "Fatigue": whole(
            fx.Fatigue,
            strength=300e6,
            static_strength=1e9,
            cycles=1e5,
            knee=1e6,
            exponent=5.0,
            exponent_beyond=20.0,
            stress_ratio=0.0,
            concentration=1.5,
        ),
        "Fatigue.weld": whole(
            fx.Fatigue.weld, fat_class=80e6, cycles=1e6, stress_ratio=0.0, partial_factor=1.1
        ),
        "Limit": whole(
            fx.multibody.Limit,
            quantity="angle",
            bound=0.3,
            unit="rad",
            why="It is linear",
            look="Divide it",
        ),
        "Material": whole(
            fx.Material,
            youngs_modulus=210e9,
            poissons_ratio=0.3,
            shear_modulus=80e9,
            density=7850.0,
            yield_strength=235e6,
            thermal_expansion=1e-5,
            fatigue_limit=100e6,
            name="steel",
            source="a data sheet",
        ),
        "Material.silicon": whole(fx.Material.silicon, along=[1, 1, 0], width=[0, 0, 1]),
        "Material.quartz": whole(fx.Material.quartz, along=[0, 1, 0], width=[1, 0, 0]),
        "Material.from_stiffness": whole(
            fx.Material.from_stiffness,
            stiffness=np.eye(6),
            along=[1, 0, 0],
            width=[0, 1, 0],
            density=1.0,
        ),
        "Material.common": whole(fx.Material.common, name="structural steel S235"),
        "check_limits": limits_of_lag,
        "ParallelGuide": whole(fx.ParallelGuide, **leaves, distance=0.05),
        "RectangleSection": whole(fx.sections.RectangleSection, width=0.02, thickness=0.001),
        "TubeSection": whole(fx.sections.TubeSection, outer_diameter=0.002, inner_diameter=0.001),
    }
