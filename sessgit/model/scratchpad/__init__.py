"""The entries of a session's scratchpad, and what they suggest to do next."""
