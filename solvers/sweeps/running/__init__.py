"""Running: the runs of a sweep in lanes, one by one, or elsewhere, and what they leave."""
