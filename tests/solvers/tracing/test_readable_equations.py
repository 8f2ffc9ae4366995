"""The equation of a signal: what a diagram computes, in text, LaTeX and SymPy."""

from __future__ import annotations

import importlib
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams import scalars as fs
from flexure.diagrams.checks.errors import MissingExtraError, TraceError, UnknownNameError
from flexure.diagrams.scalars.expressions.vocabulary import LOGICAL, OPERATIONS
from flexure.solvers.tracing.sympy_form import sympy_expressions
from tests.support.mechanics.mechanics import Pendulum, servo
from tests.support.pages.mathml import as_python
from tests.support.tiers import for_each


class Everything(fx.LeafSystem):
    """A block with values of every kind."""

    def __init__(self, name: str = "block") -> None:
        super().__init__(name)
        self.t = self.declare_numeric_parameter("t", 2.0)
        self.gain = self.declare_numeric_parameter("gain", np.ones((2, 2)))
        self.x = self.declare_continuous_state(z=2, default=[1.0, 2.0])
        self.held = self.declare_discrete_state("held", [0.5, 0.7], element_names=["old", "new"])
        self.count = self.declare_discrete_state("count", 3.0)
        self.u = self.declare_vector_input("u", 2, default=[0.1, 0.2], element_names=["p", "q"])
        self.y = self.declare_vector_output("y", 2, self.calc_y)
        self.above = self.declare_vector_output("above", 1, lambda c: self.x(c)[0] > 0.0)
        self.three = self.declare_vector_output("three", 1, lambda c: 3.0)
        self.note = self.declare_abstract_output("note", lambda c: "text")
        self.cached = self.declare_cache_entry("cached", self.calc_y)

    def calc_time_derivatives(self, context: Any) -> Any:
        return [context.time - self.t(context), self.held(context)[1] * self.count(context)]

    def calc_y(self, context: Any) -> Any:
        return self.gain(context) @ self.u(context)


class Spring(fx.LeafSystem):
    """A leaf whose equation calls a foreign function."""

    def __init__(self) -> None:
        super().__init__("spring")
        self.u = self.declare_vector_input("u", 1, default=0.0)
        self.y = self.declare_vector_output("y", 1, self.calc_y, prerequisites=[self.u])

    def calc_y(self, context: Any) -> Any:
        return float(self.u(context)[0])


# Text --------------------------------------------------------------------------------------------


def test_a_state_has_the_equation_of_its_derivative() -> None:
    assert fx.equation(Pendulum(), "x").text == (
        "d/dt x[angle] = x[rate]\n"
        "d/dt x[rate] = (torque - damping*x[rate])/(mass*length**2) - 9.81/length*sin(x[angle])"
    )


def test_an_output_is_traced_back_through_all_blocks() -> None:
    builder = fx.DiagramBuilder("chain")
    builder.add_all(fx.Constant("target", 1.0), fx.Gain("double", 2.0), fx.Integrator("sum"))
    builder.connect_chain("target", "double", "sum")
    chain = builder.build()
    assert fx.equation(chain, "double.y").text == "double.y = target.value*double.gain"
    found = fx.equation(chain, "sum.x")
    assert str(found) == found.text
    assert found.text == "d/dt sum.x = target.value*double.gain"
    assert found.inputs == ("target.value", "double.gain")


@pytest.mark.parametrize(
    ("signal", "text", "inputs"),
    [
        ("x[0]", "d/dt x[0] = t - block.t", ("t", "block.t")),
        ("x[1]", "d/dt x[1] = held[new]*count", ("held[new]", "count")),
        (
            "y[0]",
            "y[0] = gain[0, 0]*u[p] + gain[0, 1]*u[q]",
            ("gain[0, 0]", "gain[0, 1]", "u[p]", "u[q]"),
        ),
        ("above", "above = 1 if x[0] > 0 else 0", ("x[0]",)),
        ("three", "three = 3", ()),
    ],
)
def test_every_kind_of_value_has_its_path(signal: str, text: str, inputs: tuple[str, ...]) -> None:
    found = fx.equation(Everything(), signal)
    assert (found.text, found.inputs) == (text, inputs)


def test_handles_paths_and_components_name_a_signal() -> None:
    pendulum = Pendulum()
    system = servo()
    whole = fx.equation(pendulum, pendulum.state)
    assert whole.text == fx.equation(pendulum, "x").text
    assert fx.equation(pendulum, "x[rate]").text == fx.equation(pendulum, "x[1]").text
    assert fx.equation(pendulum, "x[rate]").text == whole.text.splitlines()[1]
    assert fx.equation(system, "pendulum.angle[0]").text == "pendulum.angle = pendulum.x[angle]"


def test_exported_ports_are_named_as_the_diagram_names_them() -> None:
    inner = fx.DiagramBuilder("inner")
    inner.add(fx.Gain("gain", 3.0))
    inner.export_input("gain.u", name="force")
    inner.export_output("gain.y", name="moment")
    outer = fx.DiagramBuilder("outer")
    outer.add_all(inner.build(), fx.Gain("half", 0.5))
    outer.connect("inner.moment", "half.u")
    outer.export_input("inner.force", name="push")
    outer.export_output("half.y", name="turn")
    diagram = outer.build()
    assert fx.equation(diagram, "turn").text == "turn = inner.gain.gain*push*half.gain"
    assert fx.equation(diagram, "inner.moment").text == "inner.moment = inner.gain.gain*push"


def test_names_are_shortened_where_they_stay_different() -> None:
    builder = fx.DiagramBuilder("sum")
    builder.add_all(
        fx.Constant("first", 1.0), fx.Constant("second", 1.0), fx.Sum("sum"), fx.Gain("gain", 2.0)
    )
    builder.connect_chain("first", "sum.u1")
    builder.connect("second.y", "sum.u2")
    builder.connect_chain("sum", "gain")
    found = fx.equation(builder.build(), "gain.y", shorten=True)
    assert found.text == "y = gain*(first.value + second.value)"
    assert found.inputs == ("first.value", "second.value", "gain.gain")


def test_no_shortened_name_is_that_of_the_time() -> None:
    builder = fx.DiagramBuilder("nest")
    builder.add(Everything())
    text = "d/dt x[0] = t - block.t"
    assert fx.equation(builder.build(), "block.x[0]", shorten=True).text == text


def test_long_parts_that_occur_twice_are_listed_below() -> None:
    system = servo(derivative_filter=0.02)
    assert fx.equation(system, "pid.x", shorten=True).text == (
        "d/dt pid.x[integral] = value - pendulum.x[angle]"
        " - (a2 - minimum(maximum(a2, lower), upper))/(tracking_time*(inf if ki == 0 else ki))\n"
        "d/dt pid.x[filtered] = a1\n"
        "where a1 = (value*derivative_weight - pendulum.x[angle] - pid.x[filtered])"
        "/derivative_filter\n"
        "      a2 = kp*(value*setpoint_weight - pendulum.x[angle]) + ki*pid.x[integral] + kd*a1"
        " + feedforward"
    )


def identifier(name: str) -> str:
    return re.sub(r"\W", "_", name)


def values_of(found: fx.results.Equation, context: fx.Context) -> dict[str, Any]:
    """Return the values behind an equation of scalars, by path."""
    values = {}
    for path in found.inputs:
        whole, _, label = path.partition("[")
        names = getattr(context.system.find(whole), "element_names", None)
        values[path] = np.ravel(context.get(whole))[names.index(label[:-1]) if names else 0]
    return values


def run(found: fx.results.Equation, context: fx.Context) -> list[Any]:
    """Run the text of an equation as Python, with identifiers for the paths."""
    values, text = values_of(found, context), found.text
    for path in sorted(values, key=len, reverse=True):
        text = text.replace(path, identifier(path))
    namespace = {**vars(np), **{identifier(path): value for path, value in values.items()}}
    equations, _, definitions = text.partition("\nwhere ")
    for line in definitions.splitlines():
        name, _, right = line.strip().partition(" = ")
        namespace[name] = eval(right, namespace)
    return [eval(line.partition(" = ")[2], namespace) for line in equations.splitlines()]


@pytest.mark.parametrize("seed", range(5))
def test_the_text_of_a_loop_computes_its_signals(seed: int) -> None:
    system = servo(derivative_filter=0.02)
    context = system.create_default_context()
    context.continuous_state = np.random.default_rng(seed).normal(size=4)
    signals = ["pid.x", "pendulum.x", "pid.u"]
    found = [number for s in signals for number in run(fx.equation(system, s), context)]
    expected = [*system.eval_time_derivatives(context), *context.get("pid.u")]
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_an_equation_cannot_be_changed() -> None:
    found = fx.equation(Pendulum(), "angle")
    with pytest.raises(AttributeError):
        found.text = "angle = 0"  # type: ignore[misc]
    assert repr(found) == "<Equation of 'angle' in 'x[angle]'>"


# LaTeX -------------------------------------------------------------------------------------------


def test_one_line_of_latex_stands_alone() -> None:
    found = fx.equation(Pendulum(), "x[rate]")
    assert found.latex == (
        r"\frac{\mathrm{d}}{\mathrm{d}t} x_{\mathrm{rate}} = \frac{\mathrm{torque} - "
        r"\mathrm{damping} \, x_{\mathrm{rate}}}{\mathrm{mass} \, \mathrm{length}^{2}} - "
        r"\frac{9.81}{\mathrm{length}} \, \sin\left(x_{\mathrm{angle}}\right)"
    )
    assert found._repr_latex_() == f"$${found.latex}$$"


def test_several_lines_of_latex_are_aligned() -> None:
    axis = fx.RevoluteJoint("axis", fx.Body("wall"), fx.Body("door"), axis=(0, 0, 1))
    found = fx.equation(fx.DoorHinge("hinge", axis), "frictional_torque")
    assert found.latex.startswith("\\begin{aligned}\n\\mathrm{frictional\\_torque} &= -\\left(")
    assert "\\right) \\\\\n\\text{where } a_{1} &= \\begin{cases} \\tanh" in found.latex
    assert found.latex.endswith("\\end{cases}\n\\end{aligned}")


# MathML ------------------------------------------------------------------------------------------


def test_mathml_has_a_row_for_each_equation_and_definition_with_the_meaning_of_the_text() -> None:
    axis = fx.RevoluteJoint("axis", fx.Body("wall"), fx.Body("door"), axis=(0, 0, 1))
    found = fx.equation(fx.DoorHinge("hinge", axis), "frictional_torque")
    math = ET.fromstring(found.mathml)
    assert math.tag == "math"
    rows = [["".join(cell.itertext()) for cell in row] for row in math[0]]
    lines = found.text.splitlines()
    assert [head for head, _ in rows] == ["frictional_torque", "where\xa0a1"]
    assert len(rows) == len(lines)
    values = dict(zip(found.inputs, np.linspace(0.2, 1.0, len(found.inputs)), strict=True))
    for (_, right), line in zip(math[0], lines, strict=True):
        meant = "".join(ET.tostring(part, encoding="unicode") for part in list(right)[1:])
        values["a1"] = 0.3
        expected = eval(line.partition(" = ")[2], {**vars(np), **values})
        np.testing.assert_allclose(eval(as_python(meant), {**vars(np), **values}), expected)


def test_a_rate_is_written_as_a_fraction_in_mathml() -> None:
    found = fx.equation(Pendulum(), "x[rate]")
    head = ET.fromstring(found.mathml)[0][0][0]
    assert "".join(head.itertext()) == "ddt\u2062xrate"
    assert found.mathml in (found._repr_html_() or "")


# Refusals ----------------------------------------------------------------------------------------


@for_each(
    ("signal", "text"),
    [
        ("angel", "Did you mean 'angle'"),
        ("x[speed]", r"component 0 to 1; found 'speed'.*'x\[angle\]'"),
        ("x[2]", "found '2'"),
        ("torque", "a continuous state of 'pendulum'; found the input port 'pendulum.torque'"),
        ("mass", "'pendulum.mass' as a signal: .*found a parameter"),
    ],
)
def test_what_has_no_equation_is_refused(signal: str, text: str) -> None:
    with pytest.raises(UnknownNameError, match=text):
        fx.equation(Pendulum(), signal)


@for_each("signal", ["note", "cached", "held", "u"])
def test_neither_objects_nor_inputs_nor_sampled_values_have_an_equation(signal: str) -> None:
    with pytest.raises(
        UnknownNameError, match=rf"Cannot .*{signal}.*: expected .*; found (an?|the) "
    ):
        fx.equation(Everything(), signal)


def test_a_signal_of_another_system_is_refused() -> None:
    with pytest.raises(UnknownNameError, match=r"found the output port .* of another system"):
        fx.equation(Pendulum(), Pendulum("other").angle)


def test_what_cannot_be_traced_is_named_with_its_line() -> None:
    builder = fx.DiagramBuilder("foreign")
    builder.add_all(
        Spring(), fx.Gain("gain", 2.0), fx.Constant("force", 1.0), fx.Integrator("other")
    )
    builder.connect_chain("force", "spring.u")
    builder.connect_chain("spring", "gain")
    builder.connect("force.y", "other.u")
    system = builder.build()
    with pytest.raises(TraceError, match=r"test_readable_equations.py:\d+, 'return float\("):
        fx.equation(system, "gain.y")
    assert fx.equation(system, "other.x").text == "d/dt other.x = force.value"


# SymPy -------------------------------------------------------------------------------------------


def test_without_sympy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> None:
        raise ImportError(name)

    found = fx.equation(Pendulum(), "angle")
    monkeypatch.setattr(importlib, "import_module", refuse)
    with pytest.raises(MissingExtraError, match=r"sympy.*pip install 'flexure\[symbolic\]'"):
        found.to_sympy()


@pytest.mark.full
def test_sympy_gets_one_equation_per_component() -> None:
    sympy = pytest.importorskip("sympy")
    first, second = fx.equation(Pendulum(), "x").to_sympy()
    angle, rate, mass, length, damping, torque = sympy.symbols(
        "x[angle] x[rate] mass length damping torque", real=True
    )
    assert first == sympy.Eq(sympy.Symbol("d/dt x[angle]", real=True), rate)
    expected = (torque - damping * rate) / (mass * length**2)
    expected -= sympy.Float(9.81) / length * sympy.sin(angle)
    assert sympy.simplify(second.rhs - expected) == 0


def test_sympy_keeps_equations_with_known_results() -> None:
    sympy = pytest.importorskip("sympy")
    [found] = fx.equation(Everything(), "three").to_sympy()
    assert found == sympy.Eq(sympy.Symbol("three", real=True), 3, evaluate=False)


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e300, 2.0**60, 3.0, -0.5, np.inf])
def test_sympy_keeps_every_bit_of_a_number(value: float) -> None:
    pytest.importorskip("sympy")
    for output in (value, fs.Graph().constant(value)):
        [found] = sympy_expressions([output], {})
        assert float(found) == value


NAMES = {"a": "plant.a", "b": "plant.x[b]", "c": "c"}
# Where the operations are real, and away from what they do with NaN.
POINTS = [(0.7, -0.4), (-2.5, 1.3), (2.5, 2.0), (3.5, -1.5), (-0.5, 3.0), (0.3, 0.3), (-3.0, -2.0)]
OUTSIDE: dict[str, Callable[[float, float], bool]] = {
    "sqrt": lambda a, b: a < 0,
    "log": lambda a, b: a <= 0,
    "log2": lambda a, b: a <= 0,
    "log10": lambda a, b: a <= 0,
    "log1p": lambda a, b: a <= -1,
    "arcsin": lambda a, b: abs(a) > 1,
    "arccos": lambda a, b: abs(a) > 1,
    "arctanh": lambda a, b: abs(a) >= 1,
    "arccosh": lambda a, b: a < 1,
    "power": lambda a, b: a < 0 and b != int(b),
}


def in_sympy(output: Any, a: float, b: float) -> Any:
    """Evaluate an expression by way of SymPy."""
    sympy = pytest.importorskip("sympy")
    [found] = sympy_expressions([output], NAMES)
    arguments = [sympy.Symbol(NAMES[name], real=True) for name in "ab"]
    return sympy.lambdify(arguments, found, "numpy")(a, b)


@pytest.mark.full
@for_each("op", [*sorted(set(OPERATIONS) - set(LOGICAL)), "where"])
def test_every_operation_has_its_value_in_sympy(op: str) -> None:
    graph = fs.Graph()
    a, b = graph.input("a"), graph.input("b")
    if op == "where":
        output = fs.where(a < b, a, b)
    else:
        output = OPERATIONS[op](*(a, b)[: OPERATIONS[op].nin])
    points = [point for point in POINTS if op not in OUTSIDE or not OUTSIDE[op](*point)]
    for point in points:
        expected = fs.evaluate(output, dict(zip("ab", point, strict=True)))
        np.testing.assert_allclose(
            float(in_sympy(output, *point)), expected, rtol=1e-14, atol=1e-15
        )
    assert len(points) >= 2


@pytest.mark.parametrize("op", LOGICAL)
@pytest.mark.parametrize("point", [(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)])
def test_every_logical_operation_has_its_value_in_sympy(
    op: str, point: tuple[float, float]
) -> None:
    graph = fs.Graph()
    tests = [graph.input("a") > 0.0, graph.input("b") > 0.0]
    output = OPERATIONS[op](*tests[: OPERATIONS[op].nin])
    expected = fs.evaluate(output, dict(zip("ab", point, strict=True)))
    assert bool(in_sympy(output, *point)) == expected


def test_infinite_results_are_recognized_in_sympy() -> None:
    graph = fs.Graph()
    quotient = 1.0 / graph.input("a")
    with np.errstate(divide="ignore"):
        for test in (np.isfinite, np.isinf):
            for a in (np.float64(0.0), np.float64(2.0)):
                assert bool(in_sympy(test(quotient), a, 0.0)) == test(1.0 / a)


def test_halves_are_rounded_to_even_integers_in_sympy() -> None:
    output = np.rint(fs.Graph().input("a"))
    halves = np.arange(-4.0, 4.0) + 0.5
    assert [float(in_sympy(output, half, 0.0)) for half in halves] == np.rint(halves).tolist()


def test_a_whole_loop_has_its_value_in_sympy() -> None:
    sympy = pytest.importorskip("sympy")
    system = servo(derivative_filter=0.02)
    found = fx.equation(system, "pendulum.x[rate]")
    [equation] = found.to_sympy()
    arguments = [sympy.Symbol(path, real=True) for path in found.inputs]
    compute = sympy.lambdify(arguments, equation.rhs, "numpy")
    context = system.create_default_context()
    for state in np.random.default_rng(5).normal(size=(20, 4)):
        context.continuous_state = state
        number = compute(*values_of(found, context).values())
        rate = system.eval_time_derivatives(context)[3]
        np.testing.assert_allclose(float(number), rate, rtol=1e-12)
