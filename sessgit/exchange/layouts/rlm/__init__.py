"""The layout of RLM."""
