"""What is done with a diagram: simulation, responses, plots."""

from typing import TYPE_CHECKING

if __name__ != "flexure.solvers":
    raise ImportError("write `import flexure.solvers`: the folder solvers/ is not a package")

from flexure.diagrams.on_demand import on_demand

if TYPE_CHECKING:
    from flexure.solvers.equilibria import Equilibrium, equilibrium
    from flexure.solvers.lanes import evaluate_batch
    from flexure.solvers.linearization import LinearModel, linearize
    from flexure.solvers.native.front import CompiledEquations, compiled_equations
    from flexure.solvers.readable_equations import Equation, equation
    from flexure.solvers.responses import StepResponse, step_info, step_response
    from flexure.solvers.result import SimulationResult
    from flexure.solvers.sensitivities import Sensitivity, sensitivity
    from flexure.solvers.simulation import simulate
    from flexure.solvers.simulator import Simulator
    from flexure.solvers.statistics import Statistics
    from flexure.solvers.step_figures import StepInfo
    from flexure.solvers.stick_figures import animate, plot_mechanism
    from flexure.solvers.sweeps import Sweep, simulate_many, sweep
else:
    __getattr__, __dir__ = on_demand(
        __name__,
        {
            "equilibria": "Equilibrium equilibrium",
            "lanes": "evaluate_batch",
            "linearization": "LinearModel linearize",
            "native.front": "CompiledEquations compiled_equations",
            "readable_equations": "Equation equation",
            "responses": "StepResponse step_info step_response",
            "result": "SimulationResult",
            "sensitivities": "Sensitivity sensitivity",
            "simulation": "simulate",
            "simulator": "Simulator",
            "statistics": "Statistics",
            "step_figures": "StepInfo",
            "stick_figures": "animate plot_mechanism",
            "sweeps": "Sweep simulate_many sweep",
        },
    )

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
    "animate",
    "compiled_equations",
    "equation",
    "equilibrium",
    "evaluate_batch",
    "linearize",
    "plot_mechanism",
    "sensitivity",
    "simulate",
    "simulate_many",
    "step_info",
    "step_response",
    "sweep",
]
