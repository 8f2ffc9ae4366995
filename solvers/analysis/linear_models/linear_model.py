"""The linear model of a system at a point: matrices, properties, and conversions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.linear_systems.state_space import AffineSystem, StateSpace
from flexure.diagrams.checks.arguments import require
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.interface.html import Shown
from flexure.diagrams.systems.system import System
from flexure.diagrams.values.arrays import FloatArray, as_numbers, bounded
from flexure.solvers.analysis.equations.tangents import tangent
from flexure.solvers.analysis.linear_models import exchange
from flexure.solvers.analysis.linear_models.poles import least_stable_first, stability
from flexure.solvers.analysis.linear_models.realizations import (
    invariant_zeros,
    reduction,
    static_gain,
)


@dataclass(frozen=True, eq=False, repr=False)
class LinearModel(Shown):
    """A linear model of a system around one point, ``ẋ = A x + B u, y = C x + D u``.

    x, u and y are the deviations of states, inputs and outputs from x0, u0 and y0. Where the point
    is no equilibrium, ``xdot0`` is to be added to ẋ. In a sampled model, x[k+1] replaces ẋ.

    Attributes
    ----------
    A, B, C, D : ndarray, shapes (n, n), (n, m), (p, n) and (p, m)
        The matrices.
    x0, u0, y0 : ndarray, shapes (n,), (m,) and (p,)
        States, inputs and outputs at the point.
    xdot0 : ndarray, shape (n,)
        Time derivative of the states there.
    time : float
        When, in seconds.
    state_names, input_names, output_names : list of str
        What the components are.
    how : str
        Whether the matrices are exact derivatives or central differences, and why.
    period : float or None
        From one sample to the next, in seconds; None in continuous time.
    quaternions : tuple of int
        Where four states are a quaternion (w, x, y, z), whose length nothing moves.
    locked : tuple of int
        States of locked joints, which nothing moves either.
    normals : ndarray, shape (r, n), or None
        Slopes of the errors of constraints, and of their rates, by the states: no motion has them.
    sampled_inputs : tuple of str
        Inputs of a sampled model that a block inside, such as a `UnitDelay` or a `ZeroOrderHold`,
        samples at the instants, just after they have changed; none with ``inputs_after_updates``.
    notes : tuple of str
        Which blocks pass no small changes at this point, such as a `Saturation` beyond its limits,
        and which of them are linearized as gains, as their ``linearize_as`` says.

    See Also
    --------
    linearize : Take one from a system.
    loop_gain : The loop gain at a wire.

    Examples
    --------
    >>> import flexure as fx
    >>> lag = fx.FirstOrderLag("lag", time_constant=0.5)
    >>> context = lag.create_default_context()
    >>> context.set("u", 0.0)
    >>> model = fx.linearize(lag, context)
    >>> model.poles.real.round(6)
    array([-2.])
    """

    A: FloatArray
    B: FloatArray
    C: FloatArray
    D: FloatArray
    x0: FloatArray
    u0: FloatArray
    y0: FloatArray
    xdot0: FloatArray
    time: float
    state_names: list[str]
    input_names: list[str]
    output_names: list[str]
    how: str
    period: float | None = None
    quaternions: tuple[int, ...] = ()
    locked: tuple[int, ...] = ()
    normals: FloatArray | None = None
    sampled_inputs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse matrices that do not fit together or are not finite, and what is no period."""
        shapes = [np.shape(matrix) for matrix in (self.A, self.B, self.C, self.D)]
        n, m, p = (shape[-1] if shape else None for shape in (shapes[0], shapes[3], shapes[3][:1]))
        require(
            shapes == [(n, n), (n, m), (p, n), (p, m)],
            shapes,
            "Cannot make a linear model",
            "A, B, C and D of the shapes (n, n), (n, m), (p, n) and (p, m)",
        )
        for name, value in zip("ABCD", (self.A, self.B, self.C, self.D), strict=True):
            finite = np.isfinite(value).all()
            require(finite, value, "Cannot make a linear model", f"finite numbers in {name}")
        for name, width in (("quaternions", 4), ("locked", 1)):
            places = getattr(self, name)
            fits = all(0 <= k <= len(self.A) - width for k in places)
            require(fits, places, "Cannot make a linear model", f"places of states for {name}")
        if self.period is not None:
            attempt = "Cannot make a linear model with this period"
            bounded(self.period, attempt, lower=0.0, exclusive=True, unit="s")

    @property
    def tangent(self) -> FloatArray:
        """The directions in which states can move: x = T z with orthonormal columns, shape (n, r).

        The identity, but for quaternions, locked joints and constraints. A quaternion of length 1
        turns in three directions; its part of z is half of the angles about the axes of the frame
        it turns in. With constraints, the columns span what these leave.
        """
        return tangent(self.x0, self.quaternions, self.locked, self.normals)

    def on_tangent(self) -> LinearModel:
        """Return the model in the coordinates z of `tangent`, without constrained directions.

        Programs that know no quaternions need that: ``model.on_tangent().to_control()``. Names of a
        quaternion are those of x, y and z. A model without quaternions and locked joints is
        returned as it is.

        Examples
        --------
        >>> import flexure as fx
        >>> builder = fx.PlantBuilder("space", gravity=(0.0, 0.0, 0.0))
        >>> _ = builder.add_body("hull", fx.SpatialInertia.solid_sphere(2.0, radius=0.3))
        >>> model = fx.linearize(builder.build(), inputs=[], outputs=[])
        >>> model.A.shape, model.on_tangent().A.shape
        ((13, 13), (12, 12))
        """
        if not (self.quaternions or self.locked or self.normals is not None):
            return self
        T = self.tangent
        left_out = {*self.quaternions, *self.locked}
        names = [name for k, name in enumerate(self.state_names) if k not in left_out]
        if self.normals is not None:
            names = [f"z{k}" for k in range(1, T.shape[1] + 1)]
        return replace(
            self,
            A=T.T @ self.A @ T,
            B=T.T @ self.B,
            C=self.C @ T,
            x0=T.T @ self.x0,
            xdot0=T.T @ self.xdot0,
            state_names=names,
            quaternions=(),
            locked=(),
            normals=None,
        )

    @property
    def poles(self) -> npt.NDArray[np.complex128]:
        """The poles, the least stable ones first: in rad/s, or of a sampled model in z.

        They are the eigenvalues of A, but those of the length of quaternions and of locked joints,
        which no motion has: one for each direction of `tangent`. Those with the largest real part
        come first, or with the largest magnitude.
        """
        return least_stable_first(np.linalg.eigvals(self.on_tangent().A), self.period)

    @property
    def is_stable(self) -> bool:
        """Whether all poles have a negative real part, or lie inside of the unit circle.

        By more than rounding: integrators and undamped modes are not stable. It is the verdict
        about small motions around the point, and rests on what ``notes`` says.
        """
        return stability(self.on_tangent().A, self.period)[0]

    def frequency_response(self, frequency: npt.ArrayLike) -> npt.NDArray[np.complex128]:
        """Return ``C (s I - A)⁻¹ B + D`` for s = jω, or of a sampled model for z = exp(jω period).

        Parameters
        ----------
        frequency : array_like
            ω in rad/s, of any shape; zero gives the static gain.

        Returns
        -------
        ndarray, shape (..., p, m)
            Complex amplitudes of the outputs per amplitude of the inputs.

        Raises
        ------
        ValueRefusedError
            When a frequency is not finite, or a pole lies at it.
        """
        omega = as_numbers(frequency, "Cannot evaluate the frequency response")
        attempt = f"Cannot evaluate the frequency response at {frequency!r:.80} rad/s"
        if not np.isfinite(omega).all():
            raise ValueRefusedError(attempt, expected="finite frequencies")
        s = 1j * omega if self.period is None else np.exp(1j * omega * self.period)
        own = self.on_tangent()
        matrices = s[..., np.newaxis, np.newaxis] * np.eye(len(own.A)) - own.A
        inputs = np.broadcast_to(own.B, (*omega.shape, *own.B.shape))
        try:
            return np.asarray(own.C @ np.linalg.solve(matrices, inputs) + self.D, dtype=complex)
        except np.linalg.LinAlgError:
            raise ValueRefusedError(
                attempt, expected="frequencies without a pole", found=f"the poles {self.poles}"
            ) from None

    def to_state_space(self, name: str) -> StateSpace:
        """Return a block for the deviations from the point; it starts at zero.

        Parameters
        ----------
        name : str
            Name of the block.

        Raises
        ------
        DeclarationError
            When there is no state or no output.
        """
        return StateSpace(name, self.A, self.B, self.C, self.D, period=self.period)

    def to_affine_system(self, name: str) -> AffineSystem:
        """Return a block for the values themselves; it starts at x0.

        Parameters
        ----------
        name : str
            Name of the block.

        Raises
        ------
        DeclarationError
            When there is no state or no output.
        """
        f0 = self.xdot0 - self.A @ self.x0 - self.B @ self.u0
        y0 = self.y0 - self.C @ self.x0 - self.D @ self.u0
        if self.period is not None:
            f0 = f0 + self.x0
        parts = self.A, self.B, f0, self.C, self.D, y0, self.x0
        return AffineSystem(name, *parts, period=self.period)

    @property
    def zeros(self) -> npt.NDArray[np.complex128]:
        """The zeros: in rad/s, or of a sampled model in z; those of the smallest magnitude first.

        Where the matrix [[A - s I, B], [C, D]] loses rank: the transmission zeros, also with D = 0
        and with several inputs and outputs. Poles that cancel are among them; see `minimal`.
        """
        own = self.on_tangent()
        found = invariant_zeros(own.A, own.B, own.C, own.D)
        return found[np.lexsort((found.imag, np.abs(found)))]

    @property
    def static_gain(self) -> FloatArray:
        """Static gain of the outputs per constant input, shape (p, m); inf where it is integrated.

        States that inputs do not move, or outputs do not show, do not matter, even if they drift.
        """
        own = self.on_tangent()
        A, B, C = own.A, own.B, own.C
        return static_gain(A if self.period is None else A - np.eye(len(A)), B, C, self.D)

    def minimal(self, tolerance: float = 1e-9) -> LinearModel:
        """Return a model with the same transfer from inputs to outputs, and no more states.

        Parameters
        ----------
        tolerance : float, optional
            Which directions count as not reached and not seen, beside the norm of the matrices in
            units in which they are balanced.

        Returns
        -------
        LinearModel
            Its states are orthogonal combinations of the scaled ones, named z1, z2, and so on, and
            ``how`` says how many were removed; a model with nothing to remove is returned as it is,
            one with constraints `on_tangent`. The drift ``xdot0`` of states that leave is lost.

        Raises
        ------
        ValueRefusedError
            When the tolerance is not in (0, 1).

        Examples
        --------
        >>> import flexure as fx
        >>> from scipy.signal import TransferFunction
        >>> model = fx.LinearModel.from_scipy(TransferFunction([3.0, 6.0], [1.0, 7.0, 10.0]))
        >>> model.minimal().poles.real.round(6)
        array([-5.])
        >>> model.minimal().how
        'as scipy.signal has it; 1 of 2 states removed (0 uncontrollable, 1 unobservable)'
        """
        attempt = "Cannot make a minimal model with this tolerance"
        allowed = bounded(tolerance, attempt, lower=0.0, upper=1.0, exclusive=True)
        own = self if self.normals is None else self.on_tangent()
        found = reduction(own.A, own.B, own.C, allowed)
        n, r = len(own.A), len(found.A)
        if r == n:
            return own
        return replace(
            own,
            A=found.A,
            B=found.B,
            C=found.C,
            x0=found.left @ own.x0,
            xdot0=found.left @ own.xdot0,
            state_names=[f"z{k}" for k in range(1, r + 1)],
            quaternions=(),
            locked=(),
            how=f"{self.how}; {n - r} of {n} states removed "
            f"({found.uncontrollable} uncontrollable, {found.unobservable} unobservable)",
        )

    def to_control(self) -> Any:
        """Return a ``control.StateSpace`` with the names of states, inputs and outputs.

        Since python-control keeps dots for itself, they become colons, as in ``"plant:x[angle]"``;
        `from_control` turns them back. Needs python-control: ``pip install 'flexure[control]'``.

        Raises
        ------
        MissingExtraError
            When python-control is not installed.
        ValueRefusedError
            When two inputs, outputs or states have one name.
        """
        return exchange.to_control(self)

    @classmethod
    def from_control(cls, system: Any, *, period: float | None = None) -> LinearModel:
        """Return the model of a linear system of python-control.

        Parameters
        ----------
        system : control.StateSpace or control.TransferFunction
            A system. The states of a transfer function are those of the controllable canonical
            form, side by side when there are several; see `minimal`.
        period : float, optional
            In s, of a sampled system whose ``dt`` is True or None.

        Raises
        ------
        ValueRefusedError
            When it is something else, a transfer function is improper, or the period is not known,
            or another one.
        """
        return cls(**exchange.parts_of(system, "python-control", period))

    def to_scipy(self) -> Any:
        """Return a ``scipy.signal.StateSpace``, which has no names."""
        return exchange.to_scipy(self)

    @classmethod
    def from_scipy(cls, system: Any, *, period: float | None = None) -> LinearModel:
        """Return the model of a ``scipy.signal.lti`` or ``scipy.signal.dlti`` system.

        Parameters
        ----------
        system : scipy.signal.lti or scipy.signal.dlti
            A system in any of its forms. That with zeros and poles goes through polynomials.
        period : float, optional
            In s, of a sampled system whose ``dt`` is True.

        Raises
        ------
        ValueRefusedError
            When it is something else, a transfer function is improper, or the period is not known,
            or another one.
        """
        return cls(**exchange.parts_of(system, "scipy.signal", period))

    def _pieces(self) -> Iterator[str]:
        from flexure.solvers.analysis.linear_models.linear_model_tables import model_pieces

        return model_pieces(self)

    def __repr__(self) -> str:
        (p, m), n = self.D.shape, len(self.A)
        verdict = "stable" if self.is_stable else "not stable"
        return f"<LinearModel at t={self.time:g}: n={n}, m={m}, p={p}, {verdict}>"


def channels(model: LinearModel, inputs: list[int], outputs: list[int]) -> LinearModel:
    """Return the part of a model from some of its inputs to some of its outputs."""
    return replace(
        model,
        B=model.B[:, inputs],
        C=model.C[outputs],
        D=model.D[np.ix_(outputs, inputs)],
        u0=model.u0[inputs],
        y0=model.y0[outputs],
        input_names=[model.input_names[k] for k in inputs],
        output_names=[model.output_names[k] for k in outputs],
    )


def refuse_systems(value: Any, attempt: str, expected: str) -> None:
    """Refuse a block or diagram instead of its linear model, and say how to get one."""
    if isinstance(value, (list, tuple, Mapping)):
        for each in value.values() if isinstance(value, Mapping) else value:
            refuse_systems(each, attempt, expected)
    if isinstance(value, System):
        raise ValueRefusedError(
            attempt,
            expected=expected,
            found=f"{value!r} ({type(value).__name__})",
            remedy=f"fx.loop_gain({value.name}, location), with a port on one of its wires, is the "
            f"model of a loop, and fx.linearize({value.name}, context, inputs, outputs) that from "
            "inputs to outputs",
        )
