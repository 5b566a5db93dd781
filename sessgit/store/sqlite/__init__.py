"""The tables of the index, an SQLite file that is derived from the commits."""
