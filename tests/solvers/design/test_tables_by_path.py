"""What results keep by path is found by every name that the system has for the place."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import UnknownNameError
from tests.support.tiers import for_each


def axis() -> fx.Diagram:
    builder = fx.PlantBuilder("axis", gravity=(0.0, 0.0, 0.0))
    load = builder.add_body("load", fx.SpatialInertia(1.0, inertia=(0.01, 0.01, 0.01)))
    joint = builder.add_joint(fx.RevoluteJoint("joint", builder.world, load, axis=(0, 0, 1)))
    builder.add_force_element(fx.JointSpring("spring", joint, stiffness=3.0, damping=0.01))
    builder.add_actuator("motor", joint)
    return builder.build()


AXIS = axis()
INERTIA = "motor.rotor_inertia"  # which is "tree.motor_rotor_inertia" as well


def start() -> fx.Context:
    context = AXIS.create_default_context()
    context.set(INERTIA, 0.01)
    context.set("joint.angle", 0.3)
    return context


def fitted() -> dict[str, Any]:
    run, times = fx.simulate(AXIS, 1.0, context=start()), np.linspace(0.0, 1.0, 51)
    angle = run.sample("joint.angle", times)
    noise = 1e-4 * np.cos(40.0 * times).reshape(angle.shape)
    records = {"time": times, "joint.angle": angle + noise}
    found = fx.fit(AXIS, records, [INERTIA], context=start())
    intervals = found.confidence_intervals()
    return {"errors": found.standard_errors, "intervals": intervals, "all": found.constants}


def differentiated() -> dict[str, Any]:
    found = fx.parameter_sensitivity(AXIS, [INERTIA], 0.1, context=start(), outputs=["joint.angle"])
    by_output = found.output_derivatives
    return {"states": found.derivatives, "output": by_output[AXIS.find("joint.angle")]}


def optimized() -> dict[str, Any]:
    aim = fx.metrics.final("joint.angle")
    options: dict[str, Any] = {"population": 5, "max_evaluations": 10, "polish": False}
    found = fx.optimize(AXIS, {INERTIA: (0.01, 0.02)}, aim, t_final=0.1, context=start(), **options)
    return {"values": found.values}


@for_each("make", [fitted, differentiated, optimized])
def test_tables_of_results_take_what_the_result_takes(make: Callable[[], dict[str, Any]]) -> None:
    for table in make().values():
        ((path, value),) = table.items()
        for way in (path, INERTIA, "tree.motor_rotor_inertia", AXIS.find(INERTIA)):
            np.testing.assert_array_equal(table[way], value)
            assert way in table
        for twin in (copy.deepcopy(table), pickle.loads(pickle.dumps(table))):
            np.testing.assert_array_equal(twin[INERTIA], value)
        assert table.get("motor.inertia") is None
        assert "motor.inertia" not in table
        with pytest.raises(UnknownNameError, match=r"'motor\.inertia' among .*rotor_inertia"):
            table["motor.inertia"]
