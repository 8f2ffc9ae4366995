"""Fits: parameters of models from measured time series."""
