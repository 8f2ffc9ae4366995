"""Systems with all kinds of events, whose handlers keep nothing beside the states."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import flexure as fx
from flexure.diagrams import Periodic, Settling, Witness
from tests.support.systems.simulation import together


class Oscillator(fx.LeafSystem):
    """q″ = u - 9.81 sin q - 0.1 q′, from q = 1."""

    def __init__(self, name: str = "oscillator") -> None:
        super().__init__(name)
        self.damping = self.declare_numeric_parameter("damping", 0.1)
        self.x = self.declare_continuous_state(q=1, v=1, default=[1.0, 0.0])
        self.u = self.declare_vector_input("u", 1, default=0.0)
        self.y = self.declare_vector_output("y", 2, self.x, prerequisites=[self.x])

    def calc_time_derivatives(self, context: Any) -> Any:
        q, v = self.x(context)
        return [v, self.u(context)[0] - 9.81 * np.sin(q) - self.damping(context) * v]


@dataclass
class Watch:
    """A trigger where a function ``f(t, x, d)`` changes its sign."""

    calc: Callable[..., Any]
    direction: Any = "either"


@dataclass
class Act:
    """One event: its kind and trigger, and what becomes of the state, ``f(t, x, d)``."""

    kind: str
    trigger: Any
    update: Callable[..., Any]


class Actor(fx.LeafSystem):
    """ẋ = rate(t, x, d) with discrete values d that the events of a test change.

    What happens then is a function of t, x, d as well.
    """

    def __init__(
        self,
        *acts: Act,
        name: str = "actor",
        rate: Callable[..., Any] = lambda t, x, d: -x + d[0],
        start: Sequence[float] = (1.0,),
        numbers: Sequence[float] = (0.0, 0.0, 0.0),
    ) -> None:
        super().__init__(name)
        self.rate = rate
        self.x = self.declare_continuous_state(z=len(start), default=start)
        self.d = self.declare_discrete_state("d", numbers)
        self.y = self.declare_vector_output("y", len(numbers), self.d, prerequisites=[self.d])
        for act in acts:
            declare: Any = {
                "publish": self.declare_publish,
                "discrete": self.declare_discrete_update,
                "unrestricted": self.declare_unrestricted_update,
            }[act.kind]
            trigger = act.trigger
            if isinstance(trigger, Watch):
                trigger = Witness(self.reading(trigger.calc), trigger.direction)
            declare(self.handler(act), trigger)

    def reading(self, function: Callable[..., Any]) -> Callable[[Any], Any]:
        return lambda context: function(context.time, self.x(context), self.d(context))

    def handler(self, act: Act) -> Callable[[Any], Any]:
        calc = self.reading(act.update)

        def handle(context: Any) -> Any:
            found = calc(context)
            if act.kind == "publish":
                return found
            return {{"x": self.x, "d": self.d}[name]: value for name, value in found.items()}

        return handle

    def calc_time_derivatives(self, context: Any) -> Any:
        return self.reading(self.rate)(context)


def noting(t: Any, x: Any, d: Any) -> Any:
    """Count events, and keep the time and the state of the last one."""
    return {"d": [d[0] + 1.0, t, x[0]]}


# Situations --------------------------------------------------------------------------------------


def sampled() -> fx.System:
    """A loop of blocks with clocks of several rates and offsets."""
    builder = fx.DiagramBuilder("sampled")
    builder.add_all(
        Oscillator(),
        fx.Selector("angle", 2, [0]),
        fx.ZeroOrderHold("hold", 0.1),
        fx.PIDController("pid", 4.0, 1.0, 0.5, offset=0.02, period=0.05),
        fx.Integrator("sum", offset=0.1, period=0.3),
        fx.Constant("target", 0.5),
    )
    builder.connect_chain("oscillator", "angle", "hold", "pid.measurement")
    builder.connect("target.y", "pid.setpoint")
    builder.connect("pid.u", "oscillator.u")
    builder.connect("hold.y", "sum.u")
    return builder.build()


def several_clocks() -> fx.System:
    return together(
        Actor(
            Act("discrete", Periodic(0.1), noting),
            Act("unrestricted", Periodic(0.25, 0.05), lambda t, x, d: {"x": x + 0.5 * d[0]}),
        ),
        Actor(Act("discrete", Periodic(0.3, 0.3), noting), name="other"),
    )


def unrestricted_and_discrete() -> fx.System:
    """Two kinds of updates at the same instants: the second sees what the first wrote."""
    return Actor(
        Act("discrete", Periodic(0.25), lambda t, x, d: {"d": [d[0], 10.0 * d[0] + x[0], t]}),
        Act("unrestricted", Periodic(0.25), lambda t, x, d: {"d": [d[0] + 1.0, d[1], d[2]]}),
    )


def two_writers() -> fx.System:
    """Two handlers write one state and read the same values; the later one wins."""
    return Actor(
        Act("discrete", Periodic(0.25), lambda t, x, d: {"d": [d[0] + 1.0, d[1], 1.0]}),
        Act("discrete", Periodic(0.5), lambda t, x, d: {"d": [d[0], d[1] + 1.0, 2.0]}),
        Act("unrestricted", Periodic(1.0), lambda t, x, d: {"x": x + 1.0}),
        Act("unrestricted", Periodic(0.5), lambda t, x, d: {"x": x - 0.5}),
    )


def bouncing() -> fx.System:
    """A ball with resets, and a lid that it may hit while it rises."""
    return Actor(
        Act(
            "unrestricted",
            Watch(lambda t, x, d: x[0], "falling"),
            lambda t, x, d: {"x": [x[0], -0.8 * x[1]], "d": [d[0] + 1.0, t, d[2]]},
        ),
        Act(
            "unrestricted",
            Watch(lambda t, x, d: x[0] - 0.5, "rising"),
            lambda t, x, d: {"x": [x[0], -0.9 * x[1]], "d": [d[0], d[1], d[2] + 1.0]},
        ),
        rate=lambda t, x, d: [x[1], -9.81],
        start=[1.0, 0.0],
    )


def crossings_of_every_direction() -> fx.System:
    """Sines that cross levels, several times in one step, without resets."""
    return together(
        *(
            Actor(
                Act("discrete", Watch(lambda t, x, d, k=k: x[0] - 0.1 * k, direction), noting),
                name=direction,
                rate=lambda t, x, d: [x[1], -25.0 * x[0]],
                start=[1.0, 0.0],
            )
            for k, direction in enumerate(("falling", "rising", "either"))
        ),
        Actor(Act("discrete", Watch(lambda t, x, d: np.sin(40.0 * t)), noting), name="time"),
    )


def simultaneous() -> fx.System:
    """Two functions of two blocks that trigger at one instant, where a clock ticks too."""

    def half(t: Any, x: Any, d: Any) -> Any:
        return t - 0.5

    return together(
        Actor(
            Act("discrete", Watch(half), noting),
            Act("unrestricted", Watch(half, "rising"), lambda t, x, d: {"x": -x}),
            Act("discrete", Periodic(0.5), lambda t, x, d: {"d": [d[0], d[1], d[2] + 100.0]}),
        ),
        Actor(Act("unrestricted", Watch(half, "falling"), noting), name="never"),
        Actor(Act("unrestricted", Watch(half), noting), name="other"),
    )


def turned_around() -> fx.System:
    """A surface on which a motion is reflected at exactly zero, again and again."""
    return Actor(
        Act(
            "unrestricted",
            Watch(lambda t, x, d: x[0], "falling"),
            lambda t, x, d: {"x": [0.0, 1.0], "d": [d[0] + 1.0, t, 0.0]},
        ),
        rate=lambda t, x, d: [x[1], -2.0],
        start=[0.0, 1.0],
    )


def branching() -> fx.System:
    """Updates that ask what the values are, and leave out what does not change."""

    def renew(t: Any, x: Any, d: Any) -> Any:
        if x[0] > 0.5:
            return {"d": [d[0] + 1.0, t, d[2]]}
        return {"x": x + 1.0} if d[0] > 3.0 and t < 1.5 else {}

    return Actor(Act("unrestricted", Periodic(0.2), renew), rate=lambda t, x, d: -2.0 * x)


def thermostat() -> fx.System:
    """A heater that is switched with hysteresis: ẋ = 3 d - x between 0.9 and 1.1."""
    return Actor(
        Act(
            "discrete",
            Watch(lambda t, x, d: x[0] - 1.1, "rising"),
            lambda t, x, d: {"d": [0.0, d[1] + 1.0, t]},
        ),
        Act(
            "discrete",
            Watch(lambda t, x, d: x[0] - 0.9, "falling"),
            lambda t, x, d: {"d": [1.0, d[1] + 1.0, t]},
        ),
        rate=lambda t, x, d: 3.0 * d[0] - x,
        numbers=[1.0, 0.0, 0.0],
    )


def jumps() -> fx.System:
    """Sources whose break times the integrator has to land on."""
    builder = fx.DiagramBuilder("jumps")
    builder.add_all(
        fx.Step("step", at=0.3, to=2.0),
        fx.Square("pulses", period=0.25, duty=0.4, delay=0.1),
        fx.Trajectory("path", [0.0, 0.7, 1.5], [0.0, 2.0, -1.0], kind="hold"),
        fx.Sum("sum", "+++"),
        Oscillator(),
    )
    for k, name in enumerate(("step", "pulses", "path"), start=1):
        builder.connect(f"{name}.y", f"sum.u{k}")
    builder.connect("sum.y", "oscillator.u")
    return builder.build()


def logged() -> fx.System:
    """Logs of several clocks, one of them dense, beside updates and crossings."""
    builder = fx.DiagramBuilder("logged")
    builder.add_all(
        Oscillator(),
        fx.VectorLog("dense", 2, period=0.003),
        fx.VectorLog("coarse", 2, period=0.25, offset=0.1),
        fx.VectorLog("at_ticks", 2, period=0.1),
        Actor(
            Act("discrete", Periodic(0.1), noting),
            Act("discrete", Watch(lambda t, x, d: x[0] - 0.6), noting),
        ),
        fx.VectorLog("numbers", 3, period=0.05),
    )
    for name in ("dense", "coarse", "at_ticks"):
        builder.connect("oscillator.y", f"{name}.u")
    builder.connect("actor.y", "numbers.u")
    return builder.build()


def logged_at_every_step() -> fx.System:
    builder = fx.DiagramBuilder("logged")
    builder.add_all(
        Oscillator(),
        fx.VectorLog("steps", 2),
        fx.VectorLog("both", 2, period=0.15, triggers=["per_step", "periodic"]),
        Actor(Act("discrete", Periodic(0.4), noting)),
    )
    builder.connect("oscillator.y", "steps.u")
    builder.connect("oscillator.y", "both.u")
    return builder.build()


def foreign() -> fx.System:
    """An equation that no symbols go through."""
    return Actor(rate=lambda t, x, d: [math.sin(x[0])])


def settling() -> fx.System:
    """A value that follows another one in single steps, which are counted, before time goes on."""
    return Actor(
        Act("discrete", Periodic(0.4), lambda t, x, d: {"d": [d[0], 3.0 - d[1], d[2]]}),
        Act(
            "unrestricted",
            Settling(),
            lambda t, x, d: {
                "d": [d[0] + np.sign(d[1] - d[0]), d[1], d[2] + np.abs(np.sign(d[1] - d[0]))]
            },
        ),
        Act("unrestricted", Periodic(0.7), lambda t, x, d: {"x": [x[0] - 0.5]}),
    )


class Switching(fx.LeafSystem):
    """x' = 1 up to a time and -2 from then on; updates move that time."""

    def __init__(self) -> None:
        super().__init__("switching")
        self.x = self.declare_continuous_state(z=1)
        self.at = self.declare_discrete_state("at", 0.0)
        self.declare_discrete_update(self.move, Periodic(0.4))

    def calc_time_derivatives(self, context: Any) -> Any:
        return np.where(context.time < self.at(context), 1.0, -2.0)

    def move(self, context: Any) -> dict[Any, Any]:
        return {self.at: context.time + 0.15}

    def calc_next_break_time(self, context: Any) -> Any:
        return self.at(context)[0]


def delayed() -> fx.System:
    """A loop over a delay that bends between its samples."""
    builder = fx.DiagramBuilder("delayed")
    builder.add_all(
        fx.Step("target", at=0.33),
        fx.Sum("error", "+-"),
        fx.FirstOrderLag("lag", time_constant=0.3),
        fx.TimeDelay("delay", 0.25, period=0.1),
    )
    builder.connect("target.y", "error.u1")
    builder.connect("delay.y", "error.u2")
    builder.connect_chain("error", "lag", "delay")
    return builder.build()


class Register(fx.LeafSystem):
    """The last samples of an input; how often the oldest one, y, has passed 0.5 is counted."""

    def __init__(self) -> None:
        super().__init__("register")
        self.u = self.declare_vector_input("u", 1)
        self.samples = self.declare_discrete_state("samples", np.zeros(120))
        self.passed = self.declare_discrete_state("passed", 0.0)
        self.y = self.declare_vector_output("y", 1, self.calc, prerequisites=[self.samples])
        self.declare_discrete_update(self.shift, Periodic(0.005))
        self.declare_discrete_update(self.note, Witness(lambda c: self.calc(c)[0] - 0.5))

    def shift(self, context: Any) -> dict[Any, Any]:
        return {self.samples: np.concatenate([self.u(context), self.samples(context)[:-1]])}

    def note(self, context: Any) -> dict[Any, Any]:
        return {self.passed: self.passed(context) + 1.0}

    def calc(self, context: Any) -> Any:
        return self.samples(context)[-1:]


def shifted() -> fx.System:
    """Events that follow where a long line of samples is passed on."""
    builder = fx.DiagramBuilder("shifted")
    builder.add_all(
        fx.Square("wave", period=0.9),
        Register(),
        fx.FirstOrderLag("lag", time_constant=0.3),
    )
    builder.connect_chain("wave", "register", "lag")
    return builder.build()


def caused() -> fx.System:
    """A clock that makes functions jump, whose events make others jump."""
    return Actor(
        Act("discrete", Periodic(0.2), lambda t, x, d: {"d": [d[0], 1.0 - d[1], d[2]]}),
        Act(
            "discrete",
            Watch(lambda t, x, d: d[1] - 0.5),
            lambda t, x, d: {"d": [d[0] + 1.0, d[1], d[2]]},
        ),
        Act(
            "unrestricted",
            Watch(lambda t, x, d: np.sin(0.5 + d[0]), "falling"),
            lambda t, x, d: {"x": [x[0] + 1.0], "d": [d[0], d[1], t]},
        ),
        Act(
            "unrestricted",
            Watch(lambda t, x, d: x[0] - 3.0, "rising"),
            lambda t, x, d: {"x": [x[0] - 2.0]},
        ),
    )


SITUATIONS: dict[str, Callable[[], fx.System]] = {
    each.__name__: each
    for each in (
        Oscillator,
        sampled,
        several_clocks,
        unrestricted_and_discrete,
        two_writers,
        bouncing,
        settling,
        caused,
        crossings_of_every_direction,
        simultaneous,
        turned_around,
        branching,
        thermostat,
        jumps,
        logged,
        logged_at_every_step,
        Switching,
        delayed,
        shifted,
    )
}
