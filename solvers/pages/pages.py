"""From a diagram or a result to a page."""
