"""The bushing agrees with Drake in forces, and says what its springs do around loops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.blocks import math as fm
from flexure.blocks.forces.bushings.bushing import LinearBushingRollPitchYaw
from flexure.blocks.multibody.bodies.bodies import Body, Frame
from tests.oracle.reading import cases
from tests.support.mechanics.force_elements import (
    AT_REST,
    BodyMotion,
    context_of,
    forces,
    number,
    world,
)
from tests.support.tiers import for_each, thinned

FORCES = "element_bushing.json"
ENERGY = "bushing_energy.json"


def pose(X: Mapping[str, Any] | None) -> fm.RigidTransform:
    """Read a pose; a missing one is the identity."""
    if X is None:
        return AT_REST.X_WB
    return fm.RigidTransform(fm.rotation_from_quaternion(X["q"]), np.array(X["p"]))


def link(case: Mapping[str, Any], name: str) -> tuple[Body, BodyMotion]:
    """Make a body of a case and read its motion."""
    if case[f"{name}_is_world"]:
        return world(), AT_REST
    V = case[f"V_W{name}"]
    return Body(name), BodyMotion(pose(case[f"X_W{name}"]), np.array([*V["w"], *V["v"]]))


def bushing_of(
    case: Mapping[str, Any], *, energy_consistent: bool = False
) -> tuple[LinearBushingRollPitchYaw, fx.Context]:
    """Make the bushing of a case, and a context with the motion of its bodies."""
    (L0, motion_0), (L1, motion_1) = link(case, "L0"), link(case, "L1")
    A, C = Frame("A", L0, pose(case.get("X_L0A"))), Frame("C", L1, pose(case.get("X_L1C")))
    bushing = LinearBushingRollPitchYaw(
        "bushing", A, C, **case["params"], energy_consistent=energy_consistent
    )
    context = context_of(bushing, motion_0, motion_1)
    for name, constants in case.get("context_params", {}).items():
        bushing.find(name).set(context, constants)
    return bushing, context


def spatial(F: Mapping[str, Any]) -> Any:
    return np.array([*F["tau"], *F["f"]])


def close(found: Any, expected: Any, tolerance: float) -> None:
    size = float(np.abs(expected).max(initial=0.0))
    assert found == pytest.approx(expected, rel=tolerance, abs=max(tolerance * size, 1e-13))


@for_each("case", cases(FORCES))
def test_forces_on_frames_and_bodies(case: dict[str, Any]) -> None:
    bushing, context = bushing_of(case)
    expected = case["expected"]
    if expected["throws"]:
        for port in (bushing.force_on_frame_A, bushing.force_on_frame_C, *bushing.force_ports):
            with pytest.raises(fx.errors.EvaluationError, match="gimbal lock"):
                port.eval(context)
        return
    tolerance = 1e-9 if np.cos(expected["rpy"][1]) < 0.05 else 1e-11
    assert fm.rotation_from_rpy(bushing.angles.eval(context)) == pytest.approx(
        fm.rotation_from_rpy(expected["rpy"]), abs=1e-14
    )
    close(bushing.angle_rates.eval(context), np.array(expected["rpy_dt"]), tolerance)
    close(bushing.force_on_frame_A.eval(context), spatial(expected["F_A_A"]), tolerance)
    close(bushing.force_on_frame_C.eval(context), spatial(expected["F_C_C"]), tolerance)
    found = dict(zip(("F_L0_W", "F_L1_W"), forces(bushing, context), strict=True))
    for name in found.keys() & expected.keys():
        close(found[name], spatial(expected[name]), tolerance)
    powers = [
        number(port, context)
        for port in (bushing.conservative_power, bushing.non_conservative_power)
    ]
    assert sum(powers) == pytest.approx(
        expected["power_derived"], abs=10.0 * tolerance * np.abs(powers).max()
    )


def test_cases_of_all_kinds_have_forces_on_at_least_one_body() -> None:
    for parameter in cases(FORCES):
        (case,) = parameter.values
        expected = case["expected"]
        assert expected["throws"] or {"F_L0_W", "F_L1_W"} & expected.keys()


def on_world(case: Mapping[str, Any], X_AC: fm.RigidTransform, V_AC: Any) -> Any:
    """Return the bushing of a case on the world in both variants, with contexts."""
    made = []
    for energy_consistent in (False, True):
        bushing = LinearBushingRollPitchYaw(
            "bushing", world(), Body("C"), **case["params"], energy_consistent=energy_consistent
        )
        made.append((bushing, context_of(bushing, AT_REST, BodyMotion(X_AC, V_AC))))
    return made


@pytest.mark.parametrize("case", cases(ENERGY, "power_balance"))
def test_stored_energy_and_what_drakes_springs_do_besides(case: dict[str, Any]) -> None:
    expected = case["expected"]
    V_AC = np.array([*case["w_AC_A"], *case["v_ACo_A"]])
    drakes, consistent = on_world(case, pose(case["X_AC"]), V_AC)
    for bushing, context in (drakes, consistent):
        energy = number(bushing.stored_energy, context)
        assert energy == pytest.approx(expected["PE_closed_form"], rel=1e-11)
        lost = number(bushing.conservative_power, context)
        assert lost == pytest.approx(-expected["dPE_dt_finite_difference"], abs=1e-9)
    bushing, context = drakes
    done = forces(bushing, context)[1] @ V_AC
    assert done == pytest.approx(expected["power_drake_forces"], rel=1e-11)
    besides = number(bushing.non_conservative_power, context)
    assert besides == pytest.approx(expected["imbalance"], abs=1e-9)
    if case["isotropic"]:
        assert besides == pytest.approx(0.0, abs=1e-12)
    bushing, context = consistent
    assert number(bushing.non_conservative_power, context) == 0.0


@pytest.mark.parametrize("case", thinned(cases(ENERGY, "loop_work"), fast=2))
def test_work_around_a_loop_of_orientations(case: dict[str, Any]) -> None:
    a, p = case["amplitude"], np.array(case["p_AoCo_A"])
    work = np.zeros(2)
    phases = np.linspace(0.0, 2.0 * np.pi, 256, endpoint=False)
    for s in phases:
        rpy = a * np.array([np.cos(s), np.sin(s), 0.5 * np.sin(s + 0.7)])
        rpy_rate = a * np.array([-np.sin(s), np.cos(s), 0.5 * np.cos(s + 0.7)])
        w = fm.rpy_velocity_matrix(rpy) @ rpy_rate
        V_AC = np.concatenate([w, np.zeros(3)])
        X_AC = fm.RigidTransform(fm.rotation_from_rpy(rpy), p)
        powers = [
            forces(bushing, context)[1] @ V_AC for bushing, context in on_world(case, X_AC, V_AC)
        ]
        work += np.array(powers) * (2.0 * np.pi / len(phases))
    assert work[0] == pytest.approx(
        case["expected"]["work_of_drake_force_on_C"], rel=1e-11, abs=1e-12
    )
    assert work[1] == pytest.approx(0.0, abs=1e-12)
