"""Control by states: feedback of the state, and observers that estimate it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.linear_systems.state_space import LinearEquations
from flexure.blocks.math import nearest_quaternion
from flexure.blocks.signals.argument_shapes import full, matrix, refusal
from flexure.diagrams import scalars
from flexure.diagrams.checks.arguments import items_of
from flexure.diagrams.systems.leaf import LeafSystem
from flexure.diagrams.values.arrays import Array
from flexure.diagrams.values.parameters import NumericParameter


class StateFeedback(LeafSystem):
    """Linear state feedback ``u = u₀ + N r − K (x − x₀)``.

    Parameters
    ----------
    name : str
        Name of the block.
    gain : array_like, shape (m, n)
        K, in units of u per unit of x; a vector of n when m = 1.
    reference_gain : array_like, shape (m, p), optional
        N; the identity when omitted, with a reference of size m.
    x0 : array_like, shape (n,), optional
        State x₀ at which the input u₀ holds the system; zeros when omitted.
    u0 : array_like, shape (m,), optional
        Input u₀; zeros when omitted.
    quaternions : iterable of int, optional
        Where four states are a quaternion (w, x, y, z), whose length and sign do not matter: what
        counts is the quaternion of the same orientation that is nearest to that of x₀.

    Attributes
    ----------
    state : InputPort
        Input "state" (x) of size n.
    reference : InputPort
        Input "reference" (r) of size p, zero while nothing is connected.
    u : LeafOutputPort
        Output "u" of size m; needs both inputs at once.
    gain, reference_gain : NumericParameter
        Parameters "gain" and "reference_gain".
    x0, u0 : NumericParameter or None
        Parameters "x0" and "u0"; None when omitted.

    Raises
    ------
    DeclarationError
        When the shapes do not fit together, or a quaternion is not among the states.
    ValueRefusedError
        When an entry is not finite.

    See Also
    --------
    lqr : Design the state feedback that is optimal for quadratic weights (LQR).
    place : Design the state feedback that places the poles of the closed loop.

    Examples
    --------
    >>> import flexure as fx
    >>> feedback = fx.StateFeedback("feedback", [2.0, 0.5])
    >>> context = feedback.create_default_context()
    >>> feedback.state.fix(context, [1.0, -2.0])
    >>> feedback.u.eval(context)
    array([-1.])
    """

    def __init__(
        self,
        name: str,
        gain: npt.ArrayLike,
        reference_gain: npt.ArrayLike | None = None,
        x0: npt.ArrayLike | None = None,
        u0: npt.ArrayLike | None = None,
        *,
        quaternions: Iterable[int] = (),
    ) -> None:
        super().__init__(name)
        K = matrix(self, "gain", gain, None, None)
        m, n = K.shape
        N = np.eye(m) if reference_gain is None else reference_gain
        N = matrix(self, "reference_gain", N, m, None)
        p = N.shape[1]
        self.gain = self.declare_numeric_parameter("gain", K)
        self.reference_gain = self.declare_numeric_parameter("reference_gain", N)
        self.x0 = _offset(self, "x0", x0, n)
        self.u0 = _offset(self, "u0", u0, m)
        self._quaternions = _quaternions(self, quaternions, self.x0)
        self.state = self.declare_vector_input("state", n)
        self.reference = self.declare_vector_input("reference", p, default=np.zeros(p))
        self.u = self.declare_vector_output(
            "u", m, self.calc_output, prerequisites=[self.state, self.reference]
        )

    def calc_output(self, context: Any) -> Array:
        """Return u₀ + N r − K (x − x₀)."""
        target = self.reference_gain(context) @ self.reference(context)
        if self.u0 is not None:
            target = self.u0(context) + target
        state = self.state(context)
        if self.x0 is not None:
            x0 = self.x0(context)
            state = _with_nearest(state, x0, self._quaternions) - x0
        return target - self.gain(context) @ state


def _offset(
    block: LeafSystem, name: str, value: npt.ArrayLike | None, size: int
) -> NumericParameter | None:
    """Declare a parameter for what is constant in an equation, unless it is omitted."""
    if value is None:
        return None
    return block.declare_numeric_parameter(name, full(block, name, value, size))


def _quaternions(
    block: LeafSystem, given: Iterable[int], reference: NumericParameter | None
) -> tuple[int, ...]:
    """Return where quaternions begin, which need something to be near to."""
    starts = tuple(items_of(given, "places of quaternions", f"Cannot make block '{block.name}'"))
    size = 0 if reference is None else reference.default.size
    if not all(isinstance(k, (int, np.integer)) and 0 <= k <= size - 4 for k in starts):
        expected = f"quaternions at places from 0 to {size - 4}" if size > 3 else "no quaternions"
        raise refusal(block, expected, f"{starts}", "Give the point that they are to be near to")
    return starts


def _with_nearest(values: Array, reference: Array, starts: tuple[int, ...]) -> Array:
    """Return values, with each quaternion that of the same orientation nearest to a reference."""
    if not starts:
        return values
    parts = list(values)
    for k in starts:
        parts[k : k + 4] = nearest_quaternion(values[k : k + 4], reference[k : k + 4])
    return scalars.array(parts)


class LuenbergerObserver(LinearEquations):
    """Observer: estimates the state of a linear system from its input and output.

    In continuous time ``x̂˙ = A x̂ + B u + f₀ + L (y − y₀ − C x̂ − D u)``. For an exact model the
    error of the estimate decays with the eigenvalues of A − L C.

    With a period, the estimate is at each sample carried on with the input since the sample before,
    and then corrected by what is measured now::

        x̄ = A x̂[k] + B u + f₀
        x̂[k+1] = x̄ + L (y − y₀ − C x̄ − D u)

    The error then decays with the eigenvalues of A − L C A. As the estimate contains the present
    sample, a controller that reads it answers without a delay.

    Parameters
    ----------
    name : str
        Name of the block.
    A, B, C, D : array_like
        Model of the system, of the shapes (n, n), (n, m), (p, n) and (p, m), as in `StateSpace`;
        D may be None. With a period, the model from one sample to the next.
    gain : array_like, shape (n, p)
        L, in units of x per s per unit of y, with a period of x per unit of y; a vector of n when
        p = 1.
    initial : array_like, shape (n,), optional
        Estimate in new contexts; zeros when omitted.
    f0, y0 : array_like, shapes (n,) and (p,), optional
        Constant parts of the derivative or next state and of the output, as in `AffineSystem`;
        zeros when omitted.
    quaternions : iterable of int, optional
        Where four measured numbers are a quaternion, whose length and sign do not matter: what
        counts is the quaternion of the same orientation that is nearest to that of y₀.
    period : float, optional
        Sampling period in s; continuous time when omitted.
    offset : float
        Time of the first sample in s.

    Attributes
    ----------
    u : InputPort or None
        Input "u" of size m, the input of the system, with a period since the sample before; None
        when m = 0. A sampled observer reads it before values that depend on the estimate change,
        such as the output of a `StateFeedback`.
    y : InputPort
        Input "y" of size p, the measured output of the system.
    x : ContinuousState or DiscreteState
        State "x" of size n, the estimate.
    estimate : LeafOutputPort
        Output "estimate" of size n; depends on the state alone, and with a period holds between
        samples.
    A, B, C, D, gain : NumericParameter
        The matrices; B is None when m = 0, D when it is zero.
    f0, y0 : NumericParameter or None
        The constant parts; None when omitted.

    Raises
    ------
    DeclarationError
        When the shapes do not fit together, the period is not positive, or there is an offset
        without it.
    ValueRefusedError
        When an entry is not finite.

    See Also
    --------
    lqe : Design the steady-state Kalman filter.
    StateFeedback : Control by the estimate.

    Examples
    --------
    >>> import flexure as fx
    >>> observer = fx.LuenbergerObserver(
    ...     "observer", [[0, 1], [0, 0]], [0, 1], [1, 0], gain=[6.0, 9.0]
    ... )
    >>> context = observer.create_default_context()
    >>> observer.u.fix(context, 1.0)
    >>> observer.y.fix(context, 0.5)
    >>> observer.eval_time_derivatives(context)
    array([3. , 5.5])

    The same from samples:

    >>> observer = fx.LuenbergerObserver(
    ...     "observer", [[1, 0.1], [0, 1]], [0, 0.1], [1, 0], gain=[0.5, 1.0], period=0.1
    ... )
    >>> observer.periods, observer.feedthrough
    ((0.1,), frozenset())
    """

    def __init__(
        self,
        name: str,
        A: npt.ArrayLike,
        B: npt.ArrayLike,
        C: npt.ArrayLike,
        D: npt.ArrayLike | None = None,
        *,
        gain: npt.ArrayLike,
        initial: npt.ArrayLike | None = None,
        f0: npt.ArrayLike | None = None,
        y0: npt.ArrayLike | None = None,
        quaternions: Iterable[int] = (),
        period: float | None = None,
        offset: float = 0.0,
    ) -> None:
        super().__init__(name, A, B, C, D)
        L = matrix(self, "gain", gain, self.order, self.num_outputs)
        self.gain = self.declare_numeric_parameter("gain", L)
        self.f0 = _offset(self, "f0", f0, self.order)
        self.y0 = _offset(self, "y0", y0, self.num_outputs)
        self._quaternions = _quaternions(self, quaternions, self.y0)
        self.y = self.declare_vector_input("y", self.num_outputs)
        self.declare_x(self.order, initial, period, offset, doc="estimate")
        self.estimate = self.declare_vector_output(
            "estimate", self.order, self.x, prerequisites=[self.x]
        )

    def advance(self, context: Any) -> Array:
        """Predict, and correct by what is measured."""
        predicted = super().advance(context)
        if self.f0 is not None:
            predicted = predicted + self.f0(context)
        state = self.x(context) if self.period is None else predicted
        surprise = self.without_offset(context) - self.output_at(context, state)
        return predicted + self.gain(context) @ surprise

    def without_offset(self, context: Any) -> Array:
        """Return y − y₀."""
        measured = self.y(context)
        if self.y0 is None:
            return measured
        y0 = self.y0(context)
        return _with_nearest(measured, y0, self._quaternions) - y0
