"""Whether what was made of a trace gives the numbers of the equations.

Equations that keep something between calls, such as a count of them, and equations that tell
symbols from numbers, run on symbols without complaint; what is made of their trace is something
else. So whoever is about to use a trace, or code made of one, first compares one evaluation with
that of the equations, with the values at hand. What does not agree stays interpreted.

- *Rounding.* A trace has the operations of the equations, but compilers fuse some, and functions
  come from other libraries, which costs last bits of the terms. `agree` forgives a billionth: it
  leaves seven digits for terms that cancel, as near an equilibrium, while a hidden state is far
  from that small.
- *NaN and infinity* are numbers as others: both sides have to have the same at the same places. One
  side alone would run on with numbers where the other one stops.
- *Errors.* Equations that refuse the values at hand leave nothing to compare, and
  `interpreted_numbers` gives None. That is no disagreement: the error belongs to whoever evaluates
  there next, with a text that names block and time. A simulator is about to, and native code stops
  there, at a NaN; of many runs at once, each is to meet its own error, by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.diagrams.store import Store
from flexure.diagrams.values import FloatArray

#: Why a trace is not used, as the end of a sentence.
OTHER_NUMBERS = "tracing the equations gave other numbers"

_ROUNDING = 1e-9
_LEAST = 1.0  # what counts as a term
_TRIES, _LAST_BITS = 5, 4  # states that are as good as one, the first of which is that one
_LEAST_KNOWN = 1e-3  # where terms are known, they may well be thousandths


def agree(found: npt.ArrayLike, expected: FloatArray, terms: FloatArray | None = None) -> bool:
    """Tell whether a trace gives the numbers of the equations, up to rounding.

    Parameters
    ----------
    found : array_like
        What was made of the trace gives.
    expected : ndarray
        What the equations give.
    terms : ndarray, optional
        Sizes of the terms that each number is a sum of; NaN where they are not known. By default,
        they are taken to be as large as the largest of the numbers, and 1 at the least: terms that
        cancel in one equation are as a rule seen in another.
    """
    if terms is None:
        scale = np.max(np.abs(expected), initial=_LEAST, where=np.isfinite(expected))
    else:
        scale = np.nan_to_num(terms, nan=np.finfo(float).max) + _LEAST_KNOWN
    found, atol = np.asarray(found, dtype=float), _ROUNDING * scale
    with np.errstate(invalid="ignore"):  # np.allclose would take several times as long
        same = np.abs(found - expected) <= atol + _ROUNDING * np.abs(expected)
        same &= np.isfinite(expected)
    same |= (found == expected) | (np.isnan(found) & np.isnan(expected))
    return bool(np.all(same))


def sizes_of_terms(slopes: npt.ArrayLike, point: FloatArray) -> FloatArray:
    """Return about how large the terms are that numbers are sums of.

    Parameters
    ----------
    slopes : array_like, shape (m, n)
        Derivatives of the numbers.
    point : ndarray, shape (n,)
        By what they are differentiated. Zeros count as thousandths, since they are as a rule
        differences: a stiff spring that is not stressed has forces that cancel.
    """
    sizes: FloatArray = np.abs(slopes) @ (np.abs(point) + _LEAST_KNOWN)
    return sizes


def rounding_of(
    store: Store, expected: FloatArray, make_signals: Callable[[], Iterable[Any]] = tuple
) -> FloatArray:
    """Return how much the last bits of the state change interpreted numbers.

    Where stiff elements are at rest, forces cancel that are far larger than what is left of them,
    and light bodies turn that into accelerations. Equations that keep something between calls do
    not give the same numbers twice; for these it is zero.

    Parameters
    ----------
    store : Store
        The values at hand; they stay as they are.
    expected : ndarray
        What `interpreted_numbers` gives there.
    make_signals : callable
        Returns the signals that are among them, anew for each evaluation.
    """
    time, x = store.time, store.x
    found: FloatArray = np.zeros_like(expected)
    random = np.random.default_rng(0)
    try:
        for try_ in range(_TRIES):
            bits = random.integers(-_LAST_BITS, _LAST_BITS + 1, x.size) * (try_ > 0)
            store.set_motion(time, x * (1.0 + bits * np.finfo(float).eps))
            numbers = interpreted_numbers(store, make_signals())
            if numbers is None or not (try_ or np.array_equal(numbers, expected, equal_nan=True)):
                return np.zeros_like(expected)
            found = np.fmax(found, np.abs(numbers - expected))
    finally:
        store.set_motion(time, x)
    return found


def interpreted_numbers(store: Store, signals: Iterable[Any] = ()) -> FloatArray | None:
    """Return the time derivatives and then some signals, interpreted.

    Parameters
    ----------
    store : Store
        The values at hand.
    signals : iterable of array_like
        A generator that evaluates the signals.

    Returns
    -------
    ndarray or None
        None where an evaluation is refused.
    """
    try:
        with np.errstate(all="ignore"):
            numbers: FloatArray = np.hstack([store.time_derivatives(), *signals])
    except Exception:
        return None
    return numbers


__all__ = ["OTHER_NUMBERS", "agree", "interpreted_numbers", "rounding_of", "sizes_of_terms"]
