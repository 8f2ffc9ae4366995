"""Gains of any blocks for goals in time and frequency: what `flexure.tune` does."""
