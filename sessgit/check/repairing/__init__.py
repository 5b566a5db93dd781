"""The repairs of a session whose lines or objects are damaged."""
