"""Operating points: equilibria, and their continuation over values of a parameter."""
