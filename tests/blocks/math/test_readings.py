"""Every function means the same for floats, lists, symbols and lanes, and has exact slopes."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from flexure.blocks import math as fm
from flexure.diagrams import scalars
from tests.blocks.math.samples import (
    FUNCTIONS,
    ROUNDED,
    differences,
    flat,
    sample,
    traced,
    traced_slopes,
    values_of,
)
from tests.support.tiers import for_each

TURNS = (fm.x_rotation, fm.y_rotation, fm.z_rotation)

every_function = for_each("name", FUNCTIONS)


def test_every_function_is_tried() -> None:
    public = {name for name, each in vars(fm).items() if inspect.isfunction(each)}
    assert public <= set(FUNCTIONS)


@every_function
def test_nested_lists_are_as_good_as_arrays(name: str) -> None:
    function, _ = FUNCTIONS[name]
    arguments = sample(name, seed=0)
    lists = [np.asarray(argument).tolist() for argument in arguments]
    assert np.array_equal(flat(function(*lists)), flat(function(*arguments)))


@every_function
@for_each("seed", range(5))
def test_symbols_give_the_bits_of_floats(name: str, seed: int) -> None:
    function, _ = FUNCTIONS[name]
    arguments = sample(name, seed)
    found = scalars.evaluate(traced(function, arguments), values_of(arguments))
    expected = flat(function(*arguments))
    if name in ROUNDED:
        assert found == pytest.approx(expected, rel=1e-14, abs=1e-14)
    else:
        assert np.array_equal(found, expected)


@every_function
def test_lanes_give_the_numbers_of_single_samples(name: str) -> None:
    function, _ = FUNCTIONS[name]
    samples = [sample(name, seed) for seed in range(20)]
    values = [values_of(arguments) for arguments in samples]
    lanes = {key: np.array([single[key] for single in values]) for key in values[0]}
    found = scalars.evaluate(traced(function, samples[0]), lanes)
    expected = np.stack([flat(function(*arguments)) for arguments in samples], axis=-1)
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)


#: Points of every kind for functions that choose between formulas.
CHOOSING: dict[str, list[Any]] = {
    "axis_angle_from_rotation": [np.eye(3), fm.x_rotation(np.pi), fm.y_rotation(1e-9)],
    "quaternion_from_rotation": [np.eye(3), *[turn(np.pi) for turn in TURNS], fm.x_rotation(3.0)],
    "rotation_from_rotation_vector": [np.zeros(3), [1e-9, 0.0, 0.0], [0.0, 2.0, 0.0]],
    "rotation_vector_from_rotation": [np.eye(3), fm.x_rotation(np.pi), fm.y_rotation(1e-9)],
    "rotation_vector_rate_matrix": [np.zeros(3), [1e-9, 0.0, 0.0], [0.0, 2.0, 0.0]],
    "rpy_from_rotation": [np.eye(3), *[turn(0.5 * np.pi) for turn in TURNS], fm.z_rotation(np.pi)],
}


@pytest.mark.parametrize("name", CHOOSING)
def test_a_lane_at_a_singular_point_disturbs_no_other_lane(name: str) -> None:
    function, _ = FUNCTIONS[name]
    points = [[np.asarray(point)] for point in CHOOSING[name]]
    values = [values_of(arguments) for arguments in points]
    lanes = {key: np.array([single[key] for single in values]) for key in values[0]}
    outputs = traced(function, points[0])
    slopes = scalars.jacobian(outputs, list(lanes)).to_array()
    for expressions in (outputs, slopes):
        found = scalars.evaluate(expressions, lanes)
        expected = [scalars.evaluate(expressions, single) for single in values]
        assert np.isfinite(found).all()
        assert found == pytest.approx(np.stack(expected, axis=-1), rel=1e-12, abs=1e-12)


@pytest.mark.full
@every_function
@for_each("seed", range(3))
def test_traced_slopes_agree_with_differences(name: str, seed: int) -> None:
    function, _ = FUNCTIONS[name]
    arguments = sample(name, seed)
    expected = differences(function, *arguments)
    scale = max(1.0, float(np.abs(expected).max()))
    assert traced_slopes(function, *arguments) == pytest.approx(expected, abs=1e-7 * scale)
