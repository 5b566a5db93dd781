"""Cells of a conversation run again, apart from all that is the person's own, and held against what is recorded."""
