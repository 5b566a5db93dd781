"""How the words of a command line are read: options, times, choices, and what the shell completes."""
