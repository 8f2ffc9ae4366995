"""Names of forces and stresses of sections, and their places along a beam."""

from __future__ import annotations

from collections.abc import Sequence

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
