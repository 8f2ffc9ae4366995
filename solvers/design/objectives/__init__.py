"""Metrics of a system at rest, without a run: poles, modes, stiffness, norms, margins, strokes."""
