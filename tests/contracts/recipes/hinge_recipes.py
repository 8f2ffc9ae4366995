"""Notch hinges and lumped hinges in every variety, as a part of the catalog."""

from __future__ import annotations

from functools import partial
from typing import Any

import flexure as fx
from tests.contracts import parts

_WORLD, _LEFT, _RIGHT = parts.world(), parts.lump("left"), parts.lump("right")
_RUBBER = fx.Material(5e3, poissons_ratio=0.3, density=1e3)
_STRONG = fx.Material(5e3, poissons_ratio=0.3, density=1e3, yield_strength=2e3, fatigue_limit=900.0)
_ROUND = fx.sections.CircularNotch(thickness=0.1, radius=0.5, width=0.4)
_OVAL = fx.sections.EllipticNotch(thickness=0.1, half_length=0.6, depth=0.3, width=0.4)
_FILLETED = fx.sections.FilletedNotch(thickness=0.1, neck_length=0.6, fillet_radius=0.1, width=0.4)
_LOSSES: dict[str, Any] = {"loss_factor": 0.1, "at_frequency": 0.5}

_notch = partial(fx.NotchHinge, "block")
_lumped = partial(
    fx.LumpedHinge,
    "block",
    parts.HINGED,
    section=fx.sections.RectangleSection(width=4.0, thickness=0.04),
    length=0.5,
)

#: Makes a fresh block, by its label.
HINGES: dict[str, partial[Any]] = {
    "NotchHinge": partial(
        _notch, _LEFT, parts.askew(_RIGHT), notch=_ROUND, material=_STRONG, damping_time=0.1
    ),
    "NotchHinge of an ellipse": partial(
        _notch, _RIGHT, _WORLD, notch=_OVAL, material=_RUBBER, plate=True, **_LOSSES
    ),
    "NotchHinge with fillets": partial(_notch, _LEFT, _RIGHT, notch=_FILLETED, material=_STRONG),
    "LumpedHinge": partial(_lumped, material=_RUBBER),
    "LumpedHinge with a pushing force": partial(
        _lumped, material=_STRONG, axial_ratio=0.7, nominal_position=0.2, damping_time=0.1
    ),
    "LumpedHinge, guided": partial(_lumped, material=_STRONG, load="guided", **_LOSSES),
}
