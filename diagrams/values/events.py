"""Events: when a block acts (triggers) and what it may do (publish or update).

A *publish* reads the context, and may write to the outside world. A *discrete update* assigns new
values to discrete state, an *unrestricted update* to any state. Handlers of updates are
pure functions: they read the context as it was before the event and return the new values as
``{handle: value}``; the simulator writes them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, get_args

from flexure.diagrams.checks.arguments import is_one_of, require, shown
from flexure.diagrams.checks.errors import DeclarationError, ValueRefusedError

if TYPE_CHECKING:
    from flexure.diagrams.values.arrays import FloatArray

EventKind: TypeAlias = Literal["publish", "discrete", "unrestricted"]
Direction: TypeAlias = Literal["falling", "rising", "either"]
#: Reads the context; may return `Terminate` to end the run.
PublishHandler: TypeAlias = Callable[[Any], "Terminate | None"]
#: Takes the values of a signal at several times: ``record(context, times, values)``.
Recorder: TypeAlias = Callable[[Any, "FloatArray", "FloatArray"], None]


@dataclass(frozen=True)
class Terminate:
    """The value that a publish handler returns to end the run after the current step.

    Attributes
    ----------
    reason : str
        The reason, which the result of the run reports.

    See Also
    --------
    StopWhen : A block that ends a run.
    LeafSystem : Declares events.

    Examples
    --------
    >>> import flexure as fx
    >>> class Timer(fx.LeafSystem):
    ...     def __init__(self, name):
    ...         super().__init__(name)
    ...         self.declare_publish(self.ring, fx.diagrams.Periodic(1.0, offset=2.0))
    ...
    ...     def ring(self, context):
    ...         return fx.diagrams.Terminate("time is over")
    >>> fx.simulate(Timer("timer"), 10.0).context.time
    2.0
    """

    reason: str


@dataclass(frozen=True)
class Periodic:
    """An event that triggers at ``offset + k period`` for k = 0, 1, 2, ...

    Attributes
    ----------
    period : float
        Positive, in seconds.
    offset : float
        Time of the first event, not negative, in seconds.

    See Also
    --------
    PerStep : After every step.
    Witness : When a function changes its sign.
    LeafSystem : Declares events.

    Examples
    --------
    >>> import flexure as fx
    >>> trigger = fx.diagrams.Periodic(0.1, offset=0.05)
    >>> trigger.period, trigger.offset
    (0.1, 0.05)
    """

    period: float
    offset: float = 0.0

    def __post_init__(self) -> None:
        if not (_is_finite(self.period) and self.period > 0.0):
            raise DeclarationError(
                "Cannot declare a periodic event",
                expected="a positive, finite period",
                found=f"period={self.period!r}",
            )
        if not (_is_finite(self.offset) and self.offset >= 0.0):
            raise DeclarationError(
                "Cannot declare a periodic event",
                expected="a finite offset >= 0",
                found=f"offset={self.offset!r}",
            )

    def next_time(self, time: float) -> float:
        """Return the first trigger time strictly later than ``time``.

        Times are ``offset + k period`` in floating point, so that a run started anywhere sees the
        same instants. k is the smallest integer whose time is later.

        Raises
        ------
        ValueRefusedError
            When the time is no finite number, or the period is below 10 spacings of floating-point
            numbers at this time.

        Examples
        --------
        >>> Periodic(0.1).next_time(0.2)
        0.30000000000000004
        """
        try:
            return next_tick(self.period, self.offset, time)
        except ValueRefusedError:
            raise
        except (ArithmeticError, TypeError, ValueError):
            raise _no_time(time) from None

    def is_due(self, time: float) -> bool:
        """Return whether ``time`` is exactly one of the trigger times."""
        try:
            if time < self.offset:
                return False
            k = round((time - self.offset) / self.period)
            return self.offset + k * self.period == time
        except (ArithmeticError, TypeError, ValueError):
            raise _no_time(time) from None


@dataclass(frozen=True)
class PerStep:
    """An event that triggers at every step of the simulator.

    See Also
    --------
    Periodic : At equal distances in time.
    Initialization : Once, at the start.

    Examples
    --------
    >>> import flexure as fx
    >>> log = fx.VectorLog("log", size=1, triggers=["per_step"])
    >>> isinstance(log.events[0].trigger, fx.diagrams.PerStep)
    True
    """


@dataclass(frozen=True)
class Initialization:
    """An event that triggers once, when the simulation is initialized.

    See Also
    --------
    PerStep : At every step.
    LeafSystem : Declares events.

    Examples
    --------
    >>> import flexure as fx
    >>> class Hello(fx.LeafSystem):
    ...     def __init__(self, name):
    ...         super().__init__(name)
    ...         self.declare_publish(self.greet, fx.diagrams.Initialization())
    ...
    ...     def greet(self, context):
    ...         print(f"starting at {context.time:g} s")
    >>> _ = fx.simulate(Hello("hello"), 1.0)
    starting at 0 s
    """


@dataclass(frozen=True)
class Forced:
    """An event that you trigger yourself, as by ``system.forced_publish(context)``.

    See Also
    --------
    Periodic : At equal distances in time.

    Examples
    --------
    >>> import flexure as fx
    >>> log = fx.VectorLog("log", size=1, triggers=["forced"])
    >>> [type(event.trigger).__name__ for event in log.events]
    ['Forced']
    """


@dataclass(frozen=True)
class Witness:
    """An event that triggers when a function of the context changes its sign.

    A function that starts at exactly zero does not trigger by leaving zero.

    Attributes
    ----------
    calc : callable
        ``calc(context) -> float``, continuous in time and state between events.
    direction : {"falling", "rising", "either"}
        "falling" triggers when a positive value becomes zero or negative, "rising" when a
        negative value becomes zero or positive, "either" in both cases.
    max_check_interval : float
        Longest stretch of time that the function may be left alone, in seconds. Shorter ones are
        chosen where it is seen to vary fast; give one where it rests between pulses.

    See Also
    --------
    Periodic : At equal distances in time.
    LeafSystem : Declares events.

    Examples
    --------
    >>> import flexure as fx
    >>> class Ground(fx.LeafSystem):
    ...     def __init__(self, name):
    ...         super().__init__(name)
    ...         self.state = self.declare_continuous_state(q=1, default=[1.0])
    ...         self.declare_publish(self.stop, fx.diagrams.Witness(self.height, "falling"))
    ...
    ...     def height(self, context):
    ...         return self.state(context)[0]
    ...
    ...     def calc_time_derivatives(self, context):
    ...         return [-2.0]
    ...
    ...     def stop(self, context):
    ...         return fx.diagrams.Terminate("on the ground")
    >>> round(fx.simulate(Ground("ground"), 10.0).context.time, 9)
    0.5
    """

    calc: Callable[[Any], Any]
    direction: Direction = "either"
    max_check_interval: float = math.inf

    def __post_init__(self) -> None:
        if not callable(self.calc):
            raise DeclarationError(
                "Cannot declare a witness function",
                expected="a method that takes a context",
                found=repr(self.calc),
            )
        if not is_one_of(self.direction, get_args(Direction)):
            raise DeclarationError(
                "Cannot declare a witness function",
                expected="direction 'falling', 'rising' or 'either'",
                found=repr(self.direction),
            )
        if not (isinstance(self.max_check_interval, Real) and self.max_check_interval > 0.0):
            raise DeclarationError(
                "Cannot declare a witness function",
                expected="a positive max_check_interval in seconds",
                found=repr(self.max_check_interval),
            )

    def triggers(self, before: float, after: float) -> bool:
        """Return whether the change from ``before`` to ``after`` is a trigger.

        >>> Witness(abs, "falling").triggers(1.0, 0.0), Witness(abs, "falling").triggers(0.0, -1.0)
        (True, False)
        """
        falling = self.sign <= 0 and before > 0.0 and after <= 0.0
        rising = self.sign >= 0 and before < 0.0 and after >= 0.0
        return falling or rising

    @property
    def sign(self) -> int:
        """The direction as a number: -1 for falling, 1 for rising, 0 for either."""
        return {"falling": -1, "rising": 1, "either": 0}[self.direction]


@dataclass(frozen=True)
class Settling:
    """An event that repeats, after other updates, until updates change nothing.

    Values jump at events, at break times of inputs, and when you set them between two runs. An
    update with this trigger brings discrete state in line with them before time goes on, such as
    which contacts stick and which slip in a mechanism. All such updates of a system see the same
    values, and all run again as long as one of them changes a value.

    See Also
    --------
    Witness : When a function changes its sign.
    LeafSystem : Declares events.

    Examples
    --------
    >>> import flexure as fx
    >>> class Thermostat(fx.LeafSystem):
    ...     def __init__(self, name):
    ...         super().__init__(name)
    ...         self.u = self.declare_vector_input("u", 1)
    ...         self.heats = self.declare_discrete_state("heats", [0.0])
    ...         self.declare_discrete_update(self.switch, fx.diagrams.Settling())
    ...
    ...     def switch(self, context):
    ...         return {self.heats: 1.0 * (self.u(context) < 20.0)}
    >>> thermostat = Thermostat("thermostat")
    >>> context = thermostat.create_default_context()
    >>> thermostat.u.fix(context, 18.0)
    >>> thermostat.heats(fx.simulate(thermostat, 1.0, context=context).context)
    array([1.])
    """


def next_tick(period: float, offset: float, time: float) -> float:
    """Return the first ``offset + k period`` later than a time, for k = 0, 1, 2, ..."""
    if time < offset:
        return offset
    require_interval("a period", period, time, "Cannot find the next time of a periodic event")
    k = math.ceil((time - offset) / period) - 1  # the quotient may be rounded up
    while offset + k * period <= time:  # ends at once: ticks are many spacings apart
        k += 1
    return offset + k * period


def is_lost(interval: float, time: float) -> bool:
    """Return whether a length of time is lost in the rounding of floating-point time."""
    return 0.0 < interval < _SPACINGS * math.ulp(time)


def require_interval(what: str, interval: float, time: float, attempt: str) -> None:
    """Refuse a length of time in s that is lost in the rounding of floating-point time.

    ``what`` is the length, such as "a period", ``time`` where it is used, ``attempt`` what it is
    for.
    """
    if is_lost(interval, time):
        raise ValueRefusedError(
            attempt,
            expected=f"{what} of at least {_SPACINGS * math.ulp(time):.3g} s, which is {_SPACINGS} "
            f"spacings of floating-point numbers at t = {time:.9g} s",
            found=f"{interval!r} s",
            remedy="Use a longer one, or start the time at zero",
        )


_SPACINGS = 10  # of time, below which integrators with error control take no step, either


def _no_time(time: object) -> ValueRefusedError:
    """Refuse what is no time."""
    return ValueRefusedError(
        "Cannot find the times of a periodic event",
        expected="a finite time in seconds",
        found=shown(time),
    )


def _is_finite(number: object) -> bool:
    """Return whether a period or offset is a finite number."""
    try:
        return isinstance(number, Real) and math.isfinite(number)
    except OverflowError:  # an int beyond all floats
        return False


Trigger: TypeAlias = Periodic | PerStep | Initialization | Forced | Witness | Settling


class Labeled(Protocol):
    """The interface of a block that its events use."""

    @property
    def label(self) -> str:
        """Path for messages."""


@dataclass(frozen=True, eq=False)
class Event:
    """One declared event of a block."""

    system: Labeled
    kind: EventKind
    trigger: Trigger
    handler: Callable[[Any], Any]  # the method of the block
    # The input port that is all that a publish looks at beside the time, if it says so.
    signal: Callable[[Any], Any] | None = None
    # record(context, times, values) does what the handler would do at several times.
    record: Recorder | None = None

    def __post_init__(self) -> None:
        attempt = f"Cannot declare a {self.kind} event of '{self.system.label}'"
        triggers = "Periodic(...), PerStep(), Initialization(), Forced(), Witness(...), Settling()"
        known = isinstance(self.trigger, Trigger)
        require(known, self.trigger, attempt, triggers, error=DeclarationError)
        method = "a method that takes a context"
        require(callable(self.handler), self.handler, attempt, method, error=DeclarationError)
        if isinstance(self.trigger, Settling) and self.kind == "publish":
            raise DeclarationError(attempt, expected="an update", found="the trigger Settling()")

    @property
    def label(self) -> str:
        """Path of the block and name of the handler, for messages and traces."""
        name = getattr(self.handler, "__name__", type(self.handler).__name__)
        return f"{self.system.label}.{name.lstrip('_')}"
