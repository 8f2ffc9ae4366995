"""The same assemblies as plants of divided beams."""

from __future__ import annotations

from typing import Any

import numpy as np

import flexure as fx
from benchmarks.flexures.assemblies import Array, Assembly


class PlainSection(fx.sections.GeneralSection):
    """A section of beams whose fibers are not stretched where they are twisted.

    Those of our beams become helices away from the axis, which makes beams shorter, by
    (Iy + Iz)/(2 A) times the square of the twist per length, and leaves stiffer. Exudyn's do not.
    """

    @property
    def polar_moment(self) -> Any:
        """None; the inertia of beams is not made of it."""
        return 0.0 * self.area

    @property
    def wagner_constant(self) -> Any:
        """None."""
        return 0.0 * self.area


def build(assembly: Assembly, segments: int, section: type[fx.sections.GeneralSection]) -> fx.Plant:
    """Return the plant of an assembly, whose input ``load`` is the load on the last body."""
    builder = fx.PlantBuilder(assembly.name.replace(" ", "_"), gravity=(0.0, 0.0, 0.0))
    bodies = []
    for k, each in enumerate(assembly.bodies):
        inertia = fx.SpatialInertia(each.mass, (0.0, 0.0, 0.0), each.moments)
        body = builder.add_body(f"body{k}", inertia)
        joint = builder.add_joint(fx.QuaternionFloatingJoint(f"joint{k}", builder.world, body))
        joint.default_pose = (np.eye(3), each.position)
        bodies.append(body)
    for k, leaf in enumerate(assembly.leaves):
        s, frames = leaf.section, []
        for end, which, place in zip("AC", leaf.bodies, (leaf.start, leaf.end), strict=True):
            on = builder.world if which is None else bodies[which]
            origin = np.zeros(3) if which is None else assembly.bodies[which].position
            frames.append(builder.add_frame(f"{end}{k}", on, (leaf.rotation, place - origin)))
        made = section(
            area=s.area,
            second_moment_y=s.moments[0],
            second_moment_z=s.moments[1],
            torsion_constant=s.torsion,
            extent_y=0.01,
            extent_z=0.01,
            torsion_modulus=1.0,
            shear_factor_y=s.shear_factor,
            shear_factor_z=s.shear_factor,
        )
        builder.add_force_element(
            fx.Beam(
                f"leaf{k}",
                *frames,
                section=made,
                material=fx.Material(s.E, shear_modulus=s.G, density=s.density),
                length=leaf.length,
                segments=segments,
            )
        )
    builder.add_external_force("load", bodies[-1])
    return builder.build()


def load(assembly: Assembly) -> Array:
    """Return the spatial force on the last body."""
    return np.concatenate([assembly.moment, assembly.force])


def positions(assembly: Assembly, plant: fx.Plant, context: fx.Context) -> Array:
    """Return where the bodies are, one per row."""
    joints = [plant.joint(f"joint{k}") for k in range(len(assembly.bodies))]
    return np.array([np.array(joint.positions.get(context))[4:] for joint in joints])


def static_positions(assembly: Assembly, plant: fx.Plant) -> Array:
    """Return where the bodies stand under the load."""
    path = fx.load_path(plant, {"load": [np.zeros(6), load(assembly)]})
    return positions(assembly, plant, path.context(-1))


def frequencies(plant: fx.Plant, count: int) -> Array:
    """Return the lowest natural frequencies in rad/s of the unloaded assembly."""
    rates = sorted(abs(mode.poles[0]) for mode in fx.modes(plant) if mode.kind == "oscillation")
    return np.array(rates[:count])


def motion(assembly: Assembly, plant: fx.Plant, times: Array) -> Array:
    """Return where the bodies are some times after the load was put on at once.

    The shape is (times, bodies, 3).
    """
    context = plant.create_default_context()
    plant.input_port("load").fix(context, load(assembly))
    simulator = fx.Simulator(plant, context, method="Rodas5P", rtol=1e-6, atol=1e-6)
    found = []
    for time in times:
        simulator.advance_to(float(time))
        found.append(positions(assembly, plant, simulator.context))
    return np.array(found)
