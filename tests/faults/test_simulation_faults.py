"""Whatever goes wrong inside of a diagram, every method ends with an error that names the culprit.

Each test runs against an alarm: a simulation that spins for ever fails instead of blocking the
others.
"""

from __future__ import annotations

import math
import os
import re
import signal
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import (
    FlexureError,
    NonFiniteError,
    NoProgressError,
    SimulationError,
    StepSizeError,
    ValueRefusedError,
)
from flexure.diagrams.values.events import EventKind
from flexure.solvers.integration.methods.methods import METHOD_NAMES
from flexure.solvers.native.programs.method_programs import METHODS
from tests.support.native.native import needs_llvmlite
from tests.support.systems.simulation import (
    FIXED,
    TRIED_METHODS,
    Clockwork,
    Flow,
    chain,
    method_options,
    together,
)
from tests.support.tiers import thinned

pytestmark = pytest.mark.timeout(10, method="signal")

STEP = 0.01
LATE = 0.5  # when faults that come late come
every_method = pytest.mark.parametrize("method", TRIED_METHODS)
#: Methods that compiled loops know.
NATIVE = ("auto", *METHODS)


def every_way_of(methods: Iterable[str]) -> pytest.MarkDecorator:
    """Interpret the equations, compile them to Python, and natively where that can be."""
    ways = [
        pytest.param(method, compiled, id=f"{method}-{compiled}", marks=marks)
        for method in methods
        for compiled, marks in ((False, ()), ("python", ()), (True, needs_llvmlite))
        if compiled is not True or method in NATIVE
    ]
    return pytest.mark.parametrize(("method", "compiled"), ways)


every_way = every_way_of(TRIED_METHODS)
BAD_NUMBERS = [math.nan, math.inf, -math.inf]
every_bad_number = pytest.mark.parametrize("bad", thinned(BAD_NUMBERS, fast=1))


def simulator_of(system: fx.System, method: str, **options: Any) -> fx.Simulator:
    return fx.Simulator(system, **method_options(method, STEP), **options)


def text_of(error: BaseException) -> str:
    """The message and the notes."""
    return "\n".join([str(error), *getattr(error, "__notes__", ())])


def time_in(text: str) -> float:
    """The first time that a text names."""
    found = re.search(r"t = ([-+.e\d]*\d)", text)
    assert found is not None, text
    return float(found.group(1))


def assert_left_at_the_last_good_step(
    simulator: fx.Simulator, fault: float, *, margin: float = 0.1
) -> None:
    """Check time and state of the context after a fault, and that outputs can be evaluated."""
    context = simulator.context
    assert max(0.0, fault - margin) <= context.time <= fault + STEP
    assert np.isfinite(context.continuous_state).all()
    assert type(context.time) is float


# NaN and infinity in the equations ---------------------------------------------------------------


@dataclass
class Place:
    """A diagram with a fault, what the error must say, and when it happens."""

    make: Callable[[float], fx.System]
    says: str
    fault: float


def source(bad: float, since: float) -> fx.System:
    """A source that breaks, in front of an integrator that does not know."""
    return chain(
        fx.TimeFunction("source", lambda t: np.where(t >= since, bad, 1.0)),
        fx.Gain("gain", 2.0),
        fx.Integrator("integral"),
    )


def algebra(bad: float) -> fx.System:
    """A block between states that breaks when its input reaches 0.5."""
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.Integrator("clock"),
        fx.Constant("one", 1.0),
        fx.FunctionBlock("table", lambda u: np.where(u > LATE, bad, u)),
        fx.Gain("gain", 2.0),
        fx.Integrator("integral"),
    )
    builder.connect("one.y", "clock.u")
    builder.connect_chain("clock", "table", "gain", "integral")
    return builder.build()


def derivative(bad: float, since: float) -> fx.System:
    """A state whose own equation breaks, beside one that is well."""
    return together(
        Flow(lambda t, x: [-x[0], -x[1]], [1.0, 2.0], name="well"),
        Flow(lambda t, x: [-x[0], np.where(t > since, bad, -x[1])], [1.0, 2.0], name="ill"),
    )


def component(bad: float) -> fx.System:
    """The third of three components of an output breaks."""
    return chain(
        fx.TimeFunction("source", lambda t: [t, 1.0, np.where(t >= LATE, bad, 2.0)], size=3),
        fx.Integrator("integral", 3),
    )


def nested_block(bad: float) -> fx.System:
    """The culprit is two diagrams deep."""
    return chain_of_diagrams(fx.TimeFunction("source", lambda t: np.where(t >= LATE, bad, 1.0)))


def chain_of_diagrams(block: fx.LeafSystem) -> fx.Diagram:
    inner = fx.DiagramBuilder("inner")
    inner.add(block)
    inner.export_output(block.output_ports[0], name="y")
    outer = fx.DiagramBuilder("outer")
    outer.add(inner.build())
    outer.export_output("inner.y", name="y")
    root = fx.DiagramBuilder("root")
    root.add_all(outer.build(), fx.Integrator("integral"))
    root.connect("outer.y", "integral.u")
    return root.build()


PLACES = {
    "source at the start": Place(
        lambda bad: source(bad, 0.0), r"component 0 of output port 'source\.y'", 0.0
    ),
    "source later": Place(
        lambda bad: source(bad, LATE), r"component 0 of output port 'source\.y'", LATE
    ),
    "algebra": Place(algebra, r"component 0 of output port 'table\.y'", LATE),
    "derivative at the start": Place(
        lambda bad: derivative(bad, -1.0), r"time derivative of the state ill\.x\[1\]", 0.0
    ),
    "derivative later": Place(
        lambda bad: derivative(bad, LATE), r"time derivative of the state ill\.x\[1\]", LATE
    ),
    "one component of three": Place(component, r"component 2 of output port 'source\.y'", LATE),
    "nested": Place(nested_block, r"component 0 of output port 'outer\.inner\.source\.y'", LATE),
}


@pytest.mark.full
@every_way
@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_a_number_that_is_not_finite_is_traced_to_its_block(
    place: Place, method: str, compiled: Any
) -> None:
    turn = [*PLACES.values()].index(place) + ["auto", *METHOD_NAMES].index(method)
    bad = BAD_NUMBERS[turn % 3]  # each place meets all of them
    system = place.make(bad)
    simulator = simulator_of(system, method, compiled=compiled)
    with pytest.raises(NonFiniteError) as caught:
        simulator.advance_to(2.0)
    error = caught.value
    assert str(error).startswith(f"Cannot integrate '{system.name}' at t = ")
    assert re.search(rf"found {re.escape(f'{bad:.6g}')} in (the )?{place.says}", str(error))
    assert error.remedy
    assert error.time is not None
    assert error.time == pytest.approx(time_in(str(error)), rel=1e-8)
    assert place.fault * (1.0 - 1e-12) <= error.time <= place.fault + 0.2
    assert_left_at_the_last_good_step(simulator, place.fault)
    was_native = compiled is True and place.fault > 0.0
    assert (simulator.statistics.native_steps > 0) == was_native


def without_times(text: str) -> str:
    """Leave numbers out of a text, which differ in their last digits."""
    return re.sub(r"-?\d+(\.\d+)?(e[-+]\d+)?", "#", text)


@needs_llvmlite
@pytest.mark.parametrize("method", thinned(NATIVE, fast=2))
@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_native_runs_fail_like_interpreted_ones(place: Place, method: str) -> None:
    """The same error, at the same time, with the same text; the context at the same step."""
    found: list[tuple[NonFiniteError, fx.Simulator]] = []
    for compiled in (True, "python" if method == "Rodas5P" else False):
        simulator = simulator_of(place.make(math.nan), method, compiled=compiled)
        with pytest.raises(NonFiniteError) as caught:
            simulator.advance_to(2.0)
        found.append((caught.value, simulator))
    (native, ours), (interpreted, theirs) = found
    assert type(native) is type(interpreted)
    assert without_times(text_of(native)) == without_times(text_of(interpreted))
    assert native.time == pytest.approx(interpreted.time, abs=1e-8)
    assert ours.context.time == pytest.approx(theirs.context.time, abs=1e-8)
    x, expected = ours.context.store.x, theirs.context.store.x
    np.testing.assert_allclose(x, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("method", ["rk4", "RK45", "Rodas5P", "Radau", "LSODA"])
@every_bad_number
def test_straight_line_equations_are_traced_to_their_block_as_well(method: str, bad: float) -> None:
    options = {"method": method, "step": 1e-3} if method == "rk4" else {"method": method}
    bound = {} if method == "rk4" else {"max_step": 2e-3}
    given: dict[str, Any] = options | bound | {"compiled": "python"}
    simulator = fx.Simulator(algebra(bad), **given)
    with pytest.raises(NonFiniteError, match=r"output port 'table\.y'"):
        simulator.advance_to(2.0)
    assert "straight-line" in simulator.explain()
    assert_left_at_the_last_good_step(simulator, LATE)


class Divider(fx.LeafSystem):
    """ẋ = a x / b."""

    def __init__(self) -> None:
        super().__init__("divider")
        self.a = self.declare_numeric_parameter("a", 1.0)
        self.b = self.declare_numeric_parameter("b", 1.0)
        self.x = self.declare_continuous_state(z=1)
        self.declare_vector_output("ratio", 1, self.calc_ratio, prerequisites=[])

    def calc_ratio(self, context: Any) -> Any:
        return self.a(context) / self.b(context)

    def calc_time_derivatives(self, context: Any) -> Any:
        return self.calc_ratio(context) + self.x(context)


@every_way
@pytest.mark.parametrize("a", [0.0, 1.0], ids=["0/0", "1/0"])
def test_a_parameter_that_divides_by_zero_can_be_repaired(
    a: float, method: str, compiled: Any
) -> None:
    divider = Divider()
    simulator = simulator_of(divider, method, compiled=compiled)
    divider.a.set(simulator.context, a)
    simulator.advance_to(0.25)
    divider.b.set(simulator.context, 0.0)
    with pytest.raises(
        NonFiniteError, match=r"in the time derivative of the state divider\.x"
    ) as e:
        simulator.advance_to(0.5)
    assert simulator.context.time == 0.25
    # Implicit Euler asks at the end of its step.
    assert e.value.time == pytest.approx(0.25 + STEP * (method == "implicit_euler"))
    divider.b.set(simulator.context, 2.0)
    simulator.advance_to(0.5)
    assert simulator.context.time == 0.5


@every_way
def test_a_state_that_grows_beyond_all_numbers(method: str, compiled: Any) -> None:
    flow = Flow(lambda t, x: x * x, [1.0])  # 1 / (1 - t)
    simulator = simulator_of(flow, method, compiled=compiled)
    with pytest.raises(SimulationError) as caught:
        simulator.advance_to(3.0)
    error = caught.value
    assert error.time is not None
    # A fixed step notices late, since it jumps across the singularity.
    assert 0.9 < error.time < (3.0 if method in FIXED else 1.1)
    assert "flow.x[0]" in text_of(error)
    assert np.isfinite(simulator.context.continuous_state).all()
    assert 0.9 < simulator.context.time <= error.time


@every_way
def test_a_root_of_a_negative_number(method: str, compiled: Any) -> None:
    """ẋ = -sqrt(x) reaches zero at t = 2 and cannot go on; implicit Euler gets there later."""
    simulator = simulator_of(
        chain_with_feedback(fx.FunctionBlock("root", lambda u: -np.sqrt(u))),
        method,
        compiled=compiled,
    )
    with pytest.raises(NonFiniteError, match=r"nan in component 0 of output port 'root\.y'"):
        simulator.advance_to(3.0)
    assert_left_at_the_last_good_step(simulator, 2.0 + 0.1 * (method == "implicit_euler"))


def chain_with_feedback(block: fx.LeafSystem) -> fx.Diagram:
    builder = fx.DiagramBuilder("loop")
    builder.add_all(block, fx.Integrator("x", initial=1.0))
    builder.connect_chain("x", block, "x.u")
    return builder.build()


# Updates and witness functions -------------------------------------------------------------------


def act(kind: EventKind, value: Callable[[Any], Any]) -> Clockwork:
    """A block that gives its state a bad value at t = 0.5."""
    return Clockwork(
        fx.diagrams.Periodic(0.25, 0.25),
        lambda context, count: value(context) if context.time > 0.4 else count + 1.0,
        kind=kind,
        name="counter",
    )


@every_method
@pytest.mark.parametrize("kind", ["discrete", "unrestricted"])
@pytest.mark.parametrize(
    ("value", "says"),
    [
        (lambda context: math.nan, "nan"),
        (lambda context: math.inf, "inf"),
        (lambda context: [1.0, 2.0], "vector of size 2"),
        (lambda context: "text", "text"),
    ],
    ids=["nan", "inf", "wrong length", "wrong kind"],
)
def test_an_update_to_what_is_no_state(method: str, kind: Any, value: Any, says: str) -> None:
    counter = act(kind, value)
    flow = Flow(lambda t, x: -x, [1.0])
    simulator = simulator_of(together(counter, flow), method)
    with pytest.raises(ValueRefusedError, match=says) as caught:
        simulator.advance_to(1.0)
    text = text_of(caught.value)
    assert f"Cannot use the result of the {kind} update 'counter.renew'" in text
    assert time_in(text) == simulator.context.time == 0.5
    assert counter.count(simulator.context) == [1.0]


class Meter(fx.LeafSystem):
    """A counter without any memory of its own, whose update gives a bad value at t = 0.5."""

    def __init__(self, kind: EventKind, bad: float) -> None:
        super().__init__("meter")
        self.bad = bad
        self.x = self.declare_continuous_state(z=1, default=[1.0])
        self.count = self.declare_discrete_state("count", 0.0)
        declare = {
            "discrete": self.declare_discrete_update,
            "unrestricted": self.declare_unrestricted_update,
        }
        declare[kind](self.renew, fx.diagrams.Periodic(0.25, 0.25))

    def calc_time_derivatives(self, context: Any) -> Any:
        return self.count(context) - self.x(context)

    def renew(self, context: Any) -> Any:
        return {self.count: np.where(context.time > 0.4, self.bad, self.count(context) + 1.0)}


@every_way
@every_bad_number
@pytest.mark.parametrize("kind", ["discrete", "unrestricted"])
def test_an_update_to_what_is_not_finite(kind: Any, bad: float, method: str, compiled: Any) -> None:
    meter = Meter(kind, bad)
    simulator = simulator_of(meter, method, compiled=compiled)
    for _ in range(2):  # going on meets it again
        with pytest.raises(ValueRefusedError, match=f"found .*{bad}") as caught:
            simulator.advance_to(1.0)
        text = text_of(caught.value)
        assert f"Cannot use the result of the {kind} update 'meter.renew'" in text
        assert simulator.context.time == 0.5
        assert meter.count(simulator.context) == [1.0]
    meter.count.set(simulator.context, [5.0])
    assert (simulator.statistics.native_steps > 0) == (compiled is True)


class TwoUpdates(Meter):
    """Beside the discrete update that fails there is an unrestricted one at the same times."""

    def __init__(self) -> None:
        super().__init__("discrete", math.nan)
        self.others = self.declare_discrete_state("others", 0.0)
        self.declare_unrestricted_update(self.renew_other, fx.diagrams.Periodic(0.25, 0.25))

    def renew_other(self, context: Any) -> Any:
        return {self.others: self.others(context) + 1.0}


@every_way
def test_a_discrete_update_that_fails_after_an_unrestricted_one_is_not_lost(
    method: str, compiled: Any
) -> None:
    meter = TwoUpdates()
    simulator = simulator_of(meter, method, compiled=compiled)
    with pytest.raises(ValueRefusedError, match=r"discrete update 'meter\.renew'"):
        simulator.advance_to(1.0)
    assert simulator.context.time == 0.5
    assert meter.count(simulator.context) == [1.0]
    assert meter.others(simulator.context) == [2.0]


@every_way
@every_bad_number
def test_a_witness_function_that_is_not_finite(method: str, bad: float, compiled: Any) -> None:
    flow = Flow(
        lambda t, x: [1.0],
        [0.0],
        watch=lambda t, x: np.where(x[0] <= LATE, 1.0, bad),
        name="flow",
    )
    longest = math.inf if method in FIXED else 0.05
    simulator = simulator_of(flow, method, max_step=longest, compiled=compiled)
    with pytest.raises(NonFiniteError, match=r"witness function of 'flow\.note'") as caught:
        simulator.advance_to(1.0)
    assert caught.value.time is not None
    assert caught.value.time == pytest.approx(time_in(str(caught.value)))
    assert LATE - STEP <= caught.value.time <= LATE + 0.05
    assert_left_at_the_last_good_step(simulator, LATE)


# Exceptions and wrong lengths --------------------------------------------------------------------


class Faulty(fx.LeafSystem):
    """ẋ = y(t), with what a test wants in place of the output or the derivative after t = 0.5."""

    def __init__(self, where: str, act: Callable[[], Any]) -> None:
        super().__init__("faulty")
        self.where, self.act = where, act
        self.broken = True
        self.x = self.declare_continuous_state(z=2)
        self.y = self.declare_vector_output("y", 1, self.calc_y, prerequisites=[fx.TIME])
        self.u = self.declare_vector_input("u", 1)

    def value(self, where: str, time: float, right: Any) -> Any:
        return self.act() if self.broken and where == self.where and time > LATE else right

    def calc_y(self, context: Any) -> Any:
        return self.value("output port 'faulty.y'", context.time, [1.0])

    def calc_time_derivatives(self, context: Any) -> Any:
        u = self.u(context)[0]
        return self.value("the time derivatives of 'faulty'", context.time, [u, u])


def faulty_diagram(where: str, act: Callable[[], Any]) -> tuple[Faulty, fx.Diagram]:
    block = Faulty(where, act)
    builder = fx.DiagramBuilder("diagram")
    builder.add_all(block, fx.Gain("gain", 1.0))
    builder.connect_chain(block, "gain", block.u)
    return block, builder.build()


def raise_it(error: BaseException) -> Any:
    raise error


every_calculation = pytest.mark.parametrize(
    "where", ["output port 'faulty.y'", "the time derivatives of 'faulty'"], ids=["output", "rate"]
)


@every_method
@every_calculation
@pytest.mark.parametrize(
    "error", [ValueError("a bad day"), ZeroDivisionError(), FlexureError("Cannot do it")], ids=repr
)
def test_an_exception_of_a_calculation_says_where_and_when(
    method: str, where: str, error: Exception
) -> None:
    block, diagram = faulty_diagram(where, lambda: raise_it(type(error)(*error.args)))
    simulator = simulator_of(diagram, method, max_step=math.inf if method in FIXED else 0.05)
    with pytest.raises(type(error)) as caught:
        simulator.advance_to(1.0)
    text = text_of(caught.value)
    assert f"while computing {where} at t = 0.5" in text
    assert_left_at_the_last_good_step(simulator, LATE)
    block.broken = False
    simulator.advance_to(1.0)
    assert simulator.context.get("faulty.x") == pytest.approx([1.0, 1.0])


@every_method
@every_calculation
@pytest.mark.parametrize(
    "value",
    [[1.0, 2.0, 3.0], [], "text", None, [[1.0, 2.0], [3.0, 4.0]]],
    ids=lambda value: f"{value}",
)
def test_a_result_of_the_wrong_shape_says_where_and_when(
    method: str, where: str, value: Any
) -> None:
    _, diagram = faulty_diagram(where, lambda: value)
    simulator = simulator_of(diagram, method, max_step=math.inf if method in FIXED else 0.05)
    with pytest.raises(ValueRefusedError) as caught:
        simulator.advance_to(1.0)
    text = text_of(caught.value)
    assert "Cannot use the result of" in text
    assert f"while computing {where} at t = 0.5" in text
    assert f"a vector of size {1 if 'port' in where else 2}" in text
    assert_left_at_the_last_good_step(simulator, LATE)


# Interruptions -----------------------------------------------------------------------------------


@every_method
@every_calculation
def test_an_interruption_leaves_the_last_step_and_the_run_can_go_on(
    method: str, where: str
) -> None:
    block, diagram = faulty_diagram(where, lambda: raise_it(KeyboardInterrupt()))
    simulator = simulator_of(diagram, method, max_step=math.inf if method in FIXED else 0.05)
    with pytest.raises(KeyboardInterrupt):
        simulator.advance_to(1.0)
    assert_left_at_the_last_good_step(simulator, LATE)
    time = simulator.context.time
    assert simulator.context.get("faulty.x") == pytest.approx([time, time])
    block.broken = False
    simulator.advance_to(1.0)
    assert simulator.context.time == 1.0
    assert simulator.context.get("faulty.x") == pytest.approx([1.0, 1.0])


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("compiled", [False, "python", True])
@pytest.mark.parametrize("method", ["RK45", "Rodas5P", "Radau", "LSODA", "rk4"])
def test_the_interrupt_key_ends_a_long_run(method: str, compiled: bool) -> None:
    flow = Flow(lambda t, x: [x[1], -x[0]], [0.0, 1.0])
    options = {"step": 1e-4} if method == "rk4" else {"max_step": 1e-3}
    simulator = fx.Simulator(flow, method=method, compiled=compiled, **options)  # type: ignore[arg-type]
    simulator.advance_to(0.01)  # so that nothing is imported or compiled when the key is pressed
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        simulator.advance_to(1e5)
    time = simulator.context.time
    assert time < 1e5
    assert flow.x(simulator.context) == pytest.approx([math.sin(time), math.cos(time)], abs=1e-4)
    simulator.advance_to(time + 0.01)
    assert simulator.context.time == time + 0.01


@pytest.mark.parametrize("moving", [False, True], ids=["without motion", "with motion"])
@pytest.mark.parametrize("kind", ["publish", "discrete", "unrestricted"])
def test_an_interruption_of_a_handler_loses_no_later_event(kind: Any, moving: bool) -> None:
    broken = [True]

    def interrupt_once(context: Any, count: float) -> float | None:
        if context.time > 0.45 and broken:
            broken.clear()
            raise KeyboardInterrupt
        return None if kind == "publish" else count + 1.0

    block = Clockwork(fx.diagrams.Periodic(0.25), interrupt_once, kind=kind)
    simulator = fx.Simulator(together(block, Flow(lambda t, x: -x, [1.0])) if moving else block)
    with pytest.raises(KeyboardInterrupt):
        simulator.advance_to(1.1)
    assert simulator.context.time == 0.5
    simulator.advance_to(1.1)
    assert sorted(set(block.times)) == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert block.times.count(0.5) == (1 if kind == "publish" else 2)
    assert block.count(simulator.context) == [0.0 if kind == "publish" else 5.0]


@pytest.mark.full
@every_way_of([name for name in TRIED_METHODS if name not in FIXED])
def test_dry_friction_without_an_event_ends_in_an_error_and_not_in_endless_tiny_steps(
    method: str, compiled: Any
) -> None:
    """ẋ = -sign(x) jumps across zero, and nothing tells the integrator."""
    flow = Flow(lambda t, x: -np.sign(x), [1.0])
    simulator = simulator_of(flow, method, compiled=compiled)
    with pytest.raises((NoProgressError, StepSizeError)) as caught:
        simulator.advance_to(1e4)
    assert caught.value.time == pytest.approx(1.0, abs=0.1)
    assert caught.value.remedy is not None
    assert "the fastest state at t = 1" in text_of(caught.value)
    assert "flow.x[0]" in text_of(caught.value)
    assert flow.x(simulator.context) == pytest.approx([0.0], abs=1e-3)
