"""Bodies: rigid bodies with their frames, inertia, shapes and motion."""
