"""What is wired: the library of ready-made blocks."""

from typing import TYPE_CHECKING

if __name__ != "flexure.blocks":
    raise ImportError("write `import flexure.blocks`: the folder blocks/ is not a package")

from flexure.diagrams.on_demand import on_demand

if TYPE_CHECKING:
    from flexure.blocks.algebra import (
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
    from flexure.blocks.continuous import FilteredDerivative, FirstOrderLag, Integrator
    from flexure.blocks.controllers import PIDController, SampledPIDController
    from flexure.blocks.delays import PadeDelay, TimeDelay
    from flexure.blocks.discrete import (
        DiscreteDerivative,
        DiscreteIntegrator,
        UnitDelay,
        ZeroOrderHold,
    )
    from flexure.blocks.discrete_linear import DiscreteStateSpace, DiscreteTransferFunction
    from flexure.blocks.filters import LeadLag, NotchFilter
    from flexure.blocks.flexures import (
        Beam,
        CircleSection,
        CircularNotch,
        CrossPivot,
        EllipticNotch,
        FilletedNotch,
        FoldedGuide,
        GeneralSection,
        LeafSpring,
        LumpedHinge,
        Material,
        Notch,
        NotchHinge,
        ParallelGuide,
        RectangleSection,
        Section,
        TubeSection,
        WireFlexure,
    )
    from flexure.blocks.forces import (
        Bumper,
        BushingConstants,
        Cable,
        CompliantCoupling,
        DoorHinge,
        DoorHingeConfig,
        GeneralBushing,
        JointFriction,
        JointSpring,
        JointStop,
        LinearBushing,
        LinearBushingRollPitchYaw,
        LinearSpringDamper,
        StickSlipFriction,
        TabulatedSpring,
    )
    from flexure.blocks.linear import AffineSystem, StateSpace, TransferFunction
    from flexure.blocks.lookup_tables import GainSchedule, LookupTable
    from flexure.blocks.models import load_mjcf, load_sdf, load_urdf, save_urdf
    from flexure.blocks.multibody import (
        Actuator,
        BallQuaternionJoint,
        BallRpyJoint,
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
        PassivityReport,
        PlanarJoint,
        Plant,
        PlantBuilder,
        PointOnLine,
        PointOnPlane,
        PrescribedMotion,
        PrismaticJoint,
        QuaternionFloatingJoint,
        RevoluteJoint,
        RigidStop,
        RollingDisk,
        RollingSphere,
        RpyFloatingJoint,
        ScrewJoint,
        SpatialInertia,
        UniversalJoint,
        VelocityConstraint,
        WeldJoint,
        check_passivity,
    )
    from flexure.blocks.noise import BandLimitedNoise, Noise
    from flexure.blocks.nonlinear import (
        DeadZone,
        DiscreteRateLimiter,
        Quantizer,
        RateLimiter,
        Relay,
        Saturation,
    )
    from flexure.blocks.profiles import MinimumJerkProfile, TrapezoidalProfile
    from flexure.blocks.sinks import Log, Printer, StopWhen, Terminator, VectorLog
    from flexure.blocks.sources import Constant, Ramp, Step, TimeFunction, Trajectory
    from flexure.blocks.state_feedback import (
        LuenbergerObserver,
        SampledLuenbergerObserver,
        StateFeedback,
    )
    from flexure.blocks.waveforms import Chirp, Sine, Square
else:
    __getattr__, __dir__ = on_demand(
        __name__,
        {
            "algebra": (
                "Demultiplexer FunctionBlock Gain MatrixGain Multiplexer PassThrough PortSwitch "
                "Product Selector Sum"
            ),
            "continuous": "FilteredDerivative FirstOrderLag Integrator",
            "controllers": "PIDController SampledPIDController",
            "delays": "PadeDelay TimeDelay",
            "discrete": "DiscreteDerivative DiscreteIntegrator UnitDelay ZeroOrderHold",
            "discrete_linear": "DiscreteStateSpace DiscreteTransferFunction",
            "filters": "LeadLag NotchFilter",
            "flexures": (
                "Beam CircleSection CircularNotch CrossPivot EllipticNotch FilletedNotch "
                "FoldedGuide GeneralSection LeafSpring LumpedHinge Material Notch NotchHinge "
                "ParallelGuide RectangleSection Section TubeSection WireFlexure"
            ),
            "forces": (
                "Bumper BushingConstants Cable CompliantCoupling DoorHinge DoorHingeConfig "
                "GeneralBushing JointFriction JointSpring JointStop LinearBushing "
                "LinearBushingRollPitchYaw LinearSpringDamper StickSlipFriction TabulatedSpring"
            ),
            "linear": "AffineSystem StateSpace TransferFunction",
            "lookup_tables": "GainSchedule LookupTable",
            "models": "load_mjcf load_sdf load_urdf save_urdf",
            "multibody": (
                "Actuator BallQuaternionJoint BallRpyJoint Body BodyForceElement BodyShape "
                "CamFollower Coupling DistanceConstraint EnergyLedger EnergyTotals "
                "ForceElement Frame GearPair GravityCompensation HolonomicConstraint "
                "InverseDynamics Joint JointForceElement KnifeEdge Limit LoopJoint "
                "MultibodyForces MultibodyTree PassivityReport PlanarJoint Plant PlantBuilder "
                "PointOnLine PointOnPlane PrescribedMotion PrismaticJoint "
                "QuaternionFloatingJoint RevoluteJoint RigidStop RollingDisk RollingSphere "
                "RpyFloatingJoint ScrewJoint SpatialInertia UniversalJoint VelocityConstraint "
                "WeldJoint check_passivity"
            ),
            "noise": "BandLimitedNoise Noise",
            "nonlinear": "DeadZone DiscreteRateLimiter Quantizer RateLimiter Relay Saturation",
            "profiles": "MinimumJerkProfile TrapezoidalProfile",
            "sinks": "Log Printer StopWhen Terminator VectorLog",
            "sources": "Constant Ramp Step TimeFunction Trajectory",
            "state_feedback": "LuenbergerObserver SampledLuenbergerObserver StateFeedback",
            "waveforms": "Chirp Sine Square",
        },
    )

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
    "DeadZone",
    "Demultiplexer",
    "DiscreteDerivative",
    "DiscreteIntegrator",
    "DiscreteRateLimiter",
    "DiscreteStateSpace",
    "DiscreteTransferFunction",
    "DistanceConstraint",
    "DoorHinge",
    "DoorHingeConfig",
    "EllipticNotch",
    "EnergyLedger",
    "EnergyTotals",
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
    "PassivityReport",
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
    "RectangleSection",
    "Relay",
    "RevoluteJoint",
    "RigidStop",
    "RollingDisk",
    "RollingSphere",
    "RpyFloatingJoint",
    "SampledLuenbergerObserver",
    "SampledPIDController",
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
