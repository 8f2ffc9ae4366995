"""The door hinge agrees with Drake, except where Drake's sign is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flexure as fx
from tests.oracle.reading import cases, read
from tests.support.mechanics.joint_forces import joint
from tests.support.tiers import for_each

FILE = "element_door_hinge.json"
COLUMNS = {
    "spring_torque": "spring_torque",
    "frictional_torque": "frictional_torque",
    "total_torque": "generalized_force",
    "stored_energy": "stored_energy",
    "conservative_power": "conservative_power",
    "nonconservative_power": "non_conservative_power",
}


def ours(config: dict[str, float], angle: float, rate: float) -> dict[str, float]:
    """Evaluate all outputs of our hinge."""
    hinge = fx.DoorHinge("hinge", joint(), fx.DoorHingeConfig(**config))
    context = hinge.create_default_context()
    hinge.position.fix(context, angle)
    hinge.velocity.fix(context, rate)
    return {
        column: float(hinge.output_port(name).eval(context)[0]) for column, name in COLUMNS.items()
    }


def with_the_right_sign(config: dict[str, float], row: dict[str, float]) -> dict[str, float]:
    """Undo Drake's sign error of the viscous torque at a motion threshold of zero."""
    if config["motion_threshold"] != 0.0:
        return row
    fixed = dict(row)
    fixed["frictional_torque"] = -row["frictional_torque"]
    fixed["total_torque"] = row["spring_torque"] + fixed["frictional_torque"]
    fixed["nonconservative_power"] = -row["nonconservative_power"]
    return fixed


@pytest.mark.parametrize("case", cases(FILE))
def test_torques_energy_and_powers(case: dict[str, Any]) -> None:
    columns = read(FILE)["row_columns"]
    for numbers in case["expected_rows"]:
        drake = dict(zip(columns, numbers, strict=True))
        expected = with_the_right_sign(case["config"], drake)
        found = ours(case["config"], drake["angle"], drake["angular_rate"])
        scale = max(1.0, *(abs(expected[column]) for column in COLUMNS))
        for column in COLUMNS:
            assert found[column] == pytest.approx(expected[column], rel=1e-11, abs=1e-11 * scale), (
                column
            )


@for_each("case", cases(FILE))
def test_friction_never_gives_energy(case: dict[str, Any]) -> None:
    for rate in np.linspace(-3.0, 3.0, 61):
        assert ours(case["config"], 0.3, float(rate))["nonconservative_power"] <= 0.0


@pytest.mark.parametrize(
    "error", [pytest.param(e, id=e["name"]) for e in read(FILE)["constructor_errors"]]
)
def test_constants_that_drake_refuses_are_refused(error: dict[str, Any]) -> None:
    refused = error["throws"] or "catch_torque" in error["change"]
    config = fx.DoorHingeConfig(**error["change"])
    if refused:
        with pytest.raises(fx.errors.ValueRefusedError, match=next(iter(error["change"]))):
            fx.DoorHinge("hinge", joint(), config)
    else:
        fx.DoorHinge("hinge", joint(), config)
