"""Native runs beside each other: results in other processes, threads, what systems share."""

from __future__ import annotations

import itertools
import math
import os
import pickle
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.solvers.simulation.native_runs import run_output
from tests.support.native.native import needs_llvmlite
from tests.support.native.native_runs import close, compiled_loop, run
from tests.support.systems.event_systems import Act, Actor, Oscillator, logged, noting
from tests.support.systems.simulation import together

pytestmark = needs_llvmlite

ROOT = Path(__file__).resolve().parents[4]


@pytest.mark.full
@pytest.mark.parametrize("method", ["RK45", "DOP853", "Rodas5P"])
def test_a_pickled_result_gives_the_same_numbers_in_another_process(
    method: str, tmp_path: Path
) -> None:
    builder = fx.DiagramBuilder("pickled")
    builder.add_all(fx.Sine("sine", frequency=5.0), fx.ZeroOrderHold("hold", 0.25))
    builder.add(fx.FirstOrderLag("lag", 0.2))
    builder.connect_chain("sine", "hold", "lag")
    result = fx.simulate(builder.build(), 2.0, method=method, compiled="native")
    times = np.linspace(0.0, 2.0, 101)
    expected = result.sample("lag.y", times)
    (tmp_path / "result.pickle").write_bytes(pickle.dumps(result))
    program = (
        "import pickle, sys, numpy as np\n"
        "result = pickle.load(open(sys.argv[1], 'rb'))\n"
        "print(result.sample('lag.y', np.linspace(0.0, 2.0, 101)).tobytes().hex())\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "result.pickle")]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert np.frombuffer(bytes.fromhex(output)).tolist() == expected.tolist()


class Powers(fx.LeafSystem):
    """ẋ_k = -x_k^p_k: each derivative has a power of its own, known before a run."""

    def __init__(self) -> None:
        super().__init__("powers")
        self.p = self.declare_numeric_parameter("p", np.linspace(1.1, 2.5, 40))
        self.x = self.declare_continuous_state(z=40, default=np.linspace(1.0, 2.0, 40))

    def calc_time_derivatives(self, context: Any) -> Any:
        return -(self.x(context) ** self.p(context))


@pytest.mark.full
def test_a_jacobian_that_one_simulator_asks_for_does_not_disturb_another() -> None:
    block, other = Powers(), np.linspace(1.2, 2.6, 40)
    explicit = run(block, "native", [0.5], method="RK45")
    run(block, "native", [0.5], method="Rodas5P")
    for simulator in (explicit, reference := run(block, False, [0.5], method="RK45")):
        block.p.set(simulator.context, other)
        simulator.advance_to(1.0)
    close(explicit.context.store.x, reference.context.store.x)


class Steep(fx.LeafSystem):
    """ẋ_k = -a (x_k^p_k - 1): stiff, with a Jacobian full of parameters."""

    def __init__(self) -> None:
        super().__init__("steep")
        self.a = self.declare_numeric_parameter("a", 2e3)
        self.p = self.declare_numeric_parameter("p", np.linspace(1.1, 2.5, 40))
        self.x = self.declare_continuous_state(z=40, default=np.linspace(1.5, 2.0, 40))

    def calc_time_derivatives(self, context: Any) -> Any:
        return -self.a(context) * (self.x(context) ** self.p(context) - 1.0)


def test_a_jacobian_that_is_wanted_in_the_midst_of_a_run_has_its_parameters() -> None:
    native, compiled = (run(Steep(), way, [10.0]) for way in (True, "python"))
    assert [name for _, name, _ in native.statistics.methods] == ["Rodas5P"]
    assert native.statistics.native_steps == native.statistics.steps == compiled.statistics.steps
    close(native.context.store.x, compiled.context.store.x)


@pytest.mark.full
@pytest.mark.parametrize("name", ["Oscillator", "foreign"])
def test_what_was_compiled_for_a_system_goes_with_it(name: str) -> None:
    """In a process of its own, where nothing else can hold what has been raised or run."""
    code = (
        "import gc, weakref\n"
        f"from tests.support.systems.event_systems import {name} as make\n"
        "from tests.support.native.native_runs import run\n"
        "system = make()\n"
        "run(system, True, [0.5], method='RK45')\n"
        "layout = weakref.ref(system.layout)\n"
        "del system\n"
        "gc.collect()\n"
        "assert layout() is None\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=100, cwd=ROOT)


@pytest.mark.full
def test_simulators_of_one_system_run_in_threads() -> None:
    system = logged()
    damping = [0.1, 0.5, 1.0, 3.0]
    methods = ["RK45", "Rodas5P", "DOP853", "RK45"]

    def simulated(k: int) -> list[Any]:
        simulator = fx.Simulator(system, method=methods[k], compiled="native", record=True)
        simulator.context.set("oscillator.damping", damping[k])
        for time in (0.5, 1.0, 5.0, 20.0):
            simulator.advance_to(time)
        assert simulator.history is not None
        pieces = simulator.history.pieces
        inside = [
            piece.state(0.5 * (piece.times[0] + piece.times[-1])).tolist() for piece in pieces
        ]
        return [simulator.context.store.x.tolist(), inside]

    with ThreadPoolExecutor(4) as pool:
        together = [*pool.map(simulated, range(4))]
    assert together == [simulated(k) for k in range(4)]


@pytest.mark.usefixtures("interruptible")
def test_the_interrupt_key_leaves_a_native_run_where_it_is() -> None:
    """The history ends where the context is, and the run goes on from there."""
    simulator = fx.Simulator(
        together(Oscillator(), Actor(Act("discrete", fx.diagrams.Periodic(0.001), noting))),
        method="RK45",
        compiled="native",
        record=True,
        max_step=1e-3,
    )
    simulator.initialize()
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        simulator.advance_to(1e5)
    time = simulator.context.time
    assert 0.0 < time < 1e5
    assert simulator.history is not None
    assert simulator.history.end == time
    assert simulator.statistics.native_steps == simulator.statistics.steps > 0
    simulator.advance_to(time + 0.1004)
    steps = np.diff(simulator.history.grid())
    assert np.all((steps >= 0.0) & (steps <= 1.0001e-3))
    assert simulator.context.get("actor.d")[0] == math.ceil(simulator.context.time / 0.001)


@pytest.mark.parametrize("room", [2**18, 1], ids=["rows of many steps", "rows of half a step"])
def test_an_interruption_right_after_a_short_call_loses_nothing(
    room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_output, "_TABLE", room)
    whole = run(logged(), "native", [1.7], method="RK45")
    simulator = fx.Simulator(logged(), method="RK45", compiled="native", record=True)
    simulator.initialize()
    loop = compiled_loop(simulator, "RK45")
    call = loop.call
    calls = itertools.count()

    def interrupted_once(pointer: int) -> Any:
        status = call(pointer)
        if next(calls) == 0:
            raise KeyboardInterrupt
        return status

    loop.call = interrupted_once
    with pytest.raises(KeyboardInterrupt):
        simulator.advance_to(1.7)
    assert simulator.history is not None
    assert 0.0 < simulator.history.end == simulator.context.time
    simulator.advance_to(1.7)
    close(simulator.context.store.x, whole.context.store.x, 1e-6)
    for name in ("dense", "coarse", "at_ticks", "numbers"):
        log, expected = (each.system.get_system(name) for each in (simulator, whole))
        assert isinstance(log, fx.VectorLog)
        assert isinstance(expected, fx.VectorLog)
        found, kept = log.find_log(simulator.context), expected.find_log(whole.context)
        assert found.times.tolist() == kept.times.tolist()
        close(found.data, kept.data, 1e-6)
