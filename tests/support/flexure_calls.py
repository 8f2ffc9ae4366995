"""A working call of what flexures are made of."""

from __future__ import annotations

import flexure as fx
from tests.support.public_calls import Make, whole


def flexure_calls() -> dict[str, Make]:
    """Constructors of materials, sections and assemblies."""
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
    return {
        "CircleSection": whole(fx.CircleSection, diameter=0.001),
        "CrossPivot": whole(fx.CrossPivot, **leaves, angle=1.5, crossing=0.5, gap=0.01),
        "FoldedGuide": whole(
            fx.FoldedGuide,
            **leaves,
            outer_distance=0.06,
            inner_distance=0.02,
            shuttle=fx.SpatialInertia.point_mass(0.02),
        ),
        "GeneralSection": whole(
            fx.GeneralSection,
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
        "Material": whole(
            fx.Material,
            youngs_modulus=210e9,
            poissons_ratio=0.3,
            shear_modulus=80e9,
            density=7850.0,
            yield_strength=235e6,
            fatigue_limit=100e6,
            name="steel",
            source="a data sheet",
        ),
        "Material.common": whole(fx.Material.common, name="structural steel S235"),
        "ParallelGuide": whole(fx.ParallelGuide, **leaves, distance=0.05),
        "RectangleSection": whole(fx.RectangleSection, width=0.02, thickness=0.001),
        "TubeSection": whole(fx.TubeSection, outer_diameter=0.002, inner_diameter=0.001),
    }
