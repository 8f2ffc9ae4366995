"""What all writers of model files share: checks, what joints carry, shapes, a list of the rest."""
