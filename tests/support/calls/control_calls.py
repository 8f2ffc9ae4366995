"""Calls of what analyzes loops and designs their control, for every test that needs some."""

from __future__ import annotations

import numpy as np

import flexure as fx
from tests.support.calls.odd_arguments import Call
from tests.support.calls.public_calls import Make, lag, of_lag, of_mass


def lag_loop() -> fx.LinearModel:
    """A loop gain."""
    return fx.loop_gain(lag()[0], "lag.u")


def control_calls() -> dict[str, Make]:
    """The functions of control engineering."""
    return {
        **{
            each: of_lag(getattr(fx, each), location="lag.u", openings=(), period=0.1)
            for each in ("loop_gain", "sensitivity_function", "complementary_sensitivity")
        },
        "margins": lambda: Call(fx.margins, {"loop": lag_loop()}),
        "norms": lambda: Call(fx.norms, {"model": lag_loop()}),
        "passivity_indices": lambda: Call(
            fx.passivity_indices, {"model": lag_loop(), "sector": (0.0, 2.0)}
        ),
        "lqr": of_mass(fx.lqr, Q=[1.0, 0.0], R=1.0, integral={"y": 1.0}),
        "lqe": of_mass(fx.lqe, W=1.0, V=1.0, disturbances="u"),
        "lqg": of_mass(
            fx.lqg,
            largest={"x[0]": 1.0, "u": 1.0},
            W=np.eye(2),
            V=1.0,
            integral={"y": 1.0},
            disturbances=(),
        ),
        "place": of_mass(fx.place, poles=[-1.0, -2.0, -3.0], integral="y"),
        "place_observer": of_mass(fx.place_observer, poles=[-1.0, -2.0], disturbances="u"),
    }
