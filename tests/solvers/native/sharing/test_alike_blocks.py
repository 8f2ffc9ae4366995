"""Blocks that are alike share code, and the numbers are those of code that is written out."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import EvaluationError, TraceError
from flexure.diagrams.scalars import Symbol
from flexure.solvers.native.programs.program import Program
from flexure.solvers.native.programs.programs import program_of
from tests.support.native.native import needs_llvmlite
from tests.support.native.shared_code import (
    derivatives,
    operations,
    shared,
    shares_code,
    sharing,
    size_of_code,
)
from tests.support.systems.many_blocks import (
    DIAGRAMS,
    Lag,
    Law,
    Literal,
    Mass,
    Spring,
    at_random,
    rail,
)
from tests.support.tiers import for_each

pytestmark = needs_llvmlite

FloatArray = npt.NDArray[np.float64]


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
    made = []
    for everywhere in (True, False):
        with sharing(everywhere):
            made.append(Program(system.layout))
    assert [shares_code(program) for program in made] == [True, False]
    for _ in range(3):
        shake(context, rng)
        found, expected = (derivatives(program, context) for program in made)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_allclose(found, context.store.time_derivatives(), rtol=1e-12, atol=1e-12)


# Numbers ------------------------------------------------------------------------------------------


@for_each("name", DIAGRAMS)
def test_shared_code_gives_the_numbers_of_code_that_is_written_out(name: str) -> None:
    assert_all_ways_agree(DIAGRAMS[name]().build())


@pytest.mark.full
@pytest.mark.parametrize("seed", range(6))
def test_however_blocks_are_wired_the_numbers_agree(seed: int) -> None:
    assert_all_ways_agree(at_random(seed, 60).build(), seed)


def test_parameters_may_change_between_runs() -> None:
    finals = []
    for everywhere in (True, False):
        system = rail(40).build()
        context = system.create_default_context()
        with sharing(everywhere):
            simulator = fx.Simulator(system, context, method="RK45", compiled="native")
        for stiffness in (3.0, 300.0):
            context.set("s7.k", stiffness)
            simulator.advance_to(context.time + 0.5)
            finals.append(context.continuous_state)
    soft, hard, soft_again, hard_again = finals
    np.testing.assert_allclose(soft, soft_again, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(hard, hard_again, rtol=1e-9, atol=1e-12)


def test_an_input_that_is_needed_must_have_a_value() -> None:
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


def test_truth_values_at_a_port_are_numbers_to_other_blocks() -> None:
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


class Sinking(fx.LeafSystem):
    """x' = 0 log(x) - x"""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.x = self.declare_continuous_state(z=1)
        self.y = self.declare_vector_output("y", 1, lambda c: 0.0 * np.log(self.x(c)))

    def calc_time_derivatives(self, context: Any) -> Any:
        x = self.x(context)
        return 0.0 * np.log(x) - x


def test_what_is_not_finite_shows_behind_a_constant_zero() -> None:
    builder = fx.DiagramBuilder("sinking")
    for k in range(4):
        builder.add_all(Sinking(f"s{k}"), Lag(f"l{k}"))
        builder.connect(f"s{k}.y", f"l{k}.u")
    context = builder.build().create_default_context()
    context.continuous_state = [2.0, 1.0] * 4
    np.testing.assert_array_equal(shared(context), [-2.0, -0.5] * 4)
    context.continuous_state = [-2.0, 1.0] * 4
    assert np.all(np.isnan(shared(context)))


# What is known while tracing ----------------------------------------------------------------------


def test_known_components_are_folded_across_blocks() -> None:
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
    assert_all_ways_agree(system)
    # What is left: (0 − x) / T; for each law u[1] + a constant; and twice (u − x) / T.
    assert operations(system, everywhere=True) == 5 * (2 + 1 + 4)


def test_what_derivatives_do_not_depend_on_is_left_out() -> None:
    for timed in (False, True):
        builder = fx.DiagramBuilder("timed")
        for k in range(4):
            builder.add(fx.Constant(f"v{k}", 1.0))
            builder.add(Law(f"clock{k}", lambda c, u: np.sin(c.time * u)))
            builder.add(fx.Multiplexer(f"x{k}", [1, 1]))
            builder.add(Law(f"law{k}", lambda c, u: [2.0 * u[0], u[0]], 2))
            builder.add(Lag(f"l{k}", 2))
            builder.connect(f"v{k}.y", f"clock{k}.u")
            builder.connect(f"clock{k}.y" if timed else f"v{k}.y", f"x{k}.u1")
            builder.connect(f"clock{k}.y", f"x{k}.u2")
            builder.connect(f"x{k}.y", f"law{k}.u")
            builder.connect(f"law{k}.y", f"l{k}.u")
        system = builder.build()
        with sharing(True):
            program = Program(system.layout)
        assert shares_code(program)
        assert program.trace.timed is timed
        assert program.trace.operations == operations(system, everywhere=False)


# How much is traced and written -------------------------------------------------------------------


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the masses and springs whose equations have been run on symbols."""
    names: list[str] = []

    def noting(original: Any) -> Any:
        def calc(block: fx.LeafSystem, context: Any) -> Any:
            if isinstance(context.time, Symbol):
                names.append(block.name)
            return original(block, context)

        return calc

    monkeypatch.setattr(Mass, "calc_time_derivatives", noting(Mass.calc_time_derivatives))
    monkeypatch.setattr(Spring, "calc_force", noting(Spring.calc_force))
    return names


def test_the_equations_of_one_block_are_traced_for_all_that_are_alike(asked: list[str]) -> None:
    runs = []
    for count in (160, 40):
        asked.clear()
        with sharing(True):
            program = Program(rail(count).build().layout)
        assert len(set(asked)) < 6
        runs.append(len(asked))
    assert runs[0] == runs[1]
    asked.clear()
    program.jacobian()  # for which all of them are traced together
    assert len(set(asked)) == 80


def test_a_run_without_events_traces_most_blocks_never(asked: list[str]) -> None:
    simulator = fx.Simulator(rail(60).build(), method="RK45", compiled="native")
    simulator.advance_to(0.1)
    assert simulator.statistics.native_steps > 0
    assert len(set(asked)) < 6


def test_many_blocks_take_hardly_more_code_than_few() -> None:
    few, many = (size_of_code(rail(count).build()) for count in (60, 120))
    assert many < 1.5 * few
    with sharing(False):
        assert size_of_code(rail(60).build()) > 1.5 * few


# Events and Jacobians -----------------------------------------------------------------------------


class Sampler(fx.LeafSystem):
    """Samples the power of a mass, counts bounces of its position, and pushes back."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.gain = self.declare_numeric_parameter("gain", 0.5)
        self.held = self.declare_discrete_state("held", [0.0, 0.0])
        self.u = self.declare_vector_input("u", 1)
        self.y = self.declare_vector_output("y", 1, lambda c: -self.gain(c) * self.held(c)[0])
        self.declare_discrete_update(self.sample, fx.diagrams.Periodic(0.1))
        self.declare_unrestricted_update(self.bounce, fx.diagrams.Witness(lambda c: self.u(c)[0]))

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
def test_events_logs_and_jacobians_work_beside_shared_code(method: str) -> None:
    outcomes = []
    for everywhere in (True, False):
        system = sampled_rail()
        context = system.create_default_context()
        context.continuous_state = 0.05 * np.sin(np.arange(120.0))
        with sharing(everywhere):
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


@pytest.mark.full
def test_programs_with_shared_code_go_with_their_systems() -> None:
    system = rail(60).build()
    made = program_of(system.create_default_context().store)
    assert shares_code(made)
    program = weakref.ref(made)
    del made
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


def assert_written_out(program: Program, context: fx.Context) -> None:
    assert not shares_code(program)
    found = derivatives(program, context)
    np.testing.assert_allclose(found, context.store.time_derivatives(), rtol=1e-12)


def test_a_block_that_looks_beyond_itself_is_written_out() -> None:
    builder = rail(60)
    mass = builder.systems[6]
    assert isinstance(mass, Mass)
    builder.add(Peeping("peeping", mass))
    context = builder.build().create_default_context()
    shake(context, np.random.default_rng(1))
    assert_written_out(Program(context.system.layout), context)


class Careless(fx.LeafSystem):
    """y = 2 u + w, z = u y; an output may forget to say that it needs u."""

    def __init__(self, name: str, *, y_forgets: bool = False, z_forgets: bool = False) -> None:
        super().__init__(name)
        self.u = self.declare_vector_input("u", 1)
        self.w = self.declare_vector_input("w", 1)
        self.back = self.declare_vector_input("back", 1)
        self.y = self.declare_vector_output(
            "y",
            1,
            lambda c: 2.0 * self.u(c) + self.w(c),
            prerequisites=[self.w] if y_forgets else [self.u, self.w],
        )
        self.z = self.declare_vector_output(
            "z",
            1,
            lambda c: self.u(c) * self.back(c),
            prerequisites=[self.back] if z_forgets else [self.u, self.back],
        )


@pytest.mark.parametrize("case", ["one block of several", "one output of several"])
def test_blocks_with_forgotten_prerequisites_are_written_out(case: str) -> None:
    one_block = case == "one block of several"
    builder = fx.DiagramBuilder("careless")
    for k in range(3):
        forgets = one_block and k == 1
        builder.add(Careless(f"c{k}", y_forgets=forgets, z_forgets=not one_block))
        builder.add(Literal(f"u{k}", 1.0 + k))
        builder.add(Literal(f"w{k}", 0.5))
        builder.add(Lag(f"l{k}"))
        builder.connect(f"w{k}.y", f"c{k}.w")
        builder.connect(f"c{k}.y", f"c{k}.back")
        builder.connect(f"c{k}.z", f"l{k}.u")
    for k, source in enumerate(["u0.y", "c2.y" if one_block else "u1.y", "u2.y"]):
        builder.connect(source, f"c{k}.u")
    context = builder.build().create_default_context()
    with sharing(True):
        program = Program(context.system.layout)
    assert_written_out(program, context)
    middle = 6.5 if one_block else 2.0
    expected = [0.5 * u * (2.0 * u + 0.5) for u in (1.0, middle, 3.0)]
    np.testing.assert_array_equal(derivatives(program, context), expected)


def test_blocks_that_all_differ_are_written_out() -> None:
    builder = fx.DiagramBuilder("different")
    for k in range(120):
        builder.add(Lag(f"l{k}"))
        builder.add(Law(f"law{k}", lambda c, u, k=k: k * u))
        builder.connect(f"l{k}.y", f"law{k}.u")
        builder.connect(f"law{k}.y", f"l{k}.u")
    context = builder.build().create_default_context()
    context.continuous_state = np.ones(120)
    program = Program(context.system.layout)
    assert_written_out(program, context)
    np.testing.assert_array_equal(derivatives(program, context), (np.arange(120) - 1.0) / 2.0)


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


def test_blocks_with_foreign_objects_keep_their_own() -> None:
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
