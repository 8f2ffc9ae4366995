"""Packages that import their modules on demand: each when the first of its names is asked for.

A program needs few of the modules that its packages offer, and many programs run for less time than
it takes to import them all.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from opcode import opmap
from types import FrameType
from typing import Any

from flexure.diagrams.common.errors import closest, quoted
from flexure.diagrams.concurrency import forks  # noqa: F401, from here on, forks wait for imports


def on_demand(
    package: str, names: Mapping[str, str], elsewhere: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package, which Python calls where they exist.

    Parameters
    ----------
    package : str
        Full name of the package.
    names : mapping
        What each of its modules contributes: by the name of the module in the package, the names
        with spaces between them.
    elsewhere : sequence of str
        Modules in the package that offer names of their own. Who asks the package for one of those,
        or for what its classes have, is told where it is.

    Examples
    --------
    >>> from flexure import blocks
    >>> getattr_, dir_ = on_demand("flexure.blocks", {"signals.sources": "Ramp Step"})
    >>> getattr_("Ramp") is blocks.Ramp
    True
    """
    homes = {name: module for module, words in names.items() for name in words.split()}

    def find(name: str) -> Any:
        module = f"{package}.{name}"
        if name in homes:
            value = getattr(import_module(f"{package}.{homes[name]}"), name)
        elif name.startswith("_"):  # machinery asks for those, and shall import nothing
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        elif find_spec(module) is None:
            imports = _is_import(sys._getframe(1))
            raise _missing(package, name, imports=imports, homes=homes, elsewhere=elsewhere)
        else:
            value = import_module(module)
        setattr(sys.modules[package], name, value)  # so that nobody asks again
        return value

    def list_all() -> list[str]:
        offered = vars(sys.modules[package])
        return sorted({*offered, *homes, *offered.get("__all__", ())})

    return find, list_all


def _missing(
    package: str, name: str, *, imports: bool, homes: Iterable[str], elsewhere: Sequence[str]
) -> Exception:
    """Return the error for a name that is not there, with a hint where it is."""
    where = _where(package, name, homes, elsewhere)
    hint = "" if where is None else f": {where}"
    if not imports:
        text = f"module '{package}' has no attribute '{name}'{hint}"
        # Told the name, Python does not add that of something similar in here.
        return AttributeError(text, name=name) if hint else AttributeError(text)
    meant = None if hint else closest(name, dir(sys.modules[package]))
    guess = "" if meant is None else f". Did you mean '{meant}'?"
    # Python would drop the text of an AttributeError.
    return ImportError(f"cannot import name '{name}' from '{package}'{hint}{guess}", name=package)


def _where(package: str, name: str, homes: Iterable[str], elsewhere: Sequence[str]) -> str | None:
    """Say where a name is that a package does not have: in one of its modules, or in classes."""
    for place in elsewhere:
        if name in import_module(f"{package}.{place}").__all__:
            return f"it is {package}.{place}.{name}"
    offered = [getattr(sys.modules[package], each) for each in homes] if elsewhere else []
    having = [each.__name__ for each in offered if isinstance(each, type) and _defines(each, name)]
    return f"it is a member of {quoted(having, 3)}" if having else None


def _defines(kind: type, name: str) -> bool:
    """Tell whether a class has a member that it does not inherit."""
    return name in vars(kind) or name in vars(kind).get("__annotations__", ())


def _is_import(frame: FrameType) -> bool:
    """Tell whether a frame is about to take a name from a module: ``from module import name``."""
    return frame.f_code.co_code[frame.f_lasti] == opmap["IMPORT_FROM"]


__all__ = ["on_demand"]
