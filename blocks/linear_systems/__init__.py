"""Linear systems: integrators, lags, delays, filters, state space and transfer functions."""
