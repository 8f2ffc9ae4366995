"""The names of `flexure`: none appears, changes or goes without anybody deciding so."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import subprocess
import sys
from operator import attrgetter
from pathlib import Path
from types import ModuleType

import pytest

import flexure as fx
from flexure.synonyms import SYNONYMS
from tests.support.public_methods import CALLS

NAMES = [
    "AbstractParameter",
    "AbstractState",
    "Actuator",
    "AffineSystem",
    "BallQuaternionJoint",
    "BallRpyJoint",
    "BandLimitedNoise",
    "Beam",
    "Body",
    "BodyForceElement",
    "BodyShape",
    "Buckling",
    "Bumper",
    "BushingConstants",
    "Cable",
    "CacheEntry",
    "CamFollower",
    "Checkup",
    "Chirp",
    "CircleSection",
    "CircularNotch",
    "CompiledEquations",
    "CompliantCoupling",
    "Constant",
    "Context",
    "ContinuousState",
    "Coupling",
    "CriticalLoad",
    "CrossPivot",
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
    "DistanceConstraint",
    "DisturbanceInfo",
    "DisturbanceResponse",
    "DoorHinge",
    "DoorHingeConfig",
    "EllipticNotch",
    "EnergyLedger",
    "EnergyTotals",
    "Equation",
    "Equilibrium",
    "FeedbackDesign",
    "FilletedNotch",
    "FilteredDerivative",
    "FirstOrderLag",
    "Fit",
    "FoldedGuide",
    "ForceElement",
    "Forced",
    "Frame",
    "FunctionBlock",
    "Gain",
    "GainSchedule",
    "GearPair",
    "GeneralBushing",
    "GeneralSection",
    "GravityCompensation",
    "HolonomicConstraint",
    "Initialization",
    "InputPort",
    "Integrator",
    "InverseDynamics",
    "JavaScriptModel",
    "Joint",
    "JointForceElement",
    "JointFriction",
    "JointSpring",
    "JointStop",
    "KnifeEdge",
    "LeadLag",
    "LeafSpring",
    "LeafSystem",
    "Limit",
    "LimitCheck",
    "LinearBushing",
    "LinearBushingRollPitchYaw",
    "LinearModel",
    "LinearSpringDamper",
    "LoadPath",
    "Log",
    "LookupTable",
    "LoopJoint",
    "LuenbergerObserver",
    "LumpedHinge",
    "Margins",
    "Material",
    "MatrixGain",
    "MinimumJerkProfile",
    "Mode",
    "ModeTracks",
    "Modes",
    "MultibodyForces",
    "MultibodyTree",
    "Multiplexer",
    "Noise",
    "Notch",
    "NotchFilter",
    "NotchHinge",
    "NumericParameter",
    "ObserverDesign",
    "Optimization",
    "OutputFeedbackDesign",
    "OutputPort",
    "PIDController",
    "PIDTuning",
    "PadeDelay",
    "Page",
    "ParallelGuide",
    "PassThrough",
    "PassivityReport",
    "PerStep",
    "Periodic",
    "Plan",
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
    "Regression",
    "Relay",
    "RevoluteJoint",
    "RigidStop",
    "RollingDisk",
    "RollingSphere",
    "RootLocus",
    "RpyFloatingJoint",
    "SampledLuenbergerObserver",
    "SampledPIDController",
    "Saturation",
    "ScrewJoint",
    "Section",
    "Selector",
    "Sensitivity",
    "Settling",
    "SimulationResult",
    "Simulator",
    "Sine",
    "SobolIndices",
    "SpatialInertia",
    "SpecialPoint",
    "Spectrum",
    "Square",
    "StateFeedback",
    "StateSpace",
    "Statistics",
    "Step",
    "StepInfo",
    "StepResponse",
    "StickSlipFriction",
    "Stiffness",
    "StiffnessTrack",
    "StopWhen",
    "StoredResult",
    "Sum",
    "Sweep",
    "System",
    "TIME",
    "Table",
    "TabulatedSpring",
    "Terminate",
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
    "Witness",
    "ZeroOrderHold",
    "animate",
    "array",
    "blocks",
    "bode",
    "buckling",
    "check_limits",
    "check_passivity",
    "compare",
    "compiled_equations",
    "complementary_sensitivity",
    "compliance",
    "diagrams",
    "disturbance_info",
    "doctor",
    "equation",
    "equilibrium",
    "errors",
    "evaluate_batch",
    "fit",
    "fitting",
    "grid",
    "inspect",
    "latin_hypercube",
    "laws",
    "linearize",
    "load_mjcf",
    "load_path",
    "load_plan",
    "load_result",
    "load_sdf",
    "load_study",
    "load_urdf",
    "loop_gain",
    "lqe",
    "lqg",
    "lqr",
    "margins",
    "metrics",
    "modes",
    "nichols",
    "nyquist",
    "one_at_a_time",
    "optimize",
    "page",
    "place",
    "place_observer",
    "plot_mechanism",
    "pole_zero",
    "random",
    "report",
    "root_locus",
    "save_urdf",
    "sensitivity",
    "sensitivity_function",
    "simulate",
    "simulate_many",
    "singular_values",
    "sobol",
    "sobol_indices",
    "solvers",
    "step_info",
    "step_response",
    "stiffness",
    "sweep",
    "to_javascript",
    "track_modes",
    "track_stiffness",
    "tune_pid",
    "zipped",
]
NAMESPACES = {
    "compliance": [
        "approximate_natural_frequency",
        "damping_from_ratio",
        "damping_from_settling_time",
        "damping_ratio",
        "damping_ratio_from_decay_ratio",
        "decay_ratio",
        "logarithmic_decrement",
        "natural_frequency",
        "natural_frequency_from_settling_time",
        "settling_time",
        "stiffness_from_frequency",
        "stiffness_from_load",
    ],
    "errors": [
        "AlgebraicLoopError",
        "ContextError",
        "ContextFileError",
        "DeclarationError",
        "EvaluationError",
        "ExecutorError",
        "FlexureError",
        "MissingExtraError",
        "NativeCodeError",
        "NoProgressError",
        "NonFiniteError",
        "RecordFileError",
        "SimulationError",
        "StepSizeError",
        "TraceError",
        "UnknownNameError",
        "ValueRefusedError",
        "WiringError",
        "ZenoError",
    ],
    "fitting": [
        "DynamicStiffness",
        "FitReport",
        "ForceTable",
        "bushing_options",
        "fit_bushing",
        "fit_constants",
        "fit_dynamic_stiffness",
        "fit_hinge",
        "fit_relaxation",
    ],
    "laws": [
        "BeamLaw",
        "BushingLaw",
        "CompliantCouplingLaw",
        "CoordinateLaw",
        "FrictionBranch",
        "FrictionLaw",
        "GeneralBushingLaw",
        "HalfwayLaw",
        "HingeLaw",
        "MaxwellBranch",
        "NotchCompliance",
        "NotchLaw",
        "OneSidedSpringLaw",
        "ParosWeisbord",
        "PseudoRigidBody",
        "RollPitchYawBushingLaw",
        "RotationVectorBushingLaw",
        "SlidingLaw",
        "SpringDamperLaw",
        "SpringLaw",
        "StopLaw",
        "TabulatedSpringLaw",
        "hunt_crossley_damping",
        "paros_weisbord",
    ],
    "metrics": [
        "Constraint",
        "Metric",
        "at",
        "disturbance",
        "final",
        "first_crossing",
        "iae",
        "integral",
        "ise",
        "itae",
        "largest",
        "maximum",
        "mean",
        "minimum",
        "of",
        "peak",
        "rms",
        "smallest",
        "step",
        "total_variation",
    ],
}
IN_NAMESPACES = [(namespace, name) for namespace, names in NAMESPACES.items() for name in names]
PACKAGES = [fx, fx.blocks, fx.diagrams, fx.solvers]

#: Functions and classes that have one name, but for capitals and underscores.
CLASSES = {name.lower(): name for name in NAMES if inspect.isclass(getattr(fx, name))}
PAIRS = [
    (name, CLASSES[name.replace("_", "")])
    for name in NAMES
    if name.islower() and name.replace("_", "") in CLASSES
]

every_pair = pytest.mark.parametrize(("function", "kind"), PAIRS)


def test_the_public_names_are_these() -> None:
    assert sorted(fx.__all__) == NAMES


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_the_public_names_of_a_namespace_are_these(namespace: str) -> None:
    assert sorted(getattr(fx, namespace).__all__) == NAMESPACES[namespace]


def test_nothing_else_is_public_but_modules() -> None:
    others = {name for name in vars(fx) if not name.startswith("_")} - set(NAMES)
    assert [name for name in others if not isinstance(getattr(fx, name), ModuleType)] == []


def test_names_in_namespaces_are_documented_and_found_from_outside() -> None:
    wrong = []
    for namespace, name in IN_NAMESPACES:
        item = getattr(importlib.import_module(f"flexure.{namespace}"), name)
        if not item.__doc__ or item.__name__ != name:
            wrong.append(f"{namespace}.{name}: its docstring or its own name")
        with pytest.raises(AttributeError) as refused:
            getattr(fx, name)
        if not str(refused.value).endswith(f"'{name}': it is flexure.{namespace}.{name}"):
            wrong.append(f"{namespace}.{name}: {refused.value}")
    assert wrong == []


def test_words_of_other_programs_lead_to_the_name_that_it_has_here() -> None:
    assert len(SYNONYMS) >= 150
    for word, here in SYNONYMS.items():
        assert word not in NAMES
        found = attrgetter(here.partition("(")[0])(fx)
        assert found is not None
        with pytest.raises(AttributeError) as refused:
            getattr(fx, word)
        assert str(refused.value).endswith(f"'{word}': here it is flexure.{here}")


def test_a_name_that_is_missing_imports_no_packages() -> None:
    code = "import sys, flexure; print(hasattr(flexure, 'unheard_of'), *sys.modules)"
    command = [sys.executable, "-c", code]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert shown[0] == "False"
    assert not {"numpy", "networkx", "flexure.diagrams.systems.system"} & set(shown)


def test_namespaces_are_listed_before_they_are_imported() -> None:
    code = "import sys, flexure; print(*dir(flexure), '|', *sys.modules)"
    command = [sys.executable, "-c", code]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    listed, loaded = (part.split() for part in shown.split("|"))
    assert set(NAMESPACES) <= set(listed)
    assert not {f"flexure.{namespace}" for namespace in NAMESPACES} & set(loaded)


@pytest.mark.filterwarnings("ignore:.* still moves:UserWarning")
@every_pair
def test_a_function_returns_an_object_of_the_class_of_the_same_name(
    function: str, kind: str
) -> None:
    call = CALLS[function]()
    assert type(call.function(**call.arguments)) is getattr(fx, kind)


@pytest.mark.parametrize(
    ("function", "kind"),
    [*(pair for pair in PAIRS if pair[0] != "compiled_equations"), ("optimize", "Optimization")],
)
def test_who_calls_the_class_is_told_the_function(function: str, kind: str) -> None:
    arguments = CALLS[function]().arguments
    told = rf"Cannot call the class fx\.{kind}: .* fx\.{function},.* Write fx\.{function}\(\.\.\.\)"
    with pytest.raises(fx.errors.ValueRefusedError, match=told):
        getattr(fx, kind)(**arguments)
    with pytest.raises(fx.errors.ValueRefusedError, match=told):
        getattr(fx, kind)(*list(arguments.values())[:2])


def test_pairs_that_differ_in_case_only_are_known() -> None:
    assert [f for f, kind in PAIRS if f == kind.lower()] == [
        "buckling",
        "equation",
        "equilibrium",
        "fit",
        "margins",
        "modes",
        "page",
        "sensitivity",
        "stiffness",
        "sweep",
    ]


def test_names_are_documented() -> None:
    wrong = []
    for name in NAMES:
        item = getattr(fx, name)
        if not isinstance(item, str) and not inspect.getdoc(item):  # TIME is a plain text
            wrong.append(f"{name} has no docstring")
        if inspect.isclass(item) or inspect.isfunction(item):
            if not item.__doc__:
                wrong.append(f"{name} has no docstring of its own")
            if item.__name__ != name:
                wrong.append(f"{name} calls itself {item.__name__}")
    assert wrong == []


def test_names_hide_no_modules() -> None:
    """A submodule of the same name would replace the item as soon as somebody imports it."""
    hidden = [
        f"{package.__name__}.{module.name}"
        for package in PACKAGES
        for module in pkgutil.iter_modules(package.__path__)
        if module.name in NAMES and not isinstance(getattr(package, module.name), ModuleType)
    ]
    assert hidden == []


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
