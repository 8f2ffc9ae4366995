"""Sources: their values, where they jump or bend, and what can be set in a context."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.signal
from hypothesis import given, strategies as st

import flexure as fx
from flexure.blocks.signals.noise import Noise
from flexure.blocks.signals.sources import Constant, Ramp, Step, TimeFunction, Trajectory
from flexure.blocks.signals.waveforms import Chirp, Sine, Square
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import DeclarationError, ValueRefusedError
from flexure.diagrams.systems.feedthrough import Probe, needs_of
from flexure.diagrams.values import kinds
from flexure.diagrams.values.symbolic_values import DISCRETE, PARAMETER, TIME
from tests.support.systems.sources import (
    GRID,
    KNOTS,
    POINTS,
    before,
    breaks_of,
    times,
    value_at,
    values_at,
)
from tests.support.tiers import for_each, thinned


def making(block: Any, *arguments: Any, **options: Any) -> Callable[[], Any]:
    return partial(block, "source", *arguments, **options)


SOURCES: dict[str, Callable[[], Any]] = {
    "constant": making(Constant, [1.0, 2.0]),
    "step": making(Step, at=[1.0, 2.0], to=3.0, initial=[0.5, 0.25]),
    "ramp": making(Ramp, slope=[1.0, -2.0], start=0.5, stop=2.5),
    "sine": making(Sine, [1.0, 2.0], 3.0, 0.5, -1.0),
    "linear chirp": making(Chirp, [0.5, 1.0], 2.0, 2.5, 1.5),
    "logarithmic chirp": partial(
        Chirp, "source", [0.5, 1.0], [2.0, 1.0], 2.5, 1.5, method="logarithmic"
    ),
    "square": making(Square, 2.0, [0.3, 0.7], 0.25, 0.1, 5.0),
    "held trajectory": making(Trajectory, KNOTS, POINTS, "hold"),
    "linear trajectory": making(Trajectory, KNOTS, POINTS, "linear"),
    "cubic trajectory": making(Trajectory, KNOTS, POINTS, "cubic"),
    "noise": making(Noise, 3, 0.1, size=2),
    "time function": making(TimeFunction, np.exp),
}
OF_TIME = [kind for kind in SOURCES if kind not in ("constant", "noise")]


# All sources -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SOURCES)
def test_source_has_the_output_y_alone_and_no_feedthrough(kind: str) -> None:
    source = SOURCES[kind]()
    assert [port.name for port in source.output_ports] == ["y"]
    assert list(source.input_ports) == []
    assert source.feedthrough == frozenset()


@pytest.mark.parametrize("kind", SOURCES)
def test_declared_prerequisites_are_those_that_tracing_finds(kind: str) -> None:
    source = SOURCES[kind]()
    value = source.y.compute(Probe(source))
    keys: Any = scalars.sources(value)
    declared = {needs_of(each).mask for each in (source.y, *source.cache_entries)}
    bits = {PARAMETER: kinds.PARAMETER, TIME: kinds.TIME_KIND, DISCRETE: kinds.DISCRETE}
    assert sum({bits[what] for (what, _, _), _ in keys} | {kinds.PARAMETER}) == max(declared)


@for_each("kind", OF_TIME)
@for_each("time", [-2.0, 0.1, 0.77, 2.0, 5.0])
def test_equations_on_symbols_give_the_same_numbers(kind: str, time: float) -> None:
    source = SOURCES[kind]()
    traced = source.y.compute(Probe(source))
    inputs = {((TIME, 0, 0), 0): time}
    for parameter in source.numeric_parameters:
        for k, number in enumerate(np.ravel(parameter.default)):
            inputs[((PARAMETER, 0, parameter.index), k)] = number
    np.testing.assert_allclose(
        scalars.evaluate(traced, inputs), value_at(source, time), rtol=1e-13, atol=1e-13
    )


@pytest.mark.parametrize("kind", SOURCES)
def test_source_survives_pickling(kind: str) -> None:
    source = SOURCES[kind]()
    twin = pickle.loads(pickle.dumps(source))
    np.testing.assert_array_equal(values_at(twin, GRID), values_at(source, GRID))
    assert breaks_of(twin, -5.0, 5.0) == breaks_of(source, -5.0, 5.0)


SETTINGS: list[tuple[str, str, Any, float]] = [
    ("constant", "value", [5.0, 6.0], 0.0),
    ("step", "at", [0.0, 0.0], 0.5),
    ("step", "to", 4.0, 2.0),
    ("step", "initial", [7.0, 7.0], 0.0),
    ("ramp", "slope", [0.5, 0.5], 1.0),
    ("ramp", "start", 0.0, 1.0),
    ("ramp", "initial", 1.0, 0.0),
    ("ramp", "stop", np.inf, 9.0),
    ("sine", "amplitude", [4.0, 4.0], 1.0),
    ("sine", "frequency", 2.0, 1.0),
    ("sine", "phase", 0.0, 1.0),
    ("sine", "offset", 3.0, 1.0),
    ("linear chirp", "f0", [1.1, 1.2], 1.0),
    ("linear chirp", "f1", 3.0, 1.0),
    ("linear chirp", "duration", 3.0, 1.0),
    ("linear chirp", "amplitude", 3.0, 1.0),
    ("square", "amplitude", 1.0, 0.1),
    ("square", "period", [1.0, 0.3], 0.25),
    ("square", "duty", 0.9, 0.3),
    ("square", "delay", 0.2, 0.1),
    ("square", "offset", 0.0, 0.1),
    ("held trajectory", "values", 2.0 * POINTS, 0.7),
    ("linear trajectory", "values", 2.0 * POINTS, 0.7),
    ("cubic trajectory", "values", 2.0 * POINTS, 0.7),
    ("noise", "mean", 2.0, 0.0),
    ("noise", "standard_deviation", 2.0, 0.0),
]


@for_each(("kind", "name", "value", "time"), SETTINGS)
def test_every_parameter_can_be_set_in_a_context_and_has_effect(
    kind: str, name: str, value: Any, time: float
) -> None:
    source = SOURCES[kind]()
    changed = value_at(source, time, **{name: value})
    assert np.all(changed != value_at(source, time))


def test_the_table_above_misses_no_parameter() -> None:
    declared = {
        (kind, parameter.name)
        for kind, make in SOURCES.items()
        for parameter in make().numeric_parameters
        if kind != "logarithmic chirp"
    }
    tried = {(kind, name) for kind, name, *_ in SETTINGS}
    assert declared - tried == {("noise", "seed")}  # which counts from the next sample on


@pytest.mark.parametrize(
    ("make", "size"),
    [
        (making(Constant, 1.0), 1),
        (making(Constant, [1.0]), 1),
        (making(Constant, []), 0),
        (making(Step), 1),
        (making(Step, to=[1.0, 2.0, 3.0]), 3),
        (making(Ramp, stop=[]), 0),
        (making(Sine, [1.0], [1.0, 2.0]), 2),
        (making(Square, duty=[0.5, 0.6]), 2),
        (making(Trajectory, [0.0, 1.0], [0.0, 1.0]), 1),
        (making(Trajectory, [0.0, 1.0], np.zeros((2, 4)), "cubic"), 4),
        (making(Noise, 0, 0.1, size=4), 4),
        (making(Noise, 0, 0.1, mean=[1.0, 2.0]), 2),
    ],
)
def test_output_has_one_component_per_entry_of_the_vector_arguments(
    make: Callable[[], Any], size: int
) -> None:
    source = make()
    assert source.y.size == size
    assert value_at(source, 0.5).shape == (size,)
    source.calc_next_break_time(source.create_default_context())


@for_each(
    "make",
    [
        making(Constant, [[1.0, 2.0]]),
        making(Constant, [[1.0], [2.0, 3.0]]),
        making(Constant, "one"),
        making(Step, to=[1.0, 2.0], initial=[1.0, 2.0, 3.0]),
        making(Chirp, method="cubic"),
        making(Trajectory, [0.0], [1.0]),
        making(Trajectory, [0.0, 0.0], [1.0, 2.0]),
        making(Trajectory, [1.0, 0.0], [1.0, 2.0]),
        making(Trajectory, [0.0, np.inf], [1.0, 2.0]),
        making(Trajectory, [[0.0, 1.0]], [1.0, 2.0]),
        making(Trajectory, [0.0, 1.0], [1.0, 2.0, 3.0]),
        making(Trajectory, [0.0, 1.0], 1.0),
        making(Trajectory, [0.0, 1.0], np.zeros((2, 1, 1))),
        making(Trajectory, [0.0, 1.0], [1.0, 2.0], kind="quintic"),
        making(Noise, 0, 0.0),
        making(Noise, 0, 0.1, size=-1),
        making(Noise, 0, 0.1, mean=[1.0, 2.0], size=3),
        making(Noise, 0, 0.1, distribution="cauchy"),
        making(TimeFunction, 1.0),
        making(TimeFunction, np.sin, size=0.5),
        making(TimeFunction, np.sin, breaks=[np.nan]),
        making(TimeFunction, np.sin, breaks=1.0),
    ],
)
def test_malformed_structure_is_refused(make: Callable[[], Any]) -> None:
    with pytest.raises(DeclarationError):
        make()


@for_each(
    "make",
    [
        making(Constant, np.nan),
        making(Step, at=np.inf),
        making(Ramp, start=np.inf),
        making(Ramp, stop=np.nan),
        making(Chirp, duration=0.0),
        making(Chirp, f0=-1.0),
        making(Chirp, f0=0.0, method="logarithmic"),
        making(Square, period=0.0),
        making(Square, duty=1.5),
        making(Trajectory, [0.0, 1.0], [0.0, np.nan]),
        making(Noise, -1, 0.1),
        making(Noise, 2**53, 0.1),
        making(Noise, 0.5, 0.1),
        making(Noise, 0, 0.1, standard_deviation=-1.0),
        making(Noise.from_spectral_density, 0, 0.1, -1.0),
    ],
)
def test_value_out_of_its_bounds_is_refused(make: Callable[[], Any]) -> None:
    with pytest.raises(ValueRefusedError):
        make()


# Steps and ramps ---------------------------------------------------------------------------


def test_constant_gives_its_value_at_any_time() -> None:
    source = Constant("source", [1.0, -2.0])
    np.testing.assert_array_equal(values_at(source, [-1.0, 0.0, 9.0]), [[1.0, -2.0]] * 3)
    assert source.calc_next_break_time(source.create_default_context()) == np.inf


@given(at=times, to=times, initial=times)
def test_step_has_the_new_value_at_its_instant_and_the_old_one_just_before(
    at: float, to: float, initial: float
) -> None:
    step = Step("step", at, to, initial)
    assert value_at(step, at) == to
    assert value_at(step, before(at)) == initial
    assert breaks_of(step, before(at), at + 1.0) == [at]
    assert breaks_of(step, at, at + 1.0) == []


def test_components_of_a_step_jump_one_by_one() -> None:
    step = Step("step", at=[2.0, 1.0, 1.0], to=[1.0, 2.0, 3.0])
    assert breaks_of(step, 0.0, 5.0) == [1.0, 2.0]
    np.testing.assert_array_equal(value_at(step, 1.0), [0.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("stop", "expected"),
    [(3.0, [5.0, 5.0, 4.0, 1.0, 1.0]), (np.inf, [5.0, 5.0, 4.0, 1.0, -1.0]), (0.0, [5.0] * 5)],
)
def test_ramp_is_flat_then_straight_then_flat(stop: float, expected: list[float]) -> None:
    ramp = Ramp("ramp", slope=-2.0, start=1.0, initial=5.0, stop=stop)
    np.testing.assert_array_equal(values_at(ramp, [-1.0, 1.0, 1.5, 3.0, 4.0])[:, 0], expected)


def test_ramp_breaks_at_its_bends() -> None:
    assert breaks_of(Ramp("ramp", start=[1.0, 2.0], stop=3.0), 0.0, 9.0) == [1.0, 2.0, 3.0]
    assert breaks_of(Ramp("ramp", start=1.0), 0.0, 9.0) == [1.0]


# Waveforms ---------------------------------------------------------------------------------


def test_sine_is_offset_plus_amplitude_times_the_sine_of_the_angle() -> None:
    sine = Sine("sine", amplitude=2.0, frequency=3.0, phase=0.5, offset=-1.0)
    expected = -1.0 + 2.0 * np.imag(np.exp(1j * (3.0 * GRID + 0.5)))
    np.testing.assert_allclose(values_at(sine, GRID)[:, 0], expected, rtol=0.0, atol=1e-14)


@pytest.mark.parametrize("method", ["linear", "logarithmic"])
@pytest.mark.parametrize("f1", [0.3, 2.0, 7.0])
def test_chirp_agrees_with_that_of_scipy_during_the_sweep(method: Any, f1: float) -> None:
    instants = np.linspace(0.0, 3.0, 50)
    chirp = Chirp("chirp", 2.0, f1, 3.0, 1.5, method)
    expected = 1.5 * scipy.signal.chirp(instants, 2.0, 3.0, f1, method=method, phi=-90.0)
    np.testing.assert_allclose(values_at(chirp, instants)[:, 0], expected, atol=1e-12)


@pytest.mark.parametrize("f1", [2.0, 2.0 + 1e-12])
def test_logarithmic_chirp_of_equal_frequencies_is_a_sine(f1: float) -> None:
    chirp = Chirp("chirp", 2.0, f1, 3.0, method="logarithmic")
    instants = np.linspace(0.0, 3.0, 20)
    expected = np.sin(4.0 * np.pi * instants)
    np.testing.assert_allclose(values_at(chirp, instants)[:, 0], expected, atol=1e-10)


@pytest.mark.parametrize("method", ["linear", "logarithmic"])
@pytest.mark.parametrize("time", [-1.3, -0.1, 0.0, 1.0, 2.0, 2.1, 7.7])
def test_chirp_holds_its_frequency_outside_of_the_sweep(method: Any, time: float) -> None:
    def frequency(t: float) -> float:
        part = min(max(t / 2.0, 0.0), 1.0)
        return 0.5 + 2.5 * part if method == "linear" else float(0.5 * 6.0**part)

    cycles, _ = scipy.integrate.quad(frequency, 0.0, time, points=[0.0, 2.0], epsabs=1e-12)
    chirp = Chirp("chirp", 0.5, 3.0, 2.0, method=method)
    np.testing.assert_allclose(value_at(chirp, time), np.sin(2.0 * np.pi * cycles), atol=1e-10)


def test_chirp_breaks_at_both_ends_of_the_sweep() -> None:
    assert breaks_of(Chirp("chirp", duration=[2.0, 3.0]), -1.0, 9.0) == [0.0, 2.0, 3.0]


def test_square_wave_is_low_until_its_delay_and_then_high_for_its_duty() -> None:
    square = Square("square", amplitude=2.0, period=4.0, duty=0.25, delay=1.0, offset=10.0)
    found = values_at(square, [-3.5, 0.0, 1.0, 1.5, 2.0, 4.9, 5.0, 6.0])[:, 0]
    np.testing.assert_array_equal(found, [8.0, 8.0, 12.0, 12.0, 8.0, 8.0, 12.0, 8.0])


@pytest.mark.parametrize(("duty", "level"), [(0.0, -1.0), (1.0, 1.0)])
def test_square_wave_of_extreme_duty_does_not_change(duty: float, level: float) -> None:
    square = Square("square", period=0.1, duty=duty)
    edges = breaks_of(square, 0.0, 20.0)
    instants = [0.0, *edges, *map(before, edges)]
    np.testing.assert_array_equal(values_at(square, instants), level)


@pytest.mark.full
@pytest.mark.parametrize(
    ("period", "duty", "delay", "count"),
    thinned([(0.1, 0.3, 0.0, 10_000), (0.1, 1 / 3, -7.7, 3000), (1 / 3, 0.5, 1e4, 3000)], fast=1),
)
def test_no_edge_of_a_square_wave_is_missed_or_hit_twice(
    period: float, duty: float, delay: float, count: int
) -> None:
    square = Square("square", period=period, duty=duty, delay=delay)
    context = square.create_default_context()
    context.time = before(delay)
    level = -1.0
    for k in range(count):
        for edge in (delay + k * period, delay + (k + duty) * period):
            assert square.calc_next_break_time(context) == edge
            context.time = edge
            level = -level
            assert square.y(context) == level


@given(period=st.floats(1e-3, 1e3), duty=st.floats(0.0, 1.0), delay=times, start=times)
def test_square_wave_jumps_nowhere_but_at_its_edges(
    period: float, duty: float, delay: float, start: float
) -> None:
    square = Square("square", period=period, duty=duty, delay=delay)
    first = max(int((start - delay) / period) - 2, 0)
    edges = {delay + (k + d) * period for k in range(first, first + 12) for d in (0.0, duty)}
    expected = sorted(edge for edge in edges if edge > start)[:12]
    assert breaks_of(square, start, expected[-1]) == expected
    for left, right in pairwise([start, *expected]):
        assert value_at(square, left) == value_at(square, before(right))


def test_edges_of_a_square_wave_are_the_instants_of_a_periodic_event() -> None:
    trigger = fx.diagrams.Periodic(0.1, 0.05)
    square = Square("square", period=0.1, duty=0.0, delay=0.05)
    context = square.create_default_context()
    for _ in range(2000):
        following = trigger.next_time(context.time)
        assert square.calc_next_break_time(context) == following
        context.time = following


def test_components_of_a_square_wave_have_edges_of_their_own() -> None:
    square = Square("square", period=[1.0, 1.5], duty=0.5)
    assert breaks_of(square, 0.0, 3.0) == [0.5, 0.75, 1.0, 1.5, 2.0, 2.25, 2.5, 3.0]


# Functions of time -------------------------------------------------------------------------


def test_time_function_gives_what_the_function_returns() -> None:
    source = TimeFunction("source", lambda t: [t, t**2, 1.0], size=3)
    np.testing.assert_array_equal(value_at(source, 3.0), [3.0, 9.0, 1.0])


def test_time_function_breaks_where_it_was_told() -> None:
    source = TimeFunction("source", np.sin, breaks=[3.0, 1.0, 2.0, 1.0])
    assert breaks_of(source, 0.0, 9.0) == [1.0, 2.0, 3.0]
    assert breaks_of(TimeFunction("source", np.sin), 0.0, 9.0) == []


def test_a_logarithmic_chirp_of_equal_frequencies_has_slopes_by_both() -> None:
    """Both share in the cycles since the begin, f t: by f0 it is t - t²/2T, by f1 t²/2T."""
    chirp = Chirp("chirp", 0.4, 0.4, 3.0, 1.5, "logarithmic")
    found = fx.parameter_sensitivity(chirp, ["f0", "f1"], 2.0, outputs="y", times=[2.0])
    rate = 2.0 * np.pi * 1.5 * np.cos(2.0 * np.pi * 0.4 * 2.0)
    slopes = found.output_derivatives["y"]
    parts = [slopes[name].item() for name in ("f0", "f1")]
    np.testing.assert_allclose(parts, rate * np.array([4.0 / 3.0, 2.0 / 3.0]), rtol=1e-9)
