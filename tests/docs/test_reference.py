"""The API reference lists all public names, once."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import flexure as fx
from docs.names_of import PAGES as NAME_PAGES, groups_of, tables

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted((DOCS / "api").glob("*.rst"))
NAMESPACES = [
    *(fx, fx.compliance, fx.constraints, fx.diagrams, fx.fitting, fx.multibody, fx.laws, fx.plans),
    *(fx.results, fx.rotations, fx.sections),
]
ITEMS = {name: getattr(namespace, name) for namespace in NAMESPACES for name in namespace.__all__}
GROUPS = [
    *("Build", "Blocks", "Mechanisms", "Force elements", "Simulate", "Look", "Analyze"),
    *("Design", "Namespaces"),
]


def in_the_reference() -> list[str]:
    """List what the reference documents: entries of its tables, modules and data."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    others = [page for page in PAGES if page.stem not in NAME_PAGES]
    by_hand = "\n".join(page.read_text(encoding="utf-8") for page in others)
    entries = re.findall(r"^   (\w+)$", by_hand, re.MULTILINE)
    entries += [name.rpartition(".")[2] for table in tables() for name in table.names]
    modules = re.findall(r"^\.\. automodule:: flexure\.(\w+)$", text, re.MULTILINE)
    data = re.findall(r"^\.\. py:data:: (\w+)$", text, re.MULTILINE)
    return [*entries, *modules, *data]


def test_public_names_are_in_the_reference_once() -> None:
    counts = Counter(in_the_reference())
    assert {name: counts[name] for name in ITEMS if counts[name] != 1} == {}


def test_every_table_of_the_reference_is_in_the_overview_once() -> None:
    text = (DOCS / "api.rst").read_text(encoding="utf-8")
    assert re.findall(r"^(.+)\n-+\n", text, re.MULTILINE) == GROUPS
    listed = re.findall(r"^   \.\. names-of:: (\w+) (.+)$", text, re.MULTILINE)
    groups = {
        (page, heading): names
        for page in NAME_PAGES
        for heading, names in groups_of(page).items()
        if names
    }
    assert sorted(listed) == sorted(groups)
    found = [name for names in groups.values() for name in names]
    namespaces = re.findall(r"[:`]fx\.(\w+) <", text)
    assert sorted([*found, *namespaces, "TIME"]) == sorted(vars(fx)["__all__"])


def test_the_errors_in_the_reference_are_those_of_the_module() -> None:
    text = next(page for page in PAGES if page.stem == "errors").read_text(encoding="utf-8")
    listed = re.findall(r"^\.\. autoexception:: (\w+)$", text, re.MULTILINE)
    assert sorted(listed) == vars(fx.errors)["__all__"]
