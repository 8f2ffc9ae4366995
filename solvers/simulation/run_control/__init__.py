"""Run control: options, tolerances, the choice of the method, and where a run is given up."""
