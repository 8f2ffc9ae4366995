"""The change of a sampled diagram over one period, as a function of its initial values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.value_places import find_place
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.equations.equations import Variable, write_variables
from flexure.solvers.analysis.linear_models.linear_model import LinearModel
from flexure.solvers.analysis.linear_models.linearization import linearized


class SampleSteps:
    """The change of states and discrete values over a period, with the interface of `Equations`.

    It is that of the linear model with the derivatives at each point, which do not change along the
    way. So the derivatives by the point are exact where nothing moves, which is enough for Newton
    steps towards such a point. Evaluations change the context.
    """

    def __init__(
        self, context: Context, variables: Sequence[Variable], period: float, attempt: str
    ) -> None:
        self._context, self._variables, self._period = context, variables, period
        self._attempt = attempt
        self._model = self._linearized()
        self._at = self.point()
        self.names = self._model.state_names  # of states and discrete values
        self.how = self._model.how

    def _linearized(self) -> LinearModel:
        inputs = [variable.place.path for variable in self._variables]
        context, period = self._context, self._period
        system, attempt = context.system, self._attempt
        return linearized(
            system, context, inputs, [], attempt, period=period, as_gain=False, frozen=True
        )

    def point(self) -> FloatArray:
        """Return the present states, discrete values and variables, end to end."""
        store = self._context.store
        return np.concatenate([self._model.x0, *[v.read(store) for v in self._variables]])

    def values(self, point: FloatArray) -> FloatArray:
        """Return what a period adds at a point."""
        return self._model_at(point).xdot0

    def jacobian(self, point: FloatArray) -> FloatArray:
        """Return the derivatives of `values` by the point, for a point where nothing moves."""
        model = self._model_at(point)
        return np.hstack([model.A - np.eye(len(model.A)), model.B])

    def write(self, context: Context, point: FloatArray) -> None:
        """Set states and discrete values in a context."""
        n = context.store.layout.num_states
        context.continuous_state = point[:n]
        for name, number in zip(self.names[n:], point[n:], strict=False):
            place = find_place(context.system, name)
            place.write(context, np.full(place.shape or (), number))

    def _model_at(self, point: FloatArray) -> LinearModel:
        if not np.array_equal(point, self._at):
            self.write(self._context, point)
            write_variables(self._context.store, self._variables, point[len(self.names) :])
            self._model = self._linearized()
            self._at = point.copy()
        return self._model
