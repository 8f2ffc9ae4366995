"""Packages that import their modules on demand: each when the first of its names is asked for.

A program needs few of the modules that its packages offer, and many programs run for less time than
it takes to import them all.

In a process that is forked while another thread imports something, nobody finishes that, and who
needs it waits for ever. So a fork waits for the imports that are under way.
"""

from __future__ import annotations

import importlib
import logging  # noqa: F401, it must not be imported for the first time while a process forks
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Any

#: What Flexure imports on demand; none of these packages waits for a user's code.
_PACKAGES = frozenset({"flexure", "llvmlite", "matplotlib", "networkx", "numpy", "scipy"})


def on_demand(
    package: str, names: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package, which Python calls where they exist.

    Parameters
    ----------
    package : str
        Full name of the package.
    names : mapping
        What each of its modules contributes: by the name of the module in the package, the names
        with spaces between them.

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
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        else:
            value = import_module(module)
        setattr(sys.modules[package], name, value)  # so that nobody asks again
        return value

    def list_all() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return find, list_all


def _finish_imports() -> None:
    """Wait for other threads that import something."""
    awaited: set[str] = set()
    while waiting := _being_imported() - awaited:
        for name in waiting:
            with suppress(ImportError):
                import_module(name)  # returns when it is there; at once, if this thread imports it
        awaited |= waiting


def _being_imported() -> set[str]:
    """Return the names of the modules that are being found or imported."""
    locks = getattr(getattr(importlib, "_bootstrap", None), "_module_locks", {})
    return {name for name in list(locks) if name.partition(".")[0] in _PACKAGES}


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_finish_imports)

__all__ = ["on_demand"]
