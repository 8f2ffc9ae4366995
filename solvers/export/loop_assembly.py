"""Kernels that assemble mechanisms with loops before a motion, as `closing.py` does it in Python.

Newton's method with the least change of the velocities that are free; starts from elsewhere are for
Python alone. The least solutions come from singular values, which rotations of columns give (M.
Hestenes, 1958).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from flexure.solvers.export.model_equations import Closing
from flexure.solvers.export.run_tables import rooms
from flexure.solvers.native.kernels.parts.arithmetic import INFINITY, copy, larger, smaller
from flexure.solvers.native.language.language import Floats, Functions, Ints, Structure, sqrt, where

EXACT = True

CLOSED = 1e-10  # largest error that is left
MOST_STEPS = 100
LONGEST_STEP = 0.5  # rad or m
MOST_HALVINGS = 30
PATIENCE = 4  # steps, after which errors have to be smaller than
PROGRESS = 0.95  # times what they were
INDEPENDENT = 1e-7  # least singular value that counts, relative to the largest
MOST_SWEEPS = 60


class ClosingData(Structure):
    """Mechanisms with loops, whose tables follow each other, and memory for one of them."""

    count: int
    values: Functions  # errors, rates, their derivatives, how positions move, what is free
    at: Ints  # where the state of each begins
    positions: Ints  # numbers of each
    velocities: Ints
    rows: Ints
    errors: Ints
    first_position: Ints  # where the tables of each begin
    first_velocity: Ints
    first_row: Ints
    told: Ints  # whether it is assembled wherever it is open
    of_positions: Ints  # whether each row is the rate of an error
    lower: Floats
    upper: Floats
    places: Ints  # which position belongs to a velocity
    normal: Ints  # the first of the positions that are divided by a common norm; -1 for others
    moved: Ints  # which have been assembled
    found: Floats  # what the function of one has computed
    low: Floats  # limits of positions
    high: Floats
    origin: Floats  # positions before a step
    moves: Floats
    mobile: Floats
    change: Floats  # the step
    columns: Floats
    turns: Floats
    history: Floats


def assemble_loops(m: ClosingData, all_of_them: int, time: float, x: Floats, env: Floats) -> int:
    """Assemble what is open and is told so, or all; return which one cannot be, or -1."""
    for c in range(m.count):
        m.moved[c] = 0
        look_at_loops(m, c, time, x, env)
        count = m.errors[c] + m.rows[c]
        if (m.told[c] == 1 or all_of_them == 1) and not largest_of(count, m.found) <= CLOSED:
            if not close_loops(m, c, time, x, env):
                return c
            fit_velocities(m, c, time, x, env)
            m.moved[c] = 1
    return -1


def look_at_loops(m: ClosingData, c: int, time: float, x: Floats, env: Floats) -> None:
    """Compute the equations of a mechanism."""
    call = m.values[c]
    call(time, x, env, m.found)


def close_loops(m: ClosingData, c: int, time: float, x: Floats, env: Floats) -> bool:
    """Move positions until all constraints are met; tell whether they are."""
    n, count = m.positions[c], m.errors[c]
    q = x[m.at[c] :]
    moves = m.found[count + m.rows[c] + m.rows[c] * m.velocities[c] :]
    set_limits(m, c)
    copy(n, q, m.origin)
    for k in range(m.velocities[c]):
        m.change[k] = 0.0
    displace(m, c, 0.0, q)
    look_at_loops(m, c, time, x, env)
    for step in range(MOST_STEPS):
        if largest_of(count, m.found) <= CLOSED:
            return True
        size = length_of(count, m.found)
        m.history[step] = size
        if step >= PATIENCE and size > PROGRESS * m.history[step - PATIENCE]:
            return False
        copy(n, q, m.origin)
        copy(n * m.velocities[c], moves, m.moves)
        find_step(m, c)
        share = 1.0
        halvings = 0
        while True:
            displace(m, c, share, q)
            look_at_loops(m, c, time, x, env)
            if length_of(count, m.found) < size:
                break
            share *= 0.5
            halvings += 1
            if halvings == MOST_HALVINGS:
                copy(n, m.origin, q)
                return False
    return False


def set_limits(m: ClosingData, c: int) -> None:
    """Note the limits of the positions that belong to free velocities."""
    n, free = m.velocities[c], m.errors[c] + m.rows[c]
    free += (m.rows[c] + m.positions[c]) * n
    for i in range(m.positions[c]):
        m.low[i] = -INFINITY
        m.high[i] = INFINITY
    for k in range(n):
        if m.found[free + k] != 0.0:
            i = m.places[m.first_velocity[c] + k]
            m.low[i] = m.lower[m.first_position[c] + i]
            m.high[i] = m.upper[m.first_position[c] + i]


def find_step(m: ClosingData, c: int) -> None:
    """Find the step of Newton, in which what is at a limit does not go beyond it."""
    n = m.velocities[c]
    free = m.errors[c] + m.rows[c] + (m.rows[c] + m.positions[c]) * n
    copy(n, m.found[free:], m.mobile)
    blocked = True
    while blocked:
        find_change(m, c, 0)
        blocked = False
        for k in range(n):
            i, change = m.places[m.first_velocity[c] + k], -m.change[k]
            m.change[k] = change
            at = m.origin[i]
            if (at <= m.low[i] and change < 0.0) or (at >= m.high[i] and change > 0.0):
                m.mobile[k] = 0.0
                blocked = True
    share = LONGEST_STEP / larger(largest_of(n, m.change), LONGEST_STEP)
    for k in range(n):
        m.change[k] = share * m.change[k]


def displace(m: ClosingData, c: int, share: float, q: Floats) -> None:
    """Set positions that are away from the origin by a share of the step."""
    n, first = m.velocities[c], m.first_position[c]
    for i in range(m.positions[c]):
        moved = m.origin[i] + share * inner_product(n, m.moves[i * n :], m.change)
        q[i] = larger(smaller(moved, m.high[i]), m.low[i])
    for i in range(m.positions[c]):
        if m.normal[first + i] == i:
            total = 0.0
            for j in range(i, m.positions[c]):
                if m.normal[first + j] == i:
                    total += q[j] * q[j]
            for j in range(i, m.positions[c]):
                if m.normal[first + j] == i:
                    q[j] = q[j] / sqrt(total)


def fit_velocities(m: ClosingData, c: int, time: float, x: Floats, env: Floats) -> None:
    """Change velocities as little as constraints ask for."""
    n = m.velocities[c]
    look_at_loops(m, c, time, x, env)
    free = m.errors[c] + m.rows[c] + (m.rows[c] + m.positions[c]) * n
    copy(n, m.found[free:], m.mobile)
    find_change(m, c, 1)
    for k in range(n):
        x[m.at[c] + m.positions[c] + k] -= m.change[k]


def find_change(m: ClosingData, c: int, whole: int) -> None:
    """Find the shortest change that makes errors, or all rates, zero with the other sign."""
    n, rows, start = m.velocities[c], m.rows[c], m.errors[c]
    count = take_columns(m, c, whole)
    turned = True
    sweep = 0
    while turned and sweep < MOST_SWEEPS:
        sweep += 1
        turned = False
        for j in range(1, n):
            for i in range(j):
                if make_orthogonal(n, rows, count, m.columns, m.turns, i, j):
                    turned = True
    most = 0.0
    for k in range(n):
        most = larger(most, length_of(count, m.columns[k * rows :]))
        m.change[k] = 0.0
    for k in range(n):
        column = m.columns[k * rows :]
        size = length_of(count, column)
        if size > INDEPENDENT * most:
            share = inner_product(count, column, m.found[start * whole :]) / (size * size)
            for i in range(n):
                m.change[i] += share * m.turns[k * n + i]


def take_columns(m: ClosingData, c: int, whole: int) -> int:
    """Copy the derivatives of errors, or of all rates, column by column; return their number."""
    n, rows = m.velocities[c], m.rows[c]
    entries = m.errors[c] + rows
    count = 0
    for r in range(rows):
        if whole == 1 or m.of_positions[m.first_row[c] + r] == 1:
            for k in range(n):
                entry = m.found[entries + r * n + k]
                m.columns[k * rows + count] = entry if m.mobile[k] != 0.0 else 0.0
            count += 1
    for k in range(n):
        for i in range(n):
            m.turns[k * n + i] = 1.0 if i == k else 0.0
    return count


def make_orthogonal(n: int, rows: int, count: int, u: Floats, v: Floats, i: int, j: int) -> bool:
    """Make two columns orthogonal; tell whether they were not."""
    p, q = u[i * rows :], u[j * rows :]
    a, d, g = inner_product(count, p, p), inner_product(count, q, q), inner_product(count, p, q)
    if not abs(g) > 1e-15 * sqrt(a * d):
        return False
    zeta = (d - a) / (2.0 * g)
    t = where(zeta < 0.0, -1.0, 1.0) / (abs(zeta) + sqrt(1.0 + zeta * zeta))
    cosine = 1.0 / sqrt(1.0 + t * t)
    rotate_columns(count, cosine, cosine * t, p, q)
    rotate_columns(n, cosine, cosine * t, v[i * n :], v[j * n :])
    return True


def rotate_columns(n: int, cosine: float, sine: float, p: Floats, q: Floats) -> None:
    """Rotate two vectors in their plane."""
    for i in range(n):
        old = p[i]
        p[i] = cosine * old - sine * q[i]
        q[i] = sine * old + cosine * q[i]


def inner_product(n: int, a: Floats, b: Floats) -> float:
    """Return a scalar product."""
    total = 0.0
    for i in range(n):
        total += a[i] * b[i]
    return total


def length_of(n: int, a: Floats) -> float:
    """Return the length of a vector."""
    return sqrt(inner_product(n, a, a))


def largest_of(n: int, a: Floats) -> float:
    """Return the largest size of a number."""
    most = 0.0
    for i in range(n):
        most = larger(most, abs(a[i]))
    return most


def closing_tables(closings: Sequence[Closing]) -> dict[str, Any]:
    """Return what `ClosingData` begins with beside the functions, as `run_tables` does."""
    known = [each.equations for each in closings]
    groups = [(each.normal, range(len(each.moves))) for each in known]
    found: dict[str, list[Any]] = {
        "at": [each.at for each in closings],
        "positions": [len(each.moves) for each in known],
        "velocities": [len(each.free) for each in known],
        "rows": [len(each.of_positions) for each in known],
        "errors": [sum(each.of_positions) for each in known],
        "told": [int(each.is_told) for each in known],
        "of_positions": [int(flag) for each in known for flag in each.of_positions],
        "lower": [limit for each in known for limit in each.limits[0].tolist()],
        "upper": [limit for each in known for limit in each.limits[1].tolist()],
        "places": [place for each in known for place in each.places.tolist()],
        "normal": [next((g[0] for g in some if i in g), -1) for some, all_ in groups for i in all_],
    }
    for name, numbers in (("position", "positions"), ("velocity", "velocities"), ("row", "rows")):
        found[f"first_{name}"] = [0, *accumulate(found[numbers])][:-1]
    n, m, count = (max(found[k], default=0) for k in ("positions", "velocities", "rows"))
    return {
        "count": len(closings),
        **found,
        **rooms("moved", len(closings)),
        **rooms("found", 2 * count + (count + n + 1) * m),
        **rooms("low high origin", n),
        **rooms("mobile change", m),
        **rooms("moves", n * m),
        **rooms("columns", count * m),
        **rooms("turns", m * m),
        **rooms("history", MOST_STEPS),
    }
