"""A table of 10^5 nodes as a flexible body: its reduction, and a run of a stage with it.

Run it with ``python benchmarks/flexures/bodies.py [--quick] [--json FILE]``. The table is a
block of quadratic hexahedra with two pads on leaves. The *reduction* goes from mesh to body:
assembly, factors, constraint modes and eigenvalues. *SuperLU* is SciPy's sparse elimination with
its ordering by minimum degree, of the same matrix in a smaller size; both find the same
displacements. *Run* is that of a stage whose table moves on its leaves, against one with a rigid
table, after a first run, over the number of velocities that the body adds. The time of the
reduction is by the clock; all others are those of the processor.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

import flexure as fx
from benchmarks.versus.table import Row, formatted, write
from flexure.blocks.flexures.bodies.dissection import Cholesky
from flexure.blocks.flexures.bodies.solid_mesh import solid_matrices
from flexure.diagrams.concurrency.one_thread import one_thread
from flexure.diagrams.values.arrays import FloatArray

STEEL = fx.Material.common("structural steel S235")
SIZE = np.array([0.12, 0.08, 0.02])
CELLS, FEW, SMALL = (48, 32, 8), (24, 12, 4), (12, 9, 3)
MODES, END = 4, 0.02


def mesh(cells: tuple[int, int, int]) -> Any:
    """Return a block of hexahedra."""
    import meshio  # type: ignore[import-untyped]

    lines = [np.linspace(0.0, s, n + 1) for s, n in zip(SIZE, cells, strict=True)]
    numbers = np.arange(np.prod([len(each) for each in lines])).reshape(*map(len, lines))
    points = np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, 3)
    corners = [(0, 0), (1, 0), (1, 1), (0, 1)]
    a, b, c = cells
    parts = [numbers[i : a + i, j : b + j, k : c + k].ravel() for k in (0, 1) for i, j in corners]
    return meshio.Mesh(points, [("hexahedron", np.stack(parts, axis=1))])


def pad(x: float) -> Any:
    """Return a function that chooses nodes of a pad on the lower face, at one end of the table."""

    def chosen(nodes: FloatArray) -> Any:
        return (nodes[:, 2] < 1e-9) & (np.abs(nodes[:, 0] - x) < 0.01 + 1e-9)

    return chosen


PADS = {"left": pad(0.01), "right": pad(0.11)}


def stage(table: fx.FlexibleBody | None) -> fx.Plant:
    """Return a table on two leaves; rigid without a body."""
    builder = fx.PlantBuilder("stage", gravity=(0.0, 0.0, 0.0))
    ends: list[fx.Body | fx.Frame]
    if table is None:
        mass = STEEL.density * float(np.prod(SIZE))
        body = builder.add_body("table", fx.SpatialInertia.solid_box(mass, size=tuple(SIZE)))
        builder.add_joint(fx.RpyFloatingJoint("motion", builder.world, body))
        ends = [
            builder.add_frame(f"p{k}", body, (x, 0, -0.01)) for k, x in enumerate((-0.05, 0.05))
        ]
    else:
        builder.add_assembly(table)
        ends = [table.interfaces["left"], table.interfaces["right"]]
        builder.add_joint(fx.RpyFloatingJoint("motion", builder.world, ends[0]))
    up = np.array([[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    for k, (end, x) in enumerate(zip(ends, (-0.05, 0.05), strict=True)):
        origin = x + 0.05 if table is not None else x
        low = 0.0 if table is not None else -0.01
        foot = builder.add_frame(f"foot{k}", builder.world, (up, (origin, 0.0, low - 0.05)))
        top = builder.add_frame(f"top{k}", end, (up, (0.0, 0.0, 0.0)))
        leaf: dict[str, Any] = {"length": 0.05, "width": 0.02, "thickness": 2e-4, "material": STEEL}
        builder.add_force_element(fx.LeafSpring(f"leaf{k}", foot, top, damping_time=1e-5, **leaf))
    return builder.build()


def seconds(plant: fx.Plant) -> float:
    """Return the processor time of a run from a deflection, after a first one."""
    context = plant.create_default_context()
    plant.joint("motion").velocities.set(context, [0.0, 0.0, 0.0, 0.01, 0.0, 0.0])
    for _ in range(2):
        start = time.process_time()
        fx.simulate(plant, END, context=context, method="ESDIRK4", rtol=1e-5)
        taken = time.process_time() - start
    return taken


def elimination(cells: tuple[int, int, int]) -> float:
    """Return the time that SuperLU takes over that of dissection, for one matrix."""
    from scipy.sparse import csc_array
    from scipy.sparse.linalg import splu

    _, K, nodes, found, _ = solid_matrices(mesh(cells), STEEL, PADS, "Cannot measure")
    rest = np.setdiff1d(np.arange(len(nodes)), found["left"])
    free = (3 * rest[:, np.newaxis] + np.arange(3)).ravel()
    matrix, load = K.tocsr()[free][:, free], np.ones(len(free))
    start = time.process_time()
    with one_thread():
        ours = Cholesky(K, nodes, rest).solve(load)
    middle = time.process_time()
    options: dict[str, Any] = {"options": {"SymmetricMode": True}, "diag_pivot_thresh": 0.0}
    theirs = splu(csc_array(matrix), permc_spec="MMD_AT_PLUS_A", **options).solve(load)
    end = time.process_time()
    assert np.abs(ours - theirs).max() < 1e-6 * np.abs(theirs).max(), "the factors disagree"
    return (end - middle) / (middle - start)


def main() -> None:
    """Print the times and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a coarser mesh")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    arguments = parser.parse_args()
    cells = FEW if arguments.quick else CELLS
    start, spent = time.perf_counter(), time.process_time()
    options: dict[str, Any] = {"modes": MODES, "damping_ratio": 0.02}
    table = fx.FlexibleBody.from_mesh("table", mesh(cells), STEEL, PADS, **options)
    taken, spent = time.perf_counter() - start, time.process_time() - spent
    nodes = f"{len(table.reduced.nodes)} nodes, {spent:.0f} s of processor time"
    rows = [Row("table", "reduction in s", taken, 60.0, "lower", nodes)]
    ratio = elimination(SMALL)
    rows.append(Row("small table", "SuperLU / dissection", ratio, 1.0, "higher"))
    flexible, rigid = stage(table), stage(None)
    added = flexible.num_velocities - rigid.num_velocities
    ratio = seconds(flexible) / seconds(rigid) / added
    rows.append(Row("stage", "run / rigid, per mode", ratio, 1.5, "lower", f"{added} added"))
    print(formatted(rows))
    if arguments.json:
        write(rows, arguments.json)


if __name__ == "__main__":
    main()
