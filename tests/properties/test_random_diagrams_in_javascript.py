"""Random linear diagrams in JavaScript against the interpreted run, all in one process of Node."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
from hypothesis import Phase, given, settings

import flexure as fx
from tests.properties.test_random_diagrams import Plan, build, plans
from tests.support.native.javascript import options_of
from tests.support.native.javascript_runs import simulate_all

END = 1.5
RUN: dict[str, Any] = {"method": "RK45", "rtol": 1e-8, "atol": 1e-10}
MOST = 16


def drawn() -> list[Plan]:
    """Return plans without loops, of which at least one block moves."""
    found: list[Plan] = []

    @settings(max_examples=3 * MOST, phases=[Phase.generate], database=None)
    @given(plan=plans())
    def collect(plan: Plan) -> None:
        if not nx.is_directed_acyclic_graph(plan.dependence):
            plan = Plan(plan.blocks, {}, plan.open_inputs, plan.groups, plan.declared)
        if any(len(block.A) for block in plan.blocks):
            found.append(plan)

    collect()
    return found[-MOST:]  # the later ones are the larger ones


def test_random_diagrams_run_as_they_do_in_python() -> None:
    rng = np.random.default_rng(7)
    asked: dict[str, Any] = {}
    contexts: dict[str, tuple[fx.Diagram, fx.Context]] = {}
    for number, plan in enumerate(drawn()):
        diagram, blocks = build(plan, range(len(plan.blocks)))
        context = diagram.create_default_context()
        for block in blocks.values():
            block.k.set(context, rng.uniform(-1.5, 1.5))
            if block.state is not None:
                block.state.set(context, rng.uniform(-1.0, 1.0, block.state.size))
        for b, i in plan.exported_inputs:
            diagram.input_port(f"b{b}_u{i}").fix(context, rng.uniform(-1.0, 1.0))
        model = fx.to_javascript(diagram, method=RUN["method"])  # with other values than the run
        given_values = options_of(model, context) | {"tFinal": END, "samples": 5}
        given_values |= {"rtol": RUN["rtol"], "atol": RUN["atol"]}
        given_values.pop("time")
        signals = [each["path"] for each in model.info["signals"]]
        asked[str(number)] = (model, [given_values | {"signals": signals}])
        contexts[str(number)] = diagram, context
    assert len(asked) == MOST
    moved = 0
    for name, (found,) in simulate_all(asked).items():
        diagram, context = contexts[name]
        assert found.get("outcome") == "completed", found
        result = fx.simulate(diagram, END, context=context, compiled="python", **RUN)
        for path, values in found["signals"].items():
            expected = np.ravel(result.sample(path, found["time"]))
            size = 1.0 + np.max(np.abs(expected), initial=0.0)
            np.testing.assert_allclose(values, expected, rtol=0.0, atol=1e-10 * size, err_msg=path)
            moved += int(np.ptp(expected) > 0.1)
    assert moved > 3 * MOST
