"""Bodies, joints, the tree they make, and the builder that makes plants of them."""

from flexure.blocks.multibody.bodies.bodies import Body as Body, Frame as Frame
from flexure.blocks.multibody.bodies.body_shape import BodyShape as BodyShape
from flexure.blocks.multibody.bodies.inertia import SpatialInertia as SpatialInertia
from flexure.blocks.multibody.bodies.multibody_forces import MultibodyForces as MultibodyForces
from flexure.blocks.multibody.constrained_dynamics.tree import MultibodyTree as MultibodyTree
from flexure.blocks.multibody.force_elements.force_element import (
    BodyForceElement as BodyForceElement,
    ForceElement as ForceElement,
)
from flexure.blocks.multibody.force_elements.joint_force_element import (
    JointForceElement as JointForceElement,
)
from flexure.blocks.multibody.force_elements.limits import Limit as Limit
from flexure.blocks.multibody.joints import Joint as Joint
from flexure.blocks.multibody.plants.computed_torque import (
    GravityCompensation as GravityCompensation,
    InverseDynamics as InverseDynamics,
)
from flexure.blocks.multibody.plants.energy_ledger import (
    EnergyLedger as EnergyLedger,
    EnergyTotals as EnergyTotals,
)
from flexure.blocks.multibody.plants.passivity import (
    PassivityReport as PassivityReport,
    check_passivity as check_passivity,
)
from flexure.blocks.multibody.plants.plant import Plant as Plant
from flexure.blocks.multibody.plants.plant_builder import PlantBuilder as PlantBuilder
from flexure.blocks.multibody.trees.tree_inputs import Actuator as Actuator
