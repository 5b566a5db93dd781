"""One command a file, imported when it runs."""
