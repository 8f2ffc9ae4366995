"""Measures: metrics of signals, of step responses and of responses to disturbances."""
