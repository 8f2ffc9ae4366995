"""Running a simulation natively and by the simulator's own phases, and comparing all of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.solvers.results.records.history import Snapshot

METHODS = ["RK23", "RK45", "DOP853", "DormandPrince", "Rodas5P", "ESDIRK4"]

Change = Callable[[fx.Simulator], None]


def run(
    system: fx.System, compiled: Any, stops: Sequence[float | Change] = (2.0,), **options: Any
) -> fx.Simulator:
    """Advance a simulator of a system from stop to stop, with changes in between."""
    simulator = fx.Simulator(system, compiled=compiled, **{"record": True, **options})
    for stop in stops:
        if callable(stop):
            stop(simulator)
        else:
            simulator.advance_to(stop)
    return simulator


def native_like_interpreted(
    make: Callable[[], fx.System],
    stops: Sequence[float | Change] = (2.0,),
    *,
    uncounted: Sequence[str] = (),
    **options: Any,
) -> fx.Simulator:
    """Run a system both ways, compare the runs, and return the native one."""
    # Differences for a Jacobian show in the estimates of errors.
    plain = "python" if options.get("method") in ("Rodas5P", "ESDIRK4") else False
    interpreted = run(make(), plain, stops, **options)
    native = run(make(), "native", stops, **options)
    assert_same(native, interpreted, uncounted)
    assert native.statistics.native_steps == native.statistics.steps
    return native


def compiled_loop(simulator: fx.Simulator, method: str, boundary: float | None = None) -> Any:
    """Return the loop of an initialized simulator, ready to be called if it is bound for a time."""
    runner = simulator._native.runner
    assert runner is not None
    loop = runner.loop(method)
    if boundary is not None:
        runner.enter(loop, boundary)
    return loop


def assert_same(
    native: fx.Simulator, interpreted: fx.Simulator, uncounted: Sequence[str] = ()
) -> None:
    """Compare everything that two simulators tell, but for some statistics."""
    assert_same_values(native.context, interpreted.context)
    assert native.terminated_by == interpreted.terminated_by
    assert native.termination == interpreted.termination
    assert counts(native, uncounted) == counts(interpreted, uncounted)
    assert native.explain().splitlines()[:-1] == interpreted.explain().splitlines()[:-1]
    assert native.explain().splitlines()[-1].startswith("equations: native code of ")
    assert_same_logs(native.context, interpreted.context)
    assert_same_history(native, interpreted)


def counts(simulator: fx.Simulator, uncounted: Sequence[str]) -> dict[str, Any]:
    """Return the statistics; native code evaluates less where that changes nothing."""
    statistics = dict(vars(simulator.statistics))
    for name in ("native_steps", *uncounted):
        statistics.pop(name)
    names = [name for _, name, _ in statistics["methods"]]
    if "Rodas5P" in names or "DOP853" in names:
        statistics.pop("evaluations", 0)  # derivatives by time, and interpolants nobody asked for
    return statistics | {"methods": names}


def assert_same_values(native: fx.Context, interpreted: fx.Context) -> None:
    close([native.time], [interpreted.time])
    close(native.store.x, interpreted.store.x)
    assert_same_discrete(Snapshot.of(native), Snapshot.of(interpreted))


def assert_same_discrete(native: Snapshot, interpreted: Snapshot) -> None:
    for ours, theirs in zip(native.discrete, interpreted.discrete, strict=True):
        for found, expected in zip(ours, theirs, strict=True):
            close(found, expected)


def assert_same_logs(native: fx.Context, interpreted: fx.Context) -> None:
    for leaf, other in zip(native.leaves(), interpreted.leaves(), strict=True):
        if isinstance(leaf.system, fx.VectorLog):
            assert isinstance(other.system, fx.VectorLog)
            found, expected = leaf.system.find_log(leaf), other.system.find_log(other)
            at_steps = any(isinstance(e.trigger, fx.diagrams.PerStep) for e in leaf.system.events)
            close(found.times, expected.times, OF_STEPS if at_steps else OF_VALUES)
            close(found.data, expected.data, 10.0 * OF_STEPS if at_steps else OF_VALUES)


def assert_same_history(native: fx.Simulator, interpreted: fx.Simulator) -> None:
    assert native.history is not None
    assert interpreted.history is not None
    ours, theirs = native.history.pieces, interpreted.history.pieces
    assert [len(piece.times) for piece in ours] == [len(piece.times) for piece in theirs]
    for found, expected in zip(ours, theirs, strict=True):
        close(found.times, expected.times, OF_STEPS)
        for end in (0, -1):
            close(found.times[end], expected.times[end])
            close(found.states[end], expected.states[end])
        assert found.last == pytest.approx(expected.last, rel=1e-12)
        assert_same_discrete(found.snapshot, expected.snapshot)
        grid = np.array(expected.times)
        for time in np.sort(np.append(grid, 0.5 * (grid[1:] + grid[:-1]))).tolist():
            close(found.state(time), expected.state(time))


OF_VALUES = 1e-9
#: Rounding errors show in the estimates of errors, and from there in the times of steps.
OF_STEPS = 1e-6


def close(found: Any, expected: Any, tolerance: float = OF_VALUES) -> None:
    """Compare numbers up to rounding errors that steps and events have made larger."""
    size = np.max(np.abs(expected), initial=1.0)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=tolerance * size)
