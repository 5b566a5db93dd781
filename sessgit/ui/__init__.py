"""The command line: what a person meets. As the other edges do, it reads the environment, speaks and exits."""
