"""Filters for loop shaping, by their frequencies: lead-lag and notch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.signals.argument_shapes import common_size, through_gain
from flexure.diagrams.systems.leaf import LeafSystem
from flexure.diagrams.values.arrays import Array
from flexure.diagrams.values.parameters import NumericParameter


class LeadLag(LeafSystem):
    """Lead or lag compensator: one zero and one pole.

    With the frequencies ωz of the zero and ωp of the pole, and the gain k at rest::

        H(s) = k (1 + s/ωz) / (1 + s/ωp)

        ẋ = ωp (u − x)
        y = k (x + (ωp/ωz) (u − x))

    Far above both frequencies the gain is k ωp/ωz. The phase is largest (or smallest) at the
    geometric mean of both, where it is ``arcsin((ωp − ωz) / (ωp + ωz))``.

    Parameters
    ----------
    name : str
        Name within the surrounding diagram.
    zero, pole : float or array_like, shape (size,)
        Angular frequencies ωz and ωp, positive, in rad/s.
    gain : float or array_like, shape (size,)
        k, in units of y per unit of u.
    size : int, optional
        Size of u and y; by default that of the parameters.
    initial : float or array_like, shape (size,)
        State in new contexts: the input at which the block is at rest.
    unit : str
        Unit of the gain, such as ``"N/V"``, from which labels know that of y by that of u. When
        omitted, a gain of 1 keeps the unit.

    Attributes
    ----------
    u : InputPort
        Input "u", of ``size``.
    x : ContinuousState
        State "x", the input after a lag.
    y : LeafOutputPort
        Output "y", of ``size``; needs the input at once.
    zero, pole, gain : NumericParameter
        Parameters of the same names.

    Raises
    ------
    DeclarationError
        When sizes differ.
    ValueRefusedError
        When a frequency is not positive and finite, or another argument not finite.

    See Also
    --------
    TransferFunction : Proper transfer function from one input to one output.

    Examples
    --------
    A lead of 60° at 10 rad/s:

    >>> import flexure as fx
    >>> lead = fx.LeadLag("lead", zero=10.0 * np.tan(np.pi / 12), pole=10.0 / np.tan(np.pi / 12))
    >>> context = lead.create_default_context()
    >>> lead.u.fix(context, 1.0)
    >>> model = fx.linearize(lead, context)
    >>> np.degrees(np.angle(model.frequency_response(10.0))).round(6).item()
    60.0
    """

    def __init__(
        self,
        name: str,
        zero: npt.ArrayLike,
        pole: npt.ArrayLike,
        gain: npt.ArrayLike = 1.0,
        size: int | None = None,
        initial: npt.ArrayLike = 0.0,
        *,
        unit: str = "",
    ) -> None:
        super().__init__(name)
        size = common_size(self, size, zero=zero, pole=pole, gain=gain, initial=initial)
        self.zero = _declare_frequency(self, "zero", zero, "where the gain begins to rise")
        self.pole = _declare_frequency(self, "pole", pole, "where the gain begins to fall")
        self.gain = self.declare_numeric_parameter(
            "gain", gain, unit=unit, doc="output per input, at rest"
        )
        self.u = self.declare_vector_input("u", size)
        self.x = self.declare_continuous_state(
            z=size, default=np.full(size, initial), doc="lagged input"
        )
        self.y = self.declare_vector_output("y", size, self.calc_y, prerequisites=[self.u, self.x])

    def unit_relations(self) -> Iterable[tuple[Any, ...]]:
        """Return that the state has the unit of the input, and y that times that of the gain."""
        return [(self.u, self.x), *through_gain(self.gain, self.u, self.y)]

    def calc_y(self, context: Any) -> Array:
        """Return k (x + (ωp/ωz) (u − x))."""
        x = self.x(context)
        ratio = self.pole(context) / self.zero(context)
        return self.gain(context) * (x + ratio * (self.u(context) - x))

    def calc_time_derivatives(self, context: Any) -> Array:
        """Return ωp (u − x)."""
        return self.pole(context) * (self.u(context) - self.x(context))


class NotchFilter(LeafSystem):
    """Notch filter: removes a band of frequencies, such as that of a resonance.

    With the center ω₀, the width β and the depth d::

        H(s) = (s² + (1 − d) β s + ω₀²) / (s² + β s + ω₀²)

        ẋ₁ = β (u − x₁) − ω₀ x₂
        ẋ₂ = ω₀ x₁
        y = u − d x₁

    At rest and far above the band the gain is 1, at the center 1 − d.

    Parameters
    ----------
    name : str
        Name within the surrounding diagram.
    center : float or array_like, shape (size,)
        Angular frequency ω₀, positive, in rad/s.
    width : float or array_like, shape (size,)
        β, positive, in rad/s: the distance of the two frequencies at which a notch of depth 1 lets
        half of the power pass.
    depth : float or array_like, shape (size,)
        d, from 0 for none to 1 for a gain of zero at the center.
    size : int, optional
        Size of u and y; by default that of the parameters.

    Attributes
    ----------
    u : InputPort
        Input "u", of ``size``.
    x : ContinuousState
        State "x": x₁ of all components, which is what passes of the band, then x₂.
    y : LeafOutputPort
        Output "y", of ``size``; needs the input at once.
    center, width, depth : NumericParameter
        Parameters of the same names.

    Raises
    ------
    DeclarationError
        When sizes differ.
    ValueRefusedError
        When center or width is not positive and finite, or the depth not from 0 to 1.

    See Also
    --------
    TransferFunction : Proper transfer function from one input to one output.

    Notes
    -----
    For d < 1 and the damping ratios ζ₁ of zeros and ζ₂ of poles that notches are also given by,
    ``width = 2 ζ₂ ω₀`` and ``depth = 1 − ζ₁/ζ₂``.

    Examples
    --------
    >>> import flexure as fx
    >>> notch = fx.NotchFilter("notch", center=40.0, width=8.0, depth=0.9)
    >>> context = notch.create_default_context()
    >>> notch.u.fix(context, 1.0)
    >>> model = fx.linearize(notch, context)
    >>> abs(model.frequency_response(40.0)).round(6).item()
    0.1
    """

    def __init__(
        self,
        name: str,
        center: npt.ArrayLike,
        width: npt.ArrayLike,
        depth: npt.ArrayLike = 1.0,
        size: int | None = None,
    ) -> None:
        super().__init__(name)
        self.size = common_size(self, size, center=center, width=width, depth=depth)
        self.center = _declare_frequency(self, "center", center, "middle of the band")
        self.width = _declare_frequency(self, "width", width, "between the points of half power")
        self.depth = self.declare_numeric_parameter(
            "depth", depth, lower=0.0, upper=1.0, doc="share that is taken out at the center"
        )
        self.u = self.declare_vector_input("u", self.size)
        self.x = self.declare_continuous_state(z=2 * self.size, doc="x1, then x2")
        self.y = self.declare_vector_output(
            "y", self.size, self.calc_y, prerequisites=[self.u, self.x]
        )

    def unit_relations(self) -> Iterable[tuple[Any, ...]]:
        """Return that output and input have one unit."""
        return [(self.u, self.y)]

    def calc_y(self, context: Any) -> Array:
        """Return u − d x₁."""
        return self.u(context) - self.depth(context) * self.x(context)[: self.size]

    def calc_time_derivatives(self, context: Any) -> list[Array]:
        """Return the rates of x₁ and x₂."""
        x, center = self.x(context), self.center(context)
        band, stored = x[: self.size], x[self.size :]
        return [self.width(context) * (self.u(context) - band) - center * stored, center * band]


def _declare_frequency(
    block: LeafSystem, name: str, value: npt.ArrayLike, doc: str
) -> NumericParameter:
    return block.declare_numeric_parameter(
        name, value, unit="rad/s", lower=0.0, exclusive=True, doc=doc
    )
