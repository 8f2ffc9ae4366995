"""Building: the builder with its wires, and the units that these imply."""
