"""Results: the classes that functions return, for annotations and ``isinstance``.

Functions return these objects, for example `flexure.simulate` a `SimulationResult`. The docstring
of each class lists what its objects hold.
"""

from typing import TYPE_CHECKING

from flexure.diagrams.interface.lazy_names import imported_names, on_demand

if TYPE_CHECKING:
    from flexure.blocks.multibody import PassivityReport
    from flexure.solvers.analysis.frequency.margins import Margins
    from flexure.solvers.analysis.frequency.norms import Norms
    from flexure.solvers.analysis.frequency.passivity_indices import PassivityIndices
    from flexure.solvers.analysis.frequency.root_locus import RootLocus
    from flexure.solvers.analysis.modes.mode_tracking import ModeTracks
    from flexure.solvers.analysis.modes.modes import Mode, Modes
    from flexure.solvers.analysis.operating_points.equilibria import Equilibrium
    from flexure.solvers.analysis.plausibility.findings import Checkup
    from flexure.solvers.analysis.plausibility.limit_rules import LimitCheck
    from flexure.solvers.analysis.sensitivities.sensitivities import ParameterSensitivity
    from flexure.solvers.analysis.statics.buckling import Buckling, CriticalLoad
    from flexure.solvers.analysis.statics.load_path import LoadPath, SpecialPoint
    from flexure.solvers.analysis.statics.stiffness import Stiffness
    from flexure.solvers.analysis.statics.stiffness_track import StiffnessTrack
    from flexure.solvers.design.estimators.consistency import FilterConsistency
    from flexure.solvers.design.fits.fits import Fit
    from flexure.solvers.design.optimization.optimization import Optimization
    from flexure.solvers.design.pid.pid_tuning import PIDTuning
    from flexure.solvers.design.state_space.feedback import FeedbackDesign
    from flexure.solvers.design.state_space.observers import ObserverDesign
    from flexure.solvers.design.state_space.output_feedback import OutputFeedbackDesign
    from flexure.solvers.export.c.c_model import CModel, CSize
    from flexure.solvers.export.fmi.fmu import FMU
    from flexure.solvers.export.javascript.javascript_model import JavaScriptModel
    from flexure.solvers.native.runs.scipy_adapter import CompiledEquations
    from flexure.solvers.pages.pages import Page
    from flexure.solvers.results.measures.disturbances import DisturbanceInfo, DisturbanceResponse
    from flexure.solvers.results.measures.step_characteristics import StepInfo
    from flexure.solvers.results.measures.step_responses import StepResponse
    from flexure.solvers.results.records.result import SimulationResult
    from flexure.solvers.results.records.spectra import Spectrum
    from flexure.solvers.results.records.statistics import Statistics
    from flexure.solvers.results.records.stored_results import StoredResult
    from flexure.solvers.sweeps.sobol_indices import SobolIndices
    from flexure.solvers.sweeps.sweep import Sweep
    from flexure.solvers.sweeps.tables.regression import Regression
    from flexure.solvers.tracing.readable_equations import Equation
else:
    __getattr__, __dir__ = on_demand(__name__, imported_names(__file__, "flexure"), root="flexure")

__all__ = [
    "FMU",
    "Buckling",
    "CModel",
    "CSize",
    "Checkup",
    "CompiledEquations",
    "CriticalLoad",
    "DisturbanceInfo",
    "DisturbanceResponse",
    "Equation",
    "Equilibrium",
    "FeedbackDesign",
    "FilterConsistency",
    "Fit",
    "JavaScriptModel",
    "LimitCheck",
    "LoadPath",
    "Margins",
    "Mode",
    "ModeTracks",
    "Modes",
    "Norms",
    "ObserverDesign",
    "Optimization",
    "OutputFeedbackDesign",
    "PIDTuning",
    "Page",
    "ParameterSensitivity",
    "PassivityIndices",
    "PassivityReport",
    "Regression",
    "RootLocus",
    "SimulationResult",
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
]
