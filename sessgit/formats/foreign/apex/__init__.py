"""The layout of apex: a file for each session."""
