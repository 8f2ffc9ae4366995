"""What is inside of measured mounts: springs in series with dampers, and with friction."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flexure.blocks.math import dot
from flexure.diagrams.values.arrays import Array

_TINY = 1e-12  # below which the slope at a turn means nothing, as the friction slips


class MaxwellBranch(NamedTuple):
    """Springs in series with dampers that relax with one time constant.

    With the deformation ξ, the stiffness K of the springs, the stretch z of the dampers and the
    relaxation time T::

        load = K (ξ - z),  V = ½ (ξ - z) · K (ξ - z)
        ż = (ξ - z)/T,     dissipation = (ξ - z) · K (ξ - z)/T

    In harmonic motion of the angular frequency ω its complex stiffness is K i ω T/(1 + i ω T).

    Attributes
    ----------
    directions : tuple of int
        Which components of a deformation the branch resists.
    stiffness : array, shape (m, m)
        Symmetric K along these directions, not negative.
    relaxation_time : float
        The time T > 0 in s, damping over stiffness.
    stretch : array, shape (m,)
        How far the dampers are stretched, z in rad and m.

    See Also
    --------
    FrictionBranch : Springs in series with friction.

    Examples
    --------
    >>> import flexure as fx
    >>> import numpy as np
    >>> branch = fx.laws.MaxwellBranch((3,), np.array([[1e4]]), 0.1, np.zeros(1))
    >>> branch.load(np.array([1e-3]))
    array([10.])
    """

    directions: tuple[int, ...]
    stiffness: Array
    relaxation_time: Array
    stretch: Array

    def load(self, deformation: Array) -> Array:
        """Return the loads of the springs in N m and N, positive against the deformation."""
        return np.matmul(self.stiffness, deformation - self.stretch)

    def energy(self, deformation: Array) -> Array:
        """Return the energy of the springs in J."""
        return 0.5 * dot(deformation - self.stretch, self.load(deformation))

    def flow(self, deformation: Array, rates: Array) -> Array:
        """Return how fast the dampers give way in rad/s and m/s."""
        return (deformation - self.stretch) / self.relaxation_time


class FrictionBranch(NamedTuple):
    """Springs in series with friction that slips from zero load on.

    With the deformation ξ along one direction, the slip z, the greatest load F and the deformation
    h at which half of it is there::

        load = F c,  V = F h (a c - ½ c²),  a = (ξ - z)/h,  c = min(max(a, -1), 1)
        ż = max(ξ̇, 0) (1 - g(a)) + min(ξ̇, 0) (1 - g(-a)),   g(a) = (1 - a) |1 - a|

    That is Dahl's friction with the exponent 2: while ξ grows the slope of the load is
    (1 - a)² F/h, and while it falls (1 + a)² F/h. From no load on, the load is F ξ/(h + ξ), as in
    Berg's model of rubber. Motions leave a between -1 and 1, unless it begins beyond. The friction
    dissipates load · ż, which is never negative.

    Between the amplitudes ±X the loads are ±α F, and a cycle dissipates E::

        α = (√(1 + 4 X²/h²) - 1) h/(2 X),  E = 2 F (2 X - h ln((1 + α)/(1 - α)))

    With memory, the branch knows the load b F at the last turn, and has there g(a)/g(b) and
    g(-a)/g(-b), at most 1, for g(a) and g(-a). So the slope of the load is F/h behind each turn, as
    in Berg's model, whose hyperbola the load follows::

        a = b ± (1 ∓ b) |ξ - ξ_b|/(h (1 ∓ b) + |ξ - ξ_b|)
        α = (√(h² + X² + 6 X h) - h - X)/(2 h)
        E = 2 F (1 + α) (2 X - h (1 + α) ln(1 + 2 X/(h (1 + α)))) - 4 F α X

    Each cycle dissipates. Within it, load · ż is the work that springs F/h do not store, which is
    negative for a while where the load falls: hyperbolas return more than such springs would.

    Attributes
    ----------
    directions : tuple of int
        The directions along which there is friction.
    limit : array, shape (m,)
        Greatest loads F >= 0 in N m and N.
    half_deformation : array, shape (m,)
        Deformations h > 0 in rad and m.
    slip : array, shape (m,)
        How far it has slipped, z in rad and m.
    turn : array, shape (m,), optional
        Loads over F at the last turn, b; without memory when omitted.

    See Also
    --------
    MaxwellBranch : Springs in series with dampers.

    Examples
    --------
    >>> import flexure as fx
    >>> import numpy as np
    >>> branch = fx.laws.FrictionBranch((3,), np.array([10.0]), np.array([1e-3]), np.zeros(1))
    >>> branch.load(np.array([0.0, 0.0, 0.0, 1e-4, 0.0, 0.0]))
    array([0., 0., 0., 1., 0., 0.])
    """

    directions: tuple[int, ...]
    limit: Array
    half_deformation: Array
    slip: Array
    turn: Array | None = None

    def load(self, deformation: Array) -> Array:
        """Return the loads in N m and N, positive against the deformation."""
        a = self.fraction(deformation)
        return self.limit * np.clip(a, -1.0, 1.0)

    def energy(self, deformation: Array) -> Array:
        """Return the energy of the springs in J."""
        a = self.fraction(deformation)
        c = np.clip(a, -1.0, 1.0)
        return np.sum(self.limit * self.half_deformation * c * (a - 0.5 * c))

    def flow(self, deformation: Array, rates: Array) -> Array:
        """Return how fast the friction slips in rad/s and m/s."""
        a = self.fraction(deformation)
        steep = [(1.0 - sign * a) * np.abs(1.0 - sign * a) for sign in (1.0, -1.0)]
        if self.turn is not None:
            at_turn = [np.maximum((1.0 - sign * self.turn) ** 2, _TINY) for sign in (1.0, -1.0)]
            steep = [np.minimum(now / then, 1.0) for now, then in zip(steep, at_turn, strict=True)]
        forth, back = np.maximum(rates, 0.0), np.minimum(rates, 0.0)
        return forth * (1.0 - steep[0]) + back * (1.0 - steep[1])

    def fraction(self, deformation: Array) -> Array:
        """Return the loads over F, as far as they are between -1 and 1."""
        return (deformation - self.slip) / self.half_deformation
