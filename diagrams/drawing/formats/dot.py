"""Diagrams in the languages of Graphviz and Mermaid, which many sites draw from the text."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from flexure.diagrams.drawing.arrangement.content import (
    Content,
    Fold,
    Row,
    caption_of,
    content_of,
    label_of,
    role_of,
    walk,
)
from flexure.diagrams.drawing.formats.palette import FRAME, INK, PALE, PAPER, ROLES, TAG, Look
from flexure.diagrams.systems.diagram import Diagram, ShownPorts
from flexure.diagrams.systems.ports import InputPort, Port
from flexure.diagrams.systems.system import System

_HEAD = f"""\
  rankdir=LR;
  bgcolor="{PAPER}";
  fontname="Helvetica";
  fontsize=10;
  node [shape=plain, fontname="Helvetica", fontsize=10];
  edge [arrowsize=0.6, color="{INK}"];"""


def to_dot(diagram: Diagram, depth: int = 1, ports: ShownPorts = "used") -> str:
    """Return a diagram in the language of Graphviz; equal diagrams give equal texts.

    Blocks are tables with a cell for each port, opened diagrams are clusters, and their exported
    ports are small nodes, at which the wires from outside and from inside meet. A node is named
    by the path of its block, and that of an exported port by path, colon and name of the port.
    """
    content = content_of(diagram, depth, ports)
    opened = content.opened
    skip = len(diagram.path) + 1 if diagram.path else 0

    def node(system: System) -> str:
        return system.path[skip:]

    def end(port: Row) -> str:
        if port.system in opened or isinstance(port, Fold):
            return _quoted(f"{node(port.system)}:{port.name}")
        return f"{_quoted(node(port.system))}:{_cell(port)}"

    lines = [f"digraph {_quoted(diagram.name)} {{", _HEAD]
    for system, level, begins in walk(diagram, opened):
        indent = "  " * level
        if system not in opened:
            lines.append(f"{indent}{_quoted(node(system))} [label=<{_table(system, content)}>];")
        elif begins:
            if system is not diagram:
                lines.append(f"{indent}subgraph {_quoted('cluster_' + node(system))} {{")
                lines.append(f"{indent}  {_frame(system)}")
            lines += [f"{indent}  {end(port)} [{_tag(port)}];" for port in content.rows(system)]
        elif system is not diagram:
            lines.append(f"{indent}}}")
    for current in opened:
        lines += [
            f"  {end(source)}:e -> {end(target)}:w;" for source, target in content.links(current)
        ]
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    """Write a name as a string of the language."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _cell(port: Port) -> str:
    """Name the cell of a port in the table of its block."""
    return f"{'i' if isinstance(port, InputPort) else 'o'}{port.index}"


def _texts(system: System, between: str) -> str:
    """Write the name and the caption of a system."""
    caption = f'<FONT POINT-SIZE="8" COLOR="{PALE}">{escape(caption_of(system))}</FONT>'
    return f"<B>{escape(system.name)}</B>{between}{caption}"


def _table(system: System, content: Content) -> str:
    """Write the label of a closed block; diagrams, which can be opened, have a thick edge."""
    look = ROLES[role_of(system)]
    cells = [
        _side(content.inputs(system), "LEFT"),
        f'<TD CELLPADDING="5">{_texts(system, "<BR/>")}</TD>',
        _side(content.outputs(system), "RIGHT"),
    ]
    return (
        f'<TABLE BORDER="{1 if system.children is None else 2}" STYLE="ROUNDED" '
        f'CELLBORDER="0" CELLSPACING="0" CELLPADDING="0" COLOR="{look.edge}" '
        f'BGCOLOR="{look.fill}"><TR>{"".join(cells)}</TR></TABLE>'
    )


def _side(ports: Sequence[Row], align: str) -> str:
    """Write the cells of the rows of one side of a block."""
    if not ports:
        return ""
    rows = "".join(f"<TR>{_row(port, align)}</TR>" for port in ports)
    table = f'<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="3">{rows}</TABLE>'
    return f'<TD><FONT POINT-SIZE="8">{table}</FONT></TD>'


def _row(port: Row, align: str) -> str:
    """Write the cell of a port, where edges can end, or that of a line of others."""
    text = escape(label_of(port))
    if isinstance(port, Fold):
        return f'<TD ALIGN="{align}"><FONT COLOR="{PALE}">{text}</FONT></TD>'
    return f'<TD PORT="{_cell(port)}" ALIGN="{align}">{text}</TD>'


def _frame(system: System) -> str:
    """Write the attributes of the cluster of an opened diagram."""
    return (
        f'label=<{_texts(system, " ")}>; labeljust="l"; style="rounded,filled"; '
        f'color="{FRAME.edge}"; fillcolor="{FRAME.fill}";'
    )


def _tag(port: Row) -> str:
    """Write the attributes of the node of an exported port."""
    if isinstance(port, Fold):
        return f'shape="plaintext", label={_quoted(port.name)}, fontsize=8, fontcolor="{PALE}"'
    return (
        f'shape="cds", label={_quoted(port.name)}, fontsize=8, height=0.25, style="filled", '
        f'color="{TAG.edge}", fillcolor="{TAG.fill}"'
    )


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
