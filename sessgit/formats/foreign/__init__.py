"""The layouts in which other systems keep their sessions: of each, `read` gives values, and `write` gives files."""
