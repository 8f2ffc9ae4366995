"""Delays of a continuous signal: a sampled delay line and a rational approximation."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.signals.argument_shapes import full, refusal, single
from flexure.blocks.signals.waveforms import first_after
from flexure.diagrams.systems.leaf import LeafSystem
from flexure.diagrams.systems.ports import TIME
from flexure.diagrams.values.arrays import Array, check_size
from flexure.diagrams.values.events import Periodic

_ROUNDING = 1e-9

#: Samples that a delay keeps at most.
_MOST_SAMPLES = 10**7


class TimeDelay(LeafSystem):
    r"""Transport delay by a line of samples: ``y(t) ≈ u(t − delay)``.

    The input is sampled with a period T, and the output interpolates linearly between the two
    samples around t − delay. It depends on time and stored samples alone, so that the block breaks
    algebraic loops.

    Parameters
    ----------
    name : str
        Name of the block.
    delay : float
        Delay in s, at least one period.
    period : float
        Sampling period T in s, fixed once the block is made.
    size : int
        Number of components.
    initial : float or array_like, shape (size,)
        Value of the input before the first sample.
    max_delay : float, optional
        Longest delay that can be set later, in s; ``delay`` when omitted.

    Attributes
    ----------
    u : InputPort
        Input "u", of ``size``.
    samples : DiscreteState
        State "samples", the newest first, component by component in each.
    sampled_at : DiscreteState
        State "sampled_at", the time of the newest sample in s.
    y : LeafOutputPort
        Output "y", of ``size``.
    delay : NumericParameter
        Parameter "delay" within [period, max_delay].

    Raises
    ------
    DeclarationError
        When the period is not positive, or a shape does not fit.
    ValueRefusedError
        When the delay is not within [period, max_delay].

    See Also
    --------
    PadeDelay : Delay of a scalar by a Padé approximant.

    Notes
    -----
    For a smooth input the error is at most T²/8 max \|ü\|, without error in the delay itself. A
    jump of the input comes out as a ramp of length T that ends, at the latest, one period after
    the jump should. Samples are taken at multiples of T. `PadeDelay` needs no samples, and is
    accurate for slow signals.

    A delay that changes takes effect at once, and reads the samples that are there. Native code and
    JavaScript move the samples as a whole, so that a run costs little more than with a `UnitDelay`.
    `linearize` needs a period, and is exact from sample to sample; margins need a `PadeDelay`.

    Examples
    --------
    >>> import flexure as fx
    >>> pipe = fx.TimeDelay("pipe", delay=0.25, period=0.1)
    >>> context = pipe.create_default_context()
    >>> pipe.samples.set(context, [5.0, 4.0, 2.0, 1.0])
    >>> pipe.sampled_at.set(context, 1.0)
    >>> context.time = 1.0
    >>> pipe.y.eval(context)
    array([1.5])
    """

    def __init__(
        self,
        name: str,
        delay: float,
        period: float,
        size: int = 1,
        initial: npt.ArrayLike = 0.0,
        max_delay: float | None = None,
    ) -> None:
        super().__init__(name)
        clock = Periodic(period)
        self.period = float(period)
        longest = (
            single(self, "delay", delay)
            if max_delay is None
            else single(self, "max_delay", max_delay)
        )
        if not self.period <= longest < math.inf:
            raise refusal(
                self,
                f"a delay of at least one period, {self.period:g} s",
                f"{longest!r}",
                "Shorten the period, or use a PadeDelay",
            )
        if not longest / self.period <= _MOST_SAMPLES:
            raise refusal(
                self,
                f"a delay of at most {_MOST_SAMPLES} periods, which are kept in memory",
                f"{longest:g} s with a period of {self.period:g} s",
                "Lengthen the period, or use a PadeDelay",
            )
        self.size = check_size(size, f"'{name}'", minimum=1)
        self.length = math.ceil(longest / self.period)
        self.delay = self.declare_numeric_parameter(
            "delay", delay, unit="s", lower=self.period, upper=longest
        )
        self.delay.remedy = "Make the TimeDelay with another max_delay or period"
        start = full(self, "initial", initial, size)
        self.u = self.declare_vector_input("u", size)
        self.samples = self.declare_discrete_state("samples", np.tile(start, self.length + 1))
        self.sampled_at = self.declare_discrete_state("sampled_at", 0.0)
        self.declare_discrete_update(self.sample, clock)
        self.y = self.declare_vector_output(
            "y", size, self.interpolate, prerequisites=[TIME, self.samples, self.sampled_at]
        )

    def unit_relations(self) -> Iterable[tuple[Any, ...]]:
        """Return that output and input have one unit."""
        return [(self.u, self.y)]

    def sample(self, context: Any) -> dict[Any, Any]:
        """Put the input in front of the samples and drop the oldest."""
        kept = self.samples(context)[: -self.size]
        return {
            self.samples: np.concatenate([self.u(context), kept]),
            self.sampled_at: context.time,
        }

    def interpolate(self, context: Any) -> Array:
        """Return the value at t − delay, on the straight line between two samples."""
        time, period, latest = context.time, self.period, self.sampled_at(context)
        ratio, bend = self.delay(context) / period, self._bend(context)
        bend = np.where(_is_whole(ratio), bend + _ROUNDING * period, bend)
        passed = np.floor((time - bend) / period) + 1.0
        passed = np.where((latest <= time) & (time < bend), 0.0, passed)
        newer = np.clip(np.ceil(ratio - _ROUNDING) - 1.0 - passed, 0.0, self.length - 1.0)
        age = np.clip(ratio - (time - latest) / period, 0.0, self.length)
        rows = self.samples(context).reshape(self.length + 1, self.size)
        newer_sample, older_sample = _pair(rows, newer)
        return newer_sample + (age - newer) * (older_sample - newer_sample)

    def _bend(self, context: Any) -> Array:
        """Return the first time, after that of the newest sample, when t − delay passes another."""
        ratio = self.delay(context) / self.period
        return self.sampled_at(context) + (ratio - np.ceil(ratio - _ROUNDING) + 1.0) * self.period

    def calc_next_break_time(self, context: Any) -> float:
        """Return when t − delay passes a sample, unless that is when the next one is taken."""
        time, period = context.time, self.period
        whole = _is_whole(self.delay(context) / period)
        bend = np.where(whole, np.inf, self._bend(context))
        passed = np.maximum(np.rint((time - bend) / period), 0.0)
        return first_after(time, bend + passed * period, bend + (passed + 1.0) * period)


def _is_whole(ratio: Array) -> Any:
    """Return whether a delay is a whole number of periods."""
    return np.abs(ratio - np.rint(ratio)) <= _ROUNDING


def _pair(rows: Array, index: Array) -> tuple[Array, Array]:
    """Return a row and the next one, by choices between halves."""
    while len(rows) > 2:
        half = (len(rows) - 1) // 2
        beyond = index >= half
        rows = np.where(beyond, rows[half:], rows[:-half])
        index = np.where(beyond, index - half, index)
    return rows[0], rows[1]


class PadeDelay(LeafSystem):
    r"""Delay of a scalar by a Padé approximant: ``exp(−τ s) ≈ N(−τ s) / N(τ s)``.

    N is the numerator of the diagonal Padé approximant of order n,

    .. math:: N(z) = \sum_{k=0}^{n} \frac{(2n-k)!\,n!}{(2n)!\,k!\,(n-k)!} z^k

    so that every frequency passes with gain one, and low ones with the right phase.

    Parameters
    ----------
    name : str
        Name of the block.
    delay : float
        τ, positive, in s.
    order : int
        n, from 1 to 10: the number of states.

    Attributes
    ----------
    u : InputPort
        Input "u" of size 1.
    x : ContinuousState
        State "x" of size n, without a meaning of its own; zeros are the rest at u = 0.
    y : LeafOutputPort
        Output "y" of size 1; needs the input at once.
    delay : NumericParameter
        Parameter "delay".

    Raises
    ------
    DeclarationError
        When the order is not from 1 to 10.
    ValueRefusedError
        When the delay is not positive.

    See Also
    --------
    TimeDelay : Transport delay by a line of samples.

    Notes
    -----
    Numerator and denominator are of equal degree (the balanced form), hence the output has the
    direct part (−1)ⁿ u: a jump shows at once, with oscillations until t = τ. The phase is right to
    a hundredth of a radian up to ω τ = 0.49, 1.5, 2.8, 4.2 and 5.7 for n = 1 to 5. `TimeDelay`
    has no direct part and delays any signal.

    Examples
    --------
    >>> import flexure as fx
    >>> context = (delay := fx.PadeDelay("delay", 0.2, order=1)).create_default_context()
    >>> delay.u.fix(context, 1.0)
    >>> delay.y.eval(context)
    array([-1.])
    """

    def __init__(self, name: str, delay: float, order: int = 3) -> None:
        super().__init__(name)
        order = check_size(order, f"'{name}'", minimum=1)
        if order > 10:
            raise refusal(self, "an order from 1 to 10", str(order), "Use a TimeDelay")
        # N in descending powers, divided by its leading coefficient.
        powers = np.arange(order, -1, -1)
        below = np.array([_coefficient(order, int(k)) for k in powers])
        above = below * (-1.0) ** powers
        self._recursion = below[1:]
        self._direct = above[0]
        self._weights = above[1:] - below[1:] * above[0]
        self.delay = self.declare_numeric_parameter(
            "delay", delay, unit="s", lower=0.0, exclusive=True
        )
        self.u = self.declare_vector_input("u", 1)
        self.x = self.declare_continuous_state(z=order)
        self.y = self.declare_vector_output(
            "y", 1, self.calc_output, prerequisites=[self.x, self.u]
        )

    def unit_relations(self) -> Iterable[tuple[Any, ...]]:
        """Return that output and input have one unit."""
        return [(self.u, self.y)]

    def highest_frequency(self, context: Any) -> float:
        """Return the frequency in rad/s up to which the phase is right to a hundredth of a radian.

        The error begins as (n!)² / ((2n)! (2n + 1)!) (ω τ)^(2n + 1).
        """
        n = self.x.size
        first = math.factorial(n) ** 2 / (math.factorial(2 * n) * math.factorial(2 * n + 1))
        return float((0.01 / first) ** (1.0 / (2 * n + 1)) / self.delay(context))

    def calc_time_derivatives(self, context: Any) -> Array:
        """Return the derivative of the canonical state in time measured in delays."""
        x = self.x(context)
        first = self.u(context) - self._recursion @ x
        return np.concatenate([first, x[:-1]]) / self.delay(context)

    def calc_output(self, context: Any) -> Array:
        """Return the weighted states plus the direct part."""
        return self._weights @ self.x(context) + self._direct * self.u(context)


def _coefficient(order: int, power: int) -> float:
    """Return one coefficient of N, divided by the leading one."""
    return math.factorial(2 * order - power) / (
        math.factorial(power) * math.factorial(order - power)
    )
