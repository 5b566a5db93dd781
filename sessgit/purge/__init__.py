"""Removing a value from everything that the store holds."""
