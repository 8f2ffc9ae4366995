"""Studies in files: what comes back, what goes on, what is refused, and what a crash costs."""

from __future__ import annotations

import json
import os
import resource
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flexure as fx
from benchmarks.sweeps import killed_studies
from flexure.errors import ContextError, RecordFileError, ValueRefusedError
from flexure.solvers.sweeps.store import storing
from flexure.solvers.sweeps.store.study_file import StudyFile
from tests.solvers.sweeps.test_sweep_metrics import loop
from tests.support.native.native import needs_llvmlite

PLAN = fx.plans.grid({"pid.kp": np.linspace(2.0, 8.0, 6), "pid.ki": [1.0, 2.0]})
WANTED = {"peak": fx.metrics.maximum("arm.y"), "Peak": fx.metrics.minimum("pid.u")}
OPTIONS: dict[str, Any] = {"signals": ["arm.y", "pid.x"], "times": [0.0, 0.5, 1.0, 3.0]}
FRAIL = fx.plans.zipped({"x": [1.0, -1.0, 2.0]})


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "loop.study"


def study(store: Path | None, plan: fx.plans.Plan = PLAN, **options: Any) -> fx.results.Sweep:
    chosen = {"system": loop(), "metrics": WANTED, **OPTIONS, **options}
    return fx.sweep(values=plan, t_final=3.0, store=store, **chosen)


def query(store: Path, text: str) -> list[Any]:
    connection = sqlite3.connect(store)
    try:
        return connection.execute(text).fetchall()
    finally:
        connection.close()


def assert_same(found: fx.results.Sweep, expected: fx.results.Sweep) -> None:
    """Compare every number of two sweeps, bit by bit."""
    assert found.signals == expected.signals
    assert found.failures == expected.failures
    assert found.outcomes.tolist() == expected.outcomes.tolist()
    tables = [
        (found.values, expected.values),
        (found.metrics, expected.metrics),
        *[({name: found[name]}, {name: expected[name]}) for name in expected.signals],
        ({"": found.final_states}, {"": expected.final_states}),
        ({"": found.steps}, {"": expected.steps}),
        ({"": found.times}, {"": expected.times}),
    ]
    for mine, its in tables:
        assert list(mine) == list(its)
        for name, array in mine.items():
            assert array.shape == its[name].shape
            assert array.tobytes() == its[name].tobytes()


# What comes back ---------------------------------------------------------------------------


def test_a_stored_study_comes_back_bit_for_bit_without_its_model(store: Path) -> None:
    expected = study(None)
    assert_same(study(store), expected)
    loaded = fx.load_study(store)
    assert_same(loaded, expected)
    assert repr(loaded) == repr(expected)
    assert loaded.how == expected.how
    assert not Path(f"{store}-lock").exists()
    with pytest.raises(ContextError, match=r"Load it with fx\.load_study\('.*', system=\.\.\.\)"):
        loaded.context(3)


def test_the_model_gives_contexts_of_a_stored_study(store: Path) -> None:
    system = loop()
    context = system.create_default_context()
    context.set("pid.kd", 0.9)
    expected = study(store, system=system, context=context)
    loaded = fx.load_study(store, system=loop())
    assert_same(loaded, expected)
    assert loaded.context(7).to_dict() == expected.context(7).to_dict()
    np.testing.assert_array_equal(
        loaded.metric("overshoot", "arm.y"), expected.metric("overshoot", "arm.y")
    )
    with pytest.raises(RecordFileError, match="block 'pid' has other code or arguments"):
        fx.load_study(store, system=loop(partial(fx.PIDController, period=0.1)))


def test_a_loaded_study_makes_the_same_tables_and_single_runs(store: Path) -> None:
    pytest.importorskip("pandas")
    xarray = pytest.importorskip("xarray")
    expected = study(store, method="DOP853")
    loaded = fx.load_study(store)
    assert loaded.plan == expected.plan
    assert loaded.units == expected.units
    assert str(loaded.table()) == str(expected.table())
    assert loaded.to_pandas().equals(expected.to_pandas())
    xarray.testing.assert_identical(loaded.to_xarray(), expected.to_xarray())
    with pytest.raises(ContextError, match="loaded with its model"):
        loaded.simulate(3)
    again, once = fx.load_study(store, system=loop()).simulate(3), expected.simulate(3)
    np.testing.assert_array_equal(again["arm.y"], once["arm.y"])
    with pytest.raises(ValueRefusedError, match="a sweep from a file"):
        loaded.rerun(3)


def test_tables_can_be_read_by_sqlite_and_pandas_alone(store: Path) -> None:
    pandas = pytest.importorskip("pandas")
    found = study(store)
    connection = sqlite3.connect(store)
    frame = pandas.read_sql("SELECT * FROM runs", connection)
    data = connection.execute(
        "SELECT numbers FROM samples WHERE run = 5 AND signal = 'pid.x'"
    ).fetchone()[0]
    (shape,) = connection.execute("SELECT shape FROM signals WHERE signal = 'pid.x'").fetchone()
    metrics = dict(connection.execute("SELECT name, metric FROM metrics"))
    connection.close()
    np.testing.assert_array_equal(frame["pid.kp"], found.values["pid.kp"])
    assert metrics == {"peak": "peak", "Peak": "Peak (2)"}  # SQL takes them for the same
    np.testing.assert_array_equal(frame["Peak (2)"], found.metrics["Peak"])
    np.testing.assert_array_equal(frame["steps"], found.steps)
    samples = np.frombuffer(data, "<f8").reshape(4, *json.loads(shape))
    np.testing.assert_array_equal(samples, found["pid.x"][5])


def test_failures_zeros_and_their_signs_come_back(tmp_path: Path) -> None:
    def frail(x: Any) -> Any:
        return [np.sqrt(x[0])]

    builder = fx.DiagramBuilder("frail")
    root = fx.FunctionBlock("root", frail, inputs={"x": 1})
    builder.add_all(root, fx.Integrator("sum"))
    builder.connect("root.y", "sum.u")
    builder.export_input("root.x")
    system = builder.build()
    metrics = {"sign": -0.0 * fx.metrics.final("sum.x")}
    options: dict[str, Any] = {"metrics": metrics, "times": [0.0, 1.0], "compiled": False}
    expected = fx.sweep(system, FRAIL, 1.0, **options)
    assert expected.outcomes.tolist() == ["completed", "failed", "completed"]
    assert np.signbit(expected.metrics["sign"][0])
    fx.sweep(system, FRAIL, 1.0, store=tmp_path / "frail", **options)
    assert_same(fx.load_study(tmp_path / "frail"), expected)
    ((reason,),) = query(tmp_path / "frail", "SELECT reason FROM runs WHERE outcome = 'failed'")
    assert reason == expected.failures[1]
    # Failed runs are done: they fail in the same way again.
    assert_same(fx.sweep(system, FRAIL, 1.0, store=tmp_path / "frail", **options), expected)


# What goes on ------------------------------------------------------------------------------


def test_a_longer_plan_runs_only_what_is_missing_whatever_the_order(store: Path) -> None:
    study(store)
    longer = fx.plans.grid({"pid.ki": [0.5, 1.0, 2.0], "pid.kp": np.linspace(2.0, 8.0, 6)})
    found = study(store, longer)
    assert query(store, "SELECT runs FROM chunks") == [(12,), (6,)]
    assert_same(found, study(None, longer))
    assert_same(fx.load_study(store), found)
    assert query(store, "SELECT run FROM runs ORDER BY run") == [(k,) for k in range(18)]


def test_equal_samples_are_runs_of_their_own(store: Path) -> None:
    twice = fx.plans.zipped({"pid.kp": [3.0, 2.0, 3.0]})
    study(store, twice)
    study(store, fx.plans.zipped({"pid.kp": [3.0, 3.0, 3.0, 2.0]}))
    assert query(store, "SELECT runs FROM chunks") == [(3,), (1,)]


@pytest.mark.full
@pytest.mark.parametrize("native", [pytest.param(True, marks=needs_llvmlite), False])
def test_ctrl_c_keeps_what_is_done(
    store: Path, native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    count, plan = 0, fx.plans.zipped({"pid.kp": np.linspace(2.0, 8.0, 400 if native else 6)})
    monkeypatch.setattr(storing, "_SECONDS", 1e-6)
    write = StudyFile.write

    def interrupted(*arguments: Any) -> None:
        nonlocal count
        write(*arguments)
        count += 1
        if count == 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(StudyFile, "write", interrupted)
        with pytest.raises(KeyboardInterrupt) as caught:
            study(store, plan, compiled=native)
    partial = caught.value.result  # type: ignore[attr-defined]
    assert 0 < (ended := sum(partial.outcomes == "completed")) < len(plan)
    (note,) = caught.value.__notes__
    assert note.startswith(f"{ended} of {len(plan)} runs have ended; the study file keeps them")
    assert_same(fx.load_study(store), partial)
    assert_same(study(store, plan, compiled=native), study(None, plan, compiled=native))


def test_what_an_executor_runs_is_stored_like_the_rest(store: Path) -> None:
    study(store, PLAN[:3])
    with ThreadPoolExecutor(2) as executor:
        found = study(store, executor=executor)
    assert_same(found, study(None))
    assert_same(fx.load_study(store), found)


@pytest.mark.full
@needs_llvmlite
def test_kills_at_random_moments_leave_no_trace() -> None:
    finished, differing, _ = killed_studies.survive(5)
    assert finished > 0
    assert differing == []


# What is refused ---------------------------------------------------------------------------


def with_arm(kind: type[fx.LeafSystem], *values: Any) -> fx.Diagram:
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.Step("target", at=0.5),
        fx.PIDController("pid", kp=4.0, ki=4.0, kd=0.8),
        kind("arm", *values),
    )
    builder.connect("target.y", "pid.setpoint")
    builder.connect_chain("pid", "arm", "pid.measurement")
    return builder.build()


OTHER_GAIN = with_arm(fx.TransferFunction, [9.5], [1.0, 1.5, 9.0])
OTHER_BLOCK = with_arm(fx.StateSpace, [[0.0, 1.0], [-9.0, -1.5]], [0.0, 9.0], [1.0, 0.0])
DIFFERENT: dict[str, tuple[dict[str, Any], str]] = {
    "value": ({"system": OTHER_GAIN}, r"the value 'arm.numerator' is \[9.5\], and \[9.0\] in"),
    "block": ({"system": OTHER_BLOCK}, "the block 'arm' is another"),
    "tolerance": ({"rtol": 1e-9}, "the option 'rtol' is 1e-09, and None in the file"),
    "end": ({"t_final": 4.0}, "the option 't_final' is 4.0, and 3.0 in the file"),
    "times": ({"times": [0.0, 1.0]}, "the option 'times'"),
    "signals": ({"signals": "arm.y"}, "the option 'signals' is 'arm.y', and 'arm.y', 'pid.x' in"),
    "metric": ({"metrics": {**WANTED, "peak": fx.metrics.final("arm.y")}}, "'metric peak'"),
    "plan": ({"values": PLAN[:4]}, "8 of its 12 finished runs missing in the plan"),
    "paths": (
        {"values": fx.plans.grid({"pid.kd": [1.0]})},
        "'pid.kd' in the plan, and 'pid.kp', 'pid",
    ),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_another_study_is_refused_with_what_differs_and_forced(store: Path, what: str) -> None:
    usual: dict[str, Any] = {"system": loop(), "values": PLAN, "t_final": 3.0, **OPTIONS}
    usual["metrics"] = WANTED
    first = fx.sweep(**usual, store=store)
    changes, text = DIFFERENT[what]
    with pytest.raises(RecordFileError, match=text):
        fx.sweep(**(usual | changes), store=store)
    assert_same(fx.load_study(store), first)
    forced = fx.sweep(**(usual | changes), store=store, force=True)
    assert_same(fx.load_study(store), forced)


def test_another_version_is_refused(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study(store)
    monkeypatch.setattr(fx, "__version__", "99.0")
    with pytest.raises(RecordFileError, match=r"version 'flexure' is 99\.0, and 0\.1\.0 in the"):
        study(store)


def test_force_needs_a_store() -> None:
    with pytest.raises(ValueRefusedError, match="force= alone"):
        fx.sweep(loop(), PLAN, 1.0, force=True)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """What is no study."""
    found = {name: tmp_path / name for name in ("text", "foreign", "damaged", "cut", "newer")}
    found["text"].write_text("This is not a database, and long enough to have a header. " * 40)
    connection = sqlite3.connect(found["foreign"])
    connection.execute("CREATE TABLE treasure (gold)")
    connection.close()
    for name in ("damaged", "cut", "newer"):
        study(found[name])
    whole = found["damaged"].read_bytes()
    found["damaged"].write_bytes(whole[:4096] + b"\x7f" * 8192 + whole[12288:])
    found["cut"].write_bytes(whole[: len(whole) // 2])
    connection = sqlite3.connect(found["newer"])
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    return found | {"folder": tmp_path}


def test_what_is_no_study_is_refused_and_unchanged(files: dict[str, Path]) -> None:
    for name, path in files.items():
        before = path.read_bytes() if path.is_file() else b""
        for call in (study, fx.load_study):
            with pytest.raises(RecordFileError, match=f"'{path}'"):
                call(path)
        if name in ("text", "foreign", "newer"):
            with pytest.raises(RecordFileError):
                study(path, force=True)
        assert not path.is_file() or path.read_bytes() == before
    with pytest.raises(RecordFileError, match="no file of this name"):
        fx.load_study(files["folder"] / "nothing")


@pytest.fixture
def powerless() -> Iterator[None]:
    """Take the rights of the administrator away."""
    if not hasattr(os, "geteuid"):
        pytest.skip("an operating system with other rights")
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    yield
    os.seteuid(user)


def damaged(whole: bytes, rng: np.random.Generator, kind: int) -> bytes:
    """Return the bytes of a file after an accident: flipped bits, a cut, or two swapped pages."""
    data = bytearray(whole)
    if kind == 0:
        return bytes(data[: rng.integers(len(data))])
    if kind == 1:
        a, b = 4096 * rng.choice(len(data) // 4096, 2, replace=False)
        data[a : a + 4096], data[b : b + 4096] = data[b : b + 4096], data[a : a + 4096]
        return bytes(data)
    for place in rng.integers(len(data), size=kind - 1):
        data[place] ^= 1 << int(rng.integers(8))
    return bytes(data)


@pytest.mark.full
def test_accidents_to_a_study_give_the_right_numbers_or_an_error_of_ours(store: Path) -> None:
    # Blobs of a kilobyte, so that most of the file is numbers.
    whole = study(store, times=np.linspace(0.0, 3.0, 121))
    before, rng, refused = store.read_bytes(), np.random.default_rng(3), 0
    for number in range(240):
        store.write_bytes(damaged(before, rng, [0, 1, 2, 2, 2, 3][number % 6]))
        try:
            found = fx.load_study(store)
        except RecordFileError:
            refused += 1
            continue
        done = found.outcomes == "completed"
        for table, expected in (
            (found.metrics, whole.metrics),
            ({name: found[name] for name in found.signals}, whole),
        ):
            for name in table:
                np.testing.assert_array_equal(table[name][done], expected[name][done])
    assert refused > 150


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE study SET value = substr(value, 1, length(value) - 9) WHERE name = 'context'",
        "UPDATE axes SET shape = replace(hex(zeroblob(10000)), '0', '[')",
        "UPDATE signals SET labels = replace(hex(zeroblob(10000)), '0', '[')",
        "UPDATE provenance SET value = x'ff'",
        "UPDATE samples SET numbers = zeroblob(length(numbers))",
        "UPDATE runs SET peak = 0.5 WHERE run = 3",
        "UPDATE runs SET run = 12 WHERE run = 3",
        "DELETE FROM runs WHERE run = 3",
        "DELETE FROM samples WHERE run = 3",
        "DELETE FROM study WHERE name = 'digest'",
    ],
)
def test_what_was_changed_in_a_study_is_refused_by_whoever_reads_it(
    store: Path, damage: str
) -> None:
    model = loop()
    study(store)
    connection = sqlite3.connect(store)
    with connection:
        connection.execute(damage)
    connection.close()
    with pytest.raises(RecordFileError):
        fx.load_study(store, system=model)
    with pytest.raises(RecordFileError):
        study(store)


def test_the_journal_of_a_killed_process_is_told_of(store: Path) -> None:
    whole = study(store)
    store.with_name("loop.study-journal").write_bytes(bytes(512))
    with pytest.warns(
        UserWarning, match="ended while it wrote to .* as 'loop.study-journal' shows"
    ):
        assert_same(study(store), whole)


def test_accidents_to_a_saved_result_give_the_right_numbers_or_an_error(tmp_path: Path) -> None:
    result, path = fx.simulate(loop(), 3.0), tmp_path / "loop.npz"
    result.save(path, ["arm.y", "pid.u"])
    before, rng, refused = path.read_bytes(), np.random.default_rng(4), 0
    for number in range(120):
        path.write_bytes(damaged(before, rng, [0, 2, 2, 3][number % 4]))
        try:
            found = fx.load_result(path)
        except RecordFileError:
            refused += 1
            continue
        for name in ("arm.y", "pid.u"):
            np.testing.assert_array_equal(found[name], result[name])
    assert refused > 80


def test_a_folder_that_can_only_be_read_is_refused(tmp_path: Path, powerless: None) -> None:
    folder = "/"  # which belongs to the administrator
    with pytest.raises(RecordFileError, match="expected a folder in which files can be written"):
        study(Path(folder, "loop.study"))


def test_a_full_disk_is_told_and_leaves_earlier_runs(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = study(store)
    longer = fx.plans.zipped({"pid.kp": np.linspace(2.0, 8.0, 3000), "pid.ki": np.ones(3000)})
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (store.stat().st_size + 20_000, limits[1]))
    try:
        with pytest.raises(RecordFileError, match="The stored runs are unchanged"):
            study(store, PLAN + longer)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert_same(fx.load_study(store), first)
    assert_same(study(store), first)


def test_a_second_writer_is_refused_and_readers_are_not(store: Path) -> None:
    holder = textwrap.dedent(
        """
        import sys, time
        from pathlib import Path
        from flexure.solvers.sweeps.store.study_file import StudyLock
        lock = StudyLock(Path(sys.argv[1]))
        print("held", flush=True)
        time.sleep(60.0)
        """
    )
    first = study(store)
    with subprocess.Popen(
        [sys.executable, "-c", holder, str(store)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            with pytest.raises(RecordFileError, match=rf"process {process.pid} on .* at work"):
                study(store)
            assert_same(fx.load_study(store), first)
        finally:
            process.kill()
            process.wait(timeout=60)
    assert_same(study(store), first)  # the lock of a dead process is none
    assert not Path(f"{store}-lock").exists()


def test_one_process_cannot_write_twice_at_once(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, met = StudyFile.write, list[str]()

    def write_and_try(*arguments: Any) -> None:
        write(*arguments)
        with pytest.raises(RecordFileError) as caught:
            study(store)
        met.append(str(caught.value))
        assert len(fx.load_study(store)) == len(PLAN)

    monkeypatch.setattr(StudyFile, "write", write_and_try)
    study(store)
    assert len(met) == 1
    assert f"process {os.getpid()}, this one" in met[0]
