"""Notebook display of blocks, diagrams and contexts: drawings and folded tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from flexure.diagrams.interface.html import fold, heading, note
from flexure.diagrams.systems.diagram import Diagram
from flexure.diagrams.values.tables import Table, cell_text

if TYPE_CHECKING:
    from flexure.diagrams.contexts.context import Context
    from flexure.diagrams.systems.system import System

_DRAWN = 60  # blocks of a diagram that is drawn
_OPENED = 14  # rows of a context that need no folding
_GROUPS = 40  # blocks of a context, and blocks of a diagram in a table
_ROWS = 30  # of a block
_ALL = 600  # rows of a context


def system_pieces(system: System) -> Iterator[str]:
    """Show a block by its ports, states and parameters, and a diagram by its drawing, too."""
    if isinstance(system, Diagram):
        count = len(system.children)
        if count <= _DRAWN:
            from flexure.diagrams.drawing.formats.svg import without_paper

            yield f"<div>{without_paper(system.to_svg())}</div>"
        else:
            yield heading(type(system).__name__, system.label, f"{_counted(count, 'block')}")
            kinds = ((each.name, type(each).__name__) for each in system.children)
            yield fold("Blocks", Table(("block", "kind"), kinds).to_html(_GROUPS))
            yield note(f"not drawn, since it has more than {_DRAWN} blocks; plot() draws it")
    else:
        yield heading(type(system).__name__, system.label)
    is_block = system.children is None
    for title, table in (("Parameters", system.parameters()), ("Signals", system.signals())):
        if len(table):
            inside = without_empty(table).to_html(_ROWS)
            yield fold(title, inside, len(table), opened=is_block)


def context_pieces(context: Context) -> Iterator[str]:
    """Show the values of a context, folded by block."""
    table = context.describe()[1:]  # without the time, which stands above
    remark = f"t = {context.time:g} s, {_counted(len(table), 'value')}"
    changed = sum(table["changed"])
    remark += f", {changed} not as in a default context (*)" * bool(changed)
    yield heading("Context", context.system.label, remark)
    groups: dict[str, list[int]] = {}
    for k, path in enumerate(table["path"]):
        name, dot, _ = path.partition(".")
        groups.setdefault(name if dot else "", []).append(k)
    columns = ("path", "kind", "value", "unit", "bounds", "doc")
    rows = [
        tuple(_shown(row) if name == "value" else row[name] for name in columns) for row in table
    ]
    opened = len(rows) <= _OPENED
    for shown, (name, numbers) in enumerate(groups.items()):
        if shown >= _GROUPS:
            more = _counted(len(groups) - shown, "more block")
            yield note(f"{more}; describe() has all, describe('block.*') those of one")
            return
        part = Table(columns, [rows[k] for k in numbers])
        differs = sum(table[k]["changed"] for k in numbers)
        about = _counted(len(part), "value") + f", {differs} changed" * bool(differs)
        most = max(4, min(_ROWS, _ALL // len(groups)))
        inside = without_empty(part).to_html(most)
        is_open = opened or bool(differs and len(part) <= _OPENED)
        yield fold(name, inside, about, opened=is_open) if name else inside


def _shown(row: dict[str, Any]) -> str:
    """Return a value with a star if it is not as in a default context."""
    text = cell_text(row["value"])
    return f"{text} *" if row["changed"] else text


def without_empty(table: Table) -> Table:
    """Return a table without the columns in which there is nothing."""
    kept = [
        name
        for name in table.columns
        if any(value is not None and value is not False and str(value) for value in table[name])
    ]
    columns = [table[name] for name in kept]
    return Table(kept, zip(*columns, strict=True))


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' if count != 1 else ''}"
