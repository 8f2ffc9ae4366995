"""What native code cannot do is left to Python, which says why, and gives the same results."""

from __future__ import annotations

import copy
import gc
import itertools
import random
import re
import sys
import threading
import time
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cache, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import NativeCodeError
from tests.support.native.native import needs_llvmlite
from tests.support.native.native_runs import run
from tests.support.systems.event_systems import Oscillator, bouncing, foreign

pytestmark = needs_llvmlite

HITS: list[float] = []
COUNT = 0


class Shelf:
    """Something beside the block."""

    def __init__(self) -> None:
        self.count = 0


class Slotted:
    """Something without a dictionary."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class Keeper(fx.LeafSystem):
    """A counter whose update keeps something for itself."""

    shared: ClassVar[list[float]] = []
    total = 0

    def __init__(self, keep: Callable[[Keeper, float], Any]) -> None:
        super().__init__("keeper")
        self.keep = keep
        self.hits: list[float] = []
        self.deep = {"hits": [deque([0.0])]}
        self.marks: set[float] = set()
        self.shelf, self.slotted = Shelf(), Slotted()
        self.array = np.zeros(2)
        self.calls = 0
        self.ids: Any = itertools.count() if keep is advance else None
        self.meeting: tuple[Any, ...] = ()
        self.x = self.declare_continuous_state(z=1, default=[1.0])
        self.n = self.declare_discrete_state("n", 0.0)
        self.declare_discrete_update(self.count, fx.diagrams.Periodic(0.25))

    def calc_time_derivatives(self, context: Any) -> Any:
        return -self.x(context)

    def count(self, context: Any) -> Any:
        self.keep(self, context.time)
        return {self.n: self.n(context) + 1.0}

    def note_in_a_method(self, time: float) -> None:
        HITS.append(time)

    def kept(self) -> Any:
        """Return everything that a handler may have kept."""
        return [
            *(self.hits, self.deep, self.marks, self.shelf.count, self.slotted.count),
            *(self.array.tolist(), self.calls, repr(self.ids), HITS, COUNT),
            *(self.shared, type(self).total, DEFAULT, KEYWORD, *vars(note).values()),
        ]

    @classmethod
    def forget(cls) -> None:
        """Put back what is outside of blocks."""
        global COUNT  # noqa: PLW0603, this is about global variables
        COUNT = 0
        for each in (HITS, cls.shared, DEFAULT, KEYWORD):
            each.clear()
        cls.total = vars(note)["count"] = 0


def count_globally(block: Keeper, time: float) -> None:
    global COUNT  # noqa: PLW0603
    COUNT += 1


def count_in_a_class(block: Keeper, time: float) -> None:
    Keeper.total += 1


def advance(block: Keeper, time: float) -> None:
    next(block.ids)


DEFAULT: list[float] = []
KEYWORD: list[float] = []


def note(block: Keeper, time: float, hits: list[float] = DEFAULT) -> None:
    hits.append(time)


def count_calls(block: Keeper, time: float) -> None:
    vars(note)["count"] += 1


vars(note)["count"] = 0


def keyword(block: Keeper, time: float, *, hits: list[float]) -> None:
    hits.append(time)


def counting() -> Callable[[Keeper, float], None]:
    calls = 0

    def count(block: Keeper, time: float) -> None:
        nonlocal calls
        calls += 1
        block.calls = calls

    return count


def increment(thing: Any) -> None:
    thing.count += 1


KEEPERS: dict[str, Callable[[], Callable[[Keeper, float], Any]]] = {
    "a list of the block": lambda: lambda block, time: block.hits.append(time),
    "a deque in a list in a dictionary": lambda: (
        lambda block, time: block.deep["hits"][0].append(time)
    ),
    "a set": lambda: lambda block, time: block.marks.add(time),
    "an attribute": lambda: lambda block, time: setattr(block, "calls", block.calls + 1),
    "an attribute of another object": lambda: lambda block, time: increment(block.shelf),
    "a slot of another object": lambda: lambda block, time: increment(block.slotted),
    "an array": lambda: lambda block, time: np.add(block.array, 1.0, out=block.array),
    "an iterator": lambda: advance,
    "a variable of a closure": counting,
    "a global list": lambda: lambda block, time: HITS.append(time),
    "a global list in another method": lambda: lambda block, time: block.note_in_a_method(time),
    "a global number": lambda: count_globally,
    "a list of the class": lambda: lambda block, time: block.shared.append(time),
    "a number of the class": lambda: count_in_a_class,
    "a default argument": lambda: note,
    "a keyword of a partial function": lambda: partial(keyword, hits=KEYWORD),
    "an attribute of a function": lambda: count_calls,
}


@pytest.mark.parametrize("keep", KEEPERS.values(), ids=KEEPERS)
def test_an_update_that_keeps_something_is_run_by_python_alone(
    keep: Callable[[], Callable[[Keeper, float], Any]],
) -> None:
    found = []
    for compiled in (True, False):
        Keeper.forget()
        block = Keeper(keep())
        simulator = run(block, compiled, [1.1], method="RK45")
        found.append((copy.deepcopy(block.kept()), simulator.context.get("n").tolist()))
        if compiled:
            assert "no native code, because 'keeper.count' cannot be traced" in simulator.explain()
    Keeper.forget()
    assert found[0] == found[1]
    assert found[0][1] == [5.0]


def meet(block: Keeper, time: float) -> None:
    """Keep something; when it is tried out, let another thread look and keep something, too."""
    block.hits.append(time)
    HITS.append(time)
    Keeper.total += 1
    if scalars.is_symbolic(time) and Keeper.total == 1:
        block.meeting[0].release()
        block.meeting[1].acquire()


def test_while_an_update_is_tried_out_other_threads_find_everything_as_it_was() -> None:
    Keeper.forget()
    block = Keeper(meet)
    seen: list[Any] = []
    block.meeting = ready, done = threading.Lock(), threading.Lock()
    ready.acquire(), done.acquire()

    def visit() -> None:
        ready.acquire(timeout=100.0)
        seen.extend([*block.hits, *HITS, Keeper.total, block.note_in_a_method])
        HITS.append(-1.0)
        block.hits.append(-1.0)
        done.release()

    visitor = threading.Thread(target=visit)
    visitor.start()
    run(block, True, [0.1], method="RK45")
    visitor.join()
    kept = HITS.copy(), block.hits.copy(), Keeper.total
    Keeper.forget()
    assert seen == [0, block.note_in_a_method]
    assert kept == ([-1.0, 0.0], [-1.0, 0.0], 1)


class Mode(Enum):
    SLOW, FAST = 1.0, 2.0


class Gains(NamedTuple):
    p: float
    shelves: list[float]


@dataclass(frozen=True, slots=True)
class Law:
    gains: Gains

    def __call__(self, x: Any) -> Any:
        return self.gains.p * x + self.gains.shelves[0]


@cache
def doubled(x: float) -> float:
    return 2.0 * x


class Base(fx.LeafSystem):
    """A block that uses, but does not change, many kinds of things."""

    offset: ClassVar[dict[str, float]] = OrderedDict(a=0.25)

    def __init__(self) -> None:
        super().__init__("base")
        self.x = self.declare_continuous_state(z=1, default=[1.0])
        self.n = self.declare_discrete_state("n", 0.0)
        self.declare_discrete_update(self.renew, fx.diagrams.Periodic(0.25))
        self.law = Law(Gains(0.5, [0.125]))
        self.counts = defaultdict(float, {"a": 1.0})
        self.modes = frozenset({Mode.FAST, Mode.SLOW})
        self.itself = {"me": self}
        self.open = 1.0  # named like a function that is refused

    def calc_time_derivatives(self, context: Any) -> Any:
        return self.n(context) - self.x(context)

    @property
    def shift(self) -> float:
        return self.offset["a"] + doubled(self.counts["a"])

    @staticmethod
    def half(x: Any) -> Any:
        return np.multiply(x, 0.5)

    @classmethod
    def all_of(cls, *terms: Any) -> Any:
        assert issubclass(cls, Base)
        return sum(terms)

    def renew(self, context: Any) -> Any:
        return {self.n: self.law(self.half(self.open * self.n(context)))}


class Derived(Base):
    """A block that builds on another."""

    def renew(self, context: Any) -> Any:
        assert isinstance(self, Derived)
        assert Mode.FAST in self.modes
        assert self.itself["me"] is self
        below = super().renew(context)[self.n]
        return {self.n: self.all_of(below, self.shift, Mode.FAST.value)}


def test_an_update_that_only_reads_what_it_can_reach_is_compiled() -> None:
    found = [run(Derived(), c, [1.1], method="RK45").context.get("n") for c in ("native", False)]
    np.testing.assert_array_equal(*found)


class Resource:
    """Something whose end has consequences."""

    closed = 0

    def __del__(self) -> None:
        Resource.closed += 1


def nested() -> list[Any]:
    """Return lists in lists, about as deep as a program may go."""
    found: list[Any] = []
    for _ in range(4 * sys.getrecursionlimit()):
        found = [found]
    return found


@pytest.mark.parametrize("make", [Resource, nested], ids=["resource", "nested"])
def test_an_update_that_can_reach_what_has_no_replica_stays_interpreted(
    make: Callable[[], Any],
) -> None:
    gc.collect()  # what other tests have left
    Resource.closed = 0
    block = Keeper(lambda block, time: None)
    block.resource = make()  # type: ignore[attr-defined]
    simulator = run(block, True, [1.1], method="RK45")
    assert "cannot be replicated" in simulator.explain()
    assert Resource.closed == 0
    assert simulator.context.get("n").tolist() == [5.0]


class Drawing(fx.LeafSystem):
    """An update whose result is no function of the context."""

    def __init__(self, draw: Callable[[], float]) -> None:
        super().__init__("drawing")
        self.draw = draw
        self.x = self.declare_continuous_state(z=1, default=[1.0])
        self.n = self.declare_discrete_state("n", 0.0)
        self.declare_discrete_update(self.renew, fx.diagrams.Periodic(0.25))

    def calc_time_derivatives(self, context: Any) -> Any:
        return self.n(context) - self.x(context)

    def renew(self, context: Any) -> Any:
        return {self.n: self.n(context) + self.draw()}


def seeded() -> float:
    return random.random()


DRAWS: dict[str, Callable[[], Callable[[], float]]] = {
    "a generator of numpy": lambda: np.random.default_rng(3).normal,
    "a generator of Python": lambda: random.Random(3).random,
    "the generator of a module": lambda: seeded,
    "an iterator": lambda: partial(next, iter([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_an_update_that_draws_numbers_draws_the_same_ones(draw: Any) -> None:
    found = []
    for compiled in (True, False):
        random.seed(3)
        simulator = run(Drawing(draw()), compiled, [1.1], method="RK45")
        assert simulator.statistics.native_steps == 0
        found.append(simulator.context.get("n").tolist())
    assert found[0] == found[1]


def test_an_update_that_depends_on_the_clock_on_the_wall_stays_interpreted() -> None:
    simulator = run(Drawing(time.perf_counter), True, [1.1], method="RK45")
    assert "another result when it is called again" in simulator.explain()


@pytest.mark.parametrize("method", ["RK45", "Rodas5P"])
def test_an_update_that_prints_prints_numbers(
    method: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def speak() -> float:
        print("tick")
        return 1.0

    run(Drawing(speak), True, [1.1], method=method)
    assert capsys.readouterr().out.split() == ["tick"] * 5


class Handing(Drawing):
    """A block that hands `print` on, behind itself."""

    def __init__(self) -> None:
        super().__init__(lambda: 1.0)

    def renew(self, context: Any) -> Any:
        use(self, print)
        return super().renew(context)


def use(block: Handing, function: Callable[[str], None]) -> None:
    function("tick")


def test_an_update_that_hands_a_function_on_is_no_reader_of_an_attribute(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run(Handing(), True, [1.1], method="RK45")
    assert capsys.readouterr().out.split() == ["tick"] * 5


class Counting(fx.LeafSystem):
    """Equations with a hidden state, which no trace can follow."""

    def __init__(self, where: str) -> None:
        super().__init__("counting")
        self.where = where
        self.calls = {"derivatives": 0, "output": 0}
        self.x = self.declare_continuous_state(z=1, default=[1.0])
        self.y = self.declare_vector_output("y", 1, self.calc_y)
        self.u = self.declare_vector_input("u", 1)

    def factor(self, where: str) -> float:
        self.calls[where] += self.where == where
        return float(self.calls[where])

    def calc_y(self, context: Any) -> Any:
        return self.factor("output") * context.time

    def calc_time_derivatives(self, context: Any) -> Any:
        return self.u(context) - self.factor("derivatives")


@pytest.mark.parametrize(
    ("where", "reader"), [("derivatives", "counting"), ("output", "counting"), ("output", "log")]
)
def test_equations_that_give_other_numbers_than_their_trace_stay_interpreted(
    where: str, reader: str
) -> None:
    builder = fx.DiagramBuilder("diagram")
    builder.add_all(Counting(where), fx.Constant("one", 1.0), fx.VectorLog("log", period=0.1))
    builder.connect("counting.y", f"{reader}.u")
    builder.connect("one.y", "log.u" if reader == "counting" else "counting.u")
    simulator = fx.Simulator(builder.build(), method="RK45")
    simulator.context.time = 1.0
    simulator.advance_to(2.0)
    assert simulator.statistics.native_steps == 0
    assert "gave other numbers" in simulator.explain()


class PerStepUpdate(Oscillator):
    """An oscillator that counts the steps of the integrator."""

    def __init__(self) -> None:
        super().__init__()
        self.n = self.declare_discrete_state("n", 0.0)
        self.declare_discrete_update(self.count, fx.diagrams.PerStep())

    def count(self, context: Any) -> Any:
        return {self.n: self.n(context) + 1.0}


class Setting(fx.LeafSystem):
    """A block whose equations set a parameter, and then use it."""

    def __init__(self) -> None:
        super().__init__("setting")
        self.rate = self.declare_numeric_parameter("rate", 1.0)
        self.x = self.declare_continuous_state(z=1, default=[1.0])

    def calc_time_derivatives(self, context: Any) -> Any:
        self.rate.set(context, 2.0)
        return -self.rate(context) * self.x(context)


REFUSALS: dict[str, tuple[Callable[[], fx.System], dict[str, Any], str]] = {
    "a monitor": (Oscillator, {"monitor": lambda context: None}, "a monitor reads every step"),
    "no isolation": (bouncing, {"isolate": False}, "witness events are not isolated"),
    "an update at every step": (PerStepUpdate, {}, "'oscillator.count' updates at every step"),
    "an equation that sets": (Setting, {}, "cannot set parameter 'setting.rate'"),
    "a foreign function": (foreign, {}, r"cannot use a symbol as float\(\), a function of math"),
}


@pytest.mark.parametrize(("make", "options", "why"), REFUSALS.values(), ids=REFUSALS)
def test_what_has_no_native_code_says_why(
    make: Callable[[], fx.System], options: dict[str, Any], why: str
) -> None:
    reference, simulator = (run(make(), c, [1.1], **options) for c in (False, True))
    assert simulator.statistics.native_steps == 0
    assert simulator.context.store.x.tolist() == reference.context.store.x.tolist()
    assert re.search(f"; no native code, because {why}", simulator.explain())
    with pytest.raises(NativeCodeError, match=why) as caught:
        run(make(), "native", [1.1], **options)
    assert caught.value.remedy == "Keep compiled=True, which uses native code where possible"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"method": "rk4", "step": 0.01}, "rk4 has no native loop"),
        ({"method": "Radau"}, "Radau has no native loop"),
    ],
    ids=str,
)
def test_methods_without_native_loops_say_so(options: dict[str, Any], why: str) -> None:
    simulator = run(Oscillator(), True, [1.1], **options)
    assert simulator.statistics.native_steps == 0
    assert f"no native code, because {why}" in simulator.explain()
    with pytest.raises(NativeCodeError, match=f"found {why}"):
        run(Oscillator(), "native", [1.1], **options)
