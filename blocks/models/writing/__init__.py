"""The common part of all writers: checks, what joints carry, shapes, and the list of the rest."""
