"""Units as texts, such as ``"N m/rad"``: what they measure, how large they are, their products."""

from __future__ import annotations

import math
import re
from collections import Counter
from fractions import Fraction
from typing import NamedTuple

from flexure.diagrams.checks.errors import ValueRefusedError

#: Units by factor and by exponents of m, kg, s, A, K and rad.
_UNITS: dict[str, tuple[float, tuple[int, ...]]] = {
    "m": (1.0, (1, 0, 0, 0, 0, 0)),
    "g": (1e-3, (0, 1, 0, 0, 0, 0)),
    "s": (1.0, (0, 0, 1, 0, 0, 0)),
    "A": (1.0, (0, 0, 0, 1, 0, 0)),
    "K": (1.0, (0, 0, 0, 0, 1, 0)),
    "Hz": (1.0, (0, 0, -1, 0, 0, 0)),
    "N": (1.0, (1, 1, -2, 0, 0, 0)),
    "J": (1.0, (2, 1, -2, 0, 0, 0)),
    "W": (1.0, (2, 1, -3, 0, 0, 0)),
    "Pa": (1.0, (-1, 1, -2, 0, 0, 0)),
    "V": (1.0, (2, 1, -3, -1, 0, 0)),
    "rad": (1.0, (0, 0, 0, 0, 0, 1)),
    "deg": (math.pi / 180.0, (0, 0, 0, 0, 0, 1)),
    "°": (math.pi / 180.0, (0, 0, 0, 0, 0, 1)),
    "rpm": (math.pi / 30.0, (0, 0, -1, 0, 0, 1)),
    "min": (60.0, (0, 0, 1, 0, 0, 0)),
    "h": (3600.0, (0, 0, 1, 0, 0, 0)),
    "%": (0.01, (0, 0, 0, 0, 0, 0)),
    "1": (1.0, (0, 0, 0, 0, 0, 0)),
}
_PREFIXES = {"n": 1e-9, "u": 1e-6, "µ": 1e-6, "m": 1e-3, "c": 1e-2, "k": 1e3, "M": 1e6, "G": 1e9}
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")


class Measure(NamedTuple):
    """The physical quantity of a unit."""

    factor: float  # its size in SI units
    # Exponents of m, kg, s, A and K; of a unit that is not known here, its words.
    kind: tuple[Fraction, ...] | str
    # Exponent of rad, which counts for the size of numbers but not for what they measure.
    angle: Fraction


def measure_of(unit: str) -> Measure:
    """Return what a unit measures; what is not known measures something of its own."""
    factor, exponents = 1.0, [Fraction(0)] * 6
    words = _words(unit)
    for word, power in (words or {}).items():
        found = _known(word)
        if found is None:
            words = None
            break
        factor *= found[0] ** power
        exponents = [d + power * e for d, e in zip(exponents, found[1], strict=True)]
    if words is None:
        return Measure(1.0, " ".join(sorted(_plain(unit).split())), Fraction(0))
    return Measure(factor, tuple(exponents[:5]), exponents[5])


def conversion(unit: str, wanted: str, attempt: str) -> float:
    """Return the factor from numbers in one unit to numbers in another one."""
    given, taken = measure_of(unit), measure_of(wanted)
    if unit == wanted:
        return 1.0
    unknown = [name for name, of in ((unit, given), (wanted, taken)) if isinstance(of.kind, str)]
    if unknown or given[1:] != taken[1:]:
        raise ValueRefusedError(
            attempt,
            expected=f"a known unit of the same quantity as '{unit}'"
            if not unknown
            else f"units made of {', '.join(_UNITS)}, with prefixes",
            found=f"'{wanted}'" if not unknown else " and ".join(f"'{name}'" for name in unknown),
        )
    return given.factor / taken.factor


def product(unit: str, factor: str, power: int = 1) -> str:
    """Return the unit of a product, such as ``"rad"`` for ``"rad/s"`` times ``"s"``.

    Units are words with exponents, of which those after a slash divide. The product of other texts
    is unknown, that is empty, and so is that of an empty one. The exponent of a divisor is -1.
    """
    words, others = _words(unit), _words(factor)
    if not (words and others):
        return ""
    for word, exponent in others.items():
        words[word] = words.get(word, 0) + power * exponent
    words.pop("1", None)
    above = [_spelled(word, n) for word, n in words.items() if n > 0]
    below = [_spelled(word, -n) for word, n in words.items() if n < 0]
    text = " ".join(above) or "1"
    return f"{text}/({' '.join(below)})" if len(below) > 1 else "/".join([text, *below])


def _spelled(word: str, power: int) -> str:
    return word if power == 1 else f"{word}^{power}"


def _plain(unit: str) -> str:
    return unit.translate(_SUPERSCRIPTS).replace("·", " ").replace("*", " ")


def _words(unit: str) -> dict[str, int] | None:
    """Return the words of a unit with their exponents; None where it has another form."""
    found: Counter[str] = Counter()
    for k, group in enumerate(_plain(unit).split("/")):
        for word in group.replace("(", " ").replace(")", " ").split():
            match = re.fullmatch(r"([^\d^-]+|1)\^?(-?\d+)?", word)
            if match is None:
                return None
            found[match[1]] += int(match[2] or 1) * (-1 if k else 1)
    return dict(found)


def _known(name: str) -> tuple[float, tuple[int, ...]] | None:
    """Return factor and exponents of a unit with or without a prefix, with kg as 1."""
    if name in _UNITS:
        return _UNITS[name]
    prefix, rest = name[0], name[1:]
    if prefix in _PREFIXES and rest in _UNITS:
        factor, exponents = _UNITS[rest]
        return factor * _PREFIXES[prefix], exponents
    return None
