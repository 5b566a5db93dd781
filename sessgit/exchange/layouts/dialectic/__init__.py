"""The layout of dialectic."""
