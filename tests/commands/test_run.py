"""`flexure run`: the numbers, the files, and what is kept of a run that fails."""

from __future__ import annotations

import csv
import json
import math
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flexure as fx
from tests.commands.conftest import Command

FUSE = """\
import flexure as fx


class Fuse(fx.LeafSystem):
    def __init__(self):
        super().__init__("fuse")
        self.rate = self.declare_numeric_parameter("rate", 1.0)
        self.x = self.declare_continuous_state(z=1)

    def calc_time_derivatives(self, context):
        return [self.rate(context) * (1.0 + self.x(context) ** 2)]


def build():
    return Fuse()
"""


def test_what_is_told_is_the_range_and_the_end(flexure: Command) -> None:
    code, out, err = flexure("run", "charge.py", "--to", "1.5", "--rtol", "1e-9")
    assert (code, err) == (0, "")
    assert out.startswith("'charge': reached t = 1.5 s\n")
    name, *numbers = out.splitlines()[-1].split()
    assert name == "voltage"
    assert [float(each) for each in numbers] == pytest.approx([0.0, 0.632121, 0.632121], abs=1e-6)


def test_json_is_all_that_is_printed(flexure: Command, folder: Path) -> None:
    text = "print('a model that talks')\nfrom charge import build\n"
    (folder / "talks.py").write_text(text, encoding="utf-8")
    words = ("--to", "1.5", "--json", "--signals", "lag.y,lag.x", "--metrics", "peak(lag.y)")
    code, out, err = flexure("run", "talks.py", *words)
    found = json.loads(out)
    assert (code, err) == (0, "a model that talks\n")
    assert found["outcome"] == "completed"
    assert found["final"]["lag.y"] == found["signals"]["lag.y"][-1]
    assert found["metrics"]["peak(lag.y)"] == pytest.approx(1.0 - math.exp(-1.0), abs=1e-5)
    assert len(found["signals"]["time"]) == len(found["signals"]["lag.x"])


def test_what_is_not_finite_is_null(flexure: Command) -> None:
    words = ("--to", "1.5", "--json", "--metrics", "first_crossing(lag.y, 5)")
    found = json.loads(flexure("run", "charge.py", *words).out)
    assert found["metrics"] == {"first_crossing(lag.y, 5)": None}


def test_arguments_decide_between_metrics_of_one_name(flexure: Command) -> None:
    """The response of the model at rest and that of the run overshoot by exp(-pi zeta / ...)."""
    words = ("--to", "60", "--rtol", "1e-10", "--json", "--metrics")
    found = {}
    for metric in ("overshoot(arm.y)", "overshoot(force.y, arm.y)"):
        outcome = flexure("run", "charge.py:pushed", *words, metric)
        found[metric] = json.loads(outcome.out)["metrics"][metric]
    damping = 0.1  # as 2 zeta 2 is 0.4
    expected = 100.0 * math.exp(-math.pi * damping / math.sqrt(1.0 - damping**2))
    assert [*found.values()] == pytest.approx([expected] * 2, rel=1e-3)


def test_a_run_goes_on_from_the_context_that_was_kept(flexure: Command) -> None:
    first = flexure("run", "charge.py", "--to", "1.0", "--rtol", "1e-10", "--out", "a/b")
    assert "saved a/b/signals.csv" in first.out.replace("\\", "/")
    words = ("--context", "a/b/context.json", "--to", "1.5", "--rtol", "1e-10", "--out", "c")
    assert flexure("run", "charge.py", *words).code == 0
    with Path("c", "signals.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert float(rows[0]["time"]) == 1.0
    assert float(rows[-1]["lag.y"]) == pytest.approx(1.0 - math.exp(-1.0), abs=1e-8)


def test_a_plot_is_saved_of_what_is_named_or_told(flexure: Command) -> None:
    pytest.importorskip("matplotlib")
    assert "saved charge_signals.png" in flexure("run", "charge.py", "--to", "1", "--plot").out
    assert Path("charge_signals.png").read_bytes().startswith(b"\x89PNG")
    words = ("--plot", "lag.y,source.y", "--out", "pictures")
    assert flexure("run", "charge.py", "--to", "1", *words).code == 0
    assert Path("pictures", "charge_signals.png").is_file()


def test_options_of_the_integration_are_those_of_the_library(flexure: Command) -> None:
    words = ("--to", "1", "--method", "rk4", "--step", "0.1", "--compiled", "python", "--json")
    found = json.loads(flexure("run", "charge.py", *words).out)
    assert found["statistics"]["methods"][0][1] == "rk4"
    assert found["statistics"]["native_steps"] == 0


def test_a_run_that_fails_tells_how_far_it_came(flexure: Command, folder: Path) -> None:
    (folder / "fuse.py").write_text(FUSE, encoding="utf-8")
    code, out, err = flexure("run", "fuse.py", "--to", "2", "--out", "kept")
    assert code == 1
    assert out.startswith("'fuse': stopped at t = 1.5707")
    assert err.startswith("flexure: error: Cannot integrate past t = 1.5707")
    assert sorted(each.name for each in Path("kept").iterdir()) == ["context.json", "signals.csv"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--to", "nan"), "expected a finite time"),
        (("--to", "-1"), "expected a finite time"),
        (("--to", "1", "--signals", "lag.z"), "Cannot find 'z' in 'lag'"),
        (("--to", "1", "--plot", "lag.z"), "Cannot find 'z' in 'lag'"),
        (("--to", "1", "--method", "RK46"), "Did you mean 'RK45'?"),
        (("--to", "1", "--out", "charge.py"), "Cannot use 'charge.py': File exists."),
        (("--to", "1", "--context", "charge.py"), "expected a readable JSON file"),
        (("--to", "1", "--metrics", "overshot(lag.y)"), "Did you mean 'overshoot'?"),
        (("--to", "1", "--metrics", "rms(lag.z)"), "Cannot find 'z' in 'lag'"),
        (("--to", "1", "--metrics", "rms()"), "expected rms(signal, *, start=None, end=None)"),
        (("--to", "1", "--metrics", "rms(lag.y, begin=1)"), "expected rms(signal, *, start"),
        (("--to", "1", "--metrics", "iae(lag.y, lag.y)"), "expected iae(signal, *, target"),
        (("--to", "1", "--metrics", "of(lag.y)"), "Cannot measure of(lag.y)"),
        (("--to", "1", "--metrics", "__import__(os)"), "Cannot measure __import__(os)"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_runs(
    words: tuple[str, ...], said: str, flexure: Command
) -> None:
    code, out, err = flexure("run", "charge.py", *words)
    assert (code, out) == (1, "")
    assert said in err


def test_figures_without_a_signal_are_those_of_the_only_output(flexure: Command) -> None:
    words = ("--to", "12", "--rtol", "1e-9", "--json", "--metrics")
    found = json.loads(flexure("run", "charge.py", *words, "rise_time,peak(source.y)").out)
    assert found["metrics"]["rise_time"] == pytest.approx(math.log(9.0), rel=1e-3)
    assert found["metrics"]["peak(source.y)"] == 1.0


def test_a_file_that_is_there_stays_whole_when_the_new_one_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lag = fx.FirstOrderLag("lag", 1.0)
    context = lag.create_default_context()
    context.set("u", 1.0)
    result = fx.simulate(lag, 1.0, context=context)
    result.to_npz(tmp_path / "run")  # as NumPy does, with its ending
    result.plot(path=tmp_path / "run.png")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert sorted(before) == ["run.npz", "run.png"]

    def broken(file: object, *_: object, **__: object) -> None:
        file.write(b"half of it")  # type: ignore[attr-defined]
        raise OSError(28, "No space left on device")

    from matplotlib.figure import Figure

    monkeypatch.setattr(np, "savez_compressed", broken)
    monkeypatch.setattr(Figure, "savefig", lambda self, *args, **named: broken(*args, **named))
    with pytest.raises(fx.errors.RecordFileError, match="No space"):
        result.to_npz(tmp_path / "run.npz")
    with pytest.raises(OSError, match="No space"):
        result.plot(path=tmp_path / "run.png")
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


LONG = """\
import flexure as fx


def build():
    builder = fx.DiagramBuilder("loop")
    pid = fx.PIDController("pid", kp=0.5, ki=0.3, period=0.001)
    builder.add_all(fx.Constant("target", 1.0), pid, fx.FirstOrderLag("plant", 0.3))
    builder.connect("target.y", "pid.setpoint")
    builder.connect_chain("pid", "plant", "pid.measurement")
    return builder.build()
"""


@pytest.mark.full
@pytest.mark.skipif(sys.platform == "win32", reason="signals and limits of POSIX")
def test_a_run_that_is_stopped_while_it_writes_leaves_no_half_file(folder: Path) -> None:
    resource = pytest.importorskip("resource")
    (folder / "long.py").write_text(LONG, encoding="utf-8")
    words = [sys.executable, "-m", "flexure", "run", "long.py", "--to", "300", "--out", "kept"]
    pipes: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    endings = {signal.SIGINT: (130, "interrupted"), signal.SIGTERM: (143, "terminated")}
    for number, (code, text) in endings.items():
        with subprocess.Popen(words, **pipes) as process:
            while process.poll() is None and not list((folder / "kept").glob(".*.tmp")):
                time.sleep(0.005)
            process.send_signal(number)
            _, said = process.communicate()
        assert (process.returncode, said) == (code, f"flexure: {text}\n")
        assert list((folder / "kept").iterdir()) == []

    def full_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    ended = subprocess.run(words, preexec_fn=full_disk, check=False, **pipes)
    assert ended.returncode == 1
    assert "Cannot write signals to" in ended.stderr
    assert list((folder / "kept").iterdir()) == []
