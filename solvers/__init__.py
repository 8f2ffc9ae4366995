"""What is done with a diagram: simulation, responses, plots."""

from typing import TYPE_CHECKING

if __name__ != "flexure.solvers":
    raise ImportError("write `import flexure.solvers`: the folder solvers/ is not a package")

from flexure.diagrams.interface.lazy_names import on_demand

if TYPE_CHECKING:
    from flexure.solvers.analysis.frequency.frequency_plots import bode, singular_values
    from flexure.solvers.analysis.frequency.loop_plots import nichols, nyquist
    from flexure.solvers.analysis.frequency.margins import Margins, margins
    from flexure.solvers.analysis.frequency.pole_plots import pole_zero
    from flexure.solvers.analysis.frequency.root_locus import RootLocus, root_locus
    from flexure.solvers.analysis.linear_models.linear_model import LinearModel
    from flexure.solvers.analysis.linear_models.linearization import linearize
    from flexure.solvers.analysis.linear_models.loop_transfers import (
        complementary_sensitivity,
        loop_gain,
        sensitivity_function,
    )
    from flexure.solvers.analysis.modes.mode_tracking import ModeTracks, track_modes
    from flexure.solvers.analysis.modes.modes import Mode, Modes, modes
    from flexure.solvers.analysis.operating_points.equilibria import Equilibrium, equilibrium
    from flexure.solvers.analysis.plausibility.doctor import doctor
    from flexure.solvers.analysis.plausibility.findings import Checkup
    from flexure.solvers.analysis.plausibility.limit_rules import LimitCheck, check_limits
    from flexure.solvers.analysis.sensitivities.sensitivities import Sensitivity, sensitivity
    from flexure.solvers.analysis.statics.buckling import Buckling, CriticalLoad, buckling
    from flexure.solvers.analysis.statics.load_path import LoadPath, SpecialPoint, load_path
    from flexure.solvers.analysis.statics.stiffness import Stiffness, stiffness
    from flexure.solvers.analysis.statics.stiffness_track import StiffnessTrack, track_stiffness
    from flexure.solvers.design.fits.fits import Fit, fit
    from flexure.solvers.design.optimization.optimization import Optimization, optimize
    from flexure.solvers.design.pid.pid_tuning import PIDTuning, tune_pid
    from flexure.solvers.design.state_space.feedback import FeedbackDesign, lqr, place
    from flexure.solvers.design.state_space.observers import ObserverDesign, lqe, place_observer
    from flexure.solvers.design.state_space.output_feedback import OutputFeedbackDesign, lqg
    from flexure.solvers.javascript.javascript_model import JavaScriptModel, to_javascript
    from flexure.solvers.native.runs.scipy_adapter import CompiledEquations, compiled_equations
    from flexure.solvers.pages.inspectors import inspect
    from flexure.solvers.pages.pages import Page, page
    from flexure.solvers.pages.reports import report
    from flexure.solvers.results.measures.disturbances import (
        DisturbanceInfo,
        DisturbanceResponse,
        disturbance_info,
    )
    from flexure.solvers.results.measures.step_characteristics import StepInfo
    from flexure.solvers.results.measures.step_responses import StepResponse, step_info
    from flexure.solvers.results.mechanisms.animations import animate
    from flexure.solvers.results.mechanisms.mechanism_plots import plot_mechanism
    from flexure.solvers.results.pictures.run_comparison import compare
    from flexure.solvers.results.records.result import SimulationResult
    from flexure.solvers.results.records.spectra import Spectrum
    from flexure.solvers.results.records.statistics import Statistics
    from flexure.solvers.results.records.stored_results import StoredResult, load_result
    from flexure.solvers.simulation.simulation import simulate
    from flexure.solvers.simulation.simulator import Simulator
    from flexure.solvers.simulation.step_response import step_response
    from flexure.solvers.sweeps.plans.one_at_a_time import one_at_a_time
    from flexure.solvers.sweeps.plans.plan_files import load_plan
    from flexure.solvers.sweeps.plans.plans import Plan, grid, zipped
    from flexure.solvers.sweeps.plans.sampling_designs import latin_hypercube, random, sobol
    from flexure.solvers.sweeps.sobol_indices import SobolIndices, sobol_indices
    from flexure.solvers.sweeps.stored_studies import load_study
    from flexure.solvers.sweeps.sweep import Sweep
    from flexure.solvers.sweeps.sweeps import simulate_many, sweep
    from flexure.solvers.sweeps.tables.regression import Regression
    from flexure.solvers.tracing.lanes import evaluate_batch
    from flexure.solvers.tracing.readable_equations import Equation, equation
else:
    __getattr__, __dir__ = on_demand(
        __name__,
        {
            "analysis.operating_points.equilibria": "Equilibrium equilibrium",
            "design.fits.fits": "Fit fit",
            "tracing.lanes": "evaluate_batch",
            "analysis.frequency.frequency_plots": "bode singular_values",
            "analysis.frequency.loop_plots": "nichols nyquist",
            "analysis.frequency.pole_plots": "pole_zero",
            "analysis.frequency.root_locus": "RootLocus root_locus",
            "analysis.linear_models.linear_model": "LinearModel",
            "analysis.linear_models.linearization": "linearize",
            "design.state_space.feedback": "FeedbackDesign lqr place",
            "design.state_space.observers": "ObserverDesign lqe place_observer",
            "design.optimization.optimization": "Optimization optimize",
            "design.state_space.output_feedback": "OutputFeedbackDesign lqg",
            "design.pid.pid_tuning": "PIDTuning tune_pid",
            "javascript.javascript_model": "JavaScriptModel to_javascript",
            "native.runs.scipy_adapter": "CompiledEquations compiled_equations",
            "tracing.readable_equations": "Equation equation",
            "analysis.plausibility.doctor": "doctor",
            "analysis.plausibility.findings": "Checkup",
            "analysis.statics.buckling": "Buckling CriticalLoad buckling",
            "analysis.statics.stiffness": "Stiffness stiffness",
            "analysis.statics.stiffness_track": "StiffnessTrack track_stiffness",
            "analysis.plausibility.limit_rules": "LimitCheck check_limits",
            "analysis.statics.load_path": "LoadPath SpecialPoint load_path",
            "simulation.step_response": "step_response",
            "pages.inspectors": "inspect",
            "pages.pages": "Page page",
            "pages.reports": "report",
            "results.pictures.run_comparison": "compare",
            "results.records.spectra": "Spectrum",
            "results.measures.step_responses": "StepResponse step_info",
            "results.measures.disturbances": "DisturbanceInfo DisturbanceResponse disturbance_info",
            "results.records.result": "SimulationResult",
            "analysis.linear_models.loop_transfers": "complementary_sensitivity loop_gain "
            "sensitivity_function",
            "analysis.frequency.margins": "Margins margins",
            "analysis.modes.mode_tracking": "ModeTracks track_modes",
            "analysis.modes.modes": "Mode Modes modes",
            "analysis.sensitivities.sensitivities": "Sensitivity sensitivity",
            "simulation.simulation": "simulate",
            "simulation.simulator": "Simulator",
            "results.records.statistics": "Statistics",
            "results.measures.step_characteristics": "StepInfo",
            "results.mechanisms.animations": "animate",
            "results.mechanisms.mechanism_plots": "plot_mechanism",
            "results.records.stored_results": "StoredResult load_result",
            "sweeps.plans.one_at_a_time": "one_at_a_time",
            "sweeps.plans.plan_files": "load_plan",
            "sweeps.plans.plans": "Plan grid zipped",
            "sweeps.tables.regression": "Regression",
            "sweeps.sobol_indices": "SobolIndices sobol_indices",
            "sweeps.plans.sampling_designs": "latin_hypercube random sobol",
            "sweeps.stored_studies": "load_study",
            "sweeps.sweep": "Sweep",
            "sweeps.sweeps": "simulate_many sweep",
        },
    )

__all__ = [
    "Buckling",
    "Checkup",
    "CompiledEquations",
    "CriticalLoad",
    "DisturbanceInfo",
    "DisturbanceResponse",
    "Equation",
    "Equilibrium",
    "FeedbackDesign",
    "Fit",
    "JavaScriptModel",
    "LimitCheck",
    "LinearModel",
    "LoadPath",
    "Margins",
    "Mode",
    "ModeTracks",
    "Modes",
    "ObserverDesign",
    "Optimization",
    "OutputFeedbackDesign",
    "PIDTuning",
    "Page",
    "Plan",
    "Regression",
    "RootLocus",
    "Sensitivity",
    "SimulationResult",
    "Simulator",
    "SobolIndices",
    "SpecialPoint",
    "Spectrum",
    "Statistics",
    "StepInfo",
    "StepResponse",
    "Stiffness",
    "StiffnessTrack",
    "StoredResult",
    "Sweep",
    "animate",
    "bode",
    "buckling",
    "check_limits",
    "compare",
    "compiled_equations",
    "complementary_sensitivity",
    "disturbance_info",
    "doctor",
    "equation",
    "equilibrium",
    "evaluate_batch",
    "fit",
    "grid",
    "inspect",
    "latin_hypercube",
    "linearize",
    "load_path",
    "load_plan",
    "load_result",
    "load_study",
    "loop_gain",
    "lqe",
    "lqg",
    "lqr",
    "margins",
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
    "sensitivity",
    "sensitivity_function",
    "simulate",
    "simulate_many",
    "singular_values",
    "sobol",
    "sobol_indices",
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
