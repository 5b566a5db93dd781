"""The detached process that records what the hooks' events tell of."""
