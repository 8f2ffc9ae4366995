"""Forces that are given at some deflections, with straight lines between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.diagrams import LeafSystem
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.values.arrays import Array, FloatArray, as_numbers, freeze, show
from flexure.diagrams.values.parameters import NumericParameter


@dataclass(frozen=True)
class ForceTable:
    """A piecewise linear force f(x) over a deflection x, and its energy.

    With the points (xᵢ, fᵢ), i = 0 ... n, and the part tᵢ of the line from xᵢ to xᵢ + hᵢ that lies
    below x, between 0 and 1::

        tᵢ = min(max((x - xᵢ)/hᵢ, 0), 1),  hᵢ = xᵢ₊₁ - xᵢ
        a = min(x - x₀, 0),  b = max(x - xₙ, 0)
        f(x) = f₀ (1 - t₀) + Σ fᵢ (tᵢ₋₁ - tᵢ) + fₙ tₙ₋₁ + s_a a + s_b b
        W(x) = Σ hᵢ tᵢ (fᵢ (1 - tᵢ/2) + fᵢ₊₁ tᵢ/2) + a (f₀ + s_a a/2) + b (fₙ + s_b b/2)
        V(x) = W(x) - W(0) = ∫₀ˣ f dx

    The energy is exact, and both are continuous. Within the table f is a mean of the given forces
    and takes their values at the points, without errors of rounding.

    Attributes
    ----------
    deflections : ndarray, shape (n + 1,)
        Strictly increasing deflections xᵢ in rad, or m.
    forces : array, shape (n + 1,)
        Forces fᵢ in N m, or N.
    stiffness_below, stiffness_above : float
        Slopes s_a and s_b beyond the first and the last point in N m/rad, or N/m.

    See Also
    --------
    flexure.TabulatedSpring : The element with such a force.

    Examples
    --------
    >>> table = ForceTable(np.array([0.0, 1.0, 2.0]), np.array([0.0, 2.0, 6.0]), 2.0, 10.0)
    >>> table.force(np.array([-1.0, 1.5, 3.0]))
    array([-2.,  4., 16.])
    >>> table.energy(np.array([-1.0, 1.0, 3.0]))
    array([ 1.,  1., 16.])
    """

    deflections: FloatArray
    forces: Array
    stiffness_below: Array
    stiffness_above: Array

    @classmethod
    def continued(cls, deflections: FloatArray, forces: Array) -> ForceTable:
        """Make a table that extrapolates its outermost lines.

        Parameters
        ----------
        deflections : ndarray, shape (n + 1,)
            Strictly increasing deflections in rad, or m.
        forces : array, shape (n + 1,)
            Forces in N m, or N.

        Returns
        -------
        ForceTable

        Examples
        --------
        >>> ForceTable.continued(np.array([0.0, 1.0]), np.array([0.0, 2.0])).force(3.0)
        np.float64(6.0)
        """
        slopes = np.diff(forces) / np.diff(deflections)
        return cls(deflections, forces, slopes[0], slopes[-1])

    def force(self, x: Array) -> Array:
        """Return the force f at deflections of any shape."""
        t, below, above = self._parts(x)
        f = self.forces
        inner = np.sum(f[1:-1] * (t[..., :-1] - t[..., 1:]), axis=-1)
        outside = self.stiffness_below * below + self.stiffness_above * above
        return f[0] * (1.0 - t[..., 0]) + inner + f[-1] * t[..., -1] + outside

    def energy(self, x: Array) -> Array:
        """Return the energy V in J that a deflection from zero needs."""
        return self._work(x) - self._work(0.0)

    def _work(self, x: Array) -> Array:
        """Return the integral of the force from the first deflection on."""
        t, below, above = self._parts(x)
        f = self.forces
        means = f[:-1] * (1.0 - 0.5 * t) + f[1:] * (0.5 * t)
        lines = np.sum(np.diff(self.deflections) * t * means, axis=-1)
        first = below * (f[0] + 0.5 * self.stiffness_below * below)
        last = above * (f[-1] + 0.5 * self.stiffness_above * above)
        return lines + first + last

    def _parts(self, x: Array) -> tuple[Array, Array, Array]:
        """Return which part of each line lies below a deflection, and how far it is outside."""
        points = self.deflections
        t = np.clip((np.expand_dims(x, -1) - points[:-1]) / np.diff(points), 0.0, 1.0)
        return t, np.minimum(x - points[0], 0.0), np.maximum(x - points[-1], 0.0)


def declare_table(
    block: LeafSystem,
    deflections: npt.ArrayLike,
    forces: npt.ArrayLike,
    *,
    unit: str,
    name: str = "forces",
    from_zero: bool = False,
    **options: Any,
) -> tuple[FloatArray, NumericParameter]:
    """Check the deflections of a table, and declare its forces as a parameter.

    A table ``from_zero`` begins there, with a point that is not given. Options are bounds and rules
    for the forces, as for other parameters. Deflections are returned as a frozen copy.
    """
    attempt = f"Cannot make the table of '{block.name}'"
    points: FloatArray = freeze(as_numbers(deflections, attempt))
    least = 1 if from_zero else 2
    if points.ndim != 1 or len(points) < least:
        raise DeclarationError(
            attempt,
            expected=f"at least {least} deflections in one row",
            found=f"an array of shape {points.shape}",
        )
    steps = np.diff(points, prepend=0.0) if from_zero else np.diff(points)
    if not (np.all(np.isfinite(points)) and np.all(steps > 0.0)):
        raise DeclarationError(
            attempt,
            expected="finite deflections that increase strictly" + ", from zero" * from_zero,
            found=show(points),
        )
    parameter = block.declare_numeric_parameter(
        name, forces, unit=unit, doc="at the deflections", **options
    )
    if parameter.shape != points.shape:
        raise DeclarationError(
            attempt,
            expected=f"{len(points)} forces, one for each deflection",
            found=f"forces of shape {parameter.shape}",
        )
    return points, parameter
