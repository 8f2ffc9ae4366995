"""The wait for the first result is measured in times of what every program imports."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks import first_result
from benchmarks.versus.plants import build_plant
from tests.support.native.native import needs_llvmlite


def test_times_are_divided_by_that_of_the_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    """A side that is missing leaves no row, and long chains are compared with that of 50 links."""

    def measured(side: str, *arguments: Any) -> dict[str, float] | None:
        if side == "drake":
            return None
        method, count, _ = arguments
        seconds = {"DOP853": 0.01, "Rodas5P": 0.03}[method] * count
        return {"unit": 0.5, "seconds": seconds, "operations": 300 * count}

    monkeypatch.setattr(first_result, "in_new_process", measured)
    rows = {(row.workload, row.metric): row for row in first_result.rows((5, 50, 200), 3)}
    assert len(rows) == 14
    row = rows["50 links in space", "Rodas5P, warm / imports"]
    assert row.value == pytest.approx(3.0)
    assert (row.bar, row.verdict) == (8.0, "pass")
    assert rows["200 links in space", "DOP853, per operation / 50 links"].value == pytest.approx(1)


@needs_llvmlite
def test_a_chain_has_as_many_links_as_asked() -> None:
    assert build_plant(first_result.chain(7)).layout.num_states == 14
    found = first_result.ours("DOP853", 2, warm=False)
    assert found["seconds"] > 0.0
    assert found["operations"] > 30
