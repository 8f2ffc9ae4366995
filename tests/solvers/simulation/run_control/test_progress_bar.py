"""The progress bar: one line on a terminal, with and without tqdm, and now and then in pipes."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.solvers.simulation.run_control.progress_bar import ProgressBar
from tests.support.systems.simulation import Clockwork, Flow, count_up
from tests.support.systems.sweeps import UntilEdge

ROOT = Path(__file__).parents[4]


class Terminal(io.StringIO):
    """A text stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def set_stderr(monkeypatch: pytest.MonkeyPatch, stream: object) -> None:
    """Replace stderr for the progress bar alone; that of the process belongs to pytest."""
    monkeypatch.setattr(
        "flexure.solvers.simulation.run_control.progress_bar.sys", SimpleNamespace(stderr=stream)
    )


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    stream = Terminal()
    set_stderr(monkeypatch, stream)
    return stream


@pytest.fixture(params=["with tqdm", "without tqdm"])
def tqdm(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether tqdm can be imported."""
    if request.param == "with tqdm":
        pytest.importorskip("tqdm")
        return True
    monkeypatch.setitem(sys.modules, "tqdm", None)
    return False


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the clock run so fast that every step is worth showing."""
    clock = iter(range(10**6))
    monkeypatch.setattr(
        "flexure.solvers.simulation.run_control.progress_bar.time.monotonic",
        lambda: float(next(clock)),
    )


@pytest.mark.usefixtures("always")
def test_a_long_motion_is_shown_while_it_lasts(terminal: Terminal, tqdm: bool) -> None:
    seen: list[str] = []

    def rate(t: Any, x: Any) -> Any:
        seen.append(terminal.getvalue())
        return -x

    fx.simulate(Flow(rate, [1.0]), 4.0, method="rk4", step=0.5, progress=True, compiled=False)
    halfway = "2.0/4.0" if tqdm else "simulating  50%  t = 2 of 4 s"
    assert halfway not in seen[3]
    assert halfway in seen[-1]
    assert ("4.0/4.0" if tqdm else "simulating 100%  t = 4 of 4 s") in terminal.getvalue()
    assert terminal.getvalue().endswith("\n")


@pytest.mark.usefixtures("always")
def test_a_diagram_without_continuous_state_is_shown_too(terminal: Terminal, tqdm: bool) -> None:
    block = Clockwork(fx.diagrams.Periodic(1.0), count_up, kind="discrete")
    fx.Simulator(block, progress=True).advance_to(4.0)
    for share in ("2.0/4.0", "3.0/4.0") if tqdm else ("50%", "75%"):
        assert share in terminal.getvalue()


class OutStream(io.StringIO):
    """What a kernel of notebooks puts into the place of stderr: no terminal."""


OutStream.__module__ = "ipykernel.iostream"


def fake_shell(monkeypatch: pytest.MonkeyPatch, config: dict[str, Any]) -> io.StringIO:
    """Pretend to run under IPython, with a stream that tells nothing about it."""
    shell = SimpleNamespace(config=config)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    stream = io.StringIO()
    set_stderr(monkeypatch, stream)
    return stream


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("known_by", ["stream", "shell"])
def test_a_notebook_shows_the_bar(
    monkeypatch: pytest.MonkeyPatch, tqdm: bool, known_by: str
) -> None:
    if known_by == "shell":
        stream = fake_shell(monkeypatch, {"IPKernelApp": {}})
    else:
        stream = OutStream()
        set_stderr(monkeypatch, stream)
    flow = Flow(lambda t, x: -x, [1.0])
    fx.simulate(flow, 4.0, method="rk4", step=0.5, progress=True, compiled=False)
    assert ("2.0/4.0" if tqdm else "simulating  50%  t = 2 of 4 s") in stream.getvalue()
    if not tqdm:
        assert stream.getvalue().endswith("\n")


def test_a_notebook_gets_the_bar_that_tqdm_makes_for_notebooks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[dict[str, Any]] = []

    class Bar(SimpleNamespace):
        def __init__(self, **options: Any) -> None:
            made.append(options)
            super().__init__(refresh=lambda: None, close=lambda: None)

    monkeypatch.setitem(sys.modules, "tqdm", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "tqdm.auto", SimpleNamespace(tqdm=Bar))
    set_stderr(monkeypatch, OutStream())
    fx.simulate(Flow(lambda t, x: -x, [1.0]), 4.0, progress=True)
    assert [options["total"] for options in made] == [4.0]


def test_ipython_in_a_pipe_stays_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = fake_shell(monkeypatch, {"TerminalIPythonApp": {}})
    fx.simulate(Flow(lambda t, x: -x, [1.0]), 1.0, progress=True)
    assert stream.getvalue() == ""


def test_the_line_is_ended_when_the_run_fails(terminal: Terminal, tqdm: bool) -> None:
    def rate(t: Any, x: Any) -> Any:
        if t > 0.5:
            raise KeyboardInterrupt
        return -x

    with pytest.raises(KeyboardInterrupt):
        fx.simulate(Flow(rate, [1.0]), 1.0, progress=True)
    assert terminal.getvalue().endswith("\n")


@pytest.mark.parametrize("length", [1e-12, 1e-3, 1e6])
def test_any_length_of_run_can_be_shown(terminal: Terminal, tqdm: bool, length: float) -> None:
    with ProgressBar(1e3, 1e3 + length, show=True) as bar:
        for k in range(5):
            bar.update(1e3 + length * k / 4)
    assert "simulating" in terminal.getvalue()


def test_a_fast_run_is_not_slowed_down_by_its_display(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setattr(
        "flexure.solvers.simulation.run_control.progress_bar.time.monotonic", lambda: 5.0
    )
    with ProgressBar(0.0, 1.0, show=True) as bar:
        for k in range(1000):
            bar.update(k / 1000)
    assert terminal.getvalue().count("\r") == 1


@pytest.mark.usefixtures("tqdm")
def test_nothing_is_shown_unless_asked_for(terminal: Terminal) -> None:
    fx.simulate(Flow(lambda t, x: -x, [1.0]), 1.0)
    assert terminal.getvalue() == ""


@pytest.mark.usefixtures("tqdm")
def test_nothing_is_shown_for_a_run_without_length(terminal: Terminal) -> None:
    fx.simulate(Flow(lambda t, x: -x, [1.0]), 0.0, progress=True)
    assert terminal.getvalue() == ""


def test_a_pipe_stays_silent() -> None:
    code = (
        "import flexure as fx; lag = fx.FirstOrderLag('lag', time_constant=1.0);"
        "context = lag.create_default_context(); lag.u.fix(context, 1.0);"
        "fx.simulate(lag, 1.0, context=context, progress=True)"
    )
    outcome = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert (outcome.stdout, outcome.stderr) == ("", "")


@pytest.mark.parametrize("stream", [None, object()], ids=["none", "no text stream"])
def test_a_process_without_a_proper_stderr_simulates_all_the_same(
    stream: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_stderr(monkeypatch, stream)
    result = fx.simulate(Flow(lambda t, x: -x, [1.0]), 1.0, progress=True)
    assert result.outcome == "completed"


# Rates, failures and pipes ---------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A clock that tests set."""
    now = SimpleNamespace(time=100.0)
    monkeypatch.setattr(
        "flexure.solvers.simulation.run_control.progress_bar.time.monotonic", lambda: now.time
    )
    return now


def test_a_line_tells_rate_failures_and_the_time_that_is_left(
    terminal: Terminal, clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with ProgressBar(0.0, 1000.0, True, doing="sweeping", unit="runs") as bar:
        clock.time += 10.0
        bar.update(250, failed=3)
        clock.time += 110.0
        bar.update(1000)
    _, first, second = terminal.getvalue().split("\r")
    assert first == "sweeping  25%  250 of 1000 runs, 25 runs/s, 0:30 left, 3 failed"
    assert second.startswith("sweeping 100%  1000 of 1000 runs, 8.33 runs/s, in 2:00")
    assert len(second.rstrip("\n")) >= len(first)  # nothing of the longer line stays


def test_what_was_done_before_does_not_count_as_speed(
    terminal: Terminal, clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with ProgressBar(0.0, 1000.0, True, doing="sweeping", unit="runs") as bar:
        bar.begin_at(900)
        clock.time += 10.0
        bar.update(910)
    assert "910 of 1000 runs, 1 runs/s, 1:30 left" in terminal.getvalue()


def test_a_pipe_gets_a_line_now_and_then(
    clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.StringIO()
    set_stderr(monkeypatch, stream)
    with ProgressBar(0.0, 100.0, True) as bar:
        for k in range(101):
            bar.update(float(k))
            clock.time += 0.5
    lines = stream.getvalue().splitlines()
    assert len(lines) == 4 + 1  # every ten seconds, and the end
    assert lines[0].startswith("simulating  20%  t = 20 of 100 s, 2 s/s, 0:40 left")
    assert lines[-1].startswith("simulating 100%")


def test_a_pipe_that_is_closed_does_not_end_the_work(
    clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.StringIO()
    set_stderr(monkeypatch, stream)
    with ProgressBar(0.0, 100.0, True) as bar:
        stream.close()
        clock.time += 20.0
        bar.update(10.0)
        assert not bar.active


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("lanes", [True, False], ids=["lanes", "one by one"])
def test_sweeps_show_the_runs_that_are_done(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, lanes: bool
) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    edges = np.where(np.arange(40) % 4 == 0, 0.5, 100.0)
    fx.sweep(UntilEdge(), {"edge": edges}, 1.0, progress=True, compiled=lanes)
    shown = terminal.getvalue()
    assert "sweeping 100%  40 of 40 runs" in shown
    assert shown.rstrip().endswith("10 failed")
    assert lanes or "sweeping  50%  20 of 40 runs" in shown
