"""Turns and lines, as the client writes them."""
