"""Forces on mechanisms at rest with their derivatives, and path following of equilibria."""
