"""Compliant force elements: the blocks, the laws that they carry, and where constants come from.

The face offers the laws as ``fx.laws``, the recipes for constants as ``fx.compliance``, and fits to
measurements as ``fx.fitting``; here are the elements, and what is passed to them.
"""

from flexure.blocks.forces.between_points.one_sided_spring import Bumper, Cable
from flexure.blocks.forces.between_points.spring_damper import LinearSpringDamper
from flexure.blocks.forces.bushings.bushing import LinearBushingRollPitchYaw
from flexure.blocks.forces.bushings.general_bushing import GeneralBushing
from flexure.blocks.forces.bushings.gimbal_free_bushing import LinearBushing
from flexure.blocks.forces.coefficients.mounts import BushingConstants
from flexure.blocks.forces.on_joints.compliant_coupling import CompliantCoupling
from flexure.blocks.forces.on_joints.door_hinge import DoorHinge
from flexure.blocks.forces.on_joints.hinge_constants import DoorHingeConfig
from flexure.blocks.forces.on_joints.joint_friction import JointFriction
from flexure.blocks.forces.on_joints.joint_spring import JointSpring
from flexure.blocks.forces.on_joints.joint_stop import JointStop
from flexure.blocks.forces.on_joints.stick_slip_friction import StickSlipFriction
from flexure.blocks.forces.on_joints.tabulated_spring import TabulatedSpring

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
