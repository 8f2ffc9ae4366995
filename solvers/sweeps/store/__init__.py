"""The store: files of finished runs, and sweeps read from them."""
