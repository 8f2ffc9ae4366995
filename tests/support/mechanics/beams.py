"""Plants of beams with constants of one's choice, for comparisons with rods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

import flexure as fx
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.equations.equations import find_variables
from flexure.solvers.analysis.forces_at_rest.static_equations import StaticEquations

#: With E = G = 1, sections are stiffness.
UNIT = fx.Material(1.0, shear_modulus=1.0, density=1.0)
NO_GRAVITY = (0.0, 0.0, 0.0)


def stiffness_section(
    axial: float = 1e5,
    bending: tuple[float, float] = (1.0, 1.0),
    torsion: float = 1.0,
    shear: float | None = None,
) -> fx.sections.GeneralSection:
    """Return a section that gives a beam of the material `UNIT` these constants."""
    return fx.sections.GeneralSection(
        area=axial,
        second_moment_y=bending[0],
        second_moment_z=bending[1],
        torsion_constant=torsion,
        extent_y=0.1,
        extent_z=0.1,
        torsion_modulus=1.0,
        shear_factor_y=1.0 if shear is None else shear / axial,
        shear_factor_z=1.0 if shear is None else shear / axial,
    )


def place(joint: fx.multibody.Joint, x: float, y: float = 0.0, angle: float = 0.0) -> None:
    """Put a body that moves in a plane, or freely, somewhere in new contexts."""
    if isinstance(joint, fx.PlanarJoint):
        joint.default_positions = np.array([x, y, angle])
    else:
        half = 0.5 * angle
        joint.default_positions = np.array([np.cos(half), 0.0, 0.0, np.sin(half), x, y, 0.0])


def cantilever(segments: int, *, planar: bool = True, **options: Any) -> fx.Plant:
    """Return a beam of length 1 that is clamped to the world and has a body, ``tip``, at its end.

    The input ``load`` is a moment and a force on the tip. Options are those of the section and of
    the beam.
    """
    names = ("axial", "bending", "torsion")
    section = stiffness_section(**{name: options.pop(name) for name in names if name in options})
    curvature = options.get("curvature", (0.0, 0.0))[1]
    builder = fx.PlantBuilder("cantilever", gravity=NO_GRAVITY)
    tip = builder.add_body("tip", fx.SpatialInertia.solid_box(1.0, size=(0.1, 0.1, 0.1)))
    kind = fx.PlanarJoint if planar else fx.QuaternionFloatingJoint
    joint = builder.add_joint(kind("end", builder.world, tip))
    if curvature:
        place(
            joint, np.sin(curvature) / curvature, (1.0 - np.cos(curvature)) / curvature, curvature
        )
    else:
        place(joint, 1.0)
    builder.add_force_element(
        fx.Beam(
            "beam",
            builder.world,
            tip,
            section=section,
            material=UNIT,
            length=1.0,
            **{"shear": False, "segments": segments, "planar": planar} | options,
        )
    )
    builder.add_external_force("load", tip)
    return builder.build()


def tip_position(plant: fx.Plant, context: fx.Context) -> FloatArray:
    """Return where the tip of a cantilever is."""
    q = np.array(plant.joint("end").positions.get(context))
    return np.array([*q[:2], 0.0]) if len(q) == 3 else q[4:]


def under_load(
    plant: fx.Plant,
    loads: Mapping[str, npt.ArrayLike],
    steps: int = 20,
    start: fx.Context | None = None,
) -> tuple[fx.Context, FloatArray]:
    """Go to an equilibrium by Newton's method in steps of the load: where it is, and stiffness.

    That is cheaper than a load path, and tells nothing of what lies between.
    """
    context = plant.create_default_context() if start is None else start.clone()
    variables = find_variables(context, list(loads), "Cannot load a plant")
    equations = StaticEquations(context, variables, attempt="Cannot load a plant")
    goal = np.concatenate([np.atleast_1d(np.asarray(load, dtype=float)) for load in loads.values()])
    before = equations.variables
    for part in np.arange(1, steps + 1) / steps:
        equations.set_variables(before + part * (goal - before))
        for _ in range(20):
            point = equations.point()
            increments = np.asarray(np.linalg.solve(point.stiffness, point.forces), dtype=float)
            equations.move_to(equations.coordinates.moved(equations.states, increments))
            if np.abs(increments).max() < (1e-3 if part < 1.0 else 1e-7):
                break
        else:
            raise AssertionError("Newton's method does not converge")
    return context, point.stiffness
