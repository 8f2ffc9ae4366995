"""A working call of every public function that people pass arguments to."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import flexure as fx
from tests.contracts import parts
from tests.contracts.catalog import CATALOG, KINDS
from tests.support.calls.odd_arguments import Call
from tests.support.mechanics.joints import JOINTS

Make = Callable[[], Call]

_TIME = np.linspace(0.0, 5.0, 50)
_RISE = 1.0 - np.exp(-_TIME)
_THREE = [(0.1, 0.2), (0.3, 0.1), (-0.2, -0.4)]
BOX = fx.SpatialInertia.solid_box(2.0, size=(0.1, 0.2, 0.3))


def whole(function: Callable[..., object], /, **arguments: Any) -> Make:
    """A function with arguments, and with its defaults, as they are."""

    return lambda: Call(function, full_arguments(function, **arguments))


def full_arguments(function: Callable[..., object], /, *given: Any, **named: Any) -> dict[str, Any]:
    """Return arguments by name, defaults included."""
    signature = inspect.signature(function)
    bound = signature.bind(*given, **named)
    bound.apply_defaults()
    arguments: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            arguments |= value
        elif kind is not inspect.Parameter.VAR_POSITIONAL:
            arguments[name] = value
    return arguments


def block_calls() -> dict[str, Make]:
    """Every block of the library, by its constructor."""
    found: dict[str, Make] = {}
    for kind in KINDS:
        recipe = next((each for each in CATALOG.values() if each.func is kind), None)
        assert recipe is not None, f"add '{kind.__name__}' to tests/contracts/catalog.py"
        found[kind.__name__] = partial(_made, kind, recipe)
    found["DoorHinge"] = door_hinge
    return found


def _made(kind: Any, recipe: Any) -> Call:
    return Call(kind, full_arguments(kind, *recipe.args, **recipe.keywords))


def _hinge(name: Any, joint: Any, config: Any, **constants: Any) -> fx.DoorHinge:
    return fx.DoorHinge(name, joint, config, **constants)


def door_hinge() -> Call:
    """The one block with arguments that have no keyword."""
    config = vars(fx.DoorHingeConfig())
    return Call(
        _hinge,
        {"name": "hinge", "joint": parts.HINGED, "config": None, **config},
    )


# What is simulated ----------------------------------------------------------------------------


class Relaxation(fx.LeafSystem):
    """A block with something of everything."""

    def __init__(self, name: str = "leaf") -> None:
        super().__init__(name)
        self.rate = self.declare_numeric_parameter("rate", 1.0, unit="1/s", lower=0.0)
        self.table = self.declare_abstract_parameter("table", {"a": 1})
        self.x = self.declare_continuous_state(z=1, element_names=["x1"])
        self.count = self.declare_discrete_state("count", [0.0])
        self.memory = self.declare_abstract_state("memory", "nothing")
        self.u = self.declare_vector_input("u", 1)
        self.y = self.declare_vector_output("y", 1, self.x.z)
        self.seen = self.declare_cache_entry("seen", self.calc_seen)
        self.declare_discrete_update(self.sample, trigger=fx.diagrams.Forced())
        self.declare_publish(self.sample_nothing, trigger=fx.diagrams.Forced())

    def calc_seen(self, context: Any) -> Any:
        return self.x.z(context)

    def sample(self, context: Any) -> Any:
        return {self.count: self.count(context) + 1.0}

    def sample_nothing(self, context: Any) -> None:
        return None

    def calc_time_derivatives(self, context: Any) -> Any:
        return self.rate(context) * (self.u(context) - self.x.z(context))


def lag() -> tuple[fx.Diagram, fx.Context]:
    """A step into a lag, with a context that is ready to run."""
    builder = fx.DiagramBuilder("charge")
    builder.add_all(fx.Step("source", at=0.5), fx.FirstOrderLag("lag", time_constant=1.0))
    builder.connect_chain("source", "lag")
    builder.export_output("lag.y", "y")
    diagram = builder.build()
    return diagram, diagram.create_default_context()


def driven() -> tuple[fx.System, fx.Context]:
    """A lag with a free input."""
    system = fx.FirstOrderLag("lag", time_constant=1.0)
    context = system.create_default_context()
    context.set("u", 1.0)
    return system, context


def toggle() -> tuple[fx.Plant, fx.Context]:
    """A spring that snaps through."""
    builder = fx.PlantBuilder("toggle", gravity=(0.0, 0.0, 0.0))
    tip = builder.add_body("tip", fx.SpatialInertia.point_mass(1.0))
    builder.add_joint(fx.PrismaticJoint("slider", builder.world, tip, axis=(0, 0, 1)))
    ends = builder.world, (-1.0, 0.0, -0.1), tip, (0.0, 0.0, 0.0)
    spring = fx.LinearSpringDamper("spring", *ends, free_length=1.01, stiffness=1e3, damping=0.0)
    builder.add_force_element(spring)
    made = builder.build()
    return made, made.create_default_context()


def toggled() -> Call:
    system, context = toggle()
    options = {"signals": ["tip.position"], "branch": 0, "max_points": 50}
    arguments = {"system": system, "along": {"generalized_force[0]": [0.0, 0.1]}, **options}
    return Call(fx.load_path, {**arguments, "context": context}, context.to_dict)


def mass_model() -> fx.LinearModel:
    """A force on a mass without friction."""
    mass = fx.StateSpace("mass", [[0, 1], [0, 0]], [0, 1], [1, 0])
    context = mass.create_default_context()
    context.set("u", 0.0)
    return fx.linearize(mass, context)


def pid_loop() -> tuple[fx.Diagram, fx.Context]:
    """A PI controller with a slow and two fast lags."""
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.Constant("target", 0.0),
        fx.PIDController("pid"),
        fx.TransferFunction("plant", [1.0], [0.01, 0.21, 1.2, 1.0]),
    )
    builder.connect_chain("target", "pid.setpoint")
    builder.connect_chain("pid", "plant", "pid.measurement")
    diagram = builder.build()
    return diagram, diagram.create_default_context()


def tuning() -> Call:
    """A tuning with a step to look at."""
    diagram, context = pid_loop()
    arguments = {
        "system": diagram,
        "controller": "pid",
        "context": context,
        "goal": "disturbance",
        "rule": "simc",
        "max_sensitivity": 1.6,
        "max_overshoot": 5.0,
        "closed_loop_time": 0.2,
        "parts": "PI",
        "component": 0,
        "filter_ratio": 10.0,
        "step_to": {"target.value": 1.0},
        "t_final": 0.1,
    }
    return Call(fx.tune_pid, arguments, context.to_dict)


def of_mass(function: Callable[..., object], /, **arguments: Any) -> Make:
    """A function of the linear model of a mass."""
    return lambda: Call(function, {"model": mass_model(), **arguments})


def plant() -> tuple[fx.Plant, fx.Context]:
    """A link with a frame, on an axis with a motor and a spring."""
    builder = plant_builder()
    made = builder.build()
    assert isinstance(made, fx.Plant)
    return made, made.create_default_context()


def plant_builder() -> fx.PlantBuilder:
    builder = fx.PlantBuilder("arm")
    link = builder.add_body("link", BOX, com=(0.0, 0.0, -0.5))
    axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, link, axis=(0, 1, 0)))
    builder.add_frame("tip", link, (0.0, 0.0, -1.0))
    builder.add_force_element(fx.JointSpring("spring", axis, stiffness=20.0))
    builder.add_actuator("motor", axis)
    return builder


def state_of_builder(builder: fx.DiagramBuilder) -> object:
    return (
        [system.name for system in builder.systems],
        sorted(map(repr, builder.graph.edges)),
    )


def state_of_plant_builder(builder: fx.PlantBuilder) -> object:
    return (
        [body.name for body in builder.bodies],
        [joint.name for joint in builder.joints],
        [element.name for element in builder.force_elements],
    )


def of_models(function: Callable[..., object], /, **arguments: Any) -> Make:
    """A picture of a linear model, which is its first argument."""

    def make() -> Call:
        system, context = driven()
        model = fx.linearize(system, context)
        return Call(function, full_arguments(function, model, **arguments))

    return make


def of_lag(function: Callable[..., object], /, **arguments: Any) -> Make:
    """A function of a diagram and a context, which are its first arguments by these names."""

    def make() -> Call:
        diagram, context = lag()
        return Call(function, {"system": diagram, "context": context, **arguments}, context.to_dict)

    return make


FIT_OPTIONS: dict[str, Any] = {"deviations": 0.1, "loss": "huber", "max_evaluations": 90}
_EQUILIBRIUM = {"free": (), "fixed": (), "tolerance": 1e-9, "max_iterations": 10, "period": 0.1}
_SIMULATION: dict[str, Any] = {
    "t_final": 0.01,
    "method": "RK45",
    "rtol": 1e-3,
    "atol": 1e-6,
    "max_step": 0.5,
    "step": None,
    "options": None,
    "isolate": True,
    "compiled": False,
    "monitor": None,
    "progress": False,
}

SWEEP: dict[str, Any] = {
    "t_final": 0.01,
    "signals": ["lag.y"],
    "metrics": (),
    "times": [0.0, 0.01],
    "compiled": False,
}


def method(make_object: Callable[[], tuple[Any, Any]], name: str, /, **arguments: Any) -> Make:
    """A method of an object that is made anew, with a picture of what it must leave alone."""

    def make() -> Call:
        target, snapshot = make_object()
        return Call(getattr(target, name), dict(arguments), snapshot)

    return make


def sampled(function: Callable[..., object]) -> Make:
    """A plan of samples of two paths."""

    def make() -> Call:
        context = lag()[1]
        values = {"lag.time_constant": "5 %", "lag.u": (0.0, 1.0)}
        pair = {("lag.time_constant", "lag.u"): 0.5}
        arguments = {"values": values, "num_samples": 4, "correlation": pair, "context": context}
        return Call(function, full_arguments(function, **arguments), context.to_dict)

    return make


def moved_plan() -> Call:
    """A plan that moves one value at a time."""
    context = lag()[1]
    values = {"lag.time_constant": "5 %", "lag.gain": (0.5, 1.0)}
    arguments = {"values": values, "context": context, "plus_minus": None}
    return Call(fx.plans.one_at_a_time, arguments, context.to_dict)


def function_calls() -> dict[str, Make]:
    """The functions of the face."""
    law = partial(np.multiply, 2.0)
    calls: dict[str, Make] = {
        "simulate": of_lag(fx.simulate, **_SIMULATION),
        "sweep": of_lag(fx.sweep, values={"lag.time_constant": [1.0, 2.0]}, **SWEEP),
        "grid": whole(fx.plans.grid, values={"pid.kp": [1.0, 2.0], "pid.ki": [0.5]}),
        "zipped": whole(fx.plans.zipped, values={"pid.kp": [1.0, 2.0], "pid.ki": [0.5, 1.0]}),
        "latin_hypercube": sampled(fx.plans.latin_hypercube),
        "sobol": sampled(fx.plans.sobol),
        "random": sampled(fx.plans.random),
        "one_at_a_time": moved_plan,
        "sobol_indices": of_lag(
            fx.sobol_indices,
            values={"lag.time_constant": "5 %", "lag.x[0]": (0.5, 1.0)},
            num_samples=16,
            confidence=0.9,
            plus_minus=None,
            seed=1,
            **{**SWEEP, "metrics": {"end": fx.metrics.final("lag.y")}},
        ),
        "linearize": of_lag(
            fx.linearize, inputs="lag.time_constant", outputs="lag.y", openings=(), period=0.1
        ),
        "root_locus": of_lag(
            fx.root_locus, parameter="lag.time_constant", values=[1.0, 2.0], period=0.1
        ),
        "load_path": toggled,
        "tune_pid": tuning,
        "optimize": of_lag(
            fx.optimize,
            bounds={"lag.time_constant": (0.1, 10.0)},
            objective=fx.metrics.final("lag.y"),
            constraints=[fx.metrics.peak("lag.y") <= 1.0],
            t_final=0.01,
            signals=(),
            logarithmic="lag.time_constant",
            population=5,
            max_evaluations=5,
            polish=False,
            compiled=False,
        ),
        "tolerances": of_lag(
            fx.tolerances,
            values={"lag.time_constant": "5 %"},
            constraints=[fx.metrics.final("lag.y") <= 1.0],
            t_final=0.01,
            num_samples=4,
            confidence=0.9,
            compiled=False,
        ),
        "equilibrium": of_lag(fx.equilibrium, **_EQUILIBRIUM),
        "compiled_equations": of_lag(fx.compiled_equations),
        "to_c": of_lag(fx.to_c, signals=["lag.y"], method="rk2", step=0.01),
        "to_fmu": of_lag(fx.to_fmu, signals=["lag.y"], inputs=(), parameters=(), platforms=()),
        "to_javascript": of_lag(fx.to_javascript, signals=["lag.y"]),
        "doctor": of_lag(fx.doctor),
        "gradient": of_lag(
            fx.gradient,
            metric=fx.metrics.final("lag.y"),
            t_final=0.01,
            parameters="lag.time_constant",
            method="RK45",
            rtol=1e-3,
            atol=1e-6,
        ),
        "parameter_sensitivity": of_lag(
            fx.parameter_sensitivity,
            t_final=0.01,
            parameters="lag.time_constant",
            outputs="lag.y",
            times=[0.0, 0.01],
            method="RK45",
            rtol=1e-3,
            atol=1e-6,
        ),
        "fit": of_lag(
            fx.fit,
            records={"time": [0.6, 0.7, 0.8], "lag.y": [0.1, 0.2, 0.3]},
            parameters=["lag.time_constant"],
            bounds={"lag.time_constant": (0.1, 10.0)},
            signals=["lag.y"],
            offsets=(),
            logarithmic=["lag.time_constant"],
            deviations=0.1,
            loss="huber",
            method="RK45",
            rtol=1e-3,
            atol=1e-6,
            max_evaluations=50,
        ),
        "pole_zero": of_models(fx.pole_zero),
        "bode": of_models(fx.bode, frequency=[1.0, 2.0, 3.0]),
        "nyquist": of_models(fx.nyquist, frequency=[1.0, 2.0, 3.0]),
        "nichols": of_models(fx.nichols, frequency=[1.0, 2.0, 3.0]),
        "singular_values": of_models(fx.singular_values, frequency=[1.0, 2.0, 3.0]),
        "step_info": whole(fx.step_info, time=_TIME, values=_RISE, target=1.0),
        "disturbance_info": whole(
            fx.disturbance_info, time=_TIME, values=_TIME * (1.0 - _RISE), tolerance=0.1
        ),
        "array": whole(fx.array, values=[1.0, 2.0]),
    }

    def many() -> Call:
        diagram, context = lag()
        options = {"system": diagram, "contexts": [context], **SWEEP}
        return Call(fx.simulate_many, options, context.to_dict)

    def compared() -> Call:
        diagram, context = lag()
        run = fx.simulate(diagram, 0.01, context=context, method="RK45", compiled=False)
        options: dict[str, Any] = {"units": {}, "title": "runs", "ax": None, "path": "runs.png"}
        return Call(fx.compare, {"runs": {"a": run, "b": run}, **options}, context.to_dict)

    def batch() -> Call:
        diagram, context = lag()
        return Call(
            fx.evaluate_batch,
            {"system": diagram, "signals": ["lag.y"], "contexts": [context]},
            context.to_dict,
        )

    def equation() -> Call:
        return Call(fx.equation, {"system": lag()[0], "signal": "lag.y", "shorten": False})

    def response() -> Call:
        system, context = driven()
        return Call(
            fx.step_response,
            {
                "system": system,
                "input": "u",
                "signal": "y",
                "t_final": 0.1,
                "to": 1.0,
                "context": context,
                "initial": None,
                "final": None,
                "target": None,
                "band": 0.02,
                "compiled": False,
            },
            context.to_dict,
        )

    def drawing() -> Call:
        made, context = plant()
        return Call(
            fx.plot_mechanism,
            {
                "plant": made,
                "context": context,
                "view": "xz",
                "forces": True,
                "stress": False,
                "ground": 0.0,
                "title": "there",
                "ax": None,
                "path": None,
            },
        )

    def swinging() -> Call:
        made, context = plant()
        return Call(fx.modes, {"system": made, "context": context}, context.to_dict)

    def tracked() -> Call:
        made, context = plant()
        values = {"spring.stiffness": [20.0, 30.0]}
        options = {"system": made, "values": values, "context": context}
        return Call(fx.track_modes, options, context.to_dict)

    def passivity() -> Call:
        made, context = plant()
        return Call(
            fx.check_passivity,
            {
                "element": made.force_element("spring"),
                "context": context,
                "num_motions": 2,
                "length": 1.0,
                "speed": 1.0,
                "seed": 0,
            },
        )

    calls |= {
        "simulate_many": many,
        "compare": compared,
        "evaluate_batch": batch,
        "equation": equation,
        "step_response": response,
        "plot_mechanism": drawing,
        "modes": swinging,
        "track_modes": tracked,
        "check_passivity": passivity,
        "fit_constants": whole(
            fx.fitting.fit_constants,
            law=lambda k: law(k) * np.ones(3),
            measured=[2.0, 2.0, 2.0],
            start={"k": 0.5},
            fitted=["k"],
            bounds={"k": (0.0, 2.0)},
            **FIT_OPTIONS,
            logarithmic=["k"],
        ),
        "fit_hinge": whole(
            fx.fitting.fit_hinge,
            angles=np.linspace(0.0, 1.0, 20),
            rates=np.linspace(-1.0, 1.0, 20),
            torques=np.linspace(-2.0, 2.0, 20),
            fitted=("spring_constant",),
            bounds={"spring_constant": (0.1, 9.0)},
            **FIT_OPTIONS,
            logarithmic=["spring_constant"],
        ),
        "fit_bushing": whole(
            fx.fitting.fit_bushing,
            translation=tuple(np.outer([a, b, 1.0, a], np.ones(3)) for a, b in _THREE),
            torsion=None,
            fitted=["force_stiffness[0]"],
            bounds={"force_stiffness[0]": (0.1, 9.0)},
            base=fx.BushingConstants(force_stiffness=2.0),
            **FIT_OPTIONS,
            logarithmic=["force_stiffness[0]"],
        ),
        "approximate_natural_frequency": whole(
            fx.compliance.approximate_natural_frequency, damping_ratio=0.5, settling_time=1.0
        ),
        "damping_from_ratio": whole(
            fx.compliance.damping_from_ratio, damping_ratio=0.5, stiffness=2.0, inertia=1.0
        ),
        "damping_from_settling_time": whole(
            fx.compliance.damping_from_settling_time,
            damping_ratio=0.5,
            stiffness=2.0,
            settling_time=1.0,
        ),
        "damping_ratio": whole(
            fx.compliance.damping_ratio, damping=0.5, stiffness=2.0, inertia=1.0
        ),
        "damping_ratio_from_decay_ratio": whole(
            fx.compliance.damping_ratio_from_decay_ratio, decay_ratio=0.5
        ),
        "decay_ratio": whole(fx.compliance.decay_ratio, damping_ratio=0.5),
        "logarithmic_decrement": whole(fx.compliance.logarithmic_decrement, decay_ratio=0.5),
        "natural_frequency": whole(fx.compliance.natural_frequency, stiffness=2.0, inertia=1.0),
        "natural_frequency_from_settling_time": whole(
            fx.compliance.natural_frequency_from_settling_time, damping_ratio=0.5, settling_time=1.0
        ),
        "settling_time": whole(
            fx.compliance.settling_time, damping_ratio=0.5, natural_frequency=2.0
        ),
        "stiffness_from_frequency": whole(
            fx.compliance.stiffness_from_frequency, inertia=1.0, natural_frequency=2.0
        ),
        "stiffness_from_load": whole(fx.compliance.stiffness_from_load, load=2.0, displacement=1.0),
    }
    return calls


def class_calls() -> dict[str, Make]:
    """What people make that is no block."""
    ends = {"frame_on_parent": parts.lump("a"), "frame_on_child": parts.lump("b")}
    calls = {
        kind.make.__name__: whole(kind.make, name="axis", **ends, **kind.options)
        for kind in JOINTS.values()
    }
    calls |= {
        "Body": whole(fx.Body, name="body", inertia=BOX),
        "Frame": whole(fx.Frame, name="frame", on=parts.lump("a"), pose=(0.1, 0.2, 0.3)),
        "BushingConstants": whole(fx.BushingConstants, force_stiffness=(1.0, 2.0, 3.0)),
        "DoorHingeConfig": whole(fx.DoorHingeConfig),
        "Periodic": whole(fx.diagrams.Periodic, period=0.1, offset=0.05),
        "Witness": whole(fx.diagrams.Witness, calc=lambda context: context.time - 1.0),
        "DiagramBuilder": whole(fx.DiagramBuilder, name="diagram"),
        "PlantBuilder": whole(fx.PlantBuilder, name="plant"),
        "Simulator": of_lag(
            fx.Simulator, **{k: v for k, v in _SIMULATION.items() if k != "t_final"}, record=False
        ),
    }
    constants = fx.BushingConstants
    some = {"torque_stiffness": (1.0, 2.0, 3.0), "force_stiffness": (1.0, 2.0, 3.0)}
    calls |= {
        "BushingConstants.ball": whole(constants.ball, force_stiffness=(1.0, 2.0, 3.0)),
        "BushingConstants.prismatic": whole(constants.prismatic, axis="x", **some),
        "BushingConstants.revolute": whole(constants.revolute, axis="x", **some),
        "BushingConstants.weld": whole(constants.weld, **some),
        "BushingConstants.with_damping_ratio": whole(
            constants(**some).with_damping_ratio,
            damping_ratio=0.1,
            inertia=(1.0, 1.0, 1.0),
            mass=1.0,
        ),
        "BushingConstants.with_time_constant": whole(
            constants(**some).with_time_constant, time_constant=0.1
        ),
    }
    return calls
