"""Measures: metrics, figures of step responses and of disturbances."""
