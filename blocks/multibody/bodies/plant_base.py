"""What bodies, joints and force elements ask of the tree and of the plant that they are in.

They are below both, so that trees and plants are made of them, and here is how they look up.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from flexure.blocks.math import MassProperties
from flexure.blocks.multibody.bodies.body_motion import BodyMotion, Placement
from flexure.blocks.multibody.bodies.plant_part import Part
from flexure.diagrams import LeafSystem
from flexure.diagrams.systems.diagram import Diagram
from flexure.diagrams.systems.ports import CacheEntry, OutputPort
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.parameters import NumericParameter

if TYPE_CHECKING:
    from flexure.diagrams.contexts.context import Context


class PlantBase(Part, Diagram):
    """The interface of a `Plant` for its parts."""

    tree: TreeBase

    @property
    @abstractmethod
    def bodies(self) -> Sequence[Any]:
        """All bodies, the world first."""

    @property
    @abstractmethod
    def joints(self) -> Sequence[Any]:
        """All joints in the order of their coordinates."""

    @property
    @abstractmethod
    def num_velocities(self) -> int:
        """Number of velocities v."""


class TreeBase(LeafSystem):
    """The interface of a `MultibodyTree` for its parts."""

    # positions, velocities: those of all joints.
    positions: OutputPort
    velocities: OutputPort
    body_accelerations: CacheEntry  # spatial accelerations of all bodies, the world first

    @property
    def parent_plant(self) -> PlantBase:
        """The plant that contains the tree."""
        assert isinstance(self.parent, PlantBase)  # no one else makes trees
        return self.parent

    def find_parameter(self, name: str) -> NumericParameter:
        """Return a parameter by its name."""
        parameter = self.find(name)
        assert isinstance(parameter, NumericParameter)
        return parameter

    @abstractmethod
    def positions_of(self, joint: Any) -> slice:
        """Where the positions of a joint are among those of the tree."""

    @abstractmethod
    def velocities_of(self, joint: Any) -> slice:
        """Where the velocities of a joint are among those of the tree."""

    @abstractmethod
    def velocities_in_state(self, joint: Any) -> slice:
        """Where the velocities of a joint are in the state."""

    def damping_of(self, joint: Any) -> NumericParameter:
        """Return the parameter with the damping of a joint."""
        return self.find_parameter(f"{joint.name}_damping")

    @abstractmethod
    def lock_of(self, joint: Any) -> NumericParameter | None:
        """Return the parameter that locks a joint; None for a weld."""

    def reaction_of(self, joint: Any) -> OutputPort:
        """Return the output with the force of a joint on its child body."""
        return self.output_port(f"{joint.name}_reaction")

    @abstractmethod
    def write_coordinates(self, context: Context, part: slice, numbers: FloatArray) -> None:
        """Replace some of the positions and velocities (q, v) in a context."""

    @abstractmethod
    def kinematics(
        self, context: Any
    ) -> tuple[list[Placement], list[BodyMotion], list[MassProperties]]:
        """Return placements and motions of all bodies, and their inertias in the world."""
