"""Blocks that cannot be traced are interpreted among straight-line code, with the same numbers."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import flexure as fx
from flexure.diagrams.errors import TraceError
from flexure.solvers.tracing.derivatives import Derivatives
from flexure.solvers.tracing.interpreted_blocks import trace_with_foreign
from flexure.solvers.tracing.trace import trace_derivatives
from tests.support.blocks import Lag


class Spline(fx.LeafSystem):
    """y = s(u) with a spline of SciPy, which no symbol goes through."""

    def __init__(self, name: str, function: Callable[[Any], Any] = np.tanh) -> None:
        super().__init__(name)
        grid = np.linspace(-5.0, 5.0, 41)
        self.spline = CubicSpline(grid, function(grid))
        self.u = self.declare_vector_input("u", 1)
        self.y = self.declare_vector_output("y", 1, self.calc_y, prerequisites=[self.u])

    def calc_y(self, context: Any) -> Any:
        return self.spline(self.u(context))


class Everything(fx.LeafSystem):
    """A block whose equations read values of every kind, and pass through ``math``."""

    def __init__(self, name: str = "everything", how: str = "declared") -> None:
        super().__init__(name)
        self.k = self.declare_numeric_parameter("k", 2.0)
        self.table = self.declare_abstract_parameter("table", {"gain": 3.0})
        self.x = self.declare_continuous_state(q=1, v=1, default=[0.3, -0.2])
        self.n = self.declare_discrete_state("n", 5.0)
        self.mode = self.declare_abstract_state("mode", "fast")
        self.u = self.declare_vector_input("u", 2)
        self.w = self.declare_vector_input("w", 1, default=0.7)
        self.message = self.declare_abstract_input("message", default={"offset": 0.1})
        declared = how == "declared"
        self.shared = self.declare_cache_entry(
            "shared",
            lambda c: {"power": math.hypot(*self.u(c)) * self.table(c)["gain"]},
            prerequisites=[self.u] if declared else None,
        )
        self.y = self.declare_vector_output(
            "y",
            2,
            self.calc_y,
            prerequisites=[fx.TIME, self.x, self.n, self.mode, self.w, self.message, self.shared]
            if declared
            else None,
        )

    def calc_y(self, context: Any) -> Any:
        factor = {"fast": 2.0, "slow": 0.5}[self.mode(context)]
        offset = self.message(context)["offset"] + self.n(context)[0] * math.cos(context.time)
        return [
            factor * self.shared(context)["power"] + offset,
            self.k(context) * self.x(context)[0] + self.w(context)[0],
        ]

    def calc_time_derivatives(self, context: Any) -> Any:
        q, v = self.x(context)
        return [v, self.shared(context)["power"] - math.sin(q) - self.k(context) * v]


def wired(*blocks: fx.System, wires: list[tuple[str, str]]) -> fx.Diagram:
    builder = fx.DiagramBuilder("plant")
    builder.add_all(*blocks)
    for source, target in wires:
        builder.connect(source, target)
    return builder.build()


def table_loop() -> fx.Diagram:
    """A spline in the feedback around two lags."""
    return wired(
        fx.Sine("reference", 2.0, 3.0),
        fx.Sum("error", "+-"),
        Lag("first", 0.3),
        Lag("second", 0.5),
        Spline("table"),
        wires=[
            ("reference.y", "error.u1"),
            ("table.y", "error.u2"),
            ("error.y", "first.u"),
            ("first.y", "second.u"),
            ("second.y", "table.u"),
        ],
    )


def series() -> fx.Diagram:
    """Two splines one after the other, with traced blocks before, between and after them."""
    return wired(
        Lag("lag", 0.4),
        fx.Gain("before", 1.5),
        Spline("one"),
        fx.Gain("between", -2.0),
        Spline("two", np.sin),
        Spline("three", np.cos),
        fx.Sum("sum", "++"),
        wires=[
            ("lag.y", "before.u"),
            ("before.y", "one.u"),
            ("one.y", "between.u"),
            ("between.y", "two.u"),
            ("two.y", "three.u"),
            ("three.y", "sum.u1"),
            ("one.y", "sum.u2"),
            ("sum.y", "lag.u"),
        ],
    )


def everything(how: str) -> fx.Diagram:
    """A block with values of every kind between traced ones."""
    return wired(
        Lag("lag", 0.4, size=2),
        fx.Gain("gain", [0.5, -0.7]),
        Everything("everything", how),
        fx.Selector("selector", 2, [1]),
        Lag("other", 0.3),
        wires=[
            ("everything.y", "lag.u"),
            ("lag.y", "gain.u"),
            ("gain.y", "everything.u"),
            ("everything.y", "selector.u"),
            ("selector.y", "other.u"),
            ("other.y", "everything.w"),
        ],
    )


def sampled() -> fx.Diagram:
    """A spline behind a sampler, with a relay that switches within the motion."""
    return wired(
        fx.Sine("reference", 2.0, 3.0),
        fx.Sum("error", "+-"),
        fx.ZeroOrderHold("hold", 0.05),
        Spline("table"),
        Lag("lag", 0.3),
        fx.Relay("relay", 0.1, -0.1),
        Spline("other", np.cos),
        Lag("last", 0.2),
        wires=[
            ("reference.y", "error.u1"),
            ("last.y", "error.u2"),
            ("error.y", "hold.u"),
            ("hold.y", "table.u"),
            ("table.y", "lag.u"),
            ("lag.y", "relay.u"),
            ("relay.y", "other.u"),
            ("other.y", "last.u"),
        ],
    )


SYSTEMS: dict[str, Callable[[], fx.Diagram]] = {
    "a table in a loop": table_loop,
    "tables in series": series,
    "values of every kind": lambda: everything("declared"),
    "undeclared": lambda: everything("undeclared"),
    "updates and witnesses": sampled,
}


def compiled(context: fx.Context) -> Derivatives:
    derivatives = Derivatives(context.store, compiled=True)
    for _ in range(200):
        derivatives(context.time, context.continuous_state)
    assert derivatives.how.startswith("straight-line Python of")
    return derivatives


def assert_equal_at_random(derivatives: Derivatives, context: fx.Context, seed: int = 3) -> None:
    """Compare with the equations themselves, on another context with the same values."""
    rng = np.random.default_rng(seed)
    twin = context.clone()
    interpreted = Derivatives(twin.store, compiled=False)
    for _ in range(20):
        moment, x = rng.uniform(0.0, 9.0), rng.normal(size=context.continuous_state.size)
        assert derivatives(moment, x).tolist() == interpreted(moment, x).tolist()


# The same numbers --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SYSTEMS)
def test_derivatives_are_equal_bit_by_bit(name: str) -> None:
    context = SYSTEMS[name]().create_default_context()
    derivatives = compiled(context)
    assert_equal_at_random(derivatives, context)
    assert derivatives.how.startswith("straight-line Python of")


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("method", ["RK45", "rk4"])
def test_simulations_are_equal_bit_by_bit(name: str, method: str) -> None:
    options: dict[str, Any] = {"method": method} | ({"step": 0.01} if method == "rk4" else {})
    first, second = (
        fx.simulate(SYSTEMS[name](), 4.0, compiled=c, **options) for c in (True, False)
    )
    assert ("; interpreted: '" in first.message) == (first.statistics.evaluations > 200)
    assert first.time.tolist() == second.time.tolist()
    for signal in first.signals:
        assert first[signal].tolist() == second[signal].tolist()


@pytest.mark.parametrize("name", SYSTEMS)
def test_implicit_methods_take_differences(name: str) -> None:
    diagram = SYSTEMS[name]()
    derivatives = Derivatives(diagram.create_default_context().store, compiled=True)
    assert derivatives.jacobian() is None
    assert "interpreted: '" in derivatives.how
    first, second = (fx.simulate(diagram, 1.0, method="Radau", compiled=c) for c in (True, False))
    for signal in first.signals:
        np.testing.assert_allclose(first[signal][-1], second[signal][-1], rtol=1e-9)


@pytest.mark.parametrize("how", ["declared", "undeclared"])
@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("everything.k", 7.0),
        ("everything.table", {"gain": -1.0}),
        ("everything.n", 2.0),
        ("everything.mode", "slow"),
        ("everything.message", {"offset": -4.0}),
        ("gain.gain", [1.0, 2.0]),
        ("lag.tau", 2.0),
    ],
)
def test_every_change_of_a_value_reaches_the_foreign_block(how: str, path: str, value: Any) -> None:
    context = everything(how).create_default_context()
    derivatives = compiled(context)
    x = np.linspace(0.5, 1.5, context.continuous_state.size)
    before = derivatives(0.5, x)
    context.set(path, value)
    assert not np.array_equal(derivatives(0.5, x), before)
    assert_equal_at_random(derivatives, context)


def test_values_of_a_call_are_not_taken_for_fresh_later() -> None:
    context = series().create_default_context()
    derivatives = compiled(context)
    ports = [context.system.find(f"{name}.y") for name in ("before", "one", "between", "two")]
    for moment, state in ((0.5, 1.0), (0.5, -2.0), (0.7, -2.0)):
        derivatives(moment, np.array([state]))
        # The store is where the evaluation was, and whole.
        assert context.time == moment
        twin = series().create_default_context()
        twin.time, twin.continuous_state = moment, [state]
        read = [port(context)[0] for port in ports]
        assert read == [twin.get(f"{name}.y")[0] for name in ("before", "one", "between", "two")]
        context.set("lag.x", [0.25])
        assert ports[0](context) == [0.375]
        assert ports[1](context)[0] == pytest.approx(math.tanh(0.375), rel=1e-3)


class Undeclared(fx.LeafSystem):
    """y = sin(other.y), which it reads behind the back of the diagram."""

    def __init__(self, name: str, path: str) -> None:
        super().__init__(name)
        self.target = path
        self.x = self.declare_continuous_state(z=1)
        self.y = self.declare_vector_output("y", 1, self.calc_y, prerequisites=[self.x])

    def calc_y(self, context: Any) -> Any:
        return [math.sin(context.root.get(self.target)[0])]

    def calc_time_derivatives(self, context: Any) -> Any:
        return self.y(context)


def test_a_block_may_read_more_than_it_declares() -> None:
    diagram = wired(
        Undeclared("spy", "gain.y"),
        fx.Gain("gain", 3.0),
        Lag("lag"),
        wires=[("lag.y", "gain.u"), ("spy.y", "lag.u")],
    )
    context = diagram.create_default_context()
    assert_equal_at_random(compiled(context), context)


# What is traced and what is not ------------------------------------------------------------------


def test_the_text_names_block_and_reason_and_line() -> None:
    how = compiled(table_loop().create_default_context()).how
    assert "; interpreted: 'table' (cannot use a symbol as " in how
    assert "test_interpreted_blocks.py:" in how
    assert "'return self.spline(self.u(context))'" in how


def test_the_text_names_every_block_once() -> None:
    how = compiled(series().create_default_context()).how
    assert [how.count(f"'{name}' (") for name in ("one", "two", "three", "lag")] == [1, 1, 1, 0]
    how = compiled(everything("declared").create_default_context()).how
    assert how.count("'everything' (") == 1


def test_the_text_stays_short() -> None:
    blocks = [Spline(f"spline{k}") for k in range(40)]
    wires = [(f"spline{k}.y", f"spline{k + 1}.u") for k in range(39)]
    diagram = wired(
        *blocks, Lag("lag"), wires=[("lag.y", "spline0.u"), *wires, ("spline39.y", "lag.u")]
    )
    how = compiled(diagram.create_default_context()).how
    assert how.endswith(" and 34 more")


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda u: math.sin(u[0]), "cannot use a symbol as float()"),
        (lambda u: [{0.0: 1.0}[u[0]]], "KeyError at test_interpreted_blocks.py:"),
        (lambda u: np.sort(u)[::-1], "cannot apply np.sort to symbols"),
        (lambda u: raise_it(OverflowError("high")) if u[0] > 1e6 else u, "OverflowError at"),
    ],
)
def test_the_reason_is_what_was_in_the_way(function: Callable[[Any], Any], says: str) -> None:
    diagram = wired(
        fx.FunctionBlock("f", function), Lag("lag"), wires=[("lag.y", "f.u"), ("f.y", "lag.u")]
    )
    with pytest.raises(TraceError):
        trace_derivatives(diagram.layout)
    text = trace_with_foreign(diagram.layout).interpreted_blocks()
    assert text.startswith("'f' (")
    assert says in text
    assert "test_interpreted_blocks.py:" in text


def test_an_abstract_value_matters_only_where_it_is_read() -> None:
    class Labelled(Lag):
        def __init__(self, name: str) -> None:
            super().__init__(name)
            self.declare_abstract_parameter("label", "x")
            self.declare_abstract_state("mode", "idle")

    context = wired(Labelled("lag"), wires=[("lag.y", "lag.u")]).create_default_context()
    assert compiled(context).how == "straight-line Python of 2 operations"


def test_a_traced_diagram_is_described_as_ever() -> None:
    diagram = wired(
        Lag("lag"), fx.Gain("gain", 2.0), wires=[("lag.y", "gain.u"), ("gain.y", "lag.u")]
    )
    assert compiled(diagram.create_default_context()).how == "straight-line Python of 3 operations"


def test_where_nothing_is_left_to_compile_everything_is_interpreted() -> None:
    block = Everything()
    context = block.create_default_context()
    block.u.fix(context, [1.0, 2.0])
    derivatives = Derivatives(context.store, compiled=True)
    for _ in range(300):
        derivatives(0.0, context.continuous_state)
    assert derivatives.how.startswith("interpreted, because cannot use a symbol as float()")
    assert derivatives.how.endswith("while computing cache entry 'everything.shared' on symbols")


def test_an_abstract_signal_is_left_to_its_readers() -> None:
    class Pack(fx.LeafSystem):
        def __init__(self, name: str) -> None:
            super().__init__(name)
            self.u = self.declare_vector_input("u", 1)
            self.y = self.declare_abstract_output("y", self.calc_y, prerequisites=[self.u])

        def calc_y(self, context: Any) -> Any:
            return {"value": math.tanh(self.u(context)[0])}

    class Unpack(fx.LeafSystem):
        def __init__(self, name: str) -> None:
            super().__init__(name)
            self.u = self.declare_abstract_input("u")
            self.y = self.declare_vector_output("y", 1, self.calc_y, prerequisites=[self.u])

        def calc_y(self, context: Any) -> Any:
            return 2.0 * self.u(context)["value"]

    diagram = wired(
        Lag("lag"),
        fx.Gain("gain", 3.0),
        Pack("pack"),
        Unpack("unpack"),
        wires=[
            ("lag.y", "gain.u"),
            ("gain.y", "pack.u"),
            ("pack.y", "unpack.u"),
            ("unpack.y", "lag.u"),
        ],
    )
    context = diagram.create_default_context()
    derivatives = compiled(context)
    assert "'unpack' (cannot read output port 'pack.y' as a symbol)" in derivatives.how
    assert "'pack' (cannot use a symbol as float(), a function of math" in derivatives.how
    assert_equal_at_random(derivatives, context)


@pytest.mark.parametrize("needed", [("guarded", "always"), ("always", "guarded")])
def test_components_of_a_foreign_vector_may_be_needed_at_different_places(
    needed: tuple[str, str],
) -> None:
    class Sides(fx.LeafSystem):
        """One component is needed on one side of a condition, the other one everywhere."""

        def __init__(self) -> None:
            super().__init__("sides")
            self.x = self.declare_continuous_state(z=2, default=[0.4, -0.3])
            self.u = self.declare_vector_input("u", 2)
            self.y = self.declare_vector_output("y", 2, self.x)

        def calc_time_derivatives(self, context: Any) -> Any:
            x, u = self.x(context), self.u(context)
            guarded = np.where(np.sin(5.0 * context.time) > 0.0, 3.0 / (x[0] + 9.0) * u, 0.0)
            return [(guarded if how == "guarded" else u)[k] - x[k] for k, how in enumerate(needed)]

    asked: list[float] = []

    def turned(u: Any) -> list[float]:
        asked.append(float(u[0]))
        return [-float(u[1]), float(u[0])]

    diagram = wired(
        Sides(),
        fx.FunctionBlock("turned", turned, inputs=2, output_size=2),
        wires=[("sides.y", "turned.u"), ("turned.y", "sides.u")],
    )
    context = diagram.create_default_context()
    derivatives = compiled(context)
    assert_equal_at_random(derivatives, context)
    del asked[:]
    derivatives(1.0, context.continuous_state)  # where the sine is negative
    assert len(asked) == 1  # as in interpretation, so that errors of the block show there, too


def test_a_foreign_block_that_moves_a_plant_is_interpreted_alone() -> None:
    plant = fx.PlantBuilder("plant")
    for name, axis in [("first", (1, 0, 0)), ("second", (0, 1, 0))]:
        body = plant.add_body(name, fx.SpatialInertia.solid_sphere(mass=1.0, radius=0.1))
        plant.add_joint(fx.PrismaticJoint(f"{name}_axis", plant.world, body, axis=axis))
    diagram = wired(
        plant.build(),
        fx.FunctionBlock("f", lambda q: [-float(q[0]), -float(q[1])], inputs=2, output_size=2),
        wires=[("plant.positions", "f.u"), ("f.y", "plant.generalized_force")],
    )
    context = diagram.create_default_context()
    context.continuous_state = [1.0, 0.5, 0.0, 2.0]
    result = fx.simulate(diagram, 15.0, context, method="DOP853", rtol=1e-9, atol=1e-10)
    assert "interpreted: 'f'" in result.message
    c, s = math.cos(15.0), math.sin(15.0)
    expected = [c, 0.5 * c + 2.0 * s, -s, 2.0 * c - 0.5 * s]
    np.testing.assert_allclose(result.context.continuous_state, expected, atol=1e-6)


def test_too_many_branches_make_one_block_foreign() -> None:
    def staircase(u: Any) -> Any:
        y = u[0]
        while y > 1.0:
            y = y - 1.0
        return y

    diagram = wired(
        Lag("lag"),
        fx.FunctionBlock("wrap", staircase),
        wires=[("lag.y", "wrap.u"), ("wrap.y", "lag.u")],
    )
    context = diagram.create_default_context()
    derivatives = compiled(context)
    assert "interpreted: 'wrap' (cannot use a symbol as a decision" in derivatives.how
    assert "'while y > 1.0:'" in derivatives.how
    assert derivatives(0.0, np.array([40.25])).tolist() == [0.25 - 40.25]


def test_foreign_numbers_that_change_from_call_to_call_are_not_compiled() -> None:
    calls = iter(range(10**6))
    diagram = wired(
        Lag("lag"),
        fx.FunctionBlock("noise", lambda u: math.cos(u[0]) + next(calls)),
        wires=[("lag.y", "noise.u"), ("noise.y", "lag.u")],
    )
    derivatives = Derivatives(diagram.create_default_context().store, compiled=True)
    for _ in range(300):
        derivatives(0.0, np.zeros(1))
    assert "other numbers" in derivatives.how


# Errors ------------------------------------------------------------------------------------------


def raise_it(error: Exception) -> Any:
    raise error


class Fragile(fx.LeafSystem):
    """Passes its input on, as an output or as a derivative, and raises where it is told to."""

    def __init__(self, error: Exception, where: str) -> None:
        super().__init__("fragile")
        self.error, self.where = error, where
        self.limit, self.raised = math.inf, 0
        self.x = self.declare_continuous_state(z=1)
        self.u = self.declare_vector_input("u", 1)
        self.y = self.declare_vector_output("y", 1, lambda c: self.passed(c, "output"))

    def passed(self, context: Any, where: str) -> Any:
        u = float(self.u(context)[0])
        if where == self.where and u > self.limit:
            self.raised += 1
            raise self.error
        return [u]

    def calc_time_derivatives(self, context: Any) -> Any:
        return self.passed(context, "derivative")


@pytest.mark.parametrize(
    ("where", "what"),
    [("output", "output port 'fragile.y'"), ("derivative", "the time derivatives of 'fragile'")],
)
@pytest.mark.parametrize(
    "error", [ZeroDivisionError("by hand"), ValueError("too large"), KeyError("k")], ids=repr
)
def test_an_exception_of_a_foreign_block_says_where_and_when(
    where: str, what: str, error: Exception
) -> None:
    error = type(error)(*error.args)
    fragile = Fragile(error, where)
    diagram = wired(
        Lag("lag"),
        fx.Gain("gain", 2.0),
        fragile,
        wires=[("lag.y", "gain.u"), ("gain.y", "fragile.u"), ("fragile.y", "lag.u")],
    )
    context = diagram.create_default_context()
    derivatives = compiled(context)
    fragile.limit = 5.0
    assert np.isfinite(derivatives(0.25, np.array([1.0, 0.0]))).all()
    with pytest.raises(type(error)) as caught:
        derivatives(0.25, np.array([3.0, 0.0]))
    assert caught.value is error
    assert error.__notes__ == [f"while computing {what} at t = 0.25"]
    # It is no reason to ask the interpreted equations again, or to give the code up.
    assert fragile.raised == 1
    assert derivatives(0.25, np.array([1.0, 0.0])).tolist() == [1.0, 2.0]
    assert derivatives.how.startswith("straight-line Python of")


def test_an_exception_in_a_branch_is_raised_when_the_branch_is_taken() -> None:
    def limited(u: Any) -> Any:
        if u[0] > 2.0:
            raise OverflowError("too fast")
        return u

    diagram = wired(
        Lag("lag"),
        fx.Gain("gain", 3.0),
        fx.FunctionBlock("limit", limited),
        wires=[("lag.y", "gain.u"), ("gain.y", "limit.u"), ("limit.y", "lag.u")],
    )
    simulator = fx.Simulator(diagram, method="rk4", step=1e-3)  # x = 0.5 exp(2 t)
    simulator.context.set("lag.x", 0.5)
    with pytest.raises(OverflowError, match="too fast") as caught:
        simulator.advance_to(1.0)
    crossing = 0.5 * math.log(4.0 / 3.0)
    assert caught.value.__notes__[0].startswith("while computing output port 'limit.y' at t = 0.14")
    assert simulator.context.time == pytest.approx(crossing, abs=2e-3)
    assert (
        "interpreted: 'limit' (OverflowError at test_interpreted_blocks.py:" in simulator.explain()
    )


def test_a_division_by_zero_beside_a_foreign_block_gives_what_numpy_gives() -> None:
    diagram = wired(
        Lag("lag"),
        fx.FunctionBlock("inverse", lambda u: 1.0 / u),
        Spline("table"),
        wires=[("lag.y", "table.u"), ("table.y", "inverse.u"), ("inverse.y", "lag.u")],
    )
    context = diagram.create_default_context()
    context.set("lag.x", [1.0])
    derivatives = compiled(context)
    with np.errstate(all="ignore"):
        assert derivatives(0.0, np.zeros(1)).tolist() == [math.inf]
        assert derivatives(0.0, np.ones(1))[0] == pytest.approx(
            1.0 / math.tanh(1.0) - 1.0, rel=1e-3
        )
        for _ in range(1100):
            derivatives(0.0, np.zeros(1))
    assert "divide by zero" in derivatives.how


# Speed -------------------------------------------------------------------------------------------


def test_one_foreign_block_among_many_costs_little() -> None:
    lags = [Lag(f"lag{k}", 0.1 + 0.01 * k) for k in range(100)]
    chain = [block.name for block in (*lags[:50], Spline("table"), *lags[50:])]
    diagram = wired(
        *lags,
        Spline("table"),
        wires=[(f"{a}.y", f"{b}.u") for a, b in zip([chain[-1], *chain], chain, strict=False)],
    )
    context = diagram.create_default_context()
    fast, slow = compiled(context), Derivatives(context.clone().store, compiled=False)
    x = np.linspace(-1.0, 1.0, 100)
    assert fast(0.0, x).tolist() == slow(0.0, x).tolist()

    def cost(derivatives: Derivatives) -> float:
        start = time.perf_counter()
        for _ in range(50):
            derivatives(0.0, x)
        return time.perf_counter() - start

    assert min(cost(fast) for _ in range(5)) < 0.7 * min(cost(slow) for _ in range(5))
