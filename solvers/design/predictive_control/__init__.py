"""Model predictive control: the optimum over a horizon within limits, found anew at each sample."""
