"""Common to all code: errors, checks of arguments, answers, notebooks and files."""
