"""Mechanisms with loops are put together in JavaScript as `Plant.assemble` does it."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

import flexure as fx
from examples.mechanisms import four_bar_linkage
from flexure.diagrams.checks.errors import FlexureError
from tests.solvers.export.c.systems import strut
from tests.support.mechanics.mechanisms import MECHANISMS, random_contexts
from tests.support.native.javascript_runs import simulate, simulate_all


def opened_linkage() -> tuple[fx.Plant, fx.Context]:
    linkage, context = four_bar_linkage.build()
    context.set("shaft.angle", 1.2)
    context.set("shaft.rate", 2.0)
    return linkage, context


def opened_loops() -> tuple[fx.Plant, fx.Context]:
    plant = MECHANISMS["loops and couplings"]()
    return plant, random_contexts(plant, 1, seed=3)[0]


@pytest.mark.full
@pytest.mark.parametrize("make", [opened_linkage, opened_loops])
def test_a_start_that_is_open_is_closed_where_python_closes_it(
    make: Callable[[], tuple[fx.Plant, fx.Context]],
) -> None:
    plant, context = make()
    model = fx.to_javascript(plant, context, method="RK45")
    found = simulate(model, tFinal=0.0, assemble=True, signals=[])
    before = context.store.x.copy()
    plant.assemble(context)
    assert found["assembled"] == [""]
    assert np.max(np.abs(before - context.store.x)) > 0.1
    np.testing.assert_allclose(found["state"], context.store.x, atol=1e-12)


def test_plants_that_are_told_to_begin_assembled_do_so_unasked() -> None:
    plant = strut(told=True)
    context = plant.create_default_context()
    context.set("pivot.rate", 0.4)
    context.set("tree.link_distance", 2.0)
    model = fx.to_javascript(plant, context, method="RK45")
    expected = fx.simulate(plant, 0.1, context=context, method="RK45")
    asked = {"times": [0.0, 0.1], "signals": ["guide.translation"]}
    found = simulate(model, tFinal=0.1, **asked)
    sampled = expected.sample("guide.translation", [0.0, 0.1])
    assert sampled[0] == pytest.approx(np.sqrt(3.0))  # below a tip that stays where it is
    np.testing.assert_allclose(found["signals"]["guide.translation"], sampled, rtol=1e-9)
    assert found["assembled"] == []


def test_what_cannot_be_closed_is_refused_by_name_and_others_are_left_alone() -> None:
    plant = strut(told=False)
    model = fx.to_javascript(plant, method="RK45")
    ask = {"tFinal": 0.0, "signals": [], "assemble": True}
    cases = [{}, {"tree.link_distance": 1.9}, {"tree.link_distance": 1e6}]
    closed, moved, open_ = simulate_all(
        {"": (model, [ask | {"parameters": each} for each in cases])}
    )[""]
    assert closed["assembled"] == []
    np.testing.assert_array_equal(closed["state"], plant.create_default_context().store.x)
    assert moved["assembled"] == [""]
    assert re.match(r"Cannot assemble 'strut' near these .*'link' open by", open_["error"])
    context = plant.create_default_context()
    context.set("tree.link_distance", 1e6)
    with pytest.raises(FlexureError, match="'link' by"):
        plant.assemble(context)
