"""Design in state space: LQR and poles, observers, LQG."""
