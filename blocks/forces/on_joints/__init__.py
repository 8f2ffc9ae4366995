"""Forces on the coordinates of joints: springs, friction, stops, couplings and door hinges."""
