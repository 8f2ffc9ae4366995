"""Pictures of one run or of a few: signals, responses, energies, spectra, phases, labels."""
