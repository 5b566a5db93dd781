"""The user's project at the commits that it had when turns were recorded."""
