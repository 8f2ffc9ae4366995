"""Metrics: numbers computed from a run, or of a system at rest, for sweeps and other studies.

Each function returns a `Metric` of signals with one component. Metrics are computed from samples,
between which signals are taken to be linear; integrals are exact for such records, trapezoids among
them. Sums, products and comparisons of metrics are metrics and constraints.

Metrics at rest, such as `frequency`, `stiffness` and `gain`, need no run: `optimize` and `tune`
compute them and their exact derivatives from the equilibrium near a context.
"""

from flexure.solvers.design.objectives.rest_metrics import (
    at_rest,
    damping_ratio,
    decay_rate,
    frequency,
    gain,
    h2,
    margin,
    over_stroke,
    overshoot,
    stiffness,
    tracking,
)
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
    "at_rest",
    "damping_ratio",
    "decay_rate",
    "disturbance",
    "final",
    "first_crossing",
    "frequency",
    "gain",
    "h2",
    "iae",
    "integral",
    "ise",
    "itae",
    "largest",
    "margin",
    "maximum",
    "mean",
    "minimum",
    "of",
    "over_stroke",
    "overshoot",
    "peak",
    "rms",
    "smallest",
    "step",
    "stiffness",
    "total_variation",
    "tracking",
]
