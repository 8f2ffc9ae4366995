"""Forces and stresses of sections: their names, the greatest stress as outputs, and its limits."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flexure.blocks.flexures.sections.fatigue import Fatigue
from flexure.blocks.flexures.sections.flexure_parameters import MaterialParameters, ShapeParameters
from flexure.blocks.flexures.sections.materials import Material
from flexure.blocks.flexures.sections.sections import Section
from flexure.blocks.multibody.force_elements.force_element import ForceElement
from flexure.blocks.multibody.force_elements.limits import Limit
from flexure.diagrams import scalars
from flexure.diagrams.checks.arguments import require
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.systems.ports import LeafOutputPort, Prerequisite
from flexure.diagrams.values.arrays import Array
from flexure.diagrams.values.parameters import NumericParameter

#: The torque, the moments about y and z, the tension, and the forces along y and z.
SECTION_FORCES = ("T", "My", "Mz", "N", "Vy", "Vz")
#: Where they are given in each segment: at its ends and halfway.
PLACES = ("A", "middle", "C")


def place_names(segments: int) -> list[str]:
    """Return a name for each place of each segment, with its number where there are several."""
    if segments == 1:
        return list(PLACES)
    return [f"{k}_{place}" for k in range(1, segments + 1) for place in PLACES]


def section_force_names(places: Sequence[str]) -> list[str]:
    """Return the names of all forces of the sections at some places, such as Mz_A."""
    return [f"{force}_{place}" for place in places for force in SECTION_FORCES]


def stress_limits(strength: NumericParameter | None, material: Material) -> list[Limit]:
    """Return a limit of the stress for each strength of a material that is known.

    ``strength`` is the yield strength as a parameter of the element.
    """
    known = (
        (
            "yield strength",
            strength,
            "It yields there",
            "Make it thinner where it bends, or longer, or move it less",
        ),
        (
            "fatigue limit",
            material.fatigue_limit,
            "It breaks when that happens often",
            "Make it thinner where it bends, or longer, or move it less, unless it is seldom",
        ),
    )
    return [
        Limit(f"stress over {name}", bound, "Pa", why, look)
        for name, bound, why, look in known
        if bound is not None
    ]


def stresses_along(
    section_at: Callable[[float], Section],
    youngs_modulus: Array,
    rows: Array,
    windings: Sequence[Any],
    *,
    tapered: bool,
) -> Array:
    """Return von Mises' stress at all places of all segments of a beam.

    ``section_at`` gives the section at a part of the length, ``rows`` has T, M_y and M_z in N m, N,
    V_y and V_z in N at each place. ``windings`` has for each segment half of the square of its
    twist per length in 1/m², and the part of its torque in N m with which stretched fibers resist
    twist, without shear stress. A tapered segment twists most where it is thin.
    """
    stresses, count, places = [], len(windings), len(PLACES)
    for k, (mean, torque) in enumerate(windings):
        halfway = section_at((k + 0.5) / count)
        for place in range(places):
            section = section_at((k + place / (places - 1)) / count)
            T, y, z, N, *_ = rows[places * k + place]
            wound = mean
            if tapered:
                wound = mean * (halfway.torsion_constant / section.torsion_constant) ** 2
            tension = np.abs(N) + section.winding_force(youngs_modulus, wound)
            stresses.append(section.equivalent_stress(tension, T - torque, y, z))
    return scalars.array(stresses)


def safety(strength: Array, stress: Array) -> Array:
    """Return the strength over the stress, infinite without stress."""
    is_free = stress == 0.0
    return np.where(is_free, np.inf, strength / np.where(is_free, 1.0, stress))


class StressedElement(ForceElement):
    """A flexure with the outputs ``greatest_stress``, and ``safety`` where yield is known.

    With a `Fatigue`, it has the output ``fatigue_safety`` as well.

    A subclass has its `MaterialParameters` as ``material``, implements `calc_greatest_stress`, and
    calls `_declare_stress` in its constructor.
    """

    material: MaterialParameters
    safety: LeafOutputPort
    fatigue: ShapeParameters[Fatigue] | None
    fatigue_safety: LeafOutputPort

    def _declare_stress(
        self, prerequisites: Sequence[Prerequisite], fatigue: Fatigue | None = None
    ) -> None:
        self.greatest_stress = self.declare_vector_output(
            "greatest_stress",
            1,
            self.calc_greatest_stress,
            prerequisites=prerequisites,
            unit="Pa",
            doc="greatest equivalent stress of von Mises",
        )
        if self.material.yield_strength is not None:
            self.safety = self.declare_vector_output(
                "safety",
                1,
                self._calc_safety,
                prerequisites=prerequisites,
                doc="yield strength over the greatest stress",
            )
        self.fatigue = None
        if fatigue is not None:
            attempt, wanted = f"Cannot make '{self.label}' with fatigue", "a Fatigue, or None"
            require(isinstance(fatigue, Fatigue), fatigue, attempt, wanted, error=DeclarationError)
            self.fatigue = ShapeParameters(self, fatigue, prefix="fatigue_")
            self.fatigue_safety = self.declare_vector_output(
                "fatigue_safety",
                1,
                self._calc_fatigue_safety,
                prerequisites=prerequisites,
                doc="safety against fatigue if this is the extreme of a cycle",
            )

    def notes(self, context: Any) -> list[str]:
        """Name creep and stress relaxation where they matter."""
        material = self.material.default
        T = material.temperature
        if "temperature" in (each.name for each in self.input_ports):
            T = float(self.input_port("temperature").eval(context)[0])
        if material.creep_temperature is None or material.creep_temperature > T:
            return []
        name = f"'{material.name}' creeps and relaxes under a lasting load at {T:.4g} K"
        return [f"{name}, which no element models: neither forces nor positions last"]

    @abstractmethod
    def calc_greatest_stress(self, context: Any) -> Array:
        """Return the greatest equivalent stress in Pa."""

    def calc_notched_stress(self, context: Any, factor: Array) -> Array:
        """Return the greatest equivalent stress in Pa, times a factor of stress concentration."""
        return factor * self.calc_greatest_stress(context)

    def _calc_fatigue_safety(self, context: Any) -> Array:
        assert self.fatigue is not None
        fatigue = self.fatigue(context)
        return fatigue.safety(self.calc_notched_stress(context, fatigue.concentration))

    def _calc_safety(self, context: Any) -> Array:
        assert self.material.yield_strength is not None
        return safety(self.material.yield_strength(context), self.calc_greatest_stress(context))
