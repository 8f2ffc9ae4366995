"""The docstring of every block: all parameters, equations, units, errors, an example."""

from __future__ import annotations

import inspect
import re
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

every_kind = for_each("kind", KINDS)


def sections(kind: type) -> Any:
    return docscrape.NumpyDocString(inspect.getdoc(kind))


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
            fx.ForceElement,
            {"calc_stored_energy", "calc_conservative_power", "calc_non_conservative_power"},
        ),
        (fx.BodyForceElement, {"calc_spatial_forces"}),
        (fx.JointForceElement, {"calc_generalized_force"}),
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
