"""Kernels that solve ``(d I - J) y = b`` by factors in blocks of states.

States that only integrate another state, as positions do with velocities, are expressed by it:
where x' = e v, the equation of x gives ``y_x = (b_x + e y_v) / d``, and what depended on x depends
on v. The remaining equations are eliminated block by block; a block has the states of a body, in an
order chosen once for the places (`flexure.solvers.native.emission.sparse_factors`). All
coefficients between two blocks are a *tile*, a small dense matrix.

As in `flexure.solvers.native.kernels.parts.linear_solves`, pivots are taken as they come, and where
elimination adds too much to the diagonal of the equations the factors are not used. That is
measured in units of the entry itself, so that units of the states have no influence.
"""

from __future__ import annotations

from flexure.solvers.native.kernels.parts.small_matrices import (
    add_product,
    apply,
    crossing,
    fill,
    invert,
    multiply,
    subtract,
    subtract_product,
)
from flexure.solvers.native.language.language import Floats, Ints, Real, Static, Structure, unrolled

APART = True  # they are called at many places of a step


class BlockData(Structure):
    """Where the entries of factors in blocks are, and the factors.

    The fields down to ``targets`` mean what those of
    `flexure.solvers.native.emission.sparse_factors.BlockFactors` do.
    """

    count: int
    kept: int
    expressed: int
    states: Ints
    places: Ints
    positions: Ints
    followed: Ints
    links: Ints
    starts: Ints
    others: Ints
    direct: Ints
    through: Ints
    columns: Ints
    targets: Ints
    d: float
    tiles: Floats  # the factors
    passed: Floats  # coefficients of expressed states, in tiles
    ratios: Floats  # e / d for every place
    own: Floats  # sizes of the diagonal entries
    weights: Floats  # one over these
    y: Floats  # a solution
    z: Floats  # b / d of the expressed states


def block_growth(blocks: BlockData, size: Static, d: float, entries: Floats) -> Real:
    """Compute the factors; return by how much they grow, NaN for none.

    Tiles on the diagonal become their inverses, those behind these are multiplied with them, and
    those below stay as they are. What is added to diagonal entries is measured in units of their
    size at first, and so is how much smaller pivots become.
    """
    tiles, weights, starts = blocks.tiles, blocks.weights, blocks.starts
    area = size * size
    growth = fill_blocks(blocks, size, d, entries)
    target = 0
    for k in range(blocks.count):
        diagonal = tiles[k * area :]
        growth += invert(size, diagonal, weights[k * size :])
        for i in unrolled(size):
            growth += abs(diagonal[i * size + i]) * blocks.own[k * size + i]
        for e in range(starts[k], starts[k + 1]):
            multiply(size, diagonal, tiles[(blocks.count + 2 * e) * area :])
        for e in range(starts[k], starts[k + 1]):
            below = tiles[(blocks.count + 2 * e + 1) * area :]
            behind = tiles[(blocks.count + 2 * e) * area :]
            growth += crossing(size, below, behind, weights[blocks.others[e] * size :])
            for g in range(starts[k], starts[k + 1]):
                behind = tiles[(blocks.count + 2 * g) * area :]
                subtract(size, below, behind, tiles[blocks.targets[target] * area :])
                target += 1
    return growth


def fill_blocks(blocks: BlockData, size: Static, d: float, entries: Floats) -> Real:
    """Put the coefficients into the tiles; return what expressed states add to the diagonal."""
    blocks.d = d
    area = size * size
    ratios = blocks.ratios
    for i in range(blocks.count * size):
        ratios[i] = entries[blocks.links[i]] / d
    for tile in range(blocks.count + 2 * blocks.starts[blocks.count]):
        first = tile * area
        fill(
            size,
            entries,
            blocks.direct[first:],
            blocks.through[first:],
            ratios[blocks.columns[tile] :],
            blocks.tiles[first:],
            blocks.passed[first:],
        )
    growth = 0.0
    for k in range(blocks.count):
        for i in unrolled(size):
            e = k * area + i * (size + 1)
            own = abs(d - entries[blocks.direct[e]])
            weight = 1.0 / own
            growth += abs(blocks.passed[e] * ratios[k * size + i]) * weight
            blocks.own[k * size + i] = own
            blocks.weights[k * size + i] = weight
            blocks.tiles[e] += d
    return growth


def solve_blocks(blocks: BlockData, size: Static, b: Floats) -> None:
    """Replace the right-hand side by the solution."""
    tiles, passed, y, z = blocks.tiles, blocks.passed, blocks.y, blocks.z
    starts, others = blocks.starts, blocks.others
    area = size * size
    for i in range(blocks.count * size):
        y[i] = 0.0
    for i in range(blocks.kept):
        y[blocks.places[i]] = b[blocks.states[i]]
    for i in range(blocks.expressed):
        z[blocks.followed[i]] = b[blocks.positions[i]] / blocks.d
    for k in range(blocks.count):
        own, expressed = y[k * size :], z[k * size :]
        add_product(size, passed[k * area :], expressed, own)
        for e in range(starts[k], starts[k + 1]):
            add_product(size, passed[(blocks.count + 2 * e) * area :], z[others[e] * size :], own)
        apply(size, tiles[k * area :], own)
        for e in range(starts[k], starts[k + 1]):
            first = (blocks.count + 2 * e + 1) * area
            other = y[others[e] * size :]
            add_product(size, passed[first:], expressed, other)
            subtract_product(size, tiles[first:], own, other)
    for k in range(blocks.count - 1, -1, -1):
        own = y[k * size :]
        for e in range(starts[k], starts[k + 1]):
            first = (blocks.count + 2 * e) * area
            subtract_product(size, tiles[first:], y[others[e] * size :], own)
    for i in range(blocks.kept):
        b[blocks.states[i]] = y[blocks.places[i]]
    for i in range(blocks.expressed):
        place = blocks.followed[i]
        b[blocks.positions[i]] = z[place] + blocks.ratios[place] * y[place]
