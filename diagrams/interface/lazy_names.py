"""Packages that import their modules on demand: each when the first of its names is asked for.

A program needs few of the modules that its packages offer, and many programs run for less time than
it takes to import them all.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import update_wrapper
from importlib import import_module
from importlib.util import find_spec
from opcode import opmap
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any

from flexure.diagrams.checks.errors import closest, quoted
from flexure.diagrams.concurrency import forks  # noqa: F401, from here on, forks wait for imports

#: What the packages import for themselves.
_OWN_IMPORTS = {"TYPE_CHECKING", "imported_names", "on_demand"}


def imported_names(file: str, package: str) -> dict[str, str]:
    """Return what a module imports for type checkers, which is its table of names.

    The file has the imports ``X as X`` from the package in its block ``if TYPE_CHECKING:``. The
    table has, by the name of each module in the package, the names with spaces between them.
    """
    source = Path(file).read_text("utf-8").partition("TYPE_CHECKING:\n")[2].partition("\nelse:")[0]
    line = re.compile(
        rf"^    from {re.escape(package)}\.(\S+) import (?:\(([^)]*)\)|(.+))$", re.MULTILINE
    )
    return {
        module: re.sub(r"(\w+) as \w+,?", r"\1", several or one)
        for module, several, one in line.findall(source)
    }


def on_demand(
    package: str,
    names: Mapping[str, str],
    elsewhere: Sequence[str] = (),
    synonyms: str = "",
    *,
    root: str = "",
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package, which Python calls where they exist.

    Its ``__all__`` has all names, if it does not set another one. ``names`` is a table as from
    `imported_names`, whose modules are counted from ``root``, by default the package itself.
    ``elsewhere`` are modules in the package that offer names of their own: an error about one of
    these names, or about a member of a class that is imported, says where it is. ``synonyms`` is
    the module in the package whose ``SYNONYMS`` give, by other words, the names of the package.

    >>> from flexure import blocks
    >>> getattr_, dir_ = on_demand("flexure.blocks", {"signals.sources": "Ramp Step"})
    >>> getattr_("Ramp") is blocks.Ramp
    True
    """
    homes = {name: module for module, words in names.items() for name in words.split()}
    vars(sys.modules[package]).setdefault("__all__", sorted(homes))

    def find(name: str) -> Any:
        module = f"{package}.{name}"
        if name in homes:
            value = getattr(import_module(f"{root or package}.{homes[name]}"), name)
        elif name.startswith("_"):  # machinery asks for those, and shall import nothing
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        elif not hasattr(sys.modules[package], "__path__") or find_spec(module) is None:
            imports = _is_import(sys._getframe(1))
            here = _synonym(package, name, synonyms) or _where(package, name, homes, elsewhere)
            here = here or _in_face(package, name)
            raise _missing(package, name, here, imports=imports)
        else:
            value = import_module(module)
        setattr(sys.modules[package], name, value)  # so that nobody asks again
        return value

    def list_all() -> list[str]:
        offered = vars(sys.modules[package])
        return sorted({*offered, *homes, *offered.get("__all__", ())} - _OWN_IMPORTS)

    return find, list_all


def _missing(package: str, name: str, where: str, *, imports: bool) -> Exception:
    """Return the error for a name that is not there, with a hint where it is."""
    hint = f": {where}" if where else ""
    if not imports:
        text = f"module '{package}' has no attribute '{name}'{hint}"
        # Told the name, Python does not add that of something similar in here.
        return AttributeError(text, name=name) if hint else AttributeError(text)
    meant = None if hint else closest(name, dir(sys.modules[package]))
    guess = "" if meant is None else f". Did you mean '{meant}'?"
    # Python would drop the text of an AttributeError.
    return ImportError(f"cannot import name '{name}' from '{package}'{hint}{guess}", name=package)


def _synonym(package: str, name: str, synonyms: str) -> str:
    """Return what a word of other programs is called here; nothing if it is not known."""
    if not synonyms:
        return ""
    known = import_module(f"{package}.{synonyms}").SYNONYMS.get(name, "")
    return f"here it is {package}.{known}" if known else ""


def _where(package: str, name: str, homes: Iterable[str], elsewhere: Sequence[str]) -> str:
    """Return where a missing name of a package is: in a module, or in imported classes."""
    for place in elsewhere:
        if name in _offered(f"{package}.{place}"):
            return f"it is {package}.{place}.{name}"
    loaded = vars(sys.modules[package])
    classes = [loaded[each] for each in homes if isinstance(loaded.get(each), type)]
    having = [each.__name__ for each in classes if _defines(each, name)] if elsewhere else []
    return f"it is a member of {quoted(having, 3)}" if having else ""


def _in_face(package: str, name: str) -> str:
    """Return where a name is that a part of the outermost package lacks."""
    face = sys.modules[package.partition(".")[0]]
    if face.__name__ == package:
        return ""
    if name in vars(face).get("__all__", ()):
        return f"it is {face.__name__}.{name}"
    try:
        getattr(face, name)
    except AttributeError as error:
        return str(error).partition(f"'{name}': ")[2]
    return ""


def _offered(module: str) -> list[str]:
    """Return the public names of a module, from its file where that spells them, else by import."""
    spec = find_spec(module)
    text = Path(spec.origin).read_text("utf-8") if spec and spec.origin else ""
    spelled = re.findall(r'\b(\w+)(?: as \1\b|"[],])', text)
    return spelled or list(import_module(module).__all__)


def _defines(kind: type, name: str) -> bool:
    """Return whether a class has a member that it does not inherit."""
    return name in vars(kind) or name in vars(kind).get("__annotations__", ())


def _is_import(frame: FrameType) -> bool:
    """Return whether a frame is about to take a name from a module: ``from module import name``."""
    return frame.f_code.co_code[frame.f_lasti] == opmap["IMPORT_FROM"]


class Deferred:
    """A module whose functions become methods of a class, imported when one of them is used.

    Pictures are such methods: they need modules that no computation needs.

    >>> class Text(str):
    ...     words = Deferred("shlex").split
    >>> Text("two words").words()
    ['two', 'words']
    """

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # tools that look at modules ask for those
            raise AttributeError(name)
        return _Method(self._module, name)


class _Method:
    """A function of a module that replaces itself, as a method, when a class is asked for it."""

    def __init__(self, module: str, function: str) -> None:
        self._module, self._function = module, function

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner, self._name = owner, name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        given = getattr(import_module(self._module), self._function)
        code, defaults = given.__code__, given.__defaults__
        method = FunctionType(code, given.__globals__, self._name, defaults, given.__closure__)
        update_wrapper(method, given)
        method.__kwdefaults__ = given.__kwdefaults__
        method.__name__, method.__module__ = self._name, self._owner.__module__
        method.__qualname__ = f"{self._owner.__qualname__}.{self._name}"
        setattr(self._owner, self._name, method)
        return method.__get__(instance, owner)
