"""Blocks are alike when their equations cannot differ; in doubt they are not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.solvers.native.sharing.families.structural_key import structural_key
from tests.support.tiers import for_each


class Lag(fx.LeafSystem):
    """x' = u − x, with attributes of all sorts."""

    def __init__(self, name: str = "lag", size: int = 1, **attributes: Any) -> None:
        super().__init__(name)
        self.p = self.declare_numeric_parameter("p", np.ones(size), lower=0.0)
        self.x = self.declare_continuous_state(z=size)
        self.u = self.declare_vector_input("u", size)
        self.v = self.declare_vector_input("v", size)
        self.y = self.declare_vector_output("y", size, self.x)
        vars(self).update(attributes)

    def calc_time_derivatives(self, context: Any) -> Any:
        return self.u(context) - self.x(context)


class Slotted(Lag):
    """A block that hides an attribute."""

    __slots__ = ("hidden",)


class Numbered(fx.JointSpring):
    """A user's force element, whose equations may read its number in the plant."""


SLIDE = fx.PrismaticJoint("j", fx.PlantBuilder("p").world, fx.Body("b"), axis=(1, 0, 0))


def numbered(index: int) -> Numbered:
    spring = Numbered("spring", SLIDE, stiffness=1.0)
    spring.index = index
    return spring


class Law(fx.LeafSystem):
    """y = law(context)"""

    def __init__(self, name: str, law: Callable[[Any], Any]) -> None:
        super().__init__(name)
        self.y = self.declare_vector_output("y", 1, law)


class Table:
    """A mutable object."""

    def __init__(self, factor: float) -> None:
        self.factor = factor


@dataclass(frozen=True)
class Constants:
    """An object that cannot change, but may compute what cannot be seen."""

    factor: float


TABLE = Table(1.0)
Pair = tuple[Callable[[], fx.LeafSystem], Callable[[], fx.LeafSystem]]


def twice(make: Callable[[], fx.LeafSystem]) -> Pair:
    return make, make


def law(factor: Any) -> Callable[[Any], Any]:
    return lambda context: [factor]


def noted(function: Any) -> Any:
    function.note = "remember"
    return function


def product(a: float, context: Any) -> Any:
    return [a * context.time]


ALIKE: dict[str, Pair] = {
    "nothing": twice(Lag),
    "names": (lambda: Lag("a"), lambda: Lag("b")),
    "default values": (lambda: fx.Constant("a", 1.0), lambda: fx.Constant("a", 2.0)),
    "copies of numbers": twice(lambda: Lag(n=3, f=2.5, b=True, t="text")),
    "copies of containers": twice(lambda: Lag(a=(1, [2.0, {"k": None}]))),
    "copies of containers eight deep": twice(lambda: Lag(a=[[[[[[[[1]]]]]]]])),
    "copies of small arrays": twice(lambda: Lag(a=np.arange(3.0))),
    "copies of the library's constants": twice(
        lambda: Lag(a=fx.sections.RectangleSection(0.02, 0.001))
    ),
    "other ways to one object": twice(lambda: Lag(a=TABLE)),
    "copies of functions": twice(lambda: Law("a", law(2.0))),
    "copies of partial functions": twice(lambda: Law("a", partial(product, 2.0))),
    "themselves": (lambda: referring_to_itself("a"), lambda: referring_to_itself("b")),
}

UNLIKE: dict[str, Pair] = {
    "their classes": (lambda: Lag("a"), lambda: fx.Gain("a", 1.0)),
    "the sizes of states": (lambda: Lag(size=1), lambda: Lag(size=2)),
    "the numbers of ports": (lambda: fx.Sum("a", "++"), lambda: fx.Sum("a", "+++")),
    "an attribute": (lambda: Lag(n=1), lambda: Lag(n=2)),
    "the existence of an attribute": (lambda: Lag(n=1), Lag),
    "the types of equal numbers": (lambda: Lag(n=1), lambda: Lag(n=1.0)),
    "a number and a truth value": (lambda: Lag(n=1), lambda: Lag(n=True)),
    "the signs of zero": (lambda: Lag(f=0.0), lambda: Lag(f=-0.0)),
    "NumPy's and Python's numbers": (lambda: Lag(f=1.5), lambda: Lag(f=np.float64(1.5))),
    "lists and tuples": (lambda: Lag(a=[1]), lambda: Lag(a=(1,))),
    "an entry of a container": (lambda: Lag(a=[1, [2]]), lambda: Lag(a=[1, [3]])),
    "the order of a dictionary": (lambda: Lag(a={1: 1, 2: 2}), lambda: Lag(a={2: 2, 1: 1})),
    "the types of arrays": (lambda: Lag(a=np.zeros(2)), lambda: Lag(a=np.zeros(2, np.float32))),
    "the shapes of arrays": (lambda: Lag(a=np.zeros(4)), lambda: Lag(a=np.zeros((2, 2)))),
    "large arrays": twice(lambda: Lag(a=np.zeros(1000))),
    "objects": twice(lambda: Lag(a=Table(1.0))),
    "a user's constants": twice(lambda: Lag(a=Constants(1.0))),
    "a field of the library's constants": (
        lambda: Lag(a=fx.sections.RectangleSection(0.02, 0.001)),
        lambda: Lag(a=fx.sections.RectangleSection(0.02, 0.002)),
    ),
    "objects in containers": twice(lambda: Lag(a=[Table(1.0)])),
    "arrays of objects": twice(lambda: Lag(a=np.array([TABLE]))),
    "what functions refer to": (lambda: Law("a", law(2.0)), lambda: Law("a", law(3.0))),
    "objects behind functions": twice(lambda: Law("a", law(Table(1.0)))),
    "the lines of functions": (
        lambda: Law("a", lambda context: [1.0]),
        lambda: Law("a", lambda context: [1.0]),
    ),
    "arguments of partial functions": (
        lambda: Law("a", partial(product, 1.0)),
        lambda: Law("a", partial(product, 2.0)),
    ),
    "attributes of functions": twice(lambda: Law("a", noted(law(2.0)))),
    "attributes of partial functions": twice(lambda: Law("a", noted(partial(product, 1.0)))),
    "hidden attributes": twice(Slotted),
    "the number of a user's force element": (lambda: numbered(1), lambda: numbered(2)),
    "other blocks": twice(lambda: Lag(a=Lag())),
    "handles of other blocks": twice(lambda: Lag(a=Lag().u)),
}


def referring_to_itself(name: str) -> Lag:
    block = Lag(name)
    vars(block).update(me=block, mine=block.u, method=block.calc_time_derivatives)
    return block


@pytest.mark.parametrize("what", ALIKE)
def test_blocks_are_alike_that_differ_only_in(what: str) -> None:
    first, second = (make() for make in ALIKE[what])
    assert structural_key(first) == structural_key(second)
    assert hash(structural_key(first)) == hash(structural_key(second))


@for_each("what", UNLIKE)
def test_blocks_are_not_alike_that_differ_in(what: str) -> None:
    first, second = (make() for make in UNLIKE[what])
    assert structural_key(first) != structural_key(second)


def test_bounds_make_a_difference_because_equations_can_read_them() -> None:
    first, second = Lag(), Lag()
    other = fx.LeafSystem("other").declare_numeric_parameter("p", np.ones(1), lower=-1.0)
    second.p.lower = other.lower
    assert structural_key(first) != structural_key(second)


def test_a_handle_under_another_name_makes_a_difference() -> None:
    first, second = Lag(), Lag()
    second.u, second.v = second.v, second.u
    assert structural_key(first) != structural_key(second)


def test_a_method_of_its_own_makes_a_difference() -> None:
    first, second = Lag(), Lag()
    vars(second).update(calc_time_derivatives=lambda context: [0.0])
    assert structural_key(first) != structural_key(second)


def test_a_container_that_contains_itself_is_compared_all_the_same() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert structural_key(Lag(a=endless)) == structural_key(Lag(a=endless))
