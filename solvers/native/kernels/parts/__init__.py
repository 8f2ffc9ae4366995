"""Parts of a run: its structure, and kernels for clocks, linear equations, rows and samples."""
