"""Base class of the laws of a force along one coordinate."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from flexure.diagrams.values.arrays import Array


class CoordinateLaw(ABC):
    """The law of a force along a coordinate q, such as an angle, with the rate v.

    A law says which force is conservative, which energy is stored by it, and which force dissipates
    energy; the rest follows::

        f = f_c(q) + f_d(q, v)      force, positive towards greater q
        V(q) = -∫ f_c dq            stored energy
        P_c = f_c v = -dV/dt        conservative power
        P_d = f_d v <= 0            non-conservative power

    All functions take single numbers or symbols, or arrays with one coordinate per entry.

    See Also
    --------
    SpringLaw : A linear spring with damping.
    StopLaw : An elastic end stop.

    Examples
    --------
    >>> import flexure as fx
    >>> law = fx.laws.SpringLaw(stiffness=50.0, damping=0.5)
    >>> isinstance(law, fx.laws.CoordinateLaw)
    True
    """

    @abstractmethod
    def conservative_force(self, q: Array) -> Array:
        """Return the force f_c in N m, or N, that is the negative slope of the stored energy."""

    @abstractmethod
    def dissipative_force(self, q: Array, v: Array) -> Array:
        """Return the force f_d in N m, or N, that never does positive work."""

    @abstractmethod
    def stored_energy(self, q: Array) -> Array:
        """Return the stored energy V in J."""

    def force(self, q: Array, v: Array) -> Array:
        """Return the total force f in N m, or N."""
        return self.conservative_force(q) + self.dissipative_force(q, v)

    def conservative_power(self, q: Array, v: Array) -> Array:
        """Return the power P_c in W, the negative rate of the stored energy."""
        return self.conservative_force(q) * v

    def non_conservative_power(self, q: Array, v: Array) -> Array:
        """Return the power P_d in W, never positive."""
        return self.dissipative_force(q, v) * v


class LinearlyDampedLaw(CoordinateLaw):
    """A law whose dissipative force is that of a linear damper, wherever the coordinate is.

    With the damping constant d, which a subclass has::

        f_d = -d v
        P_d = -d v²
    """

    damping: Array

    def dissipative_force(self, q: Array, v: Array) -> Array:
        """Return the force of the damper in N m, or N."""
        return -self.damping * v

    def non_conservative_power(self, q: Array, v: Array) -> Array:
        """Return the power of the damper in W, never positive."""
        return self.damper_power(v)

    def damper_power(self, v: Array) -> Array:
        """Return the power of the damper in W, which does not depend on the coordinate."""
        return -self.damping * v * v


def hunt_crossley_damping(elastic_force: Array, rate: Array, damping: Array) -> Array:
    """Return the damping part of a contact force, ``n max(-1, d ẋ)``.

    With the elastic force n >= 0 at a depth x, which grows at the rate ẋ, the total force is
    ``n max(0, 1 + d ẋ)``. It begins and ends at zero together with n, and it never pulls.

    Parameters
    ----------
    elastic_force : float or array_like
        Elastic force n >= 0 of the contact in N m, or N.
    rate : float or array_like
        Rate of the depth ẋ, positive while the contact becomes deeper.
    damping : float
        Damping constant d >= 0, one over a rate: in s/rad, or s/m.

    Returns
    -------
    float, Symbol or array
        In N m, or N; of the sign of the rate, so that its power is never positive.

    See Also
    --------
    Bumper : A bumper between points P on A and Q on B.

    Notes
    -----
    A mass that arrives with the speed u and leaves with w has, whatever the elastic force is,
    ``d u - ln(1 + d u) = -d w - ln(1 - d w)``. So w/u is about 1 - 2/3 d u as long as this is
    close to 1, and w stays below 1/d.

    Source: K. H. Hunt and F. R. E. Crossley, Coefficient of restitution interpreted as damping in
    vibroimpact, Journal of Applied Mechanics 42 (1975) 440-445; the limit at zero, which keeps a
    contact that is pulled apart quickly from sticking, is added to it.

    Examples
    --------
    >>> hunt_crossley_damping(10.0, np.array([-9.0, -1.0, 0.0, 1.0]), damping=0.5)
    array([-10.,  -5.,   0.,   5.])
    """
    return elastic_force * np.maximum(-1.0, damping * rate)
