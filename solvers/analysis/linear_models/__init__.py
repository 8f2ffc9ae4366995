"""Linear models: linearization, poles, loops that are opened, exchange with other packages."""
