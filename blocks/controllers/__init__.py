"""Controllers: PID laws, feedback of the state, and observers."""
