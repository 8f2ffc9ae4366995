"""Of a diagram, the blocks that cannot be traced stay interpreted, and the text says why."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import TraceError
from flexure.solvers.tracing.derivatives import Derivatives
from flexure.solvers.tracing.interpreted_blocks import trace_with_foreign
from flexure.solvers.tracing.trace import trace_derivatives
from tests.support.systems.blocks import Lag
from tests.support.systems.foreign_blocks import (
    Everything,
    Spline,
    assert_equal_at_random,
    compiled,
    everything,
    series,
    table_loop,
    wired,
)


def raise_it(error: Exception) -> Any:
    raise error


def test_the_text_names_block_and_reason_and_line() -> None:
    how = compiled(table_loop().create_default_context()).how
    assert "; interpreted: 'table' (cannot use a symbol as " in how
    assert "foreign_blocks.py:" in how
    assert "'return self.spline(self.u(context))'" in how


def test_the_text_names_every_block_once() -> None:
    how = compiled(series().create_default_context()).how
    assert [how.count(f"'{name}' (") for name in ("one", "two", "three", "lag")] == [1, 1, 1, 0]
    how = compiled(everything("declared").create_default_context()).how
    assert how.count("'everything' (") == 1


def test_the_text_stays_short() -> None:
    blocks = [Spline(f"spline{k}") for k in range(40)]
    wires = [(f"spline{k}.y", f"spline{k + 1}.u") for k in range(39)]
    diagram = wired(
        *blocks, Lag("lag"), wires=[("lag.y", "spline0.u"), *wires, ("spline39.y", "lag.u")]
    )
    how = compiled(diagram.create_default_context()).how
    assert how.endswith(" and 34 more")


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda u: math.sin(u[0]), "cannot use a symbol as float()"),
        (lambda u: [{0.0: 1.0}[u[0]]], "KeyError at"),
        (lambda u: np.sort(u)[::-1], "cannot apply np.sort to symbols"),
        (lambda u: raise_it(OverflowError("high")) if u[0] > 1e6 else u, "OverflowError at"),
    ],
)
def test_the_reason_is_what_was_in_the_way(function: Callable[[Any], Any], says: str) -> None:
    diagram = wired(
        fx.FunctionBlock("f", function), Lag("lag"), wires=[("lag.y", "f.u"), ("f.y", "lag.u")]
    )
    with pytest.raises(TraceError):
        trace_derivatives(diagram.layout)
    text = trace_with_foreign(diagram.layout).interpreted_blocks()
    assert text.startswith("'f' (")
    assert says in text
    assert f"{Path(__file__).name}:" in text


def test_an_abstract_value_matters_only_where_it_is_read() -> None:
    class Labelled(Lag):
        def __init__(self, name: str) -> None:
            super().__init__(name)
            self.declare_abstract_parameter("label", "x")
            self.declare_abstract_state("mode", "idle")

    context = wired(Labelled("lag"), wires=[("lag.y", "lag.u")]).create_default_context()
    assert compiled(context).how == "straight-line Python of 2 operations"


def test_a_traced_diagram_is_described_as_ever() -> None:
    diagram = wired(
        Lag("lag"), fx.Gain("gain", 2.0), wires=[("lag.y", "gain.u"), ("gain.y", "lag.u")]
    )
    assert compiled(diagram.create_default_context()).how == "straight-line Python of 3 operations"


def test_where_nothing_is_left_to_compile_everything_is_interpreted() -> None:
    block = Everything()
    context = block.create_default_context()
    block.u.fix(context, [1.0, 2.0])
    derivatives = Derivatives(context.store, compiled=True)
    for _ in range(300):
        derivatives(0.0, context.continuous_state)
    assert derivatives.how.startswith("interpreted, because cannot use a symbol as float()")
    assert derivatives.how.endswith("while computing cache entry 'everything.shared' on symbols")


def test_an_abstract_signal_is_left_to_its_readers() -> None:
    class Pack(fx.LeafSystem):
        def __init__(self, name: str) -> None:
            super().__init__(name)
            self.u = self.declare_vector_input("u", 1)
            self.y = self.declare_abstract_output("y", self.calc_y, prerequisites=[self.u])

        def calc_y(self, context: Any) -> Any:
            return {"value": math.tanh(self.u(context)[0])}

    class Unpack(fx.LeafSystem):
        def __init__(self, name: str) -> None:
            super().__init__(name)
            self.u = self.declare_abstract_input("u")
            self.y = self.declare_vector_output("y", 1, self.calc_y, prerequisites=[self.u])

        def calc_y(self, context: Any) -> Any:
            return 2.0 * self.u(context)["value"]

    diagram = wired(
        Lag("lag"),
        fx.Gain("gain", 3.0),
        Pack("pack"),
        Unpack("unpack"),
        wires=[
            ("lag.y", "gain.u"),
            ("gain.y", "pack.u"),
            ("pack.y", "unpack.u"),
            ("unpack.y", "lag.u"),
        ],
    )
    context = diagram.create_default_context()
    derivatives = compiled(context)
    assert "'unpack' (cannot read output port 'pack.y' as a symbol)" in derivatives.how
    assert "'pack' (cannot use a symbol as float(), a function of math" in derivatives.how
    assert_equal_at_random(derivatives, context)


@pytest.mark.parametrize("needed", [("guarded", "always"), ("always", "guarded")])
def test_components_of_a_foreign_vector_may_be_needed_at_different_places(
    needed: tuple[str, str],
) -> None:
    class Sides(fx.LeafSystem):
        """One component is needed on one side of a condition, the other one everywhere."""

        def __init__(self) -> None:
            super().__init__("sides")
            self.x = self.declare_continuous_state(z=2, default=[0.4, -0.3])
            self.u = self.declare_vector_input("u", 2)
            self.y = self.declare_vector_output("y", 2, self.x)

        def calc_time_derivatives(self, context: Any) -> Any:
            x, u = self.x(context), self.u(context)
            guarded = np.where(np.sin(5.0 * context.time) > 0.0, 3.0 / (x[0] + 9.0) * u, 0.0)
            return [(guarded if how == "guarded" else u)[k] - x[k] for k, how in enumerate(needed)]

    asked: list[float] = []

    def turned(u: Any) -> list[float]:
        asked.append(float(u[0]))
        return [-float(u[1]), float(u[0])]

    diagram = wired(
        Sides(),
        fx.FunctionBlock("turned", turned, inputs=2, output_size=2),
        wires=[("sides.y", "turned.u"), ("turned.y", "sides.u")],
    )
    context = diagram.create_default_context()
    derivatives = compiled(context)
    assert_equal_at_random(derivatives, context)
    del asked[:]
    derivatives(1.0, context.continuous_state)  # where the sine is negative
    assert len(asked) == 1  # as in interpretation, so that errors of the block show there, too


def test_a_foreign_block_that_moves_a_plant_is_interpreted_alone() -> None:
    plant = fx.PlantBuilder("plant")
    for name, axis in [("first", (1, 0, 0)), ("second", (0, 1, 0))]:
        body = plant.add_body(name, fx.SpatialInertia.solid_sphere(mass=1.0, radius=0.1))
        plant.add_joint(fx.PrismaticJoint(f"{name}_axis", plant.world, body, axis=axis))
    diagram = wired(
        plant.build(),
        fx.FunctionBlock("f", lambda q: [-float(q[0]), -float(q[1])], inputs=2, output_size=2),
        wires=[("plant.positions", "f.u"), ("f.y", "plant.generalized_force")],
    )
    context = diagram.create_default_context()
    context.continuous_state = [1.0, 0.5, 0.0, 2.0]
    result = fx.simulate(diagram, 15.0, context=context, method="DOP853", rtol=1e-9, atol=1e-10)
    assert "interpreted: 'f'" in result.message
    c, s = math.cos(15.0), math.sin(15.0)
    expected = [c, 0.5 * c + 2.0 * s, -s, 2.0 * c - 0.5 * s]
    np.testing.assert_allclose(result.context.continuous_state, expected, atol=1e-6)


def test_too_many_branches_make_one_block_foreign() -> None:
    def staircase(u: Any) -> Any:
        y = u[0]
        while y > 1.0:
            y = y - 1.0
        return y

    diagram = wired(
        Lag("lag"),
        fx.FunctionBlock("wrap", staircase),
        wires=[("lag.y", "wrap.u"), ("wrap.y", "lag.u")],
    )
    context = diagram.create_default_context()
    derivatives = compiled(context)
    assert "interpreted: 'wrap' (cannot use a symbol as a decision" in derivatives.how
    assert "'while y > 1.0:'" in derivatives.how
    assert derivatives(0.0, np.array([40.25])).tolist() == [0.25 - 40.25]


def test_foreign_numbers_that_change_from_call_to_call_are_not_compiled() -> None:
    calls = iter(range(10**6))
    diagram = wired(
        Lag("lag"),
        fx.FunctionBlock("noise", lambda u: math.cos(u[0]) + next(calls)),
        wires=[("lag.y", "noise.u"), ("noise.y", "lag.u")],
    )
    derivatives = Derivatives(diagram.create_default_context().store, compiled=True)
    for _ in range(300):
        derivatives(0.0, np.zeros(1))
    assert "other numbers" in derivatives.how
