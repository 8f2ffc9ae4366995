"""Linear models, modes, equilibria and statics where joints stick or rest on stops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import DeclarationError, EvaluationError


def arm(*, friction: float | None = None, stop: float | None = None) -> tuple[fx.Plant, fx.Context]:
    """Return a double pendulum with friction in its second joint and a stop at its first."""
    builder = fx.PlantBuilder("arm")
    rod = fx.SpatialInertia.thin_rod(1.0, length=0.5)
    upper, lower = (builder.add_body(name, rod, com=(0, 0, -0.25)) for name in ("upper", "lower"))
    elbow = builder.add_frame("elbow", upper, (0.0, 0.0, -0.5))
    first = builder.add_joint(fx.RevoluteJoint("first", builder.world, upper, axis=(0, 1, 0)))
    second = builder.add_joint(
        fx.RevoluteJoint("second", elbow, lower, axis=(0, 1, 0), damping=0.01)
    )
    if friction is not None:
        builder.add_constraint(fx.StickSlipFriction("seal", second, coulomb_friction=friction))
    if stop is not None:
        builder.add_constraint(fx.RigidStop("stop", first, restitution=0.2, lower=stop))
    plant = builder.build()
    context = plant.create_default_context()
    return plant, context


def begun(plant: fx.Plant, context: fx.Context) -> fx.Context:
    simulator = fx.Simulator(plant, context)
    simulator.initialize()
    return simulator.context


def test_what_sticks_is_as_if_it_were_locked() -> None:
    stuck, context = arm(friction=2.0)
    locked, other = arm()
    locked.joint("second").lock(other)
    found, expected = fx.linearize(stuck, context), fx.linearize(locked, other)
    np.testing.assert_allclose(np.sort_complex(found.poles), np.sort_complex(expected.poles))
    modes, others = fx.modes(stuck, context), fx.modes(locked, other)
    assert [mode.frequency for mode in modes] == pytest.approx([mode.frequency for mode in others])


def test_a_contact_takes_a_coordinate_away() -> None:
    plant, context = arm(stop=0.3)
    plant.set_positions(context, [0.3, -0.3])
    context = begun(plant, context)
    assert plant.output_port("stop.mode").eval(context) == 1.0
    (mode,) = fx.modes(plant, context)
    inertia = 0.5**2 / 3.0
    assert mode.frequency * 2.0 * np.pi == pytest.approx(np.sqrt(9.81 * 0.25 / inertia), rel=1e-3)
    assert len(fx.linearize(plant, context).poles) == 2
    found = fx.equilibrium(plant, context).context
    np.testing.assert_allclose(plant.get_positions(found), [0.3, -0.3], atol=1e-9)


QUESTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "linearize": fx.linearize,
    "modes": fx.modes,
    "equilibrium": fx.equilibrium,
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_modes_that_do_not_last_are_refused_by_name(question: str) -> None:
    plant, context = arm(friction=0.1)
    plant.set_positions(context, [0.0, 1.0])
    if question == "equilibrium":
        plant.joint("first").lock(context)
    with pytest.raises(EvaluationError, match=r"'seal', which would have to hold with .* to 0\.1"):
        QUESTIONS[question](plant, context)
    plant, context = arm(stop=0.3)
    plant.set_positions(context, [0.3, -0.3])
    with pytest.raises(EvaluationError, match=r"'stop' open|of stop 'stop'"):
        QUESTIONS[question](plant, context)


def test_an_equilibrium_beyond_a_limit_is_refused() -> None:
    plant, context = arm(stop=0.1)
    plant.set_positions(context, [0.5, -0.5])
    with pytest.raises(EvaluationError, match=r"beyond the lower limit 0\.1 of stop 'stop'"):
        fx.equilibrium(plant, context)


def test_what_falls_onto_a_stop_is_told_how_its_rest_is_found() -> None:
    builder = fx.PlantBuilder("drop")
    ball = builder.add_body("ball", fx.SpatialInertia.point_mass(1.0))
    down = builder.add_joint(fx.PrismaticJoint("down", builder.world, ball, axis=(0, 0, 1)))
    builder.add_constraint(fx.RigidStop("floor", down, restitution=0.2, lower=0.0))
    plant = builder.build()
    context = plant.create_default_context()
    plant.set_positions(context, [0.01])
    with pytest.raises(
        EvaluationError, match=r"rest position on 'floor', .* the end of a simulation"
    ):
        fx.equilibrium(plant, context)
    simulator = fx.Simulator(plant, context)
    simulator.advance_to(1.0)
    found = fx.equilibrium(plant, simulator.context).context
    np.testing.assert_allclose(plant.get_positions(found), [0.0], atol=1e-9)


def test_statics_along_which_modes_change_are_refused_by_name() -> None:
    for options, name in (({"friction": 1.0}, "seal"), ({"stop": -1.0}, "stop")):
        plant, context = arm(**options)
        with pytest.raises(DeclarationError, match=f"sticks: '{name}' of 'arm'"):
            fx.stiffness(plant, "upper", context=context)
