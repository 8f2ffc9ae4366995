"""Linear systems: state-space equations with or without offsets, and transfer functions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.linear_systems.foreign_systems import (
    ForeignSystem,
    block_matrices,
    block_period,
    block_ratio,
)
from flexure.blocks.signals.argument_shapes import full, matrix, numbers, refusal
from flexure.blocks.signals.continuous_or_sampled import ContinuousOrSampled
from flexure.diagrams.values.arrays import Array
from flexure.diagrams.values.handles import Handle


class LinearEquations(ContinuousOrSampled):
    """The matrices A, B, C, D and the input u that linear blocks share.

    B and u are None when there are no inputs, D when nothing goes straight through.
    """

    def __init__(
        self,
        name: str,
        A: npt.ArrayLike,
        B: npt.ArrayLike,
        C: npt.ArrayLike,
        D: npt.ArrayLike | None,
    ) -> None:
        super().__init__(name)
        n = len(matrix(self, "A", A, None, None))
        if n == 0:
            raise refusal(self, "at least one state", "an empty A", "Use a Gain")
        system_matrix = matrix(self, "A", A, n, n)
        input_matrix = matrix(self, "B", B, n, None)
        output_matrix = matrix(self, "C", C, None, n)
        m, p = input_matrix.shape[1], len(output_matrix)
        if p == 0:
            raise refusal(self, "at least one output", "an empty C")
        direct = np.zeros((p, m)) if D is None else matrix(self, "D", D, p, m)
        self.order, self.num_outputs = n, p
        self.A = self.declare_numeric_parameter("A", system_matrix, sparse=True)
        self.B = self.declare_numeric_parameter("B", input_matrix, sparse=True) if m else None
        self.C = self.declare_numeric_parameter("C", output_matrix, sparse=True)
        self.D = self.declare_numeric_parameter("D", direct, sparse=True) if direct.any() else None
        self.u = self.declare_vector_input("u", m) if m else None

    @property
    def needs(self) -> list[Handle]:
        """What `respond` reads beside parameters."""
        return [self.x] if self.u is None or self.D is None else [self.x, self.u]

    def advance(self, context: Any) -> Array:
        """Return A x + B u: the derivative of the state, or the next state."""
        result = self.A(context) @ self.x(context)
        if self.B is not None and self.u is not None:
            result = result + self.B(context) @ self.u(context)
        return result

    def respond(self, context: Any) -> Array:
        """Return C x + D u."""
        return self.output_at(context, self.x(context))

    def output_at(self, context: Any, x: Array) -> Array:
        """Return C x + D u for a state."""
        result = self.C(context) @ x
        if self.D is not None and self.u is not None:
            result = result + self.D(context) @ self.u(context)
        return result


class StateSpace(LinearEquations):
    """Linear time-invariant system, in continuous time or sampled with a period.

    In continuous time ``ẋ = A x + B u, y = C x + D u``; with a period
    ``x[k+1] = A x[k] + B u[k], y[k] = C x[k] + D u[k]``.

    Parameters
    ----------
    name : str
        Name of the block.
    A : array_like, shape (n, n)
        State matrix, in 1/s in continuous time (entries may differ in unit). A number when n = 1.
        Or a linear system of python-control or scipy.signal, which has the other matrices and, if
        it is sampled, the period.
    B : array_like, shape (n, m)
        Input matrix; a vector of n when there is one input. With m = 0 the block has no input.
    C : array_like, shape (p, n)
        Output matrix; a vector of n when there is one output.
    D : array_like, shape (p, m), optional
        Direct feedthrough. When omitted or all zeros, the output does not depend on the input at
        the same instant, and there is no parameter "D".
    initial : array_like, shape (n,), optional
        State in new contexts; zeros when omitted.
    period : float, optional
        Sampling period in s; that of the system, if it has one, when omitted. Without either, time
        is continuous.
    offset : float
        Time of the first sample in s.

    Attributes
    ----------
    u : InputPort or None
        Input "u" of size m; None when m = 0.
    x : ContinuousState or DiscreteState
        State "x" of size n.
    y : LeafOutputPort
        Output "y" of size p; between samples C x[k+1] + D u(t).
    A, B, C, D : NumericParameter
        The matrices; B is None when m = 0, D when it is zero.

    Raises
    ------
    DeclarationError
        When the shapes do not fit together, there are no states or outputs, a system is improper,
        the initial state has another size, the period is not positive or not that of the system,
        or there is an offset without it.
    ValueRefusedError
        When an entry is not finite.

    See Also
    --------
    TransferFunction : Proper transfer function from one input to one output.
    AffineSystem : Linear system with offsets.

    Examples
    --------
    An oscillator of 2 rad/s, driven by a force and observed in its position:

    >>> import flexure as fx
    >>> oscillator = fx.StateSpace("oscillator", [[0, 1], [-4, 0]], [0, 1], [1, 0])
    >>> context = oscillator.create_default_context()
    >>> oscillator.u.fix(context, 3.0)
    >>> oscillator.x.set(context, [1.0, 0.5])
    >>> oscillator.eval_time_derivatives(context)
    array([ 0.5, -1. ])
    >>> oscillator.feedthrough
    frozenset()

    The mean of a signal and of its last sample:

    >>> mean = fx.StateSpace("mean", 0.0, 1.0, 0.5, 0.5, period=0.1)
    >>> context = mean.create_default_context()
    >>> mean.x.set(context, 2.0)
    >>> mean.u.fix(context, 4.0)
    >>> mean.y.eval(context)
    array([3.])
    """

    def __init__(
        self,
        name: str,
        A: npt.ArrayLike | ForeignSystem,
        B: npt.ArrayLike | None = None,
        C: npt.ArrayLike | None = None,
        D: npt.ArrayLike | None = None,
        initial: npt.ArrayLike | None = None,
        *,
        period: float | None = None,
        offset: float = 0.0,
    ) -> None:
        attempt = f"Cannot make the StateSpace '{name!s:.200}'"
        system, A, B, C, D = block_matrices(attempt, A, B, C, D)
        period = block_period(attempt, system, period)
        super().__init__(name, A, B, C, D)
        self.declare_x(self.order, initial, period, offset)
        self.y = self.declare_vector_output(
            "y", self.num_outputs, self.respond, prerequisites=self.needs
        )


class AffineSystem(LinearEquations):
    """Linear system with offsets: ``ẋ = A x + B u + f₀, y = C x + D u + y₀``.

    With a period, x[k+1] replaces ẋ. The linearization of a nonlinear system around a point other
    than an equilibrium has this form.

    Parameters
    ----------
    name : str
        Name of the block.
    A, B : array_like, shapes (n, n) and (n, m)
        As in `StateSpace`.
    f0 : array_like, shape (n,)
        Constant part of the derivative, in units of the state per s, or of the next state.
    C, D : array_like, shapes (p, n) and (p, m)
        As in `StateSpace`; D may be None.
    y0 : array_like, shape (p,)
        Constant part of the output, in its unit.
    initial : array_like, shape (n,), optional
        State in new contexts; zeros when omitted.
    period : float, optional
        Sampling period in s; time is continuous when omitted.
    offset : float
        Time of the first sample in s.

    Attributes
    ----------
    u : InputPort or None
        Input "u" of size m; None when m = 0.
    x : ContinuousState or DiscreteState
        State "x" of size n.
    y : LeafOutputPort
        Output "y" of size p.
    A, B, C, D, f0, y0 : NumericParameter
        Matrices and offsets; B is None when m = 0, D when it is zero.

    Raises
    ------
    DeclarationError
        When the shapes do not fit together, there are no states or outputs, the period is not
        positive, or there is an offset without it.
    ValueRefusedError
        When an entry is not finite.

    See Also
    --------
    StateSpace : Linear time-invariant system.

    Examples
    --------
    >>> import flexure as fx
    >>> falling = fx.AffineSystem(
    ...     "falling", [[0, 1], [0, 0]], [[], []], [0, -9.81], [1, 0], None, y0=10.0
    ... )
    >>> context = falling.create_default_context()
    >>> falling.eval_time_derivatives(context), falling.y.eval(context)
    (array([ 0.  , -9.81]), array([10.]))
    """

    def __init__(
        self,
        name: str,
        A: npt.ArrayLike,
        B: npt.ArrayLike,
        f0: npt.ArrayLike,
        C: npt.ArrayLike,
        D: npt.ArrayLike | None,
        y0: npt.ArrayLike,
        initial: npt.ArrayLike | None = None,
        *,
        period: float | None = None,
        offset: float = 0.0,
    ) -> None:
        super().__init__(name, A, B, C, D)
        self.f0 = self.declare_numeric_parameter("f0", full(self, "f0", f0, self.order))
        self.y0 = self.declare_numeric_parameter("y0", full(self, "y0", y0, self.num_outputs))
        self.declare_x(self.order, initial, period, offset)
        self.y = self.declare_vector_output(
            "y", self.num_outputs, self.calc_output, prerequisites=self.needs
        )

    def advance(self, context: Any) -> Array:
        """Return A x + B u + f₀."""
        return super().advance(context) + self.f0(context)

    def calc_output(self, context: Any) -> Array:
        """Return C x + D u + y₀."""
        return self.respond(context) + self.y0(context)


class TransferFunction(ContinuousOrSampled):
    r"""Proper transfer function from one input to one output, in s or in z.

    .. math:: G(s) = \frac{b_0 s^m + ... + b_m}{a_0 s^n + ... + a_n}, \quad m \le n

    With a period it is a function of z in place of s.

    Parameters
    ----------
    name : str
        Name of the block.
    numerator : array_like, shape (m + 1,)
        Coefficients b in descending powers of s or z. Leading zeros are dropped. Or a transfer
        function of python-control or scipy.signal, which has the denominator as well and, if it is
        sampled, the period.
    denominator : array_like, shape (n + 1,)
        Coefficients a in descending powers of s or z. The first one is not zero, and keeps its
        sign.
    period : float, optional
        Sampling period in s; that of the system, if it has one, when omitted. Without either, time
        is continuous.
    offset : float
        Time of the first sample in s.
    unit : str
        Unit of the output per unit of the input, such as ``"m/N"``, from which labels know it.

    Attributes
    ----------
    u : InputPort
        Input "u" of size 1.
    x : ContinuousState or DiscreteState
        State "x" of size n, of the controllable canonical form: with D(s) = (a₀ sⁿ + ...)/a₀,
        the components are sⁿ⁻¹ U/D, ..., s U/D, U/D.
    y : LeafOutputPort
        Output "y" of size 1; depends on the state alone when m < n.
    numerator, denominator : NumericParameter
        Parameters "numerator" and "denominator"; the realization follows them.

    Raises
    ------
    DeclarationError
        When m > n (use a `FilteredDerivative` to differentiate), when n = 0, or when the first
        coefficient of the denominator is zero; when the period is not positive or not that of the
        system, or there is an offset without it; of a system also when it has several inputs or
        outputs.
    ValueRefusedError
        When a coefficient is not finite.

    See Also
    --------
    StateSpace : Linear time-invariant system.

    Notes
    -----
    The realization is the controllable canonical form. With the coefficients divided by the
    leading one of the denominator, aₖ and bₖ in descending powers, it reads::

        x₁′ = u − a₁ x₁ − ... − aₙ xₙ,   xₖ₊₁′ = xₖ
        y = b₀ u + (b₁ − a₁ b₀) x₁ + ... + (bₙ − aₙ b₀) xₙ

    where ′ is the time derivative or the next sample.

    Coefficients of polynomials determine their roots badly at high orders. Beyond about n = 8
    chain blocks of low order, or use `StateSpace`.

    Examples
    --------
    >>> import flexure as fx
    >>> notch = fx.TransferFunction("notch", [1, 0, 4], [1, 4, 4])
    >>> sorted(notch.feedthrough)
    [('u', 'y')]
    >>> low_pass = fx.TransferFunction("low_pass", [0.2], [1.0, -0.8], period=0.1)
    >>> low_pass.feedthrough
    frozenset()
    """

    def __init__(
        self,
        name: str,
        numerator: npt.ArrayLike | ForeignSystem,
        denominator: npt.ArrayLike | None = None,
        *,
        period: float | None = None,
        offset: float = 0.0,
        unit: str = "",
    ) -> None:
        attempt = f"Cannot make the TransferFunction '{name!s:.200}'"
        system, numerator, denominator = block_ratio(attempt, numerator, denominator)
        period = block_period(attempt, system, period)
        super().__init__(name)
        above = np.atleast_1d(numbers(self, "numerator", numerator))
        below = np.atleast_1d(numbers(self, "denominator", denominator))
        if above.ndim != 1 or above.size == 0:
            raise refusal(self, "a vector of coefficients", f"numerator {above.tolist()}")
        # Leading zeros would feign a numerator of higher degree, and so a direct feedthrough.
        above = np.trim_zeros(above, "f") if above.any() else above[-1:]
        if below.ndim != 1 or below.size < 2 or below[0] == 0.0:
            raise refusal(
                self,
                "a denominator of at least degree 1 whose first coefficient is not zero",
                f"{below.tolist()}",
                "Use a Gain for a static relation",
            )
        if above.size > below.size:
            raise refusal(
                self,
                f"a numerator of at most degree {below.size - 1}, that of the denominator",
                f"degree {above.size - 1}",
                "Differentiate with a FilteredDerivative, or add fast poles to the denominator"
                if period is None
                else "An output cannot precede its input: multiply the denominator by powers of z",
            )
        self.order = below.size - 1
        self.has_feedthrough = above.size == below.size
        leads = np.arange(below.size) == 0
        self._unit = unit
        self.numerator = self.declare_numeric_parameter("numerator", above)
        self.denominator = self.declare_numeric_parameter(
            "denominator",
            below,
            lower=np.where(leads & (below > 0.0), 0.0, -np.inf),
            upper=np.where(leads & (below < 0.0), 0.0, np.inf),
            exclusive=True,
            doc="the first coefficient keeps its sign",
        )
        self.u = self.declare_vector_input("u", 1)
        self.declare_x(self.order, None, period, offset)
        self.y = self.declare_vector_output("y", 1, self.respond, prerequisites=self.needs)

    def unit_relations(self) -> Iterable[tuple[Any, ...]]:
        """Return that output and input differ by the unit of the transfer function, if known."""
        return [(self.u, self.y, self._unit)] if self._unit else []

    @property
    def needs(self) -> list[Handle]:
        """What `respond` reads beside parameters."""
        return [self.x, self.u] if self.has_feedthrough else [self.x]

    def advance(self, context: Any) -> Array:
        """Return the derivative of the state, or the next state."""
        below = self.denominator(context)
        x = self.x(context)
        first = self.u(context) - (below[1:] / below[0]) @ x
        return np.concatenate([first, x[:-1]])

    def respond(self, context: Any) -> Array:
        """Return the output."""
        below, x = self.denominator(context), self.x(context)
        weights = self.numerator(context) / below[0]
        if not self.has_feedthrough:
            return weights @ x[self.order - len(weights) :]
        direct = weights[0]
        return (weights[1:] - below[1:] / below[0] * direct) @ x + direct * self.u(context)
