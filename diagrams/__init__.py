"""How things are wired: ports, parameters, states, contexts, systems and the builder."""

from typing import TYPE_CHECKING

if __name__ != "flexure.diagrams":
    raise ImportError("write `import flexure.diagrams`: the folder diagrams/ is not a package")

from flexure.diagrams.interface.lazy_names import imported_names, on_demand

if TYPE_CHECKING:
    from flexure.diagrams.building.builder import DiagramBuilder as DiagramBuilder
    from flexure.diagrams.contexts.context import Context as Context
    from flexure.diagrams.scalars import array as array
    from flexure.diagrams.systems.diagram import Diagram as Diagram
    from flexure.diagrams.systems.leaf import LeafSystem as LeafSystem
    from flexure.diagrams.systems.ports import (
        TIME as TIME,
        CacheEntry as CacheEntry,
        InputPort as InputPort,
        OutputPort as OutputPort,
    )
    from flexure.diagrams.systems.system import System as System
    from flexure.diagrams.values.events import (
        Forced as Forced,
        Initialization as Initialization,
        Periodic as Periodic,
        PerStep as PerStep,
        Settling as Settling,
        Terminate as Terminate,
        Witness as Witness,
    )
    from flexure.diagrams.values.parameters import (
        AbstractParameter as AbstractParameter,
        NumericParameter as NumericParameter,
    )
    from flexure.diagrams.values.state import (
        AbstractState as AbstractState,
        ContinuousState as ContinuousState,
        DiscreteState as DiscreteState,
    )
else:
    __getattr__, __dir__ = on_demand(__name__, imported_names(__file__, __name__))
