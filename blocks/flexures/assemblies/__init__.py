"""Assemblies of beams: pivots, guides, plane springs, hexapods and amplifiers, by dimensions."""
