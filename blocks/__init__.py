"""What is wired: the library of ready-made blocks."""

if __name__ != "flexure.blocks":
    raise ImportError("write `import flexure.blocks`: the folder blocks/ is not a package")

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
from flexure.blocks.discrete import DiscreteDerivative, DiscreteIntegrator, UnitDelay, ZeroOrderHold
from flexure.blocks.discrete_linear import DiscreteStateSpace, DiscreteTransferFunction
from flexure.blocks.forces import DoorHinge, DoorHingeConfig, HingeLaw
from flexure.blocks.linear import AffineSystem, StateSpace, TransferFunction
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
from flexure.blocks.waveforms import Chirp, Sine, Square

__all__ = [
    "AffineSystem",
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
    "FilteredDerivative",
    "FirstOrderLag",
    "FunctionBlock",
    "Gain",
    "HingeLaw",
    "Integrator",
    "Log",
    "LookupTable",
    "LuenbergerObserver",
    "MatrixGain",
    "Multiplexer",
    "Noise",
    "PIDController",
    "PadeDelay",
    "PassThrough",
    "PortSwitch",
    "Printer",
    "Product",
    "Quantizer",
    "Ramp",
    "RateLimiter",
    "Relay",
    "SampledPIDController",
    "Saturation",
    "Selector",
    "Sine",
    "Square",
    "StateFeedback",
    "StateSpace",
    "Step",
    "StopWhen",
    "Sum",
    "Terminator",
    "TimeDelay",
    "TimeFunction",
    "Trajectory",
    "TransferFunction",
    "UnitDelay",
    "VectorLog",
    "ZeroOrderHold",
]
