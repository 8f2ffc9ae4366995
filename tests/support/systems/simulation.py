"""Blocks for tests of the simulator, whose equations a test gives as functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flexure as fx
from flexure.diagrams.values.events import Direction, EventKind, Trigger
from flexure.solvers.integration.methods.methods import METHOD_NAMES, is_fixed_step
from tests.support.tiers import by_tier

#: A function of time and continuous state.
OfTimeAndState = Callable[[Any, Any], Any]

ROUNDING = 1e-13  # of the times of events of the order of a second

ADAPTIVE = tuple(name for name in METHOD_NAMES if not is_fixed_step(name))
FIXED = tuple(name for name in METHOD_NAMES if is_fixed_step(name))
#: What a run tries of all methods: one of each kind, or all.
TRIED_METHODS = by_tier(fast=["auto", "RK45", "Rodas5P", "rk4"], full=["auto", *METHOD_NAMES])


def method_options(method: str, step: float = 0.01) -> dict[str, Any]:
    """Options for the simulator: the method, and a step where it needs one."""
    fixed = method != "auto" and is_fixed_step(method)
    return {"method": method, "step": step} if fixed else {"method": method}


class Flow(fx.LeafSystem):
    """ẋ = rate(t, x), y = x, with an event where a function of time and state changes its sign.

    Every event notes its time in ``hits``; ``update(t, x)`` gives the state after it.
    """

    def __init__(
        self,
        rate: OfTimeAndState,
        start: Sequence[float],
        *,
        name: str = "flow",
        watch: OfTimeAndState | None = None,
        direction: Direction = "either",
        update: OfTimeAndState | None = None,
    ) -> None:
        super().__init__(name)
        self.rate, self.update, self.watch = rate, update, watch
        self.hits: list[float] = []
        self.x = self.declare_continuous_state(z=len(start), default=start)
        self.y = self.declare_vector_output("y", len(start), self.x, prerequisites=[self.x])
        if watch is not None:
            witness = fx.diagrams.Witness(self.calc_watch, direction)
            if update is None:
                self.declare_publish(self.note, witness)
            else:
                self.declare_unrestricted_update(self.change, witness)

    def calc_time_derivatives(self, context: Any) -> Any:
        return self.rate(context.time, self.x(context))

    def calc_watch(self, context: Any) -> Any:
        assert self.watch is not None
        return self.watch(context.time, self.x(context))

    def note(self, context: Any) -> None:
        self.hits.append(context.time)

    def change(self, context: Any) -> dict[Any, Any]:
        assert self.update is not None
        self.hits.append(context.time)
        return {self.x: self.update(context.time, self.x(context))}


def clock(watch: Callable[[Any], Any], direction: Direction = "either", **given: Any) -> Flow:
    """ẋ = 1 from x = 0, so that x is the time, and a function of x is watched."""
    return Flow(
        lambda t, x: [1.0], [0.0], watch=lambda t, x: watch(x[0]), direction=direction, **given
    )


def hits(flow: Flow, end: float, **options: Any) -> list[float]:
    """Advance a flow on its own to a time, and return when its events took place."""
    fx.Simulator(flow, **options).advance_to(end)
    return flow.hits


def ball(
    restitution: float = 0.8,
    height: float = 1.0,
    speed: float = 0.0,
    *,
    gravity: float = 9.81,
    direction: Direction = "falling",
    name: str = "ball",
) -> Flow:
    """A ball above a floor at height zero."""
    return Flow(
        lambda t, x: [x[1], -gravity],
        [height, speed],
        name=name,
        watch=lambda t, x: x[0],
        direction=direction,
        update=lambda t, x: [x[0], -restitution * x[1]],
    )


def look(context: Any, count: float) -> None:
    """An event that does nothing."""


def count_up(context: Any, count: float) -> float:
    """An update that counts its calls."""
    return count + 1.0


class Clockwork(fx.LeafSystem):
    """A block without equations, whose single event does what a test wants.

    ``act(context, count)`` returns None, a `Terminate`, or, for updates, a new count.
    """

    def __init__(
        self,
        trigger: Trigger,
        act: Callable[[Any, float], Any] = look,
        *,
        kind: EventKind = "publish",
        name: str = "clockwork",
    ) -> None:
        super().__init__(name)
        self.act = act
        self.times: list[float] = []
        self.count = self.declare_discrete_state("count", 0.0)
        self.y = self.declare_vector_output("y", 1, self.count, prerequisites=[self.count])
        declare: dict[EventKind, Callable[[Any, Any], None]] = {
            "publish": self.declare_publish,
            "discrete": self.declare_discrete_update,
            "unrestricted": self.declare_unrestricted_update,
        }
        declare[kind](self.run if kind == "publish" else self.renew, trigger)

    def run(self, context: Any) -> Any:
        self.times.append(context.time)
        return self.act(context, float(self.count(context)[0]))

    def renew(self, context: Any) -> dict[Any, Any]:
        new = self.run(context)
        return {} if new is None else {self.count: new}


def together(*systems: fx.System, name: str = "diagram") -> fx.Diagram:
    """Build a diagram of blocks that are not connected."""
    builder = fx.DiagramBuilder(name)
    builder.add_all(*systems)
    return builder.build()


def chain(*systems: fx.System, name: str = "diagram") -> fx.Diagram:
    """Build a diagram in which each block feeds the next."""
    builder = fx.DiagramBuilder(name)
    builder.add_all(*systems)
    builder.connect_chain(*systems)
    return builder.build()


def relay_charger() -> fx.Diagram:
    """Return a relay that charges and discharges a capacitor."""
    builder = fx.DiagramBuilder("charger")
    builder.add_all(
        fx.Relay("relay", -0.3, -0.7),
        fx.FirstOrderLag("lag", 0.5, initial=0.1),
        fx.Gain("turn", -1.0),
    )
    builder.connect_chain("relay", "lag", "turn", "relay")
    return builder.build()
