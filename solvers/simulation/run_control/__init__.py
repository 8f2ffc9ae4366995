"""Run control: options, tolerances, choice of the method, and errors that end a run."""
