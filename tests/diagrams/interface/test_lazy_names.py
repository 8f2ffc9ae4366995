"""Packages that import their modules when the first of their names is asked for."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from flexure.diagrams.interface.lazy_names import Deferred

FACE = """
from flexure.diagrams.interface.lazy_names import on_demand

NAMES = {"shapes": "Circle Square", "inner.colors": "RED"}
__getattr__, __dir__ = on_demand(__name__, NAMES, elsewhere=["tools"])
__all__ = ["RED", "Circle", "Square", "tools"]
"""
MODULES = {
    "shapes": "class Circle:\n    def area(self): ...\nclass Square: ...\nclass Hidden: ...\n",
    "inner/__init__": "",
    "inner/colors": "RED = 'red'\n",
    "extra": (
        "def measured(square, *, times=1):\n"
        "    'Return an area.'\n"
        "    return times * square.side**2\n"
    ),
    "tools": 'def measure(): ...\ndef hidden(): ...\n__all__ = ["measure"]\n',
    "faulty": "import no_such_module_at_all\n",
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Import a package of which no module is imported yet."""
    for name, text in {"__init__": FACE, **MODULES}.items():
        file = tmp_path / "gallery" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("gallery")
    for name in imported():
        del sys.modules[name]


def imported() -> set[str]:
    """Name the package and its modules as far as they are imported."""
    return {name for name in sys.modules if name.partition(".")[0] == "gallery"}


def test_nothing_is_imported_before_a_name_is_asked_for(package: ModuleType) -> None:
    assert imported() == {"gallery"}
    assert {"RED", "Circle", "Square", "tools"} <= set(dir(package))
    assert imported() == {"gallery"}


def test_a_name_imports_its_module_and_no_other(package: ModuleType) -> None:
    circle = package.Circle
    assert imported() == {"gallery", "gallery.shapes"}
    assert circle is sys.modules["gallery.shapes"].Circle
    assert vars(package)["Circle"] is circle


def test_a_name_may_come_from_further_down(package: ModuleType) -> None:
    assert package.RED == "red"
    assert imported() == {"gallery", "gallery.inner", "gallery.inner.colors"}


def test_a_star_import_brings_every_name(package: ModuleType) -> None:
    names: dict[str, object] = {}
    exec("from gallery import *", names)
    assert {"RED", "Circle", "Square"} <= set(names)
    assert "Hidden" not in names


def test_modules_can_be_reached_through_the_package(package: ModuleType) -> None:
    assert package.extra is importlib.import_module("gallery.extra")
    assert package.shapes.Hidden.__module__ == "gallery.shapes"


@pytest.mark.parametrize("name", ["Hidden", "circle", "_private", "__wrapped__"])
def test_other_names_do_not_exist(package: ModuleType, name: str) -> None:
    assert not hasattr(package, name)
    with pytest.raises(AttributeError, match=f"^module 'gallery' has no attribute '{name}'$"):
        getattr(package, name)
    with pytest.raises(ImportError, match=f"cannot import name '{name}' from 'gallery'"):
        exec(f"from gallery import {name}")


def test_what_a_module_offers_by_itself_is_found_by_a_hint(package: ModuleType) -> None:
    assert not hasattr(package, "measure")
    with pytest.raises(AttributeError, match=r"'measure': it is gallery\.tools\.measure$"):
        _ = package.measure
    with pytest.raises(AttributeError, match=r"no attribute 'hidden'$"):
        _ = package.hidden
    assert package.tools.measure.__name__ == "measure"


def test_an_import_of_what_is_elsewhere_has_the_same_hint(package: ModuleType) -> None:
    _ = package.Circle
    for name, hint in {
        "measure": ": it is gallery.tools.measure",
        "area": ": it is a member of 'Circle'",
        "circle": r"\. Did you mean 'Circle'\?",
        "unheard_of": "",
    }.items():
        with pytest.raises(
            ImportError, match=f"^cannot import name '{name}' from 'gallery'{hint}$"
        ):
            exec(f"from gallery import {name}")
        assert not hasattr(package, name)
        assert getattr(package, name, None) is None


def test_members_of_imported_classes_are_found_by_a_hint(package: ModuleType) -> None:
    assert not hasattr(package, "area")
    assert imported() == {"gallery"}
    _ = package.Circle
    with pytest.raises(AttributeError, match=r"'area': it is a member of 'Circle'$"):
        _ = package.area


def test_names_of_machinery_import_nothing(package: ModuleType) -> None:
    assert not hasattr(package, "__wrapped__")
    assert imported() == {"gallery"}


def test_a_module_that_cannot_be_imported_says_why(package: ModuleType) -> None:
    with pytest.raises(ModuleNotFoundError, match="'no_such_module_at_all'"):
        _ = package.faulty


def test_a_method_may_be_a_function_of_a_module_that_is_imported_at_its_first_use(
    package: ModuleType,
) -> None:
    class Square:
        measured = Deferred("gallery.extra").measured

        def __init__(self, side: float) -> None:
            self.side = side

    assert "gallery.extra" not in imported()
    assert Square(3.0).measured(times=2) == 18.0
    assert imported() >= {"gallery.extra"}
    method = Square.measured
    assert method.__qualname__.endswith("Square.measured")
    assert method.__doc__ == "Return an area."
    assert [*inspect.signature(method).parameters] == ["square", "times"]
    with pytest.raises(TypeError, match=r"Square\.measured\(\) got an unexpected keyword"):
        Square(3.0).measured(size=1)
    assert not hasattr(Deferred("gallery.extra"), "__wrapped__")
