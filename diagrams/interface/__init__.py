"""Interface: names imported when they are first used, completion, and HTML for notebooks."""
