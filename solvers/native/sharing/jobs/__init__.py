"""Jobs: what families compute together, level by level, and loops that do it."""
