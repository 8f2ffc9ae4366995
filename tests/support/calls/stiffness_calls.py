"""Working calls of what asks for stiffness and buckling."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import flexure as fx
from tests.support.calls.odd_arguments import Call
from tests.support.calls.public_calls import Make, plant


@cache
def stiff() -> Any:
    made, context = plant()
    return fx.stiffness(made, "tip", context=context)


@cache
def stiff_along() -> Any:
    made, context = plant()
    return fx.track_stiffness(made, "tip", {"spring.stiffness": [20.0, 30.0]}, context=context)


@cache
def loaded() -> Any:
    made, context = plant()
    return fx.buckling(made, {made.gravity: [0.0, 0.0, 9.81]}, context=context)


def of(make: Callable[[], Any], verb: str, **arguments: Any) -> Make:
    """Return what calls a method of an answer."""
    return lambda: Call(getattr(make(), verb), arguments, lambda: None)


def stiffness_calls() -> dict[str, Make]:
    """The functions, and the methods of what they return."""

    def pushed() -> Call:
        made, context = plant()
        options = {
            "system": made,
            "frame": made.frame("tip"),
            "context": context,
            "p_FP": [0.0, 0.0, 0.1],
            "measured_in": made.world,
            "expressed_in": made.body("link"),
        }
        return Call(fx.stiffness, options, context.to_dict)

    def pushed_along() -> Call:
        made, context = plant()
        options = {
            "system": made,
            "frame": "tip",
            "along": {"spring.stiffness": [20.0, 30.0]},
            "context": context,
            "p_FP": [0.0, 0.0, 0.1],
            "measured_in": made.world,
            "expressed_in": made.body("link"),
            "since": 0,
        }
        return Call(fx.track_stiffness, options, context.to_dict)

    def buckled() -> Call:
        made, context = plant()
        loads = {made.gravity: [0.0, 0.0, 9.81]}
        options = {
            "system": made,
            "loads": loads,
            "context": context,
            "num_factors": 1,
            "refine": True,
        }
        return Call(fx.buckling, options, context.to_dict)

    return {
        "stiffness": pushed,
        "track_stiffness": pushed_along,
        "buckling": buckled,
        "Stiffness.at": of(stiff, "at", place=[0.0, 0.0, 0.1]),
        "Stiffness.rotation_axis": of(stiff, "rotation_axis", couple=[0.0, 1.0, 0.0]),
        "Stiffness.table": of(stiff, "table", what="compliance"),
        "StiffnessTrack.motion": of(stiff_along, "motion", direction="x"),
        "StiffnessTrack.parasitic": of(stiff_along, "parasitic", stroke="x"),
        "StiffnessTrack.diagonals": of(stiff_along, "diagonals", held=False),
        "StiffnessTrack.table": of(stiff_along, "table", held=False),
        "StiffnessTrack.plot": of(stiff_along, "plot", path="stiffness.png"),
        "StiffnessTrack.plot_parasitic": of(
            stiff_along, "plot_parasitic", stroke="x", path="parasitic.png"
        ),
        "Buckling.__getitem__": of(loaded, "__getitem__", index=0),
    }
