"""Plants in which nothing can move, and bases without mass."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import DeclarationError, EvaluationError
from tests.support.native.native import needs_llvmlite

BOX = fx.SpatialInertia.solid_box(2.0, size=(0.1, 0.2, 0.3))


def bracket() -> fx.Plant:
    """Two bodies of 2 kg that are welded to a wall, 1 m and 3 m away from it."""
    builder = fx.PlantBuilder("bracket", gravity=(0.0, 0.0, -10.0))
    inner = builder.add_body("inner", BOX, com=(1.0, 0.0, 0.0))
    outer = builder.add_body("outer", BOX, com=(1.0, 0.0, 0.0))
    builder.add_joint(fx.WeldJoint("foot", builder.world, inner))
    builder.add_joint(fx.WeldJoint("tip", outer, builder.add_frame("end", inner, (2, 0, 0))))
    builder.add_external_force("push", outer)
    builder.add_energy_ledger()
    return builder.build()


def test_welds_carry_weights_and_forces() -> None:
    plant = bracket()
    context = plant.create_default_context()
    np.testing.assert_allclose(plant.joint("foot").reaction(context), [0, -80, 0, 0, 0, 40])
    np.testing.assert_allclose(plant.joint("tip").reaction(context), [0, 20, 0, 0, 0, -20])
    plant.input_port("push").fix(context, [0, 0, 0, 0, 0, -5.0])
    np.testing.assert_allclose(context.get("foot.reaction"), [0, -90, 0, 0, 0, 45])
    table = fx.sweep(plant, {"outer.mass": [1.0, 4.0]}, 1.0, signals=["foot.reaction"])
    np.testing.assert_allclose(table["foot.reaction"][:, -1, 5], [30.0, 60.0])


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=needs_llvmlite)])
def test_a_plant_of_welds_can_be_asked_and_run(compiled: bool, tmp_path: Path) -> None:
    plant = bracket()
    context = plant.create_default_context()
    assert (plant.num_positions, plant.num_velocities) == (0, 0)
    assert plant.calc_mass_matrix(context).shape == (0, 0)
    for empty in (
        plant.calc_vdot(context),
        plant.get_positions(context),
        plant.get_velocities(context),
        plant.calc_bias_term(context),
        plant.joint("tip").positions.get(context),
    ):
        assert empty.shape == (0,)
    plant.set_positions(context, [])
    plant.set_velocities(context, [])
    assert plant.calc_jacobian(context, plant.body("outer")).shape == (6, 0)
    np.testing.assert_array_equal(plant.body("outer").pose(context).p, [2.0, 0.0, 0.0])
    assert plant.calc_kinetic_energy(context) == 0.0
    np.testing.assert_allclose(context.get("center_of_mass"), [2.0, 0.0, 0.0])
    context.save(tmp_path / "context.json")
    assert plant.load_context(tmp_path / "context.json") == context
    assert pickle.loads(pickle.dumps(plant)).joints[0].name == "foot"
    result = fx.simulate(plant, 1.0, context=context, compiled=compiled)
    assert result.outcome == "completed"
    with pytest.raises(DeclarationError, match="found only welds"):
        _ = plant.tree.state


def test_a_block_on_welds_is_part_of_a_diagram_that_moves() -> None:
    builder = fx.DiagramBuilder("rig")
    builder.add_all(bracket(), fx.Sine("shaker", amplitude=3.0), fx.Multiplexer("F", [5, 1]))
    builder.add(fx.Constant("none", np.zeros(5)))
    builder.add(fx.Demultiplexer("parts", [5, 1]))
    builder.add(fx.FirstOrderLag("scale", time_constant=0.01))
    builder.connect("none.y", "F.u1")
    builder.connect("shaker.y", "F.u2")
    builder.connect("F.y", "bracket.push")
    builder.connect("bracket.foot.reaction", "parts.u")
    builder.connect("parts.y2", "scale.u")
    result = fx.simulate(builder.build(), 2.0)
    reaction = result["bracket.foot.reaction"][:, 5]
    np.testing.assert_allclose(reaction, 40.0 - 3.0 * np.sin(result.time), atol=1e-12)


# Bases without mass ------------------------------------------------------------------------------


def based(*joints: Any, floating: bool = True) -> fx.Plant:
    """Solids on a base without mass, which floats."""
    builder = fx.PlantBuilder("plant")
    base = builder.add_body("base", fx.SpatialInertia(0.0))
    for k, make in enumerate(joints):
        link = builder.add_body(f"link{k}", BOX, com=(0.1 * k, 0.2, -0.1))
        builder.add_joint(make(f"joint{k}", builder.add_frame(f"F{k}", base, (k, 0, 0)), link))
    return builder.build()


def hinge(axis: Any) -> Any:
    return lambda name, F, M: fx.RevoluteJoint(name, F, M, axis)


HELD = {
    "a weld": (fx.WeldJoint,),
    "two hinges": (hinge((0, 0, 1)), hinge((0, 1, 0))),
    "two parallel hinges": (hinge((0, 0, 1)), hinge((0, 0, 1))),
    "a ball and a weld": (fx.BallQuaternionJoint, fx.WeldJoint),
    "a slide and a hinge": (
        lambda name, F, M: fx.PrismaticJoint(name, F, M, (1, 0, 0)),
        hinge((1, 0, 0)),
    ),
}
LOOSE = {
    "nothing": (),
    "one hinge": (hinge((0, 0, 1)),),
    "two hinges on one line": (hinge((1, 0, 0)), hinge((1, 0, 0))),
    "one ball": (fx.BallQuaternionJoint,),
}


@pytest.mark.parametrize("name", HELD)
def test_a_base_without_mass_moves_with_what_it_holds(name: str) -> None:
    plant, rng = based(*HELD[name]), np.random.default_rng(2)
    for _ in range(3):
        context = plant.create_default_context()
        for joint in plant.joints:
            joint.velocities.set(context, rng.normal(size=joint.num_velocities))
        tau = rng.normal(size=plant.num_velocities)
        plant.input_port("generalized_force").fix(context, tau)
        M = plant.calc_mass_matrix(context)
        assert np.linalg.eigvalsh(M)[0] > 1e-6
        weight = plant.calc_gravity_generalized_forces(context)
        expected = np.linalg.solve(M, tau + weight - plant.calc_bias_term(context))
        np.testing.assert_allclose(plant.calc_vdot(context), expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", LOOSE)
def test_a_base_without_mass_that_can_turn_alone_has_no_acceleration(name: str) -> None:
    """Drake gives 5.8e17 rad/s² for one hinge with a torque, where rounding hides a zero."""
    plant = based(*LOOSE[name])
    context = plant.create_default_context()
    assert np.linalg.eigvalsh(plant.calc_mass_matrix(context))[0] < 1e-12
    with pytest.raises(EvaluationError, match=r"joint 'base'.*do not resist one of them.*mass"):
        plant.calc_vdot(context)


def test_a_base_without_mass_holds_still_what_is_locked_on_it() -> None:
    plant = based(*LOOSE["one hinge"])
    context = plant.create_default_context()
    plant.joint("joint0").lock(context)
    vdot = plant.calc_vdot(context)
    np.testing.assert_allclose(vdot, [0, 0, 0, 0, 0, -9.81, 0], atol=1e-12)
