"""The names of `flexure`: none appears, changes or goes without anybody deciding so."""

from __future__ import annotations

import inspect
import pkgutil
from types import ModuleType

import pytest

import flexure as fx

NAMES = [
    "AbstractParameter",
    "AbstractState",
    "AffineSystem",
    "BushingConstants",
    "CacheEntry",
    "Chirp",
    "CompiledEquations",
    "Constant",
    "Context",
    "ContinuousState",
    "DeadZone",
    "Demultiplexer",
    "Diagram",
    "DiagramBuilder",
    "DiscreteDerivative",
    "DiscreteIntegrator",
    "DiscreteRateLimiter",
    "DiscreteState",
    "DiscreteStateSpace",
    "DiscreteTransferFunction",
    "DoorHinge",
    "DoorHingeConfig",
    "Equation",
    "Equilibrium",
    "FilteredDerivative",
    "FirstOrderLag",
    "FitReport",
    "Forced",
    "FunctionBlock",
    "Gain",
    "HingeLaw",
    "Initialization",
    "InputPort",
    "Integrator",
    "LeafSystem",
    "LinearModel",
    "Log",
    "LookupTable",
    "LuenbergerObserver",
    "MatrixGain",
    "Multiplexer",
    "Noise",
    "NumericParameter",
    "OutputPort",
    "PIDController",
    "PadeDelay",
    "PassThrough",
    "PerStep",
    "Periodic",
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
    "Sensitivity",
    "SimulationResult",
    "Simulator",
    "Sine",
    "SpringDamperLaw",
    "Square",
    "StateFeedback",
    "StateSpace",
    "Statistics",
    "Step",
    "StepInfo",
    "StepResponse",
    "StopWhen",
    "Sum",
    "Sweep",
    "System",
    "TIME",
    "Terminate",
    "Terminator",
    "TimeDelay",
    "TimeFunction",
    "Trajectory",
    "TransferFunction",
    "UnitDelay",
    "VectorLog",
    "Witness",
    "ZeroOrderHold",
    "approximate_natural_frequency",
    "array",
    "blocks",
    "compiled_equations",
    "damping_from_ratio",
    "damping_from_settling_time",
    "damping_ratio",
    "damping_ratio_from_decay_ratio",
    "decay_ratio",
    "diagrams",
    "equation",
    "equilibrium",
    "errors",
    "evaluate_batch",
    "fit_bushing",
    "fit_constants",
    "fit_hinge",
    "linearize",
    "logarithmic_decrement",
    "natural_frequency",
    "natural_frequency_from_settling_time",
    "sensitivity",
    "settling_time",
    "simulate",
    "simulate_many",
    "solvers",
    "step_info",
    "step_response",
    "stiffness_from_frequency",
    "stiffness_from_load",
    "sweep",
]
PACKAGES = [fx, fx.blocks, fx.diagrams, fx.solvers]

every_name = pytest.mark.parametrize("name", NAMES)


def test_the_public_names_are_these() -> None:
    assert sorted(fx.__all__) == NAMES


def test_nothing_else_is_public_but_modules() -> None:
    others = {name for name in vars(fx) if not name.startswith("_")} - set(NAMES)
    assert [name for name in others if not isinstance(getattr(fx, name), ModuleType)] == []


@every_name
def test_the_name_is_documented(name: str) -> None:
    item = getattr(fx, name)
    if not isinstance(item, str):  # the constant TIME is a plain text
        assert inspect.getdoc(item)
    if inspect.isclass(item) or inspect.isfunction(item):
        assert item.__doc__
        assert item.__name__ == name


@every_name
def test_the_name_hides_no_module(name: str) -> None:
    """A submodule of the same name would replace the item as soon as somebody imports it."""
    for package in PACKAGES:
        modules = {module.name for module in pkgutil.iter_modules(package.__path__)}
        assert name not in modules or isinstance(getattr(package, name), ModuleType)
