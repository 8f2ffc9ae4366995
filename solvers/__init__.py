"""What is done with a diagram: simulation, responses, plots."""

from typing import TYPE_CHECKING

if __name__ != "flexure.solvers":
    raise ImportError("write `import flexure.solvers`: the folder solvers/ is not a package")

from flexure.diagrams.interface.lazy_names import imported_names, on_demand

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
    __getattr__, __dir__ = on_demand(__name__, imported_names(__file__))

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
