"""Files: atomic writing, values as JSON with every bit, and versions beside them."""
