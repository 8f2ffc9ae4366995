"""Design: controllers, tuning, optimization, and fits of models to measurements."""
