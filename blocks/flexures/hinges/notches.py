"""The shapes of notches, between which a neck is left that bends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from flexure.blocks.flexures.sections.rectangle_section import RectangleSection
from flexure.blocks.flexures.sections.sections import CORNERS, check_dimensions, dimension
from flexure.diagrams.values.arrays import Array, FloatArray

# ruff: noqa: RUF009 - what the calls return are fields

_ORDER = 16  # 9 digits of each integral where t = 0.01 R, and 11 where t = 0.1 R
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(_ORDER)
_NECK = 0.5 * (1.0 + np.array([-1.0, 1.0]) / np.sqrt(3.0))  # where x² is integrated exactly
_DEEP = 20.0  # depth of a shoulder over its fillet, the greatest of Peterson's fits


class Station(NamedTuple):
    """A place along a notch, and how much of an integral along one half belongs to it."""

    offset: Array  # distance x > 0 from the middle in m
    weight: Array  # weight in m; those of all stations add up to half of the length
    section: RectangleSection  # the section there


class StressConcentration(NamedTuple):
    """How far stresses at a neck exceed those of a beam."""

    # tension, bending: factors of the stress of a force along x, and of that of a moment about z.
    tension: Array
    bending: Array


@dataclass(frozen=True)
class Notch(ABC):
    """The shape of a notch hinge along x, symmetric about the neck.

    In the middle, the neck is t thick along y, over a length s that may be zero. Towards both ends
    it grows by quarters of ellipses with the half axes a along x and c along y; everywhere it is b
    wide along z::

        h(x) = t + 2 c (1 - √(1 - ξ²)),   ξ = max(0, |x| - s/2)/a

    Its fields are the dimensions. Pure functions compute everything else from them and accept
    symbols instead of numbers, so that derivatives by dimensions are exact.

    Subclasses are dataclasses, with a ``dimension`` for each field.

    Attributes
    ----------
    thickness : float or Symbol
        Thickness t > 0 of the neck along y in m.
    width : float or Symbol
        Width b > 0 along z in m.
    neck_length : float or Symbol
        Length s of constant thickness in m.
    half_axes : tuple of float or Symbol
        Half axes a and c of the ellipses in m.

    Raises
    ------
    ValueRefusedError
        When a dimension is no number, not finite or not positive; symbols are not looked at.

    See Also
    --------
    NotchHinge : The element.
    CircularNotch : A circular notch.
    EllipticNotch : An elliptic notch.
    FilletedNotch : A leaf with fillets.

    Notes
    -----
    By about which part a neck in a deep block is softer than a beam, `beam_error`, is from finite
    elements in plane stress; :doc:`/notches` has the numbers.

    Examples
    --------
    >>> import flexure as fx
    >>> notch = fx.sections.CircularNotch(thickness=5e-4, radius=5e-3, width=1e-2)
    >>> isinstance(notch, fx.sections.Notch), notch.half_axes
    (True, (0.005, 0.005))
    """

    def __post_init__(self) -> None:
        check_dimensions(self)

    if TYPE_CHECKING:  # fields in some subclasses, computed from others in the rest

        @property
        def thickness(self) -> Array:
            """The thickness of the neck in m."""

        @property
        def width(self) -> Array:
            """The width in m."""

        @property
        def neck_length(self) -> Array:
            """The length of constant thickness in m."""

        @property
        def half_axes(self) -> tuple[Array, Array]:
            """The half axes along x and y in m."""

    def outlines(self, parts: FloatArray) -> FloatArray:
        """Return the corners of the sections at parts of the length along y and z, (n, 4, 2)."""
        half, (a, c) = 0.5 * float(self.length), self.half_axes
        x = half * (2.0 * parts - 1.0)
        away = np.clip((np.abs(x) - 0.5 * self.neck_length) / a, 0.0, 1.0)
        thickness = self.thickness + 2.0 * c * (1.0 - np.sqrt(1.0 - away * away))
        sizes = np.column_stack([thickness, np.full_like(thickness, self.width)])
        corners: FloatArray = 0.5 * CORNERS * sizes[:, None]
        return corners

    @abstractmethod
    def stress_concentration(self) -> StressConcentration:
        """Return how far stresses at the neck exceed those of a beam.

        Returns
        -------
        StressConcentration
        """

    @property
    @abstractmethod
    def beam_error(self) -> Array:
        """By about which part the neck is softer in bending about z than a beam of its shape."""

    @property
    def length(self) -> Array:
        """The length from one end of the notch to the other in m."""
        return self.neck_length + 2.0 * self.half_axes[0]

    @property
    def neck(self) -> RectangleSection:
        """The section in the middle."""
        return RectangleSection(width=self.width, thickness=self.thickness)

    def section_at(self, offset: Array) -> RectangleSection:
        """Return the section at a place, which beyond the ends is that of the ends.

        Parameters
        ----------
        offset : float or Symbol
            Position from the middle along x in m.

        Returns
        -------
        RectangleSection
        """
        a, c = self.half_axes
        beyond = np.minimum(np.maximum(np.abs(offset) - 0.5 * self.neck_length, 0.0) / a, 1.0)
        height = self.thickness + 2.0 * c * (1.0 - np.sqrt(1.0 - beyond * beyond))
        return RectangleSection(self.width, height)

    def stations(self) -> list[Station]:
        """Return the integration points along one half of the notch.

        Returns
        -------
        list of Station
            From the neck to the end. The integral is the sum of weights times values.

        Notes
        -----
        The nodes are those of Gauss in the variable u of tan(φ/2) = κ sinh u, where φ is the angle
        around the ellipse and κ² = t/(t + 4 c). In it, powers of 1/h are smooth however thin the
        neck is.
        """
        t, (a, c), half = self.thickness, self.half_axes, 0.5 * self.neck_length
        stations = [Station(half * place, 0.5 * half, self.neck) for place in _NECK]
        kappa = np.sqrt(t / (t + 4.0 * c))
        end = np.arcsinh(1.0 / kappa)
        for node, weight in zip(_NODES, _WEIGHTS, strict=True):
            u = 0.5 * end * (1.0 + node)
            v = kappa * np.sinh(u)
            cosine = (1.0 - v * v) / (1.0 + v * v)
            slope = 2.0 * a * cosine * kappa * np.cosh(u) / (1.0 + v * v)  # dx/du
            section = RectangleSection(self.width, t + 2.0 * c * (1.0 - cosine))
            x = half + 2.0 * a * v / (1.0 + v * v)
            stations.append(Station(x, 0.5 * end * weight * slope, section))
        return stations


class _DeepNotch(Notch):
    """A notch whose neck is a part of an ellipse."""

    @property
    def neck_length(self) -> Array:
        """The length of constant thickness in m: there is none."""
        return 0.0

    @property
    def _curvature(self) -> Array:
        """The thickness over the radius of curvature of the neck."""
        a, c = self.half_axes
        return self.thickness * c / (a * a)

    @property
    def beam_error(self) -> Array:
        """The part by which it is softer in bending than a beam, about 0.4 t c/a²."""
        return 0.4 * self._curvature

    def stress_concentration(self) -> StressConcentration:
        """Return Neuber's factors of a neck between two deep notches."""
        w = 0.5 * self._curvature
        r = np.sqrt(w)
        arc = np.arctan(r)
        tension = 2.0 * (w + 1.0) * r / ((w + 1.0) * arc + r)
        return StressConcentration(tension, 4.0 * w * r / (3.0 * (r + (w - 1.0) * arc)))


@dataclass(frozen=True)
class EllipticNotch(_DeepNotch):
    """A notch of two half ellipses.

    Attributes
    ----------
    thickness : float or Symbol
        Thickness t > 0 of the neck along y in m.
    half_length : float or Symbol
        Half axis a > 0 along x in m; the notch is twice as long.
    depth : float or Symbol
        Half axis c > 0 along y in m, the depth on each side.
    width : float or Symbol
        Width b > 0 along z in m.

    See Also
    --------
    CircularNotch : Half circles.
    FilletedNotch : A short leaf with fillets.
    NotchHinge : The element that has such a notch.

    Notes
    -----
    Stress concentration is that of a neck between two deep hyperbolas of the same curvature, with
    ω = t c/(2 a²), half of the thickness over the radius there, and r = √ω::

        tension  2 (ω + 1) r / ((ω + 1) arctan r + r)
        bending  4 ω r / (3 (r + (ω - 1) arctan r))

    It is exact for them, by H. Neuber, Kerbspannungslehre; Peterson's charts take it for deep
    notches.

    Examples
    --------
    >>> notch = EllipticNotch(thickness=5e-4, half_length=4e-3, depth=2e-3, width=1e-2)
    >>> notch.length
    0.008
    >>> round(float(notch.stress_concentration().bending), 4)
    1.0125
    """

    thickness: Any = dimension("m", "thickness of the neck along y")
    half_length: Any = dimension("m", "half axis along x, half of the length of the notch")
    depth: Any = dimension("m", "half axis along y, the depth on each side")
    width: Any = dimension("m", "width along z")

    @property
    def half_axes(self) -> tuple[Array, Array]:
        """The half axes along x and y in m."""
        return self.half_length, self.depth


@dataclass(frozen=True)
class CircularNotch(_DeepNotch):
    """A notch of two half circles, the most common shape.

    Attributes
    ----------
    thickness : float or Symbol
        Thickness t > 0 of the neck along y in m.
    radius : float or Symbol
        Radius R > 0 in m.
    width : float or Symbol
        Width b > 0 along z in m.

    See Also
    --------
    EllipticNotch : Half ellipses.
    FilletedNotch : A short leaf with fillets.
    NotchHinge : The element that has such a notch.

    Notes
    -----
    Stress concentration is as in `EllipticNotch`.

    Examples
    --------
    >>> CircularNotch(thickness=5e-4, radius=5e-3, width=1e-2).length
    0.01
    """

    thickness: Any = dimension("m", "thickness of the neck along y")
    radius: Any = dimension("m", "radius of the notch")
    width: Any = dimension("m", "width along z")

    @property
    def half_axes(self) -> tuple[Array, Array]:
        """The half axes along x and y in m, both the radius."""
        return self.radius, self.radius


@dataclass(frozen=True)
class FilletedNotch(Notch):
    """A short leaf with fillets in its corners.

    Attributes
    ----------
    thickness : float or Symbol
        Thickness t > 0 of the leaf along y in m.
    neck_length : float or Symbol
        Length s > 0 between the fillets in m.
    fillet_radius : float or Symbol
        Radius r > 0 of the fillets in m; the notch is s + 2 r long.
    width : float or Symbol
        Width b > 0 along z in m.

    See Also
    --------
    CircularNotch : Half circles.
    LeafSpring : A leaf without fillets.
    NotchHinge : The element that has such a notch.

    Notes
    -----
    Stress concentration is that at the fillets of a shoulder 20 times as deep as they are, which is
    the deepest of the fits in W. D. Pilkey, Peterson's Stress Concentration Factors, chapter on
    shoulder fillets. It is a little less at shallower ones.

    Examples
    --------
    >>> notch = FilletedNotch(thickness=5e-4, neck_length=4e-3, fillet_radius=5e-4, width=1e-2)
    >>> notch.length
    0.005
    >>> round(float(notch.stress_concentration().bending), 2)
    1.15
    """

    thickness: Any = dimension("m", "thickness of the neck along y")
    neck_length: Any = dimension("m", "length between the fillets")
    fillet_radius: Any = dimension("m", "radius of the fillets")
    width: Any = dimension("m", "width along z")

    @property
    def half_axes(self) -> tuple[Array, Array]:
        """The half axes along x and y in m, both the radius of the fillets."""
        return self.fillet_radius, self.fillet_radius

    @property
    def beam_error(self) -> Array:
        """The part by which it is softer in bending than a beam, about 0.6 t/(s + 2 r)."""
        return 0.6 * self.thickness / self.length

    def stress_concentration(self) -> StressConcentration:
        """Return Peterson's factors of a deep shoulder."""
        depth = 2.0 * _DEEP * self.fillet_radius
        share = depth / (self.thickness + depth)  # of the whole height that the shoulders have
        root = np.sqrt(_DEEP)
        tension = (
            (1.020 + 1.009 * root - 0.048 * _DEEP)
            + (-0.065 - 0.165 * root - 0.007 * _DEEP) * share
            + (-3.459 + 1.266 * root - 0.016 * _DEEP) * share**2
            + (3.505 - 2.109 * root + 0.069 * _DEEP) * share**3
        )
        bending = (
            (1.058 + 1.002 * root - 0.038 * _DEEP)
            + (-3.652 + 1.639 * root - 0.436 * _DEEP) * share
            + (6.170 - 5.687 * root + 1.175 * _DEEP) * share**2
            + (-2.558 + 3.046 * root - 0.701 * _DEEP) * share**3
        )
        return StressConcentration(np.maximum(1.0, tension), np.maximum(1.0, bending))
