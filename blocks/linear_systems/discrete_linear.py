"""Linear difference equations: in state space, and as transfer functions in z.

`flexure.blocks.linear_systems.discrete` defines samples, and the output between two of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.linear_systems.foreign_systems import (
    ForeignSystem,
    block_matrices,
    block_period,
    block_ratio,
)
from flexure.blocks.linear_systems.state_space import LinearEquations, RationalEquations
from flexure.blocks.signals.argument_shapes import full
from flexure.diagrams.values.arrays import Array
from flexure.diagrams.values.events import Periodic
from flexure.diagrams.values.handles import Handle
from flexure.diagrams.values.state import DiscreteState


class DiscreteStateSpace(LinearEquations):
    """Difference equations ``x[k+1] = A x[k] + B u[k], y[k] = C x[k] + D u[k]``.

    Parameters
    ----------
    name : str
        Name of the block.
    A, B, C, D : array_like
        Matrices of the shapes (n, n), (n, m), (p, n) and (p, m), as in `StateSpace`; D may be
        None. Or, as A alone, a sampled linear system of python-control or scipy.signal.
    period : float
        Sampling period in s; that of the system, if it has one, when omitted.
    offset : float
        Time of the first sample in s.
    initial : array_like, shape (n,), optional
        State in new contexts; zeros when omitted.

    Attributes
    ----------
    u : InputPort or None
        Input "u" of size m; None when m = 0.
    x : DiscreteState
        State "x" of size n.
    y : LeafOutputPort
        Output "y" of size p; between samples C x[k+1] + D u(t). It needs the input at once only
        when D has an entry that is not zero.
    A, B, C, D : NumericParameter
        The matrices; B is None when m = 0, D when it is zero.

    Raises
    ------
    DeclarationError
        When the shapes do not fit together, or the period is not positive.
    ValueRefusedError
        When an entry is not finite, or the initial state has another size.

    See Also
    --------
    StateSpace : Linear time-invariant system.

    Examples
    --------
    >>> import flexure as fx
    >>> average = fx.DiscreteStateSpace("average", 0.0, 1.0, 0.5, 0.5, period=0.1)
    >>> context = average.create_default_context()
    >>> average.x.set(context, 2.0)
    >>> average.u.fix(context, 4.0)
    >>> average.y.eval(context)
    array([3.])
    """

    x: DiscreteState

    def __init__(
        self,
        name: str,
        A: npt.ArrayLike | ForeignSystem,
        B: npt.ArrayLike | None = None,
        C: npt.ArrayLike | None = None,
        D: npt.ArrayLike | None = None,
        period: float | None = None,
        offset: float = 0.0,
        initial: npt.ArrayLike | None = None,
    ) -> None:
        attempt = f"Cannot make the DiscreteStateSpace '{name!s:.200}'"
        system, A, B, C, D = block_matrices(attempt, A, B, C, D)
        period = block_period(attempt, system, period)
        super().__init__(name, A, B, C, D)
        start = full(self, "initial", 0.0 if initial is None else initial, self.order)
        self.x = self.declare_discrete_state("x", start)
        self.declare_discrete_update(self.update_state, Periodic(period, offset))
        self.y = self.declare_vector_output(
            "y", self.num_outputs, self.respond, prerequisites=self.needs
        )

    def update_state(self, context: Any) -> dict[Handle, Array]:
        """Go on to A x + B u."""
        return {self.x: self.advance(context)}


class DiscreteTransferFunction(RationalEquations):
    r"""Transfer function in z from one input to one output.

    .. math:: G(z) = \frac{b_0 z^m + ... + b_m}{a_0 z^n + ... + a_n}, \quad m \le n

    Parameters
    ----------
    name : str
        Name of the block.
    numerator : array_like, shape (m + 1,)
        Coefficients b in descending powers of z. Leading zeros are dropped. Or a sampled transfer
        function of python-control or scipy.signal, which has the denominator as well.
    denominator : array_like, shape (n + 1,)
        Coefficients a in descending powers of z. The first one is not zero, and keeps its sign.
    period : float
        Sampling period in s; that of the system, if it has one, when omitted.
    offset : float
        Time of the first sample in s.
    unit : str
        Unit of the output per unit of the input, such as ``"m/N"``, from which labels know it.

    Attributes
    ----------
    u : InputPort
        Input "u" of size 1.
    x : DiscreteState
        State "x" of size n, of the controllable canonical form; see `TransferFunction`.
    y : LeafOutputPort
        Output "y" of size 1; depends on the state alone when m < n.
    numerator, denominator : NumericParameter
        Parameters "numerator" and "denominator"; the realization follows them.

    Raises
    ------
    DeclarationError
        When m > n, n = 0, the first coefficient of the denominator is zero, or the period is not
        positive.
    ValueRefusedError
        When a coefficient is not finite.

    See Also
    --------
    TransferFunction : Proper transfer function from one input to one output.

    Examples
    --------
    >>> import flexure as fx
    >>> low_pass = fx.DiscreteTransferFunction("low_pass", [0.2], [1.0, -0.8], period=0.1)
    >>> low_pass.feedthrough
    frozenset()
    """

    x: DiscreteState
    advice = "An output cannot precede its input: multiply the denominator by powers of z"

    def __init__(
        self,
        name: str,
        numerator: npt.ArrayLike | ForeignSystem,
        denominator: npt.ArrayLike | None = None,
        period: float | None = None,
        offset: float = 0.0,
        *,
        unit: str = "",
    ) -> None:
        attempt = f"Cannot make the DiscreteTransferFunction '{name!s:.200}'"
        system, numerator, denominator = block_ratio(attempt, numerator, denominator)
        period = block_period(attempt, system, period)
        super().__init__(name, numerator, denominator, unit)
        self.x = self.declare_discrete_state("x", np.zeros(self.order))
        self.declare_discrete_update(self.update_state, Periodic(period, offset))
        self.y = self.declare_vector_output("y", 1, self.respond, prerequisites=self.needs)

    def update_state(self, context: Any) -> dict[Handle, Array]:
        """Go on to the next canonical state."""
        return {self.x: self.advance(context)}
