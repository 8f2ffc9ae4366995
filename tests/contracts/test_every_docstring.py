"""Docstrings of all public names, and of blocks: parameters, equations, units, errors, examples."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import flexure as fx
from tests.contracts.catalog import CATALOG, KINDS
from tests.support.tiers import for_each

docscrape = pytest.importorskip("numpydoc.docscrape")

#: How docstrings may put a unit instead.
IN_WORDS = {
    "s": "seconds",
    "1/s": "per s",
    "1/s^2": "per s²",
    "m^2": "m²",
    "m/s^2": "m/s²",
    "kg m^2": "kg m²",
}

#: Arguments that the docstring of another class describes, to which the own one refers.
IN_OTHERS = {"label", *(field.name for field in fields(fx.DoorHingeConfig))}

every_kind = for_each("kind", KINDS)


def sections(kind: Any) -> Any:
    return docscrape.NumpyDocString(inspect.getdoc(kind))


def described(doc: Any) -> set[str]:
    """Return the names in the sections on parameters and attributes."""
    entries = [*doc["Parameters"], *doc["Attributes"]]
    return {name.lstrip("*") for entry in entries for name in entry.name.split(", ")}


def faults_of(name: str, item: Any, *, is_made: bool, is_error: bool) -> Iterator[str]:
    """Yield the rules for docstrings of public names that a function or class breaks."""
    first = (item.__doc__ or "").strip().partition("\n")[0]
    if item.__name__ != name:
        yield f"its own name is {item.__name__}"
    if not first.endswith(".") or len(first) > 80 or first.startswith(f"{name}("):
        yield f"a first line of at most 80 characters that ends with a period, not {first!r}"
    if is_error:
        return
    doc = sections(item)
    has_example = any(line.startswith(">>>") for line in doc["Examples"])
    if not has_example and not is_made:  # otherwise the function has one
        yield "an example"
    if not doc["See Also"]:
        yield "See Also"
    if inspect.isfunction(item) and re.match(r"(?:The|An?|\w+[^s]s) ", first):
        yield f"a first line in the imperative, not {first!r}"
    if not is_made and "ade by `" not in (inspect.getdoc(item) or ""):
        given = inspect.signature(item).parameters.values()
        names = {each.name for each in given if each.kind is not each.VAR_KEYWORD}
        yield from {each for each in names if each[0] != "_"} - described(doc) - IN_OTHERS


def test_public_names_are_documented_for_readers() -> None:
    """Errors need a first line only; classes of `results` are made by functions."""
    wrong = []
    for place in (fx, *(getattr(fx, each) for each in vars(fx)["__all__"] if each.islower())):
        if not inspect.ismodule(place) or place.__name__.count(".") != 1:
            continue
        for name in getattr(place, "__all__", ()):
            item = getattr(place, name)
            if callable(item):
                kinds = {"is_made": place is fx.results, "is_error": place is fx.errors}
                wrong += [f"{name}: {fault}" for fault in faults_of(name, item, **kinds)]
    assert wrong == []


@every_kind
def test_every_parameter_of_the_constructor_is_described(kind: type[fx.LeafSystem]) -> None:
    named = [
        name.lstrip("*")  # numpydoc shows how many arguments there may be
        for entry in sections(kind)["Parameters"]
        for name in entry.name.split(", ")
    ]
    assert sorted(named) == sorted(inspect.signature(kind).parameters)
    assert all(entry.desc for entry in sections(kind)["Parameters"])


@every_kind
def test_the_equation_comes_first(kind: type[fx.LeafSystem]) -> None:
    head = "\n".join([*sections(kind)["Summary"], *sections(kind)["Extended Summary"]])
    has_outputs = any(make().output_ports for make in CATALOG.values() if make.func is kind)
    assert not has_outputs or re.search(r"\S [=≈] \S", head)


@every_kind
def test_units_of_parameters_are_told(kind: type[fx.LeafSystem]) -> None:
    doc = inspect.getdoc(kind) or ""
    if kind is fx.DoorHinge:  # its constants come in one argument
        doc += inspect.getdoc(fx.DoorHingeConfig) or ""
    units = {
        unit
        for make in CATALOG.values()
        if make.func is kind
        for parameter in make().numeric_parameters
        for unit in parameter.unit.split(", ")
    }
    for unit in units:
        told = re.search(rf"(?<![\w/]){re.escape(unit)}(?![\w/])", doc)
        assert told or IN_WORDS[unit] in doc, unit


@every_kind
def test_errors_and_an_example_are_given(kind: type[fx.LeafSystem]) -> None:
    doc = sections(kind)
    assert {entry.type for entry in doc["Raises"]} & {"DeclarationError", "ValueRefusedError"}
    assert any(line.startswith(">>>") for line in doc["Examples"])


@pytest.mark.parametrize(
    ("kind", "hooks"),
    [
        (fx.LeafSystem, {"calc_time_derivatives", "calc_next_break_time"}),
        (
            fx.multibody.ForceElement,
            {"calc_stored_energy", "calc_conservative_power", "calc_non_conservative_power"},
        ),
        (fx.multibody.BodyForceElement, {"calc_spatial_forces"}),
        (fx.multibody.JointForceElement, {"calc_generalized_force"}),
    ],
)
def test_a_base_class_numbers_what_its_subclasses_promise(kind: type, hooks: set[str]) -> None:
    doc = inspect.getdoc(kind) or ""
    points = [int(number) for number in re.findall(r"^(\d+)\. ", doc, flags=re.MULTILINE)]
    assert points == list(range(1, len(points) + 1))
    assert len(points) > 1
    assert hooks <= vars(kind).keys() & set(re.findall(r"`(calc_\w+)`", doc))
    root = Path(__file__).parents[2]
    assert all((root / path).is_file() for path in re.findall(r"``(tests/\S+)``", doc))
