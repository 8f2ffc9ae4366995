"""Contact between shapes of bodies: their distances, the law of the force, and the element."""
