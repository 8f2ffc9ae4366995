"""Events: when they are due, where witnesses cross zero, and events that pile up."""
