"""One command a module, imported when it runs."""
