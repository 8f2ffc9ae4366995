"""The simulator: order of events, pending events, termination, set-up, and what it refuses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.integrate import RK45

import flexure as fx
from flexure.diagrams import Initialization, Periodic, PerStep, Witness
from flexure.diagrams.checks.errors import (
    ContextError,
    UnknownNameError,
    ValueRefusedError,
)
from flexure.diagrams.values.events import Trigger
from flexure.solvers.integration.methods.fixed_step import RungeKutta4
from tests.support.systems.blocks import Oscillator, nested
from tests.support.systems.simulation import Clockwork, Flow, chain, count_up, look, together
from tests.support.tiers import for_each

Trace = list[tuple[float, str, float, float]]


def decay(**given: Any) -> Flow:
    """ẋ = -x from x = 1."""
    return Flow(lambda t, x: -x, [1.0], **given)


# The order of events -----------------------------------------------------------------------------


class Eventful(fx.LeafSystem):
    """Every kind of event with every trigger; each notes what it sees of two states.

    Unrestricted updates write ten times k to "u", discrete ones ten times what they see of "u"
    to "d", so that the trace shows who saw whose writing.
    """

    def __init__(self, trace: Trace, name: str = "block") -> None:
        super().__init__(name)
        self.trace = trace
        self.u = self.declare_discrete_state("u", 0.0)
        self.d = self.declare_discrete_state("d", 0.0)
        triggers: dict[str, Trigger] = {
            "witness": Witness(lambda context: context.time - 0.5),
            "periodic": Periodic(0.5),
            "per_step": PerStep(),
            "initialization": Initialization(),
        }
        for label, trigger in triggers.items():
            self.declare_publish(self.noting(f"publish {label}"), trigger)
            self.declare_discrete_update(self.discrete(f"discrete {label}"), trigger)
            self.declare_unrestricted_update(self.unrestricted(f"unrestricted {label}"), trigger)

    def noting(self, label: str) -> Callable[[Any], None]:
        def note(context: Any) -> None:
            row = (self.name, label, float(self.u(context)[0]), float(self.d(context)[0]))
            self.trace.append((context.time, f"{row[0]} {row[1]}", row[2], row[3]))

        return note

    def discrete(self, label: str) -> Callable[[Any], Any]:
        def update(context: Any) -> Any:
            self.noting(label)(context)
            return {self.d: 10.0 * self.u(context)}

        return update

    def unrestricted(self, label: str) -> Callable[[Any], Any]:
        def update(context: Any) -> Any:
            self.noting(label)(context)
            return {self.u: self.u(context) + 1.0}

        return update


def test_events_of_one_instant_run_in_the_documented_order() -> None:
    trace: Trace = []

    def monitor(context: fx.Context) -> None:
        trace.append((context.time, "monitor", math.nan, math.nan))

    simulator = fx.Simulator(together(Eventful(trace, "a"), Eventful(trace, "b")), monitor=monitor)

    def labels() -> list[str]:
        found = [f"{time:g} {label}" for time, label, _, _ in trace]
        trace.clear()
        return found

    def expected(time: float, kind: str, *triggers: str) -> list[str]:
        return [f"{time:g} {name} {kind} {trigger}" for name in "ab" for trigger in triggers]

    simulator.initialize()
    assert labels() == [
        *expected(0.0, "unrestricted", "initialization"),
        *expected(0.0, "discrete", "initialization"),
        *expected(0.0, "publish", "initialization", "per_step", "periodic"),
        "0 monitor",
    ]
    simulator.advance_to(0.5)
    assert labels() == [
        *expected(0.0, "unrestricted", "per_step", "periodic"),
        *expected(0.0, "discrete", "per_step", "periodic"),
        *expected(0.5, "publish", "per_step", "periodic", "witness"),
        "0.5 monitor",
    ]
    simulator.advance_pending_events()
    assert labels() == [
        *expected(0.5, "unrestricted", "per_step", "periodic", "witness"),
        *expected(0.5, "discrete", "per_step", "periodic", "witness"),
        *expected(0.5, "publish", "per_step"),
        "0.5 monitor",
    ]
    simulator.advance_to(0.75)
    assert labels() == [
        *expected(0.5, "unrestricted", "per_step"),
        *expected(0.5, "discrete", "per_step"),
        *expected(0.75, "publish", "per_step"),
        "0.75 monitor",
    ]


def test_handlers_of_a_phase_see_the_same_values_and_the_writing_of_the_phase_before() -> None:
    trace: Trace = []
    simulator = fx.Simulator(Eventful(trace))
    simulator.advance_to(0.5)
    seen = [(time, label.removeprefix("block "), u, d) for time, label, u, d in trace]
    assert seen == [
        (0.0, "unrestricted initialization", 0.0, 0.0),
        (0.0, "discrete initialization", 1.0, 0.0),
        (0.0, "publish initialization", 1.0, 10.0),
        (0.0, "publish per_step", 1.0, 10.0),
        (0.0, "publish periodic", 1.0, 10.0),
        # Two updates of the same state: both read 1, and the later one wins.
        (0.0, "unrestricted per_step", 1.0, 10.0),
        (0.0, "unrestricted periodic", 1.0, 10.0),
        (0.0, "discrete per_step", 2.0, 10.0),
        (0.0, "discrete periodic", 2.0, 10.0),
        (0.5, "publish per_step", 2.0, 20.0),
        (0.5, "publish periodic", 2.0, 20.0),
        (0.5, "publish witness", 2.0, 20.0),
    ]


@pytest.mark.parametrize("moving", [False, True], ids=["without motion", "with motion"])
def test_an_update_due_at_the_end_stays_pending(moving: bool) -> None:
    counter = Clockwork(Periodic(0.5), count_up, kind="discrete")
    simulator = fx.Simulator(together(counter, decay()) if moving else counter)
    simulator.advance_to(1.0)
    assert counter.times == [0.0, 0.5]
    assert simulator.context.time == 1.0
    simulator.advance_pending_events()
    assert counter.times == [0.0, 0.5, 1.0]
    simulator.advance_pending_events()
    assert counter.times == [0.0, 0.5, 1.0]
    simulator.advance_to(1.25)
    assert counter.times == [0.0, 0.5, 1.0]


@pytest.mark.parametrize("kind", ["discrete", "publish"])
def test_periodic_events_keep_their_floating_point_times(kind: Any) -> None:
    block = Clockwork(Periodic(0.1, 0.05), count_up if kind == "discrete" else look, kind=kind)
    simulator = fx.Simulator(together(block, decay()))
    for end in (0.31, 0.7, 1.0):
        simulator.advance_to(end)
    assert block.times == [0.05 + k * 0.1 for k in range(10)]


@pytest.mark.parametrize("method", ["RK45", "Rodas5P", "Radau", "rk4"])
def test_an_update_per_step_that_changes_continuous_state_is_seen_by_the_next_step(
    method: str,
) -> None:
    class Sawtooth(fx.LeafSystem):
        """ẋ = 1, and at the first step from x = 1 on, x = 0."""

        def __init__(self) -> None:
            super().__init__("sawtooth")
            self.x = self.declare_continuous_state(z=1)
            self.starts: list[float] = []
            self.declare_unrestricted_update(self.fall, PerStep())

        def calc_time_derivatives(self, context: Any) -> Any:
            return [1.0]

        def fall(self, context: Any) -> Any:
            self.starts.append(context.time)
            return {self.x: np.where(self.x(context) >= 1.0, 0.0, self.x(context))}

    block = Sawtooth()
    options = {"step": 0.125} if method == "rk4" else {"max_step": 0.125}
    simulator = fx.Simulator(block, method=method, **options)  # type: ignore[arg-type]
    simulator.advance_to(1.5)
    fallen = next(time for time in block.starts if time >= 1.0)
    assert block.x(simulator.context) == pytest.approx([1.5 - fallen])


def test_publishes_at_an_instant_see_the_values_before_its_updates() -> None:
    counter = Clockwork(Periodic(0.25), count_up, kind="discrete", name="counter")
    log = fx.VectorLog("log", period=0.25)
    simulator = fx.Simulator(chain(counter, log))
    simulator.advance_to(1.0)
    assert log.find_log(simulator.context).data.ravel().tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_times_that_handlers_see_are_plain_floats() -> None:
    block = Clockwork(PerStep())
    simulator = fx.Simulator(together(block, decay()))
    simulator.advance_to(1.0)
    assert {type(time) for time in block.times} == {float}
    assert type(simulator.context.time) is float


# Initialization ----------------------------------------------------------------------------------


def test_initialize_is_called_by_the_first_advance_only() -> None:
    block = Clockwork(Initialization(), count_up, kind="discrete")
    simulator = fx.Simulator(together(block, decay()))
    simulator.advance_to(0.0)
    simulator.advance_to(0.5)
    simulator.advance_to(0.5)
    assert block.times == [0.0]
    simulator.initialize()
    assert block.times == [0.0, 0.5]


def test_a_changed_time_needs_a_new_initialization() -> None:
    block = Clockwork(Periodic(1.0))
    simulator = fx.Simulator(together(block, decay()))
    simulator.advance_to(0.5)
    simulator.context.time = 2.75
    with pytest.raises(ContextError, match=r"context at t = 0\.5, .* t = 2\.75\. Call initialize"):
        simulator.advance_to(3.5)
    assert simulator.context.time == 2.75
    simulator.initialize()
    simulator.advance_to(3.5)
    assert block.times == [0.0, 3.0]
    simulator.context.time = 0.0
    simulator.initialize()
    simulator.advance_to(0.5)
    assert block.times == [0.0, 3.0, 0.0]


def test_initialization_counts_statistics_anew() -> None:
    simulator = fx.Simulator(decay())
    simulator.advance_to(1.0)
    assert simulator.statistics.steps > 0
    simulator.initialize()
    assert simulator.statistics == fx.results.Statistics()


def test_an_update_pending_from_before_is_forgotten_by_a_new_initialization() -> None:
    block = Clockwork(Periodic(0.5, 0.5), count_up, kind="discrete")
    simulator = fx.Simulator(block)
    simulator.advance_to(0.5)
    simulator.context.time = 0.0
    simulator.initialize()
    simulator.advance_to(0.25)
    assert block.times == []


# Changes between advances ------------------------------------------------------------------------


@pytest.mark.parametrize("change", ["set", "fix", "copy"])
@pytest.mark.parametrize("compiled", [False, True])
def test_values_changed_between_advances_count_from_then_on(change: str, compiled: bool) -> None:
    lag = fx.FirstOrderLag("lag", time_constant=1.0)
    simulator = fx.Simulator(lag, method="rk4", step=0.001, compiled=compiled)
    context = simulator.context
    lag.u.fix(context, 1.0)
    simulator.advance_to(1.0)
    before = float(lag.x(context)[0])
    assert before == pytest.approx(1.0 - math.exp(-1.0))
    target, tau = 1.0, 1.0
    if change == "set":
        lag.time_constant.set(context, tau := 0.5)
    elif change == "fix":
        lag.u.fix(context, target := -1.0)
    else:
        other = context.clone()
        lag.u.fix(other, target := 3.0)
        lag.x.set(other, before := 2.0)
        context.copy_from(other)
    simulator.advance_to(2.0)
    assert lag.x(context) == pytest.approx([target + (before - target) * math.exp(-1.0 / tau)])
    assert ("straight-line" in simulator.explain()) == compiled


# Statistics and explanation ----------------------------------------------------------------------


def test_statistics_count_what_happened() -> None:
    evaluations: list[float] = []

    def rate(t: Any, x: Any) -> Any:
        evaluations.append(t)
        return -x

    simulator = fx.Simulator(
        together(
            Flow(rate, [1.0], watch=lambda t, x: t - 0.3),
            Clockwork(Periodic(0.25), name="a"),
            Clockwork(Periodic(0.5), count_up, kind="discrete", name="b"),
            Clockwork(Initialization(), count_up, kind="unrestricted", name="c"),
        ),
        method="RK45",
        compiled=False,
    )
    simulator.advance_to(1.0)
    statistics = simulator.statistics
    assert statistics.publishes == 5 + 1
    assert statistics.discrete_updates == 2
    assert statistics.unrestricted_updates == 1
    assert statistics.witness_events == 1
    assert statistics.restarts == 3
    assert statistics.steps >= 3
    assert statistics.evaluations == len(evaluations)
    assert statistics.jacobians == statistics.factorizations == 0
    assert statistics.methods == [(0.0, "RK45", "as asked")]


def test_statistics_count_jacobians_of_implicit_methods() -> None:
    simulator = fx.Simulator(decay(), method="Radau")
    simulator.advance_to(1.0)
    assert simulator.statistics.jacobians > 0
    assert simulator.statistics.factorizations > 0


def test_a_restart_at_a_tick_costs_no_search_for_a_step_size() -> None:
    quiet = fx.Simulator(Oscillator(), method="RK45", compiled=False)
    quiet.advance_to(10.0)
    ticking = fx.Simulator(
        together(Oscillator(), Clockwork(Periodic(0.05), count_up, kind="discrete")),
        method="RK45",
        compiled=False,
    )
    ticking.advance_to(10.0)
    assert ticking.statistics.restarts == 200
    # A restart evaluates the slope at its start, and each step six stages.
    assert ticking.statistics.evaluations <= 7 * 200 + quiet.statistics.evaluations


def test_explain_names_the_method_and_how_the_equations_are_evaluated() -> None:
    simulator = fx.Simulator(decay(), method="radau", compiled=False)
    assert simulator.explain() == "no continuous state was integrated"
    simulator.advance_to(1.0)
    assert simulator.explain() == "from t = 0 s: Radau, as asked\nequations: interpreted"


def test_a_diagram_without_continuous_state_integrates_nothing() -> None:
    simulator = fx.Simulator(Clockwork(Periodic(0.5)))
    simulator.advance_to(3.0)
    assert simulator.explain() == "no continuous state was integrated"
    assert simulator.statistics.evaluations == 0


# Tolerances --------------------------------------------------------------------------------------


def test_default_tolerances_follow_the_accuracy_of_the_context() -> None:
    oscillator = Oscillator()
    simulator = fx.Simulator(oscillator)
    assert simulator.rtol.tolist() == [1e-6] * 3
    assert simulator.atol == pytest.approx([1e-9] * 3)
    context = oscillator.create_default_context()
    context.accuracy = 1e-4
    simulator = fx.Simulator(oscillator, context)
    assert simulator.rtol.tolist() == [1e-4] * 3
    assert simulator.atol == pytest.approx([1e-7] * 3)


def test_absolute_tolerance_is_a_thousandth_of_the_relative_one() -> None:
    for rtol in [1e-2, 1e-9]:
        assert fx.Simulator(decay(), rtol=rtol).atol == pytest.approx([1e-3 * rtol])


def test_tolerances_by_block_path_inner_ones_before_outer_ones() -> None:
    inner = nested(Oscillator("oscillator"), 2)
    root = together(decay(name="flow"), inner, Clockwork(PerStep(), name="still"), name="root")
    wish = {"d2.d1.oscillator": 1e-9, "d2": 1e-4, "": 1e-3}
    assert fx.Simulator(root, rtol=wish).rtol.tolist() == [1e-3] + [1e-9] * 3
    assert fx.Simulator(root, atol={"d2": 1e-5}).atol == pytest.approx([1e-9] + [1e-5] * 3)


@pytest.mark.parametrize(
    ("wish", "least", "most"),
    [(1e-3, 1e-5, 1.0), ({"tight": 1e-10, "": 1e-3}, 0.0, 1e-8)],
    ids=["loose", "tight"],
)
def test_a_tighter_tolerance_for_one_block_is_respected(
    wish: Any, least: float, most: float
) -> None:
    diagram = together(Oscillator("loose"), Oscillator("tight"))
    simulator = fx.Simulator(diagram, method="RK45", rtol=wish, atol=wish)
    simulator.advance_to(5.0)
    error = simulator.context.get("tight.position")[0] - (math.cos(10.0) + math.sin(10.0))
    assert least < abs(error) < most


# Context ownership -------------------------------------------------------------------------------


def test_the_simulator_moves_the_context_that_it_is_given() -> None:
    flow = decay()
    context = flow.create_default_context()
    context.time = 3.0
    flow.x.set(context, [2.0])
    simulator = fx.Simulator(flow, context)
    assert simulator.context is context
    simulator.advance_to(4.0)
    assert context.time == 4.0
    assert flow.x(context) == pytest.approx([2.0 * math.exp(-1.0)], rel=1e-5)


def test_two_simulators_of_one_system_do_not_disturb_each_other() -> None:
    flow = decay()
    slow, fast = fx.Simulator(flow), fx.Simulator(flow)
    flow.x.set(fast.context, [10.0])
    for time in (0.5, 1.0):
        slow.advance_to(time)
        fast.advance_to(2.0 * time)
    assert flow.x(slow.context) == pytest.approx([math.exp(-1.0)], rel=1e-5)
    assert flow.x(fast.context) == pytest.approx([10.0 * math.exp(-2.0)], rel=1e-5)


def test_a_context_of_another_system_or_of_a_part_is_refused() -> None:
    flow = decay()
    diagram = together(flow)
    for system, context in (
        (diagram, together(decay()).create_default_context()),
        (diagram, diagram.create_default_context()["flow"]),
        (flow, diagram.create_default_context()["flow"]),
        (flow, diagram.create_default_context()),
    ):
        with pytest.raises(ContextError, match=r"expected a root context of the same system"):
            fx.Simulator(system, context)


def test_a_simulator_shows_what_people_use_and_keeps_the_rest_to_itself() -> None:
    simulator = fx.Simulator(decay())
    assert {name for name in dir(simulator) if not name.startswith("_")} == {
        *("initialize", "advance_to", "advance_pending_events", "explain"),
        *("system", "context", "rtol", "atol"),
        *("history", "statistics", "termination", "terminated_by"),
    }


@for_each("name", ["context", "rtol", "max_step", "isolate", "monitor"])
def test_what_a_simulator_was_made_with_cannot_be_changed_later(name: str) -> None:
    with pytest.raises(AttributeError, match=name):
        setattr(fx.Simulator(decay()), name, None)


# Methods and refusals ----------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["RK45", "rk45", RK45, "DOP853"])
def test_methods_by_name_and_by_class(method: Any) -> None:
    simulator = fx.Simulator(decay(), method=method)
    simulator.advance_to(1.0)
    assert simulator.context.get("x") == pytest.approx([math.exp(-1.0)], rel=1e-5)
    assert [name.upper() for _, name, _ in simulator.statistics.methods] == [
        method.upper() if isinstance(method, str) else "RK45"
    ]


@pytest.mark.parametrize(
    "tolerance", [{"rtol": 0.1}, {"rtol": True}, {"atol": math.inf}, {"atol": np.True_}]
)
def test_tolerances_that_mean_nothing_are_refused_everywhere(tolerance: dict[str, Any]) -> None:
    lag = fx.FirstOrderLag("lag", time_constant=1.0)
    record = {"time": [0.0, 1.0, 2.0], "u": [1.0] * 3, "y": [0.0, 0.6, 0.9]}
    context = lag.create_default_context()
    lag.u.fix(context, 1.0)
    measure = fx.metrics.final("y")
    rest: dict[str, Any] = {"context": context, **tolerance}
    for attempt in (
        lambda: fx.simulate(lag, 1.0, **rest),
        lambda: fx.sweep(lag, {"gain": [1.0, 2.0]}, 1.0, **rest),
        lambda: fx.parameter_sensitivity(lag, "gain", 1.0, **rest),
        lambda: fx.optimize(lag, {"gain": (1.0, 2.0)}, measure, t_final=1.0, **rest),
        lambda: fx.fit(lag, record, ["gain"], **tolerance),
        lambda: fx.page(lag, 1.0, **rest),
    ):
        with pytest.raises(ValueRefusedError, match=r"finite number for [ra]tol"):
            attempt()


def test_a_sensitivity_without_a_tolerance_has_the_default() -> None:
    lag = fx.FirstOrderLag("lag", time_constant=2.0, initial=1.0)
    context = lag.create_default_context()
    lag.u.fix(context, 0.0)
    found = [
        fx.parameter_sensitivity(lag, "time_constant", 3.0, context=context, rtol=r)
        for r in (None, 1e-8)
    ]
    assert found[0]["time_constant"].tolist() == found[1]["time_constant"].tolist()


@pytest.mark.parametrize("method", ["rk4", "RK4", RungeKutta4])
def test_fixed_step_methods_by_name_and_by_class(method: Any) -> None:
    simulator = fx.Simulator(decay(), method=method, step=0.01)
    simulator.advance_to(1.0)
    assert simulator.context.get("x") == pytest.approx([math.exp(-1.0)], rel=1e-8)
    assert simulator.statistics.steps == 100


@for_each("ends", [[1.0], [0.1 * k for k in range(1, 11)]])
def test_rounding_of_time_makes_no_fixed_step_of_its_own(ends: list[float]) -> None:
    block = Clockwork(PerStep())
    simulator = fx.Simulator(together(block, decay()), method="rk4", step=0.1)
    for end in ends:
        simulator.advance_to(end)
    assert simulator.statistics.steps == len(block.times) - 1 == 10  # one at the start


def test_semi_explicit_euler_knows_the_positions_of_the_diagram() -> None:
    simulator = fx.Simulator(
        together(decay(), Oscillator("oscillator")), method="semi_explicit_euler", step=0.1
    )
    simulator.advance_to(0.1)
    q, v, _ = simulator.context.get("oscillator.x")
    assert v == pytest.approx(2.0 - 0.1 * 4.0 * 1.0)
    assert q == pytest.approx(1.0 + 0.1 * v)


@for_each(
    ("options", "error", "text"),
    [
        ({"method": "RK54"}, UnknownNameError, "Did you mean 'RK45'"),
        ({"method": 3}, ValueRefusedError, "a subclass of scipy.integrate.OdeSolver"),
        ({"method": dict}, ValueRefusedError, "a subclass of scipy.integrate.OdeSolver"),
        ({"method": "rk4"}, ValueRefusedError, "'rk4'.*the length of its steps; found no step"),
        ({"method": "rk4", "step": "long"}, ValueRefusedError, "with this step.*'long'"),
        ({"method": "RK45", "step": 0.1}, ValueRefusedError, "'RK45' with step=0.1.*max_step"),
        ({"step": 0.1}, ValueRefusedError, "'auto' with step=0.1"),
        ({"rtol": "tight"}, ValueRefusedError, "Cannot set rtol of 'flow'.*'tight'"),
        ({"atol": {"": "tight"}}, ValueRefusedError, "Cannot set atol of 'flow'.*'tight'"),
        *(({"rtol": r}, ValueRefusedError, "finite number for rtol.*below 0.1") for r in (-1, 1.0)),
        ({"rtol": True}, ValueRefusedError, "finite number for rtol.*found True"),
        *(({"atol": a}, ValueRefusedError, "number for atol") for a in (math.inf, math.nan, True)),
        ({"rtol": {"plant": 1e-3}}, UnknownNameError, "Cannot find 'plant' below 'flow'"),
        ({"max_step": "short"}, ValueRefusedError, "max_step.*'short'"),
    ],
)
def test_options_that_make_no_sense_are_refused_at_once(
    options: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        fx.Simulator(decay(), **options)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"max_step": 0.0}, "max_step"),
        ({"method": "rk4", "step": -0.1}, "step=-0.1"),
        ({"options": {"foo": 1}}, "'foo' to RK45"),
        ({"method": "rk4", "step": 0.1, "options": {"foo": 1}}, "'foo' to rk4"),
        ({"method": "RK45", "options": {"rtol": 1e-3}}, "'rtol' to RK45"),
    ],
)
def test_options_that_the_method_refuses_leave_the_context_alone(
    options: dict[str, Any], text: str
) -> None:
    simulator = fx.Simulator(decay(), **options)
    with pytest.raises((ValueRefusedError, UnknownNameError), match=text):
        simulator.advance_to(1.0)
    assert simulator.context == simulator.system.create_default_context()


def test_tolerances_of_a_block_without_continuous_state_are_refused() -> None:
    still = Clockwork(PerStep(), name="still")
    with pytest.raises(UnknownNameError, match=r"rtol of 'still'.*'flow'.*found a block without"):
        fx.Simulator(together(decay(), still), rtol={"still": 1e-3})


@pytest.mark.parametrize("time", [-1.0, math.nan, math.inf])
def test_a_time_that_cannot_be_reached_is_refused(time: float) -> None:
    simulator = fx.Simulator(decay())
    with pytest.raises(ValueRefusedError, match=r"Cannot advance 'flow' to t = "):
        simulator.advance_to(time)
    assert simulator.statistics == fx.results.Statistics()


def test_a_free_input_is_reported_with_its_path() -> None:
    simulator = fx.Simulator(fx.FirstOrderLag("lag", time_constant=1.0))
    with pytest.raises(fx.errors.EvaluationError, match=r"input port 'lag\.u'"):
        simulator.advance_to(1.0)
