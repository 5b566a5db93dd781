"""The command line: the one place that reads the environment, speaks and exits."""
