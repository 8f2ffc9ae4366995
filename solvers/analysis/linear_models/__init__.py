"""Linear models: linearization, poles, loop gains, exchange with other packages."""
