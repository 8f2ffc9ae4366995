"""Large diagrams share the code of alike blocks, and their numbers are those of code without."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import flexure as fx
from flexure.diagrams.errors import EvaluationError, TraceError
from flexure.diagrams.layout import Layout
from flexure.solvers.native import program as programs
from flexure.solvers.native import walk
from flexure.solvers.native.emission import Environment
from flexure.solvers.native.instances import Instances, UnlikeError
from flexure.solvers.native.program import Program, program_of
from flexure.solvers.native.prototype import Prototype
from flexure.solvers.trace import trace_derivatives
from tests.support.native import equation_at, needs_llvmlite

pytestmark = needs_llvmlite

FloatArray = npt.NDArray[np.float64]


# Blocks -------------------------------------------------------------------------------------------


class Mass(fx.LeafSystem):
    """m v' = sum of forces; outputs at several levels share what they compute."""

    def __init__(self, name: str, forces: int = 2, m: float = 1.0) -> None:
        super().__init__(name)
        self.m = self.declare_numeric_parameter("m", m, lower=0.0, exclusive=True)
        self.x = self.declare_continuous_state(q=1, v=1)
        self.forces = [
            self.declare_vector_input(f"f{k}", 1, default=0.25 * k) for k in range(forces)
        ]
        self.y = self.declare_vector_output("y", 2, self.x, prerequisites=[self.x])
        self.q = self.declare_vector_output("q", 1, self.x.q, prerequisites=[self.x])
        self.energy = self.declare_vector_output(
            "energy", 1, lambda c: 0.5 * self.m(c) * self.x.v(c) ** 2, prerequisites=[self.x]
        )
        self.power = self.declare_vector_output("power", 1, self.calc_power)

    def total(self, context: Any) -> Any:
        return sum(force(context) for force in self.forces)

    def calc_power(self, context: Any) -> Any:
        return self.total(context) * self.x.v(context) + self.energy(context)

    def calc_time_derivatives(self, context: Any) -> Any:
        drag = 0.1 * self.energy(context)
        return [self.x.v(context), self.total(context) / self.m(context) - drag]


class Spring(fx.LeafSystem):
    """f = k stretch + d rate between two ends, harder beyond a stretch if that is wanted."""

    def __init__(self, name: str, *, hard: bool = False, k: float = 3.0) -> None:
        super().__init__(name)
        self.hard = hard
        self.k = self.declare_numeric_parameter("k", k)
        self.d = self.declare_numeric_parameter("d", [0.5, 2.0])
        self.near = self.declare_vector_input("near", 2, default=[0.0, 0.0])
        self.far = self.declare_vector_input("far", 2, default=[1.0, 0.0])
        ends = [self.near, self.far]
        self.kinematics = self.declare_cache_entry(
            "kinematics", lambda c: self.far(c) - self.near(c), prerequisites=ends
        )
        entry = [self.kinematics]
        self.f = self.declare_vector_output("f", 1, self.calc_force, prerequisites=entry)
        self.back = self.declare_vector_output(
            "back", 1, lambda c: -self.calc_force(c)[0], prerequisites=entry
        )

    def calc_force(self, context: Any) -> Any:
        stretch, rate = self.kinematics(context)
        damping, scale = self.d(context)
        force = self.k(context) * scale * stretch + damping * rate
        if self.hard:
            force = np.where(stretch > 0.3, force + 2.0 * (stretch - 0.3) ** 3, force)
        return [force]


class Lag(fx.LeafSystem):
    """T x' = u − x"""

    def __init__(self, name: str, size: int = 1) -> None:
        super().__init__(name)
        self.T = self.declare_numeric_parameter("T", 2.0)
        self.x = self.declare_continuous_state(z=size)
        self.u = self.declare_vector_input("u", size, default=np.zeros(size))
        self.y = self.declare_vector_output("y", size, self.x, prerequisites=[self.x])

    def calc_time_derivatives(self, context: Any) -> Any:
        return (self.u(context) - self.x(context)) / self.T(context)


class Law(fx.LeafSystem):
    """y = law(context, u) for a given law."""

    def __init__(self, name: str, law: Callable[..., Any], size: int = 1) -> None:
        super().__init__(name)
        self.law = law
        self.u = self.declare_vector_input("u", size)
        self.y = self.declare_vector_output("y", size, lambda c: law(c, self.u(c)))


class Literal(fx.LeafSystem):
    """y = a value that is known while tracing."""

    def __init__(self, name: str, value: float) -> None:
        super().__init__(name)
        self.value = value
        self.y = self.declare_vector_output("y", 1, lambda c: [self.value])


class Holder(fx.LeafSystem):
    """Two groups of discrete state, one handed on, one computed with."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.a = self.declare_discrete_state("a", [0.5, -0.5])
        self.b = self.declare_discrete_state("b", [2.0])
        self.u = self.declare_vector_input("u", 1, default=1.0)
        self.y = self.declare_vector_output("y", 2, self.a, prerequisites=[self.a])
        self.w = self.declare_vector_output("w", 1, lambda c: self.b(c) * self.u(c) + self.a(c)[1])


class Wide(fx.LeafSystem):
    """x' = u + the sum of nothing − x"""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.p = self.declare_numeric_parameter("p", np.zeros((0, 2)))
        self.x = self.declare_continuous_state(z=1)
        self.u = self.declare_vector_input("u", 1)
        self.none = self.declare_vector_input("none", 0)
        self.y = self.declare_vector_output("y", 1, self.x, prerequisites=[self.x])
        self.nothing = self.declare_vector_output("nothing", 0, lambda c: self.p(c)[:, 0])

    def calc_time_derivatives(self, context: Any) -> Any:
        return self.u(context) + np.sum(self.none(context)) - self.x(context)


# Diagrams -----------------------------------------------------------------------------------------


def rail(count: int, builder: fx.DiagramBuilder | None = None) -> fx.DiagramBuilder:
    """Masses in a row, springs between neighbors and to the wall; every fifth one is hard."""
    builder = builder or fx.DiagramBuilder("rail")
    for k in range(count):
        builder.add(Mass(f"m{k}", m=1.0 + 0.1 * k))
        builder.add(Spring(f"s{k}", hard=k % 5 == 4, k=3.0 + k))
        builder.connect(f"m{k}.y", f"s{k}.far")
        builder.connect(f"s{k}.back", f"m{k}.f0")
        if k:
            builder.connect(f"m{k - 1}.y", f"s{k}.near")
            builder.connect(f"s{k}.f", f"m{k - 1}.f1")
    return builder


def grid(rows: int, columns: int) -> fx.DiagramBuilder:
    builder = fx.DiagramBuilder("grid")
    for i in range(rows):
        for j in range(columns):
            builder.add(Mass(f"m{i}_{j}", forces=4))
    for i in range(rows):
        for j in range(columns):
            for k, (di, dj) in enumerate([(1, 0), (0, 1)]):
                if i + di < rows and j + dj < columns:
                    builder.add(Spring(f"s{i}_{j}_{k}", hard=bool(k)))
                    builder.connect(f"m{i}_{j}.y", f"s{i}_{j}_{k}.near")
                    builder.connect(f"m{i + di}_{j + dj}.y", f"s{i}_{j}_{k}.far")
                    builder.connect(f"s{i}_{j}_{k}.f", f"m{i}_{j}.f{k}")
                    builder.connect(f"s{i}_{j}_{k}.back", f"m{i + di}_{j + dj}.f{2 + k}")
    return builder


def tree(depth: int) -> fx.DiagramBuilder:
    """Every mass hangs on the one of half its number; powers drive lags that branch as well."""
    builder = fx.DiagramBuilder("tree")
    for k in range(1, 2**depth):
        builder.add(Mass(f"m{k}", forces=3))
        builder.add(Lag(f"l{k}"))
        builder.connect(f"m{k}.power", f"l{k}.u")
        if k > 1:
            builder.add(Spring(f"s{k}"))
            builder.connect(f"m{k // 2}.y", f"s{k}.near")
            builder.connect(f"m{k}.y", f"s{k}.far")
            builder.connect(f"s{k}.f", f"m{k // 2}.f{1 + k % 2}")
            builder.connect(f"s{k}.back", f"m{k}.f0")
    return builder


def cascades(lengths: list[int]) -> fx.DiagramBuilder:
    """Chains of gains of different lengths between lags, so that alike blocks have many levels."""
    builder = fx.DiagramBuilder("cascades")
    for k, length in enumerate(lengths):
        builder.add(Lag(f"l{k}"))
        end = f"l{k - 1}.y" if k else "l0.y"
        for j in range(length):
            gain = builder.add(fx.Gain(f"g{k}_{j}", 1.0 + 0.01 * j))
            builder.connect(end, gain.input_port())
            end = f"g{k}_{j}.y"
        builder.connect(end, f"l{k}.u")
    return builder


def driven() -> fx.DiagramBuilder:
    """Lags behind sources of all sorts: time, parameters, known values, discrete values."""
    builder = fx.DiagramBuilder("driven")
    for k in range(32):
        builder.add(Lag(f"l{k}"))
        builder.add(Law(f"law{k}", bent))
        builder.add(Holder(f"h{k}"))
        builder.add(fx.Constant(f"c{k}", 0.1 * k))
        builder.add(Literal(f"v{k}", [2.0, 0.0, -0.0][k % 3]))
    for k in range(32):
        source = [f"c{k}.y", f"v{k}.y", f"h{k}.w", f"l{(k + 1) % 32}.y"][k % 4]
        builder.connect(source, f"law{k}.u")
        builder.connect(f"law{k}.y", f"l{k}.u")
        if k % 3:
            builder.connect(f"c{k}.y", f"h{k}.u")
    return builder


def bent(context: Any, u: Any) -> Any:
    return np.sin(u) + context.time * u


def vectors() -> fx.DiagramBuilder:
    """Ports of several sizes, 0 among them, taken apart and put together."""
    builder = fx.DiagramBuilder("vectors")
    for k in range(24):
        builder.add(Lag(f"a{k}", 3))
        builder.add(Wide(f"b{k}"))
        builder.add(fx.Demultiplexer(f"d{k}", [1, 2]))
        builder.add(fx.Multiplexer(f"x{k}", [2, 1]))
        builder.add(Law(f"e{k}", bent, 0))
    for k in range(24):
        builder.connect(f"a{k}.y", f"d{k}.u")
        builder.connect(f"d{k}.y1", f"b{k}.u")
        builder.connect(f"d{k}.y2", f"x{k}.u1")
        builder.connect(f"b{k}.y", f"x{k}.u2")
        builder.connect(f"x{k}.y", f"a{(k + 5) % 24}.u")
        builder.connect(f"b{k}.nothing", f"e{k}.u")
        builder.connect(f"e{k}.y", f"b{(k + 1) % 24}.none")
    return builder


def nested() -> fx.DiagramBuilder:
    """Rails inside of diagrams inside of a diagram, coupled from outside."""
    builder = fx.DiagramBuilder("nested")
    for k in range(4):
        inner = rail(6, fx.DiagramBuilder(f"inner{k}"))
        inner.export_input("m5.f1", name="push")
        inner.export_output("m0.energy", name="energy")
        outer = fx.DiagramBuilder(f"outer{k}")
        outer.add(inner.build())
        outer.export_input(f"inner{k}.push", name="push")
        outer.export_output(f"inner{k}.energy", name="energy")
        builder.add(outer.build())
    for k in range(3):
        builder.connect(f"outer{k}.energy", f"outer{k + 1}.push")
    builder.export_input("outer0.push", name="push")
    return builder


DIAGRAMS: dict[str, Callable[[], fx.DiagramBuilder]] = {
    "rail": partial(rail, 24),
    "grid": partial(grid, 4, 4),
    "tree": partial(tree, 4),
    "cascades": partial(cascades, [9, 3, 12, 0, 3, 7, 1]),
    "driven": driven,
    "vectors": vectors,
    "nested": nested,
}


# Evaluation ---------------------------------------------------------------------------------------


def shared(context: fx.Context) -> FloatArray:
    """Compute the derivatives by code that alike blocks share."""
    store = context.store
    program = Program(store.layout)
    environment = Environment(program.num_discrete, program.environment.discrete)
    instances = Instances(store.layout, environment)
    env = np.full(environment.size + 1, np.nan)
    program.read_discrete(store, env)
    instances.fill(store, env)
    equation_at(instances.prepare)(0.0, np.zeros(1), env, env)
    out = np.full(program.num_states + 1, np.nan)
    equation_at(instances.rhs)(store.time, np.array(store.x), env, out)
    assert np.isnan(out[-1])
    assert np.isnan(env[-1])
    return out[:-1]


def computed_by(program: Program, context: fx.Context) -> FloatArray:
    """Compute the derivatives by a program."""
    env = program.fill(context.store)
    out = np.full(program.num_states, np.nan)
    equation_at(program.rhs)(context.time, np.array(context.store.x), env, out)
    return out


def shake(context: fx.Context, rng: np.random.Generator) -> None:
    """Change all values."""
    context.time = rng.uniform(0.0, 3.0)
    context.continuous_state = rng.normal(size=context.continuous_state.size)
    for leaf in context.leaves():
        for parameter in leaf.system.numeric_parameters:
            parameter.set(context, rng.uniform(0.5, 2.0, parameter.shape))
        for group in leaf.system.discrete_states:
            group.set(context, rng.normal(size=group.size))
    for port in context.system.input_ports:
        port.fix(context, rng.normal(size=port.size or 0))


def assert_all_ways_agree(system: fx.System, seed: int = 3) -> None:
    """Compare shared code with code that is written out, and both with the equations."""
    context, rng = system.create_default_context(), np.random.default_rng(seed)
    program = Program(system.layout)
    for _ in range(3):
        shake(context, rng)
        found = shared(context)
        np.testing.assert_array_equal(found, computed_by(program, context))
        np.testing.assert_allclose(found, context.store.time_derivatives(), rtol=1e-12, atol=1e-12)


@pytest.fixture
def sharing(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Let programs share code however small the diagram is, and however little that saves."""
    monkeypatch.setattr(programs, "_MANY", 0)
    monkeypatch.setattr(walk, "_SAVING", 0)
    return monkeypatch


def traces_of(system: fx.System, monkeypatch: pytest.MonkeyPatch) -> int:
    """Count the traces that sharing the code of a system takes."""
    count = 0
    original = Prototype.trace

    def trace(self: Prototype, *arguments: Any) -> list[Any]:
        nonlocal count
        count += 1
        return original(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Prototype, "trace", trace)
        Instances(system.layout, Environment(0, [[] for _ in system.layout.leaves]))
    return count


# Numbers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DIAGRAMS)
def test_shared_code_gives_the_numbers_of_code_that_is_written_out(
    name: str, sharing: pytest.MonkeyPatch
) -> None:
    sharing.setattr(programs, "_MANY", 10**9)
    assert_all_ways_agree(DIAGRAMS[name]().build())


@pytest.mark.parametrize("seed", range(6))
def test_however_blocks_are_wired_the_numbers_agree(seed: int, sharing: pytest.MonkeyPatch) -> None:
    sharing.setattr(programs, "_MANY", 10**9)
    assert_all_ways_agree(at_random(seed, 60).build(), seed)


def at_random(seed: int, count: int) -> fx.DiagramBuilder:
    """Blocks of all classes, wired at random to blocks before them; some inputs stay open."""
    rng = np.random.default_rng(seed)
    builder = fx.DiagramBuilder("random")
    offers: dict[int | None, list[fx.OutputPort]] = {1: [], 2: []}
    laws: list[Callable[..., Any]] = [
        lambda c, u: np.abs(u) ** 1.5 + c.time,
        lambda c, u: [np.maximum(u[0], 0.25)] * len(u),
        lambda c, u: np.zeros_like(u) - 2.0,
    ]
    for k in range(count):
        made: list[Callable[[str], fx.LeafSystem]] = [
            lambda name: Mass(name, forces=int(rng.integers(1, 4))),
            lambda name: Spring(name, hard=bool(rng.integers(2))),
            lambda name: Lag(name, int(rng.integers(1, 3))),
            lambda name: Law(name, laws[rng.integers(3)], int(rng.integers(1, 3))),
            lambda name: Literal(name, float(rng.choice([2.0, 0.0, -0.0]))),
            Holder,
            lambda name: fx.Multiplexer(name, [1, 1]),
            lambda name: fx.Demultiplexer(name, [1, 1]),
        ]
        block = builder.add(made[rng.integers(len(made))](f"b{k}"))
        for port in block.input_ports:
            known = offers[port.size]
            if known and (port.default is None or rng.random() < 0.8):
                builder.connect(known[rng.integers(len(known))], port)
            elif port.default is None:
                builder.export_input(port, name=f"{block.name}_{port.name}")
        for output in block.output_ports:
            offers[output.size].append(output)
    return builder


def test_parameters_may_change_between_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    finals = []
    for many in (0, 10**9):
        monkeypatch.setattr(programs, "_MANY", many)
        system = rail(40).build()
        context = system.create_default_context()
        simulator = fx.Simulator(system, context, method="RK45", compiled="native")
        for stiffness in (3.0, 300.0):
            context.set("s7.k", stiffness)
            simulator.advance_to(context.time + 0.5)
            finals.append(context.continuous_state)
    soft, hard, soft_again, hard_again = finals
    np.testing.assert_allclose(soft, soft_again, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(hard, hard_again, rtol=1e-9, atol=1e-12)
    assert program_of(system.layout).operations > 40


def test_an_input_that_is_needed_must_have_a_value(sharing: pytest.MonkeyPatch) -> None:
    builder = fx.DiagramBuilder("open")
    for k in range(3):
        builder.add(Lag(f"l{k}"))
        builder.add(Law(f"law{k}", lambda c, u: 2.0 * u))
        builder.export_input(f"law{k}.u", name=f"u{k}")
        builder.connect(f"law{k}.y", f"l{k}.u")
    system = builder.build()
    context = system.create_default_context()
    for k in range(2):
        system.input_port(f"u{k}").fix(context, 3.0 + k)
    with pytest.raises(EvaluationError, match="u2"):
        shared(context)
    system.input_port("u2").fix(context, 5.0)
    np.testing.assert_array_equal(shared(context), [3.0, 4.0, 5.0])


def test_truth_values_at_a_port_are_numbers_to_other_blocks(sharing: pytest.MonkeyPatch) -> None:
    builder = fx.DiagramBuilder("truth")
    for k in range(4):
        builder.add(Lag(f"l{k}"))
        builder.add(Law(f"sign{k}", lambda c, u: u > 0.0))
        builder.add(Law(f"sum{k}", lambda c, u: u + u))
        builder.connect(f"l{k}.y", f"sign{k}.u")
        builder.connect(f"sign{k}.y", f"sum{k}.u")
        builder.connect(f"sum{k}.y", f"l{k}.u")
    context = builder.build().create_default_context()
    context.continuous_state = [1.0, -1.0, 0.0, 2.0]
    np.testing.assert_array_equal(shared(context), [0.5, 0.5, 0.0, 0.0])


# What is known while tracing ----------------------------------------------------------------------


def test_known_components_are_folded_across_blocks(sharing: pytest.MonkeyPatch) -> None:
    """Zeros of both signs are told from each other, and unknown components stay unknown."""
    builder = fx.DiagramBuilder("folded")
    for k, value in enumerate([0.0, -0.0, 0.0, 2.0, -0.0]):
        builder.add(Literal(f"v{k}", value))
        builder.add(Lag(f"l{k}"))
        builder.add(fx.Multiplexer(f"x{k}", [1, 1]))
        builder.add(Law(f"law{k}", lambda c, u: [np.copysign(3.0, u[0]), u[1] + np.exp(u[0])], 2))
        builder.add(Lag(f"two{k}", 2))
        builder.connect(f"v{k}.y", f"x{k}.u1")
        builder.connect(f"l{k}.y", f"x{k}.u2")
        builder.connect(f"x{k}.y", f"law{k}.u")
        builder.connect(f"law{k}.y", f"two{k}.u")
    system = builder.build()
    sharing.setattr(programs, "_MANY", 10**9)
    assert_all_ways_agree(system)
    environment = Environment(0, [[] for _ in system.layout.leaves])
    # What is left: (0 − x) / T; for each law u[1] + a constant; and twice (u − x) / T.
    assert Instances(system.layout, environment).operations == 5 * (2 + 1 + 4)


def test_tracing_takes_as_long_for_many_blocks_as_for_few(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = (traces_of(rail(count).build(), monkeypatch) for count in (40, 160))
    assert few == many


def test_time_counts_only_where_derivatives_depend_on_it(sharing: pytest.MonkeyPatch) -> None:
    for reader, timed in ((lambda c, u: u, True), (lambda c, u: u[:1] * 2.0, False)):
        builder = fx.DiagramBuilder("timed")
        for k in range(4):
            builder.add(Literal(f"v{k}", 1.0))
            builder.add(Law(f"clock{k}", lambda c, u: u + np.sin(c.time)))
            builder.add(fx.Multiplexer(f"x{k}", [1, 1]))
            builder.add(Law(f"law{k}", lambda c, u, reader=reader: [reader(c, u)[0], u[0]], 2))
            builder.add(Lag(f"l{k}", 2))
            builder.connect(f"v{k}.y", f"clock{k}.u")
            builder.connect(f"clock{k}.y" if timed else f"v{k}.y", f"x{k}.u1")
            builder.connect(f"clock{k}.y", f"x{k}.u2")
            builder.connect(f"x{k}.y", f"law{k}.u")
            builder.connect(f"law{k}.y", f"l{k}.u")
        assert Program(builder.build().layout).timed is timed


# Events and Jacobians -----------------------------------------------------------------------------


def test_a_diagram_without_events_is_never_traced_as_a_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*arguments: Any) -> None:
        raise AssertionError("traced as a whole")

    for name in ("trace", "trace_derivatives"):
        monkeypatch.setattr(programs, name, refuse)
    simulator = fx.Simulator(rail(60).build(), method="DOP853", compiled="native")
    simulator.advance_to(0.1)
    assert simulator.statistics.native_steps > 0


class Sampler(fx.LeafSystem):
    """Samples the power of a mass, counts bounces of its position, and pushes back."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.gain = self.declare_numeric_parameter("gain", 0.5)
        self.held = self.declare_discrete_state("held", [0.0, 0.0])
        self.u = self.declare_vector_input("u", 1)
        self.y = self.declare_vector_output("y", 1, lambda c: -self.gain(c) * self.held(c)[0])
        self.declare_discrete_update(self.sample, fx.Periodic(0.1))
        self.declare_unrestricted_update(self.bounce, fx.Witness(lambda c: self.u(c)[0]))

    def sample(self, context: Any) -> dict[Any, Any]:
        return {self.held: [self.u(context)[0], self.held(context)[1]]}

    def bounce(self, context: Any) -> dict[Any, Any]:
        return {self.held: self.held(context) + np.array([0.0, 1.0])}


def sampled_rail() -> fx.Diagram:
    builder = rail(60)
    builder.add(Sampler("sampler"))
    builder.connect("m59.power", "sampler.u")
    builder.connect("sampler.y", "m59.f1")
    builder.add(fx.VectorLog("log", 2, period=0.25))
    builder.connect("m30.y", "log.u")
    return builder.build()


@pytest.mark.parametrize("method", ["RK45", "Rodas5P"])
def test_events_logs_and_jacobians_work_beside_shared_code(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = []
    whole: list[Layout] = []

    def trace(layout: Layout) -> list[Any]:
        whole.append(layout)
        return trace_derivatives(layout)

    monkeypatch.setattr(programs, "trace_derivatives", trace)
    for many in (0, 10**9):
        monkeypatch.setattr(programs, "_MANY", many)
        system = sampled_rail()
        context = system.create_default_context()
        context.continuous_state = 0.05 * np.sin(np.arange(120.0))
        simulator = fx.Simulator(system, context, method=method, rtol=1e-8, compiled="native")
        simulator.advance_to(1.0)
        log = system.get_system("log")
        outcomes.append(
            (
                context.continuous_state,
                context.get("sampler.held"),
                log.find_log(context).data,  # type: ignore[attr-defined]
                simulator.statistics.steps,
                simulator.statistics.witness_events,
            )
        )
    for ours, flat in zip(*outcomes, strict=True):
        np.testing.assert_allclose(ours, flat, rtol=1e-7, atol=1e-9)
    assert outcomes[0][-1] > 0
    assert len(whole) == (method == "Rodas5P")


def test_programs_with_shared_code_go_with_their_systems() -> None:
    system = rail(60).build()
    program = weakref.ref(program_of(system.layout))
    del system
    gc.collect()
    assert program() is None


# What cannot be shared ----------------------------------------------------------------------------


class Peeping(fx.LeafSystem):
    """x' = −x + the position of a mass elsewhere, which it reads without a wire."""

    def __init__(self, name: str, mass: Mass) -> None:
        super().__init__(name)
        self.mass = mass
        self.x = self.declare_continuous_state(z=1)

    def calc_time_derivatives(self, context: Any) -> Any:
        return self.mass.x.q(context.root) - self.x(context)


def test_a_block_that_looks_beyond_itself_is_written_out() -> None:
    builder = rail(60)
    mass = builder.systems[6]
    assert isinstance(mass, Mass)
    builder.add(Peeping("peeping", mass))
    system = builder.build()
    with pytest.raises(UnlikeError):
        Instances(system.layout, Environment(0, [[] for _ in system.layout.leaves]))
    context = system.create_default_context()
    shake(context, np.random.default_rng(1))
    found = computed_by(Program(system.layout), context)
    np.testing.assert_allclose(found, context.store.time_derivatives(), rtol=1e-12)


def test_blocks_that_all_differ_are_written_out() -> None:
    builder = fx.DiagramBuilder("different")
    for k in range(120):
        builder.add(Lag(f"l{k}"))
        builder.add(Law(f"law{k}", lambda c, u, k=k: k * u))
        builder.connect(f"l{k}.y", f"law{k}.u")
        builder.connect(f"law{k}.y", f"l{k}.u")
    system = builder.build()
    with pytest.raises(UnlikeError):
        Instances(system.layout, Environment(0, [[] for _ in system.layout.leaves]))
    context = system.create_default_context()
    context.continuous_state = np.ones(120)
    found = computed_by(Program(system.layout), context)
    np.testing.assert_array_equal(found, (np.arange(120) - 1.0) / 2.0)


class Moody(fx.LeafSystem):
    """A block with a parameter that is no number; nothing depends on it."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.mood = self.declare_abstract_parameter("mood", "fair")
        self.declare_abstract_output("y", self.mood)


def test_a_diagram_that_cannot_be_traced_as_a_whole_is_refused_at_once() -> None:
    builder = rail(60)
    builder.add(Moody("moody"))
    with pytest.raises(TraceError, match="moody"):
        Program(builder.build().layout)


class Table:
    """A mutable object whose content cannot be seen from outside."""

    def __init__(self, factor: float) -> None:
        self.factor = factor


def test_blocks_with_foreign_objects_keep_their_own(sharing: pytest.MonkeyPatch) -> None:
    common = Table(3.0)
    tables = [Table(1.0), common, Table(2.0), common]
    builder = fx.DiagramBuilder("foreign")
    for k, table in enumerate(tables):
        law = Law(f"law{k}", _by_table)
        law.table = table  # type: ignore[attr-defined]
        builder.add(law)
        builder.add(Lag(f"l{k}"))
        builder.connect(f"l{k}.y", f"law{k}.u")
        builder.connect(f"law{k}.y", f"l{k}.u")
    context = builder.build().create_default_context()
    context.continuous_state = np.ones(4)
    np.testing.assert_array_equal(shared(context), [0.0, 1.0, 0.5, 1.0])


def _by_table(context: Any, u: Any) -> Any:
    return context.system.table.factor * u
