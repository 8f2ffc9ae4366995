"""What is computed, in which order, how often, and what a change makes stale."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import EvaluationError
from tests.support.systems.blocks import Adder, Constant, Gain, Lag, diagram_of, nested

# What an output of "Counting" depends on, by the name of its count.
STATE = {"x", "entry", "of_entry"}
ALL = STATE | {"k", "time", "n", "mode", "u", "w"}


class Counting(fx.LeafSystem):
    """One of every source of values, an output for each, and a count of the calculations."""

    def __init__(self, name: str = "block") -> None:
        super().__init__(name)
        self.counts: Counter[str] = Counter()
        self.k = self.declare_numeric_parameter("k", 1.0)
        self.table = self.declare_abstract_parameter("table", 10.0)
        self.x = self.declare_continuous_state(z=1)
        self.n = self.declare_discrete_state("n", 100.0)
        self.mode = self.declare_abstract_state("mode", 1000.0)
        self.u = self.declare_vector_input("u", 1, default=0.0)
        self.w = self.declare_vector_input("w", 1, default=0.0)
        sources: dict[str, Any] = {
            "time": fx.TIME,
            "x": self.x,
            "n": self.n,
            "mode": self.mode,
            "u": self.u,
            "w": self.w,
        }
        self.outputs = {"k": self.output("k", lambda c: self.k(c) + self.table(c), [])}
        for source, handle in sources.items():
            read = (lambda c: c.time) if handle == fx.TIME else handle
            self.outputs[source] = self.output(source, read, [handle])
        self.entry = self.declare_cache_entry(
            "entry", self.counted("entry", self.x), prerequisites=[self.x]
        )
        self.outputs["of_entry"] = self.output("of_entry", self.entry, [self.entry])

    def output(self, name: str, read: Callable[[Any], Any], reads: Iterable[Any]) -> Any:
        return self.declare_vector_output(
            f"y_{name}", 1, self.counted(name, read), prerequisites=reads
        )

    def counted(self, name: str, read: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def calc(context: Any) -> Any:
            self.counts[name] += 1
            return read(context)

        return calc

    def calc_time_derivatives(self, context: Any) -> Any:
        self.counts["derivatives"] += 1
        return self.u(context)

    def recomputed(self, context: fx.Context, change: Callable[[], object]) -> set[str]:
        """Evaluate everything, change something, evaluate again: return what was computed."""
        for port in self.outputs.values():
            port.eval(context)
        self.counts.clear()
        change()
        for port in self.outputs.values():
            port.eval(context)
            port.eval(context)
        assert set(self.counts.values()) <= {1}
        return set(self.counts)


@pytest.fixture
def block() -> Counting:
    return Counting()


@pytest.fixture(params=["alone", "nested"])
def context(block: Counting, request: pytest.FixtureRequest) -> fx.Context:
    """A context of the block alone, and one of a diagram with another block beside it."""
    if request.param == "alone":
        return block.create_default_context()
    return diagram_of(Lag("lag"), diagram_of(block), name="outer").create_default_context()


# Staleness -------------------------------------------------------------------------------------


def test_nothing_is_computed_twice_without_a_change(block: Counting, context: fx.Context) -> None:
    assert block.recomputed(context, lambda: None) == set()


@pytest.mark.parametrize(
    ("path", "value", "stale"),
    [
        ("x", 5.0, STATE),
        ("n", 5.0, {"n"}),
        ("mode", 5.0, {"mode"}),
        ("u", 5.0, {"u"}),
        ("w", 5.0, {"w"}),
        ("k", 5.0, ALL),
        ("table", 5.0, ALL),
    ],
)
def test_a_change_of_a_value_makes_stale_what_depends_on_it(
    block: Counting, context: fx.Context, path: str, value: float, stale: set[str]
) -> None:
    window = context.find(block)
    assert block.recomputed(context, lambda: window.set(path, value)) == stale
    if path in block.outputs:
        assert block.outputs[path].eval(context) == value + (10.0 if path == "k" else 0.0)


def test_a_change_of_time_makes_stale_what_depends_on_time(
    block: Counting, context: fx.Context
) -> None:
    assert block.recomputed(context, lambda: setattr(context, "time", 3.0)) == {"time"}
    assert block.outputs["time"].eval(context) == 3.0


def test_motion_makes_stale_what_depends_on_time_or_state(
    block: Counting, context: fx.Context
) -> None:
    x = np.full(context.continuous_state.size, 4.0)
    found = block.recomputed(context, lambda: context.store.set_motion(3.0, x))
    assert found == STATE | {"time"}
    assert (block.outputs["time"].eval(context), block.outputs["x"].eval(context)) == (3.0, 4.0)


def test_a_new_state_of_the_whole_reaches_every_block(block: Counting, context: fx.Context) -> None:
    def change() -> None:
        context.continuous_state = np.full(context.continuous_state.size, 6.0)

    assert block.recomputed(context, change) == STATE
    assert block.outputs["of_entry"].eval(context) == 6.0


def test_changes_of_accuracy_or_of_another_context_make_nothing_stale(
    block: Counting, context: fx.Context
) -> None:
    other = context.clone()

    def change() -> None:
        context.accuracy = 1e-3
        other.time = 9.0
        block.k.set(other, 9.0)
        block.x.set(other, 9.0)

    assert block.recomputed(context, change) == set()


def test_a_clone_keeps_what_was_computed_and_goes_its_own_way(
    block: Counting, context: fx.Context
) -> None:
    for port in block.outputs.values():
        port.eval(context)
    block.counts.clear()
    twin = context.clone()
    for port in block.outputs.values():
        port.eval(twin)
    assert not block.counts
    block.x.set(twin, 8.0)
    assert (block.outputs["of_entry"].eval(twin), block.outputs["of_entry"].eval(context)) == (
        8.0,
        0.0,
    )


def test_changes_of_one_block_leave_equal_blocks_alone() -> None:
    a, b = Counting("a"), Counting("b")
    context = diagram_of(a, b).create_default_context()

    def change() -> None:
        for path in ("x", "n", "mode", "u", "k"):
            context.set(f"a.{path}", 3.0)

    assert b.recomputed(context, change) == set()


def test_an_output_of_parameters_only_outlives_every_other_change(
    block: Counting, context: fx.Context
) -> None:
    window = context.find(block)

    def change() -> None:
        for path in ("x", "n", "mode", "u"):
            window.set(path, 3.0)
        context.time = 7.0
        context.store.set_motion(8.0, np.zeros(context.continuous_state.size))

    assert "k" not in block.recomputed(context, change)


def test_refused_changes_make_nothing_stale(block: Counting, context: fx.Context) -> None:
    def change() -> None:
        for path in ("k", "x", "n", "u"):
            with pytest.raises(ValueError, match="Cannot"):
                context.find(block).set(path, "wrong")

    assert block.recomputed(context, change) == set()


# Staleness across blocks -----------------------------------------------------------------------


def wire_counting(*links: tuple[str, str]) -> tuple[fx.Diagram, dict[str, Counting]]:
    """Wire outputs to inputs of counting blocks "a", "b" and "c"."""
    blocks = {name: Counting(name) for name in "abc"}
    builder = fx.DiagramBuilder()
    builder.add_all(*blocks.values())
    for source, target in links:
        builder.connect(source, target)
    return builder.build(), blocks


@pytest.mark.parametrize("name", ["a", "b", "c"])
@pytest.mark.parametrize(
    ("path", "stale"),
    [
        ("a.x", {"a": STATE, "b": {"u"}, "c": {"u"}}),
        ("a.n", {"a": {"n"}, "b": set(), "c": {"w"}}),
        ("b.k", {"a": set(), "b": ALL, "c": {"u"}}),
        ("b.w", {"a": set(), "b": {"w"}, "c": set()}),
        ("c.x", {"a": set(), "b": set(), "c": STATE}),
    ],
)
def test_a_change_travels_along_the_wires_it_concerns(
    path: str, stale: dict[str, set[str]], name: str
) -> None:
    diagram, blocks = wire_counting(("a.y_x", "b.u"), ("b.y_u", "c.u"), ("a.y_n", "c.w"))
    context = diagram.create_default_context()
    assert blocks[name].recomputed(context, lambda: context.set(path, 5.0)) == stale[name]


def test_values_arrive_through_several_blocks() -> None:
    diagram, blocks = wire_counting(("a.y_x", "b.u"), ("b.y_u", "c.u"))
    context = diagram.create_default_context()
    for value in (1.0, 2.0):
        context.set("a.x", value)
        assert blocks["c"].outputs["u"].eval(context) == value


def test_derivatives_compute_each_output_once_however_many_read_it() -> None:
    source = Counting("source")
    builder = fx.DiagramBuilder()
    builder.add(source)
    for k in range(5):
        builder.add_all(Gain(f"g{k}"), Lag(f"lag{k}"))
        builder.connect_chain("source.y_x", f"g{k}", f"lag{k}")
    diagram = builder.build()
    context = diagram.create_default_context()
    source.x.set(context, 3.0)
    derivatives = diagram.eval_time_derivatives(context)
    np.testing.assert_array_equal(derivatives, [0.0, *[6.0] * 5])
    assert source.counts == {"x": 1, "derivatives": 1}
    diagram.eval_time_derivatives(context)
    assert source.counts["x"] == 1


def test_only_what_is_asked_for_is_computed() -> None:
    diagram, blocks = wire_counting(("a.y_x", "b.u"), ("b.y_u", "c.u"))
    context = diagram.create_default_context()
    blocks["b"].outputs["u"].eval(context)
    assert blocks["a"].counts == {"x": 1}
    assert blocks["b"].counts == {"u": 1}
    assert blocks["c"].counts == {}


# Cache entries ---------------------------------------------------------------------------------


class Shared(fx.LeafSystem):
    """Two outputs and the derivative share a cache entry, which needs another one."""

    def __init__(self) -> None:
        super().__init__("shared")
        self.counts: Counter[str] = Counter()
        self.x = self.declare_continuous_state(z=1, default=2.0)
        self.u = self.declare_vector_input("u", 1, default=1.0)
        self.square = self.declare_cache_entry("square", self.calc_square, prerequisites=[self.x])
        self.sum = self.declare_cache_entry(
            "sum", self.calc_sum, prerequisites=[self.square, self.u]
        )
        self.y = self.declare_vector_output("y", 1, self.sum, prerequisites=[self.sum])
        self.z = self.declare_vector_output(
            "z", 1, lambda c: -self.sum(c), prerequisites=[self.sum]
        )

    def calc_square(self, context: Any) -> Any:
        self.counts["square"] += 1
        return self.x(context) ** 2

    def calc_sum(self, context: Any) -> Any:
        self.counts["sum"] += 1
        return self.square(context) + self.u(context)

    def calc_time_derivatives(self, context: Any) -> Any:
        return self.sum(context)


def test_cache_entries_are_computed_once_per_change_of_their_prerequisites() -> None:
    block = Shared()
    context = block.create_default_context()

    def values() -> list[float]:
        derivatives = block.eval_time_derivatives(context)
        return [float(v[0]) for v in (block.y.eval(context), block.z.eval(context), derivatives)]

    assert values() == [5.0, -5.0, 5.0]
    assert block.counts == {"square": 1, "sum": 1}
    block.u.fix(context, 2.0)
    assert values() == [6.0, -6.0, 6.0]
    assert block.counts == {"square": 1, "sum": 2}
    block.x.set(context, 3.0)
    assert values() == [11.0, -11.0, 11.0]
    assert block.counts == {"square": 2, "sum": 3}
    context.time = 1.0
    assert values() == [11.0, -11.0, 11.0]
    assert block.counts == {"square": 2, "sum": 3}


# Order -----------------------------------------------------------------------------------------


class Diamond(fx.LeafSystem):
    """Outputs that read one cache entry, with and without saying so."""

    def __init__(self, order: tuple[str, ...]) -> None:
        super().__init__("diamond")
        self.count = 0
        self.u = self.declare_vector_input("u", 1)
        self.entry = self.declare_cache_entry("entry", self.calc_entry, prerequisites=[self.u])
        for name in order:
            self.declare_vector_output(
                name, 1, self.calc_y, prerequisites=[self.entry] if name == "declared" else None
            )

    def calc_entry(self, context: Any) -> Any:
        self.count += isinstance(context, fx.Context)
        return 2.0 * self.u(context)

    def calc_y(self, context: Any) -> Any:
        return self.entry(context)


@pytest.mark.parametrize("order", [("traced", "declared"), ("declared", "traced")])
def test_a_value_that_was_read_ahead_of_its_turn_is_not_computed_again(
    order: tuple[str, str],
) -> None:
    diamond = Diamond(order)
    builder = fx.DiagramBuilder()
    builder.add_all(Constant("source", 3.0), diamond, Adder("sum"))
    builder.connect("source.y", "diamond.u")
    builder.connect("diamond.traced", "sum.u1")
    builder.connect("diamond.declared", "sum.u2")
    context = builder.build().create_default_context()
    assert context.get("sum.y") == 12.0
    assert diamond.count == 1


def test_an_output_may_read_another_output_of_its_block() -> None:
    class Chained(fx.LeafSystem):
        def __init__(self) -> None:
            super().__init__("chained")
            self.second = self.declare_vector_output("second", 1, self.calc_second)
            self.x = self.declare_continuous_state(z=1, default=3.0)
            self.first = self.declare_vector_output("first", 1, self.x, prerequisites=[self.x])

        def calc_second(self, context: Any) -> Any:
            return 2.0 * self.first(context)

        def calc_time_derivatives(self, context: Any) -> Any:
            return 0.0

    chained = Chained()
    builder = fx.DiagramBuilder()
    builder.add_all(chained, Adder("sum"))
    builder.connect("chained.second", "sum.u1")
    builder.connect("chained.first", "sum.u2")
    context = builder.build().create_default_context()
    assert context.get("sum.y") == 9.0
    chained.x.set(context, 4.0)
    assert context.get("sum.y") == 12.0


def cascade(count: int, *, backwards: bool = False) -> tuple[fx.Diagram, list[Gain]]:
    """Wire many gains one after the other, added in one order or the other."""
    gains = [Gain(f"g{k}", 1.0) for k in range(count)]
    builder = fx.DiagramBuilder()
    builder.add_all(*(reversed(gains) if backwards else gains))
    builder.connect_chain(*gains)
    builder.export_input(gains[0].u)
    builder.export_output(gains[-1].y)
    return builder.build(), gains


@pytest.mark.parametrize("backwards", [False, True])
def test_a_cascade_far_beyond_the_recursion_limit_works(backwards: bool) -> None:
    diagram, gains = cascade(5000, backwards=backwards)
    assert diagram.feedthrough == {("u", "y")}
    context = diagram.create_default_context()
    context.set("u", 3.0)
    assert context.get("y") == 3.0
    gains[7].k.set(context, 2.0)
    assert context.get("y") == 6.0
    context.set("u", 1.0)
    assert context.clone().get("y") == 2.0


def test_a_cascade_of_integrators_far_beyond_the_recursion_limit_works() -> None:
    count = 3000
    builder = fx.DiagramBuilder()
    lags = [Lag(f"lag{k}") for k in range(count)]
    gains = [Gain(f"g{k}", 1.0) for k in range(count)]
    builder.add_all(*lags, *gains)
    builder.connect_chain(*lags, *gains, lags[0].u)
    diagram = builder.build()
    context = diagram.create_default_context()
    x = np.random.default_rng(0).normal(size=count)
    context.continuous_state = x
    np.testing.assert_allclose(diagram.eval_time_derivatives(context), np.roll(x, 1) - x)


def test_two_hundred_levels_of_nesting_work() -> None:
    gain = Gain("gain", 3.0)
    diagram = nested(gain, 200)
    assert gain.path == ".".join([*(f"d{k}" for k in range(199, 0, -1)), "gain"])
    assert diagram.feedthrough == {("u", "y")}
    context = diagram.create_default_context()
    context.set("u", 2.0)
    assert context.get("y") == 6.0
    gain.k.set(context, 4.0)
    assert context.get("y") == gain.y.eval(context) == 8.0
    assert context[gain.path].get("k") == 4.0
    assert diagram.context_from_dict(context.to_dict()) == context


# Undeclared reads ------------------------------------------------------------------------------


class Liar(Gain):
    """A gain that claims to read nothing."""

    def __init__(self, name: str) -> None:
        fx.LeafSystem.__init__(self, name)
        self.opaque = False
        self.k = self.declare_numeric_parameter("k", 2.0)
        self.u = self.declare_vector_input("u", 1)
        self.y = self.declare_vector_output("y", 1, self.calc_y, prerequisites=[])


def test_undeclared_reads_in_a_loop_end_in_an_error_with_the_way_out() -> None:
    builder = fx.DiagramBuilder()
    builder.add_all(Liar("a"), Liar("b"), Gain("c"), Lag("lag"))
    builder.connect_chain("a", "b", "c", "a.u")
    builder.connect("c.y", "lag.u")
    diagram = builder.build()
    context = diagram.create_default_context()
    uses = [partial(context.get, path) for path in ("a.y", "b.y", "c.y", "c.u", "lag.u")]
    for use in (*uses, partial(diagram.eval_time_derivatives, context)):
        with pytest.raises(EvaluationError) as caught:
            use()
        text = str(caught.value)
        assert "Cannot evaluate output port" in text
        assert "expected calculations that read only their declared prerequisites" in text
        assert "Complete the prerequisites in the declaration" in text
        assert len(caught.value.__notes__) == 1


def test_an_undeclared_read_of_itself_ends_in_an_error() -> None:
    block = fx.LeafSystem("block")
    y = block.declare_vector_output("y", 1, lambda c: y(c) + 1.0, prerequisites=[])
    with pytest.raises(EvaluationError, match=r"Cannot evaluate output port 'block\.y'"):
        y.eval(block.create_default_context())


def test_an_undeclared_read_without_a_loop_still_gives_the_value() -> None:
    builder = fx.DiagramBuilder()
    builder.add_all(Constant("source", 3.0), Liar("liar"), Lag("lag"))
    builder.connect_chain("source", "liar", "lag")
    diagram = builder.build()
    np.testing.assert_array_equal(
        diagram.eval_time_derivatives(diagram.create_default_context()), [6.0]
    )
