"""Trees: topology, and the recursive algorithms of kinematics and dynamics over it."""
