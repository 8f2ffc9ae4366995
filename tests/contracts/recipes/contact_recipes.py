"""Contacts of the catalog: shapes so large that random placements overlap often."""

from __future__ import annotations

from functools import partial
from typing import Any

import flexure as fx

_BALL, _PILL = fx.BodyShape.sphere(radius=1.2), fx.BodyShape.capsule(radius=0.9, length=1.5)
_BLOCK = fx.BodyShape.box(size=(2.0, 3.0, 2.5)).moved((0.1, 0.2, -0.3))
_PROFILE = [(-1.5, -1.0), (1.5, -1.5), (1.0, 2.0), (0.0, 0.5), (-1.5, -1.0)]
_SOFT: dict[str, Any] = {"stiffness": 30.0, "damping": 0.2}
_RUBBING = {**_SOFT, "friction": 0.4, "transition_velocity": 0.1}
_STICKING = {**_SOFT, "friction": 0.4, "tangential_stiffness": 20.0, "relaxation_time": 0.2}


def contacts(world: Any, left: Any, right: Any) -> dict[str, partial[Any]]:
    """Return the recipes of contacts between two bodies, or with the world."""
    pairs: dict[str, Any] = {
        "Contact": (left, _BALL, right, _PILL, {**_RUBBING, "exponent": 1.5}),
        "Contact of capsules": (right, _PILL, left, _PILL, _SOFT),
        "Contact of a box and a profile": (left, _BLOCK, right, _PROFILE, _RUBBING),
        "Contact of a capsule and a box": (
            left,
            _PILL,
            right,
            _BLOCK,
            {**_RUBBING, "exponent": 1.5},
        ),
        "Contact that sticks": (
            left,
            _BLOCK,
            right,
            _BALL,
            {**_STICKING, "static_friction": 0.7, "stribeck_velocity": 0.5},
        ),
        "Contact that sticks to the ground": (world, "half_space", right, _PILL, _STICKING),
        "Contact of profiles": (left, _PROFILE, right, _PROFILE, _RUBBING),
        "Contact of a profile and a capsule": (left, _PROFILE, right, _PILL, _SOFT),
        "Contact on the ground": (
            world,
            "half_space",
            left,
            _BLOCK,
            {**_RUBBING, "watched": False},
        ),
    }
    return {
        label: partial(fx.Contact, "block", *places, **options)
        for label, (*places, options) in pairs.items()
    }
