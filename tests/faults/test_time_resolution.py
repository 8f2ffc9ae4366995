"""Periods and steps that floating-point time does not resolve are refused, and no loop is endless.

What would loop for ever inside of native code cannot be interrupted by an alarm, so that it runs in
a process of its own.
"""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import flexure as fx
from flexure.diagrams import Periodic
from flexure.diagrams.checks.errors import NoProgressError, ValueRefusedError
from flexure.solvers.integration.methods.fixed_step import RungeKutta4
from flexure.solvers.integration.methods.methods import METHOD_NAMES
from tests.support.systems.simulation import Clockwork, Flow, method_options, together
from tests.support.tiers import for_each

pytestmark = pytest.mark.timeout(60, method="signal")

WAYS = [
    pytest.param(compiled, moving, id=f"{compiled}-{moving}")
    for compiled, moving in ((False, False), (False, True), (True, True))
]


def clock(period: float, kind: Any = "discrete", offset: float = 0.0) -> Clockwork:
    return Clockwork(Periodic(period, offset), lambda c, n: n + 1.0, kind=kind, name="clock")


def decay() -> Flow:
    return Flow(lambda t, x: -x, [1.0])


def started(system: fx.System, time: float, **options: Any) -> fx.Simulator:
    context = system.create_default_context()
    context.time = time
    return fx.Simulator(system, context, **options)


HANGS = """
import flexure as fx

class Clock(fx.LeafSystem):
    def __init__(self, period):
        super().__init__("clock")
        self.x = self.declare_continuous_state(z=1, default=[1.0])
        self.n = self.declare_discrete_state("n", 0.0)
        self.declare_discrete_update(self.count, fx.diagrams.Periodic(period))

    def calc_time_derivatives(self, context):
        return -self.x(context)

    def count(self, context):
        return {self.n: self.n(context) + 1.0}

for period, start, options in (
    (1e-17, 1.0, {}), (1e-3, 1e16, {}), (1e-7, 1.7e9, {}), (1.0, 0.0, {"max_step": 1e-320})
):
    context = (clock := Clock(period)).create_default_context()
    context.time = start
    try:
        fx.Simulator(clock, context, **options).advance_to(start + 2.0)
    except fx.errors.ValueRefusedError as error:
        assert context.time == start and clock.n(context) == 0.0
        print(error)
"""


def test_no_period_or_step_below_the_spacing_of_time_makes_native_code_hang() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HANGS], capture_output=True, text=True, timeout=110, check=True
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 4
    for line, found in zip(lines, ("1e-17", "0.001", "1e-07", "1e-320"), strict=True):
        assert line.startswith("Cannot advance 'clock' to t = ")
        assert "10 spacings of floating-point numbers" in line
        assert f"found {found} s" in line
        assert line.endswith("Use a longer one, or start the time at zero.")


@pytest.mark.parametrize(("compiled", "moving"), WAYS)
@pytest.mark.parametrize("kind", ["discrete", "publish"])
def test_a_period_is_refused_that_the_end_of_a_run_does_not_resolve(
    kind: str, compiled: Any, moving: bool
) -> None:
    block = clock(1e-9, kind)
    system: fx.System = together(block, decay()) if moving else block
    simulator = started(system, 1e8, compiled=compiled)
    with pytest.raises(
        ValueRefusedError, match=r"a period of 'clock\.(renew|run)' of at least 1.49e-07"
    ):
        simulator.advance_to(1e8 + 1e-6)
    assert simulator.context.time == 1e8
    assert block.times == []


@pytest.mark.parametrize(("offset", "ticks"), [(2e8, 0), (1e8 + 1.0, 1)])
def test_a_clock_that_begins_at_the_end_of_a_run_or_later_is_fast_enough(
    offset: float, ticks: int
) -> None:
    block = clock(1e-9, "publish", offset=offset)
    simulator = started(together(block, decay()), 1e8)
    simulator.advance_to(1e8 + 1.0)
    assert simulator.context.time == 1e8 + 1.0
    assert len(block.times) == ticks


def test_a_period_that_time_hardly_resolves_has_every_one_of_its_ticks() -> None:
    start, period = 2.0**30, 16.0 * math.ulp(2.0**30)
    block = clock(period)
    simulator = started(together(block, decay()), start, compiled=False)
    simulator.advance_to(start + 100.0 * period)
    assert block.count(simulator.context) == [100.0]
    flow = simulator.context.get("flow.x")
    assert flow == pytest.approx([math.exp(-100.0 * period)], rel=1e-9)


@pytest.mark.parametrize("method", ["rk4", "euler", "implicit_euler", "RK45", "Rodas5P", "Radau"])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_step_is_refused_that_the_end_of_a_run_does_not_resolve(
    method: str, compiled: bool
) -> None:
    name = "step" if method.startswith(("rk", "euler", "implicit")) else "max_step"
    simulator = started(decay(), 1e8, method=method, compiled=compiled, **{name: 1e-9})
    with pytest.raises(ValueRefusedError, match=f"expected a {name} of at least 1.49e-07 s"):
        simulator.advance_to(1e8 + 1.0)
    assert simulator.context.time == 1e8


def test_a_sweep_refuses_them_before_anything_runs() -> None:
    with pytest.raises(ValueRefusedError, match="a max_step of at least"):
        fx.sweep(decay(), {"x": [[1.0], [2.0]]}, 1.0, max_step=1e-320)


@for_each(("period", "time"), [(1e-25, 1.0), (1e-17, 1.0), (1e-3, 1e16)])
def test_a_clock_refuses_to_tell_a_next_time_that_is_no_other_time(
    period: float, time: float
) -> None:
    with pytest.raises(ValueRefusedError, match="Cannot find the next time of a periodic event"):
        Periodic(period).next_time(time)


@for_each("time", [math.nan, 10**400, "soon", None, 1j])
def test_a_clock_refuses_what_is_no_time(time: Any) -> None:
    for ask in (Periodic(0.5).next_time, Periodic(0.5).is_due):
        with pytest.raises(ValueRefusedError, match="expected a finite time in seconds; found"):
            ask(time)


@for_each("compiled", [False, True])
def test_looks_at_witness_functions_are_refused_that_time_does_not_resolve(compiled: bool) -> None:
    with pytest.raises(ValueRefusedError, match=r"a max_check_interval of at least 2\.22e-15 s"):
        fx.simulate(decay(), 1.0, max_check_interval=1e-17, compiled=compiled)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_square_wave_that_time_does_not_resolve_is_refused(compiled: bool) -> None:
    builder = fx.DiagramBuilder("wave")
    builder.add_all(fx.Square("square", period=1e-17), fx.Integrator("integral"))
    builder.connect_chain("square", "integral")
    simulator = started(builder.build(), 1.0, compiled=compiled)
    with pytest.raises(ValueRefusedError, match="Cannot find the next edge of 'square'"):
        simulator.advance_to(2.0)


class Bent(fx.LeafSystem):
    """ẋ = 1, with equations that are said to bend at every floating-point number."""

    def __init__(self) -> None:
        super().__init__("bent")
        self.x = self.declare_continuous_state(z=1)

    def calc_time_derivatives(self, context: Any) -> Any:
        return [1.0]

    def calc_next_break_time(self, context: Any) -> float:
        return math.nextafter(context.time, math.inf)


@pytest.mark.parametrize("compiled", [False, True])
def test_break_times_without_end_are_noticed(compiled: bool) -> None:
    simulator = started(Bent(), 1.0, compiled=compiled)
    with pytest.raises(NoProgressError, match="1000 steps that advanced by"):
        simulator.advance_to(2.0)
    found = fx.sweep(Bent(), {"x": [[0.0], [1.0]]}, 1.0, compiled=compiled)
    assert set(found.outcomes) == {"failed"}


def test_a_fixed_step_is_as_long_as_time_advances() -> None:
    """Near 2^30 s, numbers are 2.4e-7 s apart: a step of 1e-6 s takes 4 of these."""
    start, end = 2.0**30, 2.0**30 + 1e-3
    solve: Any = solve_ivp  # its stub knows the options of SciPy's own methods only
    solution = solve(lambda t, x: np.ones(1), (start, end), [0.0], method=RungeKutta4, step=1e-6)
    assert solution.y[0, -1] == pytest.approx(end - start, rel=1e-9)


@pytest.mark.parametrize("method", METHOD_NAMES)
@pytest.mark.parametrize("end", [5e-324, 1e-306, 1e-160])
def test_every_method_takes_the_shortest_of_times(method: str, end: float) -> None:
    simulator = fx.Simulator(decay(), compiled=False, **method_options(method))
    simulator.advance_to(end)
    assert simulator.context.time == end
    assert simulator.context.continuous_state == pytest.approx([1.0], abs=0.0)
