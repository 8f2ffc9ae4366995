"""Forces along the line between two points: springs, dampers, cables and bumpers."""
