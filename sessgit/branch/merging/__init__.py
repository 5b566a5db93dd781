"""Merging two conversations, and picking single turns."""
