"""Relations between parameters: contradictions are refused where values are used."""

from __future__ import annotations

import itertools
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import (
    ContextFileError,
    DeclarationError,
    FlexureError,
    ValueRefusedError,
)
from tests.support.native.javascript_runs import simulate_all


def limited() -> fx.Diagram:
    """A sine behind limits, which a lag follows."""
    builder = fx.DiagramBuilder("limited")
    builder.add_all(
        fx.Sine("wave", amplitude=3.0, frequency=1.0),
        fx.Saturation("limit", [-1.0], [2.0]),
        fx.FirstOrderLag("lag", time_constant=0.1),
    )
    builder.connect_chain("wave", "limit", "lag")
    return builder.build()


class Band(fx.LeafSystem):
    """A block with two related parameters."""

    def __init__(self, low: Any, comparison: Any, high: Any, owner: Any = None) -> None:
        super().__init__("band")
        self.low = self.declare_numeric_parameter("low", low)
        self.high = self.declare_numeric_parameter("high", high)
        self.declare_relation((owner or self).low, comparison, self.high)
        self.y = self.declare_vector_output("y", 1, lambda context: [0.0])


@pytest.mark.parametrize("comparison", ["<", "<="])
def test_relations_hold_element_by_element(comparison: str) -> None:
    lows: list[Any] = [0.0, 1.0, [0.0, 2.0]]
    highs: list[Any] = [1.0, [1.0, 2.0], [3.0, 1.5]]
    for low, high in itertools.product(lows, highs):
        fits = np.all(np.less(low, high) if comparison == "<" else np.less_equal(low, high))
        if fits:
            Band(low, comparison, high)
        else:
            with pytest.raises(DeclarationError, match=f"low {comparison} high; found low="):
                Band(low, comparison, high)


def test_relations_are_between_two_parameters_of_the_block() -> None:
    for arguments in ((0.0, ">", 1.0), (0.0, "<=", 1.0, Band(0.0, "<", 1.0))):
        with pytest.raises(DeclarationError, match="two numeric parameters of this block"):
            Band(*arguments)


USES: dict[str, Callable[[fx.Diagram, fx.Context], Any]] = {
    "output": lambda system, context: context.get("limit.y"),
    "derivative": fx.Diagram.eval_time_derivatives,
    "run": lambda system, context: fx.simulate(system, 0.1, context=context),
    "interpreted": lambda system, context: fx.simulate(
        system, 0.1, context=context, compiled=False
    ),
    "linearized": fx.linearize,
    "rest": fx.equilibrium,
    "pickled": lambda system, context: pickle.loads(pickle.dumps((system, context)))[1].get(
        "limit.y"
    ),
}


@pytest.mark.parametrize("use", USES)
def test_contradictions_are_refused_where_values_are_used_and_can_be_mended(use: str) -> None:
    system = limited()
    context = system.create_default_context()
    if use == "rest":
        context.set("wave.amplitude", 0.0)
    for first, second in (("lower", "upper"), ("upper", "lower")):
        values = {"lower": 2.5, "upper": 2.75} if first == "lower" else {"lower": -4, "upper": -3}
        context.set(f"limit.{first}", values[first])
        for each in (context, context.clone()):
            with pytest.raises(ValueRefusedError, match=r"'limit': expected lower <= upper; found"):
                USES[use](system, each)
        context.set(f"limit.{second}", values[second])  # both are moved, in either order
        if use != "rest":
            USES[use](system, context)


def test_saved_contradictions_are_refused_when_they_are_loaded(tmp_path: Path) -> None:
    system = limited()
    context = system.create_default_context()
    context.set("limit.lower", 20.0)
    context.save(tmp_path / "context.json")
    with pytest.raises(ContextFileError, match="lower <= upper"):
        system.load_context(tmp_path / "context.json")


@pytest.mark.parametrize("compiled", [True, False])
def test_runs_of_a_sweep_that_contradict_themselves_fail_and_others_do_not(compiled: Any) -> None:
    values = {"limit.lower": [-1.0, 1.0, 3.0, 3.0], "limit.upper": [2.0, 0.5, 2.0, 4.0]}
    sweep = fx.sweep(limited(), values, 0.5, signals="lag.y", compiled=compiled)
    assert sorted(sweep.failures) == [1, 2]
    assert "found lower=[1], upper=[0.5]" in sweep.failures[1]
    expected = fx.sweep(
        limited(), {path: [column[0], column[3]] for path, column in values.items()}, 0.5,
        signals="lag.y",
    )  # fmt: skip
    np.testing.assert_allclose(sweep["lag.y"][[0, 3]], expected["lag.y"], rtol=1e-6, atol=1e-9)


def test_searches_refuse_candidates_that_contradict_themselves() -> None:
    system = limited()
    bounds = {"limit.lower": (-3.0, 3.0), "limit.upper": (-3.0, 3.0)}
    mean = fx.metrics.mean("lag.y")
    with warnings.catch_warnings(action="ignore"):
        found = fx.optimize(system, bounds, -1.0 * mean, t_final=1.0, max_evaluations=40)
    assert found["limit.lower"] <= found["limit.upper"]


def test_every_block_with_limits_declares_that_they_do_not_contradict_each_other() -> None:
    joint = fx.RevoluteJoint
    plants = []
    for stop in (
        lambda j: fx.JointStop("stop", j, lower=-1.0, upper=1.0, stiffness=1.0, damping=0.1),
        lambda j: fx.RigidStop("stop", j, lower=-1.0, upper=1.0, restitution=0.5),
        lambda j: fx.StickSlipFriction("stop", j, coulomb_friction=1.0, static_friction=2.0),
    ):
        builder = fx.PlantBuilder("plant")
        body = builder.add_body("body", fx.SpatialInertia.point_mass(1.0), com=(1.0, 0.0, 0.0))
        made: Any = stop(builder.add_joint(joint("joint", builder.world, body, axis=(0, 0, 1))))
        if isinstance(made, fx.JointStop):
            builder.add_force_element(made)
        else:
            builder.add_constraint(made)
        plants.append(builder.build())
    blocks = [
        fx.Saturation("b", -1.0, 1.0),
        fx.DeadZone("b", -1.0, 1.0),
        fx.Relay("b", 1.0, -1.0),
        fx.Integrator("b", lower=-1.0, upper=1.0),
        fx.PIDController("b", kp=1.0, lower=-1.0, upper=1.0),
        fx.PIDController("b", period=0.1, kp=1.0, lower=-1.0, upper=1.0),
    ]
    for system in [*blocks, *plants]:
        (relation,) = [each for leaf in system.layout.leaves for each in leaf.relations]
        context = system.create_default_context()
        context.set(relation.left, relation.right.default + 1.0)
        with pytest.raises(FlexureError, match=f"{relation.left.name} <=? {relation.right.name}"):
            fx.simulate(system, 0.1, context=context)


def test_javascript_refuses_what_python_refuses() -> None:
    model = fx.to_javascript(limited())
    assert model.info["relations"] == [
        {"left": "limit.lower", "comparison": "<=", "right": "limit.upper"}
    ]
    asked = [{"limit.lower": 20}, {"limit.lower": 20, "limit.upper": 21}]
    options = [{"tFinal": 0.1, "parameters": each} for each in asked]
    refused, fine = simulate_all({"": (model, options)})[""]
    assert "expected limit.lower <= limit.upper; found 20 and 2" in refused["error"]
    assert fine["outcome"] == "completed"
