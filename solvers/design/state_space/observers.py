"""Observers: estimates of the state from measurements, by noise (Kalman) or by poles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flexure.blocks.controllers.state_feedback import LuenbergerObserver, StateFeedback
from flexure.diagrams.building.builder import DiagramBuilder
from flexure.diagrams.interface.html import Shown, fold, heading
from flexure.diagrams.systems.diagram import Diagram
from flexure.diagrams.values.arrays import FloatArray, freeze
from flexure.solvers.analysis.linear_models.linear_model import LinearModel
from flexure.solvers.analysis.linear_models.linear_model_tables import matrix, poles
from flexure.solvers.design.state_space.feedback import placed, solve_riccati
from flexure.solvers.design.state_space.weights import (
    Poles,
    Weights,
    accumulated,
    check_model,
    chosen,
    lingers,
    persists,
    poles_of,
    require_reach,
    stable_poles,
    unsolvable,
    warn_unless_decaying,
    weights,
    with_period,
    without_inputs,
)

_OUTPUTS = "outputs that show every mode"
_MEASURE = "Measure one of these states, or leave them out"


@dataclass(frozen=True, eq=False, repr=False)
class ObserverDesign(Shown):
    """An observer of the state of a linear model.

    With quaternions or locked joints, it is designed in the r coordinates z of
    `LinearModel.tangent`: ``L = T L_z``. So the estimate stays in the plane through the point that
    touches all quaternions of its length. It predicts by the linear model, which is good for
    attitudes within some ten degrees; what is seen of an angle θ is sin(θ/2).

    Attributes
    ----------
    model : LinearModel
        What it was designed for, without the inputs of disturbances.
    gain : ndarray, shape (n, p)
        L of a `LuenbergerObserver`, for a sampled model with its period.
    poles : ndarray of complex, shape (r,)
        Of the error of the estimate, the slowest ones first.
    covariance : ndarray, shape (n, n), or None
        Of the error of the estimate in the long run; of a sampled model just after a sample. None
        for `place_observer`.

    See Also
    --------
    lqe : Minimize the variance of the estimate.
    place_observer : Place the poles.
    LuenbergerObserver : The block.

    Examples
    --------
    >>> import flexure as fx
    >>> mass = fx.StateSpace("mass", [[0, 1], [0, 0]], [0, 1], [1, 0])
    >>> context = mass.create_default_context()
    >>> context.set("u", 0.0)
    >>> model = fx.linearize(mass, context)
    >>> design = fx.lqe(model, W=[0.0, 1.0], V=1.0)
    >>> design.gain.round(6)
    array([[1.414214],
           [1.      ]])
    """

    model: LinearModel
    gain: FloatArray
    poles: Poles
    covariance: FloatArray | None

    def to_block(self, name: str) -> LuenbergerObserver | Diagram:
        """Return the observer as a block, for the values themselves and not for deviations.

        It starts at the point of the model. With quaternions or locked joints, it is a diagram with
        a block "observer" of that kind for z, and with the same ports "u", "y" and "estimate", of
        the full state. Sign and length of quaternions that are measured with all four components do
        not matter.

        Parameters
        ----------
        name : str
            Name of the block.

        Returns
        -------
        LuenbergerObserver or Diagram
        """
        of, T = self.model.on_tangent(), self.model.tangent
        if of is self.model:
            return self._block_for(of, self.gain, name)
        builder = DiagramBuilder(name)
        observer = builder.add(self._block_for(of, T.T @ self.gain, "observer"))
        # With z as its state, a feedback of -T around the point gives x.
        state = builder.add(StateFeedback("state", -T, x0=of.x0, u0=self.model.x0))
        builder.connect(observer.estimate, state.state)
        if observer.u is not None:
            builder.export_input(observer.u, name="u")
        builder.export_input(observer.y, name="y")
        builder.export_output(state.u, "estimate")
        return builder.build()

    def _block_for(self, of: LinearModel, gain: FloatArray, name: str) -> LuenbergerObserver:
        """Return the observer of a model in whatever coordinates."""
        f0 = of.xdot0 - of.A @ of.x0 - of.B @ of.u0
        y0 = of.y0 - of.C @ of.x0 - of.D @ of.u0
        return LuenbergerObserver(
            name,
            of.A,
            of.B,
            of.C,
            of.D,
            gain=gain,
            initial=of.x0,
            f0=f0 if of.period is None else f0 + of.x0,
            y0=y0,
            quaternions=_shown_quaternions(self.model),
            period=of.period,
        )

    def _pieces(self) -> Iterator[str]:
        yield heading("ObserverDesign")
        inside = matrix(self.gain, self.model.state_names, self.model.output_names)
        yield fold("L", inside, opened=True)
        yield fold("Poles", poles(self.poles, self.model.period), len(self.poles))

    def __repr__(self) -> str:
        n, p = self.gain.shape
        return f"<ObserverDesign: n={n}, p={p}, slowest pole {self.poles[0]:.4g}>"


def _shown_quaternions(model: LinearModel) -> tuple[int, ...]:
    """Return where four outputs are a quaternion of the state."""
    rows, states = np.hstack([model.C, model.D]), np.eye(len(model.A) + model.B.shape[1])
    return tuple(
        i
        for k in model.quaternions
        for i in range(len(rows) - 3)
        if np.array_equal(rows[i : i + 4], states[k : k + 4])
    )


def lqe(
    model: LinearModel,
    W: Weights,
    V: Weights,
    *,
    disturbances: str | Iterable[str] = (),
    period: float | None = None,
) -> ObserverDesign:
    """Design the steady-state Kalman filter, the optimal observer for white noise.

    For ``ẋ = A x + B u + w`` and ``y = C x + D u + v``, with noise w and v of the intensities W and
    V, it minimizes the variance of the estimation error.

    Parameters
    ----------
    model : LinearModel
        Of the plant, from `linearize`; with ``period=`` for a sampled observer. All its outputs are
        measured, and all its inputs known but the disturbances.
    W : float, array_like or mapping
        Intensity of the noise of the states, in units of states squared per s, positive
        semidefinite: a number for all, the diagonal, a matrix, or numbers by names of states; other
        states have none. For a sampled model, the covariance of the change over a period. With
        ``disturbances``, that of the noise at these inputs.
    V : float, array_like or mapping
        Intensity of the noise of the outputs, in units of outputs squared times s, positive
        definite, in the same forms. For a sampled model, the covariance of a sample.
    disturbances : str or iterable of str, optional
        Inputs of the model at which the noise w enters; they are unknown, so the observer has no
        input for them.
    period : float, optional
        Sampling period in s of an observer for a model in continuous time, whose inputs are held
        from one sample to the next. W and V are the intensities in continuous time: a sample has
        the covariance V / period, that of the mean of the noise over a period.

    Returns
    -------
    ObserverDesign

    Raises
    ------
    ValueRefusedError
        When an intensity has the wrong shape, is not symmetric or not positive, when no output
        shows a mode that does not decay, or when no noise moves one that neither decays nor grows.
        The message names the states of that mode.
    UnknownNameError
        When a state, input or output is not in the model.

    See Also
    --------
    place_observer : Choose the poles instead of noise.
    lqg : Feedback of the estimate.
    LuenbergerObserver : The observer block.

    Examples
    --------
    A constant that drifts, ẋ = w, with noise of the same intensity as its drift:

    >>> import flexure as fx
    >>> drift = fx.Integrator("drift")
    >>> context = drift.create_default_context()
    >>> context.set("u", 0.0)
    >>> fx.lqe(fx.linearize(drift, context), W=1.0, V=1.0).gain
    array([[1.]])
    """
    attempt = "Cannot design a Kalman filter"
    check_model(model, attempt, outputs=True)
    entries = chosen(disturbances, model.input_names, "input", attempt)
    V = weights(V, model.output_names, "V", attempt, definite=True)
    if entries:
        G = model.B[:, entries]
        W = weights(W, [model.input_names[k] for k in entries], "W", attempt)
        with np.errstate(all="ignore"):
            W = G @ W @ G.T
        if not np.isfinite(W).all():
            raise unsolvable(attempt, f"noise of the states of intensity {W}")
    else:
        W = weights(W, model.state_names, "W", attempt)
    if period is not None:
        sampled = with_period(model, period, attempt)
        (_, W), V = accumulated(model.A.T, W, period), V / period
        model = sampled
    own, T, period = model.on_tangent(), model.tangent, model.period
    A, C, names = own.A, own.C, own.state_names
    W = T.T @ W @ T
    expected = f"{_OUTPUTS} that does not decay"
    require_reach(A.T, C.T, persists(period), names, attempt, expected, _MEASURE)
    require_reach(
        A,
        W,
        lingers(period),
        names,
        attempt,
        "noise W that reaches every mode that neither decays nor grows",
        "Give one of these states noise",
    )
    P = solve_riccati(A.T, C.T, W, V, period, attempt)
    with np.errstate(all="ignore"):
        seen = V if period is None else C @ P @ C.T + V
        L = np.linalg.solve(seen, C @ P).T
        if period is None:
            error = A - L @ C
        else:
            kept = np.eye(len(A)) - L @ C
            error, P = kept @ A, kept @ P
    poles = stable_poles(error, period, attempt)
    gain, covariance = freeze(T @ L), freeze(T @ P @ T.T)
    return ObserverDesign(without_inputs(model, entries), gain, poles, covariance)


def place_observer(
    model: LinearModel, poles: npt.ArrayLike, *, disturbances: str | Iterable[str] = ()
) -> ObserverDesign:
    """Design the observer whose error decays with given poles.

    Parameters
    ----------
    model : LinearModel
        Of the plant, from `linearize`; with ``period=`` for a sampled observer. All its outputs are
        measured, and all its inputs known but the disturbances.
    poles : array_like of complex, shape (r,)
        One for each state, complex ones with their conjugates; in rad/s, or of a sampled model in
        z. A pole can come as often as there are outputs. A quaternion counts as three states, and
        those of locked joints do not count.
    disturbances : str or iterable of str, optional
        Unknown inputs of the model, for which the observer has no input.

    Returns
    -------
    ObserverDesign

    Raises
    ------
    ValueRefusedError
        When the number of poles is wrong, a conjugate is missing, a pole comes too often, or no
        output shows a mode; the message names its states.
    UnknownNameError
        When an input is not in the model.

    Warns
    -----
    UserWarning
        When a pole does not decay.

    See Also
    --------
    lqe : The optimal observer for white noise.
    place : Place the poles of a state feedback.

    Examples
    --------
    >>> import flexure as fx
    >>> mass = fx.StateSpace("mass", [[0, 1], [0, 0]], [0, 1], [1, 0])
    >>> context = mass.create_default_context()
    >>> context.set("u", 0.0)
    >>> fx.place_observer(fx.linearize(mass, context), [-3, -4]).gain.round(6)
    array([[ 7.],
           [12.]])
    """
    attempt = "Cannot place the poles of an observer"
    check_model(model, attempt, outputs=True)
    entries = chosen(disturbances, model.input_names, "input", attempt)
    own, period = model.on_tangent(), model.period
    A, C = own.A, own.C if period is None else own.C @ own.A
    L = placed(A.T, C.T, poles, own.state_names, attempt, _OUTPUTS).T
    reached = poles_of(A - L @ C, period)
    warn_unless_decaying(reached, period, "The error of this observer has")
    gain = freeze(model.tangent @ L)
    return ObserverDesign(without_inputs(model, entries), gain, reached, None)
