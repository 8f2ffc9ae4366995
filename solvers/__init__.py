"""What is done with a diagram: simulation, responses, plots."""

from typing import TYPE_CHECKING

if __name__ != "flexure.solvers":
    raise ImportError("write `import flexure.solvers`: the folder solvers/ is not a package")

from flexure.diagrams.interface.lazy_names import imported_names, on_demand

if TYPE_CHECKING:
    from flexure.solvers.analysis.frequency.frequency_plots import (
        bode as bode,
        singular_values as singular_values,
    )
    from flexure.solvers.analysis.frequency.loop_plots import nichols as nichols, nyquist as nyquist
    from flexure.solvers.analysis.frequency.margins import margins as margins
    from flexure.solvers.analysis.frequency.norms import norms as norms
    from flexure.solvers.analysis.frequency.passivity_indices import (
        passivity_indices as passivity_indices,
    )
    from flexure.solvers.analysis.frequency.pole_plots import pole_zero as pole_zero
    from flexure.solvers.analysis.frequency.root_locus import root_locus as root_locus
    from flexure.solvers.analysis.linear_models.linear_model import LinearModel as LinearModel
    from flexure.solvers.analysis.linear_models.linearization import linearize as linearize
    from flexure.solvers.analysis.linear_models.loop_transfers import (
        complementary_sensitivity as complementary_sensitivity,
        loop_gain as loop_gain,
        sensitivity_function as sensitivity_function,
    )
    from flexure.solvers.analysis.modes.mode_tracking import track_modes as track_modes
    from flexure.solvers.analysis.modes.modes import modes as modes
    from flexure.solvers.analysis.operating_points.equilibria import equilibrium as equilibrium
    from flexure.solvers.analysis.plausibility.doctor import doctor as doctor
    from flexure.solvers.analysis.plausibility.limit_rules import check_limits as check_limits
    from flexure.solvers.analysis.sensitivities.gradients import gradient as gradient
    from flexure.solvers.analysis.sensitivities.sensitivities import (
        parameter_sensitivity as parameter_sensitivity,
    )
    from flexure.solvers.analysis.statics.buckling import buckling as buckling
    from flexure.solvers.analysis.statics.load_paths.load_path import load_path as load_path
    from flexure.solvers.analysis.statics.stiffness import stiffness as stiffness
    from flexure.solvers.analysis.statics.stiffness_track import track_stiffness as track_stiffness
    from flexure.solvers.design.estimators.filter_consistency import (
        filter_consistency as filter_consistency,
    )
    from flexure.solvers.design.estimators.kalman_filters import (
        ExtendedKalmanFilter as ExtendedKalmanFilter,
        KalmanFilter as KalmanFilter,
        UnscentedKalmanFilter as UnscentedKalmanFilter,
    )
    from flexure.solvers.design.fits.fits import fit as fit
    from flexure.solvers.design.measured_responses.describing_functions import (
        describing_function as describing_function,
    )
    from flexure.solvers.design.measured_responses.frequency_response import (
        frequency_response as frequency_response,
    )
    from flexure.solvers.design.measured_responses.limit_cycles import limit_cycles as limit_cycles
    from flexure.solvers.design.optimal_motion.optimal_motion import (
        optimal_motion as optimal_motion,
    )
    from flexure.solvers.design.optimization.optimization import optimize as optimize
    from flexure.solvers.design.optimization.tolerances import tolerances as tolerances
    from flexure.solvers.design.pid.pid_tuning import tune_pid as tune_pid
    from flexure.solvers.design.predictive_control.nonlinear_controller import (
        NonlinearPredictiveController as NonlinearPredictiveController,
    )
    from flexure.solvers.design.predictive_control.predictive_controller import (
        ModelPredictiveController as ModelPredictiveController,
    )
    from flexure.solvers.design.state_space.feedback import lqr as lqr, place as place
    from flexure.solvers.design.state_space.observers import (
        lqe as lqe,
        place_observer as place_observer,
    )
    from flexure.solvers.design.state_space.output_feedback import lqg as lqg
    from flexure.solvers.design.synthesis.model_reduction import model_reduction as model_reduction
    from flexure.solvers.design.synthesis.synthesis import (
        h2_synthesis as h2_synthesis,
        hinf_synthesis as hinf_synthesis,
    )
    from flexure.solvers.design.tuning.tuning import tune as tune
    from flexure.solvers.export.c.c_model import to_c as to_c
    from flexure.solvers.export.fmi.fmu import to_fmu as to_fmu
    from flexure.solvers.export.javascript.javascript_model import to_javascript as to_javascript
    from flexure.solvers.export.part_drawings import part_drawing as part_drawing
    from flexure.solvers.live_runs.connections.buses import CAN as CAN, Serial as Serial
    from flexure.solvers.live_runs.connections.partners import UDP as UDP
    from flexure.solvers.live_runs.live import live as live
    from flexure.solvers.live_runs.widget import widget as widget
    from flexure.solvers.native.runs.scipy_adapter import compiled_equations as compiled_equations
    from flexure.solvers.pages.inspectors import inspect_block as inspect_block
    from flexure.solvers.pages.pages import page as page
    from flexure.solvers.pages.reports import report as report
    from flexure.solvers.results.measures.disturbances import disturbance_info as disturbance_info
    from flexure.solvers.results.measures.step_responses import step_info as step_info
    from flexure.solvers.results.mechanisms.animations import animate as animate
    from flexure.solvers.results.mechanisms.pictures import plot_mechanism as plot_mechanism
    from flexure.solvers.results.pictures.signal_plots import compare as compare
    from flexure.solvers.results.records.stored_results import load_result as load_result
    from flexure.solvers.simulation.simulation import (
        simulate as simulate,
        step_response as step_response,
    )
    from flexure.solvers.simulation.simulator import Simulator as Simulator
    from flexure.solvers.sweeps.sobol_indices import sobol_indices as sobol_indices
    from flexure.solvers.sweeps.stored_studies import load_study as load_study
    from flexure.solvers.sweeps.sweeps import simulate_many as simulate_many, sweep as sweep
    from flexure.solvers.tracing.lanes import evaluate_batch as evaluate_batch
    from flexure.solvers.tracing.readable_equations import equation as equation
else:
    __getattr__, __dir__ = on_demand(__name__, imported_names(__file__, __name__))
