"""A run with vector states, discrete states, jumps and an exported port, and what is in it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import flexure as fx
from tests.support.systems.blocks import Oscillator

FloatArray = npt.NDArray[np.float64]


def oscillation(times: FloatArray) -> FloatArray:
    """Position of the oscillator of tests/support, in closed form."""
    return np.asarray(np.cos(2.0 * times) + np.sin(2.0 * times))


def sampled() -> fx.Diagram:
    """Time, and the time held with a period of 0.25."""
    builder = fx.DiagramBuilder("sampled")
    builder.add_all(
        fx.Ramp("ramp"), fx.ZeroOrderHold("hold", 0.25, 0.25), fx.Integrator("integral")
    )
    builder.connect_chain("ramp", "hold", "integral")
    builder.export_output("hold.y", name="held")
    return builder.build()


def recorded_run() -> fx.results.SimulationResult:
    """Sampled blocks, an oscillator and a step, simulated for one second."""
    builder = fx.DiagramBuilder("root")
    builder.add_all(sampled(), Oscillator("oscillator"), fx.Step("step", at=0.6))
    builder.export_output("sampled.held", name="held")
    return fx.simulate(builder.build(), 1.0)
