"""Plans: the values that the runs of a study take, as grids, samples or lists.

A plan runs nothing by itself: pass it to `flexure.sweep` or `flexure.simulate_many`.
"""

from typing import TYPE_CHECKING

from flexure.diagrams.interface.lazy_names import imported_names, on_demand

if TYPE_CHECKING:
    from flexure.solvers.sweeps.plans.one_at_a_time import one_at_a_time as one_at_a_time
    from flexure.solvers.sweeps.plans.plan_files import load_plan as load_plan
    from flexure.solvers.sweeps.plans.plans import Plan as Plan, grid as grid, zipped as zipped
    from flexure.solvers.sweeps.plans.sampling_designs import (
        latin_hypercube as latin_hypercube,
        random as random,
        sobol as sobol,
    )
else:
    __getattr__, __dir__ = on_demand(__name__, imported_names(__file__, "flexure"), root="flexure")
