"""What is done with a diagram: simulation, responses, plots."""

if __name__ != "flexure.solvers":
    raise ImportError("write `import flexure.solvers`: the folder solvers/ is not a package")

from flexure.solvers.equilibria import Equilibrium, equilibrium
from flexure.solvers.linearization import LinearModel, linearize
from flexure.solvers.responses import StepInfo, StepResponse, step_info, step_response
from flexure.solvers.result import SimulationResult
from flexure.solvers.sensitivities import Sensitivity, sensitivity
from flexure.solvers.simulation import simulate
from flexure.solvers.simulator import Simulator, Statistics

__all__ = [
    "Equilibrium",
    "LinearModel",
    "Sensitivity",
    "SimulationResult",
    "Simulator",
    "Statistics",
    "StepInfo",
    "StepResponse",
    "equilibrium",
    "linearize",
    "sensitivity",
    "simulate",
    "step_info",
    "step_response",
]
