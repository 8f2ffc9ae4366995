"""Random diagrams of many blocks that are alike, with sums over everything and saturations."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

import flexure as fx

Law = Callable[[Any, Any, Any], Any]

#: Rates of a state x with inputs u and a parameter k.
RATES: dict[str, Law] = {
    "linear": lambda x, u, k: sum(u, -k * x),
    "bent": lambda x, u, k: np.sin(x) * np.cos(u[0]) - np.exp(-x * x) * u[-1] + np.tanh(k * x),
    "limited": lambda x, u, k: np.clip(k * x + u[0], -0.3, 0.4) - np.maximum(u[-1], x),
    "chosen": lambda x, u, k: np.where(x > u[0], u[-1] * x, np.abs(x) + k),
    "stepped": lambda x, u, k: np.sign(x) + np.floor(3.0 * u[0]) + 0.0 * u[-1] - x,
    "still": lambda x, u, k: 0.0 * x + 1.0,
    "handed on": lambda x, u, k: u[-1],
    "without slope": lambda x, u, k: (x - x) * u[0] + x**0.0 + np.where(x > 9.0, x, 0.0) * 0.0,
    "turned": lambda x, u, k: (
        np.arctan2(u[0], 2.0 + x * x) + np.hypot(x, u[-1]) - np.copysign(k, x)
    ),
    "rooted": lambda x, u, k: np.sqrt(1.0 + x * x + k * k) * u[0] + (u[-1] - u[0]) ** 3,
}
#: Outputs of the same.
OUTPUTS: dict[str, Law] = {
    "power": lambda x, u, k: x * u[0],
    "square": lambda x, u, k: 0.5 * k * x * x,
    "sum": lambda x, u, k: sum(u, x),
    "an input": lambda x, u, k: u[-1],
    "negative": lambda x, u, k: -x,
    "known": lambda x, u, k: 0.0 * u[0] + 2.0,
    "rounded": lambda x, u, k: np.rint(4.0 * x),
}


def _weighted(weights: Any) -> Law:
    return lambda x, u, k: sum((w * each for w, each in zip(weights, u, strict=True)), 0.0)


#: Sums of inputs u with weights w and a parameter k.
SUMS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "plain": lambda w, u, k: sum(u, 0.0),
    "doubled": lambda w, u, k: sum(u, u[0]),
    "weighted": lambda w, u, k: sum((a * b for a, b in zip(w, u, strict=True)), 0.0),
    "signed": lambda w, u, k: sum((b if a > 0.0 else -b for a, b in zip(w, u, strict=True)), -k),
    "mean": lambda w, u, k: sum(u, 0.0) / len(u),
    "gain": lambda w, u, k: k * sum(u, 0.0),
    "of squares": lambda w, u, k: sum((a * b * b for a, b in zip(w, u, strict=True)), 0.0),
    "of products": lambda w, u, k: sum((a * b for a, b in pairwise(u)), k),
    "cancelled": lambda w, u, k: sum(u, 0.0) - u[0] - u[-1],
    "limited": lambda w, u, k: np.clip(sum(u, 0.0), -k, k),
    "bent": lambda w, u, k: np.sin(sum(u, 0.0)) + u[-1],
}


class Cell(fx.LeafSystem):
    """States of one law that inputs drive, the state as an output, and an output of another law."""

    def __init__(self, name: str, laws: tuple[str, str], size: int, inputs: int, k: float) -> None:
        super().__init__(name)
        self.rate, self.law = RATES[laws[0]], OUTPUTS[laws[1]]
        self.k = self.declare_numeric_parameter("k", k)
        self.x = self.declare_continuous_state(z=size)
        self.u = [self.declare_vector_input(f"u{j}", 1, default=0.1 * j) for j in range(inputs)]
        self.y = self.declare_vector_output("y", size, self.x, prerequisites=[self.x])
        self.one = self.declare_vector_output(
            "one", 1, lambda c: self.x(c)[:1], prerequisites=[self.x]
        )
        self.w = self.declare_vector_output(
            "w", 1, lambda c: [self.law(self.x(c)[0], self._read(c), self.k(c))]
        )

    def _read(self, context: Any) -> list[Any]:
        return [port(context)[0] for port in self.u]

    def calc_time_derivatives(self, context: Any) -> Any:
        u, k = self._read(context), self.k(context)
        return [self.rate(x, u, k) for x in self.x(context)]


class Total(fx.LeafSystem):
    """A sum of many inputs as an output."""

    def __init__(self, name: str, sort: str, weights: tuple[float, ...], k: float) -> None:
        super().__init__(name)
        self.sum, self.weights = SUMS[sort], weights
        self.k = self.declare_numeric_parameter("k", k)
        self.u = [self.declare_vector_input(f"u{j}", 1, default=0.2) for j in range(len(weights))]
        self.declare_result()

    def declare_result(self) -> None:
        self.w = self.declare_vector_output("w", 1, self.calc_sum)

    def calc_sum(self, context: Any) -> Any:
        return [self.sum(self.weights, [port(context)[0] for port in self.u], self.k(context))]


class Ledger(Total):
    """A state whose rate is the sum."""

    def declare_result(self) -> None:
        self.x = self.declare_continuous_state(z=1)
        self.w = self.declare_vector_output("w", 1, self.x, prerequisites=[self.x])

    def calc_time_derivatives(self, context: Any) -> Any:
        return self.calc_sum(context)


def diagram_of(seed: int) -> fx.Diagram:
    """Return blocks of a few families, sums over many of them, and what is known, at random.

    Whatever is a state is read by anybody; outputs that depend on inputs, by blocks behind them.
    """
    rng = np.random.default_rng(seed)
    builder = fx.DiagramBuilder("random")
    blocks: list[Any] = []
    for f in range(int(rng.integers(1, 4))):
        laws = str(rng.choice([*RATES])), str(rng.choice([*OUTPUTS]))
        size, inputs = int(rng.integers(1, 3)), int(rng.integers(1, 4))
        blocks += [
            Cell(f"cell{f}_{j}", laws, size, inputs, float(rng.choice([0.0, 1.0, rng.normal()])))
            for j in range(int(rng.integers(2, 14)))
        ]
    for f in range(int(rng.integers(1, 5))):
        count, sort = int(rng.integers(2, 20)), str(rng.choice([*SUMS]))
        weights = tuple(rng.choice([0.0, 1.0, -1.0, 0.5, 1e3], count).tolist())
        kind = Ledger if rng.random() < 0.6 else Total
        blocks += [
            kind(f"sum{f}_{j}", sort, weights, rng.normal()) for j in range(int(rng.integers(1, 4)))
        ]
    if rng.random() < 0.5:
        rng.shuffle(blocks)
    still = [builder.add(fx.Constant(f"constant{k}", 0.3 * k)).y for k in range(2)]
    for block in blocks:
        builder.add(block)
    states = [block.one for block in blocks if isinstance(block, Cell)]
    states += [block.w for block in blocks if isinstance(block, Ledger)]
    before: list[fx.diagrams.OutputPort] = []
    few = rng.random() < 0.5
    for n, block in enumerate(blocks):
        near = [states[(n + j) % len(states)] for j in range(1, 3)]
        sources = near if few and isinstance(block, Cell) else states
        way = rng.random()
        for port in block.u:
            chance = rng.random()
            if chance < 0.08:
                continue
            if chance < 0.16:
                builder.connect(still[int(rng.integers(2))], port)
            elif before and (way < 0.3 or chance < 0.4):
                builder.connect(before[int(rng.integers(len(before)))], port)
            else:
                builder.connect(sources[int(rng.integers(len(sources)))], port)
        if not isinstance(block, Ledger):
            before.append(block.w)
    return builder.build()
