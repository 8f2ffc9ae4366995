"""Every fault, at every place, under every method, in every reading: what became of it, as counts.

``python -m tests.support.systems.fault_matrix READING [METHOD ...]`` prints a line of JSON. It is a
program of its own, so that a crash or an endless loop inside native code is noticed from outside.
"""

from __future__ import annotations

import faulthandler
import itertools
import json
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import flexure as fx
from flexure.diagrams import Initialization, Periodic, PerStep, Witness
from flexure.diagrams.values.events import Direction
from flexure.solvers.integration.methods.methods import METHOD_NAMES
from tests.support.systems.simulation import Flow, ball, method_options

READINGS: dict[str, Any] = {"interpreted": False, "straight-line": "python", "native": True}
METHODS = ["auto", *METHOD_NAMES]
FAULT, END, STEP = 0.3, 0.5, 0.01
SECONDS = 20  # of processor time for one run; it takes a hundredth

#: Numbers a, b of which a |a| / b is the fault.
NUMBERS = {"nan": (0.0, 0.0), "inf": (1.0, 0.0), "-inf": (-1.0, 0.0), "overflow": (1e200, 1.0)}
PLACES = ("derivative", "output", "witness", "discrete", "unrestricted", "at event", "at start")


class Fuel(Exception):  # noqa: N818, somebody else's exception
    """What equations of a user raise."""


def fail(context: Any) -> Any:
    raise Fuel


#: What handlers and calculations give instead of numbers.
OBJECTS: dict[str, Callable[[Any], Any]] = {
    "wrong length": lambda context: np.zeros(5),
    "no length": lambda context: np.zeros(0),
    "matrix": lambda context: np.zeros((2, 2)),
    "complex": lambda context: 1.0 + 1.0j,
    "text": lambda context: "text",
    "nothing": lambda context: [None],
    "object": lambda context: object(),
    "exception": fail,
    "division by zero": lambda context: 1 // 0,
}


class Subject(fx.LeafSystem):
    """ẋ = 1 - x by way of an output, with an event of every kind; one place may be at fault.

    Numbers are faults of parameters, so that native code serves all of them; `wrong` gives objects.
    """

    def __init__(self, wrong: tuple[str, Callable[[Any], Any]] | None, *, steps: bool) -> None:
        super().__init__("subject")
        self.wrong = wrong
        # What begins anew after every step needs many of them.
        self.fault = (0.1 if steps else 1.0) * FAULT
        self.a = self.declare_numeric_parameter("a", 1.0)
        self.b = self.declare_numeric_parameter("b", 1.0)
        self.at = {
            place: self.declare_numeric_parameter(place.replace(" ", "_"), 0.0) for place in PLACES
        }
        self.x = self.declare_continuous_state(z=2, default=[0.0, 0.0])
        self.n = self.declare_discrete_state("n", 0.0)
        self.m = self.declare_discrete_state("m", 0.0)
        self.u = self.declare_vector_input("u", 1)
        self.y = self.declare_vector_output("y", 1, self.calc_y, prerequisites=[self.x])
        period = PerStep() if steps else Periodic(0.1, 0.1)
        witness = Witness(self.calc_witness, "rising")
        self.declare_discrete_update(self.count, period)
        self.declare_unrestricted_update(self.reset, period)
        self.declare_discrete_update(self.cross, witness)
        self.declare_discrete_update(self.begin, Initialization())
        self.declare_publish(self.tell, period)

    def value(self, place: str, context: Any, right: Any) -> Any:
        if self.wrong is not None:
            late = place == "at start" or context.time > self.fault - 1e-9
            return self.wrong[1](context) if self.wrong[0] == place and late else right
        a = self.a(context)
        late = True if place == "at start" else context.time > self.fault - 1e-9
        active = np.where(late, self.at[place](context), 0.0)
        return right + np.where(active > 0.0, a * np.abs(a) / self.b(context), 0.0)

    def calc_y(self, context: Any) -> Any:
        return self.value("output", context, self.x(context)[:1])

    def calc_time_derivatives(self, context: Any) -> Any:
        rate = self.value("derivative", context, 1.0 - self.y(context))
        if self.wrong is not None and self.wrong[0] == "derivative" and np.ndim(rate) != 1:
            return rate
        return np.concatenate([np.reshape(rate, -1), [1.0]]) if np.size(rate) == 1 else rate

    def calc_witness(self, context: Any) -> Any:
        return self.value("witness", context, self.x(context)[1] - 0.437)

    def count(self, context: Any) -> Any:
        return {self.n: self.value("discrete", context, self.n(context) + 1.0)}

    def reset(self, context: Any) -> Any:
        return {self.m: self.value("unrestricted", context, self.m(context) + 1.0)}

    def cross(self, context: Any) -> Any:
        return {self.n: self.value("at event", context, self.n(context))}

    def begin(self, context: Any) -> Any:
        return {self.n: self.value("at start", context, self.n(context))}

    def tell(self, context: Any) -> None:
        if (
            self.wrong is not None
            and self.wrong[0] == "publish"
            and context.time > self.fault - 1e-9
        ):
            self.wrong[1](context)


class Watched(fx.LeafSystem):
    """ẋ = 1 from 0, with a second state that counts the zeros of a function of x."""

    def __init__(self, watch: Callable[[Any], Any], direction: Direction) -> None:
        super().__init__("watched")
        self.watch = watch
        self.x = self.declare_continuous_state(z=2, default=[0.0, 0.0])
        self.declare_unrestricted_update(self.count, Witness(self.calc_watch, direction))

    def calc_time_derivatives(self, context: Any) -> Any:
        return [1.0, 0.0]

    def calc_watch(self, context: Any) -> Any:
        return self.watch(self.x(context)[0])

    def count(self, context: Any) -> Any:
        x = self.x(context)
        return {self.x: [x[0], x[1] + 1.0]}


class Lag(fx.LeafSystem):
    """ẋ = u - p x from 1, in which everything is given from outside."""

    def __init__(self) -> None:
        super().__init__("lag")
        self.p = self.declare_numeric_parameter("p", 1.0)
        self.x = self.declare_continuous_state(z=1, default=[1.0])
        self.u = self.declare_vector_input("u", 1)

    def calc_time_derivatives(self, context: Any) -> Any:
        return self.u(context) - self.p(context) * self.x(context)


#: Functions of x with what is hard about them, and how often they are zero until the end.
ZEROS: dict[str, tuple[Callable[[Any], Any], Direction, set[float]]] = {
    "flat": (lambda x: (x - 0.25) ** 3, "rising", {1.0}),
    "flat on both sides": (lambda x: (x - 0.25) * np.abs(x - 0.25), "rising", {1.0}),
    "very flat": (lambda x: (x - 0.25) ** 9, "either", {1.0}),
    "tiny": (lambda x: 1e-300 * (x - 0.25), "rising", {1.0}),
    "huge": (lambda x: 1e300 * (x - 0.25), "rising", {1.0}),
    "touching": (lambda x: (x - 0.25) ** 2, "falling", {0.0, 1.0}),
    "touching from below": (lambda x: -((x - 0.25) ** 4), "rising", {0.0, 1.0}),
    "grazing": (lambda x: (x - 0.25) ** 2 - 1e-8, "either", {2.0}),
    "missing": (lambda x: (x - 0.25) ** 2 + 1e-8, "either", {0.0}),
    "with a corner": (lambda x: np.abs(x - 0.25), "falling", {0.0, 1.0}),
    "with a corner beyond": (lambda x: np.abs(x - 0.25) - 1e-3, "either", {2.0}),
    "jumping": (lambda x: np.where(x < 0.25, -1.0, 1.0), "rising", {1.0}),
    "fast": (lambda x: np.sin(40.0 * np.pi * x + 1.0), "rising", {10.0}),
}

#: Values for what is given from outside, and whether they may do.
VALUES: dict[str, tuple[Any, bool]] = {
    "nan": (np.nan, False),
    "inf": (np.inf, False),
    "-inf": (-np.inf, False),
    "huge": (1e308, True),
    "huge and negative": (-1e308, True),
    "subnormal": (1e-320, True),
    "text": ("text", False),
    "nothing": (None, False),
    "complex": (1.0 + 1.0j, False),
    "beyond floats": (10**400, False),
    "wrong length": (np.zeros(5), False),
    "no length": (np.zeros(0), False),
    "object": (object(), False),
}


def _never(context: Any) -> bool:
    return False


def _always(context: Any) -> bool:
    return True


class Cell:
    """One run: how it is made, and whether what it ends with is right."""

    def __init__(
        self,
        name: str,
        system: fx.System,
        context: fx.Context | None = None,
        *,
        end: float = END,
        right: Callable[[Any], bool] = _never,
        sweeps: str = "",
        prepare: Callable[[fx.Context], Any] = _never,
        **options: Any,
    ) -> None:
        self.name, self.system, self.context, self.end = name, system, context, end
        self.right, self.sweeps, self.prepare, self.options = right, sweeps, prepare, options

    def begin(self) -> fx.Context:
        """Return the context, prepared."""
        context = self.context or self.system.create_default_context()
        if self.context is None and isinstance(self.system, Subject):
            self.system.u.fix(context, 0.0)
        self.prepare(context)
        return context


def cells(method: str) -> Iterator[Cell]:
    """Return all faults under one method."""
    options = method_options(method, STEP)
    bound: dict[str, Any] = {} if "step" in options else {"max_step": 0.05}
    for steps in (False, True):
        subject = Subject(None, steps=steps)
        places = ("discrete", "unrestricted") if steps else PLACES
        for place, (what, (a, b)) in itertools.product(places, NUMBERS.items()):
            context = subject.create_default_context()
            subject.u.fix(context, 0.0)
            subject.a.set(context, a)
            subject.b.set(context, b)
            subject.at[place].set(context, 1.0)
            name = f"{what} in {place}, {'per step' if steps else 'periodic'}"
            yield Cell(name, subject, context, sweeps="a", **options, **bound)
    for place, (what, act) in itertools.product((*PLACES, "publish"), OBJECTS.items()):
        harmless = place == "publish" and act is not fail and what != "division by zero"
        system = Subject((place, act), steps=False)
        name = f"{what} in {place}"
        yield Cell(name, system, right=_always if harmless else _never, **options, **bound)
    yield from motions(options)
    for what, (watch, direction, hits) in ZEROS.items():
        yield Cell(
            f"{what} witness",
            Watched(watch, direction),
            sweeps="x",
            right=partial(_has_counted, hits),
            **options,
            **bound,
        )
    lag = Lag()
    for place, (what, (value, harmless)) in itertools.product(GIVEN, VALUES.items()):
        yield Cell(
            f"{what} as {place}",
            lag,
            sweeps="p",
            prepare=partial(_give, lag, place, value),
            right=partial(_has_lagged, place, value) if harmless else _never,
            **options,
        )


#: What a `Lag` is given.
GIVEN = ("parameter", "input", "state", "time")


def _give(lag: Lag, place: str, value: Any, context: fx.Context) -> None:
    """Give one value from outside; all others are well."""
    lag.u.fix(context, 0.0)
    if place == "parameter":
        lag.p.set(context, value)
    elif place == "input":
        lag.u.fix(context, value)
    elif place == "state":
        lag.x.set(context, [value])
    else:
        context.time = value


def _has_lagged(place: str, value: float, context: fx.Context) -> bool:
    """Return whether a `Lag` is where it has to be."""
    p, u, start = (
        value if place == each else well
        for each, well in (("parameter", 1.0), ("input", 0.0), ("state", 1.0))
    )
    lapse = END - (value if place == "time" else 0.0)
    with np.errstate(over="ignore"):
        decay = np.exp(-p * lapse)
        expected = decay * start + u * (lapse if p < 1e-9 else (1.0 - decay) / p)
    return bool(abs(context.continuous_state[0] - expected) <= 5e-3 * max(abs(expected), 1.0))


def _has_counted(hits: set[float], context: fx.Context) -> bool:
    time, count = context.continuous_state
    return abs(time - END) < 1e-9 and count in hits


def motions(options: dict[str, Any]) -> Iterator[Cell]:
    """Return what goes wrong although every number is well."""
    yield Cell("blow-up", Flow(lambda t, x: x * x, [1.0]), end=3.0, **options)
    yield Cell(
        "explosion",
        Flow(lambda t, x: 1e6 * x, [1.0]),
        end=1.0,
        **options,
        right=lambda context: options["method"] == "implicit_euler",
    )
    yield Cell(
        "chattering",
        Flow(lambda t, x: -np.sign(x), [0.2]),
        sweeps="x",
        **options,
        right=lambda context: abs(context.continuous_state[0]) < 2.0 * STEP,
    )
    yield Cell(
        "Zeno",
        ball(0.5),
        end=2.0,
        **options,
        right=lambda context: context.continuous_state[0] > -1e-3,
    )
    yield Cell(
        "graze",
        Flow(lambda t, x: [1.0], [0.0], watch=lambda t, x: (x[0] - 0.25) ** 2),
        **options,
        right=lambda context: abs(context.continuous_state[0] - END) < 1e-9,
    )
    huge = Flow(lambda t, x: [0.0 * x[0], -x[1]], [1e300, 1.0])
    yield Cell(
        "huge",
        huge,
        sweeps="x",
        **options,
        right=lambda context: (
            context.continuous_state[0] == 1e300
            and abs(context.continuous_state[1] - np.exp(-END)) < 5e-3
        ),
    )


def verdict(cell: Cell, compiled: Any) -> str:
    """Run a cell; return what became of it."""
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        context = cell.begin()
        simulator = fx.Simulator(cell.system, context, compiled=compiled, **cell.options)
        simulator.advance_to(cell.end)
    except (fx.errors.FlexureError, Fuel) as error:
        return "own" if isinstance(error, Fuel) else "refused"
    except ZeroDivisionError:
        return "own" if "division by zero" in cell.name else "foreign ZeroDivisionError"
    except TimeoutError:
        return "hang"
    except Exception as error:
        return f"foreign {type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
    return "right" if cell.right(context) else "false success"


def sweep_verdict(cell: Cell) -> str:
    """Run a cell twice as a sweep; return what became of it."""
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        context = cell.begin()
        value = context.get(cell.sweeps)
        found = fx.sweep(
            cell.system, {cell.sweeps: [value, value]}, cell.end, context=context, **cell.options
        )
    except fx.errors.FlexureError:
        return "refused"
    except TimeoutError:
        return "hang"
    except Exception as error:
        return f"foreign {type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
    if set(found.outcomes) == {"failed"}:
        foreign = [text for text in found.failures.values() if not text.startswith("Cannot ")]
        return f"foreign {foreign[0]}" if foreign else "refused"
    context.continuous_state = found.final_states[0]
    return "right" if cell.right(context) else "false success"


def main(reading: str, methods: list[str]) -> None:
    """Run all cells in one reading, and print the counts and what is not as it should be."""
    faulthandler.enable()

    def ring(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGPROF, ring)
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    for method in methods or METHODS:
        for cell in cells(method):
            if reading != "interpreted" and isinstance(cell.system, Subject) and cell.system.wrong:
                continue  # what is no number is interpreted in every reading
            if reading != "sweep":
                found = verdict(cell, READINGS[reading])
            elif cell.sweeps:
                found = sweep_verdict(cell)
            else:
                continue
            kind = found.split()[0]
            counts[kind] += 1
            if kind in ("hang", "false", "foreign"):
                wrong.append(f"{method}: {cell.name}: {found}")
    print(json.dumps({"counts": counts, "wrong": wrong}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
