"""Kernels that move states to where they belong.

The interpreted counterpart is `flexure.solvers.simulation.run_control.state_manifold`.

Python does the operations that they cannot do, such as a projection without code: a call of the
loop ends before it, and the next one begins with the answer.
"""

from __future__ import annotations

from flexure.solvers.integration.methods.projecting import MOST_PROJECTIONS
from flexure.solvers.native.kernels.parts.arithmetic import copy, larger, smaller
from flexure.solvers.native.language.language import Floats, Function, Structure

APART = True

# Where a state is
AT_HOME = 0
MOVED = 1  # to where it belongs
ASTRAY = 2  # for Python to see to
LOST = 3  # Python has refused to go on

# Answers of Python
NONE = 0
CODED = 1  # there is code of the projection now
KEPT, PLACED = 2, 3  # the state as it is, or where it belongs
REFUSED = 4  # to go on


class ManifoldData(Structure):
    """Where the state belongs, and the projection of the last step."""

    count: int  # of deviations; 0 where nothing is looked at
    allowed: float  # largest deviation that is left
    farthest: float  # a larger one, where a motion begins, is for Python
    deviations: Function
    projection: Function
    env: Floats  # that of the projection, which begins with discrete values as well
    discrete: int  # their number
    coded: int  # whether there is code of the projection
    pulls: int  # steps one after the other that were moved farther than they can err
    answer: int  # of Python, about the present state
    time: float  # at which that is looked at
    values: Floats  # deviations
    landed: Floats  # the state before it was moved
    shift: Floats  # by how much it was moved
    slope: Floats  # where it was moved to


def place(
    manifold: ManifoldData,
    n: int,
    time: float,
    clip: float,
    farthest: float,
    x: Floats,
    env: Floats,
    work: Floats,
) -> int:
    """Move a state to where it belongs, unless a deviation is too large; return where it is."""
    answer = manifold.answer
    manifold.answer = NONE
    if answer > CODED:
        return LOST if answer == REFUSED else (MOVED if answer == PLACED else AT_HOME)
    at = smaller(time, clip)
    manifold.time = at
    found = deviation(manifold, at, x, env)
    if found <= manifold.allowed:
        if found <= 1.0:
            manifold.allowed = 1.0
        return AT_HOME
    copy(n, x, manifold.landed)
    if manifold.coded == 0 or found > farthest:
        return ASTRAY
    passes = 0
    while passes < MOST_PROJECTIONS:
        passes += 1
        copy(manifold.discrete, env, manifold.env)
        manifold.projection(at, x, manifold.env, work)
        copy(n, work, x)
        if deviation(manifold, at, x, env) <= 1.0:
            return MOVED
    copy(n, manifold.landed, x)
    return ASTRAY


def deviation(manifold: ManifoldData, time: float, x: Floats, env: Floats) -> float:
    """Return the largest deviation, or NaN."""
    manifold.deviations(time, x, env, manifold.values)
    largest = 0.0
    check = 0.0
    for k in range(manifold.count):
        largest = larger(largest, abs(manifold.values[k]))
        check += manifold.values[k] * 0.0
    total: float = largest + check
    return total


def bend(manifold: ManifoldData, n: int, s: float, out: Floats) -> None:
    """Add to a state at a fraction s of the last step what the displacement of its end makes."""
    part = s * s * (3.0 - 2.0 * s)
    for i in range(n):
        out[i] += part * manifold.shift[i]
