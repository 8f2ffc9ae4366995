"""Diagrams of many shapes, for tests of drawings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

import flexure as fx


class Static(fx.LeafSystem):
    def __init__(self, name: str, inputs: str = "u", outputs: str = "y") -> None:
        super().__init__(name)
        entries = [self.declare_vector_input(n, 1, default=[0.0]) for n in inputs.split()]
        for n in outputs.split():
            self.declare_vector_output(n, 1, lambda context: [0.0], prerequisites=entries)


class Dynamic(fx.LeafSystem):
    def __init__(self, name: str, inputs: str = "u", outputs: str = "y") -> None:
        super().__init__(name)
        for n in inputs.split():
            self.declare_vector_input(n, 1, default=[0.0])
        state = self.declare_continuous_state(z=1)
        for n in outputs.split():
            self.declare_vector_output(n, 1, state, prerequisites=[state])

    def calc_time_derivatives(self, context: object) -> list[float]:
        return [0.0]


class Sampled(fx.LeafSystem):
    def __init__(self, name: str, inputs: str = "u", outputs: str = "y") -> None:
        super().__init__(name)
        for n in inputs.split():
            self.declare_vector_input(n, 1, default=[0.0])
        held = self.declare_discrete_state("held", [0.0])
        for n in outputs.split():
            self.declare_vector_output(n, 1, held, prerequisites=[held])
        self.declare_discrete_update(lambda context: {held: [0.0]}, fx.diagrams.Periodic(0.1))


def diagram_of(
    name: str,
    blocks: Sequence[fx.System],
    wires: str = "",
    inputs: dict[str, str] | None = None,
    outputs: dict[str, str] | None = None,
) -> fx.Diagram:
    """Build a diagram; wires are written as ``"a.y>b.u c.y>d.u"``."""
    builder = fx.DiagramBuilder(name)
    builder.add_all(*blocks)
    for wire in wires.split():
        builder.connect(*wire.split(">"))
    for port, target in (inputs or {}).items():
        builder.export_input(target, name=port)
    for port, source in (outputs or {}).items():
        builder.export_output(source, name=port)
    return builder.build()


def loop() -> fx.Diagram:
    return diagram_of(
        "loop",
        [
            Static("target", ""),
            Static("error", "u1 u2"),
            Static("controller"),
            Static("total", "u1 u2"),
            Dynamic("plant"),
            Static("disturbance", ""),
            Static("scope", "u1 u2", ""),
        ],
        "target.y>error.u1 error.y>controller.u controller.y>total.u1 disturbance.y>total.u2 "
        "total.y>plant.u plant.y>error.u2 plant.y>scope.u1 target.y>scope.u2",
    )


def servo(name: str = "servo") -> fx.Diagram:
    return diagram_of(
        name,
        [
            Dynamic("pid", "setpoint measurement", "u"),
            Dynamic("motor", "voltage load", "angle rate"),
            Sampled("encoder"),
        ],
        "pid.u>motor.voltage motor.angle>encoder.u encoder.y>pid.measurement",
        {"target": "pid.setpoint", "load": "motor.load"},
        {"angle": "motor.angle", "sensor.angle": "encoder.y"},
    )


def robot() -> fx.Diagram:
    return diagram_of(
        "robot",
        [
            Static("path", "", "shoulder elbow"),
            servo("shoulder"),
            servo("elbow"),
            Dynamic("arm", "shoulder elbow", "to_shoulder to_elbow tip"),
        ],
        "path.shoulder>shoulder.target path.elbow>elbow.target shoulder.angle>arm.shoulder "
        "elbow.angle>arm.elbow arm.to_shoulder>shoulder.load arm.to_elbow>elbow.load",
        outputs={"tip": "arm.tip"},
    )


def cell() -> fx.Diagram:
    return diagram_of("cell", [robot(), Static("judge")], "robot.tip>judge.u")


def chain(count: int = 12) -> fx.Diagram:
    wires = " ".join(f"s{k}.y>s{k + 1}.u" for k in range(count - 1))
    blocks = [Static(f"s{k}") for k in range(count)]
    return diagram_of("chain", blocks, wires, {"u": "s0.u"}, {"y": f"s{count - 1}.y"})


def logged_chain(count: int = 40) -> fx.Diagram:
    """A chain with wires, to the right and back, over more columns than wires are led through."""
    blocks = [Dynamic(f"s{k}", "u v") for k in range(count)]
    log = Static("log", " ".join(f"u{k}" for k in range(count)), "")
    wires = [f"s{k}.y>s{k + 1}.u" for k in range(count - 1)] + [
        f"s0.y>s{count - 5}.v",
        f"s0.y>s{count - 2}.v",
        f"s{count - 1}.y>s0.u",
        f"s{count - 1}.y>s4.v",
    ]
    wires += [f"s{k}.y>log.u{k}" for k in range(count)]
    return diagram_of("logged", [*blocks, log], " ".join(wires))


def rows() -> fx.Diagram:
    """A chain that wraps, with wires over the ends of its rows, both ways."""
    blocks = [Dynamic(f"s{k}", "u v") for k in range(50)]
    wires = [f"s{k}.y>s{k + 1}.u" for k in range(49)]
    wires += ["s3.y>s14.v", "s3.y>s30.v", "s20.y>s12.v", "s49.y>s0.v", "s9.y>s9.v"]
    return diagram_of("rows", blocks, " ".join(wires), {"u": "s0.u"}, {"y": "s49.y"})


def swap() -> fx.Diagram:
    """Outputs that go to inputs in the opposite order, so that wires have to cross."""
    wires = "a.y1>b.u3 a.y2>b.u2 a.y3>b.u1"
    return diagram_of("swap", [Static("a", "", "y1 y2 y3"), Static("b", "u1 u2 u3", "")], wires)


def rig() -> fx.Diagram:
    """A loop around a plant with many outputs, few of which lead anywhere."""
    names = "q v pose rate energy power momentum center"
    tree = Dynamic("tree", "effort", names)
    shown = {name: f"tree.{name}" for name in names.split()}
    shown["angle"] = shown.pop("q")
    plant = diagram_of(
        "plant", [tree, Static("totals")], "tree.energy>totals.u", {"motor": "tree.effort"}, shown
    )
    pid = Dynamic("pid", "setpoint measurement feedforward")
    return diagram_of(
        "rig",
        [plant, pid],
        "pid.y>plant.motor plant.angle>pid.measurement",
        {"target": "pid.setpoint"},
    )


def alone() -> fx.Diagram:
    return diagram_of("alone", [Dynamic("a_name_that_is_much_longer_than_usual", "u w", "")])


def self_loops() -> fx.Diagram:
    wires = "x.y>x.u x.y>v.u1 v.y>v.u2"
    return diagram_of("self", [Dynamic("x"), Dynamic("v", "u1 u2")], wires)


def scattered(seed: int, count: int = 30) -> fx.Diagram:
    """Build blocks with random ports and random wires, many of which lead back."""
    rng = np.random.default_rng(seed)
    builder = fx.DiagramBuilder(f"scattered_{seed}")
    for k in range(count):
        inputs = " ".join(f"u{j}" for j in range(rng.integers(0, 4)))
        outputs = " ".join(f"y{j}" for j in range(rng.integers(0, 4)))
        builder.add(Dynamic(f"block_{k}", inputs, outputs))
    outs = [port for block in builder.systems for port in block.output_ports]
    for block in builder.systems:
        for port in block.input_ports:
            draw = rng.random()
            if draw < 0.75:
                builder.connect(outs[rng.integers(len(outs))], port)
            elif draw < 0.85:
                builder.export_input(port, name=f"{block.name}.{port.name}")
    for out in outs[::7]:
        builder.export_output(out, name=f"{out.system.name}.{out.name}")
    return builder.build()


def nested(seed: int) -> fx.Diagram:
    """Put random blocks into a diagram, of whose exported ports one or two are used."""
    inside = scattered(seed, 12)
    log = Static("log", "u1 u2", "")
    wires = [
        f"{inside.name}.{port.name}>log.u{k}"
        for k, port in enumerate(inside.output_ports[:2], start=1)
    ]
    return diagram_of("nested", [inside, log], " ".join(wires))


PICTURES: dict[str, tuple[Callable[[], fx.Diagram], int]] = {
    "loop": (loop, 1),
    "closed robot": (robot, 1),
    "robot with opened servos": (robot, 2),
    "cell with two open levels": (cell, 3),
    "chain": (chain, 1),
    "logged chain": (logged_chain, 1),
    "rows": (rows, 1),
    "swapped wires": (swap, 1),
    "closed plant": (rig, 1),
    "opened plant": (rig, 2),
    "single block": (alone, 1),
    "self-loops": (self_loops, 1),
    **{f"scattered {seed}": (partial(scattered, seed), 1) for seed in range(8)},
    **{f"nested {seed}": (partial(nested, seed), 2) for seed in range(4)},
}
