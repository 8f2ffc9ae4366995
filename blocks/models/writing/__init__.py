"""The common part of all writers of model files: checks, what joints carry, shapes, a list of the rest."""
