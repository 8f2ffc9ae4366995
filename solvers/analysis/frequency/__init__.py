"""Frequency responses, stability margins and root loci, with their plots."""
