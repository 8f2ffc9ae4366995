"""Contact between shapes of bodies: distances, the law of the force, elements, rigid contact."""
