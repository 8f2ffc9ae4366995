"""What is wired: the library of ready-made blocks."""

from typing import TYPE_CHECKING

if __name__ != "flexure.blocks":
    raise ImportError("write `import flexure.blocks`: the folder blocks/ is not a package")

from flexure.diagrams.interface.lazy_names import on_demand

if TYPE_CHECKING:
    from flexure.blocks.controllers.controllers import PIDController, SampledPIDController
    from flexure.blocks.controllers.state_feedback import (
        LuenbergerObserver,
        SampledLuenbergerObserver,
        StateFeedback,
    )
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
    from flexure.blocks.linear_systems.continuous import (
        FilteredDerivative,
        FirstOrderLag,
        Integrator,
    )
    from flexure.blocks.linear_systems.delays import PadeDelay, TimeDelay
    from flexure.blocks.linear_systems.discrete import (
        DiscreteDerivative,
        DiscreteIntegrator,
        UnitDelay,
        ZeroOrderHold,
    )
    from flexure.blocks.linear_systems.discrete_linear import (
        DiscreteStateSpace,
        DiscreteTransferFunction,
    )
    from flexure.blocks.linear_systems.filters import LeadLag, NotchFilter
    from flexure.blocks.linear_systems.state_space import AffineSystem, StateSpace, TransferFunction
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
        DiscreteRateLimiter,
        Quantizer,
        RateLimiter,
        Relay,
        Saturation,
    )
    from flexure.blocks.signals.profiles import MinimumJerkProfile, TrapezoidalProfile
    from flexure.blocks.signals.sinks import Log, Printer, StopWhen, Terminator, VectorLog
    from flexure.blocks.signals.sources import Constant, Ramp, Step, TimeFunction, Trajectory
    from flexure.blocks.signals.waveforms import Chirp, Sine, Square
else:
    __getattr__, __dir__ = on_demand(
        __name__,
        {
            "signals.algebra": (
                "Demultiplexer FunctionBlock Gain MatrixGain Multiplexer PassThrough PortSwitch "
                "Product Selector Sum"
            ),
            "linear_systems.continuous": "FilteredDerivative FirstOrderLag Integrator",
            "controllers.controllers": "PIDController SampledPIDController",
            "linear_systems.delays": "PadeDelay TimeDelay",
            "linear_systems.discrete": "DiscreteDerivative DiscreteIntegrator UnitDelay "
            "ZeroOrderHold",
            "linear_systems.discrete_linear": "DiscreteStateSpace DiscreteTransferFunction",
            "linear_systems.filters": "LeadLag NotchFilter",
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
            "linear_systems.state_space": "AffineSystem StateSpace TransferFunction",
            "signals.lookup_tables": "GainSchedule LookupTable",
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
            "signals.noise": "BandLimitedNoise Noise",
            "signals.nonlinear": "DeadZone DiscreteRateLimiter Quantizer RateLimiter Relay "
            "Saturation",
            "signals.profiles": "MinimumJerkProfile TrapezoidalProfile",
            "signals.sinks": "Log Printer StopWhen Terminator VectorLog",
            "signals.sources": "Constant Ramp Step TimeFunction Trajectory",
            "controllers.state_feedback": "LuenbergerObserver SampledLuenbergerObserver "
            "StateFeedback",
            "signals.waveforms": "Chirp Sine Square",
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
