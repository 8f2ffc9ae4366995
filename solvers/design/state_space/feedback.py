"""State feedback: by weights (LQR) or by poles, optionally with integrals of errors."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.controllers.state_feedback import StateFeedback
from flexure.blocks.linear_systems.continuous import Integrator
from flexure.blocks.linear_systems.discrete import ZeroOrderHold
from flexure.blocks.signals.algebra import Selector, Sum
from flexure.diagrams.building.builder import DiagramBuilder
from flexure.diagrams.checks.arguments import items_of, mapping
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.interface.html import Shown, fold, heading
from flexure.diagrams.systems.diagram import Diagram
from flexure.diagrams.systems.ports import InputPort
from flexure.diagrams.values.arrays import FloatArray, as_number, freeze
from flexure.solvers.analysis.linear_models.linear_model import LinearModel
from flexure.solvers.analysis.linear_models.linear_model_tables import matrix, poles
from flexure.solvers.design.state_space.weights import (
    Poles,
    Weights,
    check_model,
    chosen,
    cost,
    lingers,
    persists,
    poles_of,
    require_reach,
    sampled_cost,
    stable_poles,
    unsolvable,
    warn_unless_at_rest,
    warn_unless_decaying,
    weights,
    with_period,
)


@dataclass(frozen=True, eq=False, repr=False)
class FeedbackDesign(Shown):
    """State feedback of a linear model, ``u = u₀ - K (x - x₀) + N ∫ (r - y) dt``.

    For a sampled model, the integral is the sum of r - y at the samples, times the period.

    If states can move in r directions only, fewer than n with quaternions or locked joints, it is
    designed in the coordinates z of `LinearModel.tangent`: ``K = K_z Tᵀ``. To turn a body back by
    the angle θ about any axis, the feedback sees sin(θ/2), so it acts in the right direction up to
    half a turn.

    Attributes
    ----------
    model : LinearModel
        What it was designed for.
    gain : ndarray, shape (m, n)
        K, in units of inputs per unit of states.
    integral_gain : ndarray, shape (m, q)
        N, in units of inputs per unit of outputs times s.
    integral : list of str
        The q outputs y whose errors are integrated.
    poles : ndarray of complex, shape (r + q,)
        Of the closed loop, the least stable ones first.
    cost : ndarray, shape (n + q, n + q), or None
        P of the Riccati equation: what is left of a deviation x costs xᵀ P x. None for `place`.

    See Also
    --------
    lqr : Minimize a quadratic cost.
    place : Place the poles.
    StateFeedback : The block.

    Examples
    --------
    >>> import flexure as fx
    >>> mass = fx.StateSpace("mass", [[0, 1], [0, 0]], [0, 1], [1, 0])
    >>> context = mass.create_default_context()
    >>> context.set("u", 0.0)
    >>> model = fx.linearize(mass, context)
    >>> design = fx.lqr(model, Q=[1.0, 0.0], R=1.0)
    >>> design.gain.round(6)
    array([[1.      , 1.414214]])
    """

    model: LinearModel
    gain: FloatArray
    integral_gain: FloatArray
    integral: list[str]
    poles: Poles
    cost: FloatArray | None

    def to_block(self, name: str) -> StateFeedback | Diagram:
        """Return the feedback as a block, for the values themselves and not for deviations.

        Sign and length of a quaternion do not matter.

        In continuous time and without integrals, it is a `StateFeedback`. Otherwise it is a diagram
        with a block "feedback" of that kind, and with the same input "state" and output "u". A
        sampled one holds what it has sampled. With integrals, it has the inputs "y", all outputs of
        the model, and "reference", the values that the integrated ones are to have.

        Parameters
        ----------
        name : str
            Name of the block.

        Returns
        -------
        StateFeedback or Diagram
        """
        if self.model.period is None and not self.integral:
            return state_feedback(self, name, self.model.quaternions)
        builder = DiagramBuilder(name)
        inside = builder.add(state_feedback(self, "feedback", self.model.quaternions))
        source = inside.state
        if self.model.period is not None:
            start = self.model.x0 if self.model.quaternions else 0.0  # no quaternion is zero
            hold = builder.add(
                ZeroOrderHold("hold", self.model.period, size=len(self.model.A), initial=start)
            )
            builder.connect(hold.y, inside.state)
            source = hold.u
        builder.export_input(source, name="state")
        if self.integral:
            builder.export_input(add_integrals(self, builder, inside), name="y")
            builder.export_input("error.u1", name="reference")
        builder.export_output(inside.u, "u")
        return builder.build()

    def _pieces(self) -> Iterator[str]:
        yield heading("FeedbackDesign", remark="u = u₀ - K (x - x₀)")
        names = self.model.input_names
        yield fold("K", matrix(self.gain, names, self.model.state_names), opened=True)
        if self.integral:
            yield fold("N", matrix(self.integral_gain, names, self.integral), "of the integrals")
        yield fold("Poles", poles(self.poles, self.model.period), len(self.poles))

    def __repr__(self) -> str:
        m, n = self.gain.shape
        added = f", {len(self.integral)} integrals" if self.integral else ""
        return f"<FeedbackDesign: n={n}, m={m}{added}, poles {_short(self.poles)}>"


def _short(poles: Poles) -> str:
    shown = ", ".join(f"{pole:.4g}" if pole.imag else f"{pole.real:.4g}" for pole in poles[:4])
    return f"{shown}, ..." if len(poles) > 4 else shown


def state_feedback(
    design: FeedbackDesign, name: str, quaternions: tuple[int, ...] = ()
) -> StateFeedback:
    """Return the block that computes u of a state and of integrals."""
    N, point = design.integral_gain if design.integral else None, design.model
    return StateFeedback(name, design.gain, N, x0=point.x0, u0=point.u0, quaternions=quaternions)


def add_integrals(
    design: FeedbackDesign, builder: DiagramBuilder, inside: StateFeedback
) -> InputPort:
    """Integrate errors from the reference, "error.u1"; return the input for measured outputs."""
    q, period = len(design.integral), design.model.period
    names = design.model.output_names
    picked = builder.add(Selector("outputs", len(names), [names.index(k) for k in design.integral]))
    builder.add(Sum("error", "+-", q))
    integral = builder.add(Integrator("integral", q, period=period))
    builder.connect_chain(integral, inside.reference)
    builder.connect("error.y", integral.u)
    builder.connect(picked.y, "error.u2")
    return picked.u


def lqr(
    model: LinearModel,
    Q: Weights | None = None,
    R: Weights | None = None,
    *,
    largest: Mapping[str, float] | None = None,
    integral: Mapping[str, float] | None = None,
    period: float | None = None,
) -> FeedbackDesign:
    """Design the state feedback that is optimal for quadratic weights (LQR).

    It minimizes ``∫ (xᵀ Q x + uᵀ R u + Σ qᵢ zᵢ²) dt`` with the deviations x and u, and the
    integrals zᵢ of errors of outputs. For a sampled model, a sum over samples replaces the
    integral; with ``period``, the integral stays.

    Parameters
    ----------
    model : LinearModel
        Of the plant, from `linearize` at an equilibrium; with ``period=`` for a sampled controller.
        All its inputs are controlled.
    Q : float, array_like or mapping
        Weights of the states, positive semidefinite: a number for all, the diagonal, a matrix, or
        numbers by names of states; other states have the weight zero. Small deviations of a
        quaternion of length 1 are half angles, at the orientation (1, 0, 0, 0) those of x, y and z;
        the same weight for all four weighs turns about all axes alike, wherever it points.
    R : float, array_like or mapping
        Weights of the inputs, positive definite, in the same forms.
    largest : mapping from str to float, optional
        Instead of Q and R, the largest acceptable deviations, by names of states and inputs: of
        every input, and of the states that matter. Each has the weight one over its square
        (Bryson's rule), a good start.
    integral : mapping from str to float, optional
        Outputs of the model that must reach their reference exactly, and the weights of the
        integrals of their errors.
    period : float, optional
        Sampling period in s of a controller for a model in continuous time. Its inputs are held
        from one sample to the next, and weights are those of the integral over time, between the
        samples as well: the same Q and R as for a continuous controller. Only the zᵢ count at the
        samples, times the period.

    Returns
    -------
    FeedbackDesign

    Raises
    ------
    ValueRefusedError
        When a weight has the wrong shape, is not symmetric or not positive, or is missing or there
        twice, when no input moves a mode that does not decay, or when Q does not see a mode that
        neither decays nor grows. The message names the states of that mode.
    UnknownNameError
        When a state, input or output is not in the model.

    Warns
    -----
    UserWarning
        When the model was not taken at an equilibrium.

    See Also
    --------
    place : Choose the poles instead of weights.
    lqg : Add a Kalman filter.
    StateFeedback : The controller block.

    Examples
    --------
    A mass without friction:

    >>> import flexure as fx
    >>> mass = fx.StateSpace("mass", [[0, 1], [0, 0]], [0, 1], [1, 0])
    >>> context = mass.create_default_context()
    >>> context.set("u", 0.0)
    >>> design = fx.lqr(fx.linearize(mass, context), Q=[1.0, 0.0], R=1.0)
    >>> design.gain.round(6)
    array([[1.      , 1.414214]])
    >>> block = design.to_block("controller")

    With at most 0.1 of the position, and 2 of the force:

    >>> fx.lqr(design.model, largest={"x[0]": 0.1, "u": 2.0}).gain.round(6)
    array([[20.      ,  6.324555]])

    A sampled controller with the weights of the first one:

    >>> fx.lqr(design.model, Q=[1.0, 0.0], R=1.0, period=0.1).gain.round(4)
    array([[0.9317, 1.3651]])
    """
    attempt = "Cannot design a linear-quadratic regulator"
    check_model(model, attempt, inputs=True)
    given = mapping({} if integral is None else integral, "outputs and weights", attempt)
    places = chosen(tuple(given), model.output_names, "output", attempt)
    q = [float(as_number(w, (), f"{attempt}: {name}")) for name, w in given.items()]
    Q, R = cost(Q, R, largest, model, attempt)
    S = np.zeros(np.shape(model.B))
    if period is not None:
        sampled = with_period(model, period, attempt)
        Q, R, S = sampled_cost(model, Q, R, period)
        model, q = sampled, [period * each for each in q]
    extra = weights(q, list(given), "integral", attempt, definite=True)
    Q = np.block([[Q, np.zeros((len(Q), len(q)))], [np.zeros((len(q), len(Q))), extra]])
    A, B, T, names = _with_integrals(model, places)
    Q, S = T.T @ Q @ T, T.T @ np.vstack([S, np.zeros((len(q), len(R)))])
    require_reach(
        A,
        B,
        persists(model.period),
        names,
        attempt,
        "inputs that reach every mode that does not decay",
        "Add an actuator, or leave out states that need no control",
    )
    require_reach(
        A.T,
        Q,
        lingers(model.period),
        names,
        attempt,
        "weights Q that see every mode that neither decays nor grows",
        "Give one of these states a weight",
    )
    P = solve_riccati(A, B, Q, R, model.period, attempt, S)
    with np.errstate(all="ignore"):
        sums = (R, B.T @ P) if model.period is None else (R + B.T @ P @ B, B.T @ P @ A)
        K = np.asarray(np.linalg.solve(sums[0], sums[1] + S.T), dtype=float)
        closed = A - B @ K
    poles = stable_poles(closed, model.period, attempt)
    warn_unless_at_rest(model, "This regulator is designed")
    return _design(model, K @ T.T, list(given), poles, freeze(T @ P @ T.T))


def place(
    model: LinearModel, poles: npt.ArrayLike, *, integral: str | Iterable[str] = ()
) -> FeedbackDesign:
    """Design the state feedback that places the poles of the closed loop.

    Parameters
    ----------
    model : LinearModel
        Of the plant, from `linearize` at an equilibrium; with ``period=`` for a sampled controller.
        All its inputs are controlled.
    poles : array_like of complex, shape (r + q,)
        One for each of the r states and q integrals, complex ones with their conjugates; in rad/s,
        or of a sampled model in z. A pole can come as often as there are inputs. A quaternion
        counts as three states, and those of locked joints do not count.
    integral : str or iterable of str, optional
        Outputs of the model that are to reach their reference exactly.

    Returns
    -------
    FeedbackDesign

    Raises
    ------
    ValueRefusedError
        When the number of poles is wrong, a conjugate is missing, a pole comes too often, or no
        input moves a mode; the message names its states.
    UnknownNameError
        When an output is not in the model.

    Warns
    -----
    UserWarning
        When the model was not taken at an equilibrium, or a pole does not decay.

    See Also
    --------
    lqr : Choose weights instead of poles.
    place_observer : Place the poles of an observer.

    Notes
    -----
    With several inputs, there are many such gains. Chosen is the one whose poles depend the least
    on errors of the model (``scipy.signal.place_poles``).

    Examples
    --------
    >>> import flexure as fx
    >>> mass = fx.StateSpace("mass", [[0, 1], [0, 0]], [0, 1], [1, 0])
    >>> context = mass.create_default_context()
    >>> context.set("u", 0.0)
    >>> fx.place(fx.linearize(mass, context), [-2 + 1j, -2 - 1j]).gain.round(6)
    array([[5., 4.]])
    """
    attempt = "Cannot place poles"
    check_model(model, attempt, inputs=True)
    places = chosen(integral, model.output_names, "output", attempt)
    A, B, T, names = _with_integrals(model, places)
    K = placed(A, B, poles, names, attempt, "inputs that reach every mode")
    warn_unless_at_rest(model, "These poles are placed")
    reached = poles_of(A - B @ K, model.period)
    warn_unless_decaying(reached, model.period, "This closed loop has")
    return _design(model, K @ T.T, [model.output_names[k] for k in places], reached, None)


def placed(
    A: FloatArray, B: FloatArray, poles: Any, names: list[str], attempt: str, expected: str
) -> FloatArray:
    """Return K such that A - B K has these eigenvalues."""
    from scipy.signal import place_poles

    rank = int(np.linalg.matrix_rank(B))
    wanted = _check_poles(poles, len(A), max(rank, 1), attempt)
    remedy = "Leave out the states that no pole can be chosen for"
    require_reach(A, B, lambda mode: True, names, attempt, expected, remedy)
    # Columns that say the same, as of four components that show three turns, share the work.
    shared = np.eye(B.shape[1]) if rank == B.shape[1] else np.linalg.svd(B)[2][:rank].T
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it could be still more robust
        gain = np.asarray(place_poles(A, B @ shared, wanted).gain_matrix, dtype=float)
    K: FloatArray = shared @ gain
    found = np.linalg.eigvals(A - B @ K)
    distance = np.abs(np.subtract.outer(wanted, found)).min(axis=1)
    if distance.max() > 1e-3 * np.abs(wanted).max() + 1e-9 * np.linalg.norm(A):  # all may be zero
        raise ValueRefusedError(
            attempt,
            expected="poles that can be reached in floating-point numbers",
            found=f"poles {found} instead of {wanted}",
            remedy="Choose poles closer to those of the plant",
        )
    return K


def _check_poles(poles: Any, count: int, most: int, attempt: str) -> Poles:
    """Return poles as complex numbers, each with its conjugate and not too often."""
    try:
        wanted = np.array(items_of(poles, f"{count} poles", attempt), dtype=complex)
    except (TypeError, ValueError) as error:
        if isinstance(error, ValueRefusedError):
            raise
        expected = f"{count} poles as complex numbers"
        raise ValueRefusedError(attempt, expected=expected, found=f"{poles!r:.200}") from None
    problem, counts = None, Counter(wanted.ravel().tolist()).items()
    if wanted.shape != (count,):
        expected = f"{count} poles, one for each state that can move"
        problem = f"shape {wanted.shape}"
    elif not np.isfinite(wanted).all():
        expected, problem = "finite poles", f"{wanted}"
    elif alone := [p for p, n in counts if n != np.sum(wanted == np.conj(p))]:
        expected, problem = "complex poles with their conjugates", f"{alone[0]:.6g} without it"
    elif most_often := [p for p, n in counts if n > most]:
        expected = f"each pole at most {most} times, which is how many directions are independent"
        problem = f"{most_often[0]:.6g} more often. Move them apart a little"
    if problem is not None:
        raise ValueRefusedError(attempt, expected=expected, found=problem)
    return wanted


def _with_integrals(
    model: LinearModel, places: list[int]
) -> tuple[FloatArray, FloatArray, FloatArray, list[str]]:
    """Return A and B of states and integrals of r - y, on the tangent T, with T and names."""
    own, q = model.on_tangent(), len(places)
    A, B, C, D = own.A, own.B, own.C[places], own.D[places]
    if model.period is not None:  # the integral takes the sample at the end of the period
        C, D = model.period * C @ A, model.period * (C @ B + D)
    A = np.block([[A, np.zeros((len(A), q))], [-C, np.eye(q) * (model.period is not None)]])
    integrals = [f"integral of {model.output_names[k]}" for k in places]
    n, r = model.tangent.shape
    T = np.block([[model.tangent, np.zeros((n, q))], [np.zeros((q, r)), np.eye(q)]])
    return A, np.vstack([B, -D]), T, [*own.state_names, *integrals]


def solve_riccati(
    A: FloatArray,
    B: FloatArray,
    Q: FloatArray,
    R: FloatArray,
    period: float | None,
    attempt: str,
    S: FloatArray | None = None,
) -> FloatArray:
    """Return the stabilizing solution of the Riccati equation, for xᵀ Q x + 2 xᵀ S u + uᵀ R u."""
    from scipy.linalg import solve_continuous_are, solve_discrete_are

    solve = solve_continuous_are if period is None else solve_discrete_are
    try:
        with np.errstate(all="ignore"):
            return np.asarray(solve(A, B, Q, R, s=S), dtype=float)
    except (np.linalg.LinAlgError, ValueError) as error:
        raise unsolvable(attempt, f"{error}".rstrip(".")) from None


def _design(
    model: LinearModel, K: FloatArray, integral: list[str], poles: Poles, cost: FloatArray | None
) -> FeedbackDesign:
    n = len(model.A)
    gains = freeze(K[:, :n].copy()), freeze(-K[:, n:])
    return FeedbackDesign(model, *gains, integral, poles, cost)
