"""Control by states: feedback of the state, and an observer that estimates it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.linear import LinearEquations
from flexure.blocks.shapes import matrix
from flexure.diagrams.leaf import LeafSystem
from flexure.diagrams.state import ContinuousState
from flexure.diagrams.values import Array


class StateFeedback(LeafSystem):
    """Linear state feedback ``u = N r − K x``.

    Parameters
    ----------
    name : str
        Name of the block.
    gain : array_like, shape (m, n)
        K, in units of u per unit of x; a vector of n when m = 1.
    reference_gain : array_like, shape (m, p), optional
        N; the identity when omitted, with a reference of size m.

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

    Raises
    ------
    DeclarationError
        When the shapes do not fit together.
    ValueRefusedError
        When an entry is not finite.

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
        self, name: str, gain: npt.ArrayLike, reference_gain: npt.ArrayLike | None = None
    ) -> None:
        super().__init__(name)
        K = matrix(self, "gain", gain, None, None)
        m, n = K.shape
        N = np.eye(m) if reference_gain is None else reference_gain
        N = matrix(self, "reference_gain", N, m, None)
        p = N.shape[1]
        self.gain = self.declare_numeric_parameter("gain", K)
        self.reference_gain = self.declare_numeric_parameter("reference_gain", N)
        self.state = self.declare_vector_input("state", n)
        self.reference = self.declare_vector_input("reference", p, default=np.zeros(p))
        self.u = self.declare_vector_output(
            "u", m, self.calc_output, prerequisites=[self.state, self.reference]
        )

    def calc_output(self, context: Any) -> Array:
        """Return N r − K x."""
        target = self.reference_gain(context) @ self.reference(context)
        return target - self.gain(context) @ self.state(context)


class LuenbergerObserver(LinearEquations):
    """Estimate of the state of a linear system from its input and output.

    ``x̂˙ = A x̂ + B u + L (y − C x̂ − D u)``. For an exact model the error of the estimate decays
    with the eigenvalues of A − L C.

    Parameters
    ----------
    name : str
        Name of the block.
    A, B, C, D : array_like
        Model of the system, of the shapes (n, n), (n, m), (p, n) and (p, m), as in `StateSpace`;
        D may be None.
    gain : array_like, shape (n, p)
        L, in units of x per s per unit of y; a vector of n when p = 1.
    initial : array_like, shape (n,), optional
        Estimate in new contexts; zeros when omitted.

    Attributes
    ----------
    u : InputPort or None
        Input "u" of size m, the input of the system; None when m = 0.
    y : InputPort
        Input "y" of size p, the measured output of the system.
    x : ContinuousState
        State "x" of size n, the estimate.
    estimate : LeafOutputPort
        Output "estimate" of size n; depends on the state alone.
    A, B, C, D, gain : NumericParameter
        The matrices; B is None when m = 0, D when it is zero.

    Raises
    ------
    DeclarationError
        When the shapes do not fit together.
    ValueRefusedError
        When an entry is not finite.

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
    """

    x: ContinuousState

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
    ) -> None:
        super().__init__(name, A, B, C, D)
        L = matrix(self, "gain", gain, self.order, self.num_outputs)
        self.gain = self.declare_numeric_parameter("gain", L)
        self.y = self.declare_vector_input("y", self.num_outputs)
        self.x = self.declare_continuous_state(z=self.order, default=initial)
        self.estimate = self.declare_vector_output(
            "estimate", self.order, self.x, prerequisites=[self.x]
        )

    def calc_time_derivatives(self, context: Any) -> Array:
        """Return A x̂ + B u + L (y − C x̂ − D u)."""
        surprise = self.y(context) - self.respond(context)
        return self.advance(context) + self.gain(context) @ surprise
