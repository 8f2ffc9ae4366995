"""How things are wired: ports, parameters, states, contexts, systems and the builder."""

from typing import TYPE_CHECKING

if __name__ != "flexure.diagrams":
    raise ImportError("write `import flexure.diagrams`: the folder diagrams/ is not a package")

from flexure.diagrams.interface.lazy_names import imported_names, on_demand

if TYPE_CHECKING:
    from flexure.diagrams.building.builder import DiagramBuilder
    from flexure.diagrams.contexts.context import Context
    from flexure.diagrams.scalars import array
    from flexure.diagrams.systems.diagram import Diagram
    from flexure.diagrams.systems.leaf import LeafSystem
    from flexure.diagrams.systems.ports import TIME, CacheEntry, InputPort, OutputPort
    from flexure.diagrams.systems.system import System
    from flexure.diagrams.values.events import (
        Forced,
        Initialization,
        Periodic,
        PerStep,
        Settling,
        Terminate,
        Witness,
    )
    from flexure.diagrams.values.parameters import AbstractParameter, NumericParameter
    from flexure.diagrams.values.state import AbstractState, ContinuousState, DiscreteState
    from flexure.diagrams.values.tables import Table
else:
    __getattr__, __dir__ = on_demand(__name__, imported_names(__file__, __name__))

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
