"""The names of `flexure`, which the tables of its folders list: each is there, and documented."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import subprocess
import sys
from operator import attrgetter
from types import ModuleType
from typing import Any

import pytest

import flexure as fx
from flexure.diagrams.interface.synonyms import SYNONYMS
from tests.support.calls.public_methods import CALLS

#: What is public, says the table of each folder: the imports of its `__init__.py`.
NAMES = sorted(vars(fx)["__all__"])
NAMESPACES = {
    name: sorted(getattr(fx, name).__all__)
    for name in NAMES
    if isinstance(getattr(fx, name), ModuleType) and name not in ("blocks", "diagrams", "solvers")
}
IN_NAMESPACES = [(namespace, name) for namespace, names in NAMESPACES.items() for name in names]
PACKAGES = [fx, fx.blocks, fx.diagrams, fx.solvers]

#: Functions and classes that have one name, but for capitals and underscores.
CLASSES = {name.lower(): getattr(fx.results, name) for name in vars(fx.results)["__all__"]}
PAIRS = [
    (name, CLASSES[name.replace("_", "")])
    for name in NAMES
    if name.islower() and name.replace("_", "") in CLASSES
]

every_pair = pytest.mark.parametrize(("function", "kind"), PAIRS)


def test_nothing_else_is_public_but_modules() -> None:
    others = {name for name in vars(fx) if not name.startswith("_")} - set(NAMES)
    assert [name for name in others if not isinstance(getattr(fx, name), ModuleType)] == []


def test_names_in_namespaces_are_found_from_outside() -> None:
    wrong = []
    for namespace, name in IN_NAMESPACES:
        with pytest.raises(AttributeError) as refused:
            getattr(fx, name)
        if not str(refused.value).endswith(f"'{name}': it is flexure.{namespace}.{name}"):
            wrong.append(f"{namespace}.{name}: {refused.value}")
    assert wrong == []


def test_words_of_other_programs_lead_to_the_name_that_it_has_here() -> None:
    assert len(SYNONYMS) >= 150
    for word, here in SYNONYMS.items():
        assert word not in NAMES
        found = attrgetter(here.partition("(")[0])(fx)
        assert found is not None
        with pytest.raises(AttributeError) as refused:
            getattr(fx, word)
        assert str(refused.value).endswith(f"'{word}': here it is flexure.{here}")


def test_a_name_that_is_missing_imports_no_packages() -> None:
    code = "import sys, flexure; print(hasattr(flexure, 'unheard_of'), *sys.modules)"
    command = [sys.executable, "-c", code]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert shown[0] == "False"
    assert not {"numpy", "networkx", "flexure.diagrams.systems.system"} & set(shown)


def test_unknown_names_in_namespaces_are_attribute_errors() -> None:
    modules = [importlib.import_module(f"flexure.{namespace}") for namespace in NAMESPACES]
    assert not any(hasattr(module, "nothing") for module in modules)


def test_a_name_that_is_in_another_namespace_is_found_from_every_one() -> None:
    for name, place in (
        ("simulate", "it is flexure.simulate"),
        ("grid", "it is flexure.plans.grid"),
        ("Mux", "here it is flexure.Multiplexer"),
    ):
        for package in (fx.blocks, fx.diagrams, fx.laws, fx.errors):
            with pytest.raises(AttributeError) as refused:
                getattr(package, name)
            assert str(refused.value).endswith(f"has no attribute '{name}': {place}")


def test_namespaces_are_listed_before_they_are_imported() -> None:
    code = "import sys, flexure; print(*dir(flexure), '|', *sys.modules)"
    command = [sys.executable, "-c", code]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    listed, loaded = (part.split() for part in shown.split("|"))
    assert set(NAMESPACES) <= set(listed)
    assert not {f"flexure.{namespace}" for namespace in NAMESPACES} & set(loaded)


@pytest.mark.filterwarnings("ignore:.* still moves:UserWarning")
@every_pair
def test_a_function_returns_an_object_of_the_class_of_the_same_name(
    function: str, kind: type
) -> None:
    call = CALLS[function]()
    assert type(call.function(**call.arguments)) is kind


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        *(pair for pair in PAIRS if pair[0] != "compiled_equations"),
        ("optimize", fx.results.Optimization),
        ("tolerances", fx.results.Tolerances),
    ],
)
def test_who_calls_the_class_is_told_the_function(function: str, kind: Any) -> None:
    arguments = CALLS[function]().arguments
    told = rf"the class {kind.__name__}: .* fx\.{function},.* Write fx\.{function}\(\.\.\.\)"
    with pytest.raises(fx.errors.ValueRefusedError, match=told):
        kind(**arguments)
    with pytest.raises(fx.errors.ValueRefusedError, match=told):
        kind(*list(arguments.values())[:2])


def test_pairs_that_differ_in_case_only_are_known() -> None:
    assert [f for f, kind in PAIRS if f == kind.__name__.lower()] == [
        "buckling",
        "equation",
        "equilibrium",
        "fit",
        "gradient",
        "live",
        "margins",
        "modes",
        "norms",
        "page",
        "stiffness",
        "sweep",
        "tolerances",
        "tune",
        "widget",
    ]


def test_names_hide_no_modules() -> None:
    """A submodule of the same name would replace the item as soon as somebody imports it."""
    hidden = [
        f"{package.__name__}.{module.name}"
        for package in PACKAGES
        for module in pkgutil.iter_modules(package.__path__)
        if module.name in NAMES and not isinstance(getattr(package, module.name), ModuleType)
    ]
    assert hidden == []


@pytest.mark.parametrize("package", PACKAGES[1:], ids=lambda package: package.__name__)
def test_the_imports_of_a_folder_are_what_it_offers(package: ModuleType) -> None:
    """A name is imported there for type checkers, as itself, and on demand."""
    source = inspect.getsource(package)
    (told,) = (node for node in ast.parse(source).body if isinstance(node, ast.If) and node.orelse)
    homes = {
        alias.name: node.module or ""
        for node in told.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    }
    assert sorted(homes) == package.__all__
    for name, module in homes.items():
        assert getattr(package, name) is getattr(importlib.import_module(module), name)
