"""The benchmark of many runs: its plants, its searches, and what it makes of times."""

from __future__ import annotations

import numpy as np
import pytest

import flexure as fx
from benchmarks import many_runs
from benchmarks.many_runs import Side, plants, rows_of
from benchmarks.versus import drake_door, lid
from examples import compliant_door
from tests.support.tiers import for_each


def test_the_lid_obeys_its_equation() -> None:
    servo = lid.build()
    context = servo.create_default_context()
    m, k, d, kp, kd = lid.NOMINAL.values()
    q, rate = 0.3, -0.7
    context.set("lid.tree.x", [q, rate])
    inertia = m * (0.02**2 + 0.7**2) / 12.0 + m * 0.35**2
    torque = m * 9.81 * 0.35 * np.sin(q) - k * q - d * rate - kp * q - kd * rate
    found = servo.eval_time_derivatives(context)
    np.testing.assert_allclose(found, [rate, torque / inertia], rtol=1e-12)


def test_the_constants_of_the_door_are_those_of_the_example() -> None:
    context = compliant_door.build().create_default_context()
    assert {path: context.get(path) for path in drake_door.NOMINAL} == drake_door.NOMINAL
    assert drake_door.TARGET == compliant_door.TARGET == context.get("target.to")
    assert context.get("target.at") == drake_door.STEP_AT


@for_each("wanted", [1, 2, 3, 37, 64, 2048])
def test_the_fewest_steps_are_found(wanted: int) -> None:
    assert lid.fewest_pieces(lambda pieces: pieces >= wanted) == wanted


def test_no_number_of_steps_is_found_where_none_is_good() -> None:
    assert lid.fewest_pieces(lambda pieces: False) is None


@pytest.mark.full
def test_plans_vary_what_the_plants_have() -> None:
    for plant in plants(16):
        assert len(plant.plan) == 16
        assert plant.context(3).get(plant.plan.paths[0]) == plant.plan[plant.plan.paths[0]][3]
        motion = fx.simulate(plant.diagram, plant.end, context=plant.context(0), rtol=1e-7)
        assert plant.error([motion], [(motion.time, motion[plant.angle] + 1e-3)]) == (
            pytest.approx(1e-3 / plant.target, rel=1e-6)
        )


def test_fewer_runs_are_scaled_up() -> None:
    ours = Side(many_runs.LANES, lambda: (2.0, 1.0), 1000, "", 0.0)
    theirs = Side("Drake", lambda: (30.0, 20.0), 10, "", 0.0)
    rows = {row.metric: row for row in rows_of("title", [ours, theirs], 1000, 2)}
    assert rows["Drake [s of CPU]"].value == 3000.0
    assert rows["Drake / lanes"].value == 1500.0
    assert rows["Drake / lanes"].verdict == "pass"
    assert "2e+03 by the clock" in rows["Drake / lanes"].note
