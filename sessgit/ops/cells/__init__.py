"""The cells of a whole session: what depends on what, and which data went where."""
