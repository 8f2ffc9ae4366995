"""Native runs: the conditions for compiled loops in a simulation, and their calls."""
