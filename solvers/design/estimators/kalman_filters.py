"""Kalman filters with a covariance that varies: linear, and extended to any diagram."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.diagrams import scalars
from flexure.diagrams.checks.arguments import count_of, require
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import start_context
from flexure.diagrams.contexts.value_places import Way
from flexure.diagrams.systems.system import System, require_system
from flexure.diagrams.values.arrays import Array, bounded, check_bounds
from flexure.solvers.analysis.equations.equations import vector_ports
from flexure.solvers.analysis.linear_models.linear_model import LinearModel
from flexure.solvers.design.estimators.filter_models import FilterModel
from flexure.solvers.design.estimators.sampled_filter import SampledFilter, corrected
from flexure.solvers.design.state_space.weights import Weights, check_model

_RANK = 1e-14  # of a variance: what of it is rounding


class KalmanFilter(SampledFilter):
    """Kalman filter of a sampled linear model, ``x[k+1] = A x + B u + f₀ + w``.

    With ``y = C x + D u + y₀ + v`` and noise of the covariances W and V, at each sample::

        x̄ = A x̂ + B u + f₀,          P̄ = A P Aᵀ + W
        S = C P̄ Cᵀ + V,               K = P̄ Cᵀ S⁻¹
        x̂ = x̄ + K (y - C x̄ - D u - y₀),  P = (I - K C) P̄ (I - K C)ᵀ + K V Kᵀ

    Its gain converges to that of `lqe` from any initial covariance. It handles missing samples and
    sensors of different rates.

    Parameters
    ----------
    name : str
        Name of the block.
    model : LinearModel
        Of the plant, from ``linearize(..., period=)``. All its outputs are measured.
    W, V : float, array_like or mapping
        Covariances of the change of the states over a period, in units of states squared, and of
        a sample of the outputs, in units of outputs squared: as for `lqe`.
    initial_covariance : float, array_like or mapping
        Covariance of the error of the initial estimate, in the same forms, in units of states
        squared.
    initial : array_like, shape (n,), optional
        Estimate before the first sample, in units of states; that of the model when omitted.
    every : int or sequence of int
        After how many samples each output is measured, such as 10 for a slow sensor.
    offset : float
        Time of the first sample in s.

    Raises
    ------
    ValueRefusedError
        When it is no sampled model without quaternions and constraints, or a covariance has the
        wrong shape, is not symmetric or not positive.

    See Also
    --------
    lqe : The steady-state Kalman filter.
    ExtendedKalmanFilter : Nonlinear models.
    filter_consistency : Test whether W and V fit the measurements.

    Examples
    --------
    A constant that is measured with noise: the estimate is the mean of all samples.

    >>> import numpy as np
    >>> import flexure as fx
    >>> hold = fx.StateSpace("hold", [[0.0]], np.zeros((1, 0)), [[1.0]])
    >>> model = fx.linearize(hold, inputs=[], outputs=["y"], period=0.1)
    >>> kalman = fx.KalmanFilter("kalman", model, W=0.0, V=1.0, initial_covariance=1e12)
    >>> builder = fx.DiagramBuilder("mean")
    >>> builder.add_all(fx.Constant("sensor", 4.0), kalman)
    >>> builder.connect_chain("sensor", "kalman.y")
    >>> result = fx.simulate(builder.build(), 0.95)  # ten samples
    >>> result["kalman.estimate"][-1].round(6), result["kalman.deviation"][-1].round(6)
    (np.float64(4.0), np.float64(0.316228))
    """

    def __init__(
        self,
        name: str,
        model: LinearModel,
        *,
        W: Weights,
        V: Weights,
        initial_covariance: Weights,
        initial: npt.ArrayLike | None = None,
        every: int | Sequence[int] = 1,
        offset: float = 0.0,
    ) -> None:
        attempt = f"Cannot make block '{name}'"
        check_model(model, attempt, outputs=True)
        fits = model.period is not None and model.on_tangent() is model
        wanted = "a sampled model without quaternions, locked joints and constraints"
        require(fits, model, attempt, wanted, remedy="Pass period= to fx.linearize, or use fx.lqe")
        super().__init__(
            name,
            (model.state_names, model.input_names, model.output_names),
            W=W,
            V=V,
            period=float(model.period or 0.0),
            offset=offset,
            initial=model.x0 if initial is None else initial,
            initial_covariance=initial_covariance,
            every=every,
        )
        self._model = model
        self._f0 = model.xdot0 - model.A @ model.x0 - model.B @ model.u0 + model.x0
        self._y0 = model.y0 - model.C @ model.x0 - model.D @ model.u0

    def predict(self, context: Any, x: Array, P: Array) -> tuple[Array, Array]:
        """Return A x + B u + f₀, and A P Aᵀ + W."""
        A, B = self._model.A, self._model.B
        return A @ x + B @ self.inputs(context) + self._f0, A @ P @ A.T + self.W(context)

    def correct(
        self, context: Any, x: Array, P: Array, used: Array
    ) -> tuple[Array, Array, Array, Array]:
        """Correct by y - C x - D u - y₀."""
        C, D = self._model.C, self._model.D
        innovation = self.y(context) - (C @ x + D @ self.inputs(context) + self._y0)
        masked = used[:, np.newaxis] * C
        found = corrected(x, P, masked, used * innovation, self.masked(context, used))
        return (*found[:2], used * innovation, found[2])


class ModelFilter(SampledFilter):
    """Base class of filters around a diagram, which move its states through a period."""

    def __init__(
        self,
        name: str,
        model: System,
        *,
        period: float,
        W: Weights,
        V: Weights,
        initial_covariance: Weights,
        inputs: Way | Iterable[Way] | None = None,
        outputs: Way | Iterable[Way] | None = None,
        parameters: Way | Iterable[Way] = (),
        context: Context | None = None,
        initial: npt.ArrayLike | None = None,
        every: int | Sequence[int] = 1,
        substeps: int = 1,
        offset: float = 0.0,
    ) -> None:
        attempt = f"Cannot make block '{name}'"
        require_system(model, attempt)
        about = f"{attempt} with this period"
        length = bounded(period, about, lower=0.0, exclusive=True, unit="s")
        start = start_context(model, context, attempt)
        self._substeps = count_of(substeps, "substeps", attempt, minimum=1)
        self._model = FilterModel(
            start,
            vector_ports(inputs, model.input_ports),
            vector_ports(outputs, model.output_ports),
            parameters,
            attempt,
        )
        super().__init__(
            name,
            (self._model.states, self._model.inputs, self._model.outputs),
            W=W,
            V=V,
            period=length,
            offset=offset,
            initial=self._model.initial if initial is None else initial,
            initial_covariance=initial_covariance,
            every=every,
        )

    def half_noise(self, context: Any) -> Array:
        """Return the covariance of the noise of half a period."""
        return (0.5 * self.period) * self.W(context)

    def span(self, context: Any) -> tuple[Array, Any, float, int]:
        """Return the inputs, the time of the sample before, the period, and the steps in it."""
        return self.inputs(context), context.time - self.period, self.period, self._substeps


class ExtendedKalmanFilter(ModelFilter):
    """Extended Kalman filter: estimates states of a continuous diagram from samples.

    For ``ẋ = f(x, u, t) + w`` and ``y = h(x, u, t) + v``, with noise w of the intensity W and
    samples of the covariance V, at each sample::

        x̄ = φ(x̂, u),                  P̄ = Φ (P + W T / 2) Φᵀ + W T / 2,   Φ = ∂φ/∂x
        S = H P̄ Hᵀ + V,               K = P̄ Hᵀ S⁻¹,                      H = ∂h/∂x at x̄
        x̂ = x̄ + K (y - h(x̄, u)),      P = (I - K H) P̄ (I - K H)ᵀ + K V Kᵀ

    φ is the motion through a period T by the classical Runge-Kutta method. Φ and H are exact
    derivatives, of the traced equations of the model. The filter is a block as any other, so it
    runs in native code and in lanes, and can be linearized.

    Parameters
    ----------
    name : str
        Name of the block.
    model : System
        A block or diagram without sampled blocks, the model of the plant.
    period : float
        Sampling period T in s.
    W : float, array_like or mapping
        Intensity of the noise of the states, in units of states squared per s: a number for all,
        the diagonal, a matrix, or numbers by names of states; other states have none.
    V : float, array_like or mapping
        Covariance of a sample of the outputs, in units of outputs squared, in the same forms.
    initial_covariance : float, array_like or mapping
        Covariance of the error of the initial estimate, in units of states squared.
    inputs, outputs : Handle, str or iterable of them, optional
        Known inputs and measured outputs of the model, as for `linearize`: all vector inputs and
        outputs when omitted.
    parameters : Handle, str or iterable of them, optional
        Numeric parameters of the model that are estimated as further states; they are constant,
        but for their noise in W.
    context : Context, optional
        A root context of the model with the values of everything else; a default one when omitted.
    initial : array_like, shape (n,), optional
        Estimate before the first sample, in units of states; that of the context when omitted.
    every : int or sequence of int
        After how many samples each output is measured, such as 10 for a slow sensor.
    substeps : int
        Number of Runge-Kutta steps in a period.
    offset : float
        Time of the first sample in s.

    Raises
    ------
    UnknownNameError
        When an input, output or parameter does not exist.
    EvaluationError
        When the model has sampled blocks, quaternions, locked joints or constraints.
    TraceError
        When its equations cannot be traced.
    ValueRefusedError
        When a covariance has the wrong shape, is not symmetric or not positive.

    See Also
    --------
    UnscentedKalmanFilter : Without derivatives.
    KalmanFilter : Linear models.
    filter_consistency : Test whether W and V fit the measurements.

    Notes
    -----
    Between the samples, inputs are constant, as those behind sampled controllers are. The filter
    assumes that W and V describe white noise and that f and h are nearly linear over the
    uncertainty; test this with `filter_consistency`. W and V are parameters, so that `sweep` and
    `optimize` reach them. Values of the context are constants of the filter.

    Examples
    --------
    >>> import flexure as fx
    >>> plant = fx.StateSpace("plant", [[0.0, 1.0], [-4.0, -0.4]], [0.0, 1.0], [1.0, 0.0])
    >>> ekf = fx.ExtendedKalmanFilter(
    ...     "ekf", plant, period=0.05, W={"x[1]": 0.1}, V=1e-4, initial_covariance=1.0
    ... )
    >>> ekf.state_names, ekf.periods
    (('x[0]', 'x[1]'), (0.05,))
    """

    def predict(self, context: Any, x: Array, P: Array) -> tuple[Array, Array]:
        """Move the estimate, and its covariance by the derivative of the motion."""
        noise = self.half_noise(context)
        moved, slopes = self._model.move_with_slopes(x, *self.span(context))
        return moved, slopes @ (P + noise) @ slopes.T + noise

    def correct(
        self, context: Any, x: Array, P: Array, used: Array
    ) -> tuple[Array, Array, Array, Array]:
        """Correct by y - h(x, u), with the derivative of h."""
        expected, H = self._model.show_with_slopes(x, self.inputs(context), context.time)
        innovation = used * (self.y(context) - expected)
        V = self.masked(context, used)
        x, P, nis = corrected(x, P, used[:, np.newaxis] * H, innovation, V)
        return x, P, innovation, nis


class UnscentedKalmanFilter(ModelFilter):
    """Unscented Kalman filter: propagates sigma points through a nonlinear model.

    As `ExtendedKalmanFilter`, without derivatives: mean and covariance are those of 2 n + 1 points
    ``x̂ ± √(n + λ) L``, with ``L Lᵀ = P`` and ``λ = α² (n + κ) - n``, which are moved through the
    period, and for the correction are drawn anew and measured. That is exact to second order, where
    the extended filter is to first.

    Parameters
    ----------
    name : str
        Name of the block.
    model, period, W, V, initial_covariance, inputs, outputs, parameters, context, initial, every, \
substeps, offset
        As for `ExtendedKalmanFilter`, in the same units.
    alpha, beta, kappa : float
        Spread of the points, above 0, the weight of the estimate itself in covariances, 2 for
        Gaussian noise, and a further parameter of the spread. All without units.

    Raises
    ------
    UnknownNameError, EvaluationError, TraceError, ValueRefusedError
        As for `ExtendedKalmanFilter`, and when α or n + κ is not positive.

    See Also
    --------
    ExtendedKalmanFilter : By exact derivatives; several times faster.
    filter_consistency : Test whether W and V fit the measurements.

    Examples
    --------
    >>> import flexure as fx
    >>> plant = fx.StateSpace("plant", [[0.0, 1.0], [-4.0, -0.4]], [0.0, 1.0], [1.0, 0.0])
    >>> ukf = fx.UnscentedKalmanFilter(
    ...     "ukf", plant, period=0.05, W={"x[1]": 0.1}, V=1e-4, initial_covariance=1.0
    ... )
    >>> ukf.state_names, ukf.periods
    (('x[0]', 'x[1]'), (0.05,))
    """

    def __init__(
        self,
        name: str,
        model: System,
        *,
        period: float,
        W: Weights,
        V: Weights,
        initial_covariance: Weights,
        inputs: Way | Iterable[Way] | None = None,
        outputs: Way | Iterable[Way] | None = None,
        parameters: Way | Iterable[Way] = (),
        context: Context | None = None,
        initial: npt.ArrayLike | None = None,
        every: int | Sequence[int] = 1,
        substeps: int = 1,
        offset: float = 0.0,
        alpha: float = 1.0,
        beta: float = 2.0,
        kappa: float = 0.0,
    ) -> None:
        super().__init__(
            name,
            model,
            period=period,
            W=W,
            V=V,
            initial_covariance=initial_covariance,
            inputs=inputs,
            outputs=outputs,
            parameters=parameters,
            context=context,
            initial=initial,
            every=every,
            substeps=substeps,
            offset=offset,
        )
        attempt, n = f"Cannot make block '{name}'", len(self.state_names)
        given = {"alpha": alpha, "beta": beta, "kappa": kappa}
        a, b, k = (bounded(v, f"{attempt} with this {w}") for w, v in given.items())
        check_bounds(a, f"{attempt} with this alpha", lower=0.0, exclusive=True)
        check_bounds(n + k, f"{attempt} with this kappa, n + kappa", lower=0.0, exclusive=True)
        self._spread = a**2 * (n + k)
        means = np.full(2 * n + 1, 0.5 / self._spread)
        means[0] = 1.0 - n / self._spread
        self._means, self._squares = means, means.copy()
        self._squares[0] += 1.0 - a**2 + b

    def predict(self, context: Any, x: Array, P: Array) -> tuple[Array, Array]:
        """Move the points, and take their mean and covariance."""
        noise, span = self.half_noise(context), self.span(context)
        moved = np.stack([self._model.move(each, *span) for each in self._points(x, P + noise)])
        mean = self._means @ moved
        away = moved - mean
        return mean, away.T @ (self._squares[:, np.newaxis] * away) + noise

    def correct(
        self, context: Any, x: Array, P: Array, used: Array
    ) -> tuple[Array, Array, Array, Array]:
        """Correct by what the points show."""
        points, u = self._points(x, P), self.inputs(context)
        shown = np.stack([self._model.show(each, u, context.time) for each in points])
        mean = self._means @ shown
        away = used * (shown - mean)
        innovation = used * (self.y(context) - mean)
        weighted = self._squares[:, np.newaxis] * away
        S = away.T @ weighted + self.masked(context, used)
        cross = (points - x).T @ weighted
        solved = np.linalg.solve(S, np.concatenate([cross.T, innovation[:, np.newaxis]], axis=1))
        K = solved[:, :-1].T
        return x + K @ innovation, P - K @ S @ K.T, innovation, np.sum(innovation * solved[:, -1])

    def _points(self, x: Array, P: Array) -> Array:
        """Return the estimate and the points around it, shape (2 n + 1, n)."""
        away = np.sqrt(self._spread) * cholesky(P).T
        return np.concatenate([x[np.newaxis], x + away, x - away])


def cholesky(P: Array) -> Array:
    """Return L with L Lᵀ = P, of numbers or symbols; zero where P has no rank.

    >>> cholesky(np.array([[4.0, 2.0], [2.0, 5.0]]))
    array([[2., 0.],
           [1., 2.]])
    """
    n = len(P)
    rows: list[list[Any]] = [[0.0] * n for _ in range(n)]
    for j in range(n):
        left = P[j, j] - sum((rows[j][k] * rows[j][k] for k in range(j)), 0.0)
        has_rank = left > _RANK * P[j, j]
        rows[j][j] = np.sqrt(scalars.where(has_rank, left, 0.0))
        divisor = scalars.where(has_rank, rows[j][j], 1.0)
        for i in range(j + 1, n):
            rest = P[i, j] - sum((rows[i][k] * rows[j][k] for k in range(j)), 0.0)
            rows[i][j] = scalars.where(has_rank, rest / divisor, 0.0)
    return scalars.array(rows)
