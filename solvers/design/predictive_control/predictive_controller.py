"""Linear model predictive control as a sampled block."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from flexure.diagrams.checks.arguments import count_of, mapping, require, shown
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.values.arrays import FloatArray, as_numbers, bounded
from flexure.solvers.analysis.linear_models.linear_model import LinearModel
from flexure.solvers.design.predictive_control.horizon_problem import (
    HorizonProblem,
    Limits,
    PointAtRest,
    balanced,
)
from flexure.solvers.design.predictive_control.sampled_plan import Sample, SampledPlan
from flexure.solvers.design.state_space.feedback import lqr
from flexure.solvers.design.state_space.weights import Weights, check_model, chosen, cost

_DEPENDENT = 1e-9  # of the largest singular value: conditions that say the same


class ModelPredictiveController(SampledPlan):
    """Model predictive controller: optimal inputs over a horizon, within limits.

    For the model ``x[k+1] = A x + B u + f₀ + d`` and outputs ``y = C x + D u + y₀``, each sample
    first finds a point at rest xₛ, uₛ with ``y = r`` for the tracked outputs, and then minimizes ::

        Σ (x[k] - xₛ)ᵀ Q (x[k] - xₛ) + (u[k] - uₛ)ᵀ R (u[k] - uₛ),   k = 0 ... N - 1
        + (x[N] - xₛ)ᵀ P (x[N] - xₛ)

    within the limits, and applies the first input. P is the cost of `lqr` with the same weights, so
    that far from the limits the controller is that regulator. The disturbance d is what changed the
    states beyond the prediction: ``d[k] = d[k-1] + λ (x[k] - x̄[k])``. It lets the tracked outputs
    reach their reference in spite of constant disturbances and errors of the model, without an
    integral that could wind up.

    Parameters
    ----------
    name : str
        Name of the block.
    model : LinearModel
        Of the plant, from ``linearize(..., period=)``. All its inputs are controlled.
    Q, R : float, array_like or mapping
        Weights of deviations of states and inputs per sample, as for `lqr`.
    largest : mapping from str to float, optional
        Largest acceptable deviations instead of Q and R, as for `lqr`.
    horizon : int
        Number N of periods.
    tracked : str or iterable of str
        Outputs of the model that follow the reference, at most as many as inputs.
    input_limits : mapping, optional
        Lower and upper bounds by names of inputs, in their units.
    change_limits : mapping, optional
        Largest change of an input from sample to sample, by names of inputs.
    output_limits : mapping, optional
        Lower and upper bounds by names of outputs, in their units.
    violation_weight : float, optional
        Cost of an output beyond its limits, for each unit and unit squared. When omitted, the cost
        is 1000 c (e + e²) for an excess of e times the limit, where c is the largest cost of an
        output at its limit. Infinity makes the limits hard: where they cannot be kept, the previous
        plan goes on.
    disturbance_gain : float
        λ from 0 (no disturbances) to 1 (one sample shows them), less with noisy states.
    delay : {0, 1}
        1 when the input found at one sample acts from the next one on, as on a machine on which
        the solution takes part of a period. The prediction includes it.
    deadline : float, optional
        Largest time for a solution, in s of the clock. A later one is discarded, and the previous
        plan goes on. When omitted, every solution counts, so that results depend on numbers alone.
    max_iterations : int
        After which the solver gives up, and the previous plan goes on.
    offset : float
        Time of the first sample in s.

    Raises
    ------
    MissingExtraError
        When PIQP, which solves the quadratic programs, is not installed: the extra ``optimal``.
    ValueRefusedError
        When the model is not sampled, or has quaternions or constraints, a weight or limit is none,
        the lower bound of a limit is above the upper one, the point of the model is beyond the
        limits, or the inputs cannot hold the tracked outputs independently.
    UnknownNameError
        When an input or output is not in the model.

    See Also
    --------
    lqr : The same without limits.
    ExtendedKalmanFilter : Estimate the states.
    optimal_motion : Plan a motion in advance.

    Notes
    -----
    Rawlings, Mayne and Diehl, *Model Predictive Control* (2017), chapter 1, give the disturbance
    model and the point at rest. If limits keep several references out of reach, the error of each
    counts by the cost of a change of that output. The block is interpreted, beside native code for
    all others. The horizon must be long enough for the states to be where -K x keeps the limits
    from its end on; stability is not proven otherwise.

    Examples
    --------
    A mass that is to move by 1 m with at most 1 N:

    >>> import flexure as fx
    >>> mass = fx.StateSpace("mass", [[0, 1], [0, 0]], [[0], [1]], [[1, 0], [0, 1]])
    >>> context = mass.create_default_context()
    >>> context.set("u", 0.0)
    >>> model = fx.linearize(mass, context, period=0.1)
    >>> mpc = fx.ModelPredictiveController(
    ...     "mpc", model, [1.0, 0.0], 0.01, horizon=20, tracked="y[0]", input_limits={"u": (-1, 1)}
    ... )
    >>> builder = fx.DiagramBuilder("move")
    >>> builder.add_all(fx.Constant("target", 1.0), mpc, mass)
    >>> builder.connect_chain("target", "mpc.reference")
    >>> builder.connect_chain("mpc.u", "mass", "mpc.state")
    >>> result = fx.simulate(builder.build(), 4.0)
    >>> abs(result["mpc.u"]).max().round(6), result["mass.y"][-1].round(2)
    (np.float64(1.0), array([1., 0.]))
    """

    def __init__(
        self,
        name: str,
        model: LinearModel,
        Q: Weights | None = None,
        R: Weights | None = None,
        *,
        horizon: int,
        largest: Mapping[str, float] | None = None,
        tracked: str | Iterable[str] = (),
        input_limits: Mapping[str, Any] | None = None,
        change_limits: Mapping[str, float] | None = None,
        output_limits: Mapping[str, Any] | None = None,
        violation_weight: float | None = None,
        disturbance_gain: float = 0.5,
        delay: int = 0,
        deadline: float | None = None,
        max_iterations: int = 100,
        offset: float = 0.0,
    ) -> None:
        attempt = f"Cannot make block '{name}'"
        check_model(model, attempt, inputs=True)
        fits = model.period is not None and model.on_tangent() is model
        wanted = "a sampled model without quaternions, locked joints and constraints"
        require(fits, model, attempt, wanted, remedy="Pass period= to fx.linearize")
        self._horizon = count_of(horizon, "horizon", attempt, minimum=1)
        listed = chosen(tracked, model.output_names, "output", attempt)
        super().__init__(
            name,
            model.x0,
            model.u0,
            np.tile(model.u0, self._horizon),
            len(listed),
            period=float(model.period or 0.0),
            offset=offset,
            disturbance_gain=disturbance_gain,
            delay=delay,
            deadline=deadline,
            max_iterations=max_iterations,
        )
        self._model = model
        design = lqr(model, Q, R, largest=largest)
        assert design.cost is not None
        weights = cost(Q, R, largest, model, attempt)
        given = input_limits, change_limits, output_limits
        costs = np.append(np.diag(design.cost), np.diag(weights[1]))
        limits, rows = _limits(model, *given, violation_weight, costs, attempt)
        A, B, C, D = model.A, model.B, model.C, model.D
        self._rest = PointAtRest((A, B, C, D), weights, listed, rows, limits, self._most)
        names = [model.output_names[k] for k in listed]
        _require_independent(self._rest.conditions, names, attempt)
        self._problem = HorizonProblem(
            (A, B, C[rows], D[rows]),
            (weights[1], design.cost, design.gain),
            self._horizon,
            limits,
            self._most,
        )
        self._shown = np.hstack([C[rows], D[rows]])
        self._r0 = model.y0[listed]

    def predicted(self, time: float, x: FloatArray, u: FloatArray) -> FloatArray:
        """Return A x + B u + f₀."""
        del time
        model = self._model
        later: FloatArray = model.A @ (x - model.x0) + model.B @ (u - model.u0) + model.xdot0
        return later + model.x0

    def planned(self, sample: Sample, former: FloatArray) -> tuple[FloatArray, float, int] | None:
        """Aim at the point at rest, in deviations from the point of the model."""
        del former
        model = self._model
        f, r = model.xdot0 + sample.disturbance, sample.reference - self._r0
        point = self._rest.find(f, r)
        if point is None:
            return None
        n, shown = len(model.x0), self._shown @ point
        dx, du = sample.x - model.x0, sample.u - model.u0
        found = self._problem.solve(dx, du, point[:n], point[n:], shown)
        if found is None:
            return None
        return (found.inputs + model.u0).ravel(), found.violation, found.iterations

    def shifted(self, time: float, plan: FloatArray) -> FloatArray:
        """Return the inputs from the next sample on; the last ones stay."""
        del time
        m = len(self._model.u0)
        return np.concatenate([plan[m:], plan[-m:]])


def _limits(
    model: LinearModel,
    inputs: Mapping[str, Any] | None,
    changes: Mapping[str, float] | None,
    outputs: Mapping[str, Any] | None,
    weight: float | None,
    costs: FloatArray,
    attempt: str,
) -> tuple[Limits, list[int]]:
    """Return the limits around the point of the model, and which outputs have some."""
    about_inputs = _bounds(inputs, model.input_names, model.u0, "input", attempt)
    about_outputs = _bounds(outputs, model.output_names, model.y0, "output", attempt)
    rows = [int(k) for k in np.flatnonzero(np.isfinite(about_outputs).any(axis=0))]
    largest = np.full(len(model.u0), np.inf)
    for name, change in mapping(
        {} if changes is None else changes, "names of inputs and changes", attempt
    ).items():
        k = chosen(name, model.input_names, "input", attempt)[0]
        about = f"{attempt} with this change of '{name}'"
        largest[k] = bounded(change, about, lower=0.0, exclusive=True)
    about_outputs = about_outputs[:, rows]
    if weight is None:
        sizes = np.abs(np.where(np.isfinite(about_outputs), about_outputs, 0.0)).max(axis=0)
        sizes[sizes == 0.0] = 1.0
        # The cost of the one state or input that brings an output to its limit most cheaply.
        shown = np.hstack([model.C, model.D])[rows][:, costs > 0.0]
        shares = (shown**2 / costs[costs > 0.0]).max(axis=1, initial=0.0)
        largest_cost = np.max(sizes[shares > 0.0] ** 2 / shares[shares > 0.0], initial=0.0) or 1.0
        weights = 1e3 * largest_cost / np.stack([sizes, sizes**2])
    else:
        about = f"{attempt} with this violation_weight"
        number = bounded(weight, about, lower=0.0, exclusive=True, allow_infinite=True)
        weights = np.full((2, len(rows)), number)
    return Limits(about_inputs, about_outputs, largest, weights), rows


def _bounds(
    given: Mapping[str, Any] | None, names: list[str], point: FloatArray, what: str, attempt: str
) -> FloatArray:
    """Return lower and upper bounds of deviations from a point."""
    found = np.array([[-np.inf], [np.inf]]) * np.ones(len(names))
    for name, pair in mapping(
        {} if given is None else given, f"names of {what}s and bounds", attempt
    ).items():
        k = chosen(name, names, what, attempt)[0]
        about = f"{attempt} with these limits of '{name}'"
        numbers = as_numbers(pair, about)
        if numbers.shape != (2,) or not numbers[0] < numbers[1]:
            raise ValueRefusedError(
                about, expected="a lower and a higher upper bound", found=shown(pair)
            )
        found[:, k] = numbers - point[k]
        if not found[0, k] <= 0.0 <= found[1, k]:
            raise ValueRefusedError(
                about, expected=f"the point of the model, {point[k]:g}, within", found=shown(pair)
            )
    return found


def _require_independent(conditions: FloatArray, names: list[str], attempt: str) -> None:
    """Refuse outputs that no input can hold each at its own reference."""
    sizes = np.linalg.svd(balanced(conditions)[0], compute_uv=False)
    fits = len(conditions) <= conditions.shape[1] and sizes[-1] > _DEPENDENT * sizes[0]
    wanted = "tracked outputs that the inputs can hold at any values, each at its own"
    require(fits, names, attempt, wanted, remedy="Track fewer outputs, or add an actuator")
