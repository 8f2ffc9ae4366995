"""Written expressions mean what they were written from, with no parenthesis too many."""

from __future__ import annotations

import ast
import itertools
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from matplotlib.mathtext import MathTextParser

from flexure.diagrams import scalars as fs
from flexure.diagrams.checks.errors import UnknownNameError
from flexure.diagrams.scalars.expressions.vocabulary import CONDITIONS, LOGICAL, OPERATIONS
from tests.support.pages.mathml import as_python
from tests.support.tiers import for_each

NAMES = ("a", "b", "c", "x")
Expression = Callable[..., Any]


def symbols() -> list[Any]:
    graph = fs.Graph()
    return [graph.input(name) for name in NAMES]


def names_of(*names: str) -> dict[str, str]:
    return {name: name for name in names or NAMES}


def python(*outputs: Any, **options: Any) -> fs.Written:
    return fs.write_python(outputs, names_of(), **options)


def latex(*outputs: Any) -> fs.Written:
    return fs.write_latex(outputs, names_of())


def run(written: fs.Written, values: dict[str, Any]) -> list[Any]:
    """Run what was written as Python with NumPy."""
    namespace = {**vars(np), **values}
    with np.errstate(all="ignore"):
        for name, definition in written.definitions:
            namespace[name] = eval(definition, namespace)
        return [eval(result, namespace) for result in written.results]


def lanes(*numbers: float) -> dict[str, Any]:
    """Give the inputs values in arrays, for which NumPy has one way of computing powers."""
    return {name: np.array([number]) for name, number in zip(NAMES, numbers, strict=False)}


# Precedence and order ----------------------------------------------------------------------------

WRITTEN: dict[str, Expression] = {
    "a - (b - c)": lambda a, b, c, x: a - (b - c),
    "a - b - c": lambda a, b, c, x: a - b - c,
    "a + b + c": lambda a, b, c, x: c + (a + b),
    "a + b + (c + x)": lambda a, b, c, x: (a + b) + (c + x),
    "a/(b*c)": lambda a, b, c, x: a / (b * c),
    "a/b/c": lambda a, b, c, x: a / b / c,
    "a/(b/c)": lambda a, b, c, x: a / (b / c),
    "a*b*c": lambda a, b, c, x: (a * b) * c,
    "a*b*(c*x)": lambda a, b, c, x: (a * b) * (c * x),
    "c*(a + b)": lambda a, b, c, x: c * (a + b),
    "(a + b)*(a - b)": lambda a, b, c, x: (a + b) * (a - b),
    "a*b*(c + x)": lambda a, b, c, x: (c + x) * (a * b),
    "c + a*b": lambda a, b, c, x: a * b + c,
    "c + x + (a if a < b else b)": lambda a, b, c, x: fs.where(a < b, a, b) + (c + x),
    "a**2": lambda a, b, c, x: a * a,
    "(a + b)**2": lambda a, b, c, x: (a + b) ** 2,
    "-a**2": lambda a, b, c, x: -(a**2),
    "(-a)**3": lambda a, b, c, x: (-a) ** 3,
    "-a**3": lambda a, b, c, x: -(a**3),
    "a**b**c": lambda a, b, c, x: a ** (b**c),
    "(a**b)**c": lambda a, b, c, x: (a**b) ** c,
    "a**-b": lambda a, b, c, x: a**-b,
    "a**(b + c)": lambda a, b, c, x: a ** (b + c),
    "(a*b)**c": lambda a, b, c, x: (a * b) ** c,
    "(a/b)**2": lambda a, b, c, x: (a / b) ** 2,
    "(-2)**x": lambda a, b, c, x: (-2) ** x,
    "x**-2": lambda a, b, c, x: x**-2,
    "-a*b": lambda a, b, c, x: a * -b,
    "a*b*c*x": lambda a, b, c, x: a * -b * c * -x,
    "-a/b": lambda a, b, c, x: a / -b,
    "-(a + b)": lambda a, b, c, x: -(a + b),
    "a - (b + c)": lambda a, b, c, x: a - (b + c),
    "b - a": lambda a, b, c, x: -a + b,
    "-a - b": lambda a, b, c, x: -a - b,
    "a + b*c": lambda a, b, c, x: a - b * -c,
    "x - 2*a": lambda a, b, c, x: x + -2.0 * a,
    "2*x": lambda a, b, c, x: x * 2,
    "x + 2": lambda a, b, c, x: 2 + x,
    "2 - x": lambda a, b, c, x: 2 - x,
    "x - 2": lambda a, b, c, x: x - 2,
    "-x": lambda a, b, c, x: x * -1.0,
    "c*(a//b)": lambda a, b, c, x: (a // b) * c,
    "(a*b)//c": lambda a, b, c, x: a * b // c,
    "(-a)//b": lambda a, b, c, x: -a // b,
    "-(a//b)": lambda a, b, c, x: -(a // b),
    "a - b%c": lambda a, b, c, x: a - b % c,
    "sin(-a) + abs(b - c)": lambda a, b, c, x: np.sin(-a) + np.abs(b - c),
    "arctan2(a, b)*sqrt(c)": lambda a, b, c, x: np.arctan2(a, b) * np.sqrt(c),
    "1 if a < b else 0": lambda a, b, c, x: (a < b) * 1.0,
    "a if b > 0 else c": lambda a, b, c, x: fs.where(b > 0, a, c),
    "a if b == 0 else c": lambda a, b, c, x: fs.where(b == 0, a, c),
    "2*(a if b < c else x)": lambda a, b, c, x: 2 * fs.where(b < c, a, x),
    "a if a < b else b if b < c else c": lambda a, b, c, x: fs.where(
        a < b, a, fs.where(b < c, b, c)
    ),
    "(a if a < b else b) if b < c else c": lambda a, b, c, x: fs.where(
        b < c, fs.where(a < b, a, b), c
    ),
    "1 if (1 if a < b else 0) < c else 0": lambda a, b, c, x: ((a < b) * 1.0 < c) * 1.0,
    "1 if (a < b) != (b < c) else 0": lambda a, b, c, x: ((a < b) ^ (b < c)) * 1.0,
    "1 if a < b and b < c or c < x else 0": lambda a, b, c, x: ((a < b) & (b < c) | (c < x)) * 1.0,
    "1 if a < b and (b < c or c < x) else 0": lambda a, b, c, x: (
        ((a < b) & ((b < c) | (c < x))) * 1.0
    ),
    "1 if not (a < b and b < c) else 0": lambda a, b, c, x: ~((a < b) & (b < c)) * 1.0,
    "1 if not a < b else 0": lambda a, b, c, x: ~(a < b) * 1.0,
}


@for_each("text", WRITTEN)
def test_an_expression_is_written_as_people_write_it(text: str) -> None:
    a, b, c, x = symbols()
    assert python(WRITTEN[text](a, b, c, x)) == fs.Written((text,), ())


@for_each("text", WRITTEN)
@for_each("numbers", [(1.7, -0.4, 2.3, 3.0), (-2.0, 3.0, 0.5, -1.25)])
def test_what_is_written_has_the_value_of_the_expression(
    text: str, numbers: tuple[float, ...]
) -> None:
    output = WRITTEN[text](*symbols())
    [result] = run(python(output), lanes(*numbers))
    np.testing.assert_array_equal(result, fs.evaluate(output, lanes(*numbers)))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3.0, "3"),
        (-3.0, "-3"),
        (0.0, "0"),
        (-0.0, "-0.0"),
        (0.1, "0.1"),
        (1e-5, "1e-05"),
        (1e22, "1e+22"),
        (2.0**53, "9007199254740992"),
        (np.pi, "3.141592653589793"),
        (np.inf, "inf"),
        (-np.inf, "-inf"),
        (np.nan, "nan"),
    ],
)
def test_numbers_keep_every_bit_and_integers_have_no_point(value: float, text: str) -> None:
    assert python(value).results == (text,)
    constant = fs.Graph().constant(value)
    assert python(constant).results == (text,)
    assert repr(float(eval(text, vars(np).copy()))) == repr(value)


def test_coefficients_stand_before_variables() -> None:
    a, b, c, x = symbols()
    outputs = [a * b, a * (b + c), x * (b * c), a * np.sqrt(b), 2.0 * b * a]
    assert python(*outputs, constants={"b", "c"}).results == (
        "b*a",
        "(b + c)*a",
        "b*c*x",
        "sqrt(b)*a",
        "2*b*a",
    )


def test_variables_are_compared_with_coefficients_and_these_with_numbers() -> None:
    a, b, c, x = symbols()
    outputs = [fs.where(test, a, x) for test in (a > b, b <= a, b + c == a, b > 2.0, a < x)]
    assert python(*outputs, constants={"b", "c"}).results == (
        "a if a > b else x",
        "a if a >= b else x",
        "a if a == b + c else x",
        "a if b > 2 else x",
        "a if a < x else x",
    )


def test_an_input_without_a_name_is_refused() -> None:
    with pytest.raises(UnknownNameError, match=r"input 'b': expected a name.*1 other"):
        fs.write_python([symbols()[1]], {"a": "a"})


# Random expressions ------------------------------------------------------------------------------

CONSTANTS = (-2.5, -2.0, -1.0, -0.5, 0.3, 2.0, 3.0, 1e-5, 7.0)
UNARY = sorted(op for op in OPERATIONS if OPERATIONS[op].nin == 1 and op not in CONDITIONS)
BINARY = sorted(op for op in OPERATIONS if OPERATIONS[op].nin == 2 and op not in CONDITIONS)
TESTS = sorted(op for op in CONDITIONS if op not in LOGICAL)
OPERATORS = ("add", "subtract", "multiply", "divide", "power", "floor_divide", "remainder")


@st.composite
def expressions(draw: st.DrawFn, most: int = 25) -> Any:
    """Draw an expression in which earlier ones occur again; no part of it is a bare number."""
    numbers = symbols()
    conditions: list[Any] = []

    def number() -> Any:
        return draw(st.sampled_from(numbers))

    def operands(op: str) -> list[Any]:
        values = [number() for _ in range(OPERATIONS[op].nin)]
        if len(values) == 2 and draw(st.booleans()):
            values[draw(st.integers(0, 1))] = draw(st.sampled_from(CONSTANTS))
        return values

    for _ in range(draw(st.integers(1, most))):
        kind = draw(st.sampled_from(("operator", "operator", "function", "where", "test", "logic")))
        if kind == "operator":
            op = draw(st.sampled_from(("negative", *OPERATORS)))
            numbers.append(OPERATIONS[op](*operands(op)))
        elif kind == "function":
            op = draw(st.sampled_from((*UNARY, *BINARY)))
            numbers.append(OPERATIONS[op](*operands(op)))
        elif kind == "test" or not conditions:
            op = draw(st.sampled_from(TESTS))
            conditions.append(OPERATIONS[op](*operands(op)))
        elif kind == "logic":
            op = draw(st.sampled_from(LOGICAL))
            chosen = [draw(st.sampled_from(conditions)) for _ in range(OPERATIONS[op].nin)]
            conditions.append(OPERATIONS[op](*chosen))
        else:
            numbers.append(fs.where(draw(st.sampled_from(conditions)), number(), number()))
    return numbers[-1]


VALUES = st.floats(-10.0, 10.0) | st.sampled_from([0.0, -0.0, 1.0, 0.5, -2.0])


@given(expressions(), st.tuples(VALUES, VALUES, VALUES, VALUES))
def test_python_computes_what_the_expression_computes(
    output: Any, numbers: tuple[float, ...]
) -> None:
    values = lanes(*numbers)
    [result] = run(python(output), values)
    np.testing.assert_array_equal(result, fs.evaluate(output, values))


def parentheses(text: str) -> Iterator[str]:
    """Give the text without one pair of parentheses, for each pair that is not a call's."""
    opened: list[int] = []
    for position, character in enumerate(text):
        if character == "(":
            opened.append(position)
        elif character == ")":
            start = opened.pop()
            if not re.search(r"\w$", text[:start]) or re.search(r"\b(if|not|and|or)$", text):
                yield text[:start] + text[start + 1 : position] + text[position + 1 :]


def parsed(text: str) -> str | None:
    try:
        return ast.dump(ast.parse(text, mode="eval"))
    except SyntaxError:
        return None


@pytest.mark.full
@given(expressions())
def test_no_parentheses_can_be_left_away(output: Any) -> None:
    written = python(output)
    for text in (*written.results, *(definition for _, definition in written.definitions)):
        if "//" not in text and "%" not in text:  # there, they are for the reader
            assert all(parsed(shorter) != parsed(text) for shorter in parentheses(text)), text


# Definitions -------------------------------------------------------------------------------------


def test_a_part_that_occurs_twice_becomes_a_definition_when_it_is_long() -> None:
    a, b, c, _ = symbols()
    short, long = a * b + c, np.sin(a * b + c) / c
    assert python(short / np.exp(short)) == fs.Written(("(c + a*b)/exp(c + a*b)",), ())
    assert python(long + np.exp(long)) == fs.Written(("a1 + exp(a1)",), (("a1", "sin(c + a*b)/c"),))


def test_a_square_counts_as_one_occurrence() -> None:
    a, b, c, _ = symbols()
    assert python((np.sin(a * b + c) / c) ** 2).definitions == ()


def test_definitions_use_earlier_definitions_only() -> None:
    a, b, c, x = symbols()
    inner = np.sin(a * b + c) / c
    outer = np.exp(inner) + inner * x - a
    written = python(outer / (outer + 1.0), inner)
    assert written.results == ("a2/(a2 + 1)", "a1")
    assert written.definitions == (("a1", "sin(c + a*b)/c"), ("a2", "exp(a1) + x*a1 - a"))


def test_several_expressions_share_their_definitions() -> None:
    a, b, c, _ = symbols()
    long = np.sin(a * b + c) / c
    assert python(long, 2.0 * long) == fs.Written(("a1", "2*a1"), (("a1", "sin(c + a*b)/c"),))


def test_definitions_take_names_that_nothing_else_has() -> None:
    graph = fs.Graph()
    a, b = graph.input("a1"), graph.input("b")
    long = np.sin(a * b + 1.0) / a
    written = fs.write_python([long + np.exp(long)], names_of("a1", "b"), reserved=["a2"])
    assert written.results == ("a3 + exp(a3)",)
    assert fs.write_latex([long + np.exp(long)], names_of("a1", "b")).definitions[0][0] == "a_{1}"


def test_a_part_used_again_and_again_is_written_once() -> None:
    x, *_ = symbols()
    for _ in range(200):
        x = np.hypot(np.sin(x), np.cos(x) + x)
    written = python(x)
    assert sum(map(len, itertools.chain(written.results, *written.definitions))) < 200 * 50
    assert run(written, {"a": 0.3}) == [fs.evaluate(x, {"a": 0.3})]


def test_a_deep_expression_is_split_into_lines() -> None:
    a, b, *_ = symbols()
    total = a
    for _ in range(5000):
        total = np.sin(total) + b
    written = python(total)
    texts = [*written.results, *(definition for _, definition in written.definitions)]
    assert max(map(len, texts)) < 1000
    assert run(written, {"a": 0.3, "b": 0.1}) == [fs.evaluate(total, {"a": 0.3, "b": 0.1})]


# LaTeX -------------------------------------------------------------------------------------------

IN_LATEX: dict[str, Expression] = {
    r"\frac{a}{b \, c}": lambda a, b, c, x: a / (b * c),
    r"-\frac{a + b}{c}": lambda a, b, c, x: -((a + b) / c),
    r"\left(\frac{a}{b}\right)^{2}": lambda a, b, c, x: (a / b) ** 2,
    r"a^{b + c}": lambda a, b, c, x: a ** (b + c),
    r"c \, \left(a + b\right)": lambda a, b, c, x: c * (a + b),
    r"2 \cdot 3^{x}": lambda a, b, c, x: 2 * 3**x,
    r"2 \, \left(1 - a\right)": lambda a, b, c, x: 2 * (1 - a),
    r"\sqrt{a^{2} + b^{2}}": lambda a, b, c, x: np.sqrt(a**2 + b**2),
    r"\sqrt[3]{a}": lambda a, b, c, x: np.cbrt(a),
    r"\mathrm{e}^{-a^{2}}": lambda a, b, c, x: np.exp(-a * a),
    r"\left(\mathrm{e}^{a}\right)^{b}": lambda a, b, c, x: np.exp(a) ** b,
    r"\sin\left(a\right) \, \arctan\left(b\right)": lambda a, b, c, x: np.sin(a) * np.arctan(b),
    r"\operatorname{arctan2}\left(a, b\right)": lambda a, b, c, x: np.arctan2(a, b),
    r"\min\left(\max\left(a, b\right), c\right)": lambda a, b, c, x: np.clip(a, b, c),
    r"\left|a - b\right|": lambda a, b, c, x: np.abs(a - b),
    r"\left\lfloor \frac{-a}{b} \right\rfloor": lambda a, b, c, x: -a // b,
    r"c \, \left(\left(-a\right) \bmod b\right)": lambda a, b, c, x: c * (-a % b),
    r"10^{-5} \, a": lambda a, b, c, x: 1e-5 * a,
    r"-2.5 \cdot 10^{22} \, a": lambda a, b, c, x: -2.5e22 * a,
    r"\left(2.5 \cdot 10^{22}\right)^{a}": lambda a, b, c, x: 2.5e22**a,
    r"a + \infty": lambda a, b, c, x: a + np.inf,
    r"\begin{cases} a & \text{if } b \ge 0 \\ c & \text{otherwise} \end{cases}": (
        lambda a, b, c, x: fs.where(b >= 0, a, c)
    ),
    r"\begin{cases} a & \text{if } a < b \\ b & \text{if } b \ne c \\ c & \text{otherwise} "
    r"\end{cases}": lambda a, b, c, x: fs.where(a < b, a, fs.where(b != c, b, c)),
    r"\begin{cases} \begin{cases} a & \text{if } a < b \\ b & \text{otherwise} \end{cases} & "
    r"\text{if } b < c \\ c & \text{otherwise} \end{cases}": lambda a, b, c, x: fs.where(
        b < c, fs.where(a < b, a, b), c
    ),
    r"2 \, \left(\begin{cases} a & \text{if } \lnot \left(a < b \land b < c\right) \\ b & "
    r"\text{otherwise} \end{cases}\right)": lambda a, b, c, x: (
        2 * fs.where(~((a < b) & (b < c)), a, b)
    ),
}


@for_each("text", IN_LATEX)
def test_an_expression_in_latex(text: str) -> None:
    assert latex(IN_LATEX[text](*symbols())) == fs.Written((text,), ())


def test_definitions_in_latex_have_indices() -> None:
    a, b, c, _ = symbols()
    long = np.sin(a * b + c) / c
    assert latex(long + np.exp(long)) == fs.Written(
        (r"a_{1} + \mathrm{e}^{a_{1}}",),
        (("a_{1}", r"\frac{\sin\left(c + a \, b\right)}{c}"),),
    )


@for_each("op", sorted(set(OPERATIONS) - CONDITIONS))
def test_every_operation_is_valid_latex(op: str) -> None:
    """Matplotlib typesets it; of choices and ``bmod`` it knows nothing."""
    text = latex(OPERATIONS[op](*symbols()[: OPERATIONS[op].nin])).results[0]
    text = text.replace(r"\bmod", r"\operatorname{mod}")
    MathTextParser("path").parse(f"${text}$")


@pytest.mark.full
@given(expressions())
def test_brackets_of_latex_match(output: Any) -> None:
    written = latex(output)
    for text in (*written.results, *(definition for _, definition in written.definitions)):
        assert text.count("{") == text.count("}")
        assert text.count(r"\left") == text.count(r"\right")
        assert text.count(r"\begin{cases}") == text.count(r"\end{cases}")


def test_a_name_in_latex() -> None:
    for path, component, text in [
        ("x", "", "x"),
        ("x", "0", "x_{0}"),
        ("A", "0, 1", "A_{0,1}"),
        ("plant.x", "rate", r"x_{\mathrm{plant},\mathrm{rate}}"),
        ("x", "theta", r"x_{\theta}"),
        ("omega", "", r"\omega"),
        ("Omega_0", "", r"\Omega_{0}"),
        ("theta2", "", r"\theta_{2}"),
        ("k_p", "", r"k_{p}"),
        ("k_max", "", r"k_{\mathrm{max}}"),
        ("omega_theta", "", r"\omega_{\theta}"),
        ("kp", "", r"\mathrm{kp}"),
        ("pi", "", r"\mathrm{pi}"),
        ("omegas", "", r"\mathrm{omegas}"),
        ("arm.hinge.tau", "", r"\tau_{\mathrm{arm.hinge}}"),
        ("spring_constant", "", r"\mathrm{spring\_constant}"),
        ("pid-1.kp", "", r"\mathrm{kp}_{\mathrm{pid\text{-}1}}"),
        ("x", "50 % {a}", r"x_{\mathrm{50\ \%\ \{a\}}}"),
    ]:
        assert fs.latex_names([(path, component)]) == [text]


def test_names_that_would_look_the_same_stay_what_they_are() -> None:
    names = [("k_p", ""), ("k", "p"), ("k", "p"), ("k", "q")]
    assert fs.latex_names(names) == [r"\mathtt{k\_p}", r"\mathtt{k[p]}", r"\mathtt{k[p]}", "k_{q}"]


# MathML ------------------------------------------------------------------------------------------


def run_mathml(*outputs: Any, values: dict[str, Any]) -> list[Any]:
    """Read MathML as a person would, and run what it means."""
    written = fs.write_mathml(outputs, {name: f"<mi>{name}</mi>" for name in NAMES})
    definitions = [(as_python(name), as_python(text)) for name, text in written.definitions]
    return run(fs.Written(tuple(map(as_python, written.results)), tuple(definitions)), values)


@for_each("text", WRITTEN)
@for_each("numbers", [(1.7, -0.4, 2.3, 3.0), (-2.0, 3.0, 0.5, -1.25)])
def test_an_expression_in_mathml_has_its_value(text: str, numbers: tuple[float, ...]) -> None:
    output = WRITTEN[text](*symbols())
    [result] = run_mathml(output, values=lanes(*numbers))
    np.testing.assert_allclose(result, fs.evaluate(output, lanes(*numbers)), rtol=1e-12)


@for_each("op", sorted(OPERATIONS))
def test_every_operation_in_mathml_has_its_value(op: str) -> None:
    output = OPERATIONS[op](*symbols()[: OPERATIONS[op].nin])
    values = lanes(*((0.0, 1.0) if op in LOGICAL else (0.7, 0.4)))
    [result] = run_mathml(output, values=values)
    np.testing.assert_allclose(result, fs.evaluate(output, values), rtol=1e-12)


@pytest.mark.parametrize("value", [3.0, -3.0, 0.1, 1e-5, -2.5e-7, 1e22, np.pi, np.inf, np.nan])
def test_a_number_in_mathml_is_that_number(value: float) -> None:
    x, *_ = symbols()[::-1]
    for output in (value, value * x, x - value, x**value):
        [result] = run_mathml(output, values=lanes(1.0, 1.0, 1.0, 1.5))
        expected = fs.evaluate(output, {"x": np.array([1.5])}) if output is not value else value
        np.testing.assert_allclose(result, expected, rtol=1e-12)


@pytest.mark.full
@given(expressions())
def test_formulas_in_mathml_have_their_values(output: Any) -> None:
    values = lanes(1.7, -0.4, 2.3, 0.6)
    with np.errstate(all="ignore"):
        expected = fs.evaluate(output, values)
        [result] = run_mathml(output, values=values)
    np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-9)


def test_names_in_mathml_have_subscripts_and_harm_nobody() -> None:
    names = [("arm.omega", ""), ("k_p", ""), ("A", "0, 1"), ("door.<script>", "&"), ("", "")]
    shown = fs.mathml_names([*names, ("x", "a"), ("x_a", "")])
    sub = "<msub>{}<mrow>{}</mrow></msub>"
    assert shown[0] == sub.format("<mi>ω</mi>", "<mi>arm</mi>")
    assert shown[1] == sub.format("<mi>k</mi>", "<mi>p</mi>")
    assert shown[2] == sub.format("<mi>A</mi>", "<mn>0,1</mn>")
    assert "&lt;script&gt;" in shown[3]
    assert "&amp;" in shown[3]
    assert ["x[a]" in shown[5], "x_a" in shown[6]] == [True, True]  # they would look the same
    for text in shown:
        ET.fromstring(f"<mrow>{text}</mrow>")
