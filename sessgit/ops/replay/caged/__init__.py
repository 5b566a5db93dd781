"""Cells run again where they can harm nothing: the sandbox, what the system shuts, and the processes in it."""
