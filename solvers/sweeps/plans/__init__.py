"""Plans: which values the runs of a sweep take, before anything runs."""
