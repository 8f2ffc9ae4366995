"""Kernels of small dense matrices of a size that is known while translating, row by row.

They are written out, so that the processor has all of a matrix in its registers.
"""

from __future__ import annotations

from flexure.solvers.native.language.language import (
    Floats,
    Ints,
    Real,
    Reals,
    Static,
    local,
    unrolled,
)


def fill(
    size: Static,
    entries: Floats,
    direct: Ints,
    through: Ints,
    ratios: Floats,
    a: Floats,
    passed: Floats,
) -> None:
    """Put entries of a Jacobian with the other sign into a matrix, after those to be passed on.

    These are by other states, and those of a column count as much as its ratio says.
    """
    for i in unrolled(size):
        for j in unrolled(size):
            e = i * size + j
            part = entries[through[e]]
            passed[e] = part
            a[e] = -entries[direct[e]] - part * ratios[j]


def invert(size: Static, a: Reals, weights: Reals) -> Real:
    """Replace a matrix by its inverse; the pivots are those on the diagonal, one after the other.

    Return what that adds to later pivots and how much smaller than at first a pivot is, both in
    units of 1 / weight, added up; NaN where a pivot is zero.
    """
    m = local(size * size)
    for e in unrolled(size * size):
        m[e] = a[e]
    growth: Real = 0.0
    for k in unrolled(size):
        inverse = 1.0 / m[k * size + k]
        growth += 0.0 * inverse  # NaN where the pivot is zero
        for i in unrolled(size):
            if i != k:
                part = m[i * size + k] * inverse
                if i > k:
                    growth += abs(part * m[k * size + i]) * weights[i]
                for j in unrolled(size):
                    if j != k:
                        m[i * size + j] -= part * m[k * size + j]
                m[i * size + k] = -part
        for j in unrolled(size):
            if j != k:
                m[k * size + j] *= inverse
        m[k * size + k] = inverse
    for e in unrolled(size * size):
        a[e] = m[e]
    return growth


def multiply(size: Static, a: Reals, b: Reals) -> None:
    """Replace b by the product a b."""
    m = local(size * size)
    for i in unrolled(size):
        for j in unrolled(size):
            total = a[i * size] * b[j]
            for k in unrolled(1, size):
                total += a[i * size + k] * b[k * size + j]
            m[i * size + j] = total
    for e in unrolled(size * size):
        b[e] = m[e]


def subtract(size: Static, a: Reals, b: Reals, c: Reals) -> None:
    """Subtract the product a b from c."""
    for i in unrolled(size):
        for j in unrolled(size):
            total = c[i * size + j]
            for k in unrolled(size):
                total -= a[i * size + k] * b[k * size + j]
            c[i * size + j] = total


def crossing(size: Static, a: Reals, b: Reals, weights: Reals) -> Real:
    """Return the sizes of what is added up to the diagonal of a b, each with a weight."""
    total: Real = 0.0
    for i in unrolled(size):
        part: Real = 0.0
        for k in unrolled(size):
            part += abs(a[i * size + k] * b[k * size + i])
        total += part * weights[i]
    return total


def apply(size: Static, a: Reals, x: Reals) -> None:
    """Replace x by the product a x."""
    y = local(size)
    for i in unrolled(size):
        total = a[i * size] * x[0]
        for k in unrolled(1, size):
            total += a[i * size + k] * x[k]
        y[i] = total
    for i in unrolled(size):
        x[i] = y[i]


def add_product(size: Static, a: Reals, x: Reals, y: Reals) -> None:
    """Add the product a x to y."""
    for i in unrolled(size):
        total = y[i]
        for k in unrolled(size):
            total += a[i * size + k] * x[k]
        y[i] = total


def subtract_product(size: Static, a: Reals, x: Reals, y: Reals) -> None:
    """Subtract the product a x from y."""
    for i in unrolled(size):
        total = y[i]
        for k in unrolled(size):
            total -= a[i * size + k] * x[k]
        y[i] = total
