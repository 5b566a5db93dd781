"""The scratchpad of a session."""
