"""How stiff and how damped: constants of a spring and a damper from what is known of their motion.

All relations are those of the linear oscillator that is released at rest, with inertia I (a mass m
where it moves along a line), damping d and stiffness k::

    I ẍ + d ẋ + k x = 0        or        ẍ + 2 ζ ωn ẋ + ωn² x = 0
    ωn² = k/I,   ζ = d/(2 √(I k)),   x(0) = x0,   ẋ(0) = 0

Units are given for a torsion spring; for one along a line read N for N m, m for rad and kg for
kg m². The recipes are those on the class page of Drake's LinearBushingRollPitchYaw; settling times
are solved for exactly, with the approximations of that page beside them.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.arguments import one_of
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.interface.option_names import answers_other_words
from flexure.diagrams.values.arrays import Array, as_numbers, bounded, check_bounds

#: Damping ratios beyond it are no physics, and their squares overflow.
_LARGEST_ZETA = 1e100


def stiffness_from_load(load: npt.ArrayLike, displacement: npt.ArrayLike) -> Array:
    """Return the stiffness from a load and its displacement, k = M/q.

    The two come from a static experiment; or they are the greatest load that is expected and the
    greatest displacement that is acceptable under it.

    Parameters
    ----------
    load : array_like
        Torque M > 0 in N m, or force in N; one or more.
    displacement : array_like
        Angle q > 0 in rad, or displacement in m, of a shape that goes with that of the load.

    Returns
    -------
    float or ndarray
        Stiffness in N m/rad, or N/m.

    Raises
    ------
    ValueRefusedError
        When a number is not positive and finite.

    See Also
    --------
    stiffness_from_frequency

    Examples
    --------
    >>> stiffness_from_load(100.0, 0.001)
    np.float64(100000.0)
    """
    attempt = "Cannot find a stiffness"
    return _positive(load, "load", attempt) / _positive(displacement, "displacement", attempt)


def stiffness_from_frequency(inertia: npt.ArrayLike, natural_frequency: npt.ArrayLike) -> Array:
    """Return the stiffness for an inertia and its natural frequency, k = I ωn².

    Parameters
    ----------
    inertia : array_like
        Moment of inertia I > 0 in kg m², or mass in kg.
    natural_frequency : array_like
        Undamped natural frequency ωn > 0 in rad/s.

    Returns
    -------
    float or ndarray
        Stiffness in N m/rad, or N/m.

    Raises
    ------
    ValueRefusedError
        When a number is not positive and finite.

    See Also
    --------
    natural_frequency, stiffness_from_load

    Examples
    --------
    >>> stiffness_from_frequency(0.5, 20.0)
    np.float64(200.0)
    """
    attempt = "Cannot find a stiffness"
    omega = _positive(natural_frequency, "natural_frequency", attempt)
    return _positive(inertia, "inertia", attempt) * omega**2


def natural_frequency(stiffness: npt.ArrayLike, inertia: npt.ArrayLike) -> Array:
    """Return the undamped natural frequency of an inertia on a spring, ωn = √(k/I).

    Parameters
    ----------
    stiffness : array_like
        Stiffness k >= 0 in N m/rad, or N/m.
    inertia : array_like
        Moment of inertia I > 0 in kg m², or mass in kg.

    Returns
    -------
    float or ndarray
        In rad/s.

    Raises
    ------
    ValueRefusedError
        When the stiffness is negative, the inertia not positive, or a number not finite.

    See Also
    --------
    stiffness_from_frequency

    Examples
    --------
    >>> natural_frequency(200.0, inertia=0.5)
    np.float64(20.0)
    """
    attempt = "Cannot find a natural frequency"
    k = _positive(stiffness, "stiffness", attempt, or_zero=True)
    return np.sqrt(k / _positive(inertia, "inertia", attempt))


@answers_other_words
def damping_from_ratio(
    damping_ratio: npt.ArrayLike, stiffness: npt.ArrayLike, inertia: npt.ArrayLike
) -> Array:
    """Return the damping constant for a damping ratio, d = 2 ζ √(I k).

    Parameters
    ----------
    damping_ratio : array_like
        Damping ratio ζ >= 0; 1 for critical damping.
    stiffness : array_like
        Stiffness k >= 0 in N m/rad, or N/m.
    inertia : array_like
        Moment of inertia I > 0 in kg m², or mass in kg.

    Returns
    -------
    float or ndarray
        Damping constant in N m s/rad, or N s/m.

    Raises
    ------
    ValueRefusedError
        When a number is negative or not finite, or the inertia is zero.

    See Also
    --------
    damping_from_settling_time, damping_ratio

    Examples
    --------
    >>> damping_from_ratio(1.0, stiffness=200.0, inertia=0.5)
    np.float64(20.0)
    """
    attempt = "Cannot find a damping constant"
    ratio = _positive(damping_ratio, "damping_ratio", attempt, or_zero=True)
    k = _positive(stiffness, "stiffness", attempt, or_zero=True)
    return 2.0 * ratio * np.sqrt(_positive(inertia, "inertia", attempt) * k)


@answers_other_words
def damping_from_settling_time(
    damping_ratio: float, stiffness: npt.ArrayLike, settling_time: float, fraction: float = 0.02
) -> Array:
    """Return the damping for a damping ratio and a settling time, d = 2 ζ k/ωn.

    This needs no inertia: ωn follows from ζ and the settling time, exactly, as
    `natural_frequency_from_settling_time` finds it.

    Parameters
    ----------
    damping_ratio : float
        Damping ratio ζ > 0.
    stiffness : array_like
        Stiffness k >= 0 in N m/rad, or N/m.
    settling_time : float
        Time ts > 0 after which the motion stays within the fraction, in s.
    fraction : float
        Half the width of the settling band, between 0 and 1, as a fraction of the initial
        displacement.

    Returns
    -------
    float or ndarray
        Damping constant in N m s/rad, or N s/m.

    Raises
    ------
    ValueRefusedError
        When a number is out of its range.

    See Also
    --------
    damping_from_ratio, settling_time

    Examples
    --------
    >>> damping_from_settling_time(1.0, stiffness=200.0, settling_time=0.1)
    np.float64(6.85...)
    """
    attempt = "Cannot find a damping constant"
    zeta = _single(damping_ratio, "damping_ratio", attempt, upper=_LARGEST_ZETA)
    k = _positive(stiffness, "stiffness", attempt, or_zero=True)
    return 2.0 * zeta * k / natural_frequency_from_settling_time(zeta, settling_time, fraction)


def damping_ratio(
    damping: npt.ArrayLike, stiffness: npt.ArrayLike, inertia: npt.ArrayLike
) -> Array:
    """Return the damping ratio, ζ = d/(2 √(I k)): below 1 the motion oscillates.

    Parameters
    ----------
    damping : array_like
        Damping constant d >= 0 in N m s/rad, or N s/m.
    stiffness : array_like
        Stiffness k > 0 in N m/rad, or N/m.
    inertia : array_like
        Moment of inertia I > 0 in kg m², or mass in kg.

    Returns
    -------
    float or ndarray

    Raises
    ------
    ValueRefusedError
        When the damping is negative, another number not positive, or one not finite.

    See Also
    --------
    damping_from_ratio, damping_ratio_from_decay_ratio

    Examples
    --------
    >>> damping_ratio(10.0, stiffness=200.0, inertia=0.5)
    np.float64(0.5)
    """
    attempt = "Cannot find a damping ratio"
    d = _positive(damping, "damping", attempt, or_zero=True)
    k = _positive(stiffness, "stiffness", attempt)
    return d / (2.0 * np.sqrt(_positive(inertia, "inertia", attempt) * k))


@answers_other_words
def settling_time(damping_ratio: float, natural_frequency: float, fraction: float = 0.02) -> float:
    """Return the time after which free motion stays within a tolerance.

    That is the last time ts at which ``|x(ts)| = fraction |x0|``. It refers to the motion itself,
    not to its envelope. With τ = ωn t and β = √(1 - ζ²) or σ = √(ζ² - 1)::

        ζ < 1    x/x0 = exp(-ζτ) (cos βτ + ζ/β sin βτ)
        ζ = 1    x/x0 = exp(-τ) (1 + τ)
        ζ > 1    x/x0 = exp(-ζτ) (cosh στ + ζ/σ sinh στ)

    Parameters
    ----------
    damping_ratio : float
        Damping ratio ζ > 0.
    natural_frequency : float
        Undamped natural frequency ωn > 0 in rad/s.
    fraction : float
        Half the width of the settling band, between 0 and 1, as a fraction of the initial
        displacement.

    Returns
    -------
    float
        In s.

    Raises
    ------
    ValueRefusedError
        When a number is out of its range.

    See Also
    --------
    flexure.step_info : Measures the settling time of a recorded response.

    Notes
    -----
    Below ζ = 1 the settling time jumps wherever a peak of the motion touches the band: the peaks
    are ``exp(-n π ζ/β)`` high. Just where the next peak stays inside of the band it is shortest;
    for a fraction of 0.02 that is ζ = 0.780.

    Examples
    --------
    >>> settling_time(0.5, natural_frequency=10.0, fraction=0.05)
    0.52...
    """
    attempt = "Cannot find a settling time"
    omega = _single(natural_frequency, "natural_frequency", attempt)
    return _settling_product(damping_ratio, fraction, attempt) / omega


@answers_other_words
def natural_frequency_from_settling_time(
    damping_ratio: float, settling_time: float, fraction: float = 0.02
) -> float:
    """Return the undamped natural frequency ωn for a settling time.

    It is the exact inverse of `settling_time`.

    Parameters
    ----------
    damping_ratio : float
        Damping ratio ζ > 0.
    settling_time : float
        Time ts > 0 after which the motion stays within the fraction, in s.
    fraction : float
        Half the width of the settling band, between 0 and 1, as a fraction of the initial
        displacement.

    Returns
    -------
    float
        In rad/s.

    Raises
    ------
    ValueRefusedError
        When a number is out of its range.

    See Also
    --------
    settling_time, approximate_natural_frequency

    Examples
    --------
    Of a critically damped mount that settles to 1 % within a second:

    >>> natural_frequency_from_settling_time(1.0, 1.0, fraction=0.01)
    6.63...
    """
    attempt = "Cannot find a natural frequency"
    time = _single(settling_time, "settling_time", attempt)
    return _settling_product(damping_ratio, fraction, attempt) / time


@answers_other_words
def approximate_natural_frequency(
    damping_ratio: float,
    settling_time: float,
    fraction: float = 0.02,
    *,
    envelope: Literal["peaks", "tangent"] = "peaks",
) -> float:
    """Return the natural frequency for a settling time by approximate formulas.

    With the settling fraction s, σ = √(ζ² - 1), s1 = ζ - σ and s2 = ζ + σ::

        ζ < 0.7            ωn ≈ -ln(s)/(ζ ts)              envelope through the peaks
                           ωn ≈ -ln(s √(1 - ζ²))/(ζ ts)    envelope that touches the motion
        1 <= ζ < 1.01      ωn ≈ p/ts,  (1 + p) exp(-p) = s
        1.01 <= ζ          ωn ≈ -ln(2 s σ/s2)/(s1 ts)

    Parameters
    ----------
    damping_ratio : float
        Damping ratio ζ > 0, outside of [0.7, 1), for which there is no formula.
    settling_time : float
        Time ts > 0 after which the motion stays within the fraction, in s.
    fraction : float
        Settling fraction s between 0 and 1.
    envelope : {"peaks", "tangent"}
        Which of the two formulas to use below ζ = 0.7.

    Returns
    -------
    float
        In rad/s.

    Raises
    ------
    ValueRefusedError
        When a number is out of its range.

    See Also
    --------
    natural_frequency_from_settling_time

    Notes
    -----
    `natural_frequency_from_settling_time` gives the exact value. Relative to it, for settling
    fractions from 0.01 to 0.1, the envelope through the peaks errs by -9 % to 67 %, the envelope
    that touches the motion by 0 to 83 %, and the formula of critical damping by -2.2 % to 0. The
    last formula leaves out the faster of two decaying terms and is too high by ::

        s      ζ = 1.01   1.1       1.2        1.3        1.5
        0.01   1.98 %     0.005 %   2.9e-5 %   1.6e-7 %   2.4e-12 %
        0.02   2.91 %     0.016 %   1.8e-4 %   2.1e-6 %   1.6e-10 %
        0.05   5.10 %     0.076 %   2.3e-3 %   7.0e-5 %   4.4e-8 %
        0.10   8.28 %     0.258 %   1.6e-2 %   1.0e-3 %   3.3e-6 %

    Examples
    --------
    >>> approximate_natural_frequency(0.5, 1.0, fraction=0.05)
    5.99...
    >>> natural_frequency_from_settling_time(0.5, 1.0, fraction=0.05)
    5.2...
    """
    attempt = "Cannot approximate a natural frequency"
    zeta = _single(damping_ratio, "damping_ratio", attempt, upper=_LARGEST_ZETA)
    s = _single(fraction, "fraction", attempt, upper=1.0)
    time = _single(settling_time, "settling_time", attempt)
    if 0.7 <= zeta < 1.0:
        raise ValueRefusedError(
            attempt,
            expected="a damping ratio below 0.7, or of 1 and more",
            found=f"{zeta:g}",
            remedy="Use fx.compliance.natural_frequency_from_settling_time, which holds for all",
        )
    if zeta < 0.7:
        height = {"peaks": 1.0, "tangent": 1.0 / np.sqrt(1.0 - zeta**2)}
        one_of(envelope, height, "envelope", attempt)
        return float(np.log(height[envelope] / s) / (zeta * time))
    if zeta < 1.01:
        return _creeping(1.0, s) / time
    sigma = np.sqrt((zeta - 1.0) * (zeta + 1.0))
    s2 = zeta + sigma
    return float(-np.log(2.0 * s * sigma / s2) * s2 / time)  # as 1/s1 = s2


@answers_other_words
def decay_ratio(damping_ratio: npt.ArrayLike) -> Array:
    """Return the ratio of successive peaks on one side, D = exp(-2π ζ/√(1 - ζ²)).

    Parameters
    ----------
    damping_ratio : array_like
        Damping ratio, 0 <= ζ < 1.

    Returns
    -------
    float or ndarray
        Height of a peak over that of the peak one period before, both from the rest position.

    Raises
    ------
    ValueRefusedError
        When a damping ratio is out of its range.

    See Also
    --------
    logarithmic_decrement, damping_ratio_from_decay_ratio

    Examples
    --------
    >>> decay_ratio(0.1)
    np.float64(0.5318...)
    """
    attempt = "Cannot find a decay ratio from damping_ratio"
    ratio = as_numbers(damping_ratio, attempt)
    check_bounds(ratio, attempt, lower=0.0, upper=float(np.nextafter(1.0, 0.0)))
    return np.exp(-2.0 * np.pi * ratio / np.sqrt((1.0 - ratio) * (1.0 + ratio)))


def logarithmic_decrement(decay_ratio: npt.ArrayLike) -> Array:
    """Return the logarithmic decrement of a decaying oscillation, δ = -ln D.

    Parameters
    ----------
    decay_ratio : array_like
        Height of a peak over that of the peak one period before, 0 < D <= 1. From peaks n periods
        apart, which are easier to measure, take the n-th root of their ratio.

    Returns
    -------
    float or ndarray

    Raises
    ------
    ValueRefusedError
        When a ratio is out of its range.

    See Also
    --------
    decay_ratio

    Examples
    --------
    >>> logarithmic_decrement(0.5)
    np.float64(0.693...)
    """
    attempt = "Cannot find a logarithmic decrement from decay_ratio"
    ratio = as_numbers(decay_ratio, attempt)
    check_bounds(ratio, attempt, lower=np.nextafter(0.0, 1.0), upper=1.0)
    return np.abs(np.log(ratio))


def damping_ratio_from_decay_ratio(decay_ratio: npt.ArrayLike) -> Array:
    """Return the damping ratio from a decay ratio D, ζ = δ/√(4π² + δ²), δ = -ln D.

    It is the inverse of `decay_ratio`; `damping_from_ratio` then gives the damping constant.

    Parameters
    ----------
    decay_ratio : array_like
        Height of a peak over that of the peak one period before, 0 < D <= 1.

    Returns
    -------
    float or ndarray

    Raises
    ------
    ValueRefusedError
        When a ratio is out of its range.

    See Also
    --------
    decay_ratio, damping_ratio

    Examples
    --------
    >>> damping_ratio_from_decay_ratio(0.5)
    np.float64(0.109...)
    """
    decrement = logarithmic_decrement(decay_ratio)
    return decrement / np.hypot(2.0 * np.pi, decrement)


def _settling_product(zeta: float, fraction: float, attempt: str) -> float:
    """Return ωn ts."""
    zeta = _single(zeta, "damping_ratio", attempt, upper=_LARGEST_ZETA)
    fraction = _single(fraction, "fraction", attempt, upper=1.0)
    return (_oscillating if zeta < 1.0 else _creeping)(zeta, fraction)


def _oscillating(zeta: float, fraction: float) -> float:
    """Return ωn ts below critical damping."""
    # From each peak on, the motion repeats what it did from the start, smaller and mirrored. So the
    # crossing behind the last peak outside of the band is that of a wider band, in the first swing.
    from scipy.optimize import brentq

    beta = np.sqrt((1.0 - zeta) * (1.0 + zeta))
    half_period = np.pi / beta
    last = np.ceil(-np.log(fraction) / (zeta * half_period)) - 1.0
    band = min(1.0, fraction * np.exp(last * zeta * half_period))

    def outside(tau: float) -> float:
        motion = np.cos(beta * tau) + zeta * tau * np.sinc(beta * tau / np.pi)
        return float(np.exp(-zeta * tau) * motion - band)

    return float(last * half_period + brentq(outside, 0.0, half_period, xtol=1e-15))


def _creeping(zeta: float, fraction: float) -> float:
    """Return ωn ts at and above critical damping."""
    # With p = s1 τ the motion is ``exp(-p) (1 + p (1 - exp(-g p))/(g p))``, g = 2σ/s1, at every ζ.
    from scipy.optimize import brentq
    from scipy.special import exprel

    sigma = np.sqrt((zeta - 1.0) * (zeta + 1.0))
    gap = 2.0 * sigma * (zeta + sigma)  # as 1/s1 = s2

    def outside(p: float) -> float:
        return float(np.log1p(p * exprel(-gap * p)) - p - np.log(fraction))

    # (1 + p) exp(-p) is an upper bound of the motion, and that is below 1.22 exp(-p/2).
    slowest = brentq(outside, 0.0, 2.0 - 2.0 * np.log(fraction), xtol=1e-15)
    return float(slowest * (zeta + sigma))


def _single(value: float, name: str, attempt: str, upper: float = np.inf) -> float:
    """Return one number when it is in (0, upper)."""
    attempt = f"{attempt} from {name}"
    return bounded(value, attempt, lower=0.0, upper=upper, exclusive=True)


def _positive(value: npt.ArrayLike, name: str, attempt: str, *, or_zero: bool = False) -> Array:
    """Return numbers when they are finite, and positive or not negative."""
    attempt = f"{attempt} from {name}"
    numbers = as_numbers(value, attempt)
    check_bounds(numbers, attempt, lower=0.0, exclusive=not or_zero)
    return numbers[()]
