"""Records of runs: history, signals, statistics, spectra, tables and files."""
