"""Loops over places in unequal distances, with registers of several widths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flexure as fx
from tests.support.native.native import needs_llvmlite
from tests.support.native.shared_code import jacobian_by, shared, written_out
from tests.support.systems.many_blocks import Lag, Law


def waves(context: Any, u: Any) -> Any:
    return np.sin(u) + 0.5 * np.cos(u * u) - u


def rows_of_lags(lengths: list[int]) -> fx.DiagramBuilder:
    """Lags in rows, each driven by the one before it through a law, or by that which ends the row
    before."""
    builder = fx.DiagramBuilder("rows")
    ends = np.cumsum(lengths).tolist()
    for k in range(ends[-1]):
        builder.add_all(Lag(f"lag{k}"), Law(f"law{k}", waves))
        builder.connect(f"law{k}.y", f"lag{k}.u")
    for k in range(ends[-1]):
        before = k - 1 if k not in [0, *ends] else ends[-1] - 1 - k // 2
        builder.connect(f"lag{before}.y", f"law{k}.u")
    return builder


@pytest.mark.full
@needs_llvmlite
@pytest.mark.parametrize(
    ("lengths", "width"),
    [([9, 8], 4), ([20, 20], 8), ([3, 30, 4], 4), ([8, 1, 8, 16], 2), ([5, 5, 5], 8)],
)
def test_numbers_are_read_where_they_are_however_wide_a_register_is(
    lengths: list[int], width: int
) -> None:
    context = rows_of_lags(lengths).build().create_default_context()
    context.continuous_state = np.linspace(-1.0, 2.0, sum(lengths))
    np.testing.assert_array_equal(shared(context, width=width), written_out(context))
    expected, _ = jacobian_by(context, "written out")
    found, _ = jacobian_by(context, "entry by entry")
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
