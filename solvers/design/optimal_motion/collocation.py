"""Collocation: polynomials on the intervals of a mesh, and the points at which they are matched."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
from numpy.polynomial import Legendre, Polynomial

from flexure.diagrams.values.arrays import FloatArray

IntArray = npt.NDArray[np.intp]

#: Families of points at which rates are matched: whether the beginning of an interval is one.
METHODS = {"hermite_simpson": True, "radau": False}
#: Points in each interval on the first mesh, and on finer ones.
FIRST, FINER = 3, 5
_BEFORE = 1e-12  # from an instant at which sources jump
#: How inputs go on between the nodes of the mesh.
KINDS = ("linear", "hold")


@dataclass(frozen=True, eq=False)
class Collocation:
    """A method on a mesh: its points, and the instants at which the equations are evaluated.

    The state of an interval is the polynomial whose rate is that of the equations at the stages.
    Instants are parts of the duration, 0 to 1.
    """

    # One of `METHODS`: Lobatto IIIA, which is Hermite-Simpson with three points, or Radau IIA.
    method: str
    count: int  # number of points at which rates are matched in each interval
    kind: str  # of `KINDS`: how inputs go on between the nodes of the mesh
    mesh: FloatArray  # nodes between the intervals, shape (n + 1,)
    # Whether the end of an interval and the beginning of the next one are evaluated at once; not
    # where the equations jump in time.
    shares_ends: bool = True
    lengths: FloatArray = field(init=False)
    points: FloatArray = field(init=False)
    stages: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        stages = _stages(self.count, METHODS[self.method])
        local = stages[stages > 0.0]
        lengths = np.diff(self.mesh)
        inner = self.mesh[:-1, np.newaxis] + lengths[:, np.newaxis] * local
        inner[:, -1] = self.mesh[1:]
        object.__setattr__(self, "lengths", lengths)
        object.__setattr__(self, "stages", stages)
        object.__setattr__(self, "points", np.concatenate([self.mesh[:1], inner.ravel()]))

    def with_mesh(self, mesh: FloatArray, count: int) -> Collocation:
        """Return the same method on another mesh."""
        return replace(self, mesh=mesh, count=count)

    @property
    def intervals(self) -> int:
        """Number of intervals."""
        return len(self.lengths)

    @property
    def per_interval(self) -> int:
        """Number of points in an interval behind its beginning."""
        return int(np.sum(self.stages > 0.0))

    @property
    def order(self) -> int:
        """Order of the error of one interval."""
        return 2 * len(self.stages) - (1 if self.stages[0] == 0.0 else 0)

    @property
    def inputs(self) -> int:
        """Number of nodes at which inputs are free."""
        return self.intervals + (self.kind == "linear")

    def shares(self, parts: FloatArray) -> FloatArray:
        """Return by how much of its duration each stage moves the state, shape (parts, stages).

        Row ``k`` integrates the rates of the stages from the beginning of an interval of length one
        to ``parts[k]``.
        """
        columns = []
        for k, stage in enumerate(self.stages):
            others = np.delete(self.stages, k)
            basis = Polynomial.fromroots(others) / float(np.prod(stage - others))
            columns.append(basis.integ()(parts))
        return np.stack(columns, axis=-1)

    @property
    def weights(self) -> FloatArray:
        """Shares of all points of an interval behind its beginning."""
        return self.shares(self.stages[self.stages > 0.0])

    @property
    def evaluations(self) -> tuple[IntArray, FloatArray, IntArray, FloatArray]:
        """Where equations are evaluated, e times, and where each stage finds its evaluation.

        Returns the point of each evaluation, shape (e,), and its instant (e,), which is the last
        one before the end of an interval, unless ends are shared; the evaluation of each stage
        (intervals, stages); and the share of nodes of the inputs in each evaluation (inputs, e).
        """
        n, size, count = self.intervals, self.per_interval, len(self.stages)
        first = 0 if self.stages[0] == 0.0 else 1
        of_stage = np.arange(n)[:, np.newaxis] * size + np.arange(count) + first
        shared = self.shares_ends and self.kind == "linear"
        points = np.arange(n * size + 1) if shared else of_stage.ravel()
        instants = self.points[points].copy()
        if not shared:
            of_stage = np.arange(n * count).reshape(n, count)
            if not self.shares_ends:
                instants[of_stage[:, -1]] -= _BEFORE
        blend = np.zeros((self.inputs, len(points)))
        for k in range(n):
            for stage, where in zip(self.stages, of_stage[k], strict=True):
                late = stage if self.kind == "linear" else 0.0
                blend[k, where] = 1.0 - late
                if late:
                    blend[k + 1, where] = late
        if shared and first:
            blend[0, 0] = 1.0
        return points, instants, of_stage, blend

    def inputs_at(self, values: FloatArray, instants: FloatArray) -> FloatArray:
        """Return inputs at instants from those at the nodes, shape (inputs, instants)."""
        if self.kind == "hold":
            at = np.searchsorted(self.mesh, instants, side="right") - 1
            return values[:, np.clip(at, 0, self.intervals - 1)]
        return np.array([np.interp(instants, self.mesh, row) for row in values])

    def states_at(self, states: FloatArray, rates: FloatArray, instants: FloatArray) -> FloatArray:
        """Return states at instants, parts of the duration, from those at the points.

        Rates, shape (states, evaluations), are derivatives by the part of the duration.
        """
        _, _, of_stage, _ = self.evaluations
        at = np.clip(np.searchsorted(self.mesh, instants, side="right") - 1, 0, self.intervals - 1)
        parts = (instants - self.mesh[at]) / self.lengths[at]
        moved = np.einsum("ms,nms->nm", self.shares(parts), rates[:, of_stage[at]])
        found: FloatArray = states[:, at * self.per_interval] + moved * self.lengths[at]
        return found


def _stages(count: int, begins: bool) -> FloatArray:
    """Return the points of Lobatto, or of Radau, as parts of an interval."""
    last = Legendre.basis(count - 1)
    if begins:
        inner = last.deriv().roots()
        found = np.concatenate([[-1.0], inner, [1.0]])
    else:
        found = (Legendre.basis(count) - last).roots()
        found[-1] = 1.0
    return (np.sort(found.real) + 1.0) / 2.0
