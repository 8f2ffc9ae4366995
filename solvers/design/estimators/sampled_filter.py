"""The base of sampled Kalman filters: ports, samples that are missing, the covariance."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.signals.argument_shapes import full
from flexure.diagrams import scalars
from flexure.diagrams.checks.arguments import is_whole, items_of, require
from flexure.diagrams.systems.leaf import LeafSystem
from flexure.diagrams.values.arrays import Array, FloatArray
from flexure.diagrams.values.events import Periodic
from flexure.diagrams.values.handles import Handle
from flexure.solvers.design.state_space.weights import Weights, weights


class SampledFilter(LeafSystem):
    """Base class of sampled Kalman filters.

    At each sample, the estimate and its covariance are predicted from the sample before, with the
    input since then, and corrected by what is measured now. At the first sample there is only the
    correction: the initial estimate is that before it. Subclasses

    1. call this constructor with the names of states, inputs and outputs;
    2. implement `predict` and `correct` in NumPy for one sample.

    Attributes
    ----------
    u : InputPort or None
        Input "u", the known inputs, as they were since the sample before; None if there are none.
    y : InputPort
        Input "y", the measured outputs.
    available : InputPort
        Input "available", of the size of y: 1 where there is a sample, 0 where it is missing; ones
        while nothing is connected.
    x, P, results : DiscreteState
        The estimate, its covariance in C order, and innovations, NIS and number of samples.
    count : DiscreteState
        How many samples there were.
    estimate, deviation, covariance : LeafOutputPort
        The estimate, its standard deviations, and its covariance in C order.
    innovation : LeafOutputPort
        What was measured minus what was expected; zero where samples are missing.
    nis, num_used : LeafOutputPort
        Normalized innovation squared ``νᵀ S⁻¹ ν``, and the number of measured components in it.
    W, V : NumericParameter
        Intensity or covariance of the noise of states, and covariance of that of measurements.
    """

    def __init__(
        self,
        name: str,
        names: tuple[Sequence[str], Sequence[str], Sequence[str]],
        *,
        W: Weights,
        V: Weights,
        period: float,
        offset: float,
        initial: npt.ArrayLike,
        initial_covariance: Weights,
        every: int | Sequence[int],
    ) -> None:
        super().__init__(name)
        states, inputs, outputs = names
        n, m, p = len(states), len(inputs), len(outputs)
        attempt = f"Cannot make block '{name}'"
        spread = weights(initial_covariance, states, "initial_covariance", attempt)
        noise = weights(W, states, "W", attempt)
        errors = weights(V, outputs, "V", attempt, definite=True)
        trigger = Periodic(period, offset)
        self.period, self.offset = trigger.period, trigger.offset
        self.state_names, self.output_names = tuple(states), tuple(outputs)
        self._every = _counts(every, p, attempt)
        self.W = self.declare_numeric_parameter("W", noise, doc="noise of states")
        self.V = self.declare_numeric_parameter("V", errors, doc="noise of measurements")
        self.u = self.declare_vector_input("u", m) if m else None
        self.y = self.declare_vector_input("y", p)
        self.available = self.declare_vector_input("available", p, default=np.ones(p))
        self.x = self.declare_discrete_state("x", full(self, "initial", initial, n))
        self.P = self.declare_discrete_state("P", spread.ravel(), doc="covariance")
        self.results = self.declare_discrete_state("results", np.zeros(p + 2))
        self.count = self.declare_discrete_state("count", [0.0], doc="samples until now")
        self.declare_discrete_update(self.update, trigger)
        self.estimate = self.declare_vector_output("estimate", n, self.x, prerequisites=[self.x])
        self.deviation = self.declare_vector_output(
            "deviation", n, self.calc_deviation, prerequisites=[self.P]
        )
        self.covariance = self.declare_vector_output(
            "covariance", n * n, self.P, prerequisites=[self.P]
        )
        seen = [self.results]
        self.innovation = self.declare_vector_output(
            "innovation", p, self.calc_innovation, prerequisites=seen
        )
        self.nis = self.declare_vector_output("nis", 1, self.calc_nis, prerequisites=seen)
        self.num_used = self.declare_vector_output(
            "num_used", 1, self.calc_num_used, prerequisites=seen
        )

    @abstractmethod
    def predict(self, context: Any, x: Array, P: Array) -> tuple[Array, Array]:
        """Return estimate and covariance one period later."""

    @abstractmethod
    def correct(
        self, context: Any, x: Array, P: Array, used: Array
    ) -> tuple[Array, Array, Array, Array]:
        """Return estimate, covariance, innovations and NIS after measuring ``used`` components."""

    def inputs(self, context: Any) -> Array:
        """Return the known inputs, an empty vector if there are none."""
        return np.zeros(0) if self.u is None else self.u(context)

    def update(self, context: Any) -> dict[Handle, Array]:
        """Predict, and correct by what is measured."""
        n, count = len(self.state_names), self.count(context)
        x, P = self.x(context), self.P(context).reshape(n, n)
        later, spread = self.predict(context, x, P)
        begun = count[0] > 0.5
        x, P = scalars.where(begun, later, x), scalars.where(begun, spread, P)
        due = np.remainder(count[0], self._every) < 0.5
        used = scalars.where(np.logical_and(due, self.available(context) > 0.5), 1.0, 0.0)
        x, P, innovation, nis = self.correct(context, x, P, used)
        return {
            self.x: x,
            self.P: (0.5 * (P + P.T)).reshape(n * n),
            self.results: scalars.array([*innovation, nis, np.sum(used)]),
            self.count: count + 1.0,
        }

    def masked(self, context: Any, used: Array) -> Array:
        """Return V, in which missing components are independent of all others."""
        V = self.V(context)
        off = V * used * used[:, np.newaxis]
        return off + np.diag(np.diagonal(V)) * (1.0 - used)

    def calc_deviation(self, context: Any) -> Array:
        """Return the standard deviations."""
        n = len(self.state_names)
        return np.sqrt(np.maximum(self.P(context)[:: n + 1], 0.0))

    def calc_innovation(self, context: Any) -> Array:
        """Return the innovations."""
        return self.results(context)[:-2]

    def calc_nis(self, context: Any) -> Array:
        """Return the normalized innovation squared."""
        return self.results(context)[-2]

    def calc_num_used(self, context: Any) -> Array:
        """Return how many components were measured."""
        return self.results(context)[-1]


def corrected(
    x: Array, P: Array, C: Array, innovation: Array, V: Array
) -> tuple[Array, Array, Array]:
    """Return estimate and covariance after a linear measurement, and the NIS.

    The covariance is in Joseph's form, which stays positive semidefinite under rounding.
    """
    S = C @ P @ C.T + V
    solved = np.linalg.solve(S, np.concatenate([C @ P, innovation[:, np.newaxis]], axis=1))
    K = solved[:, :-1].T
    kept = np.eye(len(x)) - K @ C
    return x + K @ innovation, kept @ P @ kept.T + K @ V @ K.T, np.sum(innovation * solved[:, -1])


def _counts(every: Any, size: int, attempt: str) -> FloatArray:
    """Return after how many samples each output is measured."""
    expected = f"every to be a whole number of at least 1, or {size} of them"
    given = (every,) * size if is_whole(every) else items_of(every, expected, attempt)
    fits = len(given) == size and all(is_whole(each) and each >= 1 for each in given)
    require(fits, every, attempt, expected)
    return np.array(given, dtype=float)
