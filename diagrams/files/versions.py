"""Versions of the packages on which numbers may depend, stored beside the numbers."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

_PACKAGES = ("numpy", "scipy", "llvmlite")


def versions() -> dict[str, str]:
    """Return the versions of Flexure, Python and the packages that compute; LLVM is in llvmlite."""
    whole: Any = sys.modules["flexure"]  # which is above all of this
    found: dict[str, str] = {"flexure": whole.__version__}
    found["python"] = platform.python_version().rpartition(".")[0]
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "none"
    return found
