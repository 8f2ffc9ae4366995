"""What a drawing shows, whatever its format: blocks, their roles and texts, and the links."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Literal, TypeAlias

from flexure.diagrams.diagram import Diagram
from flexure.diagrams.errors import DeclarationError
from flexure.diagrams.leaf import LeafSystem
from flexure.diagrams.ports import InputPort, Port
from flexure.diagrams.system import System

#: What a block does in a diagram: gives values, takes them, moves, samples, or just computes.
Role: TypeAlias = Literal["source", "sink", "dynamic", "sampled", "static"]


def opened_diagrams(diagram: Diagram, depth: int) -> dict[Diagram, int]:
    """Return the diagrams whose inside is shown, each before those in it, with their levels.

    Raises
    ------
    DeclarationError
        When ``depth`` is no integer of at least 1.
    """
    if type(depth) is not int or depth < 1:
        raise DeclarationError(
            f"Cannot draw '{diagram.label}'",
            expected="a depth of 1 (blocks closed), 2 (nested diagrams opened once) or more",
            found=f"depth={depth!r}",
        )
    opened: dict[Diagram, int] = {}
    stack = [(diagram, 0)]
    while stack:
        current, level = stack.pop()
        opened[current] = level
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


def ports_of(system: System) -> list[Port]:
    """Return all ports of a system, inputs first."""
    return [*system.input_ports, *system.output_ports]


def leaves_of(system: System) -> Iterator[LeafSystem]:
    """Yield the leaves inside of a system, at any depth; a leaf yields itself."""
    stack = [system]
    while stack:
        current = stack.pop()
        if isinstance(current, LeafSystem):
            yield current
        stack.extend(reversed(current.children or ()))


def role_of(system: System) -> Role:
    """Return the role of a block, which decides its color."""
    if system.output_ports and not system.input_ports:
        return "source"
    if system.input_ports and not system.output_ports:
        return "sink"
    leaves = list(leaves_of(system))
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


def label_of(port: Port) -> str:
    """Return the text beside a port; empty for the only port of its side with a usual name."""
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
