"""Metrics: numbers computed from a run, for sweeps and other studies of many runs.

Each function returns a `Metric` of signals with one component. Metrics are computed from samples,
between which signals are taken to be linear; integrals are exact for such records, trapezoids among
them. Sums, products and comparisons of metrics are metrics and constraints.
"""

from flexure.solvers.results.measures.metric_kinds import (
    at,
    disturbance,
    final,
    first_crossing,
    iae,
    integral,
    ise,
    itae,
    largest,
    maximum,
    mean,
    minimum,
    of,
    peak,
    rms,
    smallest,
    step,
    total_variation,
)
from flexure.solvers.results.measures.metrics import Constraint, Metric

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
