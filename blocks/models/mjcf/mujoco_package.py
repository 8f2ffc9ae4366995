"""MuJoCo, whose compiler reads MJCF files, imported when the first one is read."""

from __future__ import annotations

from typing import Any

from flexure.diagrams.checks.extras import import_extra

ATTEMPT = "Cannot read an MJCF file"


def mujoco() -> Any:
    """Return the package mujoco, or refuse with the extra that installs it."""
    return import_extra("mujoco", "mjcf", ATTEMPT)
