"""Control around closed loops of bars: designs, several plants in one diagram, nested ones."""

from __future__ import annotations

import numpy as np
import pytest

import flexure as fx
from tests.solvers.analysis.statics.test_statics_of_loops import sprung_four_bar


def held(
    name: str, angle: float
) -> tuple[fx.Diagram, fx.Plant, fx.results.FeedbackDesign, fx.Context]:
    """Nest a linkage with a regulator that makes it return to rest."""
    plant, context = sprung_four_bar(angle=angle)
    rest = fx.equilibrium(plant, context).context
    model = fx.linearize(plant, rest, inputs=["generalized_force"], outputs=["shaft.angle"])
    weights = {"tree.x[shaft_q]": 0.1, "tree.x[shaft_w]": 1.0}
    design = fx.lqr(model, largest=weights | dict.fromkeys(model.input_names, 1.0))
    builder = fx.DiagramBuilder(name)
    state, regulator = fx.Multiplexer("state", [3, 3]), design.to_block("regulator")
    builder.add_all(plant, state, regulator)
    builder.connect("linkage.positions", "state.u1")
    builder.connect("linkage.velocities", "state.u2")
    builder.connect("state.y", "regulator.state")
    builder.connect("regulator.u", "linkage.generalized_force")
    return builder.build(), plant, design, rest


@pytest.mark.full
def test_two_linkages_with_regulators_of_their_own_settle_with_the_poles_of_the_design() -> None:
    """The other route: each alone, and its linear model on the tangent with the feedback."""
    outer = fx.DiagramBuilder("two")
    parts = {name: held(name, angle) for name, angle in (("left", 0.8), ("right", 1.4))}
    outer.add_all(*(part for part, *_ in parts.values()))
    both = outer.build()
    context = both.create_default_context()
    for name, (_, plant, design, rest) in parts.items():
        context.set(f"{name}.linkage.tree.x", rest.continuous_state)
        plant.joint("shaft").velocities.set(context, [0.05])
        plant.assemble(context, fixed="shaft")
        T = design.model.tangent
        own = design.model.on_tangent()
        assert len(own.A) == 2
        poles = np.linalg.eigvals(own.A - own.B @ (design.gain @ T))
        assert np.sort_complex(poles) == pytest.approx(np.sort_complex(design.poles))
    result = fx.simulate(both, 2.0, context=context, rtol=1e-8, atol=1e-10)
    for name, (alone, _, _, rest) in parts.items():
        start = alone.create_default_context()
        columns = slice(0, 6) if name == "left" else slice(6, 12)
        start.set("linkage.tree.x", context.continuous_state[columns])
        single = fx.simulate(alone, 2.0, context=start, rtol=1e-8, atol=1e-10)
        found = result.context.continuous_state[columns]
        assert found == pytest.approx(single.context.continuous_state, abs=1e-7)
        assert found == pytest.approx(rest.continuous_state, abs=1e-4)
        assert np.max(np.abs(result[f"{name}.linkage.pin.error"])) < 1e-8


def test_a_minimal_model_of_a_loop_has_the_response_of_the_whole() -> None:
    plant, context = sprung_four_bar(angle=1.0)
    rest = fx.equilibrium(plant, context).context
    model = fx.linearize(plant, rest, inputs=["generalized_force[shaft_t]"], outputs=["foot.angle"])
    small = model.minimal()
    assert len(small.A) == 2
    assert small.poles == pytest.approx(model.poles, abs=1e-9)
    omega = np.logspace(-1.0, 2.0, 7)
    assert small.frequency_response(omega) == pytest.approx(model.frequency_response(omega))
