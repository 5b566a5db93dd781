"""Sessions brought to a remote and from one."""
