"""Results of runs: signals, measures, tables, pictures and files."""
