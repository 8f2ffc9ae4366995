"""Filling a context with numbers, and running all equations of a block in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

import flexure as fx
from flexure.diagrams import scalars

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


def fill(context: fx.Context, draw: Draw, rng: np.random.Generator) -> None:
    """Draw every number of the root context of a block."""
    block = context.system
    assert isinstance(block, fx.LeafSystem)
    context.time = float(draw(rng, ()))
    context.continuous_state = draw(rng, context.continuous_state.shape)
    for parameter in block.numeric_parameters:
        parameter.set(context, acceptable(parameter, draw, rng))
    for state in block.discrete_states:
        state.set(context, draw(rng, (state.size,)))
    for port in block.input_ports:
        assert port.size is not None
        port.fix(context, draw(rng, (port.size,)))


def acceptable(parameter: fx.NumericParameter, draw: Draw, rng: np.random.Generator) -> Any:
    """Draw a value within the bounds of a parameter."""
    if parameter.distribution is not None:
        return parameter.distribution(rng)
    low, high = parameter.lower, parameter.upper
    value = draw(rng, parameter.shape)
    value = np.where(value < low, 2.0 * low - value, value)
    value = np.where(value > high, 2.0 * high - value, value)
    value = np.clip(value, low, high)
    if parameter.exclusive:
        value = np.where(value == low, low + 1.0, value)
        value = np.where(value == high, high - 1.0, value)
    if parameter.allow_infinite:
        value = np.where(rng.random(parameter.shape) < 0.2, np.copysign(np.inf, value), value)
        value = np.clip(value, low, high)
    return value


def equations(block: fx.LeafSystem) -> dict[str, Equation]:
    """Return everything that a block computes for the motion and for its updates, by name."""
    found: dict[str, Equation] = {}
    for computed in (*block.output_ports, *block.cache_entries):
        found[computed.name] = computed
    if block.continuous_state is not None:
        found["derivatives"] = lambda context: context.store.time_derivatives()
    for k, event in enumerate(block.events):
        if isinstance(event.trigger, fx.Witness):
            found[f"witness {k}"] = event.trigger.calc
        if event.kind != "publish":
            found[f"update {k}"] = event.handler
    return found


def run(equation: Equation, context: Any) -> Any:
    """Return what an equation gives, laid end to end; updates in the order of their states."""
    result = equation(context)
    if isinstance(result, Mapping):
        result = [result[state] for state in sorted(result, key=lambda state: state.name)]
    parts = result if isinstance(result, list) else [result]
    return np.hstack([scalars.array(part) for part in parts]) if parts else np.zeros(0)
