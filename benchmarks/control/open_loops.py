"""Linearize a loop of 200 blocks with an opening, beside Drake and python-control.

Flexure opens the finished loop; for the others, the loop is built open by hand, which is not
counted. What is timed is the call that returns the matrices, in CPU time: the shortest of several
calls that take turns and, by itself, the first one. Flexure traces and compiles in the first call
for a system, and keeps that; values of the context may change from call to call. Needs the packages
drake and control; one that is missing is left out.

    python benchmarks/control/open_loops.py
    python benchmarks/control/open_loops.py --blocks 50
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np

import flexure as fx
from benchmarks.versus.drake_plants import part

GAIN = -0.5
Linearized = tuple[Any, Any, Any]


def time_constants(count: int) -> list[float]:
    return [0.1 + 0.01 * k for k in range(count)]


def ours(count: int) -> Callable[[], Linearized]:
    """Open a closed loop of lags and a gain behind the gain."""
    builder = fx.DiagramBuilder("loop")
    lags = [fx.FirstOrderLag(f"lag{k}", T) for k, T in enumerate(time_constants(count - 1))]
    builder.add_all(*lags, fx.Gain("gain", GAIN))
    builder.connect_chain(*lags, "gain", lags[0])
    loop = builder.build()
    context = loop.create_default_context()

    def call() -> Linearized:
        model = fx.linearize(loop, context, ["gain.y"], [f"{lags[-1].name}.y"], openings="gain.y")
        return model.A, model.B, model.C

    return call


def drakes(count: int) -> Callable[[], Linearized]:
    """Wire the same lags, with ports where the loop is open."""
    primitives, builder = part("systems.primitives"), part("systems.framework").DiagramBuilder()
    lags = [
        builder.AddSystem(primitives.FirstOrderLowPassFilter(T, 1))
        for T in time_constants(count - 1)
    ]
    for one, other in pairwise(lags):
        builder.Connect(one.get_output_port(), other.get_input_port())
    builder.ExportInput(lags[0].get_input_port())
    builder.ExportOutput(lags[-1].get_output_port())
    diagram = builder.Build()
    context = diagram.CreateDefaultContext()
    diagram.get_input_port(0).FixValue(context, 0.0)

    def call() -> Linearized:
        model = primitives.Linearize(diagram, context)
        return model.A(), model.B(), model.C()

    return call


def controls(count: int) -> Callable[[], Linearized]:
    """Connect the same lags as nonlinear systems of python-control, by names."""
    import control

    lags = [
        control.nlsys(
            lambda t, x, u, params, T=T: [(u[0] - x[0]) / T],
            lambda t, x, u, params: [x[0]],
            states=1,
            inputs=[f"u{k}"],
            outputs=[f"u{k + 1}"],
            name=f"lag{k}",
        )
        for k, T in enumerate(time_constants(count - 1))
    ]
    loop = control.interconnect(lags, inputs=["u0"], outputs=[f"u{count - 1}"])
    zeros = np.zeros(count - 1)

    def call() -> Linearized:
        model = control.linearize(loop, zeros, [0.0])
        return model.A, model.B, model.C

    return call


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=200, help="of the loop, the gain included")
    parser.add_argument("--rounds", type=int, default=8, help="of which the fastest counts")
    options = parser.parse_args()
    options.rounds = max(options.rounds, 2)
    sides = {"Flexure": ours(options.blocks)}
    for name, package, make in (("Drake", "pydrake", drakes), ("control", "control", controls)):
        if find_spec(package) is not None:
            sides[name] = make(options.blocks)
    times: dict[str, list[float]] = {name: [] for name in sides}
    found: dict[str, Linearized] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(options.rounds):
            for name, call in sides.items():
                start = time.process_time()
                found[name] = call()
                times[name].append(time.process_time() - start)
    best = {name: min(each[1:]) for name, each in times.items()}
    for name, matrices in found.items():
        pairs = zip(matrices, found["Flexure"], strict=True)
        error = max(np.abs(np.asarray(theirs) - mine).max() for theirs, mine in pairs)
        ratio = best[name] / best["Flexure"]
        print(
            f"{name:8} {1e3 * best[name]:8.1f} ms  {ratio:6.2f} of Flexure  "
            f"first {1e3 * times[name][0]:8.1f} ms  differs by {error:.1e}"
        )


if __name__ == "__main__":
    main()
