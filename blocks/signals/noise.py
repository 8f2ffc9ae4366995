"""Noise: random signals that are sampled and held, as pure functions of a seed and a count."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from flexure.blocks.signals.argument_shapes import common_size, numbers, one_of, single
from flexure.blocks.signals.random_numbers import normal_quantile, uniform
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.systems.leaf import LeafSystem
from flexure.diagrams.values.arrays import Array, check_bounds, show
from flexure.diagrams.values.events import Initialization, Periodic
from flexure.diagrams.values.handles import Handle

if TYPE_CHECKING:
    from flexure.diagrams.contexts.context import Context


_SQRT3 = 3.0**0.5  # the uniform distribution on ±√3 has variance 1
_LARGEST_SEED = 2**53 - 1  # up to here every integer is a float64
_SQUARINGS = 11


class SampledNoise(LeafSystem):
    """Base class of noises: the stream of random numbers w_k, and the state (k, sample)."""

    def declare_samples(
        self, seed: int, period: float, size: int, distribution: str, doc: str
    ) -> None:
        """Declare seed, state, updates and output."""
        self.size, self.distribution, self.period = size, distribution, period
        self.seed = self.declare_numeric_parameter(
            "seed",
            single(self, "seed", seed),
            lower=0.0,
            upper=_LARGEST_SEED,
            doc="an integer that selects the noise",
            distribution=_random_seed,
        )
        self.index = self.declare_discrete_state("index", 0.0, doc="number k of the sample")
        self.sample = self.declare_discrete_state(
            "sample", self.draw(self.seed.default, 0), doc=doc
        )
        # A changed seed counts at once when a simulation starts; otherwise this changes nothing.
        self.declare_discrete_update(self._redraw, Initialization())
        self.declare_discrete_update(self._advance, Periodic(period))
        self.y = self.declare_vector_output("y", size, self._calc_y, prerequisites=[self.sample])

    def draw(self, seed: Array, k: Array) -> Array:
        """Return w_k."""
        w = uniform(seed, k * self.size + np.arange(float(self.size)))
        w = normal_quantile(w) if self.distribution == "gaussian" else _SQRT3 * (2.0 * w - 1.0)
        return scalars.refuse_where(
            seed != np.floor(seed),
            w,
            lambda: ValueRefusedError(
                f"Cannot draw the noise of '{self.label}'",
                expected="an integer as the seed",
                found=show(seed),
            ),
        )

    @abstractmethod
    def _redraw(self, context: Context) -> dict[Handle, Array]:
        """Return the state for the seed that there is at the start."""

    @abstractmethod
    def _advance(self, context: Context) -> dict[Handle, Array]:
        """Return the state of the next sample."""

    @abstractmethod
    def _calc_y(self, context: Context) -> Array:
        """Return the noise."""


class Noise(SampledNoise):
    """White noise, sampled and held.

    ::

        y(t) = mean + standard_deviation w_k   for (k - 1) period <= t < k period

    The w_k are independent, with mean 0 and variance 1; w_0 holds before the first sample, which is
    taken at t = 0. The state holds k and w_k. w_k is a pure function of the seed and k, so that a
    run that is repeated, split or continued from a clone sees the same noise, and as a state it is
    saved with the context. Every reading of the equations gives the same noise, to the last bit.

    Parameters
    ----------
    name : str
        Name within the surrounding diagram.
    seed : int
        From 0 to 2^53 − 1. Blocks with equal seeds give equal noise. A parameter with a
        distribution: every random context gets a seed of its own.
    period : float
        Time between samples, in s. Part of the structure.
    mean : float or array_like, shape (n,)
        Expected value.
    standard_deviation : float or array_like, shape (n,)
        Not negative.
    distribution : {"gaussian", "uniform"}
        Uniform noise lies in mean ± √3 standard_deviation.
    size : int, optional
        Number of independent components; by default that of mean and standard deviation.

    Raises
    ------
    DeclarationError
        When sizes differ, the period is not positive, or the distribution is unknown.
    ValueRefusedError
        When the seed is not an integer in its bounds, or another argument is out of its bounds
        or not real and finite.

    See Also
    --------
    BandLimitedNoise : Gaussian noise of limited bandwidth.

    Notes
    -----
    k counts the updates since the default context, whose k is 0, also where a run starts late.
    Blocks that sample at the same instants see the noise that held before them. A new seed counts
    from the next sample on, or from the initialization of a simulation. Sample k of a block of n
    components takes the numbers k n to k n + n - 1 of the stream of its seed; Gaussian ones lie
    within 8.3 standard deviations.

    Examples
    --------
    >>> import flexure as fx
    >>> gust = fx.Noise("gust", seed=7, period=0.01, standard_deviation=0.0, mean=3.0, size=2)
    >>> gust.y(gust.create_default_context())
    array([3., 3.])
    """

    def __init__(
        self,
        name: str,
        seed: int,
        period: float,
        mean: npt.ArrayLike = 0.0,
        standard_deviation: npt.ArrayLike = 1.0,
        distribution: Literal["gaussian", "uniform"] = "gaussian",
        size: int | None = None,
    ) -> None:
        super().__init__(name)
        size = common_size(self, size, mean=mean, standard_deviation=standard_deviation)
        kind = one_of(self, "distribution", distribution, ("gaussian", "uniform"))
        self.declare_samples(seed, period, size, kind, "w_k")
        self.mean = self.declare_numeric_parameter("mean", mean, doc="expected value")
        self.standard_deviation = self.declare_numeric_parameter(
            "standard_deviation", standard_deviation, lower=0.0, doc="spread"
        )

    @classmethod
    def from_spectral_density(
        cls,
        name: str,
        seed: int,
        period: float,
        density: npt.ArrayLike,
        *,
        mean: npt.ArrayLike = 0.0,
        size: int | None = None,
    ) -> Noise:
        """Make Gaussian noise that looks white, with a given density, well below ``1 / period``.

        The standard deviation is ``sqrt(density / period)``. At the frequency f the spectral
        density of the held signal is ``density sinc²(f period)``, with sinc x = sin(πx) / (πx).

        Parameters
        ----------
        name, seed, period, mean, size
            As for the class.
        density : float or array_like, shape (n,)
            Two-sided power spectral density: the squared unit of ``y`` per Hz. Not negative.

        Examples
        --------
        >>> import flexure as fx
        >>> road = fx.Noise.from_spectral_density("road", seed=1, period=0.01, density=4e-4)
        >>> road.standard_deviation.default.round(6)
        np.float64(0.2)
        """
        unit = cls(name, seed, period)
        density = numbers(unit, "density", density)
        check_bounds(density, f"Cannot make the Noise '{name}' of this density", lower=0.0)
        return cls(name, seed, period, mean, np.sqrt(density / unit.period), size=size)

    def _redraw(self, context: Context) -> dict[Handle, Array]:
        return {self.sample: self.draw(self.seed(context), self.index(context))}

    def _advance(self, context: Context) -> dict[Handle, Array]:
        k = self.index(context) + 1.0
        return {self.index: k, self.sample: self.draw(self.seed(context), k)}

    def _calc_y(self, context: Context) -> Array:
        return self.mean(context) + self.standard_deviation(context) * self.sample(context)


class BandLimitedNoise(SampledNoise):
    """Gaussian noise of limited bandwidth, such as gusts or road roughness, sampled.

    White noise through a first-order lag, which is exact at the samples. With the period T and
    w_k as those of `Noise`::

        y(t) = mean + √(density/T (1 − a)/(1 + a)) x_k   for (k − 1) T <= t < k T

        x_k = a x_(k−1) + √(1 − a²) w_k,   x_0 = w_0,   a = exp(−2π bandwidth T)

    Well below the frequency 1/T its power spectral density is that of the lag, in units of y² per
    Hz on both sides of zero::

        S(f) = density / (1 + (f/bandwidth)²)

    The variance is ``density/T tanh(π bandwidth T)``, which for short periods is
    ``π bandwidth density``. The noise is stationary from the start. The state holds k and x_k, so
    that it is saved with the context, and a run that is repeated, split or continued from a clone
    sees the same noise. Every reading of the equations gives the same noise, to the last bit.

    Parameters
    ----------
    name : str
        Name within the surrounding diagram.
    seed : int
        From 0 to 2^53 − 1. Blocks with equal seeds give equal w_k. A parameter with a distribution:
        every random context gets a seed of its own.
    period : float
        Time T between samples, in s, at most about 0.05 / bandwidth for the spectrum of the lag.
        Part of the structure.
    density : float or array_like, shape (n,)
        Two-sided power spectral density at frequency zero: the squared unit of y per Hz, not
        negative. A one-sided density is twice as large.
    bandwidth : float or array_like, shape (n,)
        Frequency at which half of the density is left, positive, in Hz.
    mean : float or array_like, shape (n,)
        Expected value.
    size : int, optional
        Number of independent components; by default that of the other arguments.

    Raises
    ------
    DeclarationError
        When sizes differ, or the period is not positive.
    ValueRefusedError
        When the seed is not an integer in its bounds, or another argument is out of its bounds
        or not real and finite.

    See Also
    --------
    Noise : White noise.

    Notes
    -----
    A held signal has the density of its samples times sinc²(f T), with sinc x = sin(πx) / (πx).
    With a bandwidth far above 1/T it is that of `Noise.from_spectral_density`. a is computed within
    2e-8 (2π bandwidth T)³, by operations that round alike in every reading.

    Examples
    --------
    A gust of about 2 m/s, with half of its variance below 0.5 Hz:

    >>> import flexure as fx
    >>> gust = fx.BandLimitedNoise(
    ...     "gust", seed=7, period=0.01, density=2.0**2 / (np.pi * 0.5), bandwidth=0.5, mean=8.0
    ... )
    >>> gust.y(gust.create_default_context()).round(6)
    array([8.901532])
    """

    def __init__(
        self,
        name: str,
        seed: int,
        period: float,
        density: npt.ArrayLike,
        bandwidth: npt.ArrayLike,
        mean: npt.ArrayLike = 0.0,
        size: int | None = None,
    ) -> None:
        super().__init__(name)
        size = common_size(self, size, density=density, bandwidth=bandwidth, mean=mean)
        self.declare_samples(seed, period, size, "gaussian", "x_k")
        self.density = self.declare_numeric_parameter(
            "density", density, lower=0.0, doc="two-sided, at frequency zero, y^2 per Hz"
        )
        self.bandwidth = self.declare_numeric_parameter(
            "bandwidth",
            bandwidth,
            unit="Hz",
            lower=0.0,
            exclusive=True,
            doc="frequency of half the density",
        )
        self.mean = self.declare_numeric_parameter("mean", mean, doc="expected value")

    def _memory(self, context: Context) -> Array:
        """Return a, as a power of (1 − h)/(1 + h), which is almost exp(−2 h)."""
        h = np.pi * self.period / 2.0**_SQUARINGS * self.bandwidth(context)
        memory = np.maximum(1.0 - h, 0.0) / (1.0 + h)
        for _ in range(_SQUARINGS):
            memory = memory * memory
        return memory

    def _redraw(self, context: Context) -> dict[Handle, Array]:
        k = self.index(context)
        first = self.draw(self.seed(context), np.zeros(1))
        return {self.sample: np.where(k == 0.0, first, self.sample(context))}

    def _advance(self, context: Context) -> dict[Handle, Array]:
        k, a = self.index(context) + 1.0, self._memory(context)
        w = self.draw(self.seed(context), k)
        x = a * self.sample(context) + np.sqrt((1.0 - a) * (1.0 + a)) * w
        return {self.index: k, self.sample: x}

    def _calc_y(self, context: Context) -> Array:
        a = self._memory(context)
        spread = np.sqrt(self.density(context) / self.period * ((1.0 - a) / (1.0 + a)))
        return self.mean(context) + spread * self.sample(context)


def _random_seed(rng: np.random.Generator) -> int:
    """Draw a seed for a random context."""
    return int(rng.integers(_LARGEST_SEED, endpoint=True))
