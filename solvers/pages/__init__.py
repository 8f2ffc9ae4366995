"""Pages: one HTML file each, in which a diagram runs without Python, a server or a network."""
