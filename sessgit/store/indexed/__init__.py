"""Beneath the index, and more questions to it: files that may be thrown away, families, what the refs held once."""
