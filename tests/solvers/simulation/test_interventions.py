"""Publishes that change the context of a run: parameters and inputs, in every kind of run."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams import Forced, Initialization, Periodic, PerStep, Witness
from flexure.diagrams.checks.errors import ContextError
from tests.support.native.native import needs_llvmlite

KINDS = [False, "python", pytest.param("native", marks=needs_llvmlite)]
pytestmark = pytest.mark.filterwarnings("ignore:Signals of 'leak' that read")
every_kind = pytest.mark.parametrize("compiled", KINDS, ids=str)


class Leak(fx.LeafSystem):
    """x′ = u - k x, with an operator who looks at it from time to time."""

    def __init__(self, operator: Callable[[Leak, Any], None], trigger: Any) -> None:
        super().__init__("leak")
        self.k = self.declare_numeric_parameter("k", 0.0, sparse=True)
        self.u = self.declare_vector_input("u", 1, default=0.0)
        self.x = self.declare_continuous_state(z=1, default=1.0)
        self._operator = operator
        self.declare_publish(self.look, trigger)

    def look(self, context: Any) -> None:
        self._operator(self, context)

    def calc_time_derivatives(self, context: Any) -> Any:
        return self.u(context) - self.k(context) * self.x(context)


def open_at_one(leak: Leak, context: Any) -> None:
    """Open the leak when a second has passed."""
    if context.time >= 1.0 and leak.k(context) == 0.0:
        leak.k.set(context, 2.0)


def fill_at_one(leak: Leak, context: Any) -> None:
    """Begin to fill when a second has passed."""
    if context.time >= 1.0 and leak.u(context)[0] == 0.0:
        leak.u.fix(context, 3.0)


def expected(operator: Any, since: float, until: float) -> float:
    """Return the state at the end in closed form."""
    passed = until - since
    return float(np.exp(-2.0 * passed)) if operator is open_at_one else 1.0 + 3.0 * passed


@every_kind
@pytest.mark.parametrize("operator", [open_at_one, fill_at_one])
@pytest.mark.parametrize("trigger", [Periodic(0.25), PerStep()], ids=["Periodic", "PerStep"])
def test_what_a_publish_sets_acts_from_the_end_of_its_step_on(
    operator: Any, trigger: Any, compiled: Any
) -> None:
    leak = Leak(operator, trigger)
    run = fx.simulate(
        leak, 3.0, method="RK45", rtol=1e-10, atol=1e-10, max_step=0.1, compiled=compiled
    )
    # The steps end anywhere, but the first one that ends at or after the publish is where it acts.
    x = run["x[0]"]
    begin = run.time[np.flatnonzero(x == 1.0)[-1]]
    assert 1.0 <= begin <= 1.1 + 1e-9
    assert x[-1] == pytest.approx(expected(operator, begin, 3.0), rel=1e-8)


@needs_llvmlite
@pytest.mark.parametrize("operator", [open_at_one, fill_at_one])
@pytest.mark.parametrize("trigger", [Periodic(0.25), PerStep()], ids=["Periodic", "PerStep"])
def test_native_runs_take_the_steps_of_interpreted_ones(operator: Any, trigger: Any) -> None:
    native, interpreted = (
        fx.simulate(Leak(operator, trigger), 3.0, method="RK45", compiled=compiled)
        for compiled in ("native", False)
    )
    np.testing.assert_allclose(native.time, interpreted.time, rtol=1e-10)
    np.testing.assert_allclose(native["x"], interpreted["x"], rtol=1e-10)
    for name in ("steps", "publishes", "restarts"):
        assert getattr(native.statistics, name) == getattr(interpreted.statistics, name)


@every_kind
def test_every_publish_takes_place_once(compiled: Any) -> None:
    times: list[float] = []

    def note(leak: Leak, context: Any) -> None:
        times.append(float(context.time))
        leak.k.set(context, 1.0 + context.time)

    fx.simulate(Leak(note, Periodic(0.25)), 2.0, method="RK45", compiled=compiled)
    assert times == pytest.approx(np.arange(0.0, 2.1, 0.25))


@every_kind
def test_what_changes_nothing_leaves_the_motion_alone(compiled: Any) -> None:
    watched, alone = (
        fx.simulate(Leak(lambda *_: None, trigger), 2.0, method="RK45", compiled=compiled)
        for trigger in (Periodic(0.25), Initialization())
    )
    np.testing.assert_array_equal(watched["x"], alone["x"])
    assert watched.statistics.restarts == alone.statistics.restarts == 1


@every_kind
@pytest.mark.parametrize("begin", [0.0, 1.0])
def test_signals_that_read_what_was_changed_are_named(compiled: Any, begin: float) -> None:
    def fill(leak: Leak, context: Any) -> None:
        if context.time >= begin and leak.u(context)[0] == 0.0:
            leak.u.fix(context, 3.0)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fx.simulate(Leak(fill, Periodic(0.25)), 2.0, method="RK45", compiled=compiled)
    texts = [str(each.message) for each in caught]
    assert len(texts) == (begin > 0.0)  # what is set at the start holds for the whole run
    assert all(text.startswith("Signals of 'leak' that read 'u' are") for text in texts)


# States and the time are not for publishes -------------------------------------------------------


class Meddler(fx.LeafSystem):
    """x′ = -x with a counter and perhaps a note, and a publish that meddles with something."""

    def __init__(
        self,
        meddle: Callable[[Meddler, Any], None],
        trigger: Any,
        *,
        noting: bool = False,
        updating: bool = False,
    ) -> None:
        super().__init__("meddler")
        self.x = self.declare_continuous_state(z=1, default=1.0)
        self.count = self.declare_discrete_state("count", 1.0)
        self.rate = self.declare_numeric_parameter("rate", 1.0)
        if noting:
            self.note = self.declare_abstract_state("note", "none")
        self._meddle = meddle
        declare = self.declare_discrete_update if updating else self.declare_publish
        declare(self.look, trigger)

    def look(self, context: Any) -> None:
        if context.time > 0.4:
            self._meddle(self, context)

    def calc_time_derivatives(self, context: Any) -> Any:
        return -self.rate(context) * self.x(context)


def set_time(block: Meddler, context: Any) -> None:
    context.root.time = 0.0


def copy_all(block: Meddler, context: Any) -> None:
    context.root.copy_from(context.root.clone())


MEDDLING: dict[str, Callable[[Meddler, Any], None]] = {
    "the time": set_time,
    "the continuous state": lambda block, context: block.x.set(context, 5.0),
    "a discrete state of 'meddler'": lambda block, context: block.count.set(context, 5.0),
    "an abstract state of 'meddler'": lambda block, context: block.note.set(context, "five"),
    "all values": copy_all,
}
TRIGGERS = [
    Periodic(0.25),
    PerStep(),
    Witness(lambda context: context.time - 0.5),
]


@every_kind
@pytest.mark.parametrize("what", MEDDLING)
@pytest.mark.parametrize("trigger", TRIGGERS, ids=["Periodic", "PerStep", "Witness"])
def test_a_publish_that_sets_a_state_or_the_time_is_refused(
    trigger: Any, what: str, compiled: Any
) -> None:
    noting = "abstract" in what
    block = Meddler(MEDDLING[what], trigger, noting=noting)
    if noting and compiled == "native":
        compiled = True  # abstract states are Python's
    simulator = fx.Simulator(block, method="RK45", compiled=compiled)
    found = rf"Cannot set {what} at t = .*the publish 'meddler.look'.*from an unrestricted"
    with pytest.raises(ContextError, match=found):
        simulator.advance_to(1.0)
    context = simulator.context
    assert 0.4 < context.time <= 1.0
    np.testing.assert_allclose(context.continuous_state, np.exp(-context.time), rtol=1e-5)
    assert block.count.get(context) == 1.0
    assert not noting or block.note.get(context) == "none"
    context.time = 0.0  # the run is over


@pytest.mark.parametrize("compiled", [True, "python", False])
@pytest.mark.parametrize("what", ["a discrete state of", "parameter"])
def test_an_update_that_sets_something_instead_of_returning_it_is_refused(
    what: str, compiled: Any
) -> None:
    def meddle(block: Meddler, context: Any) -> None:
        (block.rate if what == "parameter" else block.count).set(context, 5.0)

    block = Meddler(meddle, Periodic(0.25), updating=True)
    found = rf"Cannot set {what} 'meddler.*found the update 'meddler.look'.*change nothing"
    with pytest.raises(ContextError, match=found):
        fx.simulate(block, 1.0, compiled=compiled)


@pytest.mark.parametrize("what", MEDDLING)
def test_a_monitor_that_does_so_is_refused(what: str) -> None:
    block = Meddler(lambda block, context: None, Forced(), noting=True)
    simulator = fx.Simulator(block, monitor=lambda context: MEDDLING[what](block, context))
    with pytest.raises(ContextError, match=f"Cannot set {what}.*found the monitor, which may read"):
        simulator.advance_to(1.0)


def test_a_publish_may_do_what_it_likes_with_a_clone() -> None:
    def look(block: Meddler, context: Any) -> None:
        twin = context.root.clone()
        twin.continuous_state = [5.0]
        fx.simulate(block, twin.time + 1.0, context=twin)

    simulator = fx.Simulator(Meddler(look, Witness(lambda context: context.time - 0.5)))
    simulator.advance_to(1.0)
    np.testing.assert_allclose(simulator.context.continuous_state, np.exp(-1.0), rtol=1e-5)
