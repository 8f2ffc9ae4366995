"""Random diagrams of traced, interpreted, sampled and abstract blocks against matrix exponentials.

All blocks are linear, so that between two ticks all states together move by one matrix exponential,
and at a tick by one matrix. That is computed here from the numbers of the blocks and their wires.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from hypothesis import event, given, settings, strategies as st

import flexure as fx
from flexure.diagrams import scalars
from flexure.solvers.integration.methods.methods import METHOD_NAMES, is_fixed_step
from tests.support.native.native import needs_llvmlite
from tests.support.tiers import by_tier

#: In which way a block writes its equations down.
WAYS = ("traced", "branching", "foreign", "abstract", "abstract state")
READINGS: tuple[Any, ...] = (False, "python", True)
PERIODS = (0.1, 0.15, 0.25)
END = 0.83
STEP = 2e-3  # of fixed-step methods
#: How far a method may be off, where it is not 1e-5.
TOLERANCES = {"BDF": 1e-4, "LSODA": 1e-4, "RK23": 1e-4, "rk2": 1e-4} | dict.fromkeys(
    ("euler", "semi_explicit_euler", "implicit_euler"), 0.05
)


@dataclass(frozen=True)
class Plan:
    """One linear block on paper: a gain y = D u, or states with y = C x.

    The states move by x' = A x + B u, or, with a period, jump to A x + B u at every tick.
    """

    way: str
    period: float | None
    A: np.ndarray
    B: np.ndarray
    C: np.ndarray
    D: np.ndarray
    initial: np.ndarray

    @property
    def is_gain(self) -> bool:
        return not len(self.initial)


class Mixed(fx.LeafSystem):
    """A block of a plan; its output is multiplied by a parameter, which is one."""

    def __init__(self, name: str, plan: Plan) -> None:
        super().__init__(name)
        self.plan = plan
        self.k = self.declare_numeric_parameter("k", 1.0)
        if plan.way == "abstract":
            self.held: Any = self.declare_abstract_parameter("held", {"one": 1.0})
        elif plan.way == "abstract state":
            self.held = self.declare_abstract_state("held", {"one": 1.0})
        self.u = self.declare_vector_input("u", plan.D.shape[1])
        needs: list[Any] = [self.u]
        if not plan.is_gain:
            if plan.period is None:
                n = len(plan.initial)
                state: Any = self.declare_continuous_state(
                    q=n // 2, v=n // 2, z=n % 2, default=plan.initial
                )
            else:
                state = self.declare_discrete_state("x", plan.initial)
                self.declare_discrete_update(self.tick, fx.diagrams.Periodic(plan.period))
            self.state, needs = state, [state]
        if plan.way.startswith("abstract"):
            needs.append(self.held)
        self.y = self.declare_vector_output("y", len(plan.D), self.calc_y, prerequisites=needs)

    def times(self, context: Any, matrix: Any, values: Any) -> Any:
        """Multiply in the way of the block."""
        way = self.plan.way
        if way == "foreign":
            return [math.fsum(a * float(v) for a, v in zip(r, values, strict=True)) for r in matrix]
        product = matrix @ values
        if way == "branching" and values[0] < 0.0:
            return -(matrix @ -values)
        return product * self.held(context)["one"] if way.startswith("abstract") else product

    def calc_y(self, context: Any) -> Any:
        plan = self.plan
        given = self.u(context) if plan.is_gain else self.state(context)
        product = self.times(context, plan.D if plan.is_gain else plan.C, given)
        return [self.k(context) * entry for entry in product]

    def moved(self, context: Any) -> Any:
        x, u = self.state(context), self.u(context)
        both = np.hstack([self.plan.A, self.plan.B])
        return self.times(context, both, scalars.array([*x, *u]))

    def calc_time_derivatives(self, context: Any) -> Any:
        return self.moved(context)

    def tick(self, context: Any) -> Any:
        return {self.state: self.moved(context)}


@dataclass(frozen=True)
class Network:
    """Blocks, and for each of their inputs the outputs that are added up there."""

    plans: Sequence[Plan]
    wires: dict[
        tuple[int, int], tuple[int, int]
    ]  # from a component of an input to that of an output

    def build(self) -> fx.Diagram:
        """Build the diagram: each input is put together by a multiplexer."""
        builder = fx.DiagramBuilder("network")
        for b, plan in enumerate(self.plans):
            inputs, outputs = plan.D.shape[1], plan.D.shape[0]
            builder.add(Mixed(f"b{b}", plan))
            builder.add(fx.Multiplexer(f"in{b}", [1] * inputs))
            builder.add(fx.Demultiplexer(f"out{b}", [1] * outputs))
            builder.connect(f"in{b}.y", f"b{b}.u")
            builder.connect(f"b{b}.y", f"out{b}.u")
        for (b, i), (source, j) in self.wires.items():
            builder.connect(f"out{source}.y{j + 1}", f"in{b}.u{i + 1}")
        return builder.build()

    def dense(self) -> Dense:
        """Put all matrices together."""
        spans, inputs, outputs = ([0] for _ in range(3))
        for plan in self.plans:
            spans.append(spans[-1] + len(plan.initial))
            inputs.append(inputs[-1] + plan.D.shape[1])
            outputs.append(outputs[-1] + plan.D.shape[0])
        n = spans[-1]
        W = np.zeros((inputs[-1], outputs[-1]))
        for (b, i), (source, j) in self.wires.items():
            W[inputs[b] + i, outputs[source] + j] = 1.0
        C = scipy.linalg.block_diag(*[p.C for p in self.plans])
        D = scipy.linalg.block_diag(*[p.D if p.is_gain else 0.0 * p.D for p in self.plans])
        B = scipy.linalg.block_diag(*[p.B for p in self.plans])
        A = scipy.linalg.block_diag(*[p.A for p in self.plans])
        y_of_x = np.linalg.solve(np.eye(outputs[-1]) - D @ W, C)
        closed = A + B @ W @ y_of_x
        rate = np.zeros((n, n))
        jumps: dict[float, np.ndarray] = {}
        for b, plan in enumerate(self.plans):
            rows = slice(spans[b], spans[b + 1])
            if plan.period is None:
                rate[rows] = closed[rows]
            else:
                jumps.setdefault(plan.period, np.eye(n))[rows] = closed[rows]
        initial = np.concatenate([p.initial for p in self.plans])
        return Dense(rate, jumps, y_of_x, initial, spans)


@dataclass(frozen=True)
class Dense:
    """All states in one vector, which moves by one matrix and jumps by others."""

    rate: np.ndarray
    jumps: dict[float, np.ndarray]
    y_of_x: np.ndarray
    initial: np.ndarray
    spans: Sequence[int]

    def states(self, times: Sequence[float]) -> np.ndarray:
        """Return the states at ascending times, none of which is that of a tick."""
        x, now, found = self.initial, 0.0, []
        ticks = sorted({k * p for p in self.jumps for k in range(math.ceil(times[-1] / p))})
        for until in sorted({*ticks, *times}):
            x = scipy.linalg.expm(self.rate * (until - now)) @ x
            now = until
            if until in times:
                found.append(x)
            due = [p for p in self.jumps if any(until == k * p for k in range(20))]
            together = np.eye(len(x))
            for p in due:
                changed = np.any(self.jumps[p] != np.eye(len(x)), axis=1)
                together[changed] = self.jumps[p][changed]
            x = together @ x
        return np.array(found)


@st.composite
def networks(draw: Any) -> Network:
    """Draw a network, which has a continuous block and no algebraic loop."""
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    kinds = draw(st.lists(st.sampled_from(["continuous", "sampled", "gain"]), max_size=5))
    plans: list[Plan] = []
    for kind in ["continuous", *kinds]:
        n = 0 if kind == "gain" else int(rng.integers(1, 4))
        inputs, outputs = rng.integers(1, 4, size=2)
        scale = {"continuous": 1.5, "sampled": 0.4, "gain": 0.6}[kind]
        plans.append(
            Plan(
                draw(st.sampled_from(WAYS)),
                draw(st.sampled_from(PERIODS)) if kind == "sampled" else None,
                rng.uniform(-scale, scale, (n, n)) - (kind == "continuous") * np.eye(n),
                rng.uniform(-scale, scale, (n, inputs)) * (rng.random((n, inputs)) < 0.7),
                rng.uniform(-1.0, 1.0, (outputs, n)),
                rng.uniform(-scale, scale, (outputs, inputs)),
                rng.uniform(-2.0, 2.0, n),
            )
        )
    states = [b for b, plan in enumerate(plans) if not plan.is_gain]
    wires = {}
    for b, plan in enumerate(plans):
        gains_before = [k for k in range(b) if plans[k].is_gain]
        gains = [k for k, p in enumerate(plans) if p.is_gain]
        sources = states + (gains_before if plan.is_gain else gains)
        for i in range(plan.D.shape[1]):
            source = int(rng.choice(sources))
            wires[b, i] = source, int(rng.integers(plans[source].D.shape[0]))
    return Network(plans, wires)


def options(method: str) -> dict[str, Any]:
    """Return how exactly a method is to integrate."""
    if method != "auto" and is_fixed_step(method):
        return {"method": method, "step": STEP}
    loose = method in ("RK23", "BDF")
    return {"method": method, "rtol": 1e-6 if loose else 1e-8, "atol": 1e-8 if loose else 1e-10}


def states_of(context: fx.Context, network: Network) -> np.ndarray:
    """Return the states of all blocks, end to end."""
    plans = enumerate(network.plans)
    found = [context.get(f"b{b}.x") for b, plan in plans if not plan.is_gain]
    return np.concatenate(found)


def assert_close(found: Any, expected: Any, method: str) -> None:
    tolerance = TOLERANCES.get(method, 1e-5)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


METHODS = ("auto", *METHOD_NAMES)


@settings(max_examples=by_tier(fast=6, full=20))
@given(networks(), st.sampled_from(METHODS), st.integers(0, 99))
def test_every_reading_gives_the_numbers_of_the_matrices(
    network: Network, method: str, seed: int
) -> None:
    diagram, dense = network.build(), network.dense()
    times = [*np.sort(np.random.default_rng(seed).uniform(0.0, END, 4)).tolist(), END]
    expected = dense.states(times)
    paths = [f"b{b}.y" for b in range(len(network.plans))]
    for compiled in READINGS:
        result = fx.simulate(diagram, END, compiled=compiled, **options(method))
        event(result.message.partition("equations: ")[2].partition(" of ")[0])
        assert_close(states_of(result.context, network), expected[-1], method)
        outputs = [np.reshape(y, (5, -1)) for y in result.sample_all(paths, times)]
        assert_close(np.hstack(outputs), expected @ dense.y_of_x.T, method)


@settings(max_examples=by_tier(fast=4, full=12))
@given(networks(), st.sampled_from(METHODS), st.sampled_from(READINGS), st.data())
def test_short_pieces_lead_where_a_long_one_leads(
    network: Network, method: str, compiled: Any, data: Any
) -> None:
    ticks = [k * p for p in PERIODS for k in range(1, 1 + int(END / p))]
    ends = data.draw(st.lists(st.floats(1e-9, END) | st.sampled_from(ticks), max_size=8))
    simulator = fx.Simulator(network.build(), compiled=compiled, **options(method))
    for end in [*sorted(ends), END]:
        simulator.advance_to(end)
        assert simulator.context.time == end
    assert_close(states_of(simulator.context, network), network.dense().states([END])[-1], method)


@needs_llvmlite
@settings(max_examples=by_tier(fast=2, full=6))
@given(networks(), st.sampled_from(["RK45", "Rodas5P", "rk4"]))
def test_sweeps_give_the_numbers_of_the_matrices(network: Network, method: str) -> None:
    factors = np.array([1.0, 0.5, -1.0, 0.0])
    found = fx.sweep(network.build(), {"b0.k": factors}, END, signals=["b0.y"], **options(method))
    assert found.outcomes.tolist() == ["completed"] * 4
    for k, factor in enumerate(factors):
        first, *others = network.plans
        scaled = Plan(**{**vars(first), "C": factor * first.C})
        dense = Network([scaled, *others], network.wires).dense()
        y = (dense.y_of_x @ dense.states([END])[-1])[: len(first.C)]
        assert_close(found["b0.y"][k, -1], np.squeeze(y), method)
