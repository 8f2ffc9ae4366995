"""Programs: from a system over its trace and plan to compiled functions and loops."""
