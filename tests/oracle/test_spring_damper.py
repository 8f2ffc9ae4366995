"""The spring and damper between two points agrees with Drake."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.blocks import math as fm
from flexure.blocks.forces.between_points.spring_damper import LinearSpringDamper
from flexure.blocks.multibody.bodies.bodies import Body
from tests.oracle.reading import cases, read
from tests.support.mechanics.force_elements import AT_REST, BodyMotion, context_of, number, world
from tests.support.tiers import for_each

FILE = "element_spring_damper.json"


def body(case: Mapping[str, Any], name: str) -> tuple[Body, BodyMotion]:
    """Make a body of a case and read its motion."""
    if case[f"{name}_is_world"]:
        return world(), AT_REST
    X, V = case[f"X_W{name}"], case[f"V_W{name}"]
    X_WB = fm.RigidTransform(fm.rotation_from_quaternion(X["q"]), np.array(X["p"]))
    return Body(name), BodyMotion(X_WB, np.array([*V["w"], *V["v"]]))


def spring_of(case: Mapping[str, Any]) -> tuple[LinearSpringDamper, fx.Context]:
    """Make the spring of a case, and a context with the motion of its bodies."""
    params = dict(case["params"])
    p_AP, p_BQ = params.pop("p_AP"), params.pop("p_BQ")
    (A, motion_A), (B, motion_B) = body(case, "A"), body(case, "B")
    spring = LinearSpringDamper("spring", A, p_AP, B, p_BQ, **params)
    return spring, context_of(spring, motion_A, motion_B)


@for_each("case", cases(FILE))
def test_forces_energy_and_powers(case: dict[str, Any]) -> None:
    spring, context = spring_of(case)
    expected = case["expected"]
    scalars = {
        "PE": spring.stored_energy,
        "P_conservative": spring.conservative_power,
        "P_nonconservative": spring.non_conservative_power,
    }
    if expected["throws"]:
        for port in (*scalars.values(), *spring.force_ports):
            with pytest.raises(fx.errors.EvaluationError, match="no direction"):
                port.eval(context)
        return
    for name, port in scalars.items():
        assert number(port, context) == pytest.approx(expected[name], rel=1e-11, abs=1e-13), name
    for name, port in zip(("F_A_W", "F_B_W"), spring.force_ports, strict=True):
        if name in expected:
            F = np.array([*expected[name]["tau"], *expected[name]["f"]])
            size = np.abs(F).max()
            assert port.eval(context) == pytest.approx(F, rel=1e-11, abs=1e-11 * size), name


@pytest.mark.parametrize(
    "error", [pytest.param(e, id=e["name"]) for e in read(FILE)["constructor_errors"]]
)
def test_constants_that_drake_refuses_are_refused(error: dict[str, Any]) -> None:
    assert error["throws"]
    ((name, value),) = error["change"].items()
    good = {"free_length": 1.0, "stiffness": 10.0, "damping": 1.0}
    with pytest.raises(fx.errors.ValueRefusedError, match=f"'spring.{name}'"):
        LinearSpringDamper(
            "spring", Body("A"), np.zeros(3), Body("B"), np.ones(3), **{**good, name: float(value)}
        )
