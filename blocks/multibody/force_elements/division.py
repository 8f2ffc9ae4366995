"""Force elements that are divided into segments, with bodies between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from flexure.blocks.multibody.bodies.bodies import Body
from flexure.diagrams.systems.leaf import LeafSystem
from flexure.diagrams.systems.ports import InputPort, OutputPort
from flexure.diagrams.values.arrays import Array


class Division:
    """What is inside of a force element that is divided.

    The plant takes nodes and segments over with the element. The segments act on bodies in its
    place, and it reads from them what it shows of the whole. Segments go from the first frame of
    the element to its last one, with the nodes between them.
    """

    def __init__(self, nodes: Iterable[Body] = (), segments: Iterable[Any] = ()) -> None:
        self.nodes, self.segments = tuple(nodes), tuple(segments)
        # Pairs of ports that the plant connects.
        self.wires: list[tuple[OutputPort, InputPort]] = []

    def __bool__(self) -> bool:
        return bool(self.segments)

    def declare_input(self, whole: LeafSystem, name: str, source: OutputPort) -> InputPort:
        """Declare an input of the whole that the plant connects to an output of a segment."""
        size, names = source.size or 0, source.element_names
        port = whole.declare_vector_input(name, size, unit=source.unit, element_names=names)
        self.wires.append((source, port))
        return port

    def declare_inputs(self, whole: LeafSystem, name: str) -> list[InputPort]:
        """Declare inputs of the whole for the output of that name of each segment."""
        return [
            self.declare_input(whole, f"{name}_{k}", segment.output_port(name))
            for k, segment in enumerate(self.segments, start=1)
        ]


#: That of an element that is not divided.
UNDIVIDED = Division()


def total(ports: Sequence[InputPort], context: Any) -> Array:
    """Return the sum of what is at ports."""
    return sum((port(context) for port in ports[1:]), ports[0](context))
