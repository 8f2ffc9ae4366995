"""Kernels of clocks: when they tick, for their updates and for their publishes; break times."""

from __future__ import annotations

from flexure.solvers.native.kernels.parts.arithmetic import INFINITY, next_tick, smaller
from flexure.solvers.native.language.language import Floats, Function, Ints, Structure


class ClockData(Structure):
    """The clocks of a run."""

    count: int
    periods: Floats
    offsets: Floats
    updating: Ints  # whether updates belong to each
    publishing: Ints  # whether publishes belong to each
    publishes: int  # whether publishes belong to any
    ticks: Floats  # the next time of each
    publish_ticks: Floats  # the next time that is not published
    breaking: int  # whether a run computes its break times; else it ends at the next one
    breaks: Function  # the next break time


def find_ticks(clocks: ClockData, time: float) -> None:
    """Find the next time of every clock, for its updates and for its publishes."""
    for c in range(clocks.count):
        clocks.ticks[c] = next_tick(clocks.periods[c], clocks.offsets[c], time)
        clocks.publish_ticks[c] = clocks.ticks[c]


def next_stop(clocks: ClockData, every: int, stop: float) -> float:
    """Return the next time of a clock with updates, or of every clock, if it is before a stop."""
    for c in range(clocks.count):
        if clocks.updating[c] == 1 or every == 1:
            stop = smaller(stop, clocks.ticks[c])
    return stop


def go_past(clocks: ClockData, time: float) -> None:
    """Move on to the ticks behind a time."""
    for c in range(clocks.count):
        if clocks.ticks[c] <= time:
            clocks.ticks[c] = next_tick(clocks.periods[c], clocks.offsets[c], time)


def next_publish(clocks: ClockData) -> float:
    """Return the earliest time that is not published."""
    time = INFINITY
    for c in range(clocks.count):
        if clocks.publishing[c] == 1:
            time = smaller(time, clocks.publish_ticks[c])
    return time


def due_publishes(clocks: ClockData, time: float) -> int:
    """Return the mask of the clocks with publishes at a time, and move on to their next."""
    mask = 0
    bit = 1
    for c in range(clocks.count):
        if clocks.publishing[c] == 1 and clocks.publish_ticks[c] == time:
            mask += bit
            clocks.publish_ticks[c] = next_tick(clocks.periods[c], clocks.offsets[c], time)
        bit *= 2
    return mask
