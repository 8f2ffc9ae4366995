"""A working call of what fits mounts to measurements."""

from __future__ import annotations

import numpy as np

from flexure.fitting import (
    DynamicStiffness,
    bushing_options,
    fit_dynamic_stiffness,
    fit_relaxation,
)
from tests.support.calls.odd_arguments import Call
from tests.support.calls.public_calls import Make, whole

RUBBER = DynamicStiffness(3.0, branches=((2.0, 0.02),), friction=(1.0, 0.1))


def mount_calls() -> dict[str, Make]:
    """The law of dynamic stiffness, its methods, and its fit."""
    frequencies = np.geomspace(1.0, 50.0, 8)
    where = {"frequency": [1.0, 2.0], "amplitude": [0.1, 0.2]}
    drawn = {**where, "measured": [4.0 + 1j, 5.0], "path": "rubber.png"}
    return {
        "DynamicStiffness.at": lambda: Call(RUBBER.at, where, lambda: None),
        "DynamicStiffness.plot": lambda: Call(RUBBER.plot, drawn, lambda: None),
        "DynamicStiffness.prony": lambda: Call(
            DynamicStiffness.prony,
            {"stiffness": 3.0, "moduli": [0.5], "times": [1.0], "instantaneous": False},
            lambda: None,
        ),
        "DynamicStiffness.relaxation": lambda: Call(
            DynamicStiffness(3.0).relaxation, {"time": [1.0]}, lambda: None
        ),
        "DynamicStiffness.with_branches": lambda: Call(
            DynamicStiffness(3.0, fractional=(2.0, 0.5)).with_branches,
            {"band": (1.0, 10.0), "error": 0.05},
            lambda: None,
        ),
        "bushing_options": whole(bushing_options, laws={"z": RUBBER}),
        "fit_relaxation": whole(
            fit_relaxation,
            times=frequencies,
            stiffness=DynamicStiffness.prony(3.0, [0.5], [8.0]).relaxation(frequencies),
            branches=1,
        ),
        "fit_dynamic_stiffness": whole(
            fit_dynamic_stiffness,
            frequency=frequencies,
            stiffness=DynamicStiffness(3.0, branches=((2.0, 0.02),)).at(frequencies),
            amplitude=np.ones(8),
            branches=1,
            damping=False,
            friction=False,
            memory=False,
            fractional=False,
        ),
    }
