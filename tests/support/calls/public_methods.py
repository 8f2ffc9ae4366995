"""A working call of every method of what people hold in their hands."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from scipy import signal

import flexure as fx
from tests.contracts import parts
from tests.support.calls.body_calls import body_calls
from tests.support.calls.control_calls import control_calls, weighted_mass
from tests.support.calls.file_calls import file_calls
from tests.support.calls.flexure_calls import flexure_calls
from tests.support.calls.metric_calls import metric_calls
from tests.support.calls.mount_calls import mount_calls
from tests.support.calls.odd_arguments import Call
from tests.support.calls.part_calls import handle_call, joint_call, of_plant, plant_call
from tests.support.calls.public_calls import (
    SWEEP,
    Make,
    Relaxation,
    block_calls,
    class_calls,
    function_calls,
    lag,
    mass_model,
    method,
    pid_loop,
    plant,
    state_of_builder,
    toggle,
)
from tests.support.calls.result_calls import result_calls
from tests.support.calls.stiffness_calls import stiffness_calls


def leaf_context() -> tuple[Any, Any]:
    context = Relaxation().create_default_context()
    return context, context.to_dict


def diagram() -> tuple[Any, Any]:
    return lag()[0], lambda: None


def builder() -> tuple[Any, Any]:
    made = fx.DiagramBuilder("charge")
    made.add_all(fx.Step("source", at=0.5), fx.FirstOrderLag("lag", time_constant=1.0))
    return made, lambda: state_of_builder(made)


def declaring() -> tuple[Any, Any]:
    leaf = fx.LeafSystem("leaf")
    return leaf, lambda: None


def relating() -> Call:
    leaf = fx.LeafSystem("leaf")
    low, high = (leaf.declare_numeric_parameter(name, 1.0) for name in ("low", "high"))
    return Call(leaf.declare_relation, {"left": low, "comparison": "<=", "right": high})


def declaring_state() -> tuple[Any, Any]:
    leaf = fx.LeafSystem("leaf")
    leaf.declare_continuous_state(z=1)
    return leaf, lambda: None


@cache
def locus() -> tuple[Any, Any]:
    system, context = lag()
    values = [1.0, 2.0, 3.0]
    return fx.root_locus(system, "lag.time_constant", values, context=context), lambda: None


@cache
def path() -> tuple[Any, Any]:
    system, context = toggle()
    return fx.load_path(system, {"generalized_force[0]": 0.1}, context=context), lambda: None


SHOWN: dict[str, Any] = {
    "view": "xz",
    "fps": 25,
    "speed": 1.0,
    "forces": False,
    "stress": False,
    "trace": [],
}


@cache
def moved() -> fx.results.SimulationResult:
    made, context = plant()
    return fx.simulate(made, 0.01, context=context, method="RK45", compiled=False)


def animation() -> Call:
    return Call(
        fx.animate,
        {"result": moved(), **dict.fromkeys(("plant", "path", "ground", "title")), **SHOWN},
    )


@cache
def swept() -> tuple[Any, Any]:
    system, context = lag()
    options: dict[str, Any] = {**SWEEP, "times": np.linspace(0.0, 2.0, 20), "t_final": 2.0}
    return fx.sweep(system, {"lag.time_constant": [1.0]}, context=context, **options), (
        lambda: None
    )


@cache
def gridded() -> tuple[Any, Any]:
    system, context = lag()
    values = {"lag.time_constant": [1.0, 2.0], "lag.gain": [0.5, 1.0], "lag.x[0]": [0.0, 0.1]}
    options: dict[str, Any] = {**SWEEP, "metrics": {"end": fx.metrics.final("lag.y")}}
    return fx.sweep(system, fx.plans.grid(values), context=context, **options), lambda: None


@cache
def indices() -> tuple[Any, Any]:
    system, context = lag()
    options: dict[str, Any] = {
        **SWEEP,
        "metrics": {"end": fx.metrics.final("lag.y")},
        "num_samples": 16,
    }
    values = {"lag.time_constant": (1.0, 2.0), "lag.gain": (0.5, 1.0)}
    return fx.sobol_indices(system, values, context=context, **options), lambda: None


def planned() -> tuple[Any, Any]:
    return fx.plans.grid({"lag.time_constant": [1.0, 2.0]}), lambda: None


def simulator() -> tuple[Any, Any]:
    made = fx.Simulator(*lag(), compiled=False)
    return made, made.context.to_dict


@cache
def fitted() -> tuple[Any, Any]:
    system, context = lag()
    record = {"time": [0.6, 0.7, 0.8], "lag.y": [0.1, 0.2, 0.3]}
    return fx.fit(system, record, "lag.time_constant", context=context), lambda: None


def applied() -> Call:
    found, _ = fitted()
    context = found.system.create_default_context()
    return Call(found.apply, {"context": context, "record": 0}, context.to_dict)


@cache
def optimized() -> tuple[Any, Any]:
    system, context = lag()
    bounds, goal = {"lag.time_constant": (0.1, 10.0)}, fx.metrics.final("lag.y")
    few: dict[str, Any] = {"population": 5, "max_evaluations": 5, "polish": False}
    found = fx.optimize(system, bounds, goal, t_final=0.01, context=context, **few)
    return found, lambda: None


@cache
def toleranced() -> tuple[Any, Any]:
    system, context = lag()
    bound = fx.metrics.final("lag.y") <= 1.0
    values: dict[str, Any] = {"lag.time_constant": (0.9, 1.1)}
    found = fx.tolerances(system, values, bound, 0.01, num_samples=8, context=context)
    return found, lambda: None


@cache
def leveled() -> tuple[Any, Any]:
    system, context = lag()
    bounds, goal = {"lag.time_constant": (0.1, 10.0)}, fx.metrics.decay_rate() >= 2.0
    return fx.tune(system, bounds, goal, contexts=context), lambda: None


def best_applied(made: Any) -> Call:
    found, _ = made()
    context = found.system.create_default_context()
    return Call(found.apply, {"context": context}, context.to_dict)


@cache
def report() -> tuple[Any, Any]:
    law = np.ones(4)
    return fx.fitting.fit_constants(lambda k: k * law, [1, 2, 1, 2], {"k": 1.0}), lambda: None


def applied_law() -> Call:
    law = np.ones(4)
    found = fx.fitting.fit_constants(lambda gain: gain * law, [1, 2, 1, 2], {"gain": 1.0})
    context = fx.FirstOrderLag("lag", 1.0).create_default_context()
    return Call(found.apply, {"context": context}, context.to_dict)


@cache
def model() -> tuple[Any, Any]:
    return fx.linearize(*lag(), inputs="lag.time_constant", outputs="lag.y"), lambda: None


@cache
def swinging() -> tuple[Any, Any]:
    return fx.modes(*plant()), lambda: None


@cache
def tracked() -> tuple[Any, Any]:
    made, context = plant()
    return fx.track_modes(made, {"spring.stiffness": [20.0, 30.0]}, context=context), lambda: None


def filtered() -> Any:
    return signal.TransferFunction([0.2], [1.0, -0.8], dt=True)


@cache
def regulator() -> fx.results.OutputFeedbackDesign:
    return fx.lqg(mass_model(), 1.0, 1.0, 1.0, 1.0)


def synthesized() -> tuple[Any, Any]:
    design = fx.h2_synthesis(weighted_mass(), "force", "position")
    return design, lambda: None


def designed(part: str | None = None) -> Callable[[], tuple[Any, Any]]:
    def make() -> tuple[Any, Any]:
        design = regulator()
        return design if part is None else getattr(design, part), lambda: None

    return make


@cache
def tuned_loop() -> tuple[fx.Diagram, fx.results.PIDTuning]:
    diagram, _ = pid_loop()
    return diagram, fx.tune_pid(diagram, "pid")


def tuned() -> Call:
    diagram, tuning = tuned_loop()
    context = diagram.create_default_context()
    return Call(tuning.apply, {"context": context}, context.to_dict)


def joining() -> Call:
    design = designed()()[0]
    parts_of_it = {"feedback": design.feedback, "observer": design.observer}
    return Call(fx.results.OutputFeedbackDesign, parts_of_it)


def of_lag(make: Callable[..., Any], **options: Any) -> Callable[[], tuple[Any, Any]]:
    return lambda: (make(*lag(), **options), lambda: None)


def forces() -> tuple[Any, Any]:
    return fx.MultibodyForces(plant()[0]), lambda: None


def unbuilt_joint() -> tuple[Any, Any]:
    joint = fx.RevoluteJoint("axis", parts.lump("a"), parts.lump("b"), (0, 0, 1))
    return joint, lambda: [vars(joint)[key] for key in sorted(vars(joint)) if "limit" in key]


def exporting() -> Call:
    made, snapshot = builder()
    return Call(
        lambda target, name: made.export_input(target, name=name),
        {"target": "lag.u", "name": "u"},
        snapshot,
    )


def method_calls() -> dict[str, Make]:
    """The methods of what people hold in their hands."""
    state_space = {"lower": -1.0, "upper": 1.0}
    return {
        "Context.get": method(leaf_context, "get", path="rate"),
        "Context.set": method(leaf_context, "set", path="rate", value=2.0),
        "Context.set, state": method(leaf_context, "set", path="x", value=[2.0]),
        "Context.set, component": method(leaf_context, "set", path="x[x1]", value=2.0),
        "Context.set, input": method(leaf_context, "set", path="u", value=2.0),
        "Context.set, time": method(leaf_context, "set", path="time", value=2.0),
        "Context.describe": method(leaf_context, "describe", pattern="rate"),
        "Context.save": method(leaf_context, "save", path="context.json"),
        "Context.copy_from": method(leaf_context, "copy_from", other=None),
        "NumericParameter.set": handle_call("rate", "set", value=2.0),
        "NumericParameter.get": handle_call("rate", "get"),
        "AbstractParameter.set": handle_call("table", "set", value=2.0),
        "AbstractState.set": handle_call("memory", "set", value=2.0),
        "DiscreteState.set": handle_call("count", "set", value=2.0),
        "ContinuousState.set": handle_call("x", "set", value=2.0),
        "ContinuousState.get": handle_call("x", "get"),
        "InputPort.fix": handle_call("u", "fix", value=2.0),
        "InputPort.eval": handle_call("u", "eval"),
        "OutputPort.eval": handle_call("y", "eval"),
        "CacheEntry.eval": handle_call("seen", "eval"),
        "System.find": method(diagram, "find", path="lag.y"),
        "System.find_output": method(diagram, "find_output", path="lag.y"),
        "System.get_system": method(diagram, "get_system", path="lag"),
        "System.parameters": method(diagram, "parameters", pattern="lag.*"),
        "System.signals": method(diagram, "signals", pattern="lag"),
        "System.input_port": method(diagram, "input_port", name="u"),
        "System.output_port": method(diagram, "output_port", name="y"),
        "System.context_from_dict": method(diagram, "context_from_dict", data={}),
        "System.load_context": method(diagram, "load_context", path="context.json"),
        "System.create_random_context": method(diagram, "create_random_context", rng=1),
        "System.eval_time_derivatives": method(diagram, "eval_time_derivatives", context=None),
        "System.forced_publish": method(diagram, "forced_publish", context=None),
        "System.forced_discrete_update": method(diagram, "forced_discrete_update", context=None),
        "System.forced_unrestricted_update": method(
            diagram, "forced_unrestricted_update", context=None
        ),
        "Diagram.plot": method(diagram, "plot", depth=1, ax=None, path=None, ports="all"),
        "Diagram.to_dot": method(diagram, "to_dot", depth=1, ports="all"),
        "Diagram.to_svg": method(diagram, "to_svg", depth=1, ports="all"),
        "Diagram.to_mermaid": method(diagram, "to_mermaid", depth=1, ports="all"),
        "Diagram.save_svg": method(diagram, "save_svg", path="diagram.svg", depth=1, ports="all"),
        "DiagramBuilder.add": method(builder, "add", system=None),
        "DiagramBuilder.connect": method(builder, "connect", source="source.y", target="lag.u"),
        "DiagramBuilder.export_input": exporting,
        "DiagramBuilder.export_output": method(builder, "export_output", source="lag.y", name="y"),
        "Plant.body": of_plant("body"),
        "Plant.frame": of_plant("frame"),
        "Plant.joint": of_plant("joint"),
        "Plant.actuator": of_plant("actuator"),
        "Plant.constraint": of_plant("constraint"),
        "Plant.assemble": plant_call("assemble", fixed="axis", tolerance=1e-10),
        "Plant.find_assemblies": plant_call("find_assemblies", fixed="axis", starts=2, seed=0),
        "Plant.force_element": of_plant("force_element"),
        "Plant.calc_mass_matrix": plant_call("calc_mass_matrix"),
        "Plant.calc_bias_term": plant_call("calc_bias_term"),
        "Plant.calc_inverse_dynamics": plant_call("calc_inverse_dynamics", vdot=[0.0], forces=None),
        "Plant.calc_jacobian": plant_call("calc_jacobian", frame="tip", p_FP=(0.0, 0.0, 0.0)),
        "Plant.calc_bias_spatial_acceleration": plant_call(
            "calc_bias_spatial_acceleration", frame="tip", p_FP=(0.0, 0.0, 0.0)
        ),
        "Plant.calc_kinetic_energy": plant_call("calc_kinetic_energy"),
        "Plant.calc_vdot": plant_call("calc_vdot"),
        "Plant.get_positions": plant_call("get_positions"),
        "Plant.set_positions": plant_call("set_positions", q=[0.1]),
        "Plant.set_velocities": plant_call("set_velocities", v=[0.1]),
        "MultibodyForces": lambda: Call(fx.MultibodyForces, {"plant": plant()[0]}),
        "MultibodyForces.add": method(forces, "add", other=None),
        "Joint.lock": joint_call("lock"),
        "Joint.unlock": joint_call("unlock"),
        "Joint.is_locked": joint_call("is_locked"),
        "Joint.get_one_position": joint_call("get_one_position"),
        "Joint.set_position_limits": method(unbuilt_joint, "set_position_limits", **state_space),
        "Joint.set_velocity_limits": method(unbuilt_joint, "set_velocity_limits", **state_space),
        "Joint.set_acceleration_limits": method(
            unbuilt_joint, "set_acceleration_limits", **state_space
        ),
        "Joint.set_random_angle_distribution": method(
            unbuilt_joint, "set_random_angle_distribution", sampler=lambda rng: rng.normal()
        ),
        "LeafSystem.declare_numeric_parameter": method(
            declaring,
            "declare_numeric_parameter",
            name="k",
            default=1.0,
            unit="N",
            lower=0.0,
            upper=2.0,
            exclusive=False,
            allow_infinite=False,
            doc="",
            problem=None,
            sparse=False,
            distribution=None,
        ),
        **{
            f"LeafSystem.declare_abstract_{what}": method(
                declaring, f"declare_abstract_{what}", name="k", default=1.0, doc=""
            )
            for what in ("parameter", "state", "input")
        },
        "LeafSystem.declare_relation": relating,
        "LeafSystem.declare_abstract_output": method(
            declaring,
            "declare_abstract_output",
            name="k",
            calc=lambda context: 1.0,
            prerequisites=[],
            doc="",
        ),
        "LeafSystem.declare_cache_entry": method(
            declaring,
            "declare_cache_entry",
            name="k",
            calc=lambda context: 1.0,
            prerequisites=[],
            doc="",
        ),
        "LeafSystem.declare_continuous_state": method(
            declaring,
            "declare_continuous_state",
            q=1,
            v=1,
            z=1,
            default=None,
            name="x",
            element_names=None,
            problem=None,
            normalize=None,
            distribution=None,
            doc="",
        ),
        "LeafSystem.declare_discrete_state": method(
            declaring,
            "declare_discrete_state",
            name="d",
            default=[0.0],
            element_names=None,
            distribution=None,
            doc="",
        ),
        "LeafSystem.declare_projection": method(
            declaring_state,
            "declare_projection",
            deviations=lambda context: 0.0,
            projected=lambda context: [0.0],
            size=1,
            describe=None,
        ),
        "LeafSystem.declare_tally": method(
            declaring_state, "declare_tally", calc=lambda context: 0.0, size=1
        ),
        "LeafSystem.declare_vector_input": method(
            declaring,
            "declare_vector_input",
            name="u",
            size=1,
            default=None,
            unit="",
            element_names=None,
            doc="",
        ),
        "LeafSystem.declare_vector_output": method(
            declaring,
            "declare_vector_output",
            name="y",
            size=1,
            calc=lambda context: 1.0,
            prerequisites=[],
            unit="",
            element_names=None,
            doc="",
        ),
        "LeafSystem.declare_discrete_update": method(
            declaring,
            "declare_discrete_update",
            handler=lambda context: {},
            trigger=fx.diagrams.PerStep(),
        ),
        "LeafSystem.declare_unrestricted_update": method(
            declaring,
            "declare_unrestricted_update",
            handler=lambda context: {},
            trigger=fx.diagrams.PerStep(),
        ),
        "LeafSystem.declare_publish": method(
            declaring,
            "declare_publish",
            handler=lambda context: None,
            trigger=fx.diagrams.PerStep(),
            signal=None,
            record=None,
        ),
        "Simulator.advance_to": method(simulator, "advance_to", time=0.01),
        "LoadPath.__getitem__": method(path, "__getitem__", way="tip.position[z]"),
        "LoadPath.context": method(path, "context", index=0),
        "LoadPath.plot": method(
            path, "plot", x="tip.position[z]", y="generalized_force[0]", ax=None, path="p.png"
        ),
        "LoadPath.plot_mechanism": method(path, "plot_mechanism", num_equilibria=3, path="m.png"),
        "LoadPath.animate": method(path, "animate", view="xz", fps=2, stress=False, path="m.gif"),
        "RootLocus.plot": method(
            locus, "plot", marks=[2.0], units="Hz", reach=2.0, ax=None, path="l.png"
        ),
        "animate": animation,
        "Sweep.metric": method(swept, "metric", name="overshoot", signal="lag.y"),
        "Sweep.to_csv": method(swept, "to_csv", path="study.csv"),
        "Sweep.to_mat": method(swept, "to_mat", path="study.mat"),
        "Sweep.to_parquet": method(swept, "to_parquet", path="study.parquet"),
        "Sweep.context": method(swept, "context", index=0),
        "Sweep.simulate": method(swept, "simulate", index=0),
        "Sweep.rerun": method(swept, "rerun", index=0, signals=["lag.x[0]"]),
        "Sweep.regression": method(gridded, "regression", metric="end"),
        "Sweep.plot": method(
            gridded, "plot", bands=(0.9, 0.5), nominal=False, path="responses.png"
        ),
        "Sweep.plot_histogram": method(gridded, "plot_histogram", bins=4, path="histogram.png"),
        "Sweep.plot_scatter": method(gridded, "plot_scatter", color="lag.gain", path="scatter.png"),
        "Sweep.plot_parallel": method(
            gridded, "plot_parallel", color="end", ax=None, path="parallel.png"
        ),
        "Sweep.plot_map": method(
            gridded,
            "plot_map",
            metric="end",
            x="lag.gain",
            y="lag.time_constant",
            where={"lag.x[0]": 0.0},
            contours=True,
            ax=None,
            path="map.png",
        ),
        "Sweep.plot_tornado": method(
            gridded, "plot_tornado", metric="end", ax=None, path="tornado.png"
        ),
        "SobolIndices.__getitem__": method(indices, "__getitem__", metric="end"),
        "SobolIndices.table": method(indices, "table", metric="end"),
        "SobolIndices.plot": method(indices, "plot", metric="end", ax=None, path="sobol.png"),
        "Plan.save": method(planned, "save", path="plan.npz"),
        "Plan.__getitem__": method(planned, "__getitem__", key=[0]),
        "LinearModel.frequency_response": method(model, "frequency_response", frequency=[1.0]),
        "LinearModel.to_state_space": method(model, "to_state_space", name="model"),
        "LinearModel.to_affine_system": method(model, "to_affine_system", name="model"),
        "LinearModel.minimal": method(model, "minimal", tolerance=1e-9),
        "LinearModel.from_scipy": method(model, "from_scipy", system=filtered(), period=0.1),
        "Modes.__getitem__": method(swinging, "__getitem__", index=0),
        "Modes.plot": method(swinging, "plot", path="modes.png"),
        "Modes.animate": method(
            swinging, "animate", index=0, plant=None, path=None, view="xz", fps=25
        ),
        "ModeTracks.__getitem__": method(tracked, "__getitem__", track=0),
        "ModeTracks.plot": method(tracked, "plot", path="tracks.png"),
        "Fit.apply": applied,
        "Fit.plot": method(fitted, "plot", path="fit.png"),
        "Fit.__getitem__": lambda: Call(fitted()[0].__getitem__, {}, lambda: None),
        "FitReport.apply": applied_law,
        "FitReport.plot": method(report, "plot", path="law.png"),
        "FitReport.__getitem__": lambda: Call(report()[0].__getitem__, {}, lambda: None),
        "Optimization.apply": lambda: best_applied(optimized),
        "Tolerances.plot": method(toleranced, "plot", path="tolerances.png"),
        "Tune.apply": lambda: best_applied(leveled),
        "Tune.plot": method(leveled, "plot", path="tuned.png"),
        "Tune.__getitem__": lambda: Call(leveled()[0].__getitem__, {}, lambda: None),
        "Optimization.plot": method(optimized, "plot", path="search.png"),
        "Optimization.__getitem__": lambda: Call(optimized()[0].__getitem__, {}, lambda: None),
        "FitReport.confidence_intervals": method(report, "confidence_intervals", confidence=0.9),
        "PIDTuning.apply": tuned,
        "FeedbackDesign.to_block": method(designed("feedback"), "to_block", name="controller"),
        "ObserverDesign.to_block": method(designed("observer"), "to_block", name="observer"),
        "OutputFeedbackDesign": joining,
        "OutputFeedbackDesign.to_block": method(designed(), "to_block", name="controller"),
        "SynthesisDesign.to_block": method(synthesized, "to_block", name="controller"),
        "CompiledEquations.method": method(of_lag(fx.compiled_equations), "method", name="RK45"),
        "CModel.save": method(of_lag(partial(fx.to_c, step=0.01)), "save", path="code"),
        "CModel.size": method(of_lag(partial(fx.to_c, step=0.01)), "size", compiler="gcc"),
        "FMU.save": method(of_lag(partial(fx.to_fmu, platforms=())), "save", path="lag.fmu"),
        "JavaScriptModel.save": method(of_lag(fx.to_javascript), "save", path="lag.js"),
    }


#: A working call by name.
CALLS: dict[str, Make] = (
    block_calls()
    | body_calls()
    | function_calls()
    | control_calls()
    | stiffness_calls()
    | class_calls()
    | metric_calls()
    | file_calls()
    | flexure_calls()
    | mount_calls()
    | result_calls()
    | method_calls()
)

#: Constants, namespaces, what the library makes, base classes, and laws that check nothing.
NOT_CALLED = {
    *("TIME", *(name for name in vars(fx)["__all__"] if inspect.ismodule(getattr(fx, name)))),
    *("Forced", "Initialization", "PerStep", "Settling", "Terminate", "Notch", "Section"),
    *("BodyForceElement", "ForceElement", "JointForceElement", "Actuator", "Equation"),
    *("Equilibrium", "FMUBlock", "Log", "Margins", "PassivityReport", "FilterConsistency"),
    *("Norms", "PassivityIndices", "ParameterSensitivity", "Gradient", "Table", "Checkup"),
    *("Mode", "ModeTracks", "Modes", "CSize", "Statistics", "StepInfo", "Buckling", "CriticalLoad"),
    *("DescribingFunction", "FrequencyResponse", "LimitCycles"),
    *("LimitCheck", "SpecialPoint", "Stiffness", "StiffnessTrack", "DisturbanceInfo"),
    *("FeedbackDesign", "SynthesisDesign", "ModelReduction", "LivePage", "ObserverDesign"),
    *("PIDTuning", "Plan", "Regression", "Widget", "DynamicStiffness", "ForceTable"),
    *("metrics.Constraint", "metrics.Metric", *vars(fx.laws)["__all__"]),
}
