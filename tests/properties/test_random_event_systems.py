"""Random systems with events, by native loops and by the simulator's own phases."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings, strategies as st

import flexure as fx
from flexure.diagrams import Periodic, PerStep, Terminate
from flexure.diagrams.checks.errors import ZenoError
from tests.support.native.native import needs_llvmlite
from tests.support.native.native_runs import METHODS, native_like_interpreted
from tests.support.systems.event_systems import Act, Actor, Watch, noting
from tests.support.tiers import by_tier

pytestmark = needs_llvmlite

UPDATES: dict[str, Callable[..., Any]] = {
    "note": noting,
    "kick": lambda t, x, d: {"x": [x[0], x[1] + 0.1], "d": [d[0] + 1.0, t, d[2]]},
    "reverse": lambda t, x, d: {"x": [x[0], -0.9 * x[1]]},
    "hold": lambda t, x, d: {"d": [d[0], d[1], x[0]]},
    "halve": lambda t, x, d: {"x": 0.5 * x, "d": [d[0] + 1.0, t, d[2]]},
}


def thousandths(first: int, last: int, parts: int = 1000) -> st.SearchStrategy[float]:
    return st.integers(first, last).map(lambda k: k / parts)


@st.composite
def acts(draw: st.DrawFn) -> Act:
    """Draw an event; what it does to continuous state makes the update an unrestricted one."""
    name = draw(st.sampled_from([*UPDATES]))
    writes_x = name in ("kick", "reverse", "halve")
    kind = "unrestricted" if writes_x else draw(st.sampled_from(["discrete", "unrestricted"]))
    direction = draw(st.sampled_from(["falling", "rising", "either"]))
    level, rate = draw(thousandths(-900, 900)), draw(thousandths(1000, 9000))
    trigger = draw(
        st.sampled_from(
            [
                Periodic(draw(st.sampled_from([0.1, 0.25, 0.3, 0.7])), draw(thousandths(0, 8, 8))),
                Periodic(draw(thousandths(50, 1000)), draw(thousandths(0, 1000))),
                Watch(lambda t, x, d: x[0] - level, direction),
                Watch(lambda t, x, d: np.sin(rate * t + level), direction),
            ]
        )
    )
    return Act(kind, trigger, UPDATES[name])


@st.composite
def publishes(draw: st.DrawFn) -> Act:
    """Draw a publish, which may end the run."""
    end, rate = draw(thousandths(300, 4000)), draw(thousandths(1000, 9000))
    trigger = draw(
        st.sampled_from(
            [
                Periodic(draw(thousandths(50, 1000)), draw(thousandths(0, 1000))),
                Watch(lambda t, x, d: np.sin(rate * t)),
                PerStep(),
            ]
        )
    )
    return Act("publish", trigger, lambda t, x, d: Terminate("enough") if t >= end else None)


actors = st.tuples(
    st.lists(acts(), max_size=3), st.lists(publishes(), max_size=1), thousandths(1000, 6000)
)


@settings(max_examples=by_tier(fast=4, full=40))
@given(
    st.lists(actors, min_size=1, max_size=2),
    st.lists(thousandths(0, 1900), max_size=2),
    st.sampled_from(METHODS),
)
def test_random_event_systems(
    parts: list[tuple[list[Act], list[Act], float]], stops: list[float], method: str
) -> None:
    def make() -> fx.System:
        builder = fx.DiagramBuilder("random")
        for k, (some, publish, omega) in enumerate(parts):
            builder.add(
                Actor(
                    *some,
                    *publish,
                    name=f"actor{k}",
                    rate=lambda t, x, d, w=omega: [x[1], d[2] - w * w * x[0] + np.sin(3.0 * t)],
                    start=[0.3 + k, 0.0],
                )
            )
            builder.add(fx.VectorLog(f"log{k}", 3, period=0.07))
            builder.connect(f"actor{k}.y", f"log{k}.u")
        return builder.build()

    with contextlib.suppress(ZenoError):
        native_like_interpreted(make, [*sorted(stops), 2.0], method=method)
