"""Constraints: what closes loops of a mechanism, couples coordinates and lets bodies roll.

`flexure.PlantBuilder.add_constraint` adds them to a plant, if no other method is named there.
"""

from typing import TYPE_CHECKING

from flexure.diagrams.interface.lazy_names import imported_names, on_demand

if TYPE_CHECKING:
    from flexure.blocks.multibody.constraints import (
        CamFollower as CamFollower,
        Coupling as Coupling,
        DistanceConstraint as DistanceConstraint,
        GearPair as GearPair,
        HolonomicConstraint as HolonomicConstraint,
        KnifeEdge as KnifeEdge,
        LoopJoint as LoopJoint,
        PointOnLine as PointOnLine,
        PointOnPlane as PointOnPlane,
        PrescribedMotion as PrescribedMotion,
        RollingDisk as RollingDisk,
        RollingSphere as RollingSphere,
        VelocityConstraint as VelocityConstraint,
    )
else:
    __getattr__, __dir__ = on_demand(__name__, imported_names(__file__, "flexure"), root="flexure")
