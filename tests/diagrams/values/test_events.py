"""Events: triggers, forced events, and updates that are pure, simultaneous, and all or nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams import Forced, Initialization, Periodic, PerStep, Witness
from flexure.diagrams.checks.errors import (
    ContextError,
    DeclarationError,
    EvaluationError,
    ValueRefusedError,
)
from flexure.diagrams.contexts.updates import run_updates
from tests.support.systems.blocks import Lag, diagram_of
from tests.support.tiers import for_each

Handler = Callable[[Any], Any]


class Cells(fx.LeafSystem):
    """One state of every kind; the handlers are added from outside."""

    def __init__(self, name: str = "cells") -> None:
        super().__init__(name)
        self.x = self.declare_continuous_state(z=2)
        self.a = self.declare_discrete_state("a", 1.0)
        self.b = self.declare_discrete_state("b", 2.0)
        self.mode = self.declare_abstract_state("mode", "idle")
        self.k = self.declare_numeric_parameter("k", 3.0)

    def calc_time_derivatives(self, context: Any) -> Any:
        return np.zeros(2)

    def values(self, context: fx.Context) -> list[Any]:
        vectors = (self.x, self.a, self.b)
        return [*(v(context).tolist() for v in vectors), self.mode(context)]


# Triggers --------------------------------------------------------------------------------------


@for_each(
    ("arguments", "text"),
    [
        ({"period": 0.0}, "expected a positive, finite period; found period=0.0"),
        ({"period": -1.0}, "expected a positive, finite period"),
        ({"period": math.inf}, "expected a positive, finite period"),
        ({"period": math.nan}, "expected a positive, finite period"),
        ({"period": "1"}, "expected a positive, finite period; found period='1'"),
        ({"period": None}, "expected a positive, finite period"),
        ({"period": 1.0, "offset": -0.1}, "expected a finite offset >= 0; found offset=-0.1"),
        ({"period": 1.0, "offset": math.nan}, "expected a finite offset >= 0"),
        ({"period": 1.0, "offset": math.inf}, "expected a finite offset >= 0"),
        ({"period": 1.0, "offset": "0"}, "expected a finite offset >= 0"),
    ],
)
def test_impossible_periods_and_offsets_are_refused(arguments: Any, text: str) -> None:
    with pytest.raises(DeclarationError, match=f"Cannot declare a periodic event: {text}"):
        Periodic(**arguments)


def test_the_next_time_is_strictly_later() -> None:
    for trigger, time, following in [
        (Periodic(0.5), -1.0, 0.0),
        (Periodic(0.5), 0.0, 0.5),
        (Periodic(0.5), 0.49, 0.5),
        (Periodic(0.5, 0.2), 0.0, 0.2),
        (Periodic(0.5, 0.2), 0.2, 0.7),
        (Periodic(0.1), 0.2, 0.30000000000000004),
        (Periodic(0.1), 0.3, 0.30000000000000004),
        (Periodic(0.1), 0.30000000000000004, 0.4),
        (Periodic(1e-3), 1e6, 1e6 + 1e-3),
    ]:
        assert trigger.next_time(time) == following


@pytest.mark.parametrize("period", [0.1, 1 / 3, 1e-3, 0.7])
def test_every_time_of_a_long_run_is_offset_plus_a_multiple_and_none_is_skipped(
    period: float,
) -> None:
    trigger = Periodic(period, offset=0.05)
    time = -1.0
    for k in range(2000):
        assert not trigger.is_due(math.nextafter(time, math.inf))
        time = trigger.next_time(time)
        assert time == 0.05 + k * period
        assert trigger.is_due(time)


def test_nothing_is_due_before_the_offset_or_between_the_times() -> None:
    trigger = Periodic(1.0, offset=2.0)
    assert [trigger.is_due(t) for t in (0.0, 1.0, 1.999, 2.0, 2.5, 3.0)] == [
        *(False, False, False, True, False, True),
    ]


@pytest.mark.parametrize(
    ("direction", "triggering"),
    [
        ("falling", {(1, 0), (1, -1)}),
        ("rising", {(-1, 0), (-1, 1)}),
        ("either", {(1, 0), (1, -1), (-1, 0), (-1, 1)}),
    ],
)
def test_a_witness_triggers_by_reaching_or_crossing_zero_not_by_leaving_it(
    direction: Any, triggering: set[tuple[int, int]]
) -> None:
    witness = Witness(abs, direction)
    signs = (-1, 0, 1)
    assert {(a, b) for a in signs for b in signs if witness.triggers(a, b)} == triggering


def test_impossible_witnesses_are_refused() -> None:
    with pytest.raises(DeclarationError, match="expected direction 'falling', 'rising' or"):
        Witness(abs, "down")  # type: ignore[arg-type]
    with pytest.raises(DeclarationError, match="expected a method that takes a context; found 3"):
        Witness(3)  # type: ignore[arg-type]


# Declaration -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["publish", "discrete_update", "unrestricted_update"])
def test_bad_triggers_and_handlers_are_refused(kind: str) -> None:
    cells = Cells()
    declare = getattr(cells, f"declare_{kind}")
    text = r"Cannot declare a \w+ event of 'cells': expected"
    for trigger in (0.1, Periodic, None):
        with pytest.raises(DeclarationError, match=rf"{text} Periodic\(\.\.\.\), PerStep\(\)"):
            declare(lambda context: None, trigger)
    with pytest.raises(DeclarationError, match=f"{text} a method that takes a context; found 3"):
        declare(3, Forced())
    assert cells.events == []


def test_events_keep_their_order_and_name_their_handlers() -> None:
    cells = Cells()

    def tick(context: Any) -> None: ...

    cells.declare_publish(tick, PerStep())
    cells.declare_discrete_update(tick, Periodic(0.2))
    cells.declare_unrestricted_update(tick, Periodic(0.1, 0.05))
    cells.declare_publish(tick, Witness(abs))
    cells.declare_publish(tick, Initialization())
    assert [event.kind for event in cells.events] == [
        *("publish", "discrete", "unrestricted", "publish", "publish"),
    ]
    assert {event.label for event in cells.events} == {"cells.tick"}
    assert cells.periods == (0.1, 0.2)
    whole = diagram_of(cells, Cells("others"), name="whole")
    assert whole.periods == (0.1, 0.2)
    assert [event.trigger for event in cells.witnesses] == [Witness(abs)]


# Forced events ---------------------------------------------------------------------------------


def counter(name: str, log: list[str]) -> Cells:
    """Make a block with one forced event of each kind that tells when it runs."""
    cells = Cells(name)

    def publish(context: Any) -> None:
        log.append(f"{name}.publish {cells.a(context)[0]:g}")

    def discrete(context: Any) -> Any:
        log.append(f"{name}.discrete")
        return {cells.a: cells.a(context) + 1.0}

    def unrestricted(context: Any) -> Any:
        log.append(f"{name}.unrestricted")
        return {cells.x: [5.0, 6.0], cells.b: 7.0, cells.mode: "busy"}

    for other in (PerStep(), Periodic(1.0), Initialization(), Witness(abs)):
        cells.declare_publish(lambda context: log.append("not forced"), other)
    cells.declare_publish(publish, Forced())
    cells.declare_discrete_update(discrete, Forced())
    cells.declare_unrestricted_update(unrestricted, Forced())
    return cells


def test_forced_events_run_in_diagram_order_and_only_the_kind_asked_for() -> None:
    log: list[str] = []
    a, b = counter("a", log), counter("b", log)
    diagram = diagram_of(diagram_of(a, name="inner"), b)
    context = diagram.create_default_context()
    diagram.forced_publish(context)
    assert log == ["a.publish 1", "b.publish 1"]
    log.clear()
    diagram.forced_discrete_update(context)
    assert log == ["a.discrete", "b.discrete"]
    assert a.values(context) == b.values(context) == [[0.0, 0.0], [2.0], [2.0], "idle"]
    log.clear()
    diagram.forced_unrestricted_update(context)
    assert log == ["a.unrestricted", "b.unrestricted"]
    assert a.values(context) == b.values(context) == [[5.0, 6.0], [2.0], [7.0], "busy"]


def test_forced_events_of_one_block_leave_the_others_alone() -> None:
    log: list[str] = []
    a, b = counter("a", log), counter("b", log)
    context = diagram_of(a, b).create_default_context()
    for given in (context, context["b"]):
        b.forced_discrete_update(given)
    assert (a.a(context), b.a(context)) == (1.0, 3.0)
    with pytest.raises(ContextError, match="Cannot use 'b' with this context"):
        b.forced_publish(context["a"])
    with pytest.raises(ContextError, match="expected a context"):
        b.forced_publish(None)  # type: ignore[arg-type]


# Updates ---------------------------------------------------------------------------------------


def force(kind: str, *handlers: Handler, cells: Cells | None = None) -> tuple[Cells, fx.Context]:
    """Run handlers as forced updates of one kind and return the block and its context."""
    cells = Cells() if cells is None else cells
    for handler in handlers:
        getattr(cells, f"declare_{kind}_update")(handler, Forced())
    context = cells.create_default_context()
    getattr(cells, f"forced_{kind}_update")(context)
    return cells, context


def test_simultaneous_updates_all_see_the_values_before() -> None:
    cells = Cells()
    _, context = force(
        "discrete",
        lambda c: {cells.a: cells.b(c)},
        lambda c: {cells.b: cells.a(c)},
        cells=cells,
    )
    assert (cells.a(context), cells.b(context)) == (2.0, 1.0)


def test_of_two_writers_of_one_state_the_last_wins_and_the_others_stay() -> None:
    cells = Cells()
    _, context = force(
        "discrete",
        lambda c: {cells.a: 10.0, cells.b: 20.0},
        lambda c: {cells.a: 11.0},
        lambda c: None,
        lambda c: {},
        cells=cells,
    )
    assert (cells.a(context), cells.b(context)) == (11.0, 20.0)


def test_updates_across_blocks_are_simultaneous_too() -> None:
    first, second = Cells("first"), Cells("second")
    seen: list[float] = []

    def add_updates(cells: Cells) -> None:
        cells.declare_discrete_update(lambda context: {cells.a: 9.0}, Forced())
        cells.declare_discrete_update(lambda context: seen.append(cells.a(context)[0]), Forced())

    add_updates(first)
    add_updates(second)
    diagram = diagram_of(first, second)
    context = diagram.create_default_context()
    diagram.forced_discrete_update(context)
    assert seen == [1.0, 1.0]
    assert (first.a(context), second.a(context)) == (9.0, 9.0)


def test_what_an_update_returned_is_copied() -> None:
    cells = Cells()
    vector, mode = np.array([1.0, 2.0]), ["a"]
    _, context = force("unrestricted", lambda c: {cells.x: vector, cells.mode: mode}, cells=cells)
    vector[:] = 9.0
    mode.append("b")
    assert cells.values(context) == [[1.0, 2.0], [1.0], [2.0], ["a"]]


@pytest.mark.parametrize(
    ("values", "changed"),
    [
        ({}, False),
        ({"a": 1.0, "b": [2.0], "x": [0.0, 0.0]}, False),
        ({"a": 1.5}, True),
        ({"a": 1.0, "x": [0.0, 1.0]}, True),
        ({"mode": "idle"}, True),
    ],
)
def test_running_updates_tells_whether_a_value_changed(
    values: dict[str, Any], changed: bool
) -> None:
    cells = Cells()
    handles = {cells.find(name): value for name, value in values.items()}
    cells.declare_unrestricted_update(lambda context: handles, Forced())
    context: Any = cells.create_default_context()
    assert run_updates([(context, event) for event in cells.events]) is changed
    for name, value in values.items():
        np.testing.assert_array_equal(np.ravel(context.get(name)), np.ravel(value))


def test_an_abstract_value_that_was_modified_in_place_still_makes_its_readers_stale() -> None:
    block = fx.LeafSystem("block")
    queue = block.declare_abstract_state("queue", [1])
    length = block.declare_vector_output(
        "length", 1, lambda context: len(queue(context)), prerequisites=[queue]
    )

    def append(context: Any) -> Any:
        queue(context).append(2)
        return {queue: queue(context)}

    block.declare_unrestricted_update(append, Forced())
    context = block.create_default_context()
    queue.set(context, [1])
    assert length.eval(context) == 1.0
    block.forced_unrestricted_update(context)
    assert length.eval(context) == 2.0


@pytest.mark.parametrize(
    ("kind", "bad", "error", "text"),
    [
        ("discrete", 3.0, EvaluationError, "expected a dictionary from handles of discrete state"),
        ("discrete", {"a": 3.0}, EvaluationError, "discrete state of 'cells' as keys; found 'a'"),
        ("discrete", "x", EvaluationError, "as keys; found <ContinuousState 'cells.x'>"),
        ("discrete", "mode", EvaluationError, "as keys; found <AbstractState 'cells.mode'>"),
        ("discrete", "k", EvaluationError, "as keys; found <NumericParameter 'cells.k'"),
        ("discrete", "foreign", EvaluationError, "as keys; found <ContinuousState 'lag.x'>"),
        ("unrestricted", "k", EvaluationError, "continuous state or discrete state or abstract"),
        ("unrestricted", "foreign", EvaluationError, "as keys; found <ContinuousState 'lag.x'>"),
        ("discrete", "size", ValueRefusedError, "expected a vector of size 1; found a vector"),
        ("discrete", "nan", ValueRefusedError, "expected finite numbers; found [nan]"),
        ("unrestricted", "nan", ValueRefusedError, "expected finite numbers; found [nan]"),
        ("unrestricted", "none", ValueRefusedError, "expected a vector of size 2; found None"),
    ],
)
def test_a_bad_result_is_refused_and_nothing_of_any_update_is_written(
    kind: str, bad: Any, error: type[Exception], text: str
) -> None:
    cells = Cells()
    special: dict[str, Any] = {
        "x": {cells.x: [1.0, 2.0]},
        "mode": {cells.mode: "on"},
        "k": {cells.k: 1.0},
        "foreign": {Lag().x: 1.0},
        "size": {cells.a: [1.0, 2.0]},
        "nan": {cells.b: math.nan},
        "none": {cells.x: None},
    }
    returned = special.get(bad, bad) if isinstance(bad, str) else bad
    declare = getattr(cells, f"declare_{kind}_update")
    declare(lambda c: {cells.a: 50.0}, Forced())
    declare(lambda c: {cells.b: 60.0, **returned} if returned != 3.0 else 3.0, Forced())
    context = cells.create_default_context()
    context.time = 1.5
    before = context.clone()
    with pytest.raises(error) as caught:
        getattr(cells, f"forced_{kind}_update")(context)
    assert f"Cannot use the result of the {kind} update 'cells.<lambda>'" in str(caught.value)
    assert text in str(caught.value)
    assert caught.value.__notes__ == ["while computing the update 'cells.<lambda>' at t = 1.5"]
    assert context == before


@pytest.mark.parametrize("kind", ["publish", "discrete_update", "unrestricted_update"])
def test_an_error_in_a_handler_keeps_its_type_and_gets_path_and_time(kind: str) -> None:
    cells = Cells()

    def explode(context: Any) -> Any:
        raise ZeroDivisionError("deep inside")

    if kind != "publish":
        getattr(cells, f"declare_{kind}")(lambda c: {cells.a: 50.0}, Forced())
    getattr(cells, f"declare_{kind}")(explode, Forced())
    diagram = diagram_of(cells)
    context = diagram.create_default_context()
    context.time = 0.25
    before = context.clone()
    with pytest.raises(ZeroDivisionError, match="deep inside") as caught:
        getattr(diagram, f"forced_{kind}")(context)
    word = "publish" if kind == "publish" else "update"
    assert caught.value.__notes__ == [f"while computing the {word} 'cells.explode' at t = 0.25"]
    assert context == before


def test_an_update_makes_what_depends_on_it_stale() -> None:
    cells = Cells()
    y = cells.declare_vector_output("y", 1, cells.a, prerequisites=[cells.a])
    cells.declare_discrete_update(lambda c: {cells.a: cells.a(c) + 1.0}, Forced())
    context = cells.create_default_context()
    values = []
    for _ in range(3):
        values.append(y.eval(context)[0])
        cells.forced_discrete_update(context)
    assert values == [1.0, 2.0, 3.0]


# Records ---------------------------------------------------------------------------------------


def test_every_context_has_its_own_records() -> None:
    block = fx.LeafSystem("logger")
    index = block.declare_record(list)
    block.declare_publish(lambda c: c.records[index].append(c.time), Forced())
    a: Any = block.create_default_context()
    b: Any = block.create_default_context()
    block.forced_publish(a)
    twin = a.clone()
    block.forced_publish(a)
    assert [context.records[index] for context in (a, b, twin)] == [[0.0, 0.0], [], [0.0]]
