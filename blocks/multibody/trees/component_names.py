"""Names and units of the components of positions, velocities and forces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from flexure.blocks.multibody.joints import Joint

POSITION, VELOCITY = ("x", "y", "z"), ("vx", "vy", "vz")
SPATIAL_VELOCITY = ("wx", "wy", "wz", *VELOCITY)
SPATIAL_FORCE = ("tx", "ty", "tz", "fx", "fy", "fz")

#: The units of what has some components that turn, and others that slide, by their names.
_MIXED = (
    {name: "rad" if name[0] == "q" else "m" for name in ("q", "qx", "qy", "qz", *POSITION)},
    {name: "rad/s" if name[0] == "w" else "m/s" for name in ("w", "v", *SPATIAL_VELOCITY)},
    {name: "N m" if name[0] == "t" else "N" for name in ("t", "f", *SPATIAL_FORCE)},
)


def common_unit(coordinates: Sequence[str], turning: str, sliding: str) -> str:
    """Return the unit of all coordinates of a joint, by their names; none where they differ."""
    if "qw" in coordinates:  # a quaternion
        return ""
    units = {turning if name[0] in "qw" else sliding for name in coordinates}
    return units.pop() if len(units) == 1 else ""


def mixed_unit(names: Sequence[str], name: str) -> str:
    """Return the unit of a component among others with other units; empty where names do not say.

    Names are with or without the name of a joint in front.
    """
    suffixes = [each.rpartition("_")[2] for each in names]
    for units in _MIXED:
        if len({units.get(suffix, "") for suffix in suffixes} - {""}) == 2:
            return units.get(name.rpartition("_")[2], "") if units.keys() >= {*suffixes} else ""
    return ""


def along_joint(joint: Joint) -> dict[str, Any]:
    """Return unit and names of the forces along the velocities of a joint, to declare a port.

    A moment is along an angular velocity, a force along a velocity, so fx is along vx, and tz along
    wz. A single force has the name of its port.
    """
    suffixes = _forces_along(joint)
    return {
        "unit": common_unit(joint.VELOCITY_SUFFIXES, "N m", "N"),
        "element_names": suffixes if len(suffixes) > 1 else None,
    }


def along_joints(joints: Iterable[Joint]) -> dict[str, Any]:
    """Return names of the forces along the velocities of joints, to declare a port of all."""
    names = [f"{joint.name}_{suffix}" for joint in joints for suffix in _forces_along(joint)]
    return {"element_names": names if len(names) > 1 else None}


def _forces_along(joint: Joint) -> list[str]:
    return [{"w": "t", "v": "f"}[name[0]] + name[1:] for name in joint.VELOCITY_SUFFIXES]
