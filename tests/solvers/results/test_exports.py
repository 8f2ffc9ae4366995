"""Files for colleagues: what other libraries read in them, and what `fx.Recorded` plays of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io

import flexure as fx
from flexure.errors import RecordFileError, ValueRefusedError


def motion() -> fx.results.SimulationResult:
    builder = fx.DiagramBuilder("bench")
    builder.add_all(
        fx.Recorded("drive", {"t": [0.0, 1.0, 2.0], "u [V]": [0.0, 3.0, 1.0]}, time="t"),
        fx.Step("kick", at=0.5, to=[1.0, 2.0]),
        fx.FirstOrderLag("lag", time_constant=0.2),
    )
    builder.connect("drive.u", "lag.u")
    return fx.simulate(builder.build(), 2.0)


def test_matlab_finds_a_structure_for_each_block_and_the_units(tmp_path: Path) -> None:
    result = motion()
    result.to_mat(tmp_path / "run.mat")
    content = scipy.io.loadmat(tmp_path / "run.mat", simplify_cells=True)
    np.testing.assert_array_equal(content["time"], result.time)
    np.testing.assert_array_equal(content["kick"]["y"], result["kick.y"])
    np.testing.assert_array_equal(content["lag"]["y"], result["lag.y"])
    assert content["units"]["drive"]["u"] == "V"
    assert content["units"]["time"] == "s"


def test_modelica_files_hold_names_places_and_trajectories(tmp_path: Path) -> None:
    result = motion()
    result.to_mat(tmp_path / "run.mat", form="modelica")
    content = scipy.io.loadmat(tmp_path / "run.mat")
    assert [text.strip() for text in content["Aclass"]] == ["Atrajectory", "1.1", "", "binTrans"]
    names = ["".join(letters).strip() for letters in zip(*content["name"], strict=True)]
    row = content["dataInfo"][1, names.index("lag.y")] - 1
    np.testing.assert_array_equal(content["data_2"][row], result["lag.y"])
    assert names[0] == "time"
    assert content["dataInfo"][0, 0] == 0


def test_results_of_modelica_tools_are_read_with_aliases_and_constants(tmp_path: Path) -> None:
    """A file as OpenModelica and Dymola write it, by hand, in both orientations."""

    def letters(*texts: str) -> Any:
        width = max(map(len, texts))
        return np.array([list(text.ljust(width)) for text in texts])

    name = letters("time", "x", "minus", "p")
    about = letters("Time in [s]", "position [m]", "", "gain [N/m|kN/m]")
    info = np.array([[0, 1, 0, -1], [2, 2, 0, -1], [2, -2, 0, -1], [1, 2, 0, 0]], dtype=np.int32)
    constants = np.array([[0.0, 2.0], [7.0, 7.0]])
    series = np.array([[0.0, 1.0, 1.0, 2.0], [0.0, 1.0, 5.0, 6.0]])
    for order in ("binTrans", "binNormal"):
        parts = {"name": name, "description": about, "dataInfo": info}
        turned = {k: np.ascontiguousarray(v.T) for k, v in parts.items()}
        data = {"data_1": constants, "data_2": series}
        if order == "binNormal":
            turned, data = parts, {k: np.ascontiguousarray(v.T) for k, v in data.items()}
        head = {"Aclass": np.array(["Atrajectory", "1.1", "", order])}
        scipy.io.savemat(tmp_path / "m.mat", {**head, **turned, **data}, format="4")
        played = fx.Recorded("m", tmp_path / "m.mat")
        assert played.columns == ("x", "minus", "p")
        assert [port.unit for port in played.output_ports[1:]] == ["m", "", "N/m"]
        np.testing.assert_array_equal(played.times, [0.0, 1.0, 2.0])
        rows = [[0.0, 0.0, 7.0], [5.0, -5.0, 7.0], [6.0, -6.0, 7.0]]
        np.testing.assert_array_equal(played.values.default, rows)


def test_every_file_plays_the_run_that_it_was_written_from(tmp_path: Path) -> None:
    result = motion()
    result.to_csv(tmp_path / "run.csv", jumps="after", with_units=True)
    result.to_npz(tmp_path / "run.npz", jumps="after")
    result.to_mat(tmp_path / "run.mat", jumps="after")
    result.to_mat(tmp_path / "modelica.mat", form="modelica")
    result.save(tmp_path / "stored.npz")
    sources: list[Any] = [tmp_path / name for name in ("run.csv", "run.npz", "run.mat")]
    sources += [tmp_path / "modelica.mat", result, fx.load_result(tmp_path / "stored.npz")]
    check_sources(result, sources, tmp_path)


def test_parquet_and_arrow_files_play_the_run(tmp_path: Path) -> None:
    feather = pytest.importorskip("pyarrow.feather")
    result = motion()
    result.to_parquet(tmp_path / "run.parquet")
    feather.write_feather(result.to_arrow(), str(tmp_path / "run.arrow"))
    check_sources(result, [tmp_path / "run.parquet", tmp_path / "run.arrow"], tmp_path)


def check_sources(result: fx.results.SimulationResult, sources: list[Any], tmp_path: Path) -> None:
    expected = result.to_dict(["lag.y", "drive.u", "kick.y"], jumps="after")
    for source in sources:
        signals = {"y1": "lag.y", "u": "drive.u", "kick": "kick.y"}
        played = fx.Recorded("again", source, signals)
        np.testing.assert_array_equal(played.times, expected["time"], err_msg=str(source))
        for k, name in enumerate(("lag.y", "drive.u", "kick.y[0]", "kick.y[1]")):
            column = expected[name] if k < 2 else expected["kick.y"][:, k - 2]
            np.testing.assert_array_equal(played.values.default[:, k], column, err_msg=str(source))
        assert played.columns == ("y1", "u", "kick_0", "kick_1")
        if source != tmp_path / "run.npz":  # which has no units
            assert played.named_port("u").unit == "V", source  # type: ignore[union-attr]


def test_names_that_matlab_cannot_tell_apart_are_refused(tmp_path: Path) -> None:
    builder = fx.DiagramBuilder("d")
    builder.add_all(fx.Constant("a-b", 1.0), fx.Constant("a_b", 1.0))
    result = fx.simulate(builder.build(), 0.1)
    with pytest.raises(RecordFileError, match=r"'a_b.y' and another one"):
        result.to_mat(tmp_path / "run.mat")
    assert not (tmp_path / "run.mat").exists()


def test_damaged_files_are_refused_by_name(tmp_path: Path) -> None:
    for name in ("x.mat", "x.npz", "x.parquet", "x.arrow", "x.csv"):
        (tmp_path / name).write_bytes(b"\x00\xff not a table")
        with pytest.raises(ValueRefusedError, match=name):
            fx.Recorded("drive", tmp_path / name)
        with pytest.raises(ValueRefusedError, match="missing"):
            fx.Recorded("drive", tmp_path / f"missing.{name}")
