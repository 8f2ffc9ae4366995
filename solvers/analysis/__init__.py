"""Analysis: what derivatives say about a system, and what it answers to a step."""
