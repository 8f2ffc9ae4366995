"""Runs of a sweep: in lanes, one by one, or in other processes, and their results."""
