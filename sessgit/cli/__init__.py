"""The command line: commands, the pages they print, and what their arguments mean."""
