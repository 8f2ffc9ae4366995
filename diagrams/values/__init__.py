"""Values: parameters, state, events, units, and what values may be."""
