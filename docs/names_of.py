"""The tables of the reference: what they list by hand, and whatever else is public in their rooms.

A page of the reference has tables, ``.. public-names:: blocks.multibody.joints``, with the names
that come first. All other public names of these rooms follow by themselves, each in the table with
the nearest room, so that a new name is in the reference as soon as its folder imports it. The
overview lists the names of a table, each with its summary, by ``.. names-of:: blocks Joints``.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import flexure

if TYPE_CHECKING:
    from sphinx.application import Sphinx

HERE = Path(__file__).parent
PAGES = ("diagrams", "blocks", "solvers")
#: Where autosummary finds the names for which it is to make pages.
LISTED = HERE / "_generated" / "names.rst"

_TABLE = re.compile(
    r"^\.\. (?:autosummary|public-names)::(?P<rooms>.*)\n"
    r"(?P<options>(?:   :.*\n)*)\n?(?P<names>(?:   [\w.]+\n)*)",
    re.MULTILINE,
)


class Table(NamedTuple):
    """A table of the reference.

    ``rooms`` are where further names come from, ``options`` its lines with options, and ``names``
    what it lists.
    """

    page: str
    heading: str
    rooms: tuple[str, ...]
    options: str
    names: list[str]


@cache
def tables() -> list[Table]:
    """Return all tables of the reference, with the names that come by themselves."""
    found = []
    for page in PAGES:
        text = (HERE / "api" / f"{page}.rst").read_text(encoding="utf-8")
        parts = re.split(r"^(.+)\n-+\n", text, flags=re.MULTILINE)
        for heading, body in zip(parts[1::2], parts[2::2], strict=True):
            for match in _TABLE.finditer(body):
                rooms = tuple(f"flexure.{room}" for room in match["rooms"].split())
                names = match["names"].split()
                found.append(Table(page, heading, rooms, match["options"], names))
    listed = {name for table in found for name in table.names}
    for name in vars(flexure)["__all__"]:
        module = getattr(getattr(flexure, name), "__module__", "")
        near = [(room, table) for table in found for room in table.rooms if _is_in(module, room)]
        if near and name not in listed:
            max(near, key=lambda each: len(each[0]))[1].names.append(name)
    return found


def _is_in(module: str, room: str) -> bool:
    return module == room or module.startswith(f"{room}.")


def groups_of(page: str) -> dict[str, list[str]]:
    """Return the names of a page by its headings, ``TIME`` and names in other modules apart."""
    groups: dict[str, list[str]] = {}
    for table in tables():
        if table.page == page:
            names = [name for name in table.names if "." not in name]
            groups.setdefault(table.heading, []).extend(names)
    return groups


def list_names() -> None:
    """Write all tables as autosummary reads them to make a page for each name."""
    LISTED.parent.mkdir(exist_ok=True)
    text = ".. currentmodule:: flexure\n\n"
    for table in tables():
        options = table.options.replace("../_generated/api", "api")
        names = "".join(f"   {name}\n" for name in table.names)
        text += f".. autosummary::\n{options}\n{names}\n"
    LISTED.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives."""
    from docutils import nodes
    from docutils.parsers.rst import directives
    from docutils.statemachine import StringList
    from sphinx.ext.autosummary import Autosummary

    class PublicNames(Autosummary):  # type: ignore[misc, unused-ignore]
        """A table with the names that it lists, and those of its rooms."""

        optional_arguments = 1
        final_argument_whitespace = True
        content: StringList

        def run(self) -> list[nodes.Node]:
            first = [str(line).strip() for line in self.content]
            rooms = tuple(f"flexure.{room}" for room in self.arguments[0].split())
            (names,) = (
                table.names
                for table in tables()
                if table.rooms == rooms and table.names[: len(first)] == first
            )
            self.content = StringList(names, source="public-names")
            return list(super().run())

    class NamesOf(Autosummary):  # type: ignore[misc, unused-ignore]
        """A table of the names of a group with a line on each: ``.. names-of:: blocks Joints``."""

        required_arguments = 1
        final_argument_whitespace = True
        has_content = False
        option_spec: ClassVar = {"nosignatures": directives.flag}

        def run(self) -> list[nodes.Node]:
            page, _, heading = self.arguments[0].partition(" ")
            self.options["nosignatures"] = None
            self.content = StringList(groups_of(page)[heading], source="names-of")
            return list(super().run())

    app.add_directive("public-names", PublicNames)
    app.add_directive("names-of", NamesOf)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
