"""Bringing the store level with a transcript: the pass, what is recorded already, the commits, the family."""
