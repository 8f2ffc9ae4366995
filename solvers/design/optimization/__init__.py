"""Optimization: parameters and inputs that make a metric of runs smallest."""
