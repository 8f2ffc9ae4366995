"""What every block of the library promises, checked on all of them."""

from __future__ import annotations

import inspect
import math
import pickle
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.blocks.math import rotation_from_rpy
from flexure.diagrams.checks.errors import DeclarationError, TraceError, ValueRefusedError
from flexure.solvers.tracing.trace import symbolic_store
from tests.contracts.catalog import CATALOG, KINDS, TRIED
from tests.contracts.equations import (
    Expressions,
    acceptable,
    accepted,
    contradictory,
    equations,
    filled,
    run,
    run_all,
    value_for,
)
from tests.support.systems.blocks import diagram_of
from tests.support.tiers import for_each

#: Equations that no symbols go through, and why.
FOREIGN = "a function of math takes nothing but numbers"
NOT_TRACED: dict[str, dict[str, str]] = {
    "FunctionBlock of a foreign function": {"y": FOREIGN},
    "TimeFunction of a foreign function": {"y": FOREIGN},
}

#: Blocks with matrix products, np.interp or powers of scalars, which NumPy rounds in its own way.
ROUNDED = {
    fx.AffineSystem,
    fx.Beam,
    fx.Bumper,
    fx.Cable,
    fx.Contact,
    fx.DoorHinge,
    fx.GainSchedule,
    fx.GeneralBushing,
    fx.GravityCompensation,
    fx.InverseDynamics,
    fx.LeafSpring,
    fx.LinearBushing,
    fx.LinearBushingRollPitchYaw,
    fx.LinearSpringDamper,
    fx.LookupTable,
    fx.LuenbergerObserver,
    fx.MatrixGain,
    fx.multibody.MultibodyTree,
    fx.NotchHinge,
    fx.PadeDelay,
    fx.PiezoStack,
    fx.LuenbergerObserver,
    fx.StateFeedback,
    fx.StateSpace,
    fx.TimeDelay,
    fx.Recorded,
    fx.Trajectory,
    fx.TransferFunction,
    fx.WireFlexure,
}

UNITS = {
    *(
        "",
        "s",
        "1/s",
        "1/s^2",
        "Hz",
        "m",
        "m/s",
        "m/s^2",
        "rad",
        "rad/s",
        "rad/s^2",
        "kg",
        "kg m^2",
        "kg/m^3",
        "Pa",
        "1/m",
    ),
    *("1/s^2", "m^2", "s/m", "s/rad", "N", "N m", "N/m", "N m/rad", "N s/m", "N m s/rad", "J", "W"),
    *("V", "C", "K", "K/m", "K/s", "K/(m s)", "1/K"),
}


every_block = for_each("label", TRIED)
every_kind = for_each("kind", KINDS)


def same(first: Any, second: Any) -> bool:
    return np.array_equal(first, second, equal_nan=True)


# The catalog -------------------------------------------------------------------------------------


def test_the_catalog_has_every_block() -> None:
    assert {make.func for make in CATALOG.values()} == set(KINDS)


#: Options whose values belong to one plant, which `test_every_mechanism` tries.
TRIED_IN_PLANTS: dict[type[fx.LeafSystem], set[str]] = {fx.multibody.MultibodyTree: {"constraints"}}


@every_kind
def test_the_catalog_has_every_option(kind: type[fx.LeafSystem]) -> None:
    signature = inspect.signature(kind)
    given: set[str] = set()
    for make in CATALOG.values():
        if make.func is kind:
            given.update(signature.bind(*make.args, **make.keywords).arguments)
    assert given == set(signature.parameters) - TRIED_IN_PLANTS.get(kind, set())


# One equation, many readings ---------------------------------------------------------------------


@every_block
def test_equations_give_the_same_numbers_through_symbols(label: str) -> None:
    block = CATALOG[label]()
    context = block.create_default_context()
    (symbolic,) = symbolic_store(block.layout).leaves
    not_traced = NOT_TRACED.get(label, {})
    traced = {name: each for name, each in equations(block).items() if name not in not_traced}
    assert not_traced.keys() == equations(block).keys() - traced.keys()
    for name in not_traced:
        with pytest.raises(TraceError):
            run(equations(block)[name], symbolic)
    expressions = {name: run(equation, symbolic) for name, equation in traced.items()}
    at_once = Expressions(expressions.values())
    for _ in filled(context):
        for name in not_traced:
            assert np.all(np.isfinite(run(equations(block)[name], context)))
        for (name, equation), found in zip(traced.items(), at_once.numbers(context), strict=True):
            expected = accepted(equation, context)
            if expected is None:
                assert np.isnan(found).any()  # so that compiled equations ask for the reason
            elif type(block) in ROUNDED:
                np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12, err_msg=name)
            else:
                np.testing.assert_array_equal(found, expected, err_msg=name)


@every_block
def test_equations_leave_the_context_as_it_was(label: str) -> None:
    block = CATALOG[label]()
    context = block.create_default_context()
    for _ in filled(context, seeds=1):
        before = context.clone()
        first, second = run_all(context), run_all(context)
        assert same(first, second)
        assert context == before


# What an output needs ----------------------------------------------------------------------------


@every_block
def test_declared_prerequisites_are_those_that_tracing_finds(label: str) -> None:
    block = CATALOG[label]()
    twin = CATALOG[label]()
    for computed in (*twin.output_ports, *twin.cache_entries):
        computed.prerequisites = None
    assert block.feedthrough == twin.feedthrough
    for port, traced in zip(block.output_ports, twin.output_ports, strict=True):
        declared = block.layout.masks[block.layout.slot_of(port)]
        found = twin.layout.masks[twin.layout.slot_of(traced)]
        if port.name in NOT_TRACED.get(label, {}):
            assert declared & ~found == 0  # everything is assumed
        else:
            assert declared == found, port.name


@every_block
def test_every_direct_feedthrough_is_felt(label: str) -> None:
    block = CATALOG[label]()
    context = block.create_default_context()
    #: All outputs of an element read its drives; forces or powers change with each.
    driven = {port.name: False for port in getattr(block, "drive_ports", ())}
    for entry, name in sorted(block.feedthrough):
        port, output = block.input_port(entry), block.output_port(name)

        def is_felt(rng: np.random.Generator, port: Any = port, output: Any = output) -> bool:
            before = accepted(output, context)
            port.fix(context, value_for(port, lambda rng, shape: rng.normal(size=shape), rng))
            after = accepted(output, context)
            return before is not None and after is not None and not same(after, before)

        if entry not in driven:
            assert any(map(is_felt, filled(context, seeds=200))), (entry, name)
        elif not driven[entry] and name in ("force_on_A", "non_conservative_power"):
            driven[entry] = any(map(is_felt, filled(context, seeds=60)))
    assert all(driven.values()), driven


# Parameters --------------------------------------------------------------------------------------


@every_block
def test_every_entry_of_every_parameter_has_an_effect(label: str) -> None:
    block = CATALOG[label]()
    context = block.create_default_context()
    for parameter in block.numeric_parameters:
        for entry in np.ndindex(parameter.shape):

            def matters(
                rng: np.random.Generator, parameter: Any = parameter, entry: Any = entry
            ) -> bool:
                value = np.array(parameter(context))
                before = run_all(context)
                value[entry] = np.asarray(
                    acceptable(parameter, lambda rng, shape: rng.normal(0.0, 3.0, shape), rng)
                )[entry]
                if parameter.problem is not None and parameter.problem(value):
                    value[entry[::-1]] = value[entry]  # of a matrix that has to be symmetric
                if parameter.problem is not None and parameter.problem(value):
                    return False  # the other entries do not fit this one
                parameter.set(context, value)
                if contradictory(block, context):
                    return False
                return not same(run_all(context), before)

            assert any(map(matters, filled(context, seeds=200))), f"{parameter.name}{[*entry]}"


@every_block
def test_bounds_of_parameters_are_enforced(label: str) -> None:
    block = CATALOG[label]()
    context = block.create_default_context()
    for parameter in block.numeric_parameters:
        ones, value = np.ones(parameter.shape), parameter(context)
        refused: list[Any] = [np.nan * ones]
        if not parameter.allow_infinite:
            refused += [np.inf * ones, -np.inf * ones]
        for bound, beyond in ((parameter.lower, -1.0), (parameter.upper, 1.0)):
            if np.any(np.isfinite(bound)):
                at_bound = np.where(np.isfinite(bound), bound, value)
                refused.append(at_bound + beyond * np.isfinite(bound))
                if parameter.exclusive:
                    refused.append(at_bound)
                else:
                    parameter.set(context, at_bound)
                    parameter.set(context, value)
        for wrong in refused:
            with pytest.raises(ValueRefusedError, match=rf"block\.{parameter.name}"):
                parameter.set(context, wrong)
            assert same(parameter(context), value)


@every_block
def test_units_are_spelled_alike(label: str) -> None:
    block = CATALOG[label]()
    items: list[Any] = [*block.numeric_parameters, *block.input_ports, *block.output_ports]
    assert {unit for item in items for unit in item.unit.split(", ")} <= UNITS


# Contexts and systems ----------------------------------------------------------------------------


@every_block
def test_random_contexts_follow_their_seed(label: str) -> None:
    block = CATALOG[label]()
    first, second = (block.create_random_context(np.random.default_rng(3)) for _ in range(2))
    assert first == second
    drawn = {handle.name for handle in block.random_handles()}
    default = block.create_default_context()
    for parameter in block.numeric_parameters:
        assert same(parameter(first), parameter(default)) == (parameter.name not in drawn)


@every_block
def test_a_clone_is_equal_and_independent(label: str) -> None:
    block = CATALOG[label]()
    context = block.create_default_context()
    for _ in filled(context, seeds=1):
        before, clone = run_all(context), context.clone()
        assert clone == context
        assert same(run_all(clone), before)
        for _ in filled(clone, seeds=2):
            pass
        clone.time = 77.0
        assert clone != context
        assert same(run_all(context), before)


@every_block
def test_a_saved_context_is_loaded_with_every_bit(label: str, tmp_path: Path) -> None:
    block = CATALOG[label]()
    context = block.create_default_context()
    for _ in filled(context, seeds=1):
        context.save(tmp_path / "context.json")
        loaded = block.load_context(tmp_path / "context.json")
        assert loaded == context
        assert same(run_all(loaded), run_all(context))


@pytest.mark.parametrize("wrap", [lambda block: block, diagram_of], ids=["alone", "in a diagram"])
@every_block
def test_a_pickled_block_computes_the_same(
    label: str, wrap: Callable[[fx.LeafSystem], fx.System]
) -> None:
    block = CATALOG[label]()
    system = wrap(block)
    context = system.create_default_context()
    twin = pickle.loads(pickle.dumps(system))
    for _ in filled(context, seeds=1):
        restored = twin.context_from_dict(context.to_dict())
        for leaf, other in zip(context.leaves(), restored.leaves(), strict=True):
            assert same(run_all(other), run_all(leaf))


@every_block
def test_a_block_says_what_it_is(label: str) -> None:
    block = CATALOG[label]()
    assert repr(block) == f"<{type(block).__name__} 'block'>"
    for handle in block.handles:
        assert f"'block.{handle.name}'" in repr(handle)
    assert "'block'" in repr(block.create_default_context())


@every_block
def test_a_block_in_use_refuses_declarations(label: str) -> None:
    block = CATALOG[label]()
    block.create_default_context()
    handles, events = block.handles, list(block.events)
    late: list[Callable[[], Any]] = [
        lambda: block.declare_numeric_parameter("late", 1.0),
        lambda: block.declare_abstract_parameter("late", "value"),
        lambda: block.declare_relation(None, "<", None),  # type: ignore[arg-type]
        lambda: block.declare_continuous_state(z=1, name="late"),
        lambda: block.declare_discrete_state("late", 1.0),
        lambda: block.declare_abstract_state("late", "value"),
        lambda: block.declare_vector_input("late", 1),
        lambda: block.declare_abstract_input("late"),
        lambda: block.declare_vector_output("late", 1, lambda context: 1.0),
        lambda: block.declare_abstract_output("late", lambda context: 1.0),
        lambda: block.declare_cache_entry("late", lambda context: 1.0),
        lambda: block.declare_publish(lambda context: None, fx.diagrams.PerStep()),
        lambda: block.declare_discrete_update(lambda context: {}, fx.diagrams.PerStep()),
        lambda: block.declare_unrestricted_update(lambda context: {}, fx.diagrams.PerStep()),
        lambda: block.declare_record(list),
    ]
    for declare in late:
        with pytest.raises(DeclarationError):
            declare()
    assert block.handles == handles
    assert block.events == events


# Break times -------------------------------------------------------------------------------------


def break_times(block: fx.LeafSystem, context: fx.Context, until: float) -> list[float]:
    """Go from break to break, and move the time of the context with them."""
    found: list[float] = []
    while (time := block.calc_next_break_time(context)) <= until:
        assert isinstance(time, float)
        assert time > context.time
        found.append(time)
        assert len(found) < 10_000
        context.time = time
    return found


@every_block
def test_break_times_increase_and_do_not_pile_up(label: str) -> None:
    block = CATALOG[label]()
    context = block.create_default_context()
    for _ in filled(context):
        break_times(block, context, context.time + 10.0)


def largest_jump(signal: Callable[[float], Any], start: float, end: float) -> float:
    """Return what is left of the largest change when an interval shrinks around it."""

    def change(left: float, right: float) -> float:
        return float(np.max(np.abs(signal(right) - signal(left))))

    pairs = pairwise(np.linspace(start, end, 50).tolist())
    left, right = max(pairs, key=lambda pair: change(*pair))
    while (middle := 0.5 * (left + right)) not in (left, right):
        if change(left, middle) > change(middle, right):
            right = middle
        else:
            left = middle
    return change(left, right)


def is_function_of_time(block: fx.LeafSystem) -> bool:
    has_state = block.continuous_state is not None or bool(block.discrete_states)
    return not (block.input_ports or has_state)


@for_each("label", [label for label in TRIED if is_function_of_time(CATALOG[label]())])
def test_a_source_jumps_at_its_break_times_only(label: str) -> None:
    block = CATALOG[label]()
    context = block.create_default_context()

    def signal(time: float) -> Any:
        context.time = time
        return block.output_port("y")(context)

    for _ in filled(context, seeds=2):
        context.time = -1.0
        for start, end in pairwise([-1.0, *break_times(block, context, 5.0), 5.0]):
            # The value at a break is the new one.
            assert largest_jump(signal, start, math.nextafter(end, start)) < 1e-9


# In a simulation ---------------------------------------------------------------------------------


def wave(port: fx.diagrams.InputPort, phase: float, time: Any) -> Any:
    """Return sines, or the pose of a body that sways around a place of its own."""
    if port.name.startswith("pose_"):
        phases = phase + np.arange(3.0)
        sines = np.sin(5.0 * time + phases)
        return np.concatenate([np.ravel(rotation_from_rpy(0.3 * sines)), phases + 0.2 * sines])
    return 2.0 * np.sin(5.0 * time + phase + np.arange(float(port.size or 0)))


@every_block
def test_a_block_that_is_fed_with_sines_gives_finite_signals(label: str) -> None:
    block = CATALOG[label]()
    builder = fx.DiagramBuilder("bench")
    builder.add(block)
    for k, port in enumerate(block.input_ports):
        feed = fx.TimeFunction(f"feed{k}", partial(wave, port, 1.0 + k), size=port.size or 0)
        builder.connect(builder.add(feed).y, port)
    result = fx.simulate(builder.build(), 2.0)
    assert result.outcome == ("terminated" if isinstance(block, fx.StopWhen) else "completed")
    for signal in result.signals:
        assert np.all(np.isfinite(result[signal])), signal
