"""Plans that move one value at a time away from the nominal ones, as for tornado charts."""

from __future__ import annotations

import numpy as np

from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.interface.option_names import answers_other_words
from flexure.diagrams.systems.system import System
from flexure.diagrams.values.arrays import FloatArray, show
from flexure.solvers.sweeps.plans.plans import SAMPLE, Axis, Plan
from flexure.solvers.sweeps.plans.sampling_designs import (
    Marginal,
    Options,
    Sampled,
    marginals,
    nominal_value,
)

_TAILS = (0.05, 0.95)  # quantiles that stand for the ends where there are none


@answers_other_words
def one_at_a_time(
    values: Sampled, *, context: Context | System, plus_minus: float | str | None = None
) -> Plan:
    """Plan a nominal run, and a low and a high run for each value alone.

    Parameters
    ----------
    values : mapping, or paths
        The values to change, by path or handle, as for `latin_hypercube`: from one end to the other
        of intervals, tolerances and bounded distributions, and from the 5 % to the 95 % quantile of
        others. Components of an array are changed one by one.
    context : Context or System
        Source of the nominal values; for a system, its defaults.
    plus_minus : float or str, optional
        Tolerance of the paths in a list, relative to their nominal values.

    Returns
    -------
    Plan
        1 + 2 d rows for d numbers, the nominal one first. `Sweep.plot_tornado` shows what they do.

    Raises
    ------
    UnknownNameError, ValueRefusedError
        As for `latin_hypercube`.

    See Also
    --------
    latin_hypercube : Plan runs by Latin hypercube sampling.

    Examples
    --------
    >>> import flexure as fx
    >>> lag = fx.FirstOrderLag("lag", 2.0)
    >>> fx.plans.one_at_a_time({"time_constant": "5 %", "x": (0.0, 0.1)}, context=lag).table()
    time_constant  x
    -------------  -----
    2              [0]
    1.9            [0]
    2.1            [0]
    2              [0]
    2              [0.1]
    """
    attempt = "Cannot move one value at a time"
    options = Options(plus_minus, None, context, 0)
    drawn, _ = marginals(values, attempt, options)
    count = 1 + 2 * sum(each.size for each in drawn)
    columns, row, base = {}, 1, options.nominal
    for each in drawn:
        nominal = _nominal(each, base, attempt)
        column = np.repeat(nominal[np.newaxis], count, axis=0)
        flat = column.reshape(count, -1)
        for k, ends in enumerate(_ends(each, attempt)):
            flat[row : row + 2, k] = ends
            row += 2
        columns[each.path] = column
    return Plan([Axis(SAMPLE, columns)])


def _nominal(each: Marginal, context: Context | None, attempt: str) -> FloatArray:
    """Return the nominal value of what is moved."""
    nominal = nominal_value(each.path, context, attempt)
    shape = nominal.shape if each.shape == () and nominal.size == 1 else each.shape
    if nominal.shape != shape:
        raise ValueRefusedError(
            f"{attempt}, of '{each.path}'",
            expected=f"a change of the shape {nominal.shape} of its nominal value",
            found=f"the shape {each.shape}",
        )
    return nominal


def _ends(each: Marginal, attempt: str) -> FloatArray:
    """Return the lowest and the highest number of each component, shape (size, 2)."""
    ends = []
    for bound, tail in zip((0.0, 1.0), _TAILS, strict=True):
        with np.errstate(all="ignore"):
            far = np.reshape(each.quantile(np.full(each.shape, bound)), -1)
            near = np.reshape(each.quantile(np.full(each.shape, tail)), -1)
        ends.append(np.where(np.isfinite(far), far, near))
    found = np.column_stack(ends)
    if not np.isfinite(found).all():
        raise ValueRefusedError(
            f"{attempt}, of '{each.path}'",
            expected="a distribution with finite quantiles",
            found=show(found),
        )
    return found
