"""Signals: sources, setpoints, noise, algebra, tables, nonlinear blocks and sinks."""
