"""Responses over frequency: curves, margins of loops, loci of poles, and their pictures."""
