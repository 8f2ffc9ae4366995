"""Compliant force elements: their laws as functions, and the blocks that carry them."""

from flexure.blocks.forces.door_hinge import DoorHinge, DoorHingeConfig, HingeLaw

__all__ = ["DoorHinge", "DoorHingeConfig", "HingeLaw"]
