"""Functions that look like kernels, but contain what is no part of their language."""
# mypy: ignore-errors
# ruff: noqa: F821, PLC3002, PLW0120, PLW0603, RET503

from __future__ import annotations

import math
from fractions import Fraction

from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.native.kernels.parts.arithmetic import spacing
from flexure.solvers.native.language.language import Floats, Structure, unrolled, where

LIMIT = 2


class Tank(Structure):
    """A record of a test."""

    level: float


class Plant(Structure):
    """A record with a part."""

    tank: Tank
    spare: Tank


def a_list(a: Floats) -> float:
    return sum([a[0], a[1]])


def a_comprehension(a: Floats) -> float:
    return max(a[i] for i in range(3))


def a_foreign_function(a: Floats) -> float:
    return math.sin(a[0])


def a_power(a: Floats) -> float:
    return a[0] ** 2


def a_matrix_product(a: Floats) -> float:
    return a @ a


def a_bounded_slice(a: Floats) -> float:
    return spacing(a[1:3])


def an_attribute_of_a_number(a: float) -> float:
    return a.real


def a_field_that_is_missing(tank: Tank) -> float:
    return tank.temperature


def a_field_that_its_part_has(plant: Plant) -> float:
    return plant.level


def a_field_that_a_part_lacks(plant: Plant) -> float:
    return plant.tank.temperature


def a_field_of_a_number_in_a_part(plant: Plant) -> float:
    return plant.tank.level.unit


def a_part_that_is_replaced(plant: Plant) -> float:
    plant.tank = plant.spare
    return plant.tank.level


def a_structure_in_place_of_its_part(plant: Plant) -> float:
    return level_of(plant)


def an_array_in_place_of_a_structure(a: Floats) -> float:
    return level_of(a)


def a_structure_as_array(tank: Tank) -> float:
    return tank[0]


def an_unknown_name(a: float) -> float:
    return unknown + a


def a_missing_result(a: float) -> float:
    if a > 0.0:
        return a


def a_result_of_another_type(a: float) -> int:
    return a


def an_array_as_number(a: Floats) -> float:
    return a


def a_number_as_index(a: Floats, b: float) -> float:
    return a[b]


def a_loop_over_a_tuple(a: Floats) -> float:
    total = 0.0
    for i in (1, 2):
        total += a[i]
    return total


def a_loop_over_an_array(a: Floats) -> float:
    total = 0.0
    for each in a:
        total += each
    return total


def a_text(a: float) -> float:
    return a + len("text" + a)


def an_exception(a: float) -> float:
    try:
        return 1.0 / a
    except ZeroDivisionError:
        return 0.0


def a_raise(a: float) -> float:
    raise ValueError(a)


def a_function_inside(a: float) -> float:
    def twice(b: float) -> float:
        return 2.0 * b

    return twice(a)


def a_lambda(a: float) -> float:
    return (lambda b: b)(a)


def a_keyword(a: float) -> float:
    return where(a > 0.0, a=a, b=0.0)


def an_unpacked_call(a: float) -> float:
    b, c = divmod(a, 2.0)
    return b + c


def a_global(a: float) -> float:
    global LIMIT
    LIMIT = 3
    return a


def a_loop_with_an_else(a: float) -> float:
    while a > 0.0:
        a -= 1.0
    else:
        a = 7.0
    return a


def a_walrus(a: float) -> float:
    return (b := a) + b


def a_parameter_without_a_type(a) -> float:
    return a


def an_unknown_type(a: FloatArray) -> float:
    return a[0]


def a_jump_out_of_a_loop_that_is_written_out(a: Floats) -> float:
    total = 0.0
    for i in unrolled(3):
        if a[i] < 0.0:
            continue
        total += a[i]
    return total


def a_stride_that_is_not_known(a: Floats, stride: int) -> float:
    total = 0.0
    for i in range(10, 0, stride):
        total += a[i]
    return total


def a_remainder_of_numbers(a: float) -> float:
    return a % 2.0


def an_identity(a: float) -> int:
    return 1 if a is a else 0


def a_class_in_place_of_a_function(a: float) -> float:
    return Fraction(a)


# What some of them call


def level_of(tank: Tank) -> float:
    return tank.level
