"""Setpoint profiles: sources that go from one value to another as a machine can follow.

Both have three outputs, ``y`` with its rates ``velocity`` and ``acceleration``, which are wired to
a controller as setpoint, rate of the setpoint and feedforward. Each component moves by itself. See
`flexure.blocks.signals.sources` for the other conventions.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.signals.argument_shapes import common_size
from flexure.blocks.signals.waveforms import first_after
from flexure.diagrams import scalars
from flexure.diagrams.systems.leaf import LeafSystem
from flexure.diagrams.systems.ports import TIME
from flexure.diagrams.values.arrays import Array

if TYPE_CHECKING:
    from flexure.diagrams.contexts.context import Context


class Profile(LeafSystem):
    """Base class of profiles: start time, both ends and the outputs.

    ``others`` are what else has a size.
    """

    def __init__(
        self,
        name: str,
        at: npt.ArrayLike,
        to: npt.ArrayLike,
        initial: npt.ArrayLike,
        **others: npt.ArrayLike,
    ) -> None:
        super().__init__(name)
        size = common_size(self, None, at=at, to=to, initial=initial, **others)
        self.at = self.declare_numeric_parameter("at", at, unit="s", doc="begin of the move")
        self.to = self.declare_numeric_parameter("to", to, doc="value after the move")
        self.initial = self.declare_numeric_parameter(
            "initial", initial, doc="value before the move"
        )
        self.y = self.declare_vector_output("y", size, self.calc_y, prerequisites=[TIME])
        self.velocity = self.declare_vector_output(
            "velocity", size, self.calc_velocity, prerequisites=[TIME], doc="rate of y, per s"
        )
        self.acceleration = self.declare_vector_output(
            "acceleration", size, self.calc_acceleration, prerequisites=[TIME], doc="per s^2"
        )

    def unit_relations(self) -> Iterable[tuple[Any, ...]]:
        """Return that velocity and acceleration have the unit of the position per s and s²."""
        return [(self.y, self.velocity, "1/s"), (self.velocity, self.acceleration, "1/s")]

    @abstractmethod
    def calc_y(self, context: Context) -> Array:
        """Return the value."""

    @abstractmethod
    def calc_velocity(self, context: Context) -> Array:
        """Return the rate of y."""

    @abstractmethod
    def calc_acceleration(self, context: Context) -> Array:
        """Return the rate of the velocity."""


class TrapezoidalProfile(Profile):
    """A move with limited velocity and acceleration: speed up, cruise, and slow down.

    With the distance D = ``|to − initial|`` and the limits V and A, the move takes 2 Ta + Tc, of
    which it speeds up during Ta, cruises during Tc and slows down during Ta::

        Ta = min(V/A, √(D/A))
        Tc = max(D/V − V/A, 0)

        ÿ(t) = ± A   for      at <= t < at + Ta
               ∓ A   for      at + Ta + Tc <= t < at + 2 Ta + Tc
                 0   otherwise

    Moves shorter than V²/A are triangular: they slow down as soon as they have sped up, at a speed
    of √(D A).

    Parameters
    ----------
    name : str
        Name within the surrounding diagram.
    at : float or array_like, shape (n,)
        Time at which the move begins, in s.
    to : float or array_like, shape (n,)
        Value after the move.
    initial : float or array_like, shape (n,)
        Value before the move.
    max_velocity : float or array_like, shape (n,)
        V, positive, in units of y per s.
    max_acceleration : float or array_like, shape (n,)
        A, positive, in units of y per s².

    Attributes
    ----------
    y, velocity, acceleration : LeafOutputPort
        Outputs of the same names, of size n.
    at, to, initial, max_velocity, max_acceleration : NumericParameter
        Parameters of the same names.

    Raises
    ------
    DeclarationError
        When sizes differ.
    ValueRefusedError
        When a limit is not positive and finite, or another argument not finite.

    See Also
    --------
    MinimumJerkProfile : A move with the least mean square jerk.

    Notes
    -----
    Integrators stop at the four corners, where the acceleration jumps; from there on it has its new
    value. After the last one, y is ``to`` exactly. A sensitivity to ``to`` or ``initial`` where
    both are equal does not exist, since the direction of the move changes there.

    Examples
    --------
    >>> import flexure as fx
    >>> lift = fx.TrapezoidalProfile("lift", to=3.0, max_velocity=1.0, max_acceleration=2.0)
    >>> context = lift.create_default_context()
    >>> context.time = 1.5
    >>> lift.y(context), lift.velocity(context), lift.calc_next_break_time(context)
    (array([1.25]), array([1.]), 3.0)
    """

    def __init__(
        self,
        name: str,
        at: npt.ArrayLike = 0.0,
        to: npt.ArrayLike = 1.0,
        initial: npt.ArrayLike = 0.0,
        max_velocity: npt.ArrayLike = 1.0,
        max_acceleration: npt.ArrayLike = 1.0,
    ) -> None:
        super().__init__(
            name, at, to, initial, max_velocity=max_velocity, max_acceleration=max_acceleration
        )
        self.max_velocity = self.declare_numeric_parameter(
            "max_velocity", max_velocity, unit="1/s", lower=0.0, exclusive=True, doc="limit"
        )
        self.max_acceleration = self.declare_numeric_parameter(
            "max_acceleration",
            max_acceleration,
            unit="1/s^2",
            lower=0.0,
            exclusive=True,
            doc="limit",
        )

    def _corners(self, context: Context) -> tuple[Array, Array, Array, Array]:
        """Return the times at which the acceleration jumps."""
        begin, V, A = self.at(context), self.max_velocity(context), self.max_acceleration(context)
        distance = np.abs(self.to(context) - self.initial(context))
        rest = distance / V - V / A  # one choice for both, which may be equal, but not their slopes
        change = np.where(rest > 0.0, V / A, np.sqrt(distance / A))
        cruise = np.where(rest > 0.0, rest, 0.0)
        # Sums alone, so that every reading rounds them alike.
        return begin, begin + change, begin + (change + cruise), begin + (change + cruise + change)

    def _signed_acceleration(self, context: Context) -> Array:
        direction = np.sign(self.to(context) - self.initial(context))
        return direction * self.max_acceleration(context)

    def calc_y(self, context: Context) -> Array:
        """Return the value: the end less what is still to go, in the second half."""
        t, (begin, fast, slow, end) = context.time, self._corners(context)
        a, to = self._signed_acceleration(context), self.to(context)
        gone = _within(t, begin, fast) - begin
        cruised = _within(t, fast, slow) - fast
        left = end - _within(t, slow, end)
        forth = self.initial(context) + a * (0.5 * gone * gone + (fast - begin) * cruised)
        return np.where(t < slow, forth, to - 0.5 * a * left * left)

    def calc_velocity(self, context: Context) -> Array:
        """Return the rate of y."""
        t, (begin, fast, slow, end) = context.time, self._corners(context)
        gone = _within(t, begin, fast) - begin
        left = end - _within(t, slow, end)
        return self._signed_acceleration(context) * np.where(t < slow, gone, left)

    def calc_acceleration(self, context: Context) -> Array:
        """Return the rate of the velocity."""
        t, (begin, fast, slow, end) = context.time, self._corners(context)
        ahead = np.where((t >= begin) & (t < fast), 1.0, 0.0)
        back = np.where((t >= slow) & (t < end), 1.0, 0.0)
        return self._signed_acceleration(context) * (ahead - back)

    def calc_next_break_time(self, context: Any) -> float:
        """Return the next corner."""
        return first_after(context.time, *self._corners(context))


def _within(time: Array, begin: Array, end: Array) -> Array:
    """Limit a time to an interval; where it is at an end, slopes are those behind it."""
    return np.minimum(end, np.maximum(time, begin))


class MinimumJerkProfile(Profile):
    """A move in a given time with the least mean square jerk.

    With s = (t − at)/duration, kept between 0 and 1::

        y(t) = initial + (to − initial) (10 s³ − 15 s⁴ + 6 s⁵)

    Velocity and acceleration begin and end with zero. The largest velocity is 15/8 of the mean one,
    ``(to − initial)/duration``, and the largest acceleration 10/√3 of ``(to − initial)/duration²``.

    Parameters
    ----------
    name : str
        Name within the surrounding diagram.
    at : float or array_like, shape (n,)
        Time at which the move begins, in s.
    to : float or array_like, shape (n,)
        Value after the move.
    initial : float or array_like, shape (n,)
        Value before the move.
    duration : float or array_like, shape (n,)
        How long the move takes, positive, in s.

    Attributes
    ----------
    y, velocity, acceleration : LeafOutputPort
        Outputs of the same names, of size n.
    at, to, initial, duration : NumericParameter
        Parameters of the same names.

    Raises
    ------
    DeclarationError
        When sizes differ.
    ValueRefusedError
        When the duration is not positive and finite, or another argument not finite.

    See Also
    --------
    TrapezoidalProfile : A move with limited velocity and acceleration.
    Trajectory : A signal through given points.

    Notes
    -----
    Integrators stop at begin and end, where the jerk jumps. From the end on, y is ``to`` exactly.

    Source of the polynomial: T. Flash and N. Hogan, The coordination of arm movements, Journal of
    Neuroscience 5 (1985).

    Examples
    --------
    >>> import flexure as fx
    >>> reach = fx.MinimumJerkProfile("reach", to=2.0, duration=4.0)
    >>> context = reach.create_default_context()
    >>> context.time = 2.0
    >>> reach.y(context), reach.velocity(context), reach.acceleration(context)
    (array([1.]), array([0.9375]), array([0.]))
    """

    def __init__(
        self,
        name: str,
        at: npt.ArrayLike = 0.0,
        to: npt.ArrayLike = 1.0,
        initial: npt.ArrayLike = 0.0,
        duration: npt.ArrayLike = 1.0,
    ) -> None:
        super().__init__(name, at, to, initial, duration=duration)
        self.duration = self.declare_numeric_parameter(
            "duration", duration, unit="s", lower=0.0, exclusive=True, doc="how long the move takes"
        )

    def _fraction(self, context: Context) -> Array:
        """Return s; the end is where the break time is."""
        begin, duration = self.at(context), self.duration(context)
        s = scalars.clip((context.time - begin) / duration, 0.0, 1.0)
        return np.where(context.time >= begin + duration, 1.0, s)

    def _distance(self, context: Context) -> Array:
        return self.to(context) - self.initial(context)

    def calc_y(self, context: Context) -> Array:
        """Return the value: from the end backwards in the second half, so that it is met."""
        s = self._fraction(context)
        r = np.minimum(1.0 - s, s)  # in the middle the second half, as below, also in slopes
        share = r * r * r * (10.0 + r * (6.0 * r - 15.0))
        moved = self._distance(context) * share
        return np.where(s < 0.5, self.initial(context) + moved, self.to(context) - moved)

    def calc_velocity(self, context: Context) -> Array:
        """Return the rate of y."""
        s = self._fraction(context)
        hump = s * (1.0 - s)
        return 30.0 * hump * hump * self._distance(context) / self.duration(context)

    def calc_acceleration(self, context: Context) -> Array:
        """Return the rate of the velocity."""
        s, duration = self._fraction(context), self.duration(context)
        shape = 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s)
        return shape * self._distance(context) / (duration * duration)

    def calc_next_break_time(self, context: Any) -> float:
        """Return begin or end."""
        begin = self.at(context)
        return first_after(context.time, begin, begin + self.duration(context))
