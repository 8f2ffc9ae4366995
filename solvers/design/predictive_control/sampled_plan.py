"""The base of predictive controllers: a plan at each sample, or the one before if there is none."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections import deque
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from flexure.diagrams.checks.arguments import count_of, import_extra, is_whole, require
from flexure.diagrams.checks.errors import TraceError
from flexure.diagrams.systems.leaf import LeafSystem
from flexure.diagrams.values.arrays import Array, FloatArray, bounded
from flexure.diagrams.values.events import Periodic
from flexure.diagrams.values.handles import Handle

_KEPT = 100_000  # times of solutions


class Sample(NamedTuple):
    """The situation at a sample."""

    time: float  # when its first inputs act, in s
    # x, u: the state then, and the inputs of the period before, shapes (n,) and (m,).
    x: FloatArray
    u: FloatArray
    disturbance: FloatArray  # what states do beyond the prediction in a period, shape (n,)
    reference: FloatArray  # what tracked signals are to be, shape (p,)
    number: int  # number of samples before


class SampledPlan(LeafSystem):
    """Base class of predictive controllers.

    At each sample it measures the disturbance, asks the subclass for a plan, and applies its first
    inputs. Subclasses

    1. call this constructor with the sizes and the first plan, of which the first m numbers are the
       inputs of the first period;
    2. implement `predicted`, `planned` and `shifted`.

    Attributes
    ----------
    state : InputPort
        Input "state", the states of the model, measured or estimated.
    reference : InputPort or None
        Input "reference", what the tracked signals are to be; None if there are none.
    u : LeafOutputPort
        Output "u", the inputs of the plant, held between the samples.
    violation : LeafOutputPort
        Output "violation", by how much a signal leaves its limits in the plan at the most.
    iterations : LeafOutputPort
        Output "iterations" of the solver; 0 where no limit is in the way.
    missed : LeafOutputPort
        Output "missed", the number of samples until now at which the previous plan went on.
    solve_times : deque of float
        Times of the latest 100,000 solutions, in s of the clock.
    """

    def __init__(
        self,
        name: str,
        x: FloatArray,
        u: FloatArray,
        plan: FloatArray,
        num_tracked: int,
        *,
        period: float,
        offset: float,
        disturbance_gain: float,
        delay: int,
        deadline: float | None,
        max_iterations: int,
    ) -> None:
        super().__init__(name)
        attempt = f"Cannot make block '{name}'"
        import_extra("piqp", "optimal", attempt)
        self._most = count_of(max_iterations, "max_iterations", attempt, minimum=1)
        about = f"{attempt} with this disturbance_gain"
        self._gain = bounded(disturbance_gain, about, lower=0.0, upper=1.0)
        require(is_whole(delay) and delay in (0, 1), delay, attempt, "delay to be 0 or 1 period")
        self._delay = bool(delay)
        self._deadline = bounded(
            np.inf if deadline is None else deadline,
            f"{attempt} with this deadline",
            lower=0.0,
            exclusive=True,
            allow_infinite=True,
            unit="s",
        )
        trigger = Periodic(period, offset)
        self.period, self.offset = trigger.period, trigger.offset
        self.solve_times: deque[float] = deque(maxlen=_KEPT)
        n, m = len(x), len(u)
        self.state = self.declare_vector_input("state", n)
        self.reference = (
            self.declare_vector_input("reference", num_tracked) if num_tracked else None
        )
        self._u = self.declare_discrete_state("held", u, doc="inputs of the plant")
        self._plan = self.declare_discrete_state("plan", plan, doc="inputs to come")
        self._expected = self.declare_discrete_state("expected", x, doc="predicted states")
        self._d = self.declare_discrete_state("disturbance", np.zeros(n))
        self._results = self.declare_discrete_state("results", np.zeros(4))
        self.declare_discrete_update(self._update, trigger)
        self.u = self.declare_vector_output("u", m, self._u, prerequisites=[self._u])
        self.violation, self.iterations, self.missed = (
            self.declare_vector_output(
                port, 1, partial(self._calc_result, k), prerequisites=[self._results]
            )
            for k, port in enumerate(("violation", "iterations", "missed"))
        )

    @abstractmethod
    def predicted(self, time: float, x: FloatArray, u: FloatArray) -> FloatArray:
        """Return the states one period later, without a disturbance."""

    @abstractmethod
    def planned(self, sample: Sample, former: FloatArray) -> tuple[FloatArray, float, int] | None:
        """Return a plan, its violation and the iterations of the solver; None if there is none.

        ``former`` is the plan of the sample before, from this sample on.
        """

    @abstractmethod
    def shifted(self, time: float, plan: FloatArray) -> FloatArray:
        """Return a plan from the next sample on, which is at a time."""

    def _update(self, context: Any) -> dict[Handle, Array]:
        """Find the plan for the state that is measured now."""
        measured = np.asarray(self.state(context))
        if measured.dtype == object:
            raise TraceError(
                f"Cannot trace '{self.label}', which solves a quadratic program at each sample",
                expected="numbers",
                found="symbols",
            )
        x = measured.astype(float)
        u, plan = self._u(context), self._plan(context)
        violation, iterations, missed, count = self._results(context)
        d = self._d(context)
        if count:
            d = d + self._gain * (x - self._expected(context))
        start, begin = x, context.time
        if self._delay:  # what was found before acts now
            u = plan[: len(u)]
            start = later = self.predicted(begin, x, u) + d
            begin += self.period
        former = self.shifted(begin, plan) if self._delay or count else plan
        r = np.zeros(0) if self.reference is None else self.reference(context)
        clock = time.perf_counter()
        sample = Sample(begin, start, u, d, np.asarray(r, dtype=float), int(count))
        found = self.planned(sample, former)
        taken = time.perf_counter() - clock
        self.solve_times.append(taken)
        if found is None or taken > self._deadline:
            following, iterations, missed = former, float(self._most), missed + 1.0
        else:
            following, violation, iterations = found
        if not self._delay:
            u = following[: len(u)]
            later = self.predicted(begin, x, u) + d
        return {
            self._u: u,
            self._plan: following,
            self._expected: later,
            self._d: d,
            self._results: np.array([violation, iterations, missed, count + 1.0]),
        }

    def _calc_result(self, k: int, context: Any) -> Array:
        return self._results(context)[k : k + 1]
