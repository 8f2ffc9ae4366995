"""What the systems layer costs, as ratios measured in one run.

Run it with ``python benchmarks/systems_layer.py [--quick] [--json FILE]``. Both sides of a ratio
are measured in turn, several times, and the median of the ratios of neighbors is given, so that a
machine that is busy now and then does no harm. The comparison with Drake needs pydrake
(``pip install drake``) and is left out, with a word, where it is missing.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.integrate import solve_ivp

import flexure as fx


@dataclass(frozen=True)
class Row:
    """One figure: what was run, what was measured, and the bar it is held against."""

    workload: str
    metric: str
    value: float
    bar: float | None
    better: Literal["higher", "lower"]


def seconds(run: Callable[[], object]) -> float:
    """Return the time of one call."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def ratio(ours: Callable[[], object], theirs: Callable[[], object], pairs: int) -> float:
    """Return the median over pairs of our time divided by theirs."""
    ours(), theirs()
    return statistics.median(seconds(ours) / seconds(theirs) for _ in range(pairs))


# A chain of first-order lags against the same chain of Python leaves in Drake ---------------------


class Lag(fx.LeafSystem):
    """ẋ = (u - x)/T, y = x."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.time_constant = self.declare_numeric_parameter("time_constant", 0.5, unit="s")
        self.x = self.declare_continuous_state(z=1)
        self.u = self.declare_vector_input("u", 1)
        self.y = self.declare_vector_output("y", 1, self.x, prerequisites=[self.x])

    def calc_time_derivatives(self, context: Any) -> Any:
        """Return ẋ."""
        return (self.u(context) - self.x(context)) / self.time_constant(context)


def lag_chain(count: int, repeat: int) -> Callable[[], object]:
    """Return a run that evaluates the derivatives of our chain at changing states."""
    builder = fx.DiagramBuilder("chain")
    for k in range(count):
        builder.add(Lag(f"lag{k}"))
    builder.connect_chain(*(f"lag{k}" for k in range(count)))
    builder.export_input("lag0.u")
    diagram = builder.build()
    context = diagram.create_default_context()
    diagram.input_port("u").fix(context, 1.0)
    states = np.random.default_rng(0).normal(size=(repeat, count))

    def run() -> None:
        for k, x in enumerate(states):
            context.store.set_motion(0.001 * k, x)
            context.store.time_derivatives()

    return run


def drake_lag_chain(count: int, repeat: int) -> Callable[[], object]:
    """Return the same run with Python leaves in Drake."""
    framework: Any = importlib.import_module("pydrake.systems.framework")

    class DrakeLag(framework.LeafSystem):  # type: ignore[misc]
        def __init__(self) -> None:
            framework.LeafSystem.__init__(self)
            self.DeclareContinuousState(1)
            self.DeclareVectorInputPort("u", framework.BasicVector(1))
            self.parameter = self.DeclareNumericParameter(framework.BasicVector([0.5]))
            self.DeclareVectorOutputPort(
                "y", framework.BasicVector(1), self.calc, {self.xc_ticket()}
            )

        def calc(self, context: Any, output: Any) -> None:
            output.SetFromVector(context.get_continuous_state_vector().CopyToVector())

        def DoCalcTimeDerivatives(self, context: Any, derivatives: Any) -> None:  # noqa: N802
            x = context.get_continuous_state_vector().CopyToVector()
            u = self.get_input_port().Eval(context)
            constant = context.get_numeric_parameter(0).CopyToVector()
            derivatives.get_mutable_vector().SetFromVector((u - x) / constant)

    builder = framework.DiagramBuilder()
    lags = [builder.AddSystem(DrakeLag()) for _ in range(count)]
    for before, after in itertools.pairwise(lags):
        builder.Connect(before.get_output_port(), after.get_input_port())
    builder.ExportInput(lags[0].get_input_port(), "u")
    diagram = builder.Build()
    context = diagram.CreateDefaultContext()
    diagram.get_input_port().FixValue(context, [1.0])
    states = np.random.default_rng(0).normal(size=(repeat, count))

    def run() -> None:
        for k, x in enumerate(states):
            context.SetTime(0.001 * k)
            context.SetContinuousState(x)
            diagram.EvalTimeDerivatives(context)

    return run


def chain_rows(pairs: int) -> list[Row]:
    """Measure the chain of lags."""
    count, repeat = 100, 50
    ours = lag_chain(count, repeat)
    cost = statistics.median(seconds(ours) for _ in range(pairs)) / repeat / count
    rows = [
        Row("chain of 100 lags", "microseconds per block and evaluation", cost * 1e6, None, "lower")
    ]
    try:
        theirs = drake_lag_chain(count, repeat)
    except ImportError:
        print("pydrake is not installed: no comparison with Drake")
        return rows
    value = ratio(ours, theirs, pairs)
    return [*rows, Row("chain of 100 lags", "time / Drake with Python leaves", value, 2.0, "lower")]


# A PID controller on a mass with spring and damper ------------------------------------------------


class Mass(fx.LeafSystem):
    """m q̈ + d q̇ + k q = u."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.m = self.declare_numeric_parameter("m", 1.0, unit="kg")
        self.k = self.declare_numeric_parameter("k", 4.0, unit="N/m")
        self.d = self.declare_numeric_parameter("d", 0.2, unit="N s/m")
        self.x = self.declare_continuous_state(q=1, v=1)
        self.u = self.declare_vector_input("u", 1, unit="N")
        self.q = self.declare_vector_output("q", 1, self.x.q, prerequisites=[self.x], unit="m")

    def calc_time_derivatives(self, context: Any) -> Any:
        """Return (q̇, q̈)."""
        q, v = self.x(context)
        force = self.u(context)[0] - self.k(context) * q - self.d(context) * v
        return [v, force / self.m(context)]


def pid_rows(pairs: int) -> list[Row]:
    """Compare a controlled mass with the same equations written by hand."""
    builder = fx.DiagramBuilder("servo")
    builder.add_all(
        fx.Sine("reference", 1.0, 2.0),
        fx.PIDController("pid", kp=50.0, ki=20.0, kd=8.0, derivative_filter=0.01),
        Mass("mass"),
    )
    builder.connect_chain("reference", "pid.setpoint")
    builder.connect_chain("pid", "mass", "pid.measurement")
    diagram = builder.build()

    def ours() -> fx.results.SimulationResult:
        return fx.simulate(diagram, 10.0, method="RK45", rtol=1e-8, atol=1e-10)

    kp, ki, kd, filter_time, m, k, d = 50.0, 20.0, 8.0, 0.01, 1.0, 4.0, 0.2

    def equations(t: float, x: Any) -> Any:
        integral, filtered, q, v = x
        error = np.sin(2.0 * t) - q
        slope = (-q - filtered) / filter_time
        u = kp * error + ki * integral + kd * slope
        return [error, slope, v, (u - k * q - d * v) / m]

    def by_hand() -> Any:
        return solve_ivp(equations, (0.0, 10.0), np.zeros(4), rtol=1e-8, atol=1e-10)

    difference = abs(float(ours()["mass.q"][-1]) - float(by_hand().y[2, -1]))
    return [
        Row(
            "PID and mass to 10 s",
            "time / by hand with solve_ivp",
            ratio(ours, by_hand, pairs),
            5.0,
            "lower",
        ),
        Row("PID and mass to 10 s", "difference of the results [m]", difference, 1e-6, "lower"),
    ]


# A sampled controller on a pendulum ---------------------------------------------------------------


class Pendulum(fx.LeafSystem):
    """m l² q̈ = u - b q̇ - m g l sin q."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.x = self.declare_continuous_state(q=1, v=1, default=[0.1, 0.0])
        self.u = self.declare_vector_input("u", 1, unit="N m")
        self.q = self.declare_vector_output("q", 1, self.x.q, prerequisites=[self.x], unit="rad")

    def calc_time_derivatives(self, context: Any) -> Any:
        """Return (q̇, q̈)."""
        q, v = self.x(context)
        return [v, (self.u(context)[0] - 0.1 * v) / 0.25 - 9.81 / 0.5 * np.sin(q)]


def sampled_rows(pairs: int) -> list[Row]:
    """Compare a controller at 100 Hz with a loop around solve_ivp written by hand."""
    kp, ki, period, target = 20.0, 15.0, 0.01, 0.5
    builder = fx.DiagramBuilder("sampled")
    builder.add_all(
        fx.Constant("target", target),
        fx.PIDController("pid", period=period, kp=kp, ki=ki),
        Pendulum("pendulum"),
    )
    builder.connect_chain("target", "pid.setpoint")
    builder.connect_chain("pid", "pendulum", "pid.measurement")
    diagram = builder.build()

    def ours() -> fx.results.SimulationResult:
        return fx.simulate(diagram, 10.0, method="RK45", rtol=1e-6, atol=1e-9)

    def equations(t: float, x: Any, u: float) -> Any:
        q, v = x
        return [v, (u - 0.1 * v) / 0.25 - 9.81 / 0.5 * np.sin(q)]

    def by_hand() -> Any:
        x, integral = np.array([0.1, 0.0]), 0.0
        for k in range(1000):
            error = target - x[0]
            integral += period * error
            u = kp * error + ki * integral
            span = (k * period, (k + 1) * period)
            x = solve_ivp(equations, span, x, args=(u,), rtol=1e-6, atol=1e-9).y[:, -1]
        return x

    difference = abs(float(ours()["pendulum.q"][-1]) - float(by_hand()[0]))
    return [
        Row(
            "pendulum under 100 Hz to 10 s",
            "time / by hand with solve_ivp",
            ratio(ours, by_hand, pairs),
            3.0,
            "lower",
        ),
        Row(
            "pendulum under 100 Hz to 10 s",
            "difference of the results [rad]",
            difference,
            1e-4,
            "lower",
        ),
    ]


# Size and start -----------------------------------------------------------------------------------


def cascade_rows(count: int) -> list[Row]:
    """Build, check and evaluate a cascade of gains."""
    workload = f"cascade of {count} gains"
    stamps = [time.perf_counter()]
    builder = fx.DiagramBuilder("cascade")
    builder.add_all(*(fx.Gain(f"gain{k}", 1.0) for k in range(count)))
    stamps.append(time.perf_counter())
    for k in range(count - 1):
        builder.connect(f"gain{k}.y", f"gain{k + 1}.u")
    builder.export_input("gain0.u")
    builder.export_output(f"gain{count - 1}.y", "y")
    stamps.append(time.perf_counter())
    diagram = builder.build()
    stamps.append(time.perf_counter())
    context = diagram.create_default_context()
    stamps.append(time.perf_counter())
    diagram.input_port("u").fix(context, 2.0)
    value = diagram.output_port("y").eval(context)
    stamps.append(time.perf_counter())
    assert value.tolist() == [2.0]
    names = ["make and add the blocks", "connect", "build and check", "make a context", "evaluate"]
    return [
        Row(workload, f"{name} [s]", after - before, None, "lower")
        for name, before, after in zip(names, stamps, stamps[1:], strict=False)
    ]


def import_rows(times: int) -> list[Row]:
    """Measure the import in new processes, beyond the start of Python itself."""
    code = "import flexure, sys; assert 'matplotlib' not in sys.modules"

    def process(text: str) -> float:
        return seconds(lambda: subprocess.run([sys.executable, "-c", text], check=True))

    process(code)
    value = statistics.median(process(code) - process("pass") for _ in range(times))
    return [Row("import flexure", "seconds, without matplotlib", value, 0.5, "lower")]


def main() -> None:
    """Measure, print a table, and write the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, smaller cascade")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write the rows")
    arguments = parser.parse_args()
    pairs = 3 if arguments.quick else 9
    rows = [
        *chain_rows(pairs),
        *pid_rows(pairs),
        *sampled_rows(pairs),
        *cascade_rows(10_000 if arguments.quick else 100_000),
        *import_rows(pairs),
    ]
    for row in rows:
        bar = "" if row.bar is None else f"(bar {row.bar:g}, {row.better} is better)"
        print(f"{row.workload:32s} {row.metric:40s} {row.value:10.4g} {bar}")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
