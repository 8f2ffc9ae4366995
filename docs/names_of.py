"""The overview of the reference: names of a group, read from the page that documents them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from sphinx.application import Sphinx

API = Path(__file__).parent / "api"


def groups_of(page: str) -> dict[str, list[str]]:
    """Return the names in the tables of a page of the reference, by its headings, in their order.

    Parameters
    ----------
    page : str
        Name of the page, such as ``"blocks"``.
    """
    text = (API / f"{page}.rst").read_text(encoding="utf-8")
    parts = re.split(r"^(.+)\n-+\n", text, flags=re.MULTILINE)
    entries = re.compile(r"^   (?:\.\. py:data:: )?([\w.]+)$|^\.\. py:data:: (\w+)$", re.MULTILINE)
    return {
        heading: [one or two for one, two in entries.findall(body)]
        for heading, body in zip(parts[1::2], parts[2::2], strict=True)
    }


class NamesOf(SphinxDirective):
    """List the names of a group, as in ``.. names-of:: blocks Joints``."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Return a paragraph with a reference to each name."""
        page, _, heading = self.arguments[0].partition(" ")
        entries = groups_of(page)[heading]
        names = ", ".join(f"`{name}`" for name in entries if "." not in name)
        found = nodes.container()
        self.state.nested_parse(StringList([names], source="names-of"), 0, found)
        return list(found.children)


def setup(app: Sphinx) -> None:
    """Register the directive."""
    app.add_directive("names-of", NamesOf)
