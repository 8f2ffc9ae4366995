"""Forces on mechanisms at rest with their derivatives, and the curves of equilibria they make."""
