"""Results in files: what comes back without the model, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.errors import RecordFileError, UnknownNameError
from flexure.solvers.results.records.provenance import Entry


def loop(arm: fx.LeafSystem | None = None) -> fx.Diagram:
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.Step("target", at=0.5),
        fx.PIDController("pid", kp=4.0, ki=4.0, kd=0.8, period=0.1),
        arm or fx.TransferFunction("arm", [9.0], [1.0, 1.5, 9.0]),
    )
    builder.connect("target.y", "pid.setpoint")
    builder.connect_chain("pid", "arm", "pid.measurement")
    return builder.build()


@pytest.fixture
def result() -> fx.results.SimulationResult:
    return fx.simulate(loop(), 2.0)


@pytest.fixture
def path(result: fx.results.SimulationResult, tmp_path: Path) -> Path:
    result.save(tmp_path / "loop.npz")
    return tmp_path / "loop.npz"


def test_all_signals_come_back_bit_for_bit(result: fx.results.SimulationResult, path: Path) -> None:
    stored = fx.load_result(path)
    assert stored.signals == result.signals
    assert stored.time.tobytes() == result.time.tobytes()  # with both values at every jump
    for name in stored.signals:
        assert stored[name].shape == result[name].shape
        assert stored[name].tobytes() == result[name].tobytes()
    assert (stored.outcome, stored.message) == (result.outcome, result.message)
    assert stored.statistics == result.statistics
    assert stored.provenance[Entry("value", "arm.numerator")] == "[9.0]"
    assert stored.provenance[Entry("version", "flexure")] == fx.__version__
    assert "loop" in repr(stored)
    with pytest.raises(UnknownNameError, match=r"'arm\.y'"):
        stored["arm.z"]


def test_tables_are_those_of_the_result(result: fx.results.SimulationResult, path: Path) -> None:
    stored = fx.load_result(path)
    for mine, its in [(stored.to_dict(), result.to_dict()), (stored.columns(), result.columns())]:
        assert list(mine) == list(its)
        assert all(np.array_equal(mine[name], its[name]) for name in mine)
    with np.load(path) as file:  # which is a plain archive
        np.testing.assert_array_equal(file["arm.y"], result["arm.y"])


def test_some_signals_at_chosen_times(result: fx.results.SimulationResult, tmp_path: Path) -> None:
    times = np.linspace(0.0, 2.0, 5)
    result.save(tmp_path / "some", signals="arm.y", times=times)
    stored = fx.load_result(tmp_path / "some")
    assert stored.signals == ("arm.y",)
    np.testing.assert_array_equal(stored["arm.y"], result.sample("arm.y", times))


def test_the_model_gives_the_last_context(result: fx.results.SimulationResult, path: Path) -> None:
    stored = fx.load_result(path)
    assert stored.context(loop()).to_dict() == result.context.to_dict()
    arm = fx.StateSpace("arm", [[0.0, 1.0], [-9.0, -1.5]], [0.0, 9.0], [1.0, 0.0])
    with pytest.raises(RecordFileError, match="the block 'arm' is another"):
        stored.context(loop(arm))


def test_units_and_components_come_back(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    plant = fx.PlantBuilder("door", gravity=(0, 0, -9.81))
    inertia = fx.SpatialInertia.solid_box(mass=9.0, size=(0.02, 0.6, 0.7))
    panel = plant.add_body("panel", inertia, com=(0, 0.3, 0))
    axis = plant.add_joint(fx.RevoluteJoint("axis", plant.world, panel, axis=(1, 0, 0)))
    plant.add_force_element(fx.JointSpring("spring", axis, stiffness=3.0))
    result = fx.simulate(plant.build(), 0.2)
    result.save(tmp_path / "door.npz")
    frame = fx.load_result(tmp_path / "door.npz").to_pandas()
    expected = result.to_pandas(jumps="both")
    pandas.testing.assert_frame_equal(frame, expected)
    assert frame.attrs == expected.attrs


def test_what_is_no_result_is_refused(path: Path, tmp_path: Path) -> None:
    whole = path.read_bytes()
    cases: dict[str, Any] = {
        "nothing": None,
        "text": b"no archive",
        "cut": whole[: len(whole) // 2],
        "empty": b"",
    }
    for name, content in cases.items():
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(RecordFileError, match=name):
            fx.load_result(tmp_path / name)
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    with pytest.raises(RecordFileError, match="other"):
        fx.load_result(tmp_path / "other.npz")
    objects: dict[str, Any] = {"about this file": np.array([print], dtype=object)}
    np.savez(tmp_path / "objects.npz", **objects)
    with pytest.raises(RecordFileError, match="objects"):  # no pickle is opened
        fx.load_result(tmp_path / "objects.npz")


def test_an_older_file_stays_where_none_can_be_written(
    result: fx.results.SimulationResult, tmp_path: Path
) -> None:
    with pytest.raises(RecordFileError, match="A file of this name is unchanged"):
        result.save(tmp_path / "no folder" / "loop.npz")
