"""What is done with a diagram: simulation, responses, plots."""

if __name__ != "flexure.solvers":
    raise ImportError("write `import flexure.solvers`: the folder solvers/ is not a package")

from flexure.solvers.equilibria import Equilibrium, equilibrium
from flexure.solvers.lanes import evaluate_batch
from flexure.solvers.linearization import LinearModel, linearize
from flexure.solvers.native.front import CompiledEquations, compiled_equations
from flexure.solvers.readable_equations import Equation, equation
from flexure.solvers.responses import StepInfo, StepResponse, step_info, step_response
from flexure.solvers.result import SimulationResult
from flexure.solvers.sensitivities import Sensitivity, sensitivity
from flexure.solvers.simulation import simulate
from flexure.solvers.simulator import Simulator, Statistics
from flexure.solvers.sweeps import Sweep, simulate_many, sweep

__all__ = [
    "CompiledEquations",
    "Equation",
    "Equilibrium",
    "LinearModel",
    "Sensitivity",
    "SimulationResult",
    "Simulator",
    "Statistics",
    "StepInfo",
    "StepResponse",
    "Sweep",
    "compiled_equations",
    "equation",
    "equilibrium",
    "evaluate_batch",
    "linearize",
    "sensitivity",
    "simulate",
    "simulate_many",
    "step_info",
    "step_response",
    "sweep",
]
