"""Groups of parts that are added to a plant in one call."""

from __future__ import annotations

from collections.abc import Sequence

from flexure.blocks.multibody.bodies.bodies import Body
from flexure.blocks.multibody.force_elements.force_element import ForceElement
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.diagrams.values.tied_parameters import TiedParameter


class PartGroup:
    """Bodies, joints and force elements that belong together, for `PlantBuilder.add_assembly`.

    Each part is named after the group. The plant has its ``tied`` parameters under that name.
    """

    name: str
    bodies: Sequence[Body] = ()
    joints: Sequence[Joint] = ()
    force_elements: Sequence[ForceElement] = ()
    tied: tuple[TiedParameter, ...] = ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} '{self.name}'>"
