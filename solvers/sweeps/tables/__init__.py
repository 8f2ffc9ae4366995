"""Tables of sweeps: columns, failures, and planes through metrics."""
