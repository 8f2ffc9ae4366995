"""Random numbers as a pure function of a seed and a counter, in arithmetic that is always exact.

A generator without a state: any number of a stream is found without those before it, so that runs
may be split, cloned, repeated and reordered. The integer that is counted is enciphered by a Feistel
network, whose rounds add to one half of it a key and the middle digits of the square of the other
half. Six rounds let every bit of seed and counter turn over each bit of the result half of the
time; it has ten.

All of this is written in floats. The halves are integers of 27 bits, no square of which leaves the
53 bits of a float, and for the rest there are roots, quotients and the like, which round as IEEE
754 demands. So every reading of these equations gives the same numbers, to the last bit.
"""

from __future__ import annotations

import numpy as np

from flexure.diagrams.values.arrays import Array

_BASE = 2.0**27  # of the digits
# What the key of each round has beside a digit of the seed: the first decimals of pi.
_ROUNDS = (
    *(14159265.0, 35897932.0, 38462643.0, 38327950.0, 28841971.0),
    *(69399375.0, 10582097.0, 49445923.0, 7816406.0, 28620899.0),
)
# Fitted to the quantile x of the probability p <= 1/2, as N(w)/D(w) with w² = 128 (1 - p^(1/64)),
# which is almost -2 ln p.
_NUMERATOR = (0.003912174844, -0.2306418649, 2.015861636, 4.661708075, -5.223142182, -3.128485408)
_DENOMINATOR = (0.0002280785768, 0.001469637401, -0.2408652509, 1.958226642, 4.394870423, 1.0)


def uniform(seed: Array, counter: Array) -> Array:
    """Return numbers that are evenly spread over the open interval from 0 to 1.

    Seed and counter are integers from 0 to 2^53 - 1. Other seeds, and other counters, give
    independent numbers. These are odd multiples of 2^-53, symmetric around 1/2.

    >>> uniform(7.0, np.arange(3.0)).round(6)
    array([0.673928, 0.038137, 0.473713])
    """
    keys = _digits(seed)
    left, right = _digits(counter)
    for k, constant in enumerate(_ROUNDS):
        middle = np.floor(np.square(left - _BASE / 2.0) / 2.0**13)
        _, mixed = _digits(right + middle + (keys[k % 2] + constant))
        left, right = mixed, left
    return (left * 2.0**25 + np.floor(right / 4.0) + 0.5) / 2.0**52


def normal_quantile(probability: Array) -> Array:
    """Return the quantile of the normal distribution with mean 0 and variance 1, within 1e-7.

    >>> normal_quantile(np.array([0.025, 0.5, 0.975])).round(6)
    array([-1.959964,  0.      ,  1.959964])
    """
    root = np.minimum(probability, 1.0 - probability)
    for _ in range(6):
        root = np.sqrt(root)
    w = np.sqrt(128.0 * (1.0 - root))
    size = np.polyval(_NUMERATOR, w) / np.polyval(_DENOMINATOR, w)
    return np.copysign(size, probability - 0.5)


def _digits(number: Array) -> tuple[Array, Array]:
    """Split an integer into all that is above its lowest digit, and that digit."""
    high = np.floor(number / _BASE)
    return high, number - high * _BASE
