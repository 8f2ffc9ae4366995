"""Parameters: what is accepted, what is refused, and that nobody can change them from outside."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import ContextError, FlexureError, ValueRefusedError
from tests.support.systems.blocks import Gain, diagram_of
from tests.support.tiers import for_each


class Holder(fx.LeafSystem):
    """A block with one parameter "p" and an output that shows it."""

    def __init__(self, default: Any, name: str = "holder", **options: Any) -> None:
        super().__init__(name)
        self.p = self.declare_numeric_parameter("p", default, **options)


def set_and_get(value: Any, default: Any = 1.0, **options: Any) -> Any:
    holder = Holder(default, **options)
    context = holder.create_default_context()
    holder.p.set(context, value)
    return holder.p(context)


def refusal(value: Any, default: Any = 1.0, **options: Any) -> str:
    """Return the text of the refusal of a value, having checked that nothing changed."""
    holder = Holder(default, **options)
    context = holder.create_default_context()
    before = context.clone()
    with pytest.raises(ValueRefusedError) as caught:
        holder.p.set(context, value)
    assert context == before
    return str(caught.value)


# Declaration -----------------------------------------------------------------------------------


def test_a_handle_shows_what_was_declared() -> None:
    p = Holder(2.5, unit="N/m", lower=0.0, upper=9.0, doc="stiffness").p
    assert (p.name, p.path, p.full_name, p.index) == ("p", "p", "holder.p", 0)
    assert (p.default, p.shape, p.unit, p.doc) == (2.5, (), "N/m", "stiffness")
    assert (p.lower, p.upper, p.exclusive, p.allow_infinite) == (0.0, 9.0, False, False)
    assert repr(p) == "<NumericParameter 'holder.p' = 2.5 [N/m]>"


@pytest.mark.parametrize(
    ("default", "shape"), [(1, ()), (np.float32(1), ()), ([1, 2], (2,)), ([[1.0], [2.0]], (2, 1))]
)
def test_the_default_gives_the_shape_and_values_are_float64(default: Any, shape: Any) -> None:
    holder = Holder(default)
    value = holder.p(holder.create_default_context())
    assert holder.p.shape == np.shape(value) == shape
    assert value.dtype == np.float64
    np.testing.assert_array_equal(value, default)


def test_a_scalar_parameter_is_a_float64_scalar_not_an_array() -> None:
    assert type(set_and_get(2)) is np.float64


@for_each(
    ("default", "options"),
    [
        (-1.0, {"lower": 0.0}),
        (0.0, {"lower": 0.0, "exclusive": True}),
        ([1.0, 3.0], {"upper": [2.0, 2.0]}),
        (math.nan, {}),
        (math.inf, {}),
        ("1", {}),
        (None, {}),
        ([[1.0], [1.0, 2.0]], {}),
        (1.0, {"lower": "zero"}),
        (1.0, {"upper": None}),
        ([1.0, 2.0], {"lower": [0.0, 0.0, 0.0]}),
        (1.0, {"lower": [0.0, 0.0]}),
        (1.0, {"lower": 2.0, "upper": 0.0}),
    ],
)
def test_an_impossible_declaration_is_refused_with_the_path(default: Any, options: Any) -> None:
    with pytest.raises(FlexureError, match=r"Cannot declare parameter 'holder\.p'"):
        Holder(default, **options)


# Values ----------------------------------------------------------------------------------------


@for_each(
    ("value", "found"),
    [
        (3, 3.0),
        (True, 1.0),
        (np.int8(3), 3.0),
        (Fraction(1, 4), 0.25),
        (10**30, 1e30),
        ([4.0], 4.0),
        (np.array([[4.0]]), 4.0),
    ],
)
def test_every_kind_of_real_number_is_accepted(value: Any, found: float) -> None:
    assert set_and_get(value) == found


@for_each(
    ("value", "default", "expected", "found"),
    [
        ("2", 1.0, "a real number", "'2' (str)"),
        (b"2", 1.0, "a real number", "b'2' (bytes)"),
        (None, 1.0, "a real number", "None (NoneType)"),
        (1j, 1.0, "a real number", "1j (complex)"),
        (np.array(1j), 1.0, "a real number", "array(0.+1.j) (ndarray)"),
        ({}, 1.0, "a real number", "{} (dict)"),
        ([1.0, 2.0], 1.0, "a real number", "a vector of size 2"),
        (["1", "2"], [1.0, 2.0], "a vector of size 2", "['1', '2'] (list)"),
        ([1.0, None], [1.0, 2.0], "a vector of size 2", "[1.0, None] (list)"),
        (1.0, [1.0, 2.0], "a vector of size 2", "a real number"),
        ([[1.0, 2.0]], [1.0, 2.0], "a vector of size 2", "an array of shape (1, 2)"),
        ([1.0], np.eye(2), "an array of shape (2, 2)", "a vector of size 1"),
        (math.nan, 1.0, "finite numbers", "nan"),
        ([1.0, -math.inf], [1.0, 2.0], "finite numbers", "[1, -inf]"),
    ],
)
def test_a_value_of_the_wrong_kind_or_shape_is_refused(
    value: Any, default: Any, expected: str, found: str
) -> None:
    assert refusal(value, default) == (
        f"Cannot set parameter 'holder.p': expected {expected}; found {found}."
    )


def test_a_number_beyond_float64_is_refused() -> None:
    assert "expected a real number; found 1000" in refusal(10**400)


# Bounds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "options", "expected"),
    [
        (-1e-9, {"lower": 0.0}, "values in [0, inf] m"),
        (5.1, {"lower": 0.0, "upper": 5.0}, "values in [0, 5] m"),
        (0.0, {"lower": 0.0, "exclusive": True}, "values in (0, inf) m"),
        (5.0, {"upper": 5.0, "exclusive": True}, "values in (-inf, 5) m"),
        (-math.inf, {"lower": 0.0, "allow_infinite": True}, "values in [0, inf] m"),
        (
            -math.inf,
            {"lower": 0.0, "allow_infinite": True, "exclusive": True},
            "values in (0, inf) m",
        ),
        (math.nan, {"allow_infinite": True}, "no NaN"),
    ],
)
def test_a_value_outside_of_the_bounds_is_refused_with_the_unit(
    value: float, options: Any, expected: str
) -> None:
    text = refusal(value, unit="m", **options)
    assert text.startswith(f"Cannot set parameter 'holder.p' [m]: expected {expected}")
    assert "[0, 5] m;" in text or expected != "values in [0, 5] m"


@for_each(
    ("value", "options"),
    [
        (0.0, {"lower": 0.0}),
        (5.0, {"lower": 0.0, "upper": 5.0}),
        (5e-324, {"lower": 0.0, "exclusive": True}),
        (math.inf, {"allow_infinite": True}),
        (-math.inf, {"allow_infinite": True, "exclusive": True}),
        (math.inf, {"lower": 0.0, "allow_infinite": True, "exclusive": True}),
    ],
)
def test_a_value_at_an_inclusive_or_infinite_bound_is_accepted(value: float, options: Any) -> None:
    assert set_and_get(value, **options) == value


def test_bounds_can_be_given_for_each_element() -> None:
    options = {"lower": [0.0, -5.0], "upper": [1.0, 5.0]}
    np.testing.assert_array_equal(set_and_get([1.0, 5.0], [0.5, 0.0], **options), [1.0, 5.0])
    text = refusal([5.0, 1.0], [0.5, 0.0], **options)
    assert "expected values in [[0, -5], [1, 5]]; found [5, 1]" in text


# Copies ----------------------------------------------------------------------------------------


def test_everything_passed_in_is_copied() -> None:
    default, lower, upper, value = np.ones(2), np.zeros(2), np.full(2, 9.0), np.full(2, 2.0)
    holder = Holder(default, lower=lower, upper=upper)
    context = holder.create_default_context()
    holder.p.set(context, value)
    for array in (default, lower, upper, value):
        array[:] = 77.0
    np.testing.assert_array_equal(holder.p(context), [2.0, 2.0])
    np.testing.assert_array_equal(holder.p(holder.create_default_context()), [1.0, 1.0])
    np.testing.assert_array_equal([holder.p.lower, holder.p.upper], [[0.0, 0.0], [9.0, 9.0]])


def test_nothing_handed_out_can_be_written_to() -> None:
    holder = Holder(np.eye(2), lower=-np.ones((2, 2)))
    context = holder.create_default_context()
    for array in (holder.p(context), holder.p.get(context), holder.p.default, holder.p.lower):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 5.0


def test_a_value_handed_out_earlier_stays_as_it_was() -> None:
    holder = Holder([1.0, 2.0])
    context = holder.create_default_context()
    before = holder.p(context)
    holder.p.set(context, [3.0, 4.0])
    np.testing.assert_array_equal(before, [1.0, 2.0])


def test_setting_one_context_leaves_others_and_the_default_alone() -> None:
    holder = Holder(1.0)
    a, b = holder.create_default_context(), holder.create_default_context()
    holder.p.set(a, 2.0)
    assert [holder.p(c) for c in (a, b, holder.create_default_context())] == [2.0, 1.0, 1.0]


# Abstract parameters ---------------------------------------------------------------------------


class Tabled(fx.LeafSystem):
    def __init__(self, table: Any) -> None:
        super().__init__("tabled")
        self.table = self.declare_abstract_parameter("table", table, doc="a table")


def test_abstract_parameters_are_copied_on_the_way_in() -> None:
    table, other = {"rows": [1, 2]}, {"rows": [3]}
    block = Tabled(table)
    context = block.create_default_context()
    table["rows"].append(99)
    assert block.table(context) == {"rows": [1, 2]}
    block.table.set(context, other)
    other["rows"].append(99)
    assert block.table.get(context) == {"rows": [3]}
    assert block.table(block.create_default_context()) == {"rows": [1, 2]}


# Contexts --------------------------------------------------------------------------------------


def test_a_handle_accepts_the_root_context_and_every_one_on_the_way_down() -> None:
    gain = Gain("gain")
    inner = diagram_of(gain, name="inner")
    root = diagram_of(inner, name="root").create_default_context()
    for k, context in enumerate([root, root["inner"], root["inner.gain"]]):
        gain.k.set(context, k + 5.0)
        assert gain.k(root) == gain.k.get(context) == k + 5.0


def test_a_handle_refuses_contexts_that_do_not_contain_its_block() -> None:
    one, other = Gain("one"), Gain("other")
    diagram = diagram_of(diagram_of(one, name="inner"), other)
    context = diagram.create_default_context()
    stranger = Gain("one").create_default_context()
    for wrong, name in ((context["other"], "other"), (stranger, "one")):
        for use in (one.k, one.k.get, lambda c: one.k.set(c, 3.0)):
            with pytest.raises(ContextError) as caught:
                use(wrong)
            assert str(caught.value) == (
                "Cannot use parameter 'inner.one.k' with this context: expected the context of "
                "'inner.one' or of a diagram that contains it; found a context of "
                f"'{name}'. Create the context from the same diagram object."
            )
    assert one.k(context) == 2.0


@pytest.mark.parametrize("wrong", [None, 3.0, Gain("gain")])
def test_what_is_no_context_is_refused_with_the_path(wrong: Any) -> None:
    holder = Holder(1.0)
    for use in (holder.p.get, lambda c: holder.p.set(c, 2.0)):
        with pytest.raises(ContextError, match=r"parameter 'holder\.p': expected a context"):
            use(wrong)


def test_equations_read_the_value_of_their_own_context() -> None:
    gain = Gain("gain", [1.0, 2.0], size=2)
    context = gain.create_default_context()
    gain.u.fix(context, [10.0, 10.0])
    gain.k.set(context, [3.0, 4.0])
    np.testing.assert_array_equal(gain.y(context), [30.0, 40.0])
