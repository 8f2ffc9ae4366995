"""What is done with a diagram: simulation, responses, plots."""

from typing import TYPE_CHECKING

if __name__ != "flexure.solvers":
    raise ImportError("write `import flexure.solvers`: the folder solvers/ is not a package")

from flexure.diagrams.interface.lazy_names import imported_names, on_demand

if TYPE_CHECKING:
    from flexure.solvers.analysis.frequency.frequency_plots import bode, singular_values
    from flexure.solvers.analysis.frequency.loop_plots import nichols, nyquist
    from flexure.solvers.analysis.frequency.margins import margins
    from flexure.solvers.analysis.frequency.norms import norms
    from flexure.solvers.analysis.frequency.passivity_indices import passivity_indices
    from flexure.solvers.analysis.frequency.pole_plots import pole_zero
    from flexure.solvers.analysis.frequency.root_locus import root_locus
    from flexure.solvers.analysis.linear_models.linear_model import LinearModel
    from flexure.solvers.analysis.linear_models.linearization import linearize
    from flexure.solvers.analysis.linear_models.loop_transfers import (
        complementary_sensitivity,
        loop_gain,
        sensitivity_function,
    )
    from flexure.solvers.analysis.modes.mode_tracking import track_modes
    from flexure.solvers.analysis.modes.modes import modes
    from flexure.solvers.analysis.operating_points.equilibria import equilibrium
    from flexure.solvers.analysis.plausibility.doctor import doctor
    from flexure.solvers.analysis.plausibility.limit_rules import check_limits
    from flexure.solvers.analysis.sensitivities.sensitivities import parameter_sensitivity
    from flexure.solvers.analysis.statics.buckling import buckling
    from flexure.solvers.analysis.statics.load_path import load_path
    from flexure.solvers.analysis.statics.stiffness import stiffness
    from flexure.solvers.analysis.statics.stiffness_track import track_stiffness
    from flexure.solvers.design.estimators.consistency import filter_consistency
    from flexure.solvers.design.estimators.kalman_filters import (
        ExtendedKalmanFilter,
        KalmanFilter,
        UnscentedKalmanFilter,
    )
    from flexure.solvers.design.fits.fits import fit
    from flexure.solvers.design.optimization.optimization import optimize
    from flexure.solvers.design.pid.pid_tuning import tune_pid
    from flexure.solvers.design.state_space.feedback import lqr, place
    from flexure.solvers.design.state_space.observers import lqe, place_observer
    from flexure.solvers.design.state_space.output_feedback import lqg
    from flexure.solvers.export.c.c_model import to_c
    from flexure.solvers.export.fmi.fmu import to_fmu
    from flexure.solvers.export.javascript.javascript_model import to_javascript
    from flexure.solvers.native.runs.scipy_adapter import compiled_equations
    from flexure.solvers.pages.inspectors import inspect_block
    from flexure.solvers.pages.pages import page
    from flexure.solvers.pages.reports import report
    from flexure.solvers.results.measures.disturbances import disturbance_info
    from flexure.solvers.results.measures.step_responses import step_info
    from flexure.solvers.results.mechanisms.animations import animate
    from flexure.solvers.results.mechanisms.mechanism_plots import plot_mechanism
    from flexure.solvers.results.pictures.run_comparison import compare
    from flexure.solvers.results.records.stored_results import load_result
    from flexure.solvers.simulation.simulation import simulate
    from flexure.solvers.simulation.simulator import Simulator
    from flexure.solvers.simulation.step_response import step_response
    from flexure.solvers.sweeps.sobol_indices import sobol_indices
    from flexure.solvers.sweeps.stored_studies import load_study
    from flexure.solvers.sweeps.sweeps import simulate_many, sweep
    from flexure.solvers.tracing.lanes import evaluate_batch
    from flexure.solvers.tracing.readable_equations import equation
else:
    __getattr__, __dir__ = on_demand(__name__, imported_names(__file__, __name__))

__all__ = [
    "ExtendedKalmanFilter",
    "KalmanFilter",
    "LinearModel",
    "Simulator",
    "UnscentedKalmanFilter",
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
    "filter_consistency",
    "fit",
    "inspect_block",
    "linearize",
    "load_path",
    "load_result",
    "load_study",
    "loop_gain",
    "lqe",
    "lqg",
    "lqr",
    "margins",
    "modes",
    "nichols",
    "norms",
    "nyquist",
    "optimize",
    "page",
    "parameter_sensitivity",
    "passivity_indices",
    "place",
    "place_observer",
    "plot_mechanism",
    "pole_zero",
    "report",
    "root_locus",
    "sensitivity_function",
    "simulate",
    "simulate_many",
    "singular_values",
    "sobol_indices",
    "step_info",
    "step_response",
    "stiffness",
    "sweep",
    "to_c",
    "to_fmu",
    "to_javascript",
    "track_modes",
    "track_stiffness",
    "tune_pid",
]
