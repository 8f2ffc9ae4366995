"""Results: what runs leave behind, its figures, tables and pictures."""
