"""Checks that code generated from a trace gives the same numbers as the equations.

Equations that keep something between calls, such as a count of them, and equations that tell
symbols from numbers, run on symbols without complaint; what is made of their trace is something
else. Before a trace, or code generated from one, is used, one evaluation is therefore compared with
that of the equations, at the current values. What does not agree stays interpreted.

- *Rounding.* A trace has the operations of the equations, but compilers fuse some, and functions
  come from other libraries, which costs last bits of the terms. `agree` forgives a billionth: it
  leaves seven digits for terms that cancel, as near an equilibrium, while a hidden state is far
  from that small. Stiff elements at rest cancel more: `agrees_at` forgives what states change by
  1e-12 of them, as the trace itself, which keeps nothing between calls, tells. Where that is all
  of a number, it may be infinite on one side.
- *NaN and infinity* are numbers as others: both sides have to have the same at the same places. One
  side alone would run on with numbers where the other one stops.
- *Errors.* Equations that refuse the values at hand leave nothing to compare, and
  `interpreted_numbers` gives None. That is no disagreement: the next evaluation there raises the
  error, with a text that names block and time. A simulator is about to, and native code stops
  there, at a NaN; of many runs at once, each is to meet its own error, by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.diagrams.contexts.store import Store
from flexure.diagrams.values.arrays import FloatArray

#: Why a trace is not used, as the end of a sentence.
OTHER_NUMBERS = "tracing the equations gave other numbers"

_ROUNDING = 1e-9
_LEAST = 1.0  # what counts as a term
_LEAST_KNOWN = 1e-3  # where terms are known, they may well be thousandths
_MOVE = 1e-12  # of states: what numbers change by it is rounding


def agree(found: npt.ArrayLike, expected: FloatArray, terms: FloatArray | None = None) -> bool:
    """Return whether a trace gives the numbers of the equations, up to rounding.

    ``terms`` are sizes of the terms that each number is a sum of; NaN where they are not known. By
    default, they are taken to be as large as the largest of the numbers, and 1 at the least: terms
    that cancel in one equation are as a rule seen in another.
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


def agrees_at(
    values: Callable[[FloatArray], npt.ArrayLike], x: FloatArray, expected: FloatArray
) -> bool:
    """Return whether the code of a trace agrees at states, where forces of any size may cancel.

    ``values`` is what was made of the trace, as a function of the states; the equations give the
    ``expected`` numbers at the states ``x``.
    """
    found = np.array(values(x), dtype=float)
    if agree(found, expected):
        return True
    moves = np.random.default_rng(0).uniform(-_MOVE, _MOVE, (3, len(x)))
    with np.errstate(all="ignore"):
        changes = [np.abs(values(x + move * (np.abs(x) + _LEAST_KNOWN)) - found) for move in moves]
        largest = np.max(np.nan_to_num(changes, nan=0.0, posinf=np.inf), axis=0)
        terms = np.nan_to_num(largest, posinf=0.0) / _ROUNDING
        # What is divided by rounding, such as a strength by no stress, may be infinite or not.
        least = np.minimum(np.abs(found), np.abs(expected))
        divided = (largest >= 0.5 * least) & (least > 1.0 / _ROUNDING)
        divided &= (np.isinf(found) != np.isinf(expected)) & (np.sign(found) == np.sign(expected))
        return agree(found, np.where(divided, found, expected), terms)


def sizes_of_terms(slopes: npt.ArrayLike, point: FloatArray) -> FloatArray:
    """Return about how large the terms are that numbers are sums of.

    ``slopes``, of shape (m, n), are derivatives of the numbers at ``point``, of shape (n,). Zeros
    there count as thousandths, since they are as a rule differences: a stiff spring that is not
    stressed has forces that cancel.
    """
    sizes: FloatArray = np.abs(slopes) @ (np.abs(point) + _LEAST_KNOWN)
    return sizes


def interpreted_numbers(store: Store, signals: Iterable[Any] = ()) -> FloatArray | None:
    """Return the time derivatives and then some signals, interpreted; None where that is refused.

    The iterable is a generator that evaluates the signals.
    """
    try:
        with np.errstate(all="ignore"):
            numbers: FloatArray = np.hstack([store.time_derivatives(), *signals])
    except Exception:
        return None
    return numbers
