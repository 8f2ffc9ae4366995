"""Base classes of joints, force elements and limits, and the parts that plant builders make.

Derive own elements from them, or name them in annotations.
"""

from typing import TYPE_CHECKING

from flexure.diagrams.interface.lazy_names import imported_names, on_demand

if TYPE_CHECKING:
    from flexure.blocks.multibody import (
        Actuator as Actuator,
        BodyForceElement as BodyForceElement,
        EnergyLedger as EnergyLedger,
        EnergyTotals as EnergyTotals,
        ForceElement as ForceElement,
        Joint as Joint,
        JointForceElement as JointForceElement,
        Limit as Limit,
        MultibodyTree as MultibodyTree,
    )
else:
    __getattr__, __dir__ = on_demand(__name__, imported_names(__file__, "flexure"), root="flexure")
