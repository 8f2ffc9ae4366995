"""Analysis: linear models, equilibria, statics, modes, frequency responses and plausibility."""
