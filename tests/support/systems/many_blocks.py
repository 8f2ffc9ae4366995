"""Diagrams of many blocks, several of each kind, wired in rows, grids, trees and at random."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import flexure as fx

# Blocks -------------------------------------------------------------------------------------------


class Mass(fx.LeafSystem):
    """m v' = sum of forces; outputs at several levels share what they compute."""

    def __init__(self, name: str, forces: int = 2, m: float = 1.0) -> None:
        super().__init__(name)
        self.m = self.declare_numeric_parameter("m", m, lower=0.0, exclusive=True)
        self.x = self.declare_continuous_state(q=1, v=1)
        self.forces = [
            self.declare_vector_input(f"f{k}", 1, default=0.25 * k) for k in range(forces)
        ]
        self.y = self.declare_vector_output("y", 2, self.x, prerequisites=[self.x])
        self.q = self.declare_vector_output("q", 1, self.x.q, prerequisites=[self.x])
        self.energy = self.declare_vector_output(
            "energy", 1, lambda c: 0.5 * self.m(c) * self.square(c), prerequisites=[self.x]
        )
        self.power = self.declare_vector_output("power", 1, self.calc_power)

    def square(self, context: Any) -> Any:
        return self.x.v(context) ** 2

    def total(self, context: Any) -> Any:
        return sum(force(context) for force in self.forces)

    def calc_power(self, context: Any) -> Any:
        return self.total(context) * self.x.v(context) + self.energy(context)

    def calc_time_derivatives(self, context: Any) -> Any:
        acceleration = self.total(context) / self.m(context)
        return [self.x.v(context), acceleration - 0.1 * self.square(context)]


class Spring(fx.LeafSystem):
    """f = k stretch + d rate between two ends, harder beyond a stretch if that is wanted."""

    def __init__(self, name: str, *, hard: bool = False, k: float = 3.0) -> None:
        super().__init__(name)
        self.hard = hard
        self.k = self.declare_numeric_parameter("k", k)
        self.d = self.declare_numeric_parameter("d", [0.5, 2.0])
        self.near = self.declare_vector_input("near", 2, default=[0.0, 0.0])
        self.far = self.declare_vector_input("far", 2, default=[1.0, 0.0])
        ends = [self.near, self.far]
        self.kinematics = self.declare_cache_entry(
            "kinematics", lambda c: self.far(c) - self.near(c), prerequisites=ends
        )
        entry = [self.kinematics]
        self.f = self.declare_vector_output("f", 1, self.calc_force, prerequisites=entry)
        self.back = self.declare_vector_output(
            "back", 1, lambda c: -self.calc_force(c)[0], prerequisites=entry
        )

    def calc_force(self, context: Any) -> Any:
        stretch, rate = self.kinematics(context)
        damping, scale = self.d(context)
        force = self.k(context) * scale * stretch + damping * rate
        if self.hard:
            force = np.where(stretch > 0.3, force + 2.0 * (stretch - 0.3) ** 3, force)
        return [force]


class Lag(fx.LeafSystem):
    """T x' = u − x"""

    def __init__(self, name: str, size: int = 1) -> None:
        super().__init__(name)
        self.T = self.declare_numeric_parameter("T", 2.0)
        self.x = self.declare_continuous_state(z=size)
        self.u = self.declare_vector_input("u", size, default=np.zeros(size))
        self.y = self.declare_vector_output("y", size, self.x, prerequisites=[self.x])

    def calc_time_derivatives(self, context: Any) -> Any:
        return (self.u(context) - self.x(context)) / self.T(context)


class Law(fx.LeafSystem):
    """y = law(context, u) for a given law."""

    def __init__(self, name: str, law: Callable[..., Any], size: int = 1) -> None:
        super().__init__(name)
        self.law = law
        self.u = self.declare_vector_input("u", size)
        self.y = self.declare_vector_output("y", size, lambda c: law(c, self.u(c)))


class Literal(fx.LeafSystem):
    """y = a value that is known while tracing."""

    def __init__(self, name: str, value: float) -> None:
        super().__init__(name)
        self.value = value
        self.y = self.declare_vector_output("y", 1, lambda c: [self.value])


class Holder(fx.LeafSystem):
    """Two groups of discrete state, one handed on, one computed with."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.a = self.declare_discrete_state("a", [0.5, -0.5])
        self.b = self.declare_discrete_state("b", [2.0])
        self.u = self.declare_vector_input("u", 1, default=1.0)
        self.y = self.declare_vector_output("y", 2, self.a, prerequisites=[self.a])
        self.w = self.declare_vector_output("w", 1, lambda c: self.b(c) * self.u(c) + self.a(c)[1])


class Wide(fx.LeafSystem):
    """x' = u + the sum of nothing − x"""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.p = self.declare_numeric_parameter("p", np.zeros((0, 2)))
        self.x = self.declare_continuous_state(z=1)
        self.u = self.declare_vector_input("u", 1)
        self.none = self.declare_vector_input("none", 0)
        self.y = self.declare_vector_output("y", 1, self.x, prerequisites=[self.x])
        self.nothing = self.declare_vector_output("nothing", 0, lambda c: self.p(c)[:, 0])

    def calc_time_derivatives(self, context: Any) -> Any:
        return self.u(context) + np.sum(self.none(context)) - self.x(context)


# Diagrams -----------------------------------------------------------------------------------------


class Bead(fx.LeafSystem):
    """m v' = right - left"""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.m = self.declare_numeric_parameter("m", 2.0)
        self.x = self.declare_continuous_state(q=1, v=1)
        self.left = self.declare_vector_input("left", 1)
        self.right = self.declare_vector_input("right", 1, default=0.0)
        self.q = self.declare_vector_output("q", 1, self.x.q, prerequisites=[self.x])

    def calc_time_derivatives(self, context: Any) -> Any:
        force = self.right(context)[0] - self.left(context)[0]
        return [self.x.v(context)[0], force / self.m(context)]


class Thread(fx.LeafSystem):
    """f = k (b - a)"""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.k = self.declare_numeric_parameter("k", 50.0)
        self.a = self.declare_vector_input("a", 1, default=0.0)
        self.b = self.declare_vector_input("b", 1)
        self.f = self.declare_vector_output("f", 1, lambda c: self.k(c) * (self.b(c) - self.a(c)))


def chain(count: int) -> fx.DiagramBuilder:
    """Beads in a row, each on a thread to the one on its left; free ends, without more."""
    builder = fx.DiagramBuilder("chain")
    for k in range(count):
        builder.add(Bead(f"m{k}"))
        builder.add(Thread(f"s{k}"))
        builder.connect(f"m{k}.q", f"s{k}.b")
        builder.connect(f"s{k}.f", f"m{k}.left")
        if k:
            builder.connect(f"m{k - 1}.q", f"s{k}.a")
            builder.connect(f"s{k}.f", f"m{k - 1}.right")
    return builder


def rail(count: int, builder: fx.DiagramBuilder | None = None) -> fx.DiagramBuilder:
    """Masses in a row, springs between neighbors and to the wall; every fifth one is hard."""
    builder = builder or fx.DiagramBuilder("rail")
    for k in range(count):
        builder.add(Mass(f"m{k}", m=1.0 + 0.1 * k))
        builder.add(Spring(f"s{k}", hard=k % 5 == 4, k=3.0 + k))
        builder.connect(f"m{k}.y", f"s{k}.far")
        builder.connect(f"s{k}.back", f"m{k}.f0")
        if k:
            builder.connect(f"m{k - 1}.y", f"s{k}.near")
            builder.connect(f"s{k}.f", f"m{k - 1}.f1")
    return builder


def grid(rows: int, columns: int) -> fx.DiagramBuilder:
    builder = fx.DiagramBuilder("grid")
    for i in range(rows):
        for j in range(columns):
            builder.add(Mass(f"m{i}_{j}", forces=4))
    for i in range(rows):
        for j in range(columns):
            for k, (di, dj) in enumerate([(1, 0), (0, 1)]):
                if i + di < rows and j + dj < columns:
                    builder.add(Spring(f"s{i}_{j}_{k}", hard=bool(k)))
                    builder.connect(f"m{i}_{j}.y", f"s{i}_{j}_{k}.near")
                    builder.connect(f"m{i + di}_{j + dj}.y", f"s{i}_{j}_{k}.far")
                    builder.connect(f"s{i}_{j}_{k}.f", f"m{i}_{j}.f{k}")
                    builder.connect(f"s{i}_{j}_{k}.back", f"m{i + di}_{j + dj}.f{2 + k}")
    return builder


def tree(depth: int) -> fx.DiagramBuilder:
    """Every mass hangs on the one of half its number; powers drive lags that branch as well."""
    builder = fx.DiagramBuilder("tree")
    for k in range(1, 2**depth):
        builder.add(Mass(f"m{k}", forces=3))
        builder.add(Lag(f"l{k}"))
        builder.connect(f"m{k}.power", f"l{k}.u")
        if k > 1:
            builder.add(Spring(f"s{k}"))
            builder.connect(f"m{k // 2}.y", f"s{k}.near")
            builder.connect(f"m{k}.y", f"s{k}.far")
            builder.connect(f"s{k}.f", f"m{k // 2}.f{1 + k % 2}")
            builder.connect(f"s{k}.back", f"m{k}.f0")
    return builder


def cascades(lengths: list[int]) -> fx.DiagramBuilder:
    """Chains of gains of different lengths between lags, so that alike blocks have many levels."""
    builder = fx.DiagramBuilder("cascades")
    for k, length in enumerate(lengths):
        builder.add(Lag(f"l{k}"))
        end = f"l{k - 1}.y" if k else "l0.y"
        for j in range(length):
            gain = builder.add(fx.Gain(f"g{k}_{j}", 1.0 + 0.01 * j))
            builder.connect(end, gain.input_port())
            end = f"g{k}_{j}.y"
        builder.connect(end, f"l{k}.u")
    return builder


def driven() -> fx.DiagramBuilder:
    """Lags behind sources of all sorts: time, parameters, known values, discrete values."""
    builder = fx.DiagramBuilder("driven")
    for k in range(32):
        builder.add(Lag(f"l{k}"))
        builder.add(Law(f"law{k}", bent))
        builder.add(Holder(f"h{k}"))
        builder.add(fx.Constant(f"c{k}", 0.1 * k))
        builder.add(Literal(f"v{k}", [2.0, 0.0, -0.0][k % 3]))
    for k in range(32):
        source = [f"c{k}.y", f"v{k}.y", f"h{k}.w", f"l{(k + 1) % 32}.y"][k % 4]
        builder.connect(source, f"law{k}.u")
        builder.connect(f"law{k}.y", f"l{k}.u")
        if k % 3:
            builder.connect(f"c{k}.y", f"h{k}.u")
    return builder


def bent(context: Any, u: Any) -> Any:
    return np.sin(u) + context.time * u


def vectors() -> fx.DiagramBuilder:
    """Ports of several sizes, 0 among them, taken apart and put together."""
    builder = fx.DiagramBuilder("vectors")
    for k in range(24):
        builder.add(Lag(f"a{k}", 3))
        builder.add(Wide(f"b{k}"))
        builder.add(fx.Demultiplexer(f"d{k}", [1, 2]))
        builder.add(fx.Multiplexer(f"x{k}", [2, 1]))
        builder.add(Law(f"e{k}", bent, 0))
    for k in range(24):
        builder.connect(f"a{k}.y", f"d{k}.u")
        builder.connect(f"d{k}.y1", f"b{k}.u")
        builder.connect(f"d{k}.y2", f"x{k}.u1")
        builder.connect(f"b{k}.y", f"x{k}.u2")
        builder.connect(f"x{k}.y", f"a{(k + 5) % 24}.u")
        builder.connect(f"b{k}.nothing", f"e{k}.u")
        builder.connect(f"e{k}.y", f"b{(k + 1) % 24}.none")
    return builder


def nested() -> fx.DiagramBuilder:
    """Rails inside of diagrams inside of a diagram, coupled from outside."""
    builder = fx.DiagramBuilder("nested")
    for k in range(4):
        inner = rail(6, fx.DiagramBuilder(f"inner{k}"))
        inner.export_input("m5.f1", name="push")
        inner.export_output("m0.energy", name="energy")
        outer = fx.DiagramBuilder(f"outer{k}")
        outer.add(inner.build())
        outer.export_input(f"inner{k}.push", name="push")
        outer.export_output(f"inner{k}.energy", name="energy")
        builder.add(outer.build())
    for k in range(3):
        builder.connect(f"outer{k}.energy", f"outer{k + 1}.push")
    builder.export_input("outer0.push", name="push")
    return builder


DIAGRAMS: dict[str, Callable[[], fx.DiagramBuilder]] = {
    "rail": partial(rail, 24),
    "grid": partial(grid, 4, 4),
    "tree": partial(tree, 4),
    "cascades": partial(cascades, [9, 3, 12, 0, 3, 7, 1]),
    "driven": driven,
    "vectors": vectors,
    "nested": nested,
}


def at_random(seed: int, count: int) -> fx.DiagramBuilder:
    """Blocks of all classes, wired at random to blocks before them; some inputs stay open."""
    rng = np.random.default_rng(seed)
    builder = fx.DiagramBuilder("random")
    offers: dict[int | None, list[fx.diagrams.OutputPort]] = {1: [], 2: []}
    laws: list[Callable[..., Any]] = [
        lambda c, u: np.abs(u) ** 1.5 + c.time,
        lambda c, u: [np.maximum(u[0], 0.25)] * len(u),
        lambda c, u: np.zeros_like(u) - 2.0,
    ]
    for k in range(count):
        made: list[Callable[[str], fx.LeafSystem]] = [
            lambda name: Mass(name, forces=int(rng.integers(1, 4))),
            lambda name: Spring(name, hard=bool(rng.integers(2))),
            lambda name: Lag(name, int(rng.integers(1, 3))),
            lambda name: Law(name, laws[rng.integers(3)], int(rng.integers(1, 3))),
            lambda name: Literal(name, float(rng.choice([2.0, 0.0, -0.0]))),
            Holder,
            lambda name: fx.Multiplexer(name, [1, 1]),
            lambda name: fx.Demultiplexer(name, [1, 1]),
        ]
        block = builder.add(made[rng.integers(len(made))](f"b{k}"))
        for port in block.input_ports:
            known = offers[port.size]
            if known and (port.default is None or rng.random() < 0.8):
                builder.connect(known[rng.integers(len(known))], port)
            elif port.default is None:
                builder.export_input(port, name=f"{block.name}_{port.name}")
        for output in block.output_ports:
            offers[output.size].append(output)
    return builder
