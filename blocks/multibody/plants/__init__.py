"""Plants: the builder, the diagram that it makes, computed torques, energy and passivity."""
