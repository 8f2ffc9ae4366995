"""The motion of a native run is kept in rows, and gives the numbers of its pieces."""

from __future__ import annotations

import numpy as np

import flexure as fx
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.results.records.time_batch import Moments, Timeline
from flexure.solvers.tracing.lanes import BatchReader
from flexure.solvers.tracing.signals import resolve
from tests.support.native.native import needs_llvmlite

SIGNALS = ["plant.y", "plant.x", "pid.u", "noise.y", "line.y", "line.samples"]


def sampled_loop() -> fx.Diagram:
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.TransferFunction("plant", [1.0], [1.0, 0.6, 4.0]),
        fx.Noise("noise", 1, 0.01, standard_deviation=0.01),
        fx.Sum("measured", "++"),
        fx.Square("target", 1.0, 0.7),
        fx.PIDController("pid", period=0.03, kp=8.0, ki=6.0, kd=2.0),
        fx.TimeDelay("line", 0.6105, period=0.01, size=2),  # rows do not repeat its samples
    )
    builder.add(fx.Multiplexer("both", [1, 1]))
    builder.connect("plant.y", "both.u1")
    builder.connect("pid.u", "both.u2")
    builder.connect("both.y", "line.u")
    builder.connect("plant.y", "measured.u1")
    builder.connect("noise.y", "measured.u2")
    builder.connect("target.y", "pid.setpoint")
    builder.connect("measured.y", "pid.measurement")
    builder.connect("pid.u", "plant.u")
    return builder.build()


def samples(simulator: fx.Simulator, times: FloatArray) -> list[FloatArray]:
    assert simulator.history is not None
    system, context = simulator.context.system, simulator.context.clone()
    moments = Moments(Timeline(simulator.history), context, times)
    return BatchReader(system).read([resolve(system, each) for each in SIGNALS], moments)


LOOP = sampled_loop()


@needs_llvmlite
def test_rows_give_the_numbers_of_the_pieces_that_are_made_of_them() -> None:
    simulator = fx.Simulator(LOOP, compiled="native", method="RK45", record=True)
    for end in (0.004, 0.5, 0.52, 1.333, 1.4, 3.0):  # parts of many rows, of few, and of one step
        simulator.advance_to(end)
    assert simulator.history is not None
    grid = simulator.history.grid()
    times = np.sort([*np.linspace(0.0, 3.0, 400), *grid, 1.4, 1.4])  # before and after updates
    from_rows = samples(simulator, times)
    pieces = simulator.history.pieces
    assert np.array_equal(grid, [time for piece in pieces for time in piece.times])
    for found, expected in zip(samples(simulator, times), from_rows, strict=True):
        np.testing.assert_array_equal(found, expected)
    simulator.advance_to(4.0)
    assert simulator.history.pieces[: len(pieces) - 1] == pieces[:-1]


@needs_llvmlite
def test_rows_give_the_numbers_of_an_interpreted_run() -> None:
    times = np.linspace(0.0, 1.0, 333)
    native, interpreted = (
        fx.simulate(LOOP, 1.0, method="RK45", compiled=compiled, rtol=1e-8, atol=1e-10)
        for compiled in ("native", False)
    )
    for signal in SIGNALS:
        found, expected = native.sample(signal, times), interpreted.sample(signal, times)
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-7)


@needs_llvmlite
def test_a_record_does_not_repeat_the_samples_of_a_long_delay() -> None:
    sizes = []
    for delay in (0.02, 5.0):
        builder = fx.DiagramBuilder("line")
        builder.add_all(fx.Sine("wave"), fx.TimeDelay("pipe", delay, period=0.01))
        builder.connect_chain("wave", "pipe", builder.add(fx.Integrator("area")))
        simulator = fx.Simulator(builder.build(), compiled="native", record=True)
        simulator.advance_to(8.0)
        assert simulator.history is not None
        sizes.append(simulator.history.size)
    assert sizes[1] < 2.0 * sizes[0]  # in full, they would be thirty times as much
