"""What bodies, joints and force elements have in common, and ask of their tree and plant.

They are below both, so that trees and plants are made of them, and here is how they look up.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from flexure.blocks.math import MassProperties
from flexure.blocks.multibody.bodies.body_motion import BodyMotion, Placement
from flexure.diagrams import LeafSystem
from flexure.diagrams.checks.errors import DeclarationError, closest, suggestion
from flexure.diagrams.systems.diagram import Diagram
from flexure.diagrams.systems.ports import CacheEntry, OutputPort
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.handles import HandleOwner, put_first
from flexure.diagrams.values.parameters import NumericParameter

if TYPE_CHECKING:
    from flexure.diagrams.contexts.context import Context


class Part(HandleOwner):
    """Base of what a mechanism is made of: once complete, it refuses attributes it does not have.

    Values live in contexts. So one that is assigned to a new name, or in place of a method, would
    be kept and do nothing.
    """

    name: str
    _is_complete = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} '{self.name}'>"

    def complete(self) -> None:
        """Refuse new attributes from now on; called by the plant and by its builder."""
        put_first(self, "_is_complete", True)

    if not TYPE_CHECKING:  # where it would hide misspelled names

        def __setattr__(self, name: str, value: Any) -> None:
            if self._is_complete and not name.startswith("_") and name not in self.__dict__:
                _refuse_made_up(self, name, value)
            super().__setattr__(name, value)

        def __getattr__(self, name: str) -> Any:
            """Refuse what is no attribute, with the name of a similar one."""
            if name.startswith("_") or hasattr(type(self), name):
                return super().__getattribute__(name)  # raises what a property has raised
            meant = closest(name, _public(self))
            guess = "" if meant is None else f". Did you mean '{meant}'?"
            text = f"'{type(self).__name__}' object has no attribute '{name}'{guess}"
            raise AttributeError(text, name=name)  # told the name, Python adds no guess of its own


def _public(part: Part) -> list[str]:
    """Return the names of the attributes and methods that a part has for all."""
    return [each for each in (*vars(part), *dir(type(part))) if not each.startswith("_")]


def _refuse_made_up(part: Part, name: str, value: Any) -> None:
    """Refuse to assign a value to what is neither an attribute nor a property."""
    held = getattr(type(part), name, None)
    if held is not None and not callable(held):
        return
    kind = type(part)
    valid = [each for each in _public(part) if not callable(getattr(kind, each, None))]
    raise DeclarationError(
        f"Cannot assign {value!r:.80} to '{name}' of '{part.name}'",
        expected="an attribute that it has, or a context to set a value in",
        found="no attribute of that name" if held is None else "a method",
        remedy=suggestion(name, valid) if held is None else f"Call {part.name}.{name}(...)",
    )


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
