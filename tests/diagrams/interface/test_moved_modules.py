"""Imports of modules that are elsewhere, or nowhere: what the error says, and who gets none."""

from __future__ import annotations

import importlib
import importlib.util
import pickle

import pytest

import flexure as fx


def test_the_import_of_a_module_that_moved_says_where_it_is() -> None:
    layout = "flexure.diagrams.systems.layout"
    for name, missing, place in (
        ("flexure.diagrams.layout", "flexure.diagrams.layout", f"here it is '{layout}'"),
        ("flexure.diagrams.old.layout", "flexure.diagrams.old", f"here it is '{layout}'"),
        ("flexure.solvers.scalars", "flexure.solvers.scalars", "'flexure.diagrams.scalars'"),
        ("flexure.no[thing", "flexure.no[thing", "import public names from 'flexure'"),
    ):
        with pytest.raises(ModuleNotFoundError) as refused:
            importlib.import_module(name)
        assert str(refused.value).startswith(f"No module named '{name}': ")
        assert str(refused.value).endswith(place)
        assert refused.value.name == missing
    with pytest.raises(
        ModuleNotFoundError, match=r"here it is 'flexure\.diagrams\.systems\.layout'"
    ):
        pickle.loads(b"cflexure.diagrams.layout\nLayout\n.")


def test_those_who_only_look_for_a_module_find_none() -> None:
    assert importlib.util.find_spec("flexure.diagrams.layout") is None
    assert not hasattr(fx.diagrams, "layout")
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'flexures'$"):
        importlib.import_module("flexures")
