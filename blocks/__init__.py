"""What is wired: the library of ready-made blocks."""

from typing import TYPE_CHECKING

if __name__ != "flexure.blocks":
    raise ImportError("write `import flexure.blocks`: the folder blocks/ is not a package")

from flexure.diagrams.interface.lazy_names import imported_names, on_demand

if TYPE_CHECKING:
    from flexure.blocks.controllers.controllers import PIDController
    from flexure.blocks.controllers.state_feedback import LuenbergerObserver, StateFeedback
    from flexure.blocks.flexures.beams.beam import Beam
    from flexure.blocks.flexures.beams.flexure_assemblies import (
        CrossPivot,
        FoldedGuide,
        ParallelGuide,
    )
    from flexure.blocks.flexures.beams.leaf_spring import LeafSpring, WireFlexure
    from flexure.blocks.flexures.hinges.lumped_hinge import LumpedHinge
    from flexure.blocks.flexures.hinges.notch_hinge import NotchHinge
    from flexure.blocks.flexures.hinges.notches import (
        CircularNotch,
        EllipticNotch,
        FilletedNotch,
        Notch,
    )
    from flexure.blocks.flexures.sections.materials import Material
    from flexure.blocks.flexures.sections.rectangle_section import RectangleSection
    from flexure.blocks.flexures.sections.sections import (
        CircleSection,
        GeneralSection,
        Section,
        TubeSection,
    )
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
    from flexure.blocks.linear_systems.continuous import (
        FilteredDerivative,
        FirstOrderLag,
        Integrator,
    )
    from flexure.blocks.linear_systems.delays import PadeDelay, TimeDelay
    from flexure.blocks.linear_systems.discrete import UnitDelay, ZeroOrderHold
    from flexure.blocks.linear_systems.filters import LeadLag, NotchFilter
    from flexure.blocks.linear_systems.state_space import AffineSystem, StateSpace, TransferFunction
    from flexure.blocks.models.fmu.fmu_block import FMUBlock
    from flexure.blocks.models.mjcf.mjcf import load_mjcf
    from flexure.blocks.models.sdf.sdf import load_sdf
    from flexure.blocks.models.urdf.urdf import load_urdf
    from flexure.blocks.models.urdf.urdf_writing import save_urdf
    from flexure.blocks.multibody import (
        Actuator,
        Body,
        BodyForceElement,
        BodyShape,
        CamFollower,
        Coupling,
        DistanceConstraint,
        EnergyLedger,
        EnergyTotals,
        ForceElement,
        Frame,
        GearPair,
        GravityCompensation,
        HolonomicConstraint,
        InverseDynamics,
        Joint,
        JointForceElement,
        KnifeEdge,
        Limit,
        LoopJoint,
        MultibodyForces,
        MultibodyTree,
        Plant,
        PlantBuilder,
        PointOnLine,
        PointOnPlane,
        PrescribedMotion,
        RigidStop,
        RollingDisk,
        RollingSphere,
        SpatialInertia,
        VelocityConstraint,
        check_passivity,
    )
    from flexure.blocks.multibody.joints.ball_quaternion import BallQuaternionJoint
    from flexure.blocks.multibody.joints.ball_rpy import BallRpyJoint
    from flexure.blocks.multibody.joints.cylindrical import CylindricalJoint
    from flexure.blocks.multibody.joints.planar import PlanarJoint
    from flexure.blocks.multibody.joints.prismatic import PrismaticJoint
    from flexure.blocks.multibody.joints.quaternion_floating import QuaternionFloatingJoint
    from flexure.blocks.multibody.joints.revolute import RevoluteJoint
    from flexure.blocks.multibody.joints.rpy_floating import RpyFloatingJoint
    from flexure.blocks.multibody.joints.screw import ScrewJoint
    from flexure.blocks.multibody.joints.universal import UniversalJoint
    from flexure.blocks.multibody.joints.weld import WeldJoint
    from flexure.blocks.signals.algebra import (
        Demultiplexer,
        FunctionBlock,
        Gain,
        MatrixGain,
        Multiplexer,
        PassThrough,
        PortSwitch,
        Product,
        Selector,
        Sum,
    )
    from flexure.blocks.signals.lookup_tables import GainSchedule, LookupTable
    from flexure.blocks.signals.noise import BandLimitedNoise, Noise
    from flexure.blocks.signals.nonlinear import (
        DeadZone,
        Quantizer,
        RateLimiter,
        Relay,
        Saturation,
    )
    from flexure.blocks.signals.profiles import MinimumJerkProfile, TrapezoidalProfile
    from flexure.blocks.signals.recorded import Recorded
    from flexure.blocks.signals.sinks import Log, Printer, StopWhen, Terminator, VectorLog
    from flexure.blocks.signals.sources import Constant, Ramp, Step, TimeFunction, Trajectory
    from flexure.blocks.signals.waveforms import Chirp, Sine, Square
else:
    __getattr__, __dir__ = on_demand(__name__, imported_names(__file__, __name__))

__all__ = [
    "Actuator",
    "AffineSystem",
    "BallQuaternionJoint",
    "BallRpyJoint",
    "BandLimitedNoise",
    "Beam",
    "Body",
    "BodyForceElement",
    "BodyShape",
    "Bumper",
    "BushingConstants",
    "Cable",
    "CamFollower",
    "Chirp",
    "CircleSection",
    "CircularNotch",
    "CompliantCoupling",
    "Constant",
    "Coupling",
    "CrossPivot",
    "CylindricalJoint",
    "DeadZone",
    "Demultiplexer",
    "DistanceConstraint",
    "DoorHinge",
    "DoorHingeConfig",
    "EllipticNotch",
    "EnergyLedger",
    "EnergyTotals",
    "FMUBlock",
    "FilletedNotch",
    "FilteredDerivative",
    "FirstOrderLag",
    "FoldedGuide",
    "ForceElement",
    "Frame",
    "FunctionBlock",
    "Gain",
    "GainSchedule",
    "GearPair",
    "GeneralBushing",
    "GeneralSection",
    "GravityCompensation",
    "HolonomicConstraint",
    "Integrator",
    "InverseDynamics",
    "Joint",
    "JointForceElement",
    "JointFriction",
    "JointSpring",
    "JointStop",
    "KnifeEdge",
    "LeadLag",
    "LeafSpring",
    "Limit",
    "LinearBushing",
    "LinearBushingRollPitchYaw",
    "LinearSpringDamper",
    "Log",
    "LookupTable",
    "LoopJoint",
    "LuenbergerObserver",
    "LumpedHinge",
    "Material",
    "MatrixGain",
    "MinimumJerkProfile",
    "MultibodyForces",
    "MultibodyTree",
    "Multiplexer",
    "Noise",
    "Notch",
    "NotchFilter",
    "NotchHinge",
    "PIDController",
    "PadeDelay",
    "ParallelGuide",
    "PassThrough",
    "PlanarJoint",
    "Plant",
    "PlantBuilder",
    "PointOnLine",
    "PointOnPlane",
    "PortSwitch",
    "PrescribedMotion",
    "Printer",
    "PrismaticJoint",
    "Product",
    "Quantizer",
    "QuaternionFloatingJoint",
    "Ramp",
    "RateLimiter",
    "Recorded",
    "RectangleSection",
    "Relay",
    "RevoluteJoint",
    "RigidStop",
    "RollingDisk",
    "RollingSphere",
    "RpyFloatingJoint",
    "Saturation",
    "ScrewJoint",
    "Section",
    "Selector",
    "Sine",
    "SpatialInertia",
    "Square",
    "StateFeedback",
    "StateSpace",
    "Step",
    "StickSlipFriction",
    "StopWhen",
    "Sum",
    "TabulatedSpring",
    "Terminator",
    "TimeDelay",
    "TimeFunction",
    "Trajectory",
    "TransferFunction",
    "TrapezoidalProfile",
    "TubeSection",
    "UnitDelay",
    "UniversalJoint",
    "VectorLog",
    "VelocityConstraint",
    "WeldJoint",
    "WireFlexure",
    "ZeroOrderHold",
    "check_passivity",
    "load_mjcf",
    "load_sdf",
    "load_urdf",
    "save_urdf",
]
