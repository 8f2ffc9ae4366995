"""Packages that import their modules on demand: each when the first of its names is asked for.

A program needs few of the modules that its packages offer, and many programs run for less time than
it takes to import them all.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from flexure.diagrams import forks  # noqa: F401, from here on, forks wait for imports


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
        Modules in the package that offer names of their own. Who asks the package for one of those
        is told where it is.

    Examples
    --------
    >>> from flexure import blocks
    >>> getattr_, dir_ = on_demand("flexure.blocks", {"sources": "Ramp Step"})
    >>> getattr_("Ramp") is blocks.Ramp
    True
    """
    homes = {name: module for module, words in names.items() for name in words.split()}

    def find(name: str) -> Any:
        module = f"{package}.{name}"
        if name in homes:
            value = getattr(import_module(f"{package}.{homes[name]}"), name)
        elif name.startswith("_") or find_spec(module) is None:
            raise missing(name)
        else:
            value = import_module(module)
        setattr(sys.modules[package], name, value)  # so that nobody asks again
        return value

    def missing(name: str) -> AttributeError:
        text = f"module '{package}' has no attribute '{name}'"
        for place in () if name.startswith("_") else elsewhere:
            if name in import_module(f"{package}.{place}").__all__:
                # Told the name alone, Python does not add that of something similar in here.
                return AttributeError(f"{text}: it is {package}.{place}.{name}", name=name)
        return AttributeError(text)

    def list_all() -> list[str]:
        offered = vars(sys.modules[package])
        return sorted({*offered, *homes, *offered.get("__all__", ())})

    return find, list_all


__all__ = ["on_demand"]
