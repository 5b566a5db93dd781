"""The layout of apex."""
