"""The detached process that records the events of the hooks."""
