"""Diagrams as Mermaid flowcharts, which many sites draw from the text."""

from __future__ import annotations

from flexure.diagrams.drawing.arrangement.content import (
    Row,
    caption_of,
    content_of,
    label_of,
    role_of,
    walk,
)
from flexure.diagrams.drawing.formats.palette import FRAME, INK, ROLES, TAG, Look
from flexure.diagrams.systems.diagram import Diagram, ShownPorts
from flexure.diagrams.systems.system import System

#: Entities of Mermaid; the first one has to be replaced first.
_ENTITIES = {"#": "#35;", "&": "#amp;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "`": "#96;"}


def to_mermaid(diagram: Diagram, depth: int = 1, ports: ShownPorts = "used") -> str:
    """Return a diagram as a Mermaid flowchart; equal diagrams give equal texts.

    Opened diagrams are subgraphs. Mermaid knows no ports: their names stand on the wires, except
    for the only port of its side with a usual name, and exported ports are nodes.
    """
    content = content_of(diagram, depth, ports)
    opened = content.opened
    ids: dict[System | Row, str] = {}
    looks: dict[str, Look] = {}
    lines = ["flowchart LR"]
    for system, level, begins in walk(diagram, opened):
        indent = "  " * level
        if begins:
            ids[system] = f"n{len(ids)}"
        if system not in opened:
            role = role_of(system)
            looks[role] = ROLES[role]
            text = f"<b>{_escape(system.name)}</b><br/><small>{_escape(caption_of(system))}</small>"
            lines.append(f'{indent}{ids[system]}["{text}"]:::{role}')
        elif begins:
            if system is not diagram:
                looks["frame"] = FRAME
                lines.append(f'{indent}subgraph {ids[system]}["{_escape(system.name)}"]')
            for port in content.rows(system):
                ids[port] = f"n{len(ids)}"
                looks["port"] = TAG
                lines.append(f'{indent}  {ids[port]}(["{_escape(port.name)}"]):::port')
        elif system is not diagram:
            lines.append(f"{indent}end")

    def end(port: Row) -> str:
        return ids[port] if port in ids else ids[port.system]

    def label(port: Row) -> str:
        return "" if port in ids else _escape(label_of(port))

    for current in opened:
        for source, target in content.links(current):
            text = f"{label(source)} → {label(target)}".strip()
            arrow = "-->" if text == "→" else f'-->|"{text}"|'
            lines.append(f"  {end(source)} {arrow} {end(target)}")
    lines += [f"  class {ids[current]} frame" for current in opened if current is not diagram]
    lines += [
        f"  classDef {name} fill:{look.fill},stroke:{look.edge},color:{INK}"
        for name, look in looks.items()
    ]
    return "\n".join(lines) + "\n"


def _escape(text: str) -> str:
    """Write a text such that none of it is read as Mermaid or as HTML."""
    for character, entity in _ENTITIES.items():
        text = text.replace(character, entity)
    return text
