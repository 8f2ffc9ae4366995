"""Operating points: equilibria, and what follows them over values of a parameter."""
