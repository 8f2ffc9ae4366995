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
    from flexure.blocks.forces import (
        Bumper,
        BushingConstants,
        Cable,
        DoorHinge,
        DoorHingeConfig,
        JointFriction,
        JointSpring,
        JointStop,
        LinearBushing,
        LinearBushingRollPitchYaw,
        LinearSpringDamper,
        TabulatedSpring,
    )
    from flexure.blocks.linear import AffineSystem, StateSpace, TransferFunction
    from flexure.blocks.multibody import (
        Actuator,
        BallQuaternionJoint,
        BallRpyJoint,
        Body,
        BodyForceElement,
        EnergyLedger,
        EnergyTotals,
        ForceElement,
        Frame,
        Joint,
        JointForceElement,
        MultibodyForces,
        MultibodyTree,
        PassivityReport,
        PlanarJoint,
        Plant,
        PlantBuilder,
        PrismaticJoint,
        QuaternionFloatingJoint,
        RevoluteJoint,
        RpyFloatingJoint,
        ScrewJoint,
        SpatialInertia,
        UniversalJoint,
        WeldJoint,
        check_passivity,
    )
    from flexure.blocks.nonlinear import (
        DeadZone,
        DiscreteRateLimiter,
        LookupTable,
        Quantizer,
        RateLimiter,
        Relay,
        Saturation,
    )
    from flexure.blocks.sinks import Log, Printer, StopWhen, Terminator, VectorLog
    from flexure.blocks.sources import Constant, Noise, Ramp, Step, TimeFunction, Trajectory
    from flexure.blocks.state_feedback import LuenbergerObserver, StateFeedback
    from flexure.blocks.urdf import (
        load_urdf,
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
            "forces": (
                "Bumper BushingConstants Cable DoorHinge DoorHingeConfig JointFriction "
                "JointSpring JointStop LinearBushing LinearBushingRollPitchYaw "
                "LinearSpringDamper TabulatedSpring"
            ),
            "linear": "AffineSystem StateSpace TransferFunction",
            "multibody": (
                "Actuator BallQuaternionJoint BallRpyJoint Body BodyForceElement EnergyLedger "
                "EnergyTotals ForceElement Frame Joint JointForceElement MultibodyForces "
                "MultibodyTree PassivityReport PlanarJoint Plant PlantBuilder PrismaticJoint "
                "QuaternionFloatingJoint RevoluteJoint RpyFloatingJoint ScrewJoint "
                "SpatialInertia UniversalJoint WeldJoint check_passivity"
            ),
            "urdf": ("load_urdf"),
            "nonlinear": (
                "DeadZone DiscreteRateLimiter LookupTable Quantizer RateLimiter Relay Saturation"
            ),
            "sinks": "Log Printer StopWhen Terminator VectorLog",
            "sources": "Constant Noise Ramp Step TimeFunction Trajectory",
            "state_feedback": "LuenbergerObserver StateFeedback",
            "waveforms": "Chirp Sine Square",
        },
    )

__all__ = [
    "Actuator",
    "AffineSystem",
    "BallQuaternionJoint",
    "BallRpyJoint",
    "Body",
    "BodyForceElement",
    "Bumper",
    "BushingConstants",
    "Cable",
    "Chirp",
    "Constant",
    "DeadZone",
    "Demultiplexer",
    "DiscreteDerivative",
    "DiscreteIntegrator",
    "DiscreteRateLimiter",
    "DiscreteStateSpace",
    "DiscreteTransferFunction",
    "DoorHinge",
    "DoorHingeConfig",
    "EnergyLedger",
    "EnergyTotals",
    "FilteredDerivative",
    "FirstOrderLag",
    "ForceElement",
    "Frame",
    "FunctionBlock",
    "Gain",
    "Integrator",
    "Joint",
    "JointForceElement",
    "JointFriction",
    "JointSpring",
    "JointStop",
    "LinearBushing",
    "LinearBushingRollPitchYaw",
    "LinearSpringDamper",
    "Log",
    "LookupTable",
    "LuenbergerObserver",
    "MatrixGain",
    "MultibodyForces",
    "MultibodyTree",
    "Multiplexer",
    "Noise",
    "PIDController",
    "PadeDelay",
    "PassThrough",
    "PassivityReport",
    "PlanarJoint",
    "Plant",
    "PlantBuilder",
    "PortSwitch",
    "Printer",
    "PrismaticJoint",
    "Product",
    "Quantizer",
    "QuaternionFloatingJoint",
    "Ramp",
    "RateLimiter",
    "Relay",
    "RevoluteJoint",
    "RpyFloatingJoint",
    "SampledPIDController",
    "Saturation",
    "ScrewJoint",
    "Selector",
    "Sine",
    "SpatialInertia",
    "Square",
    "StateFeedback",
    "StateSpace",
    "Step",
    "StopWhen",
    "Sum",
    "TabulatedSpring",
    "Terminator",
    "TimeDelay",
    "TimeFunction",
    "Trajectory",
    "TransferFunction",
    "UnitDelay",
    "UniversalJoint",
    "VectorLog",
    "WeldJoint",
    "ZeroOrderHold",
    "check_passivity",
    "load_urdf",
]
