"""Whole mechanisms agree with Drake: dynamics at single states, and trajectories."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.blocks.math import rotation_from_quaternion
from tests.oracle.models import Coordinates, build
from tests.oracle.reading import cases, read

FILES = (
    "joint_ball_rpy_dynamics.json",
    "system_bushing_joints.json",
    "system_chains.json",
    "system_springs.json",
)
CASES = [case for file in FILES for case in cases(file)]
TIGHT: dict[str, Any] = {"method": "DOP853", "rtol": 1e-11, "atol": 1e-12}


def close(found: Any, expected: Any, tolerance: float = 1e-10) -> None:
    """Compare up to a tolerance that is relative to the largest number."""
    expected = np.asarray(expected, dtype=float)
    scale = max(1.0, np.max(np.abs(expected), initial=0.0))
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * scale)


def lower_triangle(rows: list[list[float]]) -> np.ndarray:
    """Return the symmetric matrix with the given rows of its lower triangle."""
    M = np.zeros((len(rows), len(rows)))
    for i, row in enumerate(rows):
        M[i, : i + 1] = row
        M[: i + 1, i] = row
    return M


def momentum(spec: dict[str, Any]) -> np.ndarray:
    return np.concatenate([spec["angular"], spec["linear"]])


@pytest.mark.parametrize("case", CASES)
def test_dynamics_at_single_states(case: dict[str, Any]) -> None:
    plant = build(case["model"])
    coordinates = Coordinates(plant, case["layout"])
    for state in case["states"]:
        context = plant.create_default_context()
        plant.tree.state.set(context, coordinates.state(state))
        for name in state.get("locked", []):
            plant.tree.find_parameter(f"{name}_locked").set(context, 1.0)
        v = coordinates.state(state)[plant.num_positions :]
        if np.array_equal(plant.get_velocities(context), v):
            check_state(plant, context, coordinates, state)
        else:  # Drake lets a joint that is locked in motion turn on
            assert np.any(np.array(state["qdot"]) != 0.0)
            assert not plant.tree.eval_time_derivatives(context).any()


def check_state(
    plant: fx.Plant, context: fx.Context, coordinates: Coordinates, state: dict[str, Any]
) -> None:
    q, v = coordinates.q, coordinates.v
    derivatives = plant.tree.eval_time_derivatives(context)
    close(derivatives[: len(q)], np.array(state["qdot"])[q])
    close(plant.calc_vdot(context), np.array(state["vdot"])[v])
    M = lower_triangle(state["M_lower"])[np.ix_(v, v)]
    close(plant.calc_mass_matrix(context), M)
    close(plant.calc_bias_term(context), np.array(state["C"])[v])
    close(plant.calc_gravity_generalized_forces(context), np.array(state["tau_g"])[v])
    forces = plant.calc_force_elements_contribution(context)
    close(plant.calc_generalized_forces(context, forces), np.array(state["tau_elements"])[v])
    close(plant.calc_kinetic_energy(context), state["KE"])
    close(plant.output_port("momentum").eval(context), momentum(state["momentum_about_Wo"]))
    for name, X in state["X_WB"].items():
        found = plant.body(name).pose(context)
        close(found.R, rotation_from_quaternion(np.array(X["q"])))
        close(found.p, X["p"])
    for name, V in state["V_WB"].items():
        close(plant.body(name).spatial_velocity(context), [*V["w"], *V["v"]])
    check_energies(plant, context, state)
    bushings = [e for e in plant.force_elements if isinstance(e, fx.LinearBushingRollPitchYaw)]
    for element, pair in zip(bushings, state.get("bushing_forces", []), strict=True):
        for port, key in ((element.force_on_frame_A, "F_A_A"), (element.force_on_frame_C, "F_C_C")):
            close(port.eval(context), [*pair[key]["tau"], *pair[key]["f"]])


def check_energies(plant: fx.Plant, context: fx.Context, state: dict[str, Any]) -> None:
    """Drake gives none for a plant with a bushing, and leaves the damping of joints out."""
    if "PE" in state:
        close(plant.calc_potential_energy(context), state["PE"])
        close(plant.calc_conservative_power(context), state["P_conservative"])
        damping = plant.tree.find("damping_power").eval(context)[0]
        close(plant.calc_non_conservative_power(context) - damping, state["P_nonconservative"])


@pytest.mark.parametrize("case", [case for case in CASES if "trajectory" in case.values[0]])
def test_trajectory(case: dict[str, Any]) -> None:
    expected = case["trajectory"]
    plant = build(case["model"], ledger=True)
    coordinates = Coordinates(plant, case["layout"])
    context = plant.create_default_context()
    start = {key: expected[key][0] for key in ("q", "v")}
    plant.tree.state.set(context, coordinates.state(start))
    simulator = fx.Simulator(plant, context, **TIGHT)
    tolerance = max(1e-6, 30.0 * expected["estimated_max_abs_error"])
    ledger = []
    for k, time in enumerate(expected["times"]):
        simulator.advance_to(time)
        now = simulator.context
        close(plant.get_positions(now), np.array(expected["q"][k])[coordinates.q], tolerance)
        close(plant.get_velocities(now), np.array(expected["v"][k])[coordinates.v], tolerance)
        if "KE" in expected:
            close(plant.calc_kinetic_energy(now), expected["KE"][k], tolerance)
        for key in ("PE", "PE_closed_form"):
            if key in expected:
                close(plant.calc_potential_energy(now), expected[key][k], tolerance)
        ledger.append(now.get("ledger.balance")[0])
    assert np.ptp(ledger) < 1e-7 * max(1.0, np.max(np.abs(ledger))), "energy comes from nowhere"


def test_the_files_hold_mechanisms() -> None:
    assert all(read(file)["cases"] for file in FILES)
