"""Sampled linear models whose parameters vary, with the derivatives of their matrices.

Derivatives of exponentials and of updates are exact, by the trace. Where the matrices change with
time or along the run of a period, derivatives are central differences of exact models.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.value_places import Way
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.equations.equations import find_ports, find_variables
from flexure.solvers.analysis.equations.tangents import gains
from flexure.solvers.analysis.linear_models.linear_inputs import LinearInputs
from flexure.solvers.analysis.linear_models.linearization import linearized
from flexure.solvers.analysis.sampled.sampling import SampledEquations
from flexure.solvers.design.objectives.parametric_models import Realization, Request

_STEP = float(np.finfo(float).eps ** (1 / 3))
_SMALLEST = 1e-3


@dataclass(frozen=True, eq=False)
class SampledPoint:
    """A context, and the derivatives of models there, as far as they were asked for."""

    context: Context
    made: dict[int, FloatArray]


class SampledModel:
    """The linear models of a root context from sample to sample, as functions of parameters."""

    def __init__(
        self,
        context: Context,
        parameters: Iterable[Way],
        requests: Sequence[Request],
        attempt: str,
        *,
        period: float,
    ) -> None:
        self._variables = find_variables(context, list(parameters), attempt)
        self.num_parameters = sum(len(variable.keys) for variable in self._variables)
        self._requests, self._attempt, self._period = requests, attempt, period
        self.is_exact = True  # whether all derivatives so far were exact

    def at(self, context: Context) -> SampledPoint:
        """Return a point at the values of a context."""
        return SampledPoint(context.clone(), {})

    def realization(self, point: SampledPoint, number: int) -> Realization:
        """Return the linear model of a request at a point."""
        context, request = point.context, self._requests[number]
        model = linearized(
            context.system,
            context,
            list(request.inputs),
            cast("list[Way]", list(request.outputs)),
            self._attempt,
            openings=list(request.openings),
            period=self._period,
        )
        matrices = model.A, model.B, model.C, model.D
        return Realization(*matrices, model.tangent, model.y0, self._period)

    def slopes(
        self,
        point: SampledPoint,
        realization: Realization,
        number: int,
        weights: FloatArray,
        *_: object,
    ) -> FloatArray:
        """Return the derivatives by the parameters, as `ParametricModel.slopes` does."""
        if number not in point.made:
            exact = self._exact_changes(point.context, number)
            self.is_exact = self.is_exact and exact is not None
            point.made[number] = self._differences(point, number) if exact is None else exact
        return np.asarray(np.tensordot(point.made[number], weights, 2))

    def _exact_changes(self, context: Context, number: int) -> FloatArray | None:
        """Return the derivatives of a model by the parameters, if they are known."""
        request = self._requests[number]
        entries = LinearInputs(context, request.inputs, request.openings, self._attempt)
        outputs = cast("list[Way]", list(request.outputs))
        places = find_ports(context.system, outputs, "an output")
        as_gain = any(gains(entries.context))
        sampled = SampledEquations(entries, places, self._period, self._attempt, as_gain=as_gain)
        return sampled.slopes_by(self._variables)

    def _differences(self, point: SampledPoint, number: int) -> FloatArray:
        """Return central differences of a model by the parameters."""
        changes = []
        for variable in self._variables:
            numbers = variable.read(point.context.store)
            for k in range(len(numbers)):
                step = np.zeros(len(numbers))
                step[k] = _STEP * max(abs(numbers[k]), _SMALLEST)
                ends = []
                for sign in (1.0, -1.0):
                    beside = point.context.clone()
                    variable.write(beside.store, numbers + sign * step)
                    found = self.realization(SampledPoint(beside, {}), number)
                    ends.append(np.block([[found.A, found.B], [found.C, found.D]]))
                changes.append((ends[0] - ends[1]) / (2.0 * step[k]))
        return np.array(changes)
