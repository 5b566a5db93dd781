"""The full-text index, an SQLite file that is derived from the commits."""
