"""Design: controllers, their tuning, and fits of models to measurements."""
