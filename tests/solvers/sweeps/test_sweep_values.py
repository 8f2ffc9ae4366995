"""What can be swept and what is refused; runs from contexts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import (
    ContextError,
    EvaluationError,
    UnknownNameError,
    ValueRefusedError,
)
from tests.support.systems.simulation import together
from tests.support.systems.sweeps import Pendulum, assert_like_singles, driven_pendulum, servo
from tests.support.tiers import for_each

# What can be swept --------------------------------------------------------------------------------


def test_vectors_matrices_states_inputs_and_components_can_be_swept() -> None:
    builder = fx.DiagramBuilder("several")
    plant = fx.StateSpace("plant", [[0.0, 1.0], [-4.0, -0.5]], [0.0, 1.0], [1.0, 0.0])
    builder.add_all(Pendulum(), plant)
    builder.connect("plant.y", "pendulum.torque")
    builder.export_input("plant.u", name="push")
    diagram = builder.build()
    values: dict[str | Any, Any] = {
        "pendulum.damping": [[0.1, 0.2], [0.3, 0.4], [0.0, 0.0]],
        "pendulum.x[rate]": [0.1, 0.2, 0.3],
        "plant.A[1,0]": [-4.0, -5.0, -6.0],
        "plant.B": [[[0.0], [1.0]], [[0.5], [1.0]], [[0.0], [2.0]]],
        "push": [1.0, -1.0, 0.5],
        "plant.x": [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]],
    }
    for compiled in (True, False):
        sweep = fx.sweep(diagram, values, 1.0, compiled=compiled)
        context = sweep.context(1)
        assert context.get("plant.A").tolist() == [[0.0, 1.0], [-5.0, -0.5]]
        assert context.get("pendulum.damping").tolist() == [0.3, 0.4]
        assert context.get("pendulum.x").tolist() == [1.0, 0.2]
        assert context.get("plant.u").tolist() == [-1.0]
        assert_like_singles(sweep, method="RK45", compiled=compiled)
    assert sweep.values["push"].shape == (3, 1)


@pytest.mark.full
@pytest.mark.parametrize("compiled", [True, False])
def test_joints_start_where_the_paths_of_their_ports_say(compiled: bool) -> None:
    builder = fx.PlantBuilder("leg")
    box = fx.SpatialInertia.solid_box(2.0, size=(0.1, 0.2, 0.3))
    thigh, shank = (builder.add_body(n, box, com=(0, 0, -0.3)) for n in ("thigh", "shank"))
    builder.add_joint(fx.BallQuaternionJoint("hip", builder.world, thigh, damping=0.1))
    builder.add_joint(fx.RevoluteJoint("knee", thigh, shank, axis=(0, 1, 0)))
    plant = builder.build()
    quaternions = [[1.0, 0.0, 0.0, 0.0], [0.8, 0.6, 0.0, 0.0]]
    values: dict[str | Any, Any] = {
        "hip.quaternion": quaternions,
        "hip.angular_velocity[wz]": [1.0, 2.0],
        plant.find("knee.angle"): [0.3, 0.4],
        "tree.x[knee_w]": [-1.0, 1.0],
    }
    sweep = fx.sweep(plant, values, 0.5, compiled=compiled)
    for k, context in enumerate(map(sweep.context, range(2))):
        expected = [*quaternions[k], [0.3, 0.4][k], 0.0, 0.0, [1.0, 2.0][k], [-1.0, 1.0][k]]
        assert context.get("tree.x").tolist() == expected
    assert_like_singles(sweep, method="RK45", compiled=compiled)
    with pytest.raises(ValueRefusedError, match="index 1: found joint 'hip' with a quaternion"):
        fx.sweep(plant, {"hip.quaternion": [quaternions[0], [0.0] * 4]}, 0.5)
    with pytest.raises(ValueRefusedError, match="two for the same"):
        fx.sweep(plant, {"knee.angle": [0.1], "tree.x[4]": [0.2]}, 0.5)


def test_values_with_a_problem_are_refused_before_they_run() -> None:
    builder = fx.PlantBuilder("arm")
    link = builder.add_body("link", fx.SpatialInertia.point_mass(1.0), com=(0.0, 0.0, -1.0))
    builder.add_joint(fx.RevoluteJoint("axis", builder.world, link, axis=(0, 1, 0)))
    with pytest.raises(ValueRefusedError, match=r"index 1: found 0\.5, which is neither 0 nor 1"):
        fx.sweep(builder.build(), {"axis.locked": [0.0, 0.5]}, 1.0)


def test_a_vector_can_be_swept_component_by_component() -> None:
    values = {"damping[0]": [0.1, 0.5], "damping[1]": [0.2, 0.6]}
    sweep = fx.sweep(Pendulum(), values, 1.0)
    whole = fx.sweep(Pendulum(), {"damping": [[0.1, 0.2], [0.5, 0.6]]}, 1.0)
    np.testing.assert_array_equal(sweep.final_states, whole.final_states)


@pytest.mark.parametrize("compiled", [True, False])
def test_discrete_states_can_be_swept(compiled: bool) -> None:
    values: dict[str, Any] = {"pid.started": [0.0, 1.0], "arm.x": [[0.5, 0.25], [0.5, 0.25]]}
    sweep = fx.sweep(
        servo(), values, 0.1, signals=["pid.x", "arm.y"], times=[0.0], compiled=compiled
    )
    np.testing.assert_array_equal(sweep["pid.x"][:, 0, 1], [-sweep["arm.y"][0, 0], 0.0])
    assert_like_singles(sweep, method="RK45", compiled=compiled)


def test_a_parameter_without_influence_can_be_swept() -> None:
    diagram = together(Pendulum(), fx.Constant("constant", 1.0))
    sweep = fx.sweep(diagram, {"constant.value": [1.0, 2.0]}, 1.0)
    np.testing.assert_array_equal(sweep.final_states[0], sweep.final_states[1])


def test_the_context_and_the_arrays_of_the_user_stay_as_they_are() -> None:
    pendulum = Pendulum()
    context = pendulum.create_default_context()
    before = context.clone()
    stiffness = np.array([1.0, 2.0])
    sweep = fx.sweep(pendulum, {"stiffness": stiffness}, 1.0, context=context)
    assert context == before
    assert stiffness.tolist() == [1.0, 2.0]
    stiffness[:] = 0.0
    assert sweep.values["stiffness"].tolist() == [1.0, 2.0]


REFUSED: dict[str, tuple[Mapping[Any, Any], type[Exception], str]] = {
    "nothing": ({}, ValueRefusedError, "at least one array"),
    "lengths": (
        {"pendulum.stiffness": [1.0, 2.0], "drive.amplitude": [1.0]},
        ValueRefusedError,
        "2 values of 'pendulum.stiffness', 1 values of 'drive.amplitude'",
    ),
    "a bound": (
        {"pendulum.stiffness": [1.0, 2.0, -3.0, -4.0]},
        ValueRefusedError,
        r"Cannot sweep 'pendulum.stiffness' with the value at index 2: .*\[0, 50\]; found -3\.",
    ),
    "a NaN": (
        {"pendulum.damping[1]": [0.1, np.nan]},
        ValueRefusedError,
        r"'pendulum.damping\[1\]' with the value at index 1: expected finite numbers",
    ),
    "an infinite state": (
        {"pendulum.x": [[0.0, 1.0], [0.0, np.inf]]},
        ValueRefusedError,
        "with the value at index 1",
    ),
    "a scalar": ({"pendulum.stiffness": 3.0}, ValueRefusedError, r"\(N,\).*in the context"),
    "a shape": ({"pendulum.damping": [1.0, 2.0]}, ValueRefusedError, r"shape \(N, 2\)"),
    "texts": ({"pendulum.stiffness": ["a", "b"]}, ValueRefusedError, "real numbers"),
    "an unknown name": ({"pendulum.stifness": [1.0]}, UnknownNameError, "Did you mean"),
    "an output": ({"pendulum.angle": [1.0]}, UnknownNameError, "the output port"),
    "an unknown component": (
        {"pendulum.x[speed]": [1.0]},
        UnknownNameError,
        r"component 0 to 1; found 'speed'.*Valid names: 'pendulum.x\[angle\]'",
    ),
    "a component too many": ({"pendulum.damping[2]": [1.0]}, UnknownNameError, "found '2'"),
    "a component of a number": (
        {"pendulum.stiffness[0]": [1.0]},
        UnknownNameError,
        "a path without brackets",
    ),
    "a fed input": ({"pendulum.torque": [1.0]}, ContextError, "a connection from 'drive.y'"),
    "the same twice": (
        {"pendulum.damping": [[0.1, 0.2]], "pendulum.damping[0]": [0.1]},
        ValueRefusedError,
        "two for the same",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_values_are_refused_before_anything_runs(case: str, monkeypatch: Any) -> None:
    values, error, text = REFUSED[case]
    monkeypatch.setattr("flexure.solvers.sweeps.sweeps.run_all", lambda *_: pytest.fail("it ran"))
    with pytest.raises(error, match=text):
        fx.sweep(driven_pendulum(), values, 1.0)


@for_each(
    ("options", "error", "text"),
    [
        ({"times": [0.5, 0.2]}, ValueRefusedError, r"ascending times in \[0\.0, 1\.0\] s"),
        ({"times": [0.2, 0.2]}, ValueRefusedError, "ascending times"),
        ({"times": [1.5]}, ValueRefusedError, "ascending times"),
        ({"times": [[0.5]]}, ValueRefusedError, "ascending times"),
        ({"signals": ["speed"]}, UnknownNameError, "speed"),
        ({"metrics": ["overshot"]}, UnknownNameError, "Did you mean 'overshoot'"),
        ({"threads": 0}, ValueRefusedError, "positive integer"),
        ({"method": "RK46"}, UnknownNameError, "RK46"),
        ({"rtol": -1.0}, ValueRefusedError, "from 0 on"),
        ({"max_step": 0.0}, ValueRefusedError, "positive max_step"),
        ({"compiled": "fast"}, ValueRefusedError, "compiled"),
        (
            {"context": fx.Constant("one", 1.0).create_default_context()},
            ContextError,
            "same system",
        ),
    ],
)
def test_other_options_are_refused(
    options: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        fx.sweep(Pendulum(), {"stiffness": [1.0, 2.0]}, 1.0, **options)


@for_each("end", [-1.0, math.inf, math.nan])
def test_an_end_that_cannot_be_reached_is_refused(end: float) -> None:
    with pytest.raises(ValueRefusedError, match=r"a finite time that is not before t = 0\.0"):
        fx.sweep(Pendulum(), {"stiffness": [1.0]}, end)


def test_an_input_that_nobody_fixed_is_named() -> None:
    with pytest.raises(EvaluationError, match=r"input port 'lag\.u'"):
        fx.sweep(fx.FirstOrderLag("lag", 1.0), {"time_constant": [1.0, 2.0]}, 1.0)


# From contexts ------------------------------------------------------------------------------------


def various_contexts(diagram: fx.Diagram, count: int) -> list[fx.Context]:
    rng = np.random.default_rng(5)
    contexts = [diagram.create_default_context() for _ in range(count)]
    for context in contexts:
        context.set("pid.kp", rng.uniform(10.0, 20.0))
        context.set("target.at", rng.uniform(0.2, 0.9))
        context.set("arm.x", rng.normal(size=2))
        context.time = rng.uniform(0.0, 0.3)
    contexts[1].set("pid.started", 1.0)
    return contexts


@pytest.mark.parametrize("compiled", [True, False])
def test_many_contexts_are_simulated_like_each_alone(compiled: bool) -> None:
    diagram = servo()
    contexts = various_contexts(diagram, 5)
    before = [context.clone() for context in contexts]
    sweep = fx.simulate_many(
        diagram, contexts, 2.0, signals=["arm.y"], times=[0.3, 0.5, 2.0], compiled=compiled
    )
    assert contexts == before
    assert sweep.values == {}
    contexts[3].set("pid.kp", 1.0)
    assert sweep.context(3) == before[3]
    assert_like_singles(sweep, method="RK45", compiled=compiled)


def test_no_contexts_give_no_runs() -> None:
    sweep = fx.simulate_many(servo(), [], 1.0, signals=["arm.y"], times=[0.5], metrics="overshoot")
    assert len(sweep) == 0
    assert sweep["arm.y"].shape == (0, 1)
    assert sweep.metrics["overshoot"].shape == (0,)


def test_all_runs_have_the_tolerances_of_the_first_context() -> None:
    contexts = [Pendulum().create_default_context()]
    pendulum: Any = contexts[0].system
    contexts.append(pendulum.create_default_context())
    contexts[0].accuracy = 1e-9
    found = fx.simulate_many(pendulum, contexts, 1.0).final_states
    np.testing.assert_array_equal(found[0], found[1])


def test_contexts_of_another_system_are_refused() -> None:
    with pytest.raises(ContextError, match="a root context of the same system"):
        fx.simulate_many(Pendulum(), [Pendulum().create_default_context()], 1.0)
    diagram = driven_pendulum()
    with pytest.raises(ContextError, match="a root context"):
        fx.simulate_many(diagram, [diagram.create_default_context()["pendulum"]], 1.0)
