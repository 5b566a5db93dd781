"""Bringing two conversations back together: the sides, what is brought back, and how it is written."""
