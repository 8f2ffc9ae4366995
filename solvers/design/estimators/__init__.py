"""Sampled Kalman filters around models, and tests of their consistency."""
