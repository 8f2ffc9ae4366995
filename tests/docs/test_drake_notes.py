"""What the notes of the tables of Drake's names claim, exercised note by note."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import (
    AlgebraicLoopError,
    DeclarationError,
    ValueRefusedError,
)
from tests.docs import drake_mechanisms
from tests.docs.test_coming_from_drake import MEMBERS, PAGE, sample
from tests.support.drake_notes import CHECKS, note
from tests.support.tiers import for_each

#: Notes that claim nothing about Flexure, or point elsewhere.
WITHOUT_CLAIM = {
    *("", "-", "---", "Note", "Difference", "Python", "internal"),
    *("see below", "see the integration schemes below"),
}


def notes() -> set[str]:
    """Return the last cells of all rows with three cells."""
    lines = [line for page in (PAGE, MEMBERS) for line in page.read_text("utf-8").splitlines()]
    table = [line.strip().strip("|").split("|") for line in lines if line.startswith("|")]
    return {cells[2].strip() for cells in table if len(cells) == 3}


def claims() -> set[str]:
    return {text for text in notes() if text not in WITHOUT_CLAIM and set(text) != {"-"}}


def test_every_note_is_exercised() -> None:
    """Those about mechanisms by a module of their own."""
    assert drake_mechanisms.__doc__
    assert claims() == set(CHECKS)


@pytest.mark.full
@for_each("text", sorted(claims()))
def test_a_note_is_true(text: str) -> None:
    CHECKS[text](sample())


# The systems framework ---------------------------------------------------------------------------


class Decaying(fx.LeafSystem):
    """A continuous block with one of each declaration that the notes are about."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.k = self.declare_numeric_parameter("k", 1.0, unit="N/m", lower=0.0)
        self.x = self.declare_continuous_state(q=1, default=[1.0])
        self.n = self.declare_discrete_state("n", [0.0])
        self.u = self.declare_vector_input("u", 1, default=[2.0])
        self.y = self.declare_vector_output("y", 1, self.calc)

    def calc(self, context: Any) -> Any:
        return self.x(context) + self.u(context)

    def calc_time_derivatives(self, context: Any) -> Any:
        return -self.k(context) * self.x(context)


class Everything(Decaying):
    """The same with events."""

    def __init__(self) -> None:
        super().__init__("block")
        self.declare_discrete_update(self.count, fx.diagrams.Periodic(0.25))
        self.declare_publish(self.end, fx.diagrams.Periodic(0.25, offset=1.0))

    def count(self, context: Any) -> Any:
        return {self.n: self.n(context) + 1.0}

    def end(self, context: Any) -> Any:
        return fx.diagrams.Terminate("it is late")


def pair() -> fx.Diagram:
    """Return two lags that one exported input feeds."""
    builder = fx.DiagramBuilder("pair")
    builder.add_all(*(fx.FirstOrderLag(name, time_constant=1.0) for name in "ab"))
    builder.export_input("a.u", "b.u", name="u")
    return builder.build()


@note("every block has a name, the first argument; names are paths")
def names_are_paths(_: Any) -> None:
    assert fx.Gain("gain", 2.0).name == "gain"
    assert pair()["b"].path == "b"
    assert pair().find("b.time_constant").path == "b.time_constant"


@note("by name or by handle; `connect_chain` draws several wires")
def wires(_: Any) -> None:
    builder = fx.DiagramBuilder()
    gains = [fx.Gain(name, 2.0) for name in "abcd"]
    builder.add_all(*gains)
    builder.connect("a.y", "b.u")
    builder.connect(gains[1].output_port("y"), gains[2].input_port("u"))
    builder.connect_chain("c", "d")
    builder.export_input("a.u")
    assert len(builder.build().wires) == 3


@note("one exported input may feed several ports")
def one_input_for_several(_: Any) -> None:
    context = pair().create_default_context()
    context.set("u", 3.0)
    assert (context.get("a.u"), context.get("b.u")) == (3.0, 3.0)


@note("algebraic loops are reported port by port")
def loops(_: Any) -> None:
    builder = fx.DiagramBuilder()
    builder.add_all(fx.Gain("a", 1.0), fx.Gain("b", 1.0))
    builder.connect_chain("a", "b", "a.u")
    with pytest.raises(AlgebraicLoopError, match="->") as caught:
        builder.build()
    assert set(caught.value.loop) == {"a.u", "a.y", "b.u", "b.y"}


@note('`diagram["path"]`, `diagram.graph` is a networkx graph')
def graphs(_: Any) -> None:
    import networkx as nx

    assert pair()["a"].name == "a"
    assert isinstance(pair().graph, nx.DiGraph)


@note("values are immutable; saved as JSON; read and set by path")
def context_values(_: Any) -> None:
    diagram = pair()
    context = diagram.create_default_context()
    context.set("a.x", 0.5)
    with pytest.raises(ValueError, match="read-only"):
        context.get("a.x")[0] = 1.0
    assert diagram.context_from_dict(context.to_dict()) == context


@note("handles also take the root context")
def handles(_: Any) -> None:
    diagram = pair()
    context, handle = diagram.create_default_context(), diagram.find("a.time_constant")
    handle.set(context, 2.0)
    assert handle.get(context) == handle.get(context["a"]) == 2.0


@note("with unit and bounds, checked at every `set`")
def bounds(_: Any) -> None:
    block = Everything()
    assert block.k.unit == "N/m"
    with pytest.raises(ValueRefusedError, match=r"values in \[0, inf\] N/m; found -1"):
        block.k.set(block.create_default_context(), -1.0)


@note("once per block")
def one_state(_: Any) -> None:
    class Twice(Decaying):
        def __init__(self) -> None:
            super().__init__("twice")
            self.declare_continuous_state(q=1)

    with pytest.raises(DeclarationError, match="twice"):
        Twice()


@note("groups have names")
def groups(_: Any) -> None:
    assert Everything().find("n").name == "n"


@note("may have a default, and then stay free")
def free_inputs(_: Any) -> None:
    builder = fx.DiagramBuilder("free")
    builder.add(Everything())
    assert builder.build().create_default_context().get("block.u") == 2.0


@note("the method returns its value", "returns the derivatives")
def methods_return(_: Any) -> None:
    block = Everything()
    context = block.create_default_context()
    assert block.y.eval(context) == 3.0
    assert block.eval_time_derivatives(context) == -1.0


@note("update handlers return the new values")
def updates(_: Any) -> None:
    simulator = fx.Simulator(Everything(), compiled=False)
    simulator.advance_to(0.6)
    assert simulator.context.get("n") == 3.0


@note("the reason is in the result")
def reasons(_: Any) -> None:
    result = fx.simulate(Everything(), 2.0, compiled=False)
    assert result.outcome == "terminated"
    assert "it is late" in result.message
    assert result.context.time == 1.0


@note("every signal can be read from the result of `fx.simulate`")
def signals(_: Any) -> None:
    result = fx.simulate(Everything(), 0.9, compiled=False)
    assert {"y", "x", "n"} <= set(result.signals)
    np.testing.assert_allclose(result.sample("x", [0.9]), np.exp(-0.9), rtol=1e-5)


@note("one class for all scalars; {doc}`readings`", "equations are traced")
def traced(_: Any) -> None:
    block = Decaying("block")
    model = fx.linearize(block, block.create_default_context(), inputs=["u"], outputs=["y"])
    assert [float(M[0, 0]) for M in (model.A, model.B, model.C, model.D)] == [-1.0, 0.0, 1.0, 1.0]
    assert "exact" in model.how


@note("as text, LaTeX and SymPy")
def equations(_: Any) -> None:
    pytest.importorskip("sympy", reason="equations are given to SymPy")
    equation = fx.equation(Everything(), "y")
    assert "x" in str(equation)
    assert "x" in equation.latex
    assert "x" in str(equation.to_sympy())


@note("inputs may also be parameters, outputs any ports")
def linear_in_parameters(_: Any) -> None:
    block = Decaying("block")
    model = fx.linearize(block, block.create_default_context(), inputs=["k"], outputs=["y"])
    assert model.B == -1.0


# Integration schemes -----------------------------------------------------------------------------


def how(method: str = "auto", rate: float = 1.0) -> str:
    """Say how a state is integrated that moves with a constant, and beside it a fast one."""
    builder = fx.DiagramBuilder("lags")
    builder.add(fx.Sine("sine"))
    for k, constant in enumerate({1.0, 1.0 / rate}):
        builder.add(fx.FirstOrderLag(f"lag{k}", time_constant=constant))
        builder.connect("sine.y", f"lag{k}.u")
    result = fx.simulate(builder.build(), 10.0, method=method, compiled="python")
    assert result.outcome == "completed"
    return result.message


@note("RK45 of order 5, and Rodas5P for stiff diagrams")
def automatic(_: Any) -> None:
    assert "RK45" in how()
    assert "Rodas5P" in how(rate=1e4)


@note("the same method", "the same method; two rules for the next step")
def same_methods(_: Any) -> None:
    for method in ("RK23", "RK45", "DormandPrince"):
        assert method in how(method)


@note("of order 5, with exact Jacobians")
def stiff_methods(_: Any) -> None:
    for method in ("Rodas5P", "Radau"):
        assert "exact Jacobian" in how(method)


@note('`"implicit_euler"` here has a fixed step', "fixed step")
def fixed_steps(_: Any) -> None:
    for method in ("implicit_euler", "euler", "semi_explicit_euler", "rk2"):
        result = fx.simulate(Decaying("x"), 0.9, method=method, step=0.1, compiled=False)
        assert np.diff(result.time).max() < 0.102
