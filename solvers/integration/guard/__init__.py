"""The guard: runs of a solver that end with finite numbers or an error, stiffness, pace."""
