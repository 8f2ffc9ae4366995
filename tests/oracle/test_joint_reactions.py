"""Joint reactions, rotors and relative motions of trees of all joints agree with Drake."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.blocks.math import rotation_from_quaternion
from tests.oracle.models import Coordinates, build
from tests.oracle.reading import cases

every_case = pytest.mark.parametrize("case", cases("joint_reactions.json"))


def posed(case: dict[str, Any]) -> tuple[fx.Plant, fx.Context, Coordinates]:
    """Return the plant of a case in its state under its forces."""
    plant, state = build(case["model"]), case["state"]
    coordinates = Coordinates(plant, case["layout"])
    context = plant.create_default_context()
    plant.tree.state.set(context, coordinates.state(state))
    plant.input_port("generalized_force").fix(context, np.array(state["tau"])[coordinates.v])
    for actuator, effort in zip(plant.actuators, state["u"], strict=True):
        plant.input_port(actuator.name).fix(context, effort)
    for force in state["external"]:
        plant.input_port(f"on_{force['body']}").fix(context, [*force["tau"], *force["f"]])
    return plant, context, coordinates


def close(found: Any, expected: Any) -> None:
    scale = max(1.0, float(np.max(np.abs(expected), initial=0.0)))
    np.testing.assert_allclose(found, expected, atol=1e-11 * scale)


@every_case
def test_joints_exert_what_drake_says(case: dict[str, Any]) -> None:
    plant, context, coordinates = posed(case)
    close(plant.calc_vdot(context), np.array(case["state"]["vdot"])[coordinates.v])
    close(plant.calc_kinetic_energy(context), case["state"]["KE"])
    for name, F in case["state"]["reactions"].items():
        close(plant.output_port(f"{name}.reaction").eval(context), [*F["tau"], *F["f"]])
        np.testing.assert_array_equal(
            plant.joint(name).reaction(context), context.get(f"{name}.reaction")
        )


@every_case
def test_motions_relative_to_any_frame_are_those_of_drake(case: dict[str, Any]) -> None:
    plant, context, coordinates = posed(case)
    for spec in case["state"]["relative"]:
        F, M, E = (plant.body(spec[key]) for key in ("frame", "measured_in", "expressed_in"))
        X_MF = F.pose(context, M)
        close(X_MF.p, spec["X"]["p"])
        close(X_MF.R, rotation_from_quaternion(np.array(spec["X"]["q"])))
        close(F.spatial_velocity(context, M, E), spec["V"])
        close(F.spatial_acceleration(context, measured_in=M, expressed_in=E), spec["A"])
        J = plant.calc_jacobian(context, F, spec["point"], M, E)
        close(J, np.array(spec["J"])[:, coordinates.v])
        close(plant.calc_bias_spatial_acceleration(context, F, spec["point"], M, E), spec["bias"])
