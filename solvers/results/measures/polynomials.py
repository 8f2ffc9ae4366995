"""Polynomials by their values at the nodes of pieces: coefficients, values, zeros, integrals.

Pieces of time go from -1 to 1. There are many at once, and nothing of one depends on what others it
is computed with. Arrays of shape (P, d) are in the order of Fortran, so that operations on one
column read memory in sequence.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from flexure.diagrams.values.arrays import FloatArray

_HALF = 0.5**0.5
#: Lobatto points of Chebyshev.
NODES = (-1.0, -_HALF, 0.0, _HALF, 1.0)
#: What makes the polynomials that are zero at all nodes but one there 1.
NORMS = tuple(1.0 / prod(node - other for other in NODES if other != node) for node in NODES)
#: By how much of the range of its values at the nodes a polynomial goes beyond them at most: half
#: of what the Lebesgue constant of the nodes, 1.7988, exceeds 1 by, and a margin for rounding.
OVERSHOOT = 0.42
#: Where it is seen whether the polynomial through the nodes is the signal, and by which weights.
CHECK = 0.4
CHECK_WEIGHTS = tuple(
    norm * prod(CHECK - other for other in NODES if other != node)
    for node, norm in zip(NODES, NORMS, strict=True)
)
#: By which a polynomial may miss a signal, in units of its largest magnitude.
TOLERANCE = 1e-11
#: By which it may where pieces within a step are many.
COARSE = 1e-3
#: From where on metrics are rough.
ROUGH = 1e-2
#: The shortest piece, as a part of its step.
SHORTEST = 2.0**-30


_TRIES = 80  # of the search for a zero
_CLOSE = 2.0 * float(np.finfo(float).eps)
_NEAR = 0.1  # beyond an end, where that is tried instead
_ROUNDING = 2.0 * float(np.finfo(float).eps)  # of a polynomial, as a part of its coefficients


@lru_cache
def nodes_of(count: int) -> FloatArray:
    """Return the nodes of pieces that have so many, from -1 to 1."""
    return np.array([-1.0, 1.0] if count == 2 else NODES)


@lru_cache
def from_values(count: int) -> FloatArray:
    """Return the matrix that makes coefficients, of the powers of z, of values at nodes."""
    return np.asarray(np.linalg.inv(np.vander(nodes_of(count), increasing=True)).T)


@lru_cache
def integral_weights(count: int) -> FloatArray:
    """Return the weights of values at nodes in the integrals of y and of z y."""
    powers = np.arange(count)
    even = np.where(powers % 2 == 0, 2.0 / (powers + 1.0), 0.0)
    odd = np.where(powers % 2 == 1, 2.0 / (powers + 2.0), 0.0)
    return np.asarray(from_values(count) @ np.column_stack([even, odd]))


@lru_cache
def quadrature(count: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return points and weights of Gauss, and the matrix from values at nodes to the points."""
    points, weights = np.polynomial.legendre.leggauss(count)
    at_points = from_values(count) @ np.vander(points, count, increasing=True).T
    return points, weights[:, np.newaxis], at_points


def times_matrix(values: FloatArray, matrix: FloatArray) -> FloatArray:
    """Return a product, of which each row is the same to the last bit, whatever the others are."""
    product = np.empty((matrix.shape[1], len(values)))
    for entry, weights in zip(product, matrix.T, strict=True):
        np.multiply(values[:, 0], weights[0], out=entry)
        for k in range(1, len(weights)):
            np.add(entry, values[:, k] * weights[k], out=entry)
    return product.T


def rows_of(values: FloatArray, rows: NDArray[np.intp]) -> FloatArray:
    """Return some rows of an array, column by column."""
    return np.take(values.T, rows, axis=1).T


def horner(c: FloatArray, z: FloatArray) -> FloatArray:
    """Return polynomials with coefficients of shape (P, d), at z of shape (P,) or (P, k)."""
    columns = c.T.reshape(c.shape[1], len(c), *[1] * (z.ndim - 1))
    y = columns[-1] + 0.0 * z
    for column in columns[-2::-1]:
        y *= z
        y += column
    return np.asarray(y)


def slopes_of(c: FloatArray) -> FloatArray:
    """Return the coefficients of derivatives."""
    return c[:, 1:] * np.arange(1.0, c.shape[1])


def integrals_of(c: FloatArray) -> FloatArray:
    """Return the coefficients of integrals from 0 on."""
    return np.hstack([np.zeros((len(c), 1)), c / np.arange(1.0, c.shape[1] + 1)])


def coefficients_of(values: FloatArray) -> FloatArray:
    """Return the coefficients of powers of z; what is constant stays so to the last bit."""
    base = values[:, :1]
    c = times_matrix(values - base, from_values(values.shape[1]))
    c[:, 0] += base[:, 0]
    return c


@np.errstate(all="ignore")
def zero_between(c: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return where each polynomial is zero, which changes its sign once from low to high."""
    if c.shape[1] == 2:
        return np.clip(-c[:, 0] / c[:, 1], low, high)
    rising, slope = horner(c, high) > horner(c, low), slopes_of(c)
    found, rows, at = np.empty(len(c)), np.arange(len(c)), 0.5 * (low + high)
    small = _ROUNDING * np.sum(np.abs(c), axis=1)
    for k in range(_TRIES):
        y = horner(c, at)
        over = (y > 0.0) == rising
        low, high = np.where(over, low, at), np.where(over, at, high)
        newton, middle = at - y / horner(slope, at), 0.5 * (low + high)
        near = np.clip(newton, low, high)  # every other time, as zeros may be at ends
        z = found[rows] = np.where(np.abs(newton - near) <= _NEAR * (k % 2), near, middle)
        going = np.flatnonzero((np.abs(z - at) > _CLOSE) & (np.abs(y) > small))
        if not len(going):
            break
        at = z
        if len(going) < len(rows):
            at, low, high = at[going], low[going], high[going]
            rows, rising, small = rows[going], rising[going], small[going]
            c, slope = rows_of(c, going), rows_of(slope, going)
    return found


@np.errstate(all="ignore")
def zeros_of(c: FloatArray) -> FloatArray:
    """Return where polynomials change their sign between -1 and 1, ascending; NaN for no more."""
    if c.shape[1] == 2:
        z = -c[:, :1] / c[:, 1:]
        return np.where(np.abs(z) < 1.0, z, np.nan)
    if c.shape[1] == 3:
        root = np.sqrt(c[:, 1] ** 2 - 4.0 * c[:, 0] * c[:, 2])
        half = -0.5 * (c[:, 1] + np.copysign(root, c[:, 1]))
        z = np.sort(np.column_stack([half / c[:, 2], c[:, 0] / half]), axis=1)
        return np.where(np.abs(z) < 1.0, z, np.nan)
    turns = np.sort(zeros_of(slopes_of(c)), axis=1)
    ends = np.ones((len(c), 1))
    edges = np.hstack([-ends, np.where(np.isnan(turns), 1.0, turns), ends])
    above = horner(c, edges) > 0.0
    row, k = np.nonzero(above[:, 1:] != above[:, :-1])
    found = np.full((len(c), c.shape[1] - 1), np.nan)
    found[row, k] = zero_between(rows_of(c, row), edges[row, k], edges[row, k + 1])
    return found
