"""The beginning of the memory of a run, for every target: numbers, tables and lengths.

Functions, and what belongs to a method, are added by each target.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from flexure.solvers.export.model_equations import ModelEquations, ModelEvent
from flexure.solvers.native.kernels.parts.clocks import ClockData
from flexure.solvers.native.kernels.parts.linear_solves import FactorData, LinearData
from flexure.solvers.native.kernels.parts.manifold import ManifoldData
from flexure.solvers.native.kernels.parts.run import StepData, SystemData, ToleranceData, UpdateData
from flexure.solvers.native.kernels.parts.run_samples import WitnessData
from flexure.solvers.native.kernels.parts.zero_search import SEARCH_SIZE
from flexure.solvers.native.kernels.runs.advance import DISCRETE, UNRESTRICTED
from flexure.solvers.native.language.language import types_of
from flexure.solvers.native.runs.run_memory import ROOMY


class Room(int):
    """The length of an array that begins with zeros."""


def run_tables(equations: ModelEquations, n: int) -> dict[Any, dict[str, Any]]:
    """Return numbers, constant arrays (lists) and lengths of others (`Room`), by structure.

    ``n`` is the number of states; where a model has none, a run may have one, which rests.
    """
    count = len(equations.deviations)
    manifold: dict[str, Any] = {"count": count, "coded": 1, "discrete": 0, "farthest": math.inf}
    return {
        SystemData: {"n": n, "m": equations.discrete.count, "timed": int(equations.timed)},
        StepData: rooms("x x_old x_new work point time_slope", n),
        ToleranceData: rooms("rtol atol", n),
        ManifoldData: manifold | rooms("values", count) | rooms("landed shift slope", n),
        ClockData: _clocks(equations),
        UpdateData: _updates(equations, n),
        WitnessData: _witnesses(equations),
        **_linear(equations, n),
    }


def rooms(names: str, length: int) -> dict[str, Room]:
    """Return the length of several arrays."""
    return dict.fromkeys(names.split(), Room(length))


def _clocks(equations: ModelEquations) -> dict[str, Any]:
    clocks = equations.clocks
    publishing = _belonging(equations.endings, "clock", len(clocks))
    return {
        "count": len(clocks),
        "periods": [each.period for each in clocks],
        "offsets": [each.offset for each in clocks],
        "updating": _belonging(equations.updates, "clock", len(clocks)),
        "publishing": publishing,
        "publishes": int(1 in publishing),
        "breaking": int(bool(equations.breaks)),
        **rooms("ticks publish_ticks", len(clocks)),
    }


def _updates(equations: ModelEquations, n: int) -> dict[str, Any]:
    updates, states = equations.updates, equations.layout.num_states
    ends = [0, *accumulate(len(each.targets) for each in updates)]
    settling = [int(each.trigger == "settling") for each in updates]

    def numbers(name: str) -> list[int]:
        return [each.number if each.trigger == name else -1 for each in updates]

    return {
        "count": len(updates),
        "unrestricted": [
            UNRESTRICTED if each.kind == "unrestricted" else DISCRETE for each in updates
        ],
        "clock": numbers("clock"),
        "trigger": numbers("witness"),
        "settling": settling,
        "settles": int(1 in settling),
        "first_target": ends,
        "targets": [k if k < states else k + n - states for each in updates for k in each.targets],
        "lines": 0,
        **rooms("pending", len(updates)),
        **rooms("staged", n),
        **rooms("results", ends[-1]),
    }


def _witnesses(equations: ModelEquations) -> dict[str, Any]:
    w, updates = len(equations.witnesses), equations.updates
    samples = 5 + 4 * w
    # A loop waits after every event for publishes, and for updates that run at every step.
    waits = "step" in [each.trigger for each in updates]
    handled = [0 if waits else 1 - k for k in _belonging(equations.endings, "witness", w)]
    return {
        "count": w,
        "directions": [each.sign for each in equations.witnesses],
        "handled": handled,
        "turning": _belonging(updates, "witness", w),
        "longest": equations.max_check_interval,
        **rooms("on_surface surface first leaping fast peaks", w),
        **rooms("samples", samples * w),
        **rooms("instants order", samples),
        **rooms("slopes", 4 * w),
        **rooms("search", SEARCH_SIZE),
    }


def _belonging(events: Sequence[ModelEvent], trigger: str, count: int) -> list[int]:
    """Return for each of some triggers whether events belong to it."""
    found = {each.number for each in events if each.trigger == trigger}
    return [int(k in found) for k in range(count)]


def _linear(equations: ModelEquations, n: int) -> dict[Any, dict[str, Any]]:
    found, roomy = equations.jacobian, n <= ROOMY
    if found is None:
        return {}
    factors = found.factors
    linear: dict[str, Any] = {
        "n": n,
        "nonzeros": len(found.rows),
        "rows": found.rows.tolist(),
        "columns": found.columns.tolist(),
        "roomy": int(roomy),
        "sparse": int(factors is not None),
        **rooms("entries", len(found.rows)),
        **rooms("matrix", n * n if roomy else 0),
        **rooms("pivots row", n),
    }
    if factors is None:
        return {LinearData: linear}
    known = {name: getattr(factors, name) for name in types_of(FactorData)}
    return {
        LinearData: linear | rooms("values", len(factors.column)),
        FactorData: {
            name: value if isinstance(value, int) else [int(each) for each in value]
            for name, value in known.items()
        },
    }
