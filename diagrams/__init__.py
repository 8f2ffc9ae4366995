"""How things are wired: ports, parameters, states, contexts, systems and the builder."""

from typing import TYPE_CHECKING

if __name__ != "flexure.diagrams":
    raise ImportError("write `import flexure.diagrams`: the folder diagrams/ is not a package")

from flexure.diagrams.on_demand import on_demand

if TYPE_CHECKING:
    from flexure.diagrams.builder import DiagramBuilder
    from flexure.diagrams.context import Context
    from flexure.diagrams.diagram import Diagram
    from flexure.diagrams.events import (
        Forced,
        Initialization,
        Periodic,
        PerStep,
        Settling,
        Terminate,
        Witness,
    )
    from flexure.diagrams.leaf import LeafSystem
    from flexure.diagrams.parameters import AbstractParameter, NumericParameter
    from flexure.diagrams.ports import TIME, CacheEntry, InputPort, OutputPort
    from flexure.diagrams.scalars import array
    from flexure.diagrams.state import AbstractState, ContinuousState, DiscreteState
    from flexure.diagrams.system import System
    from flexure.diagrams.tables import Table
else:
    __getattr__, __dir__ = on_demand(
        __name__,
        {
            "builder": "DiagramBuilder",
            "context": "Context",
            "diagram": "Diagram",
            "events": "Forced Initialization Periodic PerStep Settling Terminate Witness",
            "leaf": "LeafSystem",
            "parameters": "AbstractParameter NumericParameter",
            "ports": "TIME CacheEntry InputPort OutputPort",
            "scalars": "array",
            "state": "AbstractState ContinuousState DiscreteState",
            "system": "System",
            "tables": "Table",
        },
    )

__all__ = [
    "TIME",
    "AbstractParameter",
    "AbstractState",
    "CacheEntry",
    "Context",
    "ContinuousState",
    "Diagram",
    "DiagramBuilder",
    "DiscreteState",
    "Forced",
    "Initialization",
    "InputPort",
    "LeafSystem",
    "NumericParameter",
    "OutputPort",
    "PerStep",
    "Periodic",
    "Settling",
    "System",
    "Table",
    "Terminate",
    "Witness",
    "array",
]
