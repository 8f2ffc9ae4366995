"""The store: files that keep finished runs, and sweeps that come back from them."""
