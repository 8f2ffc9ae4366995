"""Axes of coordinates by their names."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.arguments import is_one_of
from flexure.diagrams.checks.errors import DeclarationError, quoted

#: Name of an axis.
Axis: TypeAlias = Literal["x", "y", "z"]


def is_axis(name: str, attempt: str, remedy: str | None = None) -> npt.NDArray[np.bool_]:
    """Return for each axis whether it is the named one."""
    if not is_one_of(name, ("x", "y", "z")):
        raise DeclarationError(
            attempt, expected=f"one of the axes {quoted('xyz')}", found=repr(name), remedy=remedy
        )
    return np.array([name == each for each in "xyz"])
