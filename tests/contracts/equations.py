"""Contexts full of numbers, and everything that a block computes in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

import flexure as fx
from flexure.blocks.math import rotation_from_rpy
from flexure.blocks.multibody.bodies.solids import validity_problem
from flexure.blocks.multibody.trees.articulated_body import Articulation
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.contexts.context import LeafContext
from flexure.diagrams.values.parameters import COMPARISONS
from flexure.diagrams.values.symbolic_values import STATE, TIME
from flexure.solvers.tracing.trace import number_behind
from tests.contracts.parts import random_unit_inertia
from tests.support.tiers import by_tier

#: Takes the context of a block, gives numbers or symbols.
Equation: TypeAlias = Callable[[Any], Any]
#: Draws numbers of a shape.
Draw: TypeAlias = Callable[[np.random.Generator, tuple[int, ...]], Any]

#: Numbers of all kinds: scattered, all zero, and so few different ones that many are equal.
DRAWS: dict[str, Draw] = {
    "scattered": lambda rng, shape: rng.normal(0.0, 2.0, shape),
    "zero": lambda rng, shape: np.zeros(shape),
    "tied": lambda rng, shape: rng.choice([-1.0, 0.0, 0.5, 1.0, 2.0, 3.0], shape),
}


#: How many contexts of each kind of numbers most tests fill.
SEEDS = by_tier(fast=2, full=3)


def acceptable(
    parameter: fx.diagrams.NumericParameter, draw: Draw, rng: np.random.Generator
) -> Any:
    """Draw a value within the bounds of a parameter."""
    if parameter.distribution is not None:
        return parameter.distribution(rng)
    if parameter.problem is validity_problem:
        return random_unit_inertia(rng)
    low, high = np.broadcast_arrays(parameter.lower, parameter.upper)
    value = draw(rng, parameter.shape)
    value = np.where(value < low, 2.0 * low - value, value)
    value = np.where(value > high, 2.0 * high - value, value)
    width = np.where(np.isfinite(low) & np.isfinite(high), high - low, 0.0)
    value = np.where(width > 0.0, low + width * np.abs(value % 2.0 - 1.0), value)
    if parameter.allow_infinite:
        value = np.where(rng.random(parameter.shape) < 0.2, np.copysign(np.inf, value), value)
    value = np.clip(value, low, high)
    # A hair beside a number that is excluded, what is divided there is mere rounding.
    for bound, inside in ((low, 1.0), (high, -1.0)):
        excluded = parameter.exclusive | (bound != np.round(bound, 9))
        value = np.where(
            excluded & np.isclose(value, bound, rtol=0.0, atol=1e-9), bound + inside, value
        )
    if parameter.problem is not None and parameter.problem(value):
        value = np.round(value)  # what else is refused are numbers that count something
    return value


def value_for(port: fx.diagrams.InputPort, draw: Draw, rng: np.random.Generator) -> Any:
    """Draw a value for an input, with a rotation where the port takes a pose."""
    assert port.size is not None
    if port.name.startswith("pose_"):
        R = rotation_from_rpy(draw(rng, (3,)))
        return np.concatenate([np.ravel(R), draw(rng, (3,))])
    return draw(rng, (port.size,))


def contradictory(block: fx.LeafSystem, context: Any) -> bool:
    """Return whether parameters break a relation that the block declares between them."""
    return any(
        not np.all(COMPARISONS[each.comparison](each.left(context), each.right(context)))
        for each in block.relations
    )


def fill(context: LeafContext, draw: Draw, rng: np.random.Generator) -> None:
    """Draw every number of a block."""
    block = context.system
    context.time = float(draw(rng, ()))
    state = draw(rng, context.continuous_state.shape)
    declared = block.continuous_state
    if declared is not None and declared.problem is not None and declared.problem(state):
        state = state + declared.default  # in which quaternions are not zero
    context.continuous_state = state
    for parameter in block.numeric_parameters:
        parameter.set(context, acceptable(parameter, draw, rng))
    for relation in block.relations:
        left, right = relation.left(context), relation.right(context)
        kept = COMPARISONS[relation.comparison](left, right)
        relation.left.set(context, np.where(kept, left, np.minimum(left, right)))
        relation.right.set(context, np.where(kept, right, np.maximum(left, right) + 1.0))
    for state in block.discrete_states:
        state.set(context, draw(rng, (state.size,)))
    if isinstance(block, fx.Bumper):
        block.free_length.set(context, 5.0 * block.free_length(context))  # so that it is often hit
    if isinstance(block, fx.Noise | fx.BandLimitedNoise):
        block.index.set(context, rng.integers(100))  # it counts samples
    for port in block.input_ports:
        port.fix(context, value_for(port, draw, rng))
    if isinstance(block, fx.Beam) and block.thermoelastic_coefficient is not None:
        (T,) = block.input_port("temperature")(context)  # at which its modulus is positive
        heated = 1.0 + abs(T - block.material.default.temperature)
        block.thermoelastic_coefficient.set(context, rng.uniform(-0.5, 0.5) / heated)


def filled(context: fx.Context, seeds: int = SEEDS) -> Iterator[np.random.Generator]:
    """Fill the context of a block again and again, with one kind of numbers after the other."""
    for draw in DRAWS.values():
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            for leaf in context.leaves():
                fill(leaf, draw, rng)
            yield rng


def equations(block: fx.LeafSystem) -> dict[str, Equation]:
    """Return what a block computes for the motion, its updates and their triggers, by name."""
    found: dict[str, Equation] = {
        computed.name: computed for computed in (*block.output_ports, *block.cache_entries)
    }
    if block.continuous_state is not None:
        found["derivatives"] = lambda context: context.store.time_derivatives()
    for k, event in enumerate(block.events):
        if isinstance(event.trigger, fx.diagrams.Witness):
            found[f"witness {k}"] = event.trigger.calc
        if event.kind != "publish":
            found[f"update {k}"] = event.handler
    return found


def run(equation: Equation, context: Any) -> Any:
    """Return what an equation gives, laid end to end; updates in the order of their states."""
    with np.errstate(all="ignore"):
        result = equation(context)
    if isinstance(result, Mapping):
        result = [result[state] for state in sorted(result, key=lambda state: state.name)]
    return np.hstack([np.zeros(0), *parts_of(result)])


def parts_of(result: Any) -> Iterator[Any]:
    """Yield the arrays in a result, which lists and tuples may hold at any depth."""
    if isinstance(result, Articulation):
        result = result.rates()
    if isinstance(result, list | tuple):
        for part in result:
            yield from parts_of(part)
    elif result is not None:
        yield np.ravel(scalars.array(result))


def accepted(equation: Equation, context: fx.Context) -> Any:
    """Return what an equation gives, or None where it has no meaning."""
    try:
        return run(equation, context)
    except EvaluationError:
        return None


def run_all(context: Any) -> Any:
    """Return what all equations of a block give, laid end to end; NaN for what they refuse."""
    results = [accepted(equation, context) for equation in equations(context.system).values()]
    return np.hstack([np.zeros(0), *(np.nan if each is None else each for each in results)])


class Expressions:
    """What several equations give in a symbolic context, to be computed in others at once."""

    def __init__(self, expressions: Iterable[Any]) -> None:
        parts = list(expressions)
        self._all = np.hstack([np.zeros(0), *parts])
        self._keys = scalars.sources(self._all)
        ends = np.cumsum([0, *(part.size for part in parts)]).tolist()
        self._parts = [slice(*pair) for pair in pairwise(ends)]

    def numbers(self, context: fx.Context) -> list[Any]:
        """Return the numbers of each, from the values of a context."""
        values = {key: _number_behind(context, key) for key in self._keys}
        numbers = scalars.evaluate(self._all, values)
        return [numbers[part] for part in self._parts]


def _number_behind(context: fx.Context, key: Any) -> float:
    (what, _, _), component = key
    store = context.store
    if what == TIME:
        return store.time
    return float(store.x[component]) if what == STATE else number_behind(store, key)
