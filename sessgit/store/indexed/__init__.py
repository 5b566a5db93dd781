"""More questions to the index: of families, and of what the refs held once."""
