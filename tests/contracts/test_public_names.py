"""The names of `flexure`: none appears, changes or goes without anybody deciding so."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from pathlib import Path
from types import ModuleType

import pytest

import flexure as fx

NAMES = [
    "AbstractParameter",
    "AbstractState",
    "Actuator",
    "AffineSystem",
    "BallQuaternionJoint",
    "BallRpyJoint",
    "Body",
    "BodyForceElement",
    "Bumper",
    "BushingConstants",
    "Cable",
    "CacheEntry",
    "Checkup",
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
    "EnergyLedger",
    "EnergyTotals",
    "Equation",
    "Equilibrium",
    "FilteredDerivative",
    "FirstOrderLag",
    "FitReport",
    "ForceElement",
    "ForceTable",
    "Forced",
    "Frame",
    "FrictionLaw",
    "FunctionBlock",
    "Gain",
    "HingeLaw",
    "Initialization",
    "InputPort",
    "Integrator",
    "Joint",
    "JointForceElement",
    "JointFriction",
    "JointSpring",
    "JointStop",
    "LeafSystem",
    "LinearBushing",
    "LinearBushingRollPitchYaw",
    "LinearModel",
    "LinearSpringDamper",
    "Log",
    "LookupTable",
    "LuenbergerObserver",
    "MatrixGain",
    "MultibodyForces",
    "MultibodyTree",
    "Multiplexer",
    "Noise",
    "NumericParameter",
    "OneSidedSpringLaw",
    "OutputPort",
    "PIDController",
    "PadeDelay",
    "PassThrough",
    "PassivityReport",
    "PerStep",
    "Periodic",
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
    "RollPitchYawBushingLaw",
    "RotationVectorBushingLaw",
    "RpyFloatingJoint",
    "SampledPIDController",
    "Saturation",
    "ScrewJoint",
    "Selector",
    "Sensitivity",
    "SimulationResult",
    "Simulator",
    "Sine",
    "SpatialInertia",
    "SpringDamperLaw",
    "SpringLaw",
    "Square",
    "StateFeedback",
    "StateSpace",
    "Statistics",
    "Step",
    "StepInfo",
    "StepResponse",
    "StopLaw",
    "StopWhen",
    "Sum",
    "Sweep",
    "System",
    "TIME",
    "Table",
    "TabulatedSpring",
    "TabulatedSpringLaw",
    "Terminate",
    "Terminator",
    "TimeDelay",
    "TimeFunction",
    "Trajectory",
    "TransferFunction",
    "UnitDelay",
    "UniversalJoint",
    "VectorLog",
    "WeldJoint",
    "Witness",
    "ZeroOrderHold",
    "animate",
    "approximate_natural_frequency",
    "array",
    "blocks",
    "check_passivity",
    "compiled_equations",
    "damping_from_ratio",
    "damping_from_settling_time",
    "damping_ratio",
    "damping_ratio_from_decay_ratio",
    "decay_ratio",
    "diagrams",
    "doctor",
    "equation",
    "equilibrium",
    "errors",
    "evaluate_batch",
    "fit_bushing",
    "fit_constants",
    "fit_hinge",
    "linearize",
    "load_urdf",
    "logarithmic_decrement",
    "natural_frequency",
    "natural_frequency_from_settling_time",
    "plot_mechanism",
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


@pytest.mark.parametrize("package", PACKAGES[1:], ids=lambda package: package.__name__)
def test_type_checkers_are_told_what_is_imported_on_demand(package: ModuleType) -> None:
    """The names of a folder are listed for them once more, since they cannot follow the table."""
    source = Path(inspect.getfile(package)).read_text(encoding="utf-8")
    (told,) = (node for node in ast.parse(source).body if isinstance(node, ast.If) and node.orelse)
    homes = {
        alias.name: node.module or ""
        for node in told.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert sorted(homes) == sorted(package.__all__)
    for name, module in homes.items():
        assert getattr(package, name) is getattr(importlib.import_module(module), name)
