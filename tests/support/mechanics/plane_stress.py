"""Finite elements in plane stress, for notches in a deep block: an independent route."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse import linalg

import flexure as fx
from flexure.diagrams.values.arrays import FloatArray

_PLACES, _WEIGHTS = np.polynomial.legendre.leggauss(3)


def _shapes(s: float) -> tuple[FloatArray, FloatArray]:
    """The three quadratic functions on [-1, 1], and their slopes."""
    return (
        np.array([0.5 * s * (s - 1.0), 1.0 - s * s, 0.5 * s * (s + 1.0)]),
        np.array([s - 0.5, -2.0 * s, s + 0.5]),
    )


def bend(
    notch: fx.sections.Notch, depth: float, columns: int = 24, rows: int = 8
) -> tuple[float, float]:
    """Angle per moment of a notch of width 1 with E = 1 and ν = 0.3, and its stress concentration.

    A quarter is modelled, of the notch and of a block of the half height ``depth`` and twice its
    length, in which a moment about z bends it; what the block bends as a beam is taken off.
    """
    (a, c), half, t = notch.half_axes, 0.5 * notch.neck_length, notch.thickness
    angle = np.sin(np.linspace(0.0, 0.5 * np.pi, columns + 1) ** 1.5 / (0.5 * np.pi) ** 0.5)
    end, ramp = half + a, 0.15 * t
    edges = [
        half * np.linspace(0.0, 1.0, columns // 2 + 1)[:-1] if half else [],
        half + a * angle,
        end + ramp * np.linspace(0.0, 1.0, 9)[1:],
        end + ramp + 2.0 * depth * np.linspace(0.0, 1.0, 16)[1:] ** 1.7,
    ]
    x = np.repeat(np.concatenate(edges), 2)[:-1]
    x[1::2] = 0.5 * (x[:-1:2] + x[2::2])
    round_ = 0.5 * t + c * (1.0 - np.sqrt(1.0 - np.clip((x - half) / a, 0.0, 1.0) ** 2))
    top = round_ + (depth - 0.5 * t - c) * np.clip((x - end) / ramp, 0.0, 1.0)
    up = np.linspace(0.0, 1.0, 2 * rows + 1)
    points = np.stack([np.repeat(x, up.size), np.outer(top, up).ravel()], axis=1)
    number = np.arange(points.shape[0]).reshape(x.size, up.size)
    cells = np.array(
        [
            number[i : i + 3, j : j + 3].ravel()
            for i in range(0, x.size - 2, 2)
            for j in range(0, up.size - 2, 2)
        ]
    )
    law = np.array([[1.0, 0.3, 0.0], [0.3, 1.0, 0.0], [0.0, 0.0, 0.35]]) / 0.91
    stiffness = np.zeros((len(cells), 18, 18))
    for s, ws in zip(_PLACES, _WEIGHTS, strict=True):
        for r, wr in zip(_PLACES, _WEIGHTS, strict=True):
            (f, df), (g, dg) = _shapes(s), _shapes(r)
            slopes = np.stack([np.outer(df, g).ravel(), np.outer(f, dg).ravel()])
            map_ = slopes @ points[cells]
            by_place = np.linalg.solve(map_, np.broadcast_to(slopes, (len(cells), 2, 9)))
            strain = np.zeros((len(cells), 3, 18))
            strain[:, 0, ::2] = strain[:, 2, 1::2] = by_place[:, 0]
            strain[:, 1, 1::2] = strain[:, 2, ::2] = by_place[:, 1]
            volume = np.linalg.det(map_) * ws * wr
            stiffness += volume[:, None, None] * (strain.transpose(0, 2, 1) @ law @ strain)
    unknowns = np.stack([2 * cells, 2 * cells + 1], axis=2).reshape(len(cells), 18)
    rows_, columns_ = np.repeat(unknowns, 18, axis=1), np.tile(unknowns, (1, 18))
    size = 2 * points.shape[0]
    entries = (stiffness.ravel(), (rows_.ravel(), columns_.ravel()))
    matrix = sparse.csc_matrix(entries, shape=(size, size))
    load = np.zeros(size)
    for j in range(0, up.size - 2, 2):
        nodes = number[-1, j : j + 3]
        low, high = points[nodes[0], 1], points[nodes[-1], 1]
        for s, w in zip(_PLACES, _WEIGHTS, strict=True):
            y = 0.5 * (low + high) + 0.5 * (high - low) * s
            traction = -1.5 * y / depth**3  # of a moment of one on the whole height
            load[2 * nodes] += _shapes(s)[0] * traction * 0.5 * (high - low) * w
    held = {*(2 * number[0]), *(2 * number[:, 0]), 2 * number[0, 0] + 1}  # by symmetry
    free = np.setdiff1d(np.arange(size), list(held))
    moved = np.zeros(size)
    moved[free] = linalg.spsolve(matrix[free][:, free], load[free])
    surface = number[:, -1]
    along = np.diff(points[surface], axis=0)
    stretch = np.sum(np.diff(moved.reshape(-1, 2)[surface], axis=0) * along, axis=1)
    stress = -np.min(stretch / np.sum(along * along, axis=1))
    block = 2.0 * depth * 12.0 / (2.0 * depth) ** 3
    return float(4.0 * load @ moved - 2.0 * block), float(stress * t * t / 6.0)
