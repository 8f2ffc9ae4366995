"""Controllers from generalized plants (H-infinity, H2), and models with fewer states."""
