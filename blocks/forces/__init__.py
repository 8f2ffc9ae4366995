"""Compliant force elements: the blocks, the laws that they carry, and where constants come from.

The face offers the laws as ``fx.laws``, the recipes for constants as ``fx.compliance``, and fits to
measurements as ``fx.fitting``; here are the elements, and what is passed to them.
"""

from flexure.blocks.forces.bushing import LinearBushingRollPitchYaw
from flexure.blocks.forces.compliant_coupling import CompliantCoupling
from flexure.blocks.forces.door_hinge import DoorHinge
from flexure.blocks.forces.general_bushing import GeneralBushing
from flexure.blocks.forces.gimbal_free_bushing import LinearBushing
from flexure.blocks.forces.hinge_constants import DoorHingeConfig
from flexure.blocks.forces.joint_friction import JointFriction
from flexure.blocks.forces.joint_spring import JointSpring
from flexure.blocks.forces.joint_stop import JointStop
from flexure.blocks.forces.mounts import BushingConstants
from flexure.blocks.forces.one_sided_spring import Bumper, Cable
from flexure.blocks.forces.spring_damper import LinearSpringDamper
from flexure.blocks.forces.stick_slip_friction import StickSlipFriction
from flexure.blocks.forces.tabulated_spring import TabulatedSpring

__all__ = [
    "Bumper",
    "BushingConstants",
    "Cable",
    "CompliantCoupling",
    "DoorHinge",
    "DoorHingeConfig",
    "GeneralBushing",
    "JointFriction",
    "JointSpring",
    "JointStop",
    "LinearBushing",
    "LinearBushingRollPitchYaw",
    "LinearSpringDamper",
    "StickSlipFriction",
    "TabulatedSpring",
]
