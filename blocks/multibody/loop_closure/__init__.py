"""Loop closure: positions and velocities at which the loops of a mechanism are closed."""
