"""What notebooks show: complete, escaped, of bounded length, and never an error."""

from __future__ import annotations

import re
import warnings
import xml.etree.ElementTree as ET
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.interface.html import Shown
from flexure.diagrams.values.tables import Table
from tests.support.calls.public_methods import CALLS
from tests.support.mechanics.mechanics import Pendulum, servo
from tests.support.pages.browser import visiting
from tests.support.pages.notebooks import write_page
from tests.support.systems.many_blocks import chain

if TYPE_CHECKING:
    from playwright.sync_api import Browser

HOSTILE = "<script>alert(1)</script>"


def html(thing: Any) -> str:
    """Return what a notebook gets, of which it is a well-formed tree."""
    text = thing._repr_html_()
    assert text is not None
    return str(text)


def rows_in(text: str) -> list[list[str]]:
    """Return the cells of all tables, row by row."""
    if "</style>" in text:
        text = text.partition("</style>")[2].removesuffix("</div>")
    tree = ET.fromstring(f"<div>{text}</div>")
    return [["".join(cell.itertext()) for cell in row] for row in tree.iter("tr")]


def assert_drawn_on_any_background(text: str, drawing: str) -> None:
    """The marks are those of the drawing, and its text can be read in light and dark notebooks."""
    shown = text[text.index("<svg") : text.index("</svg>")]
    attributes = re.compile(r'(fill|stroke)="([^"]*)"')
    assert attributes.sub("", shown) == attributes.sub("", drawing[: drawing.index("</svg>")])
    assert set(re.findall(r'<text[^>]*fill="([^"]*)"', shown)) == {"currentColor"}
    areas = {color for kind, color in attributes.findall(shown) if kind == "fill"}
    for paper, ink in ((1.0, 0.13), (0.07, 0.87)):
        for area in areas - {"none", "currentColor"}:
            *color, opacity = (int(area[k : k + 2], 16) / 255.0 for k in (1, 3, 5, 7))
            mixed = opacity * np.array(color) + (1.0 - opacity) * paper
            light = [0.05 + np.mean(each) ** 2.2 for each in (mixed, ink)]
            assert max(light) / min(light) > 4.5, area


class Hostile(fx.LeafSystem):
    """A block whose texts are code for browsers."""

    def __init__(self, name: str = "block") -> None:
        super().__init__(name)
        self.gain = self.declare_numeric_parameter("gain", 2.0, unit=HOSTILE, doc=f'"{HOSTILE}&')
        self.y = self.declare_vector_output("y", 1, lambda c: [self.gain(c)], doc=HOSTILE)


# Tables and contexts -----------------------------------------------------------------------------


def test_a_table_shows_what_its_text_shows() -> None:
    table = servo().parameters()
    found = rows_in(html(table))
    assert found[0] == list(table.columns)
    assert [row[0] for row in found[1:]] == table["path"]
    for row, line in zip(found[1:], str(table).splitlines()[2:], strict=True):
        assert all(part in " ".join(row) for part in line.removeprefix("...").split()[:2])


def test_a_long_table_is_cut_in_the_middle_with_a_note() -> None:
    table = Table(("path", "number"), [(f"row {k}", k) for k in range(1000)])
    found = rows_in(table.to_html(9))
    assert [row[1] for row in found[1:]] == [*"01234", "", "996", "997", "998", "999"]
    assert "991 more rows" in table.to_html(9)
    assert len(rows_in(table.to_html())) == 1001
    assert len(html(table)) < 20_000
    with pytest.raises(fx.errors.ValueRefusedError, match="integer >= 0"):
        table.to_html("all")  # type: ignore[arg-type]


def test_a_table_without_rows_says_so() -> None:
    assert "no rows of path" in html(Table(("path", "number"), []))


def test_a_context_is_folded_by_block_and_marks_what_was_changed() -> None:
    system = servo()
    context = system.create_default_context()
    path = system.parameters()["path"][0]
    context.set(path, np.asarray(context.get(path)) + 0.5)
    text = html(context)
    found = rows_in(text)
    shown = [row[0] for row in found if row[0] != "path"]
    assert sorted(shown) == sorted(context.describe()["path"][1:])
    assert [row[0] for row in found if any(cell.endswith(" *") for cell in row)] == [path]
    names = {path.split(".")[0] for path in shown if "." in path}
    assert text.count("<summary>") == len(names)


def test_a_context_of_a_block_shows_its_values_at_once() -> None:
    context = Pendulum().create_default_context()
    assert "<details" not in html(context)
    assert len(rows_in(html(context))) == len(context.describe())


def test_a_diagram_is_drawn_and_a_block_lists_what_it_has() -> None:
    system = servo()
    assert_drawn_on_any_background(html(system), system.to_svg())
    block = Hostile()
    names = [row[0] for row in rows_in(html(block))]
    assert names == ["path", "gain", "path", "y"]


# What could go wrong ----------------------------------------------------------------------------


def test_texts_stay_texts(browser: Browser, tmp_path: Path) -> None:
    builder = fx.DiagramBuilder("diagram")
    builder.add(Hostile())
    builder.export_output("block.y", "out")
    diagram = builder.build()
    things = [
        *(diagram, diagram.create_default_context(), diagram.parameters(), diagram.signals()),
        *(fx.simulate(diagram, 1.0), fx.linearize(diagram, inputs=[]), fx.doctor(diagram)),
        *(Table((HOSTILE,), [(HOSTILE,)]), fx.equation(diagram, "out")),
    ]
    pieces = [html(thing) for thing in things]
    assert not any(HOSTILE in piece for piece in pieces)
    with visiting(browser, write_page(tmp_path / "page.html", pieces)) as visit:
        assert visit.page.locator("script").count() == 0
        assert visit.page.get_by_text(HOSTILE).count() > 3


def test_what_fails_while_it_is_shown_leaves_the_text() -> None:
    class Broken(Shown):
        def _pieces(self) -> Any:
            yield "<p>half of it</p>"
            raise RuntimeError("broken")

    assert Broken()._repr_html_() is None


def test_a_block_whose_constructor_did_not_run_can_be_looked_at() -> None:
    assert fx.Gain.__new__(fx.Gain)._repr_html_() is None


def test_what_is_too_long_for_a_notebook_leaves_the_text() -> None:
    class Long(Shown):
        def _pieces(self) -> Any:
            return ["<p>word</p>" * 10**6]

    assert Long()._repr_html_() is None


@pytest.mark.full
def test_a_diagram_of_thousands_of_blocks_is_shown_in_short() -> None:
    diagram = chain(1500).build()
    for thing in (diagram, diagram.create_default_context(), diagram.signals()):
        text = html(thing)
        assert len(text) < 60_000
        assert "more" in text


# Everything that functions return ----------------------------------------------------------------


#: Animations show themselves, and complain when nobody keeps them.
FUNCTIONS = sorted({name for name in CALLS if name.islower() and "." not in name} - {"animate"})


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_a_function_returns_can_be_shown(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # some write files
    call = CALLS[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some calls are of systems that do not come to rest
        with suppress(fx.errors.FlexureError):  # or are refused
            found = call.function(**call.arguments)
            if isinstance(found, Shown) and type(found)._repr_html_ is Shown._repr_html_:
                rows_in(html(found))
