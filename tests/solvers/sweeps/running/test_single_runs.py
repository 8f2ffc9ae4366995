"""Single runs of a sweep are those of simulators of their own, bit by bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flexure as fx
from tests.support.native.native import needs_llvmlite
from tests.support.systems.event_systems import SITUATIONS, Act, Actor, Oscillator, Watch, noting
from tests.support.systems.simulation import ball, together
from tests.support.systems.sweeps import UntilEdge

pytestmark = needs_llvmlite


def noisy_loop() -> fx.System:
    """A sampled controller, noise and a jump."""
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.TransferFunction("plant", [1.0], [1.0, 0.6, 4.0]),
        fx.Noise("noise", 1, 0.05, standard_deviation=0.1),
        fx.Sum("measured", "++"),
        fx.Step("target", at=0.5, to=1.0),
        fx.PIDController("pid", period=0.05, kp=8.0, ki=6.0, kd=2.0),
    )
    builder.connect("plant.y", "measured.u1")
    builder.connect("noise.y", "measured.u2")
    builder.connect("target.y", "pid.setpoint")
    builder.connect("measured.y", "pid.measurement")
    builder.connect("pid.u", "plant.u")
    return builder.build()


def stiff_at_times() -> fx.System:
    """An update makes the block stiff, so that the method changes in the midst of a run."""
    return Actor(
        Act("discrete", fx.diagrams.Periodic(0.4), lambda t, x, d: {"d": [d[0] + 1.0, 1e5, t]}),
        Act("discrete", Watch(lambda t, x, d: x[0] - 0.5), noting),
        rate=lambda t, x, d: [x[1], -(1.0 + d[1]) * (x[1] - np.cos(t * x[0]))],
        start=[1.0, 0.0],
    )


def ended_by_a_publish() -> fx.System:
    """Some runs end before their time."""
    return together(
        Actor(
            Act("publish", fx.diagrams.Periodic(0.13), lambda t, x, d: _ended(x)),
            Act("discrete", fx.diagrams.Periodic(0.1), noting),
        ),
        Oscillator(),
    )


def _ended(x: Any) -> Any:
    return fx.diagrams.Terminate("far enough") if x[0] < 0.4 else None


WITH_EVENTS: dict[str, Callable[[], fx.System]] = {
    **{name: make for name, make in SITUATIONS.items() if name not in ("Oscillator", "jumps")},
    "a noisy loop": noisy_loop,
    "stiff at times": stiff_at_times,
    "ended by a publish": ended_by_a_publish,
    "a ball beside a flow": lambda: together(ball(), UntilEdge()),
}


def various_contexts(system: fx.System) -> list[fx.Context]:
    """Return contexts in which motions differ."""
    made = []
    for k in range(3):
        context = system.create_default_context()
        context.continuous_state = (1.0 + 0.2 * k) * np.asarray(context.continuous_state)
        made.append(context)
    made[2].time = 0.05
    return made


@pytest.mark.full
@pytest.mark.parametrize("name", WITH_EVENTS)
def test_a_run_is_that_of_a_simulator_of_its_own_whatever_ran_before(name: str) -> None:
    system = together(WITH_EVENTS[name](), ball())  # a ball, so that none of them run in lanes
    contexts, order = various_contexts(system), (0, 1, 0, 2, 1, 0)
    results = [fx.simulate(system, 1.2, context=context) for context in contexts]
    ports = [port.path for leaf in system.layout.leaves for port in leaf.output_ports][:3]
    states = [leaf.continuous_state.path for leaf in system.layout.leaves if leaf.continuous_state]
    times = np.array([0.05, 0.1, 0.25, 0.3000001, 0.5, *np.linspace(0.51, 1.2, 40)])
    options: dict[str, Any] = {"signals": [*ports, *states], "times": times}
    for threads in (1, 2):
        each = [contexts[k] for k in order]
        sweep = fx.simulate_many(system, each, 1.2, threads=threads, **options)
        assert sweep.how.startswith("one ")
        for k, result in enumerate(results[j] for j in order):
            assert sweep.steps[k] == result.statistics.steps
            np.testing.assert_array_equal(sweep.final_states[k], result.context.continuous_state)
            reached = times <= result.context.time
            assert sweep.outcomes[k] == ("completed" if reached.all() else "terminated")
            for signal in sweep.signals:
                expected = result.sample(signal, times[reached])
                np.testing.assert_array_equal(sweep[signal][k][reached], expected, err_msg=signal)


def test_a_run_that_fails_leaves_nothing_to_those_after_it() -> None:
    edges = [9.0, 0.3, 9.0, 0.3, 5.0]
    how: dict[str, Any] = {"signals": ["flow.y", "ball.x"], "times": [0.1, 0.7], "threads": 1}
    sweep = fx.sweep(together(ball(), UntilEdge()), {"flow.edge": edges}, 1.0, **how)
    assert list(sweep.failures) == [1, 3]
    for k, edge in enumerate(edges):
        alone = fx.sweep(together(ball(), UntilEdge()), {"flow.edge": [edge]}, 1.0, **how)
        assert alone.failures.get(0) == sweep.failures.get(k)
        np.testing.assert_array_equal(alone.final_states[0], sweep.final_states[k])
        for signal in sweep.signals:
            np.testing.assert_array_equal(alone[signal][0], sweep[signal][k])
