"""Methods: one-step methods with their coefficients and control of steps."""
