"""Results: the classes that functions return, for annotations and ``isinstance``.

Functions return these objects, for example `flexure.simulate` a `SimulationResult`. The docstring
of each class lists what its objects hold.
"""

from typing import TYPE_CHECKING

from flexure.diagrams.interface.lazy_names import imported_names, on_demand

if TYPE_CHECKING:
    from flexure.blocks.multibody import PassivityReport as PassivityReport
    from flexure.blocks.signals.sinks import Log as Log
    from flexure.diagrams.values.tables import Table as Table
    from flexure.solvers.analysis.frequency.margins import Margins as Margins
    from flexure.solvers.analysis.frequency.norms import Norms as Norms
    from flexure.solvers.analysis.frequency.passivity_indices import (
        PassivityIndices as PassivityIndices,
    )
    from flexure.solvers.analysis.frequency.root_locus import RootLocus as RootLocus
    from flexure.solvers.analysis.modes.mode_tracking import ModeTracks as ModeTracks
    from flexure.solvers.analysis.modes.modes import Mode as Mode, Modes as Modes
    from flexure.solvers.analysis.operating_points.equilibria import Equilibrium as Equilibrium
    from flexure.solvers.analysis.plausibility.findings import Checkup as Checkup
    from flexure.solvers.analysis.plausibility.limit_rules import LimitCheck as LimitCheck
    from flexure.solvers.analysis.sensitivities.gradients import Gradient as Gradient
    from flexure.solvers.analysis.sensitivities.sensitivities import (
        ParameterSensitivity as ParameterSensitivity,
    )
    from flexure.solvers.analysis.statics.buckling import (
        Buckling as Buckling,
        CriticalLoad as CriticalLoad,
    )
    from flexure.solvers.analysis.statics.load_paths.load_path import (
        LoadPath as LoadPath,
        SpecialPoint as SpecialPoint,
    )
    from flexure.solvers.analysis.statics.stiffness import Stiffness as Stiffness
    from flexure.solvers.analysis.statics.stiffness_track import StiffnessTrack as StiffnessTrack
    from flexure.solvers.design.estimators.filter_consistency import (
        FilterConsistency as FilterConsistency,
    )
    from flexure.solvers.design.fits.fits import Fit as Fit
    from flexure.solvers.design.measured_responses.describing_functions import (
        DescribingFunction as DescribingFunction,
    )
    from flexure.solvers.design.measured_responses.frequency_response import (
        FrequencyResponse as FrequencyResponse,
    )
    from flexure.solvers.design.measured_responses.limit_cycles import LimitCycles as LimitCycles
    from flexure.solvers.design.optimal_motion.optimal_motion import OptimalMotion as OptimalMotion
    from flexure.solvers.design.optimization.optimization import Optimization as Optimization
    from flexure.solvers.design.optimization.tolerances import Tolerances as Tolerances
    from flexure.solvers.design.pid.pid_tuning import PIDTuning as PIDTuning
    from flexure.solvers.design.state_space.feedback import FeedbackDesign as FeedbackDesign
    from flexure.solvers.design.state_space.observers import ObserverDesign as ObserverDesign
    from flexure.solvers.design.state_space.output_feedback import (
        OutputFeedbackDesign as OutputFeedbackDesign,
    )
    from flexure.solvers.design.synthesis.model_reduction import ModelReduction as ModelReduction
    from flexure.solvers.design.synthesis.synthesis import SynthesisDesign as SynthesisDesign
    from flexure.solvers.design.tuning.tuning import Tune as Tune
    from flexure.solvers.export.c.c_model import CModel as CModel, CSize as CSize
    from flexure.solvers.export.fmi.fmu import FMU as FMU
    from flexure.solvers.export.javascript.javascript_model import (
        JavaScriptModel as JavaScriptModel,
    )
    from flexure.solvers.export.part_drawings import PartDrawing as PartDrawing
    from flexure.solvers.live_runs.live_page import LivePage as LivePage
    from flexure.solvers.live_runs.live_report import LiveReport as LiveReport
    from flexure.solvers.live_runs.live_run import Live as Live
    from flexure.solvers.live_runs.widget import Widget as Widget
    from flexure.solvers.native.runs.scipy_adapter import CompiledEquations as CompiledEquations
    from flexure.solvers.pages.pages import Page as Page
    from flexure.solvers.results.measures.disturbances import (
        DisturbanceInfo as DisturbanceInfo,
        DisturbanceResponse as DisturbanceResponse,
    )
    from flexure.solvers.results.measures.step_characteristics import StepInfo as StepInfo
    from flexure.solvers.results.measures.step_responses import StepResponse as StepResponse
    from flexure.solvers.results.records.result import SimulationResult as SimulationResult
    from flexure.solvers.results.records.spectra import Spectrum as Spectrum
    from flexure.solvers.results.records.statistics import Statistics as Statistics
    from flexure.solvers.results.records.stored_results import StoredResult as StoredResult
    from flexure.solvers.sweeps.sobol_indices import SobolIndices as SobolIndices
    from flexure.solvers.sweeps.sweep import Sweep as Sweep
    from flexure.solvers.sweeps.tables.regression import Regression as Regression
    from flexure.solvers.tracing.readable_equations import Equation as Equation
else:
    __getattr__, __dir__ = on_demand(__name__, imported_names(__file__, "flexure"), root="flexure")
