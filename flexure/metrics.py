"""Metrics: numbers computed from a run, for sweeps and other studies of many runs.

Each function returns a `Metric` of signals with one component. Metrics are computed from samples,
between which signals are taken to be linear; integrals are exact for such records, trapezoids among
them. Sums, products and comparisons of metrics are metrics and constraints.
"""

from flexure.solvers.results.measures.function_metrics import largest, of, smallest
from flexure.solvers.results.measures.metrics import Constraint, Metric
from flexure.solvers.results.measures.response_metrics import disturbance, step
from flexure.solvers.results.measures.signal_metrics import (
    at,
    final,
    first_crossing,
    iae,
    integral,
    ise,
    itae,
    maximum,
    mean,
    minimum,
    peak,
    rms,
    total_variation,
)

__all__ = [
    "Constraint",
    "Metric",
    "at",
    "disturbance",
    "final",
    "first_crossing",
    "iae",
    "integral",
    "ise",
    "itae",
    "largest",
    "maximum",
    "mean",
    "minimum",
    "of",
    "peak",
    "rms",
    "smallest",
    "step",
    "total_variation",
]
