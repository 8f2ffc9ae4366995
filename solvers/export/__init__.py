"""Export of a diagram: what its model consists of, for targets such as JavaScript, C and FMUs."""
