"""Force elements: their base classes, their limits, and how they act on a tree."""
