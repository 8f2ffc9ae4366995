"""Numbers of systems at rest, at one context or at many, and their derivatives by parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from flexure.diagrams.concurrency.one_thread import in_one_thread
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.value_places import Way
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.equations.equations import Equations
from flexure.solvers.analysis.forces_at_rest.static_coordinates import plants_in
from flexure.solvers.analysis.operating_points.equilibria import settled
from flexure.solvers.design.objectives.measures import Measure, Piece, Seen
from flexure.solvers.design.objectives.parametric_models import ParametricModel
from flexure.solvers.design.objectives.strokes import Stroke, StrokeMeasure


@dataclass(frozen=True, eq=False)
class RestPoint:
    """The numbers at an equilibrium."""

    context: Context  # the equilibrium
    values: FloatArray  # the numbers of the measures, shape (k,)
    _slopes: list[Callable[[], FloatArray]]

    def slopes(self) -> FloatArray:
        """Return their derivatives by the parameters, a row for each; NaN where there are none."""
        return np.array([each() for each in self._slopes])


class RestNumbers:
    """The numbers of measures, as functions of parameters, at the equilibria near a context.

    ``spread`` is that of `ParametricModel`.
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
        self._flow: Equations | None = None  # of all equilibria, traced and checked once
        self._model: ParametricModel | None = None
        self._strokes: dict[StrokeMeasure, Stroke] = {}

    @in_one_thread
    def at(self, context: Context) -> RestPoint:
        """Return the numbers at the equilibrium near a context, which is not changed."""
        start = context.clone()
        for plant in plants_in(start.system):
            if plant.tree.constraints:
                plant.assemble(start)
        of_models = [each for each in self._measures if isinstance(each, Measure)]
        if of_models and self._model is None:
            requests = [each.request(start, self._attempt) for each in of_models]
            ways, attempt = self._parameters, self._attempt
            self._model = ParametricModel(
                start, ways, requests, attempt, follows=True, spread=self._spread
            )
        model: Any = self._model
        if self._flow is None:
            self._flow = Equations(start.clone(), shares=True, known=model and model.traced)
        rest = settled(start.system, start, self._attempt, flow=self._flow).context
        point = model and model.at(rest)
        found: list[tuple[float, Callable[[], FloatArray]]] = []
        for measure in self._measures:
            if isinstance(measure, StrokeMeasure):
                if measure not in self._strokes:
                    given = self._parameters, self._attempt, self._spread
                    self._strokes[measure] = Stroke(measure, rest, *given)
                found.append(self._strokes[measure].at(rest))
                continue
            number = of_models.index(measure)
            seen = Seen(model.realization(point, number), model, point)
            piece = measure.pieces(seen)[0]
            found.append((piece.value, partial(slopes_of, seen, piece, number)))
        return RestPoint(rest, np.array([value for value, _ in found]), [by for _, by in found])


def slopes_of(seen: Seen, piece: Piece, number: int) -> FloatArray:
    """Return the derivatives of a piece by the parameters of the equations behind it."""
    if piece.weights is None:
        return np.full(seen.equations.num_parameters, np.nan)
    by = piece.weights, piece.by_errors, piece.by_values
    return np.asarray(seen.equations.slopes(seen.point, seen.model, number, *by))


def number_at_rest(measure: Measure | StrokeMeasure, context: Context) -> float:
    """Return the number of one measure at the equilibrium near a context."""
    attempt = f"Cannot measure '{context.system.label}' at rest"
    return float(RestNumbers((), [measure], attempt).at(context).values[0])
