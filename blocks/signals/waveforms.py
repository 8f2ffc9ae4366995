"""Waveforms: sources that oscillate, and what the constructors of all sources share.

See `flexure.blocks.signals.sources` for the conventions.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from flexure.blocks.signals.argument_shapes import common_size, one_of
from flexure.diagrams import scalars
from flexure.diagrams.systems.leaf import LeafSystem
from flexure.diagrams.systems.ports import TIME
from flexure.diagrams.values.arrays import Array
from flexure.diagrams.values.events import require_interval

if TYPE_CHECKING:
    from flexure.diagrams.contexts.context import Context


class Sine(LeafSystem):
    """A harmonic signal: ``y(t) = offset + amplitude sin(frequency t + phase)``.

    Parameters
    ----------
    name : str
        Name within the surrounding diagram.
    amplitude : float or array_like, shape (n,)
        Largest deviation from the offset.
    frequency : float or array_like, shape (n,)
        Angular frequency, in rad/s.
    phase : float or array_like, shape (n,)
        Phase at time zero, in rad.
    offset : float or array_like, shape (n,)
        Mean value.

    Raises
    ------
    DeclarationError
        When sizes differ.
    ValueRefusedError
        When an argument is not real and finite.

    See Also
    --------
    Chirp : A sine whose frequency sweeps from one value to another.

    Examples
    --------
    A point that moves in a circle:

    >>> import flexure as fx
    >>> circle = fx.Sine("circle", frequency=np.pi, phase=[np.pi / 2, 0.0])
    >>> context = circle.create_default_context()
    >>> context.time = 0.5
    >>> circle.y(context).round(6)
    array([0., 1.])
    """

    def __init__(
        self,
        name: str,
        amplitude: npt.ArrayLike = 1.0,
        frequency: npt.ArrayLike = 1.0,
        phase: npt.ArrayLike = 0.0,
        offset: npt.ArrayLike = 0.0,
    ) -> None:
        super().__init__(name)
        size = common_size(
            self, amplitude=amplitude, frequency=frequency, phase=phase, offset=offset
        )
        self.amplitude = self.declare_numeric_parameter(
            "amplitude", amplitude, doc="largest deviation from the offset"
        )
        self.frequency = self.declare_numeric_parameter(
            "frequency", frequency, unit="rad/s", doc="angular frequency"
        )
        self.phase = self.declare_numeric_parameter(
            "phase", phase, unit="rad", doc="phase at time zero"
        )
        self.offset = self.declare_numeric_parameter("offset", offset, doc="mean value")
        self.y = self.declare_vector_output("y", size, self._calc_y, prerequisites=[TIME])

    def _calc_y(self, context: Context) -> Array:
        angle = self.frequency(context) * context.time + self.phase(context)
        return self.offset(context) + self.amplitude(context) * np.sin(angle)


class Chirp(LeafSystem):
    """A sine whose frequency sweeps from one value to another.

    ::

        y(t) = amplitude sin(2π ∫ f dt),   the integral starting at t = 0

    Between t = 0 and t = duration the frequency is

    - "linear": ``f(t) = f0 + (f1 − f0) t / duration``,
    - "logarithmic": ``f(t) = f0 (f1 / f0)^(t / duration)``, the same time for every octave.

    Before, the frequency is f0. After, the signal goes on with f1 and without a jump in phase.
    Integrators stop at both ends of the sweep, where the second derivative of ``y`` jumps.

    Parameters
    ----------
    name : str
        Name within the surrounding diagram.
    f0, f1 : float or array_like, shape (n,)
        Frequencies at the begin and at the end of the sweep, in Hz; not negative, and positive
        for the logarithmic sweep.
    duration : float or array_like, shape (n,)
        Length of the sweep, in s; positive.
    amplitude : float or array_like, shape (n,)
        Largest value.
    method : {"linear", "logarithmic"}
        How the frequency grows.

    Raises
    ------
    DeclarationError
        When sizes differ or the method is unknown.
    ValueRefusedError
        When an argument is out of its bounds, or not real and finite.

    See Also
    --------
    Sine : A harmonic signal.

    Examples
    --------
    >>> import flexure as fx
    >>> chirp = fx.Chirp("shaker", f0=1.0, f1=5.0, duration=10.0)
    >>> context = chirp.create_default_context()
    >>> context.time = 1.0  # 1.2 cycles
    >>> chirp.y(context)
    array([0.951057])
    """

    def __init__(
        self,
        name: str,
        f0: npt.ArrayLike = 0.1,
        f1: npt.ArrayLike = 10.0,
        duration: npt.ArrayLike = 10.0,
        amplitude: npt.ArrayLike = 1.0,
        method: Literal["linear", "logarithmic"] = "linear",
    ) -> None:
        super().__init__(name)
        size = common_size(self, f0=f0, f1=f1, duration=duration, amplitude=amplitude)
        self.method = one_of(self, "method", method, ("linear", "logarithmic"))
        positive = method == "logarithmic"
        self.f0 = self.declare_numeric_parameter(
            "f0", f0, unit="Hz", lower=0.0, exclusive=positive, doc="frequency at the begin"
        )
        self.f1 = self.declare_numeric_parameter(
            "f1", f1, unit="Hz", lower=0.0, exclusive=positive, doc="frequency at the end"
        )
        self.duration = self.declare_numeric_parameter(
            "duration", duration, unit="s", lower=0.0, exclusive=True, doc="length of the sweep"
        )
        self.amplitude = self.declare_numeric_parameter("amplitude", amplitude, doc="largest value")
        self._sweep = logarithmic_sweep if positive else _linear_sweep
        self.y = self.declare_vector_output("y", size, self._calc_y, prerequisites=[TIME])

    def _calc_y(self, context: Context) -> Array:
        time, duration = context.time, self.duration(context)
        f0, f1 = self.f0(context), self.f1(context)
        within = self._sweep(np.clip(time, 0.0, duration), duration, f0, f1)
        outside = f0 * np.minimum(time, 0.0) + f1 * np.maximum(time - duration, 0.0)
        return self.amplitude(context) * np.sin(2.0 * np.pi * (within + outside))

    def calc_next_break_time(self, context: Any) -> float:
        """Return the next end of the sweep."""
        return first_after(context.time, np.zeros(1), self.duration(context))


def _linear_sweep(time: Array, duration: Array, f0: Array, f1: Array) -> Array:
    """Return the number of cycles from the begin of the sweep."""
    return time * (f0 + (f1 - f0) * time / (2.0 * duration))


def logarithmic_sweep(time: Array, duration: Array, f0: Array, f1: Array) -> Array:
    """Return the number of cycles from the begin of the sweep, also for equal frequencies."""
    growth = np.log(f1 / f0) / duration
    level = growth == 0.0
    level_cycles = time * (1.0 + 0.5 * growth * time)  # with the slope by the frequencies
    return f0 * np.where(level, level_cycles, np.expm1(growth * time) / np.where(level, 1, growth))


class Square(LeafSystem):
    """A square wave, or a train of pulses.

    ::

        y(t) = offset + amplitude   for delay + k period <= t < delay + (k + duty) period
               offset − amplitude   otherwise,                    k = 0, 1, 2, ...

    Before the delay the signal is low; a negative delay shifts the phase instead. Pulses between
    0 and h are ``amplitude=h/2, offset=h/2``.

    Parameters
    ----------
    name : str
        Name within the surrounding diagram.
    amplitude : float or array_like, shape (n,)
        Half of the jump.
    period : float or array_like, shape (n,)
        Time from one rising edge to the next, in s; positive.
    duty : float or array_like, shape (n,)
        Part of the period that is high, from 0 to 1.
    delay : float or array_like, shape (n,)
        Time of the first rising edge, in s.
    offset : float or array_like, shape (n,)
        Middle between high and low.

    Raises
    ------
    DeclarationError
        When sizes differ.
    ValueRefusedError
        When an argument is out of its bounds, or not real and finite.

    See Also
    --------
    Step : A signal that jumps once.

    Notes
    -----
    The edges are the numbers ``delay + k*period`` and ``delay + (k + duty)*period`` in floating
    point. The output switches exactly there, and integrators stop exactly there; an event with
    the trigger ``Periodic(period, delay)`` happens at the same instants. This holds as long as
    ``|t|`` and ``|delay|`` are below 10^15 periods.

    Examples
    --------
    >>> import flexure as fx
    >>> clock = fx.Square("clock", period=0.1, duty=0.25)
    >>> context = clock.create_default_context()
    >>> clock.y(context), clock.calc_next_break_time(context)
    (array([1.]), 0.025)
    >>> context.time = 0.025
    >>> clock.y(context), clock.calc_next_break_time(context)
    (array([-1.]), 0.1)
    """

    def __init__(
        self,
        name: str,
        amplitude: npt.ArrayLike = 1.0,
        period: npt.ArrayLike = 1.0,
        duty: npt.ArrayLike = 0.5,
        delay: npt.ArrayLike = 0.0,
        offset: npt.ArrayLike = 0.0,
    ) -> None:
        super().__init__(name)
        size = common_size(
            self, amplitude=amplitude, period=period, duty=duty, delay=delay, offset=offset
        )
        self.amplitude = self.declare_numeric_parameter(
            "amplitude", amplitude, doc="half of the jump"
        )
        self.period = self.declare_numeric_parameter(
            "period", period, unit="s", lower=0.0, exclusive=True, doc="time between rising edges"
        )
        self.duty = self.declare_numeric_parameter(
            "duty", duty, lower=0.0, upper=1.0, doc="part of the period that is high"
        )
        self.delay = self.declare_numeric_parameter(
            "delay", delay, unit="s", doc="time of the first rising edge"
        )
        self.offset = self.declare_numeric_parameter(
            "offset", offset, doc="middle between high and low"
        )
        self.y = self.declare_vector_output("y", size, self._calc_y, prerequisites=[TIME])

    def _pulse(self, context: Context) -> Array:
        """Return the number of the last rising edge; negative before the first one."""
        period, delay = self.period(context), self.delay(context)
        # The quotient is inexact, so the edge nearest to it is compared with the time itself.
        nearest = np.rint((context.time - delay) / period)
        return np.where(context.time < delay + nearest * period, nearest - 1.0, nearest)

    def _calc_y(self, context: Context) -> Array:
        pulse = self._pulse(context)
        fall = self.delay(context) + (pulse + self.duty(context)) * self.period(context)
        high = (pulse >= 0.0) & (context.time < fall)
        return self.offset(context) + np.where(high, 1.0, -1.0) * self.amplitude(context)

    def calc_next_break_time(self, context: Any) -> float:
        """Return the next edge."""
        period, delay = self.period(context), self.delay(context)
        if not scalars.is_symbolic(period):
            attempt = f"Cannot find the next edge of '{self.label}'"
            shortest = float(np.min(period, initial=np.inf))
            require_interval("a period", shortest, context.time, attempt)
        pulse = self._pulse(context)
        fall = delay + (pulse + self.duty(context)) * period
        rise = delay + (pulse + 1.0) * period
        edge = np.where((pulse >= 0.0) & (context.time < fall), fall, np.maximum(rise, delay))
        return first_after(context.time, edge)


def first_after(now: float, *times: Array) -> float:
    """Return the earliest of some times that is later than now; infinity when there is none."""
    later = [np.min(np.where(each > now, each, np.inf), initial=np.inf) for each in times]
    earliest: float = reduce(np.minimum, later).item()  # or a symbol
    return earliest
