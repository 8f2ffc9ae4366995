"""The gradient of a long run by hundreds of parameters, beside a plain run and sensitivities.

Run it with ``python benchmarks/control/gradient.py [--quick] [--json FILE]``.

A chain of 100 masses between springs and dampers is released from rest for 1000 s. Its parameters
are all masses, stiffnesses and damping coefficients, 300 numbers. The metric is the integral of the
squared displacement of the last mass. Compared are `fx.gradient`, a plain run with the same method
and tolerance, the gradient with checkpoints, as of runs that are much longer, and
`fx.parameter_sensitivity` by ten parameters in a hundredth of the time, which integrates a column
for each.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

import flexure as fx
from benchmarks.versus.sides import in_rounds, ratio, seconds
from benchmarks.versus.table import Row, formatted, write
from flexure.solvers.analysis.sensitivities import gradients

HORIZON, RTOL = 1000.0, 1e-8
#: Plain runs that the gradient may take.
RUNS = 8.0
#: Gradients that one with checkpoints may take.
REPEATS = 1.5


class Chain(fx.LeafSystem):
    """Masses in a row: m_i q_i″ = f_(i+1) − f_i with f_i = k_i e_i + d_i ė_i, e_i = q_i − q_(i−1).

    Parameters
    ----------
    count : int
        How many masses.
    """

    def __init__(self, count: int) -> None:
        super().__init__("chain")
        steps = np.arange(count) / count
        self.m = self.declare_numeric_parameter("m", 1.0 + 0.2 * np.sin(7.0 * steps))
        self.k = self.declare_numeric_parameter("k", 100.0 + 20.0 * np.cos(5.0 * steps))
        self.d = self.declare_numeric_parameter("d", 0.5 + 0.1 * steps)
        start = np.concatenate([0.2 * (1.0 + steps), np.zeros(count)])
        self.x = self.declare_continuous_state(q=count, v=count, default=start)
        self.tip = self.declare_vector_output("tip", 1, self.calc_tip, prerequisites=[self.x])

    def calc_time_derivatives(self, context: Any) -> Any:
        """Return (q′, q″)."""
        q, v = self.x.q(context), self.x.v(context)
        stretch, rate = (each - np.append(0.0, each[:-1]) for each in (q, v))
        force = self.k(context) * stretch + self.d(context) * rate
        return np.concatenate([v, (np.append(force[1:], 0.0) - force) / self.m(context)])

    def calc_tip(self, context: Any) -> Any:
        """Return the displacement of the last mass."""
        return self.x.q(context)[-1:]


def rows(rounds: int) -> list[Row]:
    """Measure the ways in turns."""
    chain = Chain(100)
    ways, few = ["m", "k", "d"], [f"k[{k}]" for k in range(0, 100, 10)]
    metric = fx.metrics.ise("tip")
    options: dict[str, Any] = {"method": "RK45", "rtol": RTOL}

    def plain() -> object:
        return fx.simulate(chain, HORIZON, **options)

    def measured() -> object:
        return metric(fx.simulate(chain, HORIZON, **options))

    def backward() -> object:
        return fx.gradient(chain, metric, ways, HORIZON, **options)

    def repeating() -> object:
        with patch.object(gradients, "_MOST_STATES", 0.0):
            return backward()

    def forward() -> object:
        return fx.parameter_sensitivity(chain, few, 0.01 * HORIZON, **options)

    runs = (plain, measured, backward, forward, repeating)
    for run in runs:
        run()  # compiles
    sides = [lambda run=run: seconds(run) for run in runs]
    columns = in_rounds(sides, rounds)
    return [
        Row("chain", "gradient by 300 / plain run", ratio(columns[2], columns[0]), RUNS),
        Row("chain", "the same / run with its metric", ratio(columns[2], columns[1])),
        Row("chain", "with checkpoints / without", ratio(columns[4], columns[2]), REPEATS),
        Row("chain", "sensitivities by 10, 10 s / gradient", ratio(columns[3], columns[2])),
    ]


def main() -> None:
    """Measure, print a table, and write the rows."""
    parser = argparse.ArgumentParser(description="Gradients of long runs by the adjoint.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write the rows")
    arguments = parser.parse_args()
    found = rows(3 if arguments.quick else 9)
    print(formatted(found))
    if arguments.json is not None:
        write(found, arguments.json)


if __name__ == "__main__":
    main()
