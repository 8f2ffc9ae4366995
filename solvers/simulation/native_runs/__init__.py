"""Native runs: when compiled loops carry a simulation on, and how."""
