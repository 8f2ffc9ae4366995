"""Eight threads that begin at once: a program, run by the tests in processes of its own.

In every round all of them simulate, sweep, linearize and plot a diagram of their own and one that
all share, each in another order. What a process makes on first use is made anew in each round.
"""

from __future__ import annotations

import io
import math
import sys
import threading
from collections.abc import Callable
from typing import Any

import flexure as fx

THREADS = 8
SHARED = 0.7  # seconds, a time constant


class Ticking(fx.LeafSystem):
    """A lag of the first order that counts quarters of a second."""

    def __init__(self) -> None:
        super().__init__("ticking")
        self.T = self.declare_numeric_parameter("time_constant", 1.0)
        self.u = self.declare_vector_input("u", 1)
        self.x = self.declare_continuous_state(z=1)
        self.n = self.declare_discrete_state("n", 0.0)
        self.y = self.declare_vector_output("y", 1, self.x, prerequisites=[self.x])
        self.declare_discrete_update(self.tick, fx.diagrams.Periodic(0.25))

    def calc_time_derivatives(self, context: Any) -> Any:
        return (self.u(context) - self.x(context)) / self.T(context)

    def tick(self, context: Any) -> Any:
        return {self.n: self.n(context) + 1.0}


def make(time_constant: float, *, ticking: bool) -> fx.Diagram:
    """Return a diagram whose output rises to one with a time constant."""
    builder = fx.DiagramBuilder("diagram")
    if ticking:
        block: fx.LeafSystem = Ticking()
    else:
        block = fx.FirstOrderLag("ticking", time_constant=time_constant)
    builder.add_all(fx.Constant("one", 1.0), block)
    builder.connect("one.y", "ticking.u")
    builder.export_output("ticking.y", "y")
    return builder.build()


def check(found: Any, expected: float) -> None:
    """Refuse a number."""
    assert abs(float(found) - expected) < 1e-4, (found, expected)


def simulate(diagram: fx.Diagram, T: float) -> None:
    context = diagram.create_default_context()
    context.set("ticking.time_constant", T)
    for method in ("auto", "Rodas5P"):
        result = fx.simulate(diagram, 1.1, context=context, method=method, rtol=1e-7)
        check(result["y"][-1], 1.0 - math.exp(-1.1 / T))


def sweep(diagram: fx.Diagram, T: float) -> None:
    found = fx.sweep(
        diagram, {"ticking.time_constant": [T, 2.0 * T] * 9}, 1.1, signals="y", rtol=1e-7, threads=2
    )
    for k, samples in enumerate(found["y"]):
        check(samples[-1], 1.0 - math.exp(-1.1 / (T * (1 + k % 2))))


def linearize(diagram: fx.Diagram, T: float) -> None:
    if isinstance(diagram.get_system("ticking"), Ticking):
        return  # nothing sampled can be linearized
    context = diagram.create_default_context()
    context.set("ticking.time_constant", T)
    check(fx.linearize(diagram, context).A[0, 0], -1.0 / T)


def plot(diagram: fx.Diagram, T: float) -> None:
    context = diagram.create_default_context()
    context.set("ticking.time_constant", T)
    result = fx.simulate(diagram, 1.1, context=context, rtol=1e-7)
    figure = result.plot(["y"], "ticking.y")
    if T == SHARED:  # half of them, since drawing takes long
        figure.savefig(io.BytesIO(), dpi=20)
    assert len(figure.axes) == 2
    for ax in figure.axes:
        check(ax.lines[0].get_ydata()[-1], 1.0 - math.exp(-1.1 / T))  # type: ignore[index]


ACTIONS: list[Callable[[fx.Diagram, float], None]] = [simulate, sweep, linearize, plot]


def forget() -> None:
    """Let the next round make everything anew."""
    from flexure.solvers.native.programs import lane_equations, method_programs

    for made in (
        method_programs.loops,
        method_programs.resampling,
        method_programs.generic_attempt,
        lane_equations.ensemble_loop,
    ):
        made.cache_clear()


def run_round() -> list[BaseException]:
    """Let all threads go; return what went wrong."""
    failures: list[BaseException] = []
    barrier = threading.Barrier(THREADS)
    shared = [make(SHARED, ticking=ticking) for ticking in (False, True)]

    def work(k: int) -> None:
        try:
            own = make(0.5 + 0.1 * k, ticking=k % 2 == 0)
            barrier.wait()
            for shift in range(len(ACTIONS)):
                act = ACTIONS[(k // 2 + shift) % len(ACTIONS)]
                act(shared[k % 2], SHARED)
                act(own, 0.5 + 0.1 * k)
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=work, args=(k,)) for k in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


if __name__ == "__main__":
    for _ in range(int(sys.argv[1])):
        if run_round():
            sys.exit(1)
        forget()
