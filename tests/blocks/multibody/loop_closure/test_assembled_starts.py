"""Runs whose values change the closure of a loop begin put together; so do their derivatives."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.errors import DeclarationError, WiringError

UP = (0, -1, 0)


def swing(*, assembled: bool = True, link: float = 1.0) -> fx.Plant:
    """Build two bars that hang from two hinges, with a massless link between their ends."""
    builder = fx.PlantBuilder("swing")
    inertia = fx.SpatialInertia.thin_rod(1.0, length=0.5, axis="x")
    bars = [builder.add_body(n, inertia, com=(0.25, 0.0, 0.0)) for n in ("left", "right")]
    joints = []
    for bar, x in zip(bars, (0.0, 1.0), strict=True):
        at = builder.add_frame(f"at_{bar.name}", builder.world, (x, 0.0, 0.0))
        joints.append(builder.add_joint(fx.RevoluteJoint(f"{bar.name}_hinge", at, bar, axis=UP)))
        joints[-1].default_angle = -1.0
    ends = [builder.add_frame(f"end_{bar.name}", bar, (0.5, 0.0, 0.0)) for bar in bars]
    builder.add_constraint(
        fx.constraints.DistanceConstraint("link", ends[0], (0, 0, 0), ends[1], (0, 0, 0), link)
    )
    if assembled:
        builder.assemble_starts(fixed=joints[0])
    return builder.build()


LENGTHS = [0.9, 1.0, 1.05]


def by_hand(length: float, final: float = 0.3) -> Any:
    """Assemble one run before it begins: the other route."""
    plant = swing(assembled=False)
    context = plant.create_default_context()
    context.set("tree.link_distance", length)
    plant.joint("left_hinge").velocities.set(context, [0.7])
    plant.assemble(context, fixed="left_hinge")
    result = fx.simulate(plant, final, context=context, rtol=1e-10, atol=1e-12)
    return result.context.continuous_state


def started() -> tuple[fx.Plant, fx.Context]:
    plant = swing()
    context = plant.create_default_context()
    plant.joint("left_hinge").velocities.set(context, [0.7])
    return plant, context


@pytest.mark.full
def test_runs_of_a_sweep_over_a_length_begin_assembled() -> None:
    plant, context = started()
    runs = fx.sweep(
        plant,
        {"tree.link_distance": LENGTHS},
        0.3,
        context=context,
        signals=["link.error"],
        rtol=1e-10,
        atol=1e-12,
    )
    assert runs.final_states == pytest.approx(np.array([by_hand(x) for x in LENGTHS]), abs=1e-8)
    assert np.max(np.abs(runs["link.error"])) < 1e-9


def test_without_that_a_run_says_how_to_begin_assembled() -> None:
    plant = swing(assembled=False)
    context = plant.create_default_context()
    context.set("tree.link_distance", 0.9)
    with pytest.raises(fx.errors.EvaluationError, match="assemble_starts"):
        fx.simulate(plant, 0.1, context=context)


def test_what_is_closed_already_begins_as_it_is() -> None:
    plain, told = swing(assembled=False), swing()
    runs = [fx.simulate(plant, 0.3).context.continuous_state for plant in (plain, told)]
    np.testing.assert_array_equal(runs[0], runs[1])


def test_a_length_that_cannot_be_closed_fails_alone_and_is_named() -> None:
    plant, context = started()
    runs = fx.sweep(plant, {"tree.link_distance": [1.0, 5.0]}, 0.1, context=context)
    assert list(runs.outcomes) == ["completed", "failed"]
    assert "'link' by" in str(runs.failures[1])


@pytest.mark.full
@pytest.mark.parametrize("kind", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_many_runs_elsewhere_begin_assembled_and_lose_nothing_where_one_cannot(kind: Any) -> None:
    plant, context = started()
    contexts = [context.clone() for _ in range(3)]
    for each, length in zip(contexts, (0.9, 5.0, 1.05), strict=True):
        each.set("tree.link_distance", length)
    with kind(1) as executor:
        runs = fx.simulate_many(
            plant, contexts, 0.3, executor=executor, rtol=1e-10, atol=1e-12, compiled="python"
        )
    assert list(runs.outcomes) == ["completed", "failed", "completed"]
    assert "'link' by" in str(runs.failures[1])
    assert runs.final_states[[0, 2]] == pytest.approx(
        np.array([by_hand(0.9), by_hand(1.05)]), abs=1e-8
    )


@pytest.mark.full
def test_an_optimization_over_lengths_passes_over_those_that_cannot_close() -> None:
    plant, context = started()
    end = fx.metrics.final("right_hinge.angle")
    found = fx.optimize(
        plant,
        {"tree.link_distance": (0.8, 5.0)},
        end,
        t_final=0.1,
        context=context,
        population=6,
        max_evaluations=6,
        polish=False,
        compiled="python",
        rtol=1e-10,
    )
    reasons, tried = (found.table()[key] for key in ("reason", "tree.link_distance"))
    for length, reason in zip(tried, reasons, strict=True):
        assert ("'link' by" in str(reason)) == (length > 2.0)
    best = by_hand(found["tree.link_distance"], 0.1)
    assert found.objective == pytest.approx(best[1], abs=1e-8)


def test_sensitivities_by_a_length_are_those_of_assembled_motions() -> None:
    """The other route: differences of runs that are assembled one by one."""
    plant, context = started()
    found = fx.parameter_sensitivity(
        plant,
        ["tree.link_distance", "left_hinge.rate"],
        0.3,
        context=context,
        outputs="link.error",
        times=[0.0, 0.3],
        rtol=1e-10,
        atol=1e-12,
    )
    step = 1e-5
    slope = (by_hand(1.0 + step) - by_hand(1.0 - step)) / (2.0 * step)
    assert found["tree.link_distance"] == pytest.approx(slope, rel=1e-5)
    error = found.output_derivatives["link.error"]["tree.link_distance"]
    assert np.max(np.abs(error)) < 1e-7
    (path,) = set(found.derivatives) - {"tree.link_distance"}
    assert found.derivatives[path][0] == pytest.approx([0.0, 0.0, 1.0, 1.0])  # a parallelogram


def test_derivatives_of_motions_that_begin_open_are_told() -> None:
    plant = swing(assembled=False)
    with pytest.warns(UserWarning, match=r"'tree.link_distance' are those.*assemble_starts"):
        fx.parameter_sensitivity(plant, ["tree.link_distance", "left.mass"], 0.01)


def test_a_fit_finds_a_length_from_a_motion() -> None:
    plant, context = started()
    truth = context.clone()
    truth.set("tree.link_distance", 0.93)
    measured = fx.simulate(plant, 0.5, context=truth)
    times = np.linspace(0.0, 0.5, 26)
    data = {"time": times, "right_hinge.angle": measured.sample("right_hinge.angle", times)}
    found = fx.fit(plant, data, ["tree.link_distance"], context=context)
    assert found["tree.link_distance"] == pytest.approx(0.93, abs=1e-5)


def test_only_joints_of_the_builder_can_be_held_and_only_once() -> None:
    builder = fx.PlantBuilder("other")
    stranger = swing().joint("left_hinge")
    with pytest.raises(WiringError, match="left_hinge"):
        builder.assemble_starts(fixed=stranger)
    builder.assemble_starts()
    with pytest.raises(DeclarationError, match="second call"):
        builder.assemble_starts()
