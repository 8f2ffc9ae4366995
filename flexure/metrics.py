"""Metrics: numbers of a run, or of a system at rest, for sweeps and other studies.

Each function returns a `Metric` of signals with one component. Metrics are computed from samples,
between which signals are taken to be linear; integrals are exact for such records, trapezoids among
them. Sums, products and comparisons of metrics are metrics and constraints.

Metrics at rest, such as `frequency`, `stiffness_at` and `gain`, need no run: `optimize` and `tune`
compute them and their exact derivatives from the equilibrium near a context.
"""

from typing import TYPE_CHECKING

from flexure.diagrams.interface.lazy_names import imported_names, on_demand

if TYPE_CHECKING:
    from flexure.solvers.design.objectives.rest_metrics import (
        at_rest as at_rest,
        decay_rate as decay_rate,
        frequency as frequency,
        gain as gain,
        h2 as h2,
        least_damping as least_damping,
        over_stroke as over_stroke,
        overshoot as overshoot,
        stability_margin as stability_margin,
        stiffness_at as stiffness_at,
        tracking as tracking,
    )
    from flexure.solvers.results.measures.metrics import Constraint as Constraint, Metric as Metric
    from flexure.solvers.results.measures.response_metrics import (
        disturbance as disturbance,
        largest as largest,
        of as of,
        smallest as smallest,
        step as step,
    )
    from flexure.solvers.results.measures.signal_metrics import (
        at as at,
        final as final,
        first_crossing as first_crossing,
        iae as iae,
        integral as integral,
        ise as ise,
        itae as itae,
        maximum as maximum,
        mean as mean,
        minimum as minimum,
        peak as peak,
        rms as rms,
        total_variation as total_variation,
    )
else:
    __getattr__, __dir__ = on_demand(__name__, imported_names(__file__, "flexure"), root="flexure")
