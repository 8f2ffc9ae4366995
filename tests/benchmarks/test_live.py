"""The benchmark of live runs measures each of its runs."""

from __future__ import annotations

import pytest

from benchmarks.exports import live


@pytest.mark.full
def test_every_run_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("websockets")
    rows = live.rows(0.05)
    assert [row.workload for row in [rows[0], *rows[1::2]]] == [
        "sleeping alone",
        "alone",
        "with a page",
        "with a page that hangs",
        "without waiting",
    ]
    assert all(0.0 <= row.value < 1e6 for row in rows)
    assert capsys.readouterr().out.count("50 of 1 ms, at rate 1") == 3
