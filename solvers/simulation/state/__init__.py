"""The state of a simulation: options, tolerances, the method, and where it is given up."""
