"""The derivatives of a state by numbers, column by column behind it, and how they move.

With ẋ = f(t, x, p), a column s = σ ∂x/∂p follows ``ṡ = ∂f/∂x s + σ ∂f/∂p``, where σ is the size of
its number. Discrete values are numbers p that change in several columns. States and columns lie end
to end. Here are the equations of all of it, which read a `ColumnData` where those of a system read
their environment.
"""

from __future__ import annotations

from flexure.solvers.native.kernels.parts.arithmetic import all_finite
from flexure.solvers.native.language.language import Floats, Function, Ints, Reals, Structure


class ColumnData(Structure):
    """The values that equations of states and columns read."""

    n: int  # states
    count: int  # columns
    rhs: Function  # f
    jacobian: Function  # the entries of ∂f/∂x that are not always zero
    env: Reals  # the environment of both
    nonzeros: int  # how many these are
    entries: Floats
    rows: Ints
    columns: Ints
    slopes: Function  # the entries of ∂f/∂p that are not always zero
    own: Reals  # the environment of that
    steered: int  # how many these are
    pulls: Floats
    pushed: int  # how many products with them there are in all columns
    sources: Ints  # which of them is in each
    places: Ints  # where that is in all columns, end to end
    scales: Floats  # by what it is multiplied
    push: Floats  # σ ∂f/∂p, column by column
    drives: int  # numbers in the environments that follow straight lines in time
    begin: float  # where the lines begin
    bases: Floats  # where they are there
    tilts: Floats  # their slopes
    targets: Ints  # where they belong in the one environment
    own_targets: Ints  # and in the other
    wanted: int  # times at which states and columns are asked for
    given: int  # how many of them are behind
    times: Floats
    samples: Floats  # one row for each


def drive(data: ColumnData, time: float) -> None:
    """Put what follows lines in time into the environments."""
    for k in range(data.drives):
        value = data.bases[k] + (time - data.begin) * data.tilts[k]
        data.env[data.targets[k]] = value
        data.own[data.own_targets[k]] = value


def rates(time: float, x: Floats, data: ColumnData, out: Floats) -> None:
    """Compute the derivatives of the states."""
    drive(data, time)
    data.rhs(time, x, data.env, out)


def jacobian(time: float, x: Floats, data: ColumnData, out: Floats) -> None:
    """Compute the entries of their Jacobian."""
    drive(data, time)
    data.jacobian(time, x, data.env, out)


def linearize(time: float, x: Floats, data: ColumnData) -> bool:
    """Compute the derivatives by states and numbers; tell whether they are finite."""
    jacobian(time, x, data, data.entries)
    if data.steered > 0:
        data.slopes(time, x, data.own, data.pulls)
        for e in range(data.pushed):
            data.push[data.places[e]] = 0.0
        for e in range(data.pushed):
            data.push[data.places[e]] += data.scales[e] * data.pulls[data.sources[e]]
    return all_finite(data.nonzeros, data.entries) and all_finite(data.steered, data.pulls)


def move_column(data: ColumnData, push: Floats, s: Floats, out: Floats) -> None:
    """Compute how a column moves, with the derivatives that were computed last."""
    for i in range(data.n):
        out[i] = push[i]
    for e in range(data.nonzeros):
        out[data.rows[e]] += data.entries[e] * s[data.columns[e]]


def move_columns(data: ColumnData, x: Floats, out: Floats) -> None:
    """Compute how all columns move; out is for states and columns, as x is."""
    n = data.n
    for c in range(data.count):
        move_column(data, data.push[c * n :], x[(c + 1) * n :], out[(c + 1) * n :])


def rates_of_all(time: float, x: Floats, data: ColumnData, out: Floats) -> None:
    """Compute the derivatives of states and columns."""
    rates(time, x, data, out)
    linearize(time, x, data)
    move_columns(data, x, out)
