"""Joints and single coordinates that searches hold, by handle, name or path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from flexure.blocks.multibody.constrained_dynamics.tree import MultibodyTree
from flexure.blocks.multibody.joints import Joint
from flexure.diagrams.checks.arguments import items_of, require
from flexure.diagrams.checks.errors import UnknownNameError, closest, suggestion
from flexure.diagrams.contexts.value_places import WAYS, Place, Way, find_place, shows_state
from flexure.diagrams.systems.system import System
from flexure.diagrams.values.state import ContinuousState

#: A joint, by itself or by its path, or what leads to components of a continuous state.
Held: TypeAlias = Joint | Way


def held_places(system: System, held: Held | Iterable[Held], attempt: str) -> Iterator[Place]:
    """Yield where in the states of a system the positions of joints and other components are."""
    wanted = "joints and coordinates, by handle, name or path"
    for way in items_of([held] if isinstance(held, (Joint, *WAYS)) else held, wanted, attempt):
        joints = dict(_joints(system)) if isinstance(way, str) else {}
        joint = joints.get(way) if isinstance(way, str) else way
        if isinstance(joint, Joint) and not joint.num_positions:
            continue
        try:
            place = find_place(system, joint.positions if isinstance(joint, Joint) else way, _holds)
        except UnknownNameError:
            if closest(way, joints) is None:
                raise
            remedy = suggestion(way, joints)
            raise UnknownNameError(f"{attempt} with '{way}' fixed", remedy=remedy) from None
        place = place.settable if shows_state(place.handle) else place
        if not _holds(place.handle):
            raise UnknownNameError(
                f"{attempt} with {way!r} fixed",
                expected="a continuous state or one of its components",
                found=repr(place.handle),
            )
        yield place


def held_velocities(
    plant: System, tree: MultibodyTree, held: Held | Iterable[Held], attempt: str
) -> npt.NDArray[np.bool_]:
    """Return which velocities of a plant stay, those of coordinates that are held."""
    stays = np.zeros(tree.topology.num_velocities, dtype=bool)
    fixed = np.zeros(tree.topology.num_positions, dtype=bool)
    for place in held_places(plant, held, attempt):
        fits = place.handle is tree.continuous_state and max(place.components) < len(fixed)
        require(fits, place.path, attempt, f"joints of '{plant.label}' and their coordinates")
        fixed[place.components] = True
    for joint in tree.joints:
        own = fixed[tree.positions_of(joint)]
        fits = joint.velocities_are_rates or own.all() or not own.any()
        expected = f"the whole joint '{joint.name}', whose velocities are no rates of coordinates"
        require(fits, np.flatnonzero(own).tolist(), attempt, expected)
        stays[tree.velocities_of(joint)] = own if joint.velocities_are_rates else own.any()
    return stays


def _holds(handle: object) -> bool:
    """Return whether a handle is that of a continuous state, or shows components of one."""
    return isinstance(handle, ContinuousState) or shows_state(handle)


def _joints(system: System, prefix: str = "") -> Iterator[tuple[str, Joint]]:
    """Yield all joints of the plants in a system, with their paths."""
    for child in system.children or ():
        if isinstance(child, MultibodyTree):
            yield from ((f"{prefix}{joint.name}", joint) for joint in child.joints)
        else:
            yield from _joints(child, f"{prefix}{child.name}.")
