"""Numbers of systems at rest, at one context or at many, and their derivatives by parameters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from flexure.blocks.multibody import MultibodyTree, Plant
from flexure.diagrams.concurrency.one_thread import in_one_thread
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.value_places import Way
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.equations.equations import Equations
from flexure.solvers.analysis.operating_points.equilibria import settled
from flexure.solvers.design.objectives.measures import Measure, Piece, Seen
from flexure.solvers.design.objectives.parametric_models import ParametricModel
from flexure.solvers.design.objectives.strokes import Stroke, StrokeMeasure


@dataclass(frozen=True, eq=False)
class _Look:
    """One measure at one point of the equations."""

    seen: Seen
    piece: Piece
    number: int

    def slopes(self) -> FloatArray:
        """Return the derivatives of the number by the parameters."""
        return slopes_of(self.seen, self.piece, self.number)


@dataclass(frozen=True, eq=False)
class _Spread:
    """One measure with derivatives by coordinates that parameters follow."""

    look: _Slopes
    spread: FloatArray | None

    def slopes(self) -> FloatArray:
        """Return the derivatives of the number by the coordinates."""
        slopes = self.look.slopes()
        return slopes if self.spread is None else slopes @ self.spread


class _Slopes(Protocol):
    def slopes(self) -> FloatArray:
        """Return the derivatives of the number by the parameters."""


@dataclass(frozen=True, eq=False)
class RestPoint:
    """The numbers at an equilibrium."""

    context: Context  # the equilibrium
    values: FloatArray  # the numbers of the measures, shape (k,)
    _looks: list[_Slopes]

    def slopes(self) -> FloatArray:
        """Return their derivatives by the parameters, a row for each; NaN where there are none."""
        return np.array([look.slopes() for look in self._looks])


class RestNumbers:
    """The numbers of measures, as functions of parameters, at the equilibria near a context.

    Parameters
    ----------
    parameters : iterable of Way
        What varies.
    measures : sequence of Measure or StrokeMeasure
        The measures.
    attempt : str
        Beginning of messages.
    spread : ndarray, shape (k, n), optional
        How the k numbers of the parameters follow n coordinates, by which numbers are
        differentiated; the parameters themselves when omitted.
    """

    def __init__(
        self,
        parameters: Iterable[Way],
        measures: Sequence[Measure | StrokeMeasure],
        attempt: str,
        spread: FloatArray | None = None,
    ) -> None:
        self._parameters, self._attempt = list(parameters), attempt
        self._measures = list(measures)
        self._spread = spread
        self._flow: Equations | None = None
        self._model: ParametricModel | None = None
        self._strokes: dict[StrokeMeasure, Stroke] = {}

    @in_one_thread
    def at(self, context: Context) -> RestPoint:
        """Return the numbers at the equilibrium near a context, which is not changed."""
        start = context.clone()
        for leaf in start.leaves():
            tree = leaf.system
            plant = tree.parent_plant if isinstance(tree, MultibodyTree) else None
            if isinstance(plant, Plant) and plant.tree.constraints:
                plant.assemble(start)
        of_models = [each for each in self._measures if isinstance(each, Measure)]
        if of_models and self._model is None:
            requests = [each.request(start, self._attempt) for each in of_models]
            self._model = ParametricModel(
                start,
                self._parameters,
                requests,
                self._attempt,
                follows=True,
                spread=self._spread,
            )
        if self._flow is None:
            known = None if self._model is None else self._model.traced
            self._flow = Equations(start.clone(), shares=True, known=known)
        rest = settled(start.system, start, self._attempt, flow=self._flow).context
        values: list[float] = []
        looks: list[_Slopes] = []
        point = None if self._model is None else self._model.at(rest)
        for measure in self._measures:
            if isinstance(measure, StrokeMeasure):
                if measure not in self._strokes:
                    stroke = measure.equations(rest, self._parameters, self._attempt)
                    self._strokes[measure] = stroke
                value, worst = measure.look(self._strokes[measure], rest)
                values.append(value)
                looks.append(_Spread(worst, self._spread))
                continue
            assert self._model is not None
            assert point is not None
            number = of_models.index(measure)
            seen = Seen(self._model.realization(point, number), self._model, point)
            piece = measure.pieces(seen)[0]
            values.append(piece.value)
            looks.append(_Look(seen, piece, number))
        return RestPoint(rest, np.array(values), looks)


def slopes_of(seen: Seen, piece: Piece, number: int) -> FloatArray:
    """Return the derivatives of a piece by the parameters of the equations behind it."""
    if piece.weights is None:
        return np.full(seen.equations.num_parameters, np.nan)
    return np.asarray(
        seen.equations.slopes(
            seen.point, seen.model, number, piece.weights, piece.by_errors, piece.by_values
        )
    )


def number_at_rest(measure: Measure | StrokeMeasure, context: Context) -> float:
    """Return the number of one measure at the equilibrium near a context."""
    attempt = f"Cannot measure '{context.system.label}' at rest"
    return float(RestNumbers((), [measure], attempt).at(context).values[0])
