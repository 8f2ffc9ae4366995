"""Recorded signals: what is played, natively and in JavaScript too, and what is refused."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.errors import DeclarationError, ValueRefusedError
from tests.support.native.native import needs_llvmlite

BENCH = {"t [s]": [0.0, 0.1, 0.3, 0.6], "u [V]": [0.0, 2.0, -1.0, 1.0], "i": [1.0, 1.5, 2.0, 0.0]}


def played(kind: Any = "linear") -> fx.Diagram:
    builder = fx.DiagramBuilder("bench")
    builder.add_all(
        fx.Recorded("drive", BENCH, time="t", kind=kind, units={"i": "A"}),
        fx.FirstOrderLag("lag", time_constant=0.05),
    )
    builder.connect("drive.u", "lag.u")
    return builder.build()


@pytest.mark.parametrize("kind", ["linear", "hold", "cubic"])
def test_columns_are_what_a_trajectory_through_the_rows_gives(kind: Any) -> None:
    rows = np.column_stack([BENCH["u [V]"], BENCH["i"]])
    other = fx.simulate(fx.Trajectory("path", BENCH["t [s]"], rows, kind=kind), 0.7)
    result = fx.simulate(played(kind), 0.7)
    times = np.linspace(0.0, 0.7, 51)
    expected = other.sample("y", times)
    np.testing.assert_array_equal(result.sample("drive.y", times), expected)
    for k, port in enumerate(("drive.u", "drive.i")):
        np.testing.assert_array_equal(result.sample(port, times), expected[:, k])
    assert [result.unit_of(f"drive.{port}") for port in "ui"] == ["V", "A"]


@needs_llvmlite
def test_recorded_signals_run_in_native_loops() -> None:
    system = played()
    fast = fx.simulate(system, 0.6, compiled="native")
    slow = fx.simulate(system, 0.6, compiled=False)
    np.testing.assert_allclose(fast["lag.y"][-1], slow["lag.y"][-1], rtol=1e-9)


def test_blocks_are_copied_and_pickled() -> None:
    system = played()
    for twin in (copy.deepcopy(system), pickle.loads(pickle.dumps(system))):
        assert fx.simulate(twin, 0.6)["lag.y"][-1] == fx.simulate(system, 0.6)["lag.y"][-1]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("t,u\n0,1\n\n1,\n2,3\n", "nan in line 4"),
        ("t,u\n0,1\n2,1\n1,3\n", "1 s in line 4 after 2 s"),
        ("t,u\n0,1\n0,1\n", "0 s in line 3 after 0 s"),
        ("t,u\n0,1\n1,x\n", "numbers in the column 'u' .* 'x' in line 3"),
        ("t,u\n0,1\n1,2,3\n", "3 entries in line 3"),
        ("t,u\n0,1\nnan,2\n", "nan in line 3"),
        ("time [ms],u\n0,1\n1,2\n", "one column 't'"),
        ("t [ms],u\n0,1\n1,2\n", "times in s"),
        ("t\n0\n1\n", "a column beside the time"),
        ("t,y,u\n0,1,2\n1,1,2\n", "a column 'y'"),
        ("t,a b,a.b\n0,1,2\n1,1,2\n", "names differ"),
    ],
)
def test_bad_tables_are_refused_with_the_line(tmp_path: Path, text: str, found: str) -> None:
    path = tmp_path / "bench.csv"
    path.write_text(text)
    with pytest.raises((ValueRefusedError, DeclarationError), match=found):
        fx.Recorded("drive", path, time="t")


def test_gaps_are_named() -> None:
    times = [*np.arange(50) * 0.1, 30.0, 30.1]
    with pytest.warns(UserWarning, match=r"'drive' has gaps.*interpolated: 4.9 to 30 s\."):
        fx.Recorded("drive", {"time": times, "u": np.ones(52)})
    with pytest.warns(UserWarning, match=r"held: 0 to 0.1 s.* and 46 more"):
        fx.Recorded("drive", {"time": times, "u": np.ones(52)}, kind="hold", gap=0.05)
    fx.Recorded("drive", {"time": times, "u": np.ones(52)}, gap=30.0)


def test_units_of_unknown_ports_are_refused() -> None:
    with pytest.raises(DeclarationError, match="units by port, of 'u'"):
        fx.Recorded("drive", BENCH, time="t", units={"v": "V"})
