"""The API reference names everything that is public, and everything public says what it is."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import flexure as fx

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted((DOCS / "api").glob("*.rst"))
NAMESPACES = [fx, fx.compliance, fx.fitting, fx.laws]
ITEMS = {name: getattr(namespace, name) for namespace in NAMESPACES for name in namespace.__all__}
MODULES = [name for name, item in ITEMS.items() if inspect.ismodule(item)]
OBJECTS = [name for name in ITEMS if name not in (*MODULES, "TIME")]
GROUPS = [
    *("Build", "Blocks", "Mechanisms", "Force elements", "Simulate", "Look", "Analyze"),
    *("Design", "Namespaces"),
]


def in_the_reference() -> list[str]:
    """List what the reference documents: entries of its tables, modules and data."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    entries = re.findall(r"^   (\w+)$", text, re.MULTILINE)
    modules = re.findall(r"^\.\. automodule:: flexure\.(\w+)$", text, re.MULTILINE)
    data = re.findall(r"^\.\. py:data:: (\w+)$", text, re.MULTILINE)
    return [*entries, *modules, *data]


@pytest.mark.parametrize("name", ITEMS)
def test_public_name_is_in_the_reference_once(name: str) -> None:
    assert in_the_reference().count(name) == 1


def test_every_name_is_in_one_group_of_the_overview() -> None:
    text = (DOCS / "api.rst").read_text(encoding="utf-8")
    heads = list(re.finditer(r"^(.+)\n-+\n", text, re.MULTILINE))
    assert [head[1] for head in heads] == GROUPS
    grouped = text[heads[0].end() :]
    names = [*re.findall(r"`(\w+)`", grouped), *re.findall(r"[:`]fx\.(\w+) <", grouped)]
    assert sorted(names) == sorted(fx.__all__)


@pytest.mark.parametrize("name", [*MODULES, *OBJECTS])
def test_public_name_has_a_docstring_of_its_own(name: str) -> None:
    summary = (ITEMS[name].__doc__ or "").strip().partition("\n")[0]
    assert summary.endswith(".")
    assert not summary.startswith(f"{name}(")  # what dataclasses write when nobody else does


def test_the_errors_in_the_reference_are_those_of_the_module() -> None:
    text = next(page for page in PAGES if page.stem == "errors").read_text(encoding="utf-8")
    listed = re.findall(r"^\.\. autoexception:: (\w+)$", text, re.MULTILINE)
    assert sorted(listed) == fx.errors.__all__


@pytest.mark.parametrize("name", fx.errors.__all__)
def test_every_error_has_a_docstring(name: str) -> None:
    error = getattr(fx.errors, name)
    assert error.__doc__
    assert error.__doc__.strip().partition("\n")[0].endswith(".")
    assert error.__doc__ not in [base.__doc__ for base in error.__bases__]
