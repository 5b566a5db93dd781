"""The layouts in which other systems keep their sessions, one a module: `read` gives values, `write` gives files."""
