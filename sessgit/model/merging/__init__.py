"""Two conversations beside each other, and brought together."""
