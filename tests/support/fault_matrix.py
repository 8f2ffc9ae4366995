"""Every fault, at every place, under every method, in every reading: what became of it, as counts.

``python -m tests.support.fault_matrix READING [METHOD ...]`` prints a line of JSON. It is a program
of its own, so that a crash or an endless loop inside of native code is noticed from outside.
"""

from __future__ import annotations

import faulthandler
import itertools
import json
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import flexure as fx
from flexure.solvers.methods import METHOD_NAMES
from tests.support.simulation import Flow, ball, method_options

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
        period = fx.PerStep() if steps else fx.Periodic(0.1, 0.1)
        witness = fx.Witness(self.calc_witness, "rising")
        self.declare_discrete_update(self.count, period)
        self.declare_unrestricted_update(self.reset, period)
        self.declare_discrete_update(self.cross, witness)
        self.declare_discrete_update(self.begin, fx.Initialization())
        self.declare_publish(self.tell, period)

    def value(self, place: str, context: Any, right: Any) -> Any:
        if self.wrong is not None:
            late = place == "at start" or context.time > FAULT - 1e-9
            return self.wrong[1](context) if self.wrong[0] == place and late else right
        a = self.a(context)
        late = True if place == "at start" else context.time > FAULT - 1e-9
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
        if self.wrong is not None and self.wrong[0] == "publish" and context.time > FAULT - 1e-9:
            self.wrong[1](context)


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
        **options: Any,
    ) -> None:
        self.name, self.system, self.context, self.end = name, system, context, end
        self.right, self.sweeps, self.options = right, sweeps, options


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
    handlers = [place for place in (*PLACES, "publish") if place != "witness"]
    for place, (what, act) in itertools.product(handlers, OBJECTS.items()):
        harmless = place == "publish" and act is not fail and what != "division by zero"
        system = Subject((place, act), steps=False)
        name = f"{what} in {place}"
        yield Cell(name, system, right=_always if harmless else _never, **options, **bound)
    yield from motions(options)


def motions(options: dict[str, Any]) -> Iterator[Cell]:
    """Return what goes wrong although every number is well."""
    yield Cell("blow-up", Flow(lambda t, x: x * x, [1.0]), end=3.0, **options)
    yield Cell(
        "explosion",
        Flow(lambda t, x: 1e4 * x, [1.0]),
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
    context = cell.context or cell.system.create_default_context()
    if cell.context is None and isinstance(cell.system, Subject):
        cell.system.u.fix(context, 0.0)
    try:
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
    context = cell.context or cell.system.create_default_context()
    value = context.get(cell.sweeps)
    try:
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
