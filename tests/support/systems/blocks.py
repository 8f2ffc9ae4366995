"""Small blocks for tests, so that the tests of the core need no block of the library."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

import flexure as fx

#: How an output says what it reads: by declaration, by a traceable equation, or not at all.
Declared = Literal["declared", "traced", "assumed"]


class Gain(fx.LeafSystem):
    """y = k u, element by element."""

    def __init__(
        self,
        name: str = "gain",
        k: npt.ArrayLike = 2.0,
        *,
        size: int = 1,
        how: Declared = "declared",
    ) -> None:
        super().__init__(name)
        self.opaque = how == "assumed"
        self.k = self.declare_numeric_parameter("k", k)
        self.u = self.declare_vector_input("u", size)
        self.y = self.declare_vector_output(
            "y", size, self.calc_y, prerequisites=[self.u] if how == "declared" else None
        )

    def calc_y(self, context: Any) -> Any:
        k = float(self.k(context)) if self.opaque else self.k(context)
        return k * self.u(context)


class Adder(fx.LeafSystem):
    """y = u1 + u2 + ..."""

    def __init__(self, name: str = "adder", count: int = 2, *, size: int = 1) -> None:
        super().__init__(name)
        self.u = [self.declare_vector_input(f"u{k + 1}", size) for k in range(count)]
        self.y = self.declare_vector_output("y", size, self.calc_y, prerequisites=self.u)

    def calc_y(self, context: Any) -> Any:
        return sum(u(context) for u in self.u)


class Constant(fx.LeafSystem):
    """y = value"""

    def __init__(self, name: str = "constant", value: npt.ArrayLike = 1.0) -> None:
        super().__init__(name)
        self.value = self.declare_numeric_parameter("value", np.atleast_1d(value))
        (size,) = self.value.shape
        self.y = self.declare_vector_output("y", size, self.value, prerequisites=[])


class Clock(fx.LeafSystem):
    """y = t"""

    def __init__(self, name: str = "clock") -> None:
        super().__init__(name)
        self.y = self.declare_vector_output("y", 1, self.calc_y, prerequisites=[fx.TIME])

    def calc_y(self, context: Any) -> Any:
        return context.time


class Lag(fx.LeafSystem):
    """tau x' = u - x, y = x"""

    def __init__(self, name: str = "lag", tau: float = 1.0, *, size: int = 1) -> None:
        super().__init__(name)
        self.tau = self.declare_numeric_parameter("tau", tau, unit="s", lower=0.0, exclusive=True)
        self.x = self.declare_continuous_state(z=size)
        self.u = self.declare_vector_input("u", size)
        self.y = self.declare_vector_output("y", size, self.x, prerequisites=[self.x])

    def calc_time_derivatives(self, context: Any) -> Any:
        return (self.u(context) - self.x(context)) / self.tau(context)


class Oscillator(fx.LeafSystem):
    """q' = v, v' = f - k q, z' = v² (the integral of something), with one of each."""

    def __init__(self, name: str = "oscillator", k: float = 4.0) -> None:
        super().__init__(name)
        self.k = self.declare_numeric_parameter("k", k, unit="1/s^2", lower=0.0)
        self.x = self.declare_continuous_state(
            q=1, v=1, z=1, default=[1.0, 2.0, 3.0], element_names=["position", "rate", "work"]
        )
        self.force = self.declare_vector_input("force", 1, default=0.0)
        self.position = self.declare_vector_output("position", 1, self.x.q, prerequisites=[self.x])

    def calc_time_derivatives(self, context: Any) -> Any:
        q, v, _ = self.x(context)
        return [v, self.force(context) - self.k(context) * q, v**2]


class Optional(fx.LeafSystem):
    """y = u + v, where v may stay unconnected."""

    def __init__(self, name: str = "optional", v: float = 10.0) -> None:
        super().__init__(name)
        self.u = self.declare_vector_input("u", 1)
        self.v = self.declare_vector_input("v", 1, default=v)
        self.y = self.declare_vector_output("y", 1, self.calc_y, prerequisites=[self.u, self.v])

    def calc_y(self, context: Any) -> Any:
        return self.u(context) + self.v(context)


def diagram_of(*systems: fx.System, name: str = "diagram") -> fx.Diagram:
    """Build a diagram of unconnected blocks, with the inputs that must be fed exported."""
    builder = fx.DiagramBuilder(name)
    builder.add_all(*systems)
    for system in systems:
        for port in system.input_ports:
            if port.default is None:
                builder.export_input(port, name=f"{system.name}.{port.name}")
    return builder.build()


def nested(system: fx.System, depth: int) -> fx.Diagram:
    """Wrap a system into ``depth`` diagrams "d1", "d2", ... that export all of its ports."""
    for level in range(1, depth + 1):
        builder = fx.DiagramBuilder(f"d{level}")
        builder.add(system)
        for entry in system.input_ports:
            builder.export_input(entry)
        for output in system.output_ports:
            builder.export_output(output)
        system = builder.build()
    assert isinstance(system, fx.Diagram)
    return system
