"""The content of a drawing in any format: blocks, their roles and texts, and the links."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from flexure.diagrams.checks.arguments import one_of
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.systems.diagram import Diagram, ShownPorts
from flexure.diagrams.systems.layout import leaves_of
from flexure.diagrams.systems.ports import InputPort, Port
from flexure.diagrams.systems.system import System

#: What a block does in a diagram: gives values, takes them, moves, samples, or just computes.
Role: TypeAlias = Literal["source", "sink", "dynamic", "sampled", "static"]
#: So many unused ports of a side are folded into a line; a single one takes no more room itself.
_FOLDED_FROM = 2


@dataclass(frozen=True, eq=False)
class Fold:
    """The line that replaces the unused ports of one side of a system."""

    system: System
    ports: tuple[Port, ...]  # the ports, inputs or outputs
    alone: bool  # whether the side shows nothing else

    @property
    def name(self) -> str:
        """The text of the line, such as ``"… 23 more outputs"``."""
        kind = "inputs" if isinstance(self.ports[0], InputPort) else "outputs"
        return f"… {len(self.ports)} {'' if self.alone else 'more '}{kind}"


#: What takes a row at the side of a block, and a marker at the edge of an opened diagram.
Row: TypeAlias = Port | Fold


class Content:
    """The systems, ports and links of a diagram that a drawing shows.

    A port is used when a shown wire ends at it, inside or outside of its system. The exported ports
    of the diagram itself are its face and always used; those of an opened diagram in it are used
    like the ports of a block, by wires around it, and a wire that only leads to an unused one is
    left out together with it. Each opened diagram is given before those in it; ``ports`` is
    "all", or "used" to fold unused ports into a line.
    """

    def __init__(
        self, diagram: Diagram, opened: Collection[Diagram], ports: ShownPorts = "used"
    ) -> None:
        self.diagram = diagram
        self.opened = dict.fromkeys(opened)
        self._links: dict[Diagram, list[tuple[Port, Port]]] = {}
        self._rows: dict[System, tuple[list[Row], list[Row]]] = {
            diagram: ([*diagram.input_ports], [*diagram.output_ports])
        }
        for current in opened:
            inputs, outputs = self._rows[current]
            hidden = {
                port for row in (*inputs, *outputs) if isinstance(row, Fold) for port in row.ports
            }
            links = [link for link in links_of(current) if hidden.isdisjoint(link)]
            self._links[current] = links
            used = {port for link in links for port in link}
            for child in current.children:
                sides = child.input_ports, child.output_ports
                self._rows[child] = (
                    _folded(child, sides[0], used) if ports == "used" else [*sides[0]],
                    _folded(child, sides[1], used) if ports == "used" else [*sides[1]],
                )

    def links(self, diagram: Diagram) -> list[tuple[Port, Port]]:
        """Return the shown links directly inside of an opened diagram, as `links_of` does."""
        return self._links[diagram]

    def inputs(self, system: System) -> list[Row]:
        """Return the rows at the left of a shown system."""
        return self._rows[system][0]

    def outputs(self, system: System) -> list[Row]:
        """Return the rows at the right of a shown system."""
        return self._rows[system][1]

    def rows(self, system: System) -> list[Row]:
        """Return the rows at both sides, inputs first."""
        return [*self.inputs(system), *self.outputs(system)]


def _folded(system: System, ports: Sequence[Port], used: Collection[Port]) -> list[Row]:
    """Return the rows of one side, the unused ports as the last one."""
    unused = [port for port in ports if port not in used]
    if len(unused) < _FOLDED_FROM:
        return [*ports]
    kept = [port for port in ports if port in used]
    return [*kept, Fold(system, tuple(unused), alone=not kept)]


def content_of(diagram: Diagram, depth: int = 1, ports: ShownPorts = "used") -> Content:
    """Return what is shown of a diagram at a depth."""
    opened = opened_diagrams(diagram, depth)
    attempt = f"Cannot draw '{diagram.label}'"
    shown = one_of(ports, ("used", "all"), "ports", attempt, error=DeclarationError)
    return Content(diagram, opened, shown)


def opened_diagrams(diagram: Diagram, depth: int) -> list[Diagram]:
    """Return the diagrams whose inside is shown, each before those in it."""
    if type(depth) is not int or depth < 1:
        raise DeclarationError(
            f"Cannot draw '{diagram.label}'",
            expected="a depth of 1 (blocks closed), 2 (nested diagrams opened once) or more",
            found=f"depth={depth!r}",
        )
    opened: list[Diagram] = []
    stack = [(diagram, 0)]
    while stack:
        current, level = stack.pop()
        opened.append(current)
        if level + 1 < depth:
            nested = [child for child in current.children if isinstance(child, Diagram)]
            stack.extend((child, level + 1) for child in reversed(nested))
    return opened


def links_of(diagram: Diagram) -> list[tuple[Port, Port]]:
    """Return the pairs (from, to) of linked ports directly inside of a diagram.

    They start at outputs of its blocks and at its exported inputs, and end at inputs of its blocks
    and at its exported outputs.
    """
    links: list[tuple[Port, Port]] = []
    for child in diagram.children:
        for port in child.input_ports:
            feed = diagram.feed_of(port)
            if feed is not None:
                links.append((feed, port))
    links.extend((port.source, port) for port in diagram.output_ports)
    return links


def role_of(system: System) -> Role:
    """Return the role of a block, which decides its color."""
    if system.output_ports and not system.input_ports:
        return "source"
    if system.input_ports and not system.output_ports:
        return "sink"
    leaves = leaves_of(system)
    if any(leaf.continuous_state is not None for leaf in leaves):
        return "dynamic"
    if any(leaf.periods for leaf in leaves):
        return "sampled"
    return "static"


def caption_of(system: System) -> str:
    """Return the small text below the name of a block: its class, and how much is inside."""
    kind = type(system).__name__
    if system.children is None:
        return kind
    count = len(system.children)
    return f"{kind}, {count} block{'s' if count != 1 else ''}"


def label_of(port: Row) -> str:
    """Return the text beside a port; empty for the only port of its side with a usual name."""
    if isinstance(port, Fold):
        return port.name
    system = port.system
    is_input = isinstance(port, InputPort)
    beside = len(system.input_ports) if is_input else len(system.output_ports)
    return "" if beside == 1 and port.name == ("u" if is_input else "y") else port.name


def describe_link(source: Port, target: Port) -> str:
    """Return a link in words, for a tooltip."""
    size = "abstract" if source.size is None else f"size {source.size}"
    unit = f", {source.unit}" if source.unit else ""
    return f"{source.full_name} → {target.full_name} ({size}{unit})"


def walk(diagram: Diagram, opened: Collection[System]) -> Iterator[tuple[System, int, bool]]:
    """Yield every shown system with its level, when it begins (True) and, if opened, ends (False).

    The diagram itself has level 0.
    """
    stack: list[tuple[System, int, bool]] = [(diagram, 0, True)]
    while stack:
        system, level, begins = stack.pop()
        yield system, level, begins
        if begins and system in opened:
            stack.append((system, level, False))
            stack.extend((child, level + 1, True) for child in reversed(system.children or ()))
